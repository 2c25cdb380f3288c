//! Lookups below the root. Where something is written is located in `write.rs`.
//!
//! The kernel enforces containment: every lookup starts at the open root directory and uses
//! `openat2` with `RESOLVE_BENEATH`, so that no link leads out, not even one swapped in at the last
//! moment. What was opened is then used by its descriptor, not by its name.
//!
//! Effects: the local disk (reads).

use super::error;
use crate::{FileKind, Stat, VPath, Version, VfsError};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The number of attempts when the kernel asks for a retry because something moved during a lookup.
const LOOKUP_TRIES: usize = 256;
/// The number of links followed in one path, as in the kernel.
pub(super) const MAX_LINKS: usize = 40;

pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// Flags for opening what may be a FIFO or a terminal, without waiting for it or taking it over.
pub(super) const READING: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const LOOKING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The open root.
#[derive(Debug)]
pub(super) struct Root(pub(super) File);

impl Root {
    /// Opens `path` from the root. The result is always beneath the root.
    fn beneath(
        &self,
        path: &Path,
        flags: OFlags,
        further: ResolveFlags,
    ) -> rustix::io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | further;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < LOOKUP_TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// Returns the metadata of `path` with links followed, without opening it.
    pub(super) fn stat(&self, path: &Path) -> rustix::io::Result<rustix::fs::Stat> {
        rustix::fs::fstat(self.beneath(path, LOOKING, ResolveFlags::empty())?)
    }

    /// Opens a regular file for reading and returns it with its metadata.
    pub(super) fn open_file(&self, path: &VPath) -> Result<(File, rustix::fs::Stat), VfsError> {
        let opened = self.beneath(Path::new(path.as_str()), READING, ResolveFlags::empty());
        let file = File::from(opened.map_err(|e| error::at(path, e))?);
        let stat = rustix::fs::fstat(&file).map_err(|e| error::at(path, e))?;
        require_file(path, &stat)?;
        Ok((file, stat))
    }

    /// Opens a directory, following links.
    pub(super) fn open_dir(&self, path: &Path) -> rustix::io::Result<File> {
        self.beneath(path, DIRECTORY, ResolveFlags::empty())
            .map(File::from)
    }

    /// Returns `path` without links. Names that do not exist are kept.
    pub(super) fn resolve(&self, path: &VPath) -> Result<VPath, VfsError> {
        match self.beneath(Path::new(path.as_str()), LOOKING, ResolveFlags::NO_SYMLINKS) {
            // If a name is missing, there was no dangling link before it: the kernel would have
            // stopped there.
            Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(path.clone()),
            Err(Errno::LOOP) => self.resolve_links(path),
            Err(e) => Err(error::at(path, e)),
        }
    }

    fn resolve_links(&self, path: &VPath) -> Result<VPath, VfsError> {
        let escapes = || VfsError::Escapes(path.clone());
        let failed = |e: Errno| error::at(path, e);
        let mut waiting: Vec<OsString> = path.parts().rev().map(OsString::from).collect();
        let mut walked: Vec<(OsString, OwnedFd)> = Vec::new();
        let mut links = 0;
        while let Some(part) = waiting.pop() {
            if part == ".." {
                walked.pop().ok_or_else(escapes)?;
                continue;
            }
            let here = walked.last().map_or(self.0.as_fd(), |(_, dir)| dir.as_fd());
            let next =
                match rustix::fs::openat(here, &part, LOOKING | OFlags::NOFOLLOW, Mode::empty()) {
                    Ok(next) => next,
                    Err(Errno::NOENT | Errno::NOTDIR) => {
                        waiting.push(part);
                        break;
                    }
                    Err(e) => return Err(failed(e)),
                };
            if FileType::from_raw_mode(rustix::fs::fstat(&next).map_err(failed)?.st_mode)
                != FileType::Symlink
            {
                walked.push((part, next));
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(failed(Errno::LOOP));
            }
            let target = rustix::fs::readlinkat(&next, "", Vec::new()).map_err(failed)?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            for component in target.components().rev() {
                match component {
                    Component::Normal(name) => waiting.push(name.to_owned()),
                    Component::ParentDir => waiting.push("..".into()),
                    Component::CurDir => {}
                    Component::RootDir | Component::Prefix(_) => return Err(escapes()),
                }
            }
        }
        let parts: Vec<_> = walked
            .iter()
            .map(|(name, _)| name)
            .chain(waiting.iter().rev())
            .collect();
        let text: Option<Vec<&str>> = parts.into_iter().map(|part| part.to_str()).collect();
        VPath::parse(&text.ok_or_else(|| failed(Errno::ILSEQ))?.join("/")).map_err(VfsError::from)
    }
}

/// Opens a directory entry that must be a directory itself, not a link to one.
pub(super) fn subdirectory(dir: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<File> {
    rustix::fs::openat(dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()).map(File::from)
}

pub(super) fn kind(stat: &rustix::fs::Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    }
}

pub(super) fn require_file(path: &VPath, stat: &rustix::fs::Stat) -> Result<(), VfsError> {
    match kind(stat) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(VfsError::IsDirectory(path.clone())),
        FileKind::Other => Err(VfsError::Special(path.clone())),
    }
}

/// Returns a version that changes with every write: ours create a new inode, and in-place writes of
/// others change the times, which cannot all be set back. A change of mode or owner changes it too.
pub(super) fn version(stat: &rustix::fs::Stat) -> Version {
    let text = format!(
        "{:x}-{:x}.{:x}-{:x}-{:x}.{:x}",
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ino,
        stat.st_ctime,
        stat.st_ctime_nsec
    );
    Version(text.into())
}

pub(super) fn modified_ms(stat: &rustix::fs::Stat) -> i64 {
    stat.st_mtime * 1000 + (stat.st_mtime_nsec / 1_000_000) as i64
}

pub(super) fn size(stat: &rustix::fs::Stat) -> u64 {
    match kind(stat) {
        FileKind::File => u64::try_from(stat.st_size).unwrap_or(0),
        FileKind::Directory | FileKind::Other => 0,
    }
}

pub(super) fn to_stat(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        kind: kind(stat),
        size: size(stat),
        modified_ms: modified_ms(stat),
        version: version(stat),
        mode: Some(stat.st_mode & 0o7777),
        hash: None,
    }
}
