//! The only interface for changing the local disk.
//!
//! The default methods perform the real operations. Tests pass an implementation that fails, tears
//! or kills at the Nth operation, so no other code needs to know about injected faults.
//!
//! Effects: the local disk (writes).

use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use std::ffi::CStr;
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// The operations that change a disk. Paths are relative to an open directory.
pub trait Disk: Debug + Send + Sync {
    /// Creates a file that must not exist yet, opened for appending.
    fn create(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::CREATE
            | OFlags::EXCL
            | OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CLOEXEC
            | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Writes all of `data` at the file's position.
    fn write_all(&self, mut file: &File, data: &[u8]) -> io::Result<()> {
        file.write_all(data)
    }

    /// Flushes a file's data, or a directory's entries, to stable storage.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// Sets a file's permission bits, independent of the umask.
    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
    }

    /// Sets a file's owner and group.
    fn set_owner(&self, file: &File, owner: u32, group: u32) -> io::Result<()> {
        let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
        Ok(rustix::fs::fchown(file, Some(owner), Some(group))?)
    }

    /// Sets an extended attribute of a file.
    fn set_attribute(&self, file: &File, name: &CStr, value: &[u8]) -> io::Result<()> {
        let flags = XattrFlags::empty();
        Ok(rustix::fs::fsetxattr(file, name, value, flags)?)
    }

    /// Truncates a file to `len` bytes.
    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    /// Renames a file, replacing the target unless `flags` forbid it.
    fn rename(
        &self,
        from_dir: BorrowedFd<'_>,
        from: &Path,
        to_dir: BorrowedFd<'_>,
        to: &Path,
        flags: RenameFlags,
    ) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(
            from_dir, from, to_dir, to, flags,
        )?)
    }

    /// Removes a file, or an empty directory with [`AtFlags::REMOVEDIR`].
    fn remove(&self, dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(dir, name, flags)?)
    }

    /// Creates a directory.
    fn create_dir(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))?)
    }

    /// Replaces the file `name` with `data`. A reader sees the old file or the new one, never a
    /// part. Sync the directory to make it durable.
    fn replace(&self, dir: BorrowedFd<'_>, name: &Path, data: &[u8], mode: u32) -> io::Result<()> {
        let temporary = name.with_extension(format!("tmp-{}-{:x}", std::process::id(), unique()));
        let written = self.create(dir, &temporary, mode).and_then(|file| {
            self.write_all(&file, data)?;
            self.rename(dir, &temporary, dir, name, RenameFlags::empty())
        });
        if written.is_err() {
            let _ = self.remove(dir, &temporary, AtFlags::empty());
        }
        written
    }
}

/// The real disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

impl Disk for OsDisk {}

/// Returns a number that distinguishes the temporary files of one process.
fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

/// Opens a directory for use with [`Disk`].
pub fn open_dir(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}
