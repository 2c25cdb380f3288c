//! A line log as one text file.
//!
//! Effects: the local disk (writes).

use super::{LineLog, RewriteLines};
use crate::sessions::make_dirs;
use crate::{Disk, StoreError, open_dir};
use futures_util::future::BoxFuture;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_MODE: u32 = 0o600;

/// A line log in a file.
///
/// Appending takes a shared lock and rewriting an exclusive one, so no line is written to a file
/// that is being replaced.
#[derive(Debug)]
pub struct FileLineLog {
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

impl FileLineLog {
    /// Returns the log in the file at `path`, which the first append creates.
    pub fn new(path: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self { path, disk }
    }

    fn append_blocking(&self, line: &str) -> io::Result<()> {
        let file = self.open_locked(FlockOperation::LockShared)?;
        // An incomplete last line must not merge with this one.
        let start = if ends_in_a_line(&file)? { "" } else { "\n" };
        self.disk
            .write_all(&file, format!("{start}{line}\n").as_bytes())
    }

    fn rewrite_blocking(&self, rewrite: RewriteLines) -> io::Result<()> {
        let file = self.open_locked(FlockOperation::LockExclusive)?;
        let text: String = rewrite(lines_of(&file)?)
            .into_iter()
            .flat_map(|line| [line, "\n".to_owned()])
            .collect();
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let name = Path::new(self.path.file_name().unwrap_or_default());
        self.disk
            .replace(open_dir(folder)?.as_fd(), name, text.as_bytes(), FILE_MODE)
    }

    /// Opens and locks the file that is at the path now.
    fn open_locked(&self, lock: FlockOperation) -> io::Result<File> {
        loop {
            let file = self.open()?;
            rustix::fs::flock(&file, lock)?;
            // The file may have been replaced while this waited for the lock.
            if std::fs::metadata(&self.path).is_ok_and(|now| is_same_file(&file, &now)) {
                return Ok(file);
            }
        }
    }

    fn open(&self) -> io::Result<File> {
        match self.open_existing() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        make_dirs(&*self.disk, self.path.parent().unwrap_or(Path::new(".")))?;
        match self.disk.create(CWD, &self.path, FILE_MODE) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => self.open_existing(),
            created => created,
        }
    }

    fn open_existing(&self) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file: File = rustix::fs::openat(CWD, &self.path, flags, Mode::empty())?.into();
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        Ok(file)
    }
}

fn is_same_file(file: &File, now: &std::fs::Metadata) -> bool {
    file.metadata()
        .is_ok_and(|ours| (ours.dev(), ours.ino()) == (now.dev(), now.ino()))
}

fn ends_in_a_line(file: &File) -> io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}

fn lines_of(mut file: &File) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect())
}

impl LineLog for FileLineLog {
    fn append(&self, lines: Vec<String>) -> BoxFuture<'_, Result<(), StoreError>> {
        // Handing one small write to another thread takes longer than the write.
        Box::pin(async move {
            self.append_blocking(&lines.join("\n"))
                .map_err(|cause| StoreError::io(&self.path, cause))
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let read = self.open_existing().and_then(|file| lines_of(&file));
            match read {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
                read => read.map_err(|cause| StoreError::io(&self.path, cause)),
            }
        })
    }

    fn rewrite(&self, rewrite: RewriteLines) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.rewrite_blocking(rewrite)
                .map_err(|cause| StoreError::io(&self.path, cause))
        })
    }

    fn locate(&self) -> String {
        self.path.display().to_string()
    }
}
