//! Looking and changing in one step.

use super::Local;
use super::error;
use super::root::Place;
use crate::{VPath, VfsError};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A directory is held for some microseconds at a time.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_micros(200);

/// A directory in which nobody else looks and changes at the same time, until dropped.
pub(super) struct Held<'a> {
    dir: &'a File,
    _here: MutexGuard<'a, ()>,
}

impl Local {
    /// Makes what follows one step among all that change `place`: those of this process, by a lock
    /// of ours, and those of others, by the kernel's lock on the directory. On a disk that has no
    /// such locks, others are noticed up to the last moment before the change.
    pub(super) fn hold<'a>(&'a self, path: &VPath, place: &'a Place) -> Result<Held<'a>, VfsError> {
        let directory = rustix::fs::fstat(&place.dir)
            .map(|stat| (stat.st_dev, stat.st_ino))
            .ok();
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(directory);
        let here = self.locks[hash as usize % self.locks.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&place.dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    return Ok(Held {
                        dir: &place.dir,
                        _here: here,
                    });
                }
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if Instant::now() < end => std::thread::sleep(POLL),
                Err(Errno::WOULDBLOCK) => return Err(error::held(path)),
                Err(_) => {
                    return Ok(Held {
                        dir: &place.dir,
                        _here: here,
                    });
                }
            }
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Closing it would not do: a process that was just forked holds a copy until it has become
        // another program.
        let _ = rustix::fs::flock(self.dir, FlockOperation::Unlock);
    }
}
