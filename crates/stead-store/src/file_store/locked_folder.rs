//! The folder of one space of the file store, under a lock. Every operation runs between locking
//! and unlocking, after interrupted operations have been completed.
//!
//! Effects: the clock, randomness, the local disk (writes).

use crate::regular_file::{MAX_STATE_FILE_BYTES, open_regular, read_regular};
use crate::{Disk, DocVersion, StoreError, open_dir};
use rustix::fs::{AtFlags, FlockOperation, OFlags, RenameFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The file that describes an operation to complete before any other.
const PENDING: &str = "pending.json";
const LOCK_DEADLINE: Duration = Duration::from_secs(30);
const SHORTEST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// A subfolder of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpaceSubfolder {
    Documents,
    Leases,
    Queues,
    Payloads,
    /// Files that are completely written before they are moved into place.
    Staged,
}

impl SpaceSubfolder {
    const ALL: [Self; 5] = [
        Self::Documents,
        Self::Leases,
        Self::Queues,
        Self::Payloads,
        Self::Staged,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Documents => "documents",
            Self::Leases => "leases",
            Self::Queues => "queues",
            Self::Payloads => "payloads",
            Self::Staged => "staged",
        }
    }
}

/// A multi-step operation to be completed if it is interrupted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PendingOperation {
    /// A commit that has been decided: staged files to move among the documents, and documents to
    /// remove.
    Finish {
        moves: Vec<(String, String)>,
        removals: Vec<String>,
    },
}

/// The folder of one space, exclusively locked until dropped.
#[derive(Debug)]
pub(super) struct LockedFolder {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    dir: File,
}

impl LockedFolder {
    /// Locks the folder. Returns `None` if it does not exist.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: &Path) -> Result<Option<Self>, StoreError> {
        let dir = match open_dir(path) {
            Ok(dir) => dir,
            Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(StoreError::io(path, cause)),
        };
        lock(&dir, path)?;
        let folder = Self {
            disk: disk.clone(),
            path: path.to_owned(),
            dir,
        };
        folder.recover()?;
        Ok(Some(folder))
    }

    /// Locks the folder, creating it if needed.
    pub(super) fn open_or_create(disk: &Arc<dyn Disk>, path: &Path) -> Result<Self, StoreError> {
        loop {
            for part in SpaceSubfolder::ALL {
                let part = path.join(part.name());
                make_durable_dir(&**disk, &part).map_err(|cause| StoreError::io(part, cause))?;
            }
            if let Some(folder) = Self::open(disk, path)? {
                folder.remove_staged()?;
                return Ok(folder);
            }
        }
    }

    /// Completes an interrupted operation.
    fn recover(&self) -> Result<(), StoreError> {
        let Some(text) = read(&self.path.join(PENDING))? else {
            return Ok(());
        };
        match serde_json::from_slice(&text) {
            Ok(pending) => self.finish(&pending),
            Err(cause) => Err(self.corrupt(&self.path.join(PENDING), cause.to_string())),
        }
    }

    /// Removes files that were staged for commits that did not happen.
    fn remove_staged(&self) -> Result<(), StoreError> {
        self.names(SpaceSubfolder::Staged)?
            .into_iter()
            .try_for_each(|name| self.remove(SpaceSubfolder::Staged, &name))
    }

    fn finish(&self, pending: &PendingOperation) -> Result<(), StoreError> {
        match pending {
            PendingOperation::Finish { moves, removals } => {
                for (staged, name) in moves {
                    self.move_staged(staged, SpaceSubfolder::Documents, name)?;
                }
                for name in removals {
                    self.unlink(SpaceSubfolder::Documents, name)?;
                }
                self.sync(SpaceSubfolder::Documents)?;
            }
        }
        self.clear_pending()
    }

    /// Records how to complete this operation if it is interrupted. Durable on return.
    pub(super) fn record_pending(&self, pending: &PendingOperation) -> Result<(), StoreError> {
        let path = self.path.join(PENDING);
        let text =
            serde_json::to_vec(pending).map_err(|cause| StoreError::io(&path, cause.into()))?;
        let staged = self.stage(&[&text])?;
        let moved = open_dir(&self.path.join(SpaceSubfolder::Staged.name())).and_then(|from| {
            let flags = RenameFlags::empty();
            self.disk.rename(
                from.as_fd(),
                Path::new(&staged),
                self.dir.as_fd(),
                Path::new(PENDING),
                flags,
            )?;
            self.disk.sync(&self.dir)
        });
        moved.map_err(|cause| StoreError::io(path, cause))
    }

    /// Records that the operation is complete.
    pub(super) fn clear_pending(&self) -> Result<(), StoreError> {
        let removed = self
            .disk
            .remove(self.dir.as_fd(), Path::new(PENDING), AtFlags::empty());
        removed
            .and_then(|()| self.disk.sync(&self.dir))
            .map_err(|cause| StoreError::io(self.path.join(PENDING), cause))
    }

    /// Commits changes to several documents, all or none.
    pub(super) fn commit(
        &self,
        moves: Vec<(String, String)>,
        removals: Vec<String>,
    ) -> Result<(), StoreError> {
        match (&moves[..], &removals[..]) {
            ([], []) => Ok(()),
            // A single step needs no record.
            ([(staged, name)], []) => {
                self.move_staged(staged, SpaceSubfolder::Documents, name)?;
                self.sync(SpaceSubfolder::Documents)
            }
            ([], [name]) => self.remove(SpaceSubfolder::Documents, name),
            _ => {
                self.sync(SpaceSubfolder::Staged)?;
                let pending = PendingOperation::Finish { moves, removals };
                self.record_pending(&pending)?;
                self.finish(&pending)
            }
        }
    }

    /// Writes a staged file and returns its name. Its contents are durable.
    pub(super) fn stage(&self, data: &[&[u8]]) -> Result<String, StoreError> {
        let name = DocVersion::fresh().to_string();
        let written = open_dir(&self.path.join(SpaceSubfolder::Staged.name())).and_then(|dir| {
            let file = self.disk.create(dir.as_fd(), Path::new(&name), FILE_MODE)?;
            data.iter()
                .try_for_each(|piece| self.disk.write_all(&file, piece))?;
            self.disk.sync(&file)
        });
        written.map_err(|cause| StoreError::io(self.file(SpaceSubfolder::Staged, &name), cause))?;
        Ok(name)
    }

    /// Replaces a file atomically. Durable on return.
    pub(super) fn replace(
        &self,
        part: SpaceSubfolder,
        name: &str,
        data: &[&[u8]],
    ) -> Result<(), StoreError> {
        let staged = self.stage(data)?;
        self.move_staged(&staged, part, name)?;
        self.sync(part)
    }

    /// Removes a file if it exists. Durable on return.
    pub(super) fn remove(&self, part: SpaceSubfolder, name: &str) -> Result<(), StoreError> {
        self.unlink(part, name)?;
        self.sync(part)
    }

    /// Moves a staged file into place. If it does not exist any more, it was moved before.
    fn move_staged(
        &self,
        staged: &str,
        part: SpaceSubfolder,
        name: &str,
    ) -> Result<(), StoreError> {
        let moved = open_dir(&self.path.join(SpaceSubfolder::Staged.name())).and_then(|from| {
            let to = open_dir(&self.path.join(part.name()))?;
            let flags = RenameFlags::empty();
            self.disk.rename(
                from.as_fd(),
                Path::new(staged),
                to.as_fd(),
                Path::new(name),
                flags,
            )
        });
        ignore_missing(moved).map_err(|cause| StoreError::io(self.file(part, name), cause))
    }

    fn unlink(&self, part: SpaceSubfolder, name: &str) -> Result<(), StoreError> {
        let removed = open_dir(&self.path.join(part.name())).and_then(|dir| {
            self.disk
                .remove(dir.as_fd(), Path::new(name), AtFlags::empty())
        });
        ignore_missing(removed).map_err(|cause| StoreError::io(self.file(part, name), cause))
    }

    pub(super) fn sync(&self, part: SpaceSubfolder) -> Result<(), StoreError> {
        let path = self.path.join(part.name());
        open_dir(&path)
            .and_then(|dir| self.disk.sync(&dir))
            .map_err(|cause| StoreError::io(path, cause))
    }

    /// Returns the path of a file.
    pub(super) fn file(&self, part: SpaceSubfolder, name: &str) -> PathBuf {
        self.path.join(part.name()).join(name)
    }

    /// Reads a whole file. Returns `None` if it does not exist.
    pub(super) fn read(
        &self,
        part: SpaceSubfolder,
        name: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        read(&self.file(part, name))
    }

    /// Reads at most `most` bytes from the beginning of a file. Returns `None` if it does not
    /// exist.
    pub(super) fn read_start(
        &self,
        part: SpaceSubfolder,
        name: &str,
        most: u64,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.file(part, name);
        let mut start = Vec::new();
        let read = open_regular(&path, OFlags::RDONLY)
            .and_then(|file| file.take(most).read_to_end(&mut start));
        none_if_missing(read, &path).map(|found| found.map(|_| start))
    }

    /// Returns the names of all files, unordered.
    pub(super) fn names(&self, part: SpaceSubfolder) -> Result<Vec<String>, StoreError> {
        let path = self.path.join(part.name());
        let entries = std::fs::read_dir(&path).and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect::<io::Result<Vec<_>>>()
        });
        Ok(none_if_missing(entries, &path)?.unwrap_or_default())
    }

    pub(super) fn corrupt(&self, path: &Path, cause: String) -> StoreError {
        StoreError::Corrupt {
            place: path.display().to_string(),
            cause,
        }
    }
}

impl Drop for LockedFolder {
    fn drop(&mut self) {
        // Closing the directory is not enough: a process that was just forked holds a copy of the
        // descriptor until it calls exec.
        let _ = rustix::fs::flock(&self.dir, FlockOperation::Unlock);
    }
}

/// Waits for the lock, with a deadline because its holder may be stopped.
fn lock(dir: &File, path: &Path) -> Result<(), StoreError> {
    let give_up = Instant::now() + LOCK_DEADLINE;
    let mut pause = SHORTEST_PAUSE;
    loop {
        match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR)
                if Instant::now() < give_up =>
            {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                let cause = format!(
                    "another process has held it for {} s",
                    LOCK_DEADLINE.as_secs()
                );
                return Err(StoreError::Unavailable {
                    place: format!("file:{}", path.display()),
                    cause,
                });
            }
            Err(errno) => return Err(StoreError::io(path, errno.into())),
        }
    }
}

/// Creates a folder and its parents so that they survive a power failure.
fn make_durable_dir(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    make_durable_dir(disk, parent)?;
    let dir = open_dir(if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    })?;
    match disk.create_dir(dir.as_fd(), Path::new(name), FOLDER_MODE) {
        Err(cause) if cause.kind() != ErrorKind::AlreadyExists => Err(cause),
        Ok(()) | Err(_) => disk.sync(&dir),
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    none_if_missing(read_regular(path, MAX_STATE_FILE_BYTES), path)
}

fn none_if_missing<T>(outcome: io::Result<T>, path: &Path) -> Result<Option<T>, StoreError> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(StoreError::io(path, cause)),
    }
}

fn ignore_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
