//! The place for tests of disk faults on the local backend: old content stays, and the operation
//! can be retried.

use super::{World, p};
use rustix::fs::{AtFlags, RenameFlags};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead_store::{Disk, OsDisk};
use stead_vfs::{Expect, LocalVfs, Vfs, VfsError};

#[derive(Debug)]
struct FailsAt {
    left: AtomicUsize,
    errno: i32,
}

impl FailsAt {
    fn count(&self) -> io::Result<()> {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 0 {
            Err(io::Error::from_raw_os_error(self.errno))
        } else {
            Ok(())
        }
    }
}

impl Disk for FailsAt {
    fn create(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<File> {
        self.count()?;
        OsDisk.create(dir, name, mode)
    }
    fn write_all(&self, file: &File, data: &[u8]) -> io::Result<()> {
        self.count()
            .inspect_err(|_| drop(OsDisk.write_all(file, &data[..data.len() / 2])))?;
        OsDisk.write_all(file, data)
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.count()?;
        OsDisk.sync(file)
    }
    fn set_mode(&self, file: &File, mode: u32) -> io::Result<()> {
        self.count()?;
        OsDisk.set_mode(file, mode)
    }
    fn rename(
        &self,
        a: BorrowedFd<'_>,
        from: &Path,
        b: BorrowedFd<'_>,
        to: &Path,
        flags: RenameFlags,
    ) -> io::Result<()> {
        self.count()?;
        OsDisk.rename(a, from, b, to, flags)
    }
    fn remove(&self, dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> io::Result<()> {
        self.count()?;
        OsDisk.remove(dir, name, flags)
    }
    fn create_dir(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<()> {
        self.count()?;
        OsDisk.create_dir(dir, name, mode)
    }
}

/// Replacing a file takes six operations: create, write, mode, sync, rename, sync of the directory.
const OPERATIONS_OF_A_WRITE: usize = 6;

#[tokio::test]
async fn a_failed_write_leaves_the_old_content_and_no_trace() {
    for nth in 0..=OPERATIONS_OF_A_WRITE {
        let world = World::new();
        world.put("file", "old");
        let disk = FailsAt {
            left: AtomicUsize::new(nth),
            errno: 28,
        };
        let vfs = LocalVfs::open(&world.root(), Arc::new(disk)).unwrap();
        let written = vfs
            .write(&p("file"), "the new content".into(), Expect::Any)
            .await;
        let renamed = nth + 1 >= OPERATIONS_OF_A_WRITE;
        assert_eq!(
            world.content("file"),
            if renamed { "the new content" } else { "old" },
            "operation {nth}"
        );
        assert_eq!(world.names(), ["file"], "operation {nth}");
        match written {
            Ok(_) => assert_eq!(nth, OPERATIONS_OF_A_WRITE),
            Err(error) => assert!(
                matches!(error, VfsError::NoSpace(_)),
                "operation {nth}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_creation_that_fails_anywhere_can_simply_be_tried_again() {
    for nth in 0..12 {
        let world = World::new();
        let vfs = LocalVfs::open(
            &world.root(),
            Arc::new(FailsAt {
                left: AtomicUsize::new(nth),
                errno: 5,
            }),
        )
        .unwrap();
        if vfs
            .write(&p("a/b/file"), "new".into(), Expect::Absent)
            .await
            .is_err()
            && !world.root().join("a/b/file").exists()
        {
            world
                .vfs
                .write(&p("a/b/file"), "new".into(), Expect::Absent)
                .await
                .unwrap();
        }
        assert_eq!(world.names(), ["a", "a/b", "a/b/file"], "operation {nth}");
        assert_eq!(world.content("a/b/file"), "new");
    }
}

#[tokio::test]
async fn an_errno_becomes_the_error_it_means() {
    for (errno, expected) in [
        (28, "no space"),
        (122, "no space"),
        (30, "permission denied"),
        (13, "permission denied"),
        (1, "permission denied"),
        (5, "Input/output"),
    ] {
        let world = World::new();
        let vfs = LocalVfs::open(
            &world.root(),
            Arc::new(FailsAt {
                left: AtomicUsize::new(1),
                errno,
            }),
        )
        .unwrap();
        let error = vfs
            .write(&p("file"), "x".into(), Expect::Any)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && error.contains("file"),
            "{errno}: {error}"
        );
    }
}

#[tokio::test]
async fn a_failed_removal_of_a_tree_can_be_finished() {
    for nth in 0..8 {
        let world = World::new();
        world.put("tree/a/x", "x");
        world.put("tree/b", "b");
        let vfs = LocalVfs::open(
            &world.root(),
            Arc::new(FailsAt {
                left: AtomicUsize::new(nth),
                errno: 5,
            }),
        )
        .unwrap();
        if vfs.remove(&p("tree")).await.is_err() && world.root().join("tree").exists() {
            world.vfs.remove(&p("tree")).await.unwrap();
        }
        assert_eq!(world.names(), Vec::<String>::new(), "operation {nth}");
    }
}
