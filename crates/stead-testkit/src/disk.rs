//! A disk that fails, tears or kills at the Nth operation.
//!
//! Run the code once with [`FaultDisk::counting`] to learn how many operations it makes, then once
//! for every N up to that count: what holds after each of them holds after a crash anywhere.
//!
//! Effects: test support.

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use stead_store::{Disk, OsDisk};

/// The real disk with one planned fault. Operations are counted from 1.
#[derive(Debug)]
pub struct FaultDisk {
    plan: FaultPlan,
    done: Mutex<Vec<DiskOp>>,
}

#[derive(Debug, Clone, Copy)]
enum FaultPlan {
    None,
    FailAt(usize, Fault),
    FailFrom(usize, Fault),
    TearAt(usize),
    KillAt(usize, KillPoint),
}

/// The moment of the Nth operation at which the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillPoint {
    /// Before the operation.
    Before,
    /// In the middle of a write, after half of the data; before any other operation.
    Torn,
    /// After the operation.
    After,
}

impl KillPoint {
    /// All kill points.
    pub const ALL: [Self; 3] = [Self::Before, Self::Torn, Self::After];
}

/// The error of a failing operation.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// An error of this kind.
    Kind(io::ErrorKind),
    /// The operating system's error.
    Os(Errno),
}

impl From<io::ErrorKind> for Fault {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Kind(kind)
    }
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Self::Kind(kind) => kind.into(),
            Self::Os(errno) => errno.into(),
        }
    }
}

/// A requested operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskOp {
    /// The kind of operation.
    pub kind: DiskOpKind,
    /// The name of the file or directory; of a rename, the target.
    pub name: PathBuf,
}

/// The operations of [`Disk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskOpKind {
    /// A file is created.
    Create,
    /// Data is written.
    Write,
    /// Data or entries are flushed to stable storage.
    Sync,
    /// A file's permission bits are set.
    SetMode,
    /// A file is truncated.
    SetLen,
    /// Something is renamed.
    Rename,
    /// Something is removed.
    Remove,
    /// A directory is created.
    CreateDir,
}

/// What happens to the current operation.
enum OpFate {
    Do,
    Fail(io::Error),
    /// Half of the data is written, then this happens.
    Tear(TornWrite),
    DoAndDie,
}

enum TornWrite {
    Fail,
    Die,
}

impl FaultDisk {
    /// Creates a disk that only counts.
    pub fn counting() -> Self {
        Self::new(FaultPlan::None)
    }

    /// Creates a disk on which the `n`th operation fails without effect; the others succeed.
    pub fn fail_at(n: usize, fault: impl Into<Fault>) -> Self {
        Self::new(FaultPlan::FailAt(n, fault.into()))
    }

    /// Creates a disk on which the `n`th operation and all later ones fail without effect.
    pub fn fail_from(n: usize, fault: impl Into<Fault>) -> Self {
        Self::new(FaultPlan::FailFrom(n, fault.into()))
    }

    /// Creates a disk on which the `n`th operation writes half of its data and fails with `ENOSPC`;
    /// an operation that is not a write only fails.
    pub fn tear_at(n: usize) -> Self {
        Self::new(FaultPlan::TearAt(n))
    }

    /// Creates a disk that kills the process (`SIGKILL`) at the `n`th operation.
    pub fn kill_at(n: usize, point: KillPoint) -> Self {
        Self::new(FaultPlan::KillAt(n, point))
    }

    /// Returns the number of requested operations, including failed ones.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Returns the requested operations in order.
    pub fn ops(&self) -> Vec<DiskOp> {
        self.lock().clone()
    }

    /// Whether the planned operation was reached.
    pub fn fired(&self) -> bool {
        match self.plan {
            FaultPlan::None => false,
            FaultPlan::FailAt(n, _)
            | FaultPlan::FailFrom(n, _)
            | FaultPlan::TearAt(n)
            | FaultPlan::KillAt(n, _) => self.count() >= n,
        }
    }

    fn new(plan: FaultPlan) -> Self {
        Self {
            plan,
            done: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<DiskOp>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, kind: DiskOpKind, name: &Path) -> OpFate {
        let now = {
            let mut done = self.lock();
            done.push(DiskOp {
                kind,
                name: name.to_owned(),
            });
            done.len()
        };
        match self.plan {
            FaultPlan::FailAt(n, fault) if now == n => OpFate::Fail(fault.error()),
            FaultPlan::FailFrom(n, fault) if now >= n => OpFate::Fail(fault.error()),
            FaultPlan::TearAt(n) if now == n => OpFate::Tear(TornWrite::Fail),
            FaultPlan::KillAt(n, KillPoint::Before) if now == n => die(),
            FaultPlan::KillAt(n, KillPoint::Torn) if now == n => OpFate::Tear(TornWrite::Die),
            FaultPlan::KillAt(n, KillPoint::After) if now == n => OpFate::DoAndDie,
            FaultPlan::None
            | FaultPlan::FailAt(..)
            | FaultPlan::FailFrom(..)
            | FaultPlan::TearAt(_)
            | FaultPlan::KillAt(..) => OpFate::Do,
        }
    }

    /// Performs an operation that cannot be torn.
    fn whole<T>(
        &self,
        kind: DiskOpKind,
        name: &Path,
        act: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        match self.fate(kind, name) {
            OpFate::Do => act(),
            OpFate::Fail(error) => Err(error),
            OpFate::Tear(TornWrite::Fail) => Err(Errno::NOSPC.into()),
            OpFate::Tear(TornWrite::Die) => die(),
            OpFate::DoAndDie => {
                let _ = act();
                die()
            }
        }
    }
}

/// Sends `SIGKILL` to this process: no destructor runs, no buffer is flushed.
fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    loop {
        std::thread::park();
    }
}

/// Returns the name of an open file, for messages.
fn name_of(file: &File) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = std::fs::read_link(link).unwrap_or_default();
    path.file_name()
        .map(OsStr::to_owned)
        .unwrap_or_default()
        .into()
}

impl Disk for FaultDisk {
    fn create(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<File> {
        self.whole(DiskOpKind::Create, name, || OsDisk.create(dir, name, mode))
    }

    fn write_all(&self, file: &File, data: &[u8]) -> io::Result<()> {
        let half = &data[..data.len() / 2];
        match self.fate(DiskOpKind::Write, &name_of(file)) {
            OpFate::Do => OsDisk.write_all(file, data),
            OpFate::Fail(error) => Err(error),
            OpFate::Tear(TornWrite::Fail) => {
                OsDisk.write_all(file, half).and(Err(Errno::NOSPC.into()))
            }
            OpFate::Tear(TornWrite::Die) => {
                let _ = OsDisk.write_all(file, half);
                die()
            }
            OpFate::DoAndDie => {
                let _ = OsDisk.write_all(file, data);
                die()
            }
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.whole(DiskOpKind::Sync, &name_of(file), || OsDisk.sync(file))
    }

    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        self.whole(DiskOpKind::SetMode, &name_of(file), || {
            OsDisk.set_mode(file, mode)
        })
    }

    fn set_len(&self, file: &File, len: u64) -> io::Result<()> {
        self.whole(DiskOpKind::SetLen, &name_of(file), || {
            OsDisk.set_len(file, len)
        })
    }

    fn rename(
        &self,
        from_dir: BorrowedFd<'_>,
        from: &Path,
        to_dir: BorrowedFd<'_>,
        to: &Path,
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.whole(DiskOpKind::Rename, to, || {
            OsDisk.rename(from_dir, from, to_dir, to, flags)
        })
    }

    fn remove(&self, dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> io::Result<()> {
        self.whole(DiskOpKind::Remove, name, || OsDisk.remove(dir, name, flags))
    }

    fn create_dir(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<()> {
        self.whole(DiskOpKind::CreateDir, name, || {
            OsDisk.create_dir(dir, name, mode)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use stead_store::open_dir;

    /// Replaces `a` by `new`: create, write, rename.
    fn replace(disk: &FaultDisk, dir: &Path) -> (io::Result<()>, String, usize) {
        std::fs::write(dir.join("a"), "old").unwrap();
        let open = open_dir(dir).unwrap();
        let result = disk.replace(open.as_fd(), Path::new("a"), b"new!", 0o600);
        let files = std::fs::read_dir(dir).unwrap().count();
        (
            result,
            std::fs::read_to_string(dir.join("a")).unwrap(),
            files,
        )
    }

    #[test]
    fn operations_are_counted_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultDisk::counting();
        let (result, text, files) = replace(&disk, dir.path());
        assert_eq!((result.is_ok(), text.as_str(), files), (true, "new!", 1));
        let kinds: Vec<DiskOpKind> = disk.ops().iter().map(|op| op.kind).collect();
        assert_eq!(
            kinds,
            [DiskOpKind::Create, DiskOpKind::Write, DiskOpKind::Rename]
        );
        assert_eq!(disk.ops()[2].name, Path::new("a"));
    }

    #[test]
    fn the_nth_operation_fails_once() {
        for n in 1..=3 {
            let dir = tempfile::tempdir().unwrap();
            let disk = FaultDisk::fail_at(n, Errno::IO);
            let (result, text, files) = replace(&disk, dir.path());
            assert_eq!(
                result.unwrap_err().raw_os_error(),
                Some(Errno::IO.raw_os_error())
            );
            assert_eq!(
                (text.as_str(), files, disk.fired()),
                ("old", 1, true),
                "fault at {n}"
            );
        }
        let beyond = FaultDisk::fail_at(4, io::ErrorKind::Other);
        assert!(
            replace(&beyond, tempfile::tempdir().unwrap().path())
                .0
                .is_ok()
        );
        assert!(!beyond.fired());
    }

    #[test]
    fn a_disk_that_fails_from_n_on_cannot_even_clean_up() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultDisk::fail_from(2, io::ErrorKind::StorageFull);
        let (result, text, files) = replace(&disk, dir.path());
        assert_eq!(
            (result.unwrap_err().kind(), text.as_str(), files),
            (io::ErrorKind::StorageFull, "old", 2)
        );
    }

    #[test]
    fn a_torn_write_leaves_half_of_its_data() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("a")).unwrap();
        let disk = FaultDisk::tear_at(2);
        disk.write_all(&file, b"whole.").unwrap();
        assert_eq!(
            disk.write_all(&file, b"torn").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        disk.write_all(&file, b"!").unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("a")).unwrap(),
            "whole.to!"
        );
    }
}
