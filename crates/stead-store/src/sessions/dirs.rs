//! Creating folders for sessions and logs, and reading modification times.
//!
//! Effects: the local disk (writes).

use crate::{Disk, open_dir};
use rustix::fs::CWD;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the modification time in milliseconds since 1970.
pub(crate) fn modified_ms(meta: &std::fs::Metadata) -> i64 {
    use std::os::unix::fs::MetadataExt;
    meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000
}

/// Creates a directory and its parents. Returns those that did not exist.
pub(crate) fn make_dirs(disk: &dyn Disk, path: &Path) -> io::Result<Vec<PathBuf>> {
    match disk.create_dir(CWD, path, 0o700) {
        Ok(()) => Ok(vec![path.to_owned()]),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut made = make_dirs(disk, path.parent().ok_or(error)?)?;
            match disk.create_dir(CWD, path, 0o700) {
                Ok(()) => made.push(path.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            Ok(made)
        }
        Err(error) => Err(error),
    }
}

/// Creates a directory that survives a power failure.
pub(super) fn make_durable_dir(disk: &dyn Disk, path: &Path) -> io::Result<File> {
    for made in make_dirs(disk, path)? {
        disk.sync(&open_dir(made.parent().unwrap_or(Path::new("/")))?)?;
    }
    open_dir(path)
}
