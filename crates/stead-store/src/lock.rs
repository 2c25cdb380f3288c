//! One writer per session.
//!
//! The lock is an advisory lock on the journal file itself, so the kernel releases it however the
//! holder ends. Beside it lies a small note that says who holds it; it is only ever read to word an
//! error, so a note left by a dead process blocks nobody.

use crate::{Disk, StoreError, Wait};
use rustix::fs::{AtFlags, FlockOperation};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::SessionId;

/// Who holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process, if it left its note.
    pub pid: Option<u32>,
    /// Its machine.
    pub host: String,
    /// Since when.
    pub since: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid} on {} since {}", self.host, self.since),
            None => f.write_str("another process"),
        }
    }
}

const POLL: Duration = Duration::from_millis(25);

/// The right to write a session, until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    journal: Arc<File>,
    note: PathBuf,
    dir: Arc<File>,
    disk: Arc<dyn Disk>,
}

impl Lock {
    /// Locks `journal`, waiting as told.
    pub(crate) async fn take(
        journal: Arc<File>,
        path: &Path,
        session: &SessionId,
        dir: Arc<File>,
        disk: Arc<dyn Disk>,
        wait: Wait,
    ) -> Result<Self, StoreError> {
        let note = path.with_extension("holder");
        let started = Instant::now();
        loop {
            match rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let limit = match wait {
                        Wait::No => Duration::ZERO,
                        Wait::AtMost(limit) => limit,
                    };
                    if started.elapsed() >= limit {
                        return Err(StoreError::Locked { session: session.clone(), holder: read_note(&note) });
                    }
                    tokio::time::sleep(POLL).await;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(StoreError::io(path, errno.into())),
            }
        }
        let lock = Self { journal, note, dir, disk };
        lock.leave_note();
        Ok(lock)
    }

    fn leave_note(&self) {
        let holder = Holder {
            pid: Some(std::process::id()),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            since: format!("{:.0}", jiff::Timestamp::now()),
        };
        let text = serde_json::to_vec(&holder).unwrap_or_default();
        // Without the note the lock still holds; only an error message would be poorer.
        if let Some(name) = self.note.file_name() {
            let _ = self.disk.replace(self.dir.as_fd(), Path::new(name), &text, 0o600);
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(name) = self.note.file_name() {
            let _ = self.disk.remove(self.dir.as_fd(), Path::new(name), AtFlags::empty());
        }
        // Last, for whoever comes next leaves a note of their own. Closing the file would not do: a
        // process that was just forked holds a copy of it until it has become another program.
        let _ = rustix::fs::flock(&self.journal, FlockOperation::Unlock);
    }
}

fn read_note(note: &Path) -> Holder {
    let text = std::fs::read(note).unwrap_or_default();
    let unknown = || Holder { pid: None, host: String::new(), since: String::new() };
    serde_json::from_slice(&text).unwrap_or_else(|_| unknown())
}
