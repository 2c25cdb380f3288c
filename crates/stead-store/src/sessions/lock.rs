//! The lock that gives a session one writer.
//!
//! It is an advisory lock on the journal file itself, so the kernel releases it however the holder
//! ends, and nothing is written to hold it. The holder is looked up in the kernel only when another
//! process is refused.
//!
//! Effects: the clock, the local disk (writes).

use crate::{Holder, LockWait, StoreError};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::SessionId;

const POLL: Duration = Duration::from_millis(25);

/// The right to write a session, until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    journal: Arc<File>,
}

impl Lock {
    /// Locks `journal`, waiting as `wait` allows.
    pub(crate) async fn take(
        journal: Arc<File>,
        path: &Path,
        session: &SessionId,
        wait: LockWait,
    ) -> Result<Self, StoreError> {
        let started = Instant::now();
        loop {
            match rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { journal }),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let limit = match wait {
                        LockWait::No => Duration::ZERO,
                        LockWait::AtMost(limit) => limit,
                    };
                    if started.elapsed() >= limit {
                        return Err(StoreError::Locked {
                            session: session.clone(),
                            holder: holder(&journal),
                        });
                    }
                    tokio::time::sleep(POLL).await;
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(StoreError::io(path, errno.into())),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that was just forked holds a copy of the
        // descriptor until it calls exec.
        let _ = rustix::fs::flock(&self.journal, FlockOperation::Unlock);
    }
}

/// Finds the holder in the kernel's lock table.
fn holder(journal: &File) -> Holder {
    let inode = rustix::fs::fstat(journal).map_or(0, |stat| stat.st_ino);
    let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = table.lines().find_map(|line| lock_holder(line, inode));
    let program = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
    Holder {
        pid,
        program: program.map(|name| name.trim().to_owned()),
        host: None,
    }
}

/// Returns the process of a line such as `5: FLOCK  ADVISORY  WRITE 812 fe:00:4711 0 EOF` if it is
/// about `inode`.
fn lock_holder(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    // A line with `->` describes a waiting process.
    let ["FLOCK", _, "WRITE", pid, file, ..] = words.get(1..)? else {
        return None;
    };
    let is_it = file.rsplit(':').next()?.parse() == Ok(inode);
    pid.parse().ok().filter(|pid| is_it && *pid != 0)
}

#[cfg(test)]
mod tests {
    use super::lock_holder;

    #[test]
    fn the_holder_is_read_from_the_kernels_table() {
        let line = "5: FLOCK  ADVISORY  WRITE 812 fe:00:4711 0 EOF";
        assert_eq!(lock_holder(line, 4711), Some(812));
        assert_eq!(lock_holder(line, 711), None);
        assert_eq!(
            lock_holder("5: -> FLOCK  ADVISORY  WRITE 812 fe:00:4711 0 EOF", 4711),
            None
        );
        assert_eq!(
            lock_holder("6: POSIX  ADVISORY  WRITE 812 fe:00:4711 0 EOF", 4711),
            None
        );
        assert_eq!(lock_holder("", 4711), None);
    }
}
