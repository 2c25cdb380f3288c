//! Part of the local backend: writing, moving and removing files. All changes go through
//! `self.disk`, which tests let fail; a comparison and the rename that depends on it happen under
//! the folder's lock (`lock_dir`), across processes.
//!
//! Effects: the clock, randomness, the local disk (writes).

use super::LocalInner;
use super::attributes::FileAttributes;
use super::error;
use super::root::{self, MAX_LINKS, Root};
use crate::{Expect, VPath, Version, VfsError, rebase};
use rustix::fs::{Access, AtFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_store::Disk;

/// Deeper directories are not removed, because each level holds a descriptor open.
const MAX_REMOVE_DEPTH: usize = 256;

/// A name in the directory that really holds it.
#[derive(Debug)]
pub(super) struct EntryLocation {
    pub(super) dir: File,
    pub(super) name: OsString,
}

impl EntryLocation {
    /// Returns the metadata without following links, or `None` if nothing is there.
    pub(super) fn stat(&self) -> rustix::io::Result<Option<rustix::fs::Stat>> {
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn name(&self) -> &Path {
        Path::new(&self.name)
    }
}

/// The treatment of missing parent directories.
#[derive(Clone, Copy)]
pub(super) enum Parents<'a> {
    Required,
    Create(&'a dyn Disk),
}

impl LocalInner {
    /// Creates a temporary file beside the file at `path`, which is then written and replaces it, if
    /// the current state is as expected.
    pub(super) fn create_temp(&self, path: &VPath, expect: &Expect) -> Result<TempFile, VfsError> {
        let parents = match expect {
            Expect::Any | Expect::Absent => Parents::Create(&*self.disk),
            Expect::Version(_) => Parents::Required,
        };
        let place = match (self.root.locate_content(path, parents), expect) {
            // The file was removed with its directory.
            (Err(VfsError::NotFound(_)), Expect::Version(_)) => {
                return Err(VfsError::Changed(path.clone()));
            }
            (place, _) => place?,
        };
        let before = place.stat().map_err(|e| error::at(path, e))?;
        check_expectation(path, before.as_ref(), expect)?;
        check_writable(path, &place, before.as_ref())?;
        let replaced = before.map(|stat| FileAttributes::of(&place, &stat));
        TempFile::create(self, place, replaced).map_err(|e| error::at(path, e))
    }

    pub(super) fn remove(&self, path: &VPath) -> Result<(), VfsError> {
        let failed = |e: io::Error| error::at(path, e);
        let place = self.root.locate_entry(path, Parents::Required)?;
        let removed = {
            let _held = self.lock_dir(path, &place)?;
            self.disk
                .remove(place.dir.as_fd(), place.name(), AtFlags::empty())
        };
        match removed {
            Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
                self.remove_dir(place.dir.as_fd(), &place.name, 0)
            }
            done => done,
        }
        .map_err(failed)?;
        self.disk.sync(&place.dir).map_err(failed)
    }

    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
        if depth == MAX_REMOVE_DEPTH {
            return Err(io::Error::other(format!(
                "nested more than {MAX_REMOVE_DEPTH} directories deep"
            )));
        }
        let inner = root::subdirectory(dir, name)?;
        for name in names(&inner)? {
            match self
                .disk
                .remove(inner.as_fd(), Path::new(&name), AtFlags::empty())
            {
                Err(e) if e.kind() == io::ErrorKind::IsADirectory => {
                    self.remove_dir(inner.as_fd(), &name, depth + 1)?
                }
                done => done?,
            }
        }
        self.disk.remove(dir, Path::new(name), AtFlags::REMOVEDIR)
    }

    pub(super) fn rename(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        let source = self.root.locate_entry(from, Parents::Required)?;
        source
            .stat()
            .map_err(|e| error::at(from, e))?
            .ok_or_else(|| VfsError::NotFound(from.clone()))?;
        if from == to {
            return Err(VfsError::Exists(to.clone()));
        }
        if from.contains(to) {
            return Err(rebase::into_itself(from));
        }
        let target = self.root.locate_entry(to, Parents::Create(&*self.disk))?;
        let from_dir = source.dir.as_fd();
        let to_dir = target.dir.as_fd();
        let held = self.lock_dir(from, &source)?;
        match self.disk.rename(
            from_dir,
            source.name(),
            to_dir,
            target.name(),
            RenameFlags::NOREPLACE,
        ) {
            // Both ends are beneath the root, so this is a mount point and not an escape.
            Err(source) if Errno::from_io_error(&source) == Some(Errno::XDEV) => {
                return Err(VfsError::Io {
                    path: to.clone(),
                    source,
                });
            }
            moved => moved.map_err(|e| error::at(to, e))?,
        }
        drop(held);
        self.disk
            .sync(&target.dir)
            .and_then(|()| self.disk.sync(&source.dir))
            .map_err(|e| error::at(to, e))
    }

    pub(super) fn mkdir(&self, path: &VPath) -> Result<(), VfsError> {
        self.root
            .directory(Path::new(path.as_str()), path, Parents::Create(&*self.disk))
            .map(drop)
    }
}

impl Root {
    /// Opens the directory `directory` on the way to `path`.
    pub(super) fn directory(
        &self,
        directory: &Path,
        path: &VPath,
        parents: Parents<'_>,
    ) -> Result<File, VfsError> {
        match (self.open_dir(directory), parents) {
            (Ok(dir), _) => Ok(dir),
            (Err(Errno::NOENT), Parents::Create(disk)) => self
                .make_dirs(directory, disk)
                .map_err(|e| error::at(path, e)),
            (Err(e), _) => Err(error::at(path, e)),
        }
    }

    fn make_dirs(&self, directory: &Path, disk: &dyn Disk) -> std::io::Result<File> {
        let mut here = self.open_dir(Path::new(""))?;
        let mut path = PathBuf::new();
        for part in directory.components() {
            path.push(part);
            here = match self.open_dir(&path) {
                Err(Errno::NOENT) => {
                    match disk.create_dir(here.as_fd(), Path::new(part.as_os_str()), 0o777) {
                        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                        made => made?,
                    }
                    disk.sync(&here)?;
                    self.open_dir(&path)?
                }
                found => found?,
            };
        }
        Ok(here)
    }

    /// Locates a name. A link at its end is not followed.
    pub(super) fn locate_entry(
        &self,
        path: &VPath,
        parents: Parents<'_>,
    ) -> Result<EntryLocation, VfsError> {
        let text = Path::new(path.as_str());
        let (Some(parent), Some(name)) = (text.parent(), text.file_name()) else {
            return Err(VfsError::Denied(path.clone()));
        };
        Ok(EntryLocation {
            dir: self.directory(parent, path, parents)?,
            name: name.to_owned(),
        })
    }

    /// Locates the content of `path`, existing or not, following links at its end.
    pub(super) fn locate_content(
        &self,
        path: &VPath,
        parents: Parents<'_>,
    ) -> Result<EntryLocation, VfsError> {
        let mut text = PathBuf::from(path.as_str());
        for _ in 0..=MAX_LINKS {
            let (Some(parent), Some(name)) = (text.parent(), text.file_name()) else {
                return Err(VfsError::IsDirectory(path.clone()));
            };
            let dir = self.directory(parent, path, parents)?;
            match rustix::fs::readlinkat(&dir, name, Vec::new()) {
                Ok(target) if target.as_bytes().first() == Some(&b'/') => {
                    return Err(VfsError::Escapes(path.clone()));
                }
                Ok(target) => text = parent.join(OsStr::from_bytes(target.as_bytes())),
                Err(Errno::INVAL | Errno::NOENT) => {
                    return Ok(EntryLocation {
                        dir,
                        name: name.to_owned(),
                    });
                }
                Err(e) => return Err(error::at(path, e)),
            }
        }
        Err(error::at(path, Errno::LOOP))
    }
}

/// Checks whether the current state allows the write.
fn check_expectation(
    path: &VPath,
    found: Option<&rustix::fs::Stat>,
    expect: &Expect,
) -> Result<(), VfsError> {
    match (expect, found) {
        (Expect::Any | Expect::Absent, None) => Ok(()),
        (Expect::Any, Some(stat)) => root::require_file(path, stat),
        (Expect::Absent, Some(_)) => Err(VfsError::Exists(path.clone())),
        (Expect::Version(version), Some(stat)) if root::version(stat) == *version => {
            root::require_file(path, stat)
        }
        (Expect::Version(_), Some(_) | None) => Err(VfsError::Changed(path.clone())),
    }
}

/// Checks whether this user may write the file. Replacing it needs only rights to its directory, and
/// would make a file of another user one's own.
fn check_writable(
    path: &VPath,
    place: &EntryLocation,
    found: Option<&rustix::fs::Stat>,
) -> Result<(), VfsError> {
    if found.is_none() {
        return Ok(());
    }
    let dir = place.dir.as_fd();
    match rustix::fs::accessat(dir, place.name(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Err(VfsError::ReadOnly(path.clone())),
        // Other problems are those of the write itself.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the names in an open directory, without `.` and `..`.
pub(super) fn names(dir: &File) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// A temporary file, removed when dropped unless it was published.
#[derive(Debug)]
pub(super) struct TempFile {
    disk: Arc<dyn Disk>,
    /// The final location.
    place: EntryLocation,
    name: PathBuf,
    file: File,
    /// The attributes of the file that it replaces.
    replaced: Option<FileAttributes>,
    on_drop: DropAction,
}

#[derive(Debug)]
enum DropAction {
    Remove,
    Keep,
}

impl TempFile {
    fn create(
        local: &LocalInner,
        place: EntryLocation,
        replaced: Option<FileAttributes>,
    ) -> io::Result<Self> {
        // Not derived from the file's own name, which may have the maximum length; and random, so
        // that a file left by a killed process does not collide.
        let random = RandomState::new().build_hasher().finish();
        let name = PathBuf::from(format!(".stead-{random:016x}.tmp"));
        // Until it replaces a file, nobody may read what only that file's readers may.
        let mode = replaced.as_ref().map_or(0o666, |_| 0o600);
        let file = local.disk.create(place.dir.as_fd(), &name, mode)?;
        Ok(Self {
            disk: local.disk.clone(),
            place,
            name,
            file,
            replaced,
            on_drop: DropAction::Remove,
        })
    }

    pub(super) fn push(&self, data: &[u8]) -> io::Result<()> {
        self.disk.write_all(&self.file, data)
    }

    /// Moves the file into place if the current state is as expected.
    pub(super) fn publish(
        mut self,
        local: &LocalInner,
        path: &VPath,
        expect: &Expect,
    ) -> Result<Version, VfsError> {
        let failed = |e: io::Error| error::at(path, e);
        if let Some(replaced) = &self.replaced {
            replaced.apply(&*self.disk, &self.file).map_err(failed)?;
        }
        self.disk.sync(&self.file).map_err(failed)?;
        {
            let _held = local.lock_dir(path, &self.place)?;
            if let Expect::Version(_) = expect {
                check_expectation(
                    path,
                    self.place.stat().map_err(|e| failed(e.into()))?.as_ref(),
                    expect,
                )?;
            }
            let flags = match expect {
                Expect::Absent => RenameFlags::NOREPLACE,
                Expect::Any | Expect::Version(_) => RenameFlags::empty(),
            };
            let dir = self.place.dir.as_fd();
            let name = self.place.name();
            self.disk
                .rename(dir, &self.name, dir, name, flags)
                .map_err(failed)?;
            self.on_drop = DropAction::Keep;
        }
        self.disk.sync(&self.place.dir).map_err(failed)?;
        let written = rustix::fs::fstat(&self.file).map_err(|e| failed(e.into()))?;
        Ok(root::version(&written))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        match self.on_drop {
            DropAction::Keep => {}
            // The original failure is reported, not this one.
            DropAction::Remove => drop(self.disk.remove(
                self.place.dir.as_fd(),
                &self.name,
                AtFlags::empty(),
            )),
        }
    }
}

/// Returns whether a name is a temporary name of a write. Files that a crash leaves under such
/// names are never listed, and are removed with their directory.
pub(super) fn is_temporary(name: &std::ffi::OsStr) -> bool {
    let middle = name
        .to_str()
        .and_then(|name| name.strip_prefix(".stead-")?.strip_suffix(".tmp"));
    middle.is_some_and(|random| {
        random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
