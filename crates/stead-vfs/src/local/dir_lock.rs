//! The lock of a directory of the local disk, under which it is checked and changed in one step.
//!
//! Effects: the clock, the local disk (writes).

use super::LocalInner;
use super::error;
use super::write::EntryLocation;
use crate::{VPath, VfsError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum wait for the lock of a directory, which is held for microseconds at a time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL_INTERVAL: Duration = Duration::from_micros(200);

/// An exclusive lock on a directory, held until dropped.
pub(super) struct DirLock<'a> {
    dir: &'a File,
    _here: MutexGuard<'a, ()>,
}

impl LocalInner {
    /// Locks the directory of `place` against other changes: those of this process by an internal
    /// lock, those of other processes by a kernel lock on the directory. On a disk without such
    /// locks, other changes are detected up to the moment before the change.
    pub(super) fn lock_dir<'a>(
        &'a self,
        path: &VPath,
        place: &'a EntryLocation,
    ) -> Result<DirLock<'a>, VfsError> {
        let directory = rustix::fs::fstat(&place.dir)
            .map(|stat| (stat.st_dev, stat.st_ino))
            .ok();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(directory);
        let here = self.locks[hash as usize % self.locks.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + LOCK_TIMEOUT;
        loop {
            match rustix::fs::flock(&place.dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(DirLock {
                        dir: &place.dir,
                        _here: here,
                    });
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                    std::thread::sleep(LOCK_POLL_INTERVAL)
                }
                Err(Errno::WOULDBLOCK) => return Err(error::locked(path)),
                Err(_) => {
                    return Ok(DirLock {
                        dir: &place.dir,
                        _here: here,
                    });
                }
            }
        }
    }
}

impl Drop for DirLock<'_> {
    fn drop(&mut self) {
        // Closing the directory is not enough: a process that was just forked holds a copy of the
        // descriptor until it calls exec.
        let _ = rustix::fs::flock(self.dir, FlockOperation::Unlock);
    }
}
