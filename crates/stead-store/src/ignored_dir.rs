//! A disk that makes git ignore a folder as soon as it is created.
//!
//! Effects: the local disk (writes).

use crate::{Disk, open_dir};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const IGNORE_FILE: &str = ".gitignore";

/// The real or another disk, on which a folder gets a `.gitignore` when it or its `agents/` is
/// created. A file that is there is kept, and one that a person removed later stays away.
#[derive(Debug)]
pub struct IgnoredDir {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The text of the `.gitignore`.
    text: &'static str,
}

impl IgnoredDir {
    /// Returns `disk`, on which the folder `dir` is ignored by git as `text` says.
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf, text: &'static str) -> Self {
        Self { disk, dir, text }
    }

    /// Writes the file into the folder if `made` is the folder or its `agents/`.
    fn ignore(&self, made: &File) -> io::Result<()> {
        let Ok(dir) = open_dir(&self.dir) else {
            return Ok(());
        };
        let is_made = |other: &File| -> io::Result<bool> {
            let (one, other) = (made.metadata()?, other.metadata()?);
            Ok(one.dev() == other.dev() && one.ino() == other.ino())
        };
        let agents = open_dir(&self.dir.join("agents"));
        if !is_made(&dir)? && !agents.is_ok_and(|agents| is_made(&agents).unwrap_or(false)) {
            return Ok(());
        }
        if rustix::fs::statat(&dir, IGNORE_FILE, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(());
        }
        let name = Path::new(IGNORE_FILE);
        self.disk
            .replace(dir.as_fd(), name, self.text.as_bytes(), 0o644)?;
        self.disk.sync(&dir)
    }
}

impl Disk for IgnoredDir {
    fn create(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<File> {
        self.disk.create(dir, name, mode)
    }

    fn write_all(&self, file: &File, data: &[u8]) -> io::Result<()> {
        self.disk.write_all(file, data)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.disk.sync(file)
    }

    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        self.disk.set_mode(file, mode)
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.disk.set_len(file, len)
    }

    fn rename(
        &self,
        from_dir: BorrowedFd<'_>,
        from: &Path,
        to_dir: BorrowedFd<'_>,
        to: &Path,
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.disk.rename(from_dir, from, to_dir, to, flags)
    }

    fn remove(&self, dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> io::Result<()> {
        self.disk.remove(dir, name, flags)
    }

    fn create_dir(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<()> {
        self.disk.create_dir(dir, name, mode)?;
        let is_candidate = name.file_name() == self.dir.file_name()
            || name.file_name().is_some_and(|name| name == "agents");
        if !is_candidate {
            return Ok(());
        }
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let made = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        self.ignore(&made.into())
    }

    fn replace(&self, dir: BorrowedFd<'_>, name: &Path, data: &[u8], mode: u32) -> io::Result<()> {
        self.disk.replace(dir, name, data, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OsDisk;
    use crate::sessions::make_dirs;

    #[test]
    fn a_folder_is_ignored_from_its_creation_on_and_what_a_person_did_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join(".stead");
        let ignored = home.join(IGNORE_FILE);
        let disk = IgnoredDir::new(Arc::new(OsDisk), home.clone(), "*\n");
        let text = || std::fs::read_to_string(&ignored).ok();
        make_dirs(&disk, &temp.path().join("sub/.stead/agents")).unwrap();
        assert!(
            !temp.path().join("sub/.stead/.gitignore").exists(),
            "another folder"
        );
        make_dirs(&disk, &home.join("agents/main")).unwrap();
        assert_eq!(text().as_deref(), Some("*\n"));
        std::fs::remove_file(&ignored).unwrap();
        make_dirs(&disk, &home.join("agents/other")).unwrap();
        assert_eq!(text(), None, "a person removed it");
        std::fs::remove_dir_all(home.join("agents")).unwrap();
        make_dirs(&disk, &home.join("agents/main")).unwrap();
        assert_eq!(
            text().as_deref(),
            Some("*\n"),
            "a folder that a person made"
        );
        std::fs::write(&ignored, "agents\n").unwrap();
        std::fs::remove_dir_all(home.join("agents")).unwrap();
        make_dirs(&disk, &home.join("agents/main")).unwrap();
        assert_eq!(text().as_deref(), Some("agents\n"));
    }
}
