//! Looking and changing in one step.

use super::LocalInner;
use super::error;
use super::root::EntryLocation;
use crate::{VPath, VfsError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A directory is held for some microseconds at a time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL_INTERVAL: Duration = Duration::from_micros(200);

/// A directory in which nobody else looks and changes at the same time, until dropped.
pub(super) struct DirLock<'a> {
    dir: &'a File,
    _here: MutexGuard<'a, ()>,
}

impl LocalInner {
    /// Makes what follows one step among all that change `place`: those of this process, by a lock
    /// of ours, and those of others, by the kernel's lock on the directory. On a disk that has no
    /// such locks, others are noticed up to the last moment before the change.
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
        // Closing it would not do: a process that was just forked holds a copy until it has become
        // another program.
        let _ = rustix::fs::flock(self.dir, FlockOperation::Unlock);
    }
}
