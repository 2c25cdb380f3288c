//! Walking a tree of the local disk on several threads, by descriptors.
//!
//! A directory is opened from its parent's descriptor and never through a link, so a tree that
//! changes during the walk cannot lead it out of the root. Ignore files are opened like any other
//! file, so a FIFO of that name does not block it. `ignore::WalkParallel` goes by name and has
//! neither property.
//!
//! Effects: the clock, the local disk (reads).

use super::ignores::{self, IgnoreFileNames};
use super::root;
use crate::glob::DotFiles;
use crate::ignores::{Ignores, IsDir};
use crate::{UnsearchedPart, VPath};
use rustix::fs::{AtFlags, FileType, RawDir};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use stead_core::counted;
use tokio_util::sync::CancellationToken;

/// The size of the buffer for the kernel's directory entries.
const ENTRIES_BYTES: usize = 32 * 1024;

/// The maximum number of directories that a search names because they could not be read.
const MAX_UNSEARCHED: usize = 10;

/// The actions of a walk. Paths are from the root of the file system.
pub(super) trait Visitor: Send {
    /// Returns whether to enter a directory.
    fn enter(&mut self, path: &str) -> bool;
    /// Handles a regular file: `name` in `dir`.
    fn file(&mut self, dir: BorrowedFd<'_>, name: &CStr, path: &str);
}

/// The start of a walk.
pub(super) struct WalkStart {
    pub(super) dir: File,
    pub(super) path: String,
    /// The ignore rules of the directories above.
    pub(super) ignores: Option<Arc<Ignores>>,
}

/// The conditions that end a walk early.
#[derive(Debug)]
pub(super) struct WalkStop {
    cancel: CancellationToken,
    deadline: Instant,
    timed_out: AtomicBool,
    /// The first directories that could not be read.
    unsearched: Mutex<Vec<UnsearchedPart>>,
}

impl WalkStop {
    pub(super) fn new(cancel: CancellationToken, deadline: Instant) -> Self {
        Self {
            cancel,
            deadline,
            timed_out: AtomicBool::new(false),
            unsearched: Mutex::default(),
        }
    }

    /// Notes that a directory could not be read. One that was removed meanwhile has no files.
    fn note_unreadable(&self, path: &str, error: Errno) {
        if matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
            return;
        }
        self.note(path, std::io::Error::from(error).kind().to_string());
    }

    /// Notes that a part of a directory was not searched.
    fn note(&self, path: &str, reason: String) {
        let Ok(path) = VPath::parse(path) else { return };
        let mut parts = self
            .unsearched
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if parts.len() < MAX_UNSEARCHED {
            parts.push(UnsearchedPart { path, reason });
        }
    }

    /// Returns the directories that could not be read, sorted by path.
    pub(super) fn unsearched_parts(&self) -> Vec<UnsearchedPart> {
        let parts = self.unsearched.lock();
        let mut parts = parts.unwrap_or_else(PoisonError::into_inner).clone();
        parts.sort_by(|a, b| a.path.cmp(&b.path));
        parts
    }

    /// Returns whether the walk must end.
    pub(super) fn should_stop(&self) -> bool {
        if self.cancel.is_cancelled() {
            return true;
        }
        let late = Instant::now() >= self.deadline;
        if late {
            self.timed_out.store(true, Ordering::Relaxed);
        }
        late
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(super) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Relaxed)
    }
}

/// Visits every file below `start` once, with one visitor per thread, and returns the visitors.
pub(super) fn walk<V: Visitor>(
    start: WalkStart,
    dots: DotFiles,
    stop: &WalkStop,
    visitor: impl Fn() -> V + Sync,
) -> Vec<V> {
    let queue = WalkQueue::new(WalkJob::Open(start));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        let mut worker = WalkWorker::new(visitor(), dots);
        while let Some((job, turn)) = queue.pop() {
            if !stop.should_stop() {
                worker.directory(job, stop);
            }
            turn.finish(&mut worker.subdirectories);
        }
        worker.visitor
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                std::thread::Builder::new()
                    .name("stead-walk".into())
                    .spawn_scoped(scope, work)
                    .ok()
            })
            .collect();
        let mut visitors = vec![work()];
        for other in others {
            match other.join() {
                Ok(visitor) => visitors.push(visitor),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        visitors
    })
}

/// A directory to read.
enum WalkJob {
    Open(WalkStart),
    Named {
        parent: Arc<File>,
        name: CString,
        path: String,
        ignores: Option<Arc<Ignores>>,
    },
}

/// The waiting directories, newest first: depth before breadth keeps few descriptors open.
struct WalkQueue {
    state: Mutex<WalkQueueState>,
    changed: Condvar,
}

struct WalkQueueState {
    waiting: Vec<WalkJob>,
    working: usize,
}

impl WalkQueue {
    fn new(first: WalkJob) -> Self {
        Self {
            state: Mutex::new(WalkQueueState {
                waiting: vec![first],
                working: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns the next directory, or `None` when all are done.
    fn pop(&self) -> Option<(WalkJob, JobGuard<'_>)> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.waiting.pop() {
                state.working += 1;
                return Some((job, JobGuard(self)));
            }
            if state.working == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, WalkQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The work on one directory. It ends when dropped, so that a panic does not leave other threads
/// waiting.
struct JobGuard<'a>(&'a WalkQueue);

impl JobGuard<'_> {
    /// Ends the work and adds the directories that were found, in order.
    fn finish(self, jobs: &mut Vec<WalkJob>) {
        // Taken from the end, so the first name goes last.
        self.0.lock().waiting.extend(jobs.drain(..).rev());
    }
}

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.working -= 1;
        if state.waiting.len() > 1 || state.working == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// The visitor of one thread and its buffers, which are reused for each directory.
struct WalkWorker<V> {
    visitor: V,
    dots: DotFiles,
    subdirectories: Vec<WalkJob>,
    names: Vec<u8>,
    entries: Vec<NameSpan>,
    path: String,
    raw: Vec<MaybeUninit<u8>>,
}

/// A name in `WalkWorker::names`, including its NUL.
#[derive(Clone, Copy)]
struct NameSpan {
    start: usize,
    end: usize,
    kind: FileType,
}

impl<V: Visitor> WalkWorker<V> {
    fn new(visitor: V, dots: DotFiles) -> Self {
        Self {
            visitor,
            dots,
            subdirectories: Vec::new(),
            names: Vec::new(),
            entries: Vec::new(),
            path: String::new(),
            raw: vec![MaybeUninit::uninit(); ENTRIES_BYTES],
        }
    }

    /// Visits the files of a directory and leaves its directories in `subdirectories`. A directory
    /// that cannot be read is noted.
    fn directory(&mut self, job: WalkJob, stop: &WalkStop) {
        let (dir, path, above) = match job {
            WalkJob::Open(WalkStart { dir, path, ignores }) => (dir, path, ignores),
            WalkJob::Named {
                parent,
                name,
                path,
                ignores,
            } => {
                let name = OsStr::from_bytes(name.to_bytes());
                match root::subdirectory(parent.as_fd(), name) {
                    Ok(dir) => (dir, path, ignores),
                    Err(error) => return stop.note_unreadable(&path, error),
                }
            }
        };
        let ignore_files = match self.read(&dir) {
            Ok(files) => files,
            Err(error) => return stop.note_unreadable(&path, error),
        };
        let ignores = ignores::below(above, dir.as_fd(), &path, ignore_files);
        let dir = Arc::new(dir);
        self.path.clear();
        self.path.push_str(&path);
        if !path.is_empty() {
            self.path.push('/');
        }
        let prefix = self.path.len();
        let names = std::mem::take(&mut self.names);
        let entries = std::mem::take(&mut self.entries);
        let mut unusable_names = 0_usize;
        let mut too_long_paths = 0_usize;
        for entry in &entries {
            if stop.should_stop() {
                break;
            }
            let Ok(name) = CStr::from_bytes_with_nul(&names[entry.start..entry.end]) else {
                continue;
            };
            let text = name.to_str().ok();
            let Some(text) = text.filter(|text| !text.chars().any(char::is_control)) else {
                unusable_names += 1;
                continue;
            };
            if prefix + text.len() > VPath::MAX_BYTES {
                too_long_paths += 1;
                continue;
            }
            self.path.truncate(prefix);
            self.path.push_str(text);
            self.entry(&dir, name, entry.kind, ignores.as_ref());
        }
        if unusable_names > 0 {
            let names = counted(unusable_names, "name");
            let why = "with control characters or bytes that are no text";
            stop.note(&path, format!("left out {names} {why}"));
        }
        if too_long_paths > 0 {
            let limit = VPath::MAX_BYTES;
            let paths = counted(too_long_paths, "path");
            stop.note(
                &path,
                format!("left out {paths} of more than {limit} bytes"),
            );
        }
        (self.names, self.entries) = (names, entries);
    }

    /// Handles one name, whose path is `self.path`.
    fn entry(
        &mut self,
        dir: &Arc<File>,
        name: &CStr,
        kind: FileType,
        ignores: Option<&Arc<Ignores>>,
    ) {
        let kind = match kind {
            FileType::Unknown => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                }),
            known => known,
        };
        let left_out =
            |is_dir| ignores.is_some_and(|ignores| ignores.is_ignored(&self.path, is_dir));
        match kind {
            FileType::Directory if !left_out(IsDir::Yes) && self.visitor.enter(&self.path) => {
                self.subdirectories.push(WalkJob::Named {
                    parent: Arc::clone(dir),
                    name: name.to_owned(),
                    path: self.path.clone(),
                    ignores: ignores.cloned(),
                });
            }
            FileType::RegularFile if !left_out(IsDir::No) => {
                self.visitor.file(dir.as_fd(), name, &self.path)
            }
            _ => {}
        }
    }

    /// Reads the names of a directory, sorted and without hidden ones.
    fn read(&mut self, dir: &File) -> rustix::io::Result<IgnoreFileNames> {
        self.names.clear();
        self.entries.clear();
        let mut found = IgnoreFileNames::default();
        let mut entries = RawDir::new(dir, &mut self.raw);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            match name {
                b".\0" | b"..\0" => continue,
                b".git\0" => {
                    found.git = true;
                    continue;
                }
                b".gitignore\0" => found.gitignore = true,
                b".ignore\0" => found.ignore = true,
                _ => {}
            }
            if name[0] == b'.' && self.dots == DotFiles::Hidden {
                continue;
            }
            let start = self.names.len();
            self.names.extend_from_slice(name);
            self.entries.push(NameSpan {
                start,
                end: self.names.len(),
                kind: entry.file_type(),
            });
        }
        let names = &self.names;
        self.entries
            .sort_unstable_by(|a, b| names[a.start..a.end].cmp(&names[b.start..b.end]));
        Ok(found)
    }
}

/// Returns which ignore files a directory has, without reading all its names.
pub(super) fn ignore_files(dir: BorrowedFd<'_>) -> IgnoreFileNames {
    let has = |name: &str| rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    IgnoreFileNames {
        ignore: has(".ignore"),
        gitignore: has(".gitignore"),
        git: has(".git"),
    }
}
