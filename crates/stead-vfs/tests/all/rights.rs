//! The place for tests of files and folders that this user may not read or write.

use super::p;
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use stead_store::{Disk, OsDisk};
use stead_vfs::{
    Bounds, Case, Expect, GlobQuery, GrepMode, GrepQuery, LocalVfs, Syntax, Vfs, VfsError,
};
use tokio_util::sync::CancellationToken;

/// A user without rights of its own.
const NOBODY: u32 = 65534;

/// Runs `test` in a folder that its user owns, as a user whom rights bind: the administrator becomes
/// another one, in this thread and those that it starts.
fn as_ordinary_user<T: Send>(dir: &Path, test: impl AsyncFnOnce() -> T + Send) -> T {
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    std::thread::scope(|scope| {
        let run = || {
            if is_root {
                let gid = rustix::fs::Gid::from_raw(NOBODY);
                let uid = rustix::fs::Uid::from_raw(NOBODY);
                set_thread_res_gid(gid, gid, gid).unwrap();
                set_thread_res_uid(uid, uid, uid).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(test())
        };
        scope.spawn(run).join().unwrap()
    })
}

#[test]
fn a_search_names_the_folders_that_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["open", "locked"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::fs::write(dir.path().join(name).join("a.txt"), "needle\n").unwrap();
    }
    let locked = dir.path().join("locked");
    std::fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
    let (globbed, found) = as_ordinary_user(dir.path(), async || {
        let vfs = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        let bounds = || Bounds::new(100, CancellationToken::new());
        let query = GlobQuery {
            pattern: "*.txt".to_owned(),
            root: p(""),
        };
        let globbed = vfs.search().glob(query, bounds()).await.unwrap();
        let query = GrepQuery {
            pattern: "needle".to_owned(),
            syntax: Syntax::Regex,
            case: Case::Sensitive,
            root: p(""),
            glob: None,
            file_type: None,
            mode: GrepMode::Files,
        };
        (globbed, vfs.search().grep(query, bounds()).await.unwrap())
    });
    std::fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    let failed = |parts: &[stead_vfs::UnsearchedPart]| -> Vec<String> {
        parts.iter().map(ToString::to_string).collect()
    };
    assert_eq!(globbed.paths, [p("open/a.txt")]);
    assert_eq!(found.files.len(), 1);
    for parts in [&globbed.failed, &found.failed] {
        assert_eq!(failed(parts), ["locked: permission denied"]);
    }
}

#[test]
fn a_file_that_the_user_may_not_write_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "theirs\n").unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let owner = std::fs::metadata(&file).unwrap().uid();
    let written = as_ordinary_user(dir.path(), async || {
        let vfs = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        vfs.write(&p("a.txt"), "mine".into(), Expect::Any).await
    });
    assert!(matches!(written, Err(VfsError::ReadOnly(_))), "{written:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs\n");
    assert_eq!(std::fs::metadata(&file).unwrap().uid(), owner);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_replaced_keeps_its_owner_attributes_and_bits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, "old").unwrap();
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let file = std::fs::File::open(&path).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    let has_attributes = rustix::fs::fsetxattr(&file, "user.note", b"kept", flags).is_ok();
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let vfs = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        vfs.write(&p("f"), "new".into(), Expect::Any).await.unwrap();
    });
    let after = std::fs::metadata(&path).unwrap();
    assert_ne!(after.ino(), before.ino(), "it is another file");
    assert_eq!(
        (after.uid(), after.gid(), after.mode()),
        (before.uid(), before.gid(), before.mode())
    );
    if has_attributes {
        let mut value = [0; 16];
        let file = std::fs::File::open(&path).unwrap();
        let len = rustix::fs::fgetxattr(&file, "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..len], b"kept");
    }
}

/// Notes the modes with which files are created.
#[derive(Debug, Default)]
struct CreationModes(std::sync::Mutex<Vec<u32>>);

impl Disk for CreationModes {
    fn create(
        &self,
        dir: std::os::fd::BorrowedFd<'_>,
        name: &Path,
        mode: u32,
    ) -> std::io::Result<std::fs::File> {
        self.0.lock().unwrap().push(mode);
        OsDisk.create(dir, name, mode)
    }
}

#[tokio::test]
async fn new_content_of_a_private_file_is_never_in_a_file_that_others_may_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("private"), "old").unwrap();
    let mode = Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.path().join("private"), mode).unwrap();
    let disk = Arc::new(CreationModes::default());
    let vfs = LocalVfs::open(dir.path(), disk.clone()).unwrap();
    for path in ["private", "public"] {
        let written = vfs.write(&p(path), "new".into(), Expect::Any).await;
        written.unwrap();
    }
    assert_eq!(*disk.0.lock().unwrap(), [0o600, 0o666]);
}
