//! The place for tests of reads, writes, listings, moves, versions and line windows of the local
//! backend.

use super::{World, p, text};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;
use stead_vfs::{DirEntry, Expect, FileKind, LineRange, ReadRange, Version, Vfs, VfsError};

#[tokio::test]
async fn a_write_makes_parents_and_a_read_gives_the_same_version() {
    let world = World::new();
    let path = p("/a/b/日本.txt");
    let version = world
        .vfs
        .write(&path, "text".into(), Expect::Absent)
        .await
        .unwrap();
    assert_eq!(
        world.vfs.read(&path, ReadRange::ALL).await.unwrap(),
        ("text".into(), version.clone())
    );
    assert_eq!(world.vfs.stat(&path).await.unwrap().version, version);
    assert_eq!(world.names(), ["a", "a/b", "a/b/日本.txt"]);
}

#[tokio::test]
async fn expectations_decide_whether_a_write_happens() {
    let world = World::new();
    let path = p("f");
    let first = world
        .vfs
        .write(&path, "1".into(), Expect::Any)
        .await
        .unwrap();
    assert!(matches!(
        world.vfs.write(&path, "x".into(), Expect::Absent).await,
        Err(VfsError::Exists(_))
    ));
    let second = world
        .vfs
        .write(&path, "2".into(), Expect::Version(first.clone()))
        .await
        .unwrap();
    assert_ne!(first, second);
    assert!(matches!(
        world
            .vfs
            .write(&path, "x".into(), Expect::Version(first))
            .await,
        Err(VfsError::Changed(_))
    ));
    world.put("f", "3");
    assert!(matches!(
        world
            .vfs
            .write(&path, "x".into(), Expect::Version(second.clone()))
            .await,
        Err(VfsError::Changed(_))
    ));
    world.vfs.remove(&path).await.unwrap();
    assert!(matches!(
        world
            .vfs
            .write(&path, "x".into(), Expect::Version(second))
            .await,
        Err(VfsError::Changed(_))
    ));
    assert_eq!(world.names(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_writers_with_one_version_exactly_one_wins_each_round() {
    let world = World::new();
    let path = p("counter");
    let mut version = world
        .vfs
        .write(&path, "0".into(), Expect::Absent)
        .await
        .unwrap();
    for round in 0..20 {
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..8 {
            let vfs = world.vfs.clone();
            let path = path.clone();
            let expect = Expect::Version(version.clone());
            writers.spawn(async move {
                vfs.write(&path, format!("{round}.{writer}").into(), expect)
                    .await
                    .ok()
            });
        }
        let won: Vec<Version> = writers.join_all().await.into_iter().flatten().collect();
        let [winner] = won.try_into().unwrap();
        version = winner;
    }
    assert_eq!(world.names(), ["counter"]);
}

#[tokio::test]
async fn a_write_keeps_the_mode_and_writes_through_links_inside() {
    let world = World::new();
    world.put("dir/target", "old");
    std::fs::set_permissions(
        world.root().join("dir/target"),
        std::fs::Permissions::from_mode(0o751),
    )
    .unwrap();
    world.link("a/link", "../b/link2");
    world.link("b/link2", "../dir/target");
    world.link("a/new", "../dir/made");
    world
        .vfs
        .write(&p("a/link"), "new".into(), Expect::Any)
        .await
        .unwrap();
    world
        .vfs
        .write(&p("a/new"), "made".into(), Expect::Absent)
        .await
        .unwrap();
    assert_eq!(
        (world.content("dir/target"), world.content("dir/made")),
        ("new".into(), "made".into())
    );
    assert_eq!(
        std::fs::metadata(world.root().join("dir/target"))
            .unwrap()
            .mode()
            & 0o7777,
        0o751
    );
    assert!(world.root().join("a/link").is_symlink() && world.root().join("b/link2").is_symlink());
}

#[tokio::test]
async fn a_range_reads_what_there_is() {
    let world = World::new();
    world.put("f", "0123456789");
    for (offset, len, expected) in [
        (0, 3, "012"),
        (8, 5, "89"),
        (10, 1, ""),
        (99, 1, ""),
        (2, u64::MAX, "23456789"),
        (3, 0, ""),
    ] {
        let (bytes, _) = world
            .vfs
            .read(&p("f"), ReadRange { offset, len })
            .await
            .unwrap();
        assert_eq!(text(&bytes), expected, "{offset}+{len}");
    }
}

#[tokio::test]
async fn errors_name_what_is_wrong() {
    let world = World::new();
    world.put("file", "x");
    world.put("dir/f", "x");
    let read = async |path: &str| {
        world
            .vfs
            .read(&p(path), ReadRange::ALL)
            .await
            .unwrap_err()
            .to_string()
    };
    assert_eq!(read("none").await, "none does not exist");
    assert_eq!(read("dir").await, "dir is a directory");
    assert_eq!(read("file/x").await, "file/x is not a directory");
    let write = async |path: &str| {
        world
            .vfs
            .write(&p(path), "x".into(), Expect::Any)
            .await
            .unwrap_err()
            .to_string()
    };
    assert_eq!(write("dir").await, "dir is a directory");
    assert_eq!(write("file/x").await, "file/x is not a directory");
    assert_eq!(
        world.vfs.list(&p("file")).await.unwrap_err().to_string(),
        "file is not a directory"
    );
    assert_eq!(
        world.vfs.mkdir(&p("file")).await.unwrap_err().to_string(),
        "file is not a directory"
    );
}

#[tokio::test]
async fn a_listing_is_sorted_and_follows_links_inside() {
    let world = World::new();
    world.put("d/b", "12345");
    world.put("d/.hidden", "");
    world.put("d/sub/x", "");
    world.link("d/a", "b");
    let entries = world.vfs.list(&p("d")).await.unwrap();
    let shown: Vec<_> = entries
        .iter()
        .map(
            |DirEntry {
                 name, kind, size, ..
             }| (name.as_str(), *kind, *size),
        )
        .collect();
    use FileKind::{Directory, File};
    assert_eq!(
        shown,
        [
            (".hidden", File, 0),
            ("a", File, 5),
            ("b", File, 5),
            ("sub", Directory, 0)
        ]
    );
}

#[tokio::test]
async fn a_move_makes_parents_and_never_replaces() {
    let world = World::new();
    world.put("a", "a");
    world.put("dir/x", "x");
    world.put("b", "b");
    assert!(matches!(
        world.vfs.rename(&p("a"), &p("b")).await,
        Err(VfsError::Exists(_))
    ));
    assert!(matches!(
        world.vfs.rename(&p("a"), &p("a")).await,
        Err(VfsError::Exists(_))
    ));
    assert!(matches!(
        world.vfs.rename(&p("none"), &p("new/c")).await,
        Err(VfsError::NotFound(_))
    ));
    assert!(matches!(
        world.vfs.rename(&p("dir"), &p("dir/sub/dir")).await,
        Err(VfsError::Io { .. })
    ));
    world.vfs.rename(&p("a"), &p("x/y/a")).await.unwrap();
    world.vfs.rename(&p("dir"), &p("x/dir")).await.unwrap();
    assert_eq!(
        world.names(),
        ["b", "x", "x/dir", "x/dir/x", "x/y", "x/y/a"]
    );
}

#[tokio::test]
async fn resolving_follows_links_and_keeps_what_does_not_exist() {
    let world = World::new();
    world.put("real/file", "");
    world.link("l", "real");
    world.link("deep/up", "../l");
    world.link("to-new", "real/new");
    for (path, resolved) in [
        (".", "."),
        ("real/file", "real/file"),
        ("l/file", "real/file"),
        ("deep/up/file", "real/file"),
        ("l/none/further", "real/none/further"),
        ("to-new", "real/new"),
        ("none", "none"),
    ] {
        assert_eq!(
            world.vfs.resolve(&p(path)).await.unwrap().to_string(),
            resolved,
            "{path}"
        );
    }
}

#[tokio::test]
async fn windows_of_lines_are_the_same_cold_warm_and_after_a_change() {
    let world = World::new();
    let line = |i: usize| format!("line {i} {}", "x".repeat(i % 90));
    let content = |first: usize| {
        (first..first + 60_000)
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
    };
    world.put("big", content(0));
    let window = |skip| LineRange {
        skip,
        take: 3,
        max_line_bytes: 1000,
        max_bytes: 10_000,
    };
    for (first, skip) in [(0, 59_990), (0, 59_990), (0, 30_000), (7, 59_990), (7, 0)] {
        if world.content("big") != content(first) {
            world.put("big", content(first));
        }
        let lines = world.vfs.read_lines(&p("big"), window(skip)).await.unwrap();
        let texts: Vec<_> = lines
            .lines
            .iter()
            .map(|l| String::from_utf8_lossy(&l.text).into_owned())
            .collect();
        let at = first + skip as usize;
        assert_eq!(
            texts,
            [line(at), line(at + 1), line(at + 2)],
            "{first} {skip}"
        );
        assert_eq!(lines.total, Some(60_000));
    }
}

#[tokio::test]
async fn a_place_without_its_own_line_reader_gives_the_same_windows() {
    let world = World::new();
    world.put("text", "a\nb\nc");
    world.put("empty", "");
    world.put("binary", "a\0b");
    let plain = Plain(Arc::new(world.vfs.clone()));
    for path in ["text", "empty", "binary"] {
        let range = LineRange {
            skip: 1,
            take: 1,
            max_line_bytes: 10,
            max_bytes: 10,
        };
        let own = world.vfs.read_lines(&p(path), range).await.unwrap();
        assert_eq!(
            plain.read_lines(&p(path), range).await.unwrap(),
            own,
            "{path}"
        );
    }
}

/// A file system that uses the default `read_lines`.
#[derive(Debug)]
struct Plain(Arc<stead_vfs::LocalVfs>);

#[rustfmt::skip]
mod plain {
    use super::*;
    use bytes::Bytes;
    use futures_util::future::BoxFuture;
    use stead_vfs::{Search, Stat, VPath};
    impl Vfs for Plain {
        fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> { self.0.stat(path) }
        fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> { self.0.list(path) }
        fn read<'a>(&'a self, path: &'a VPath, range: ReadRange) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> { self.0.read(path, range) }
        fn write<'a>(&'a self, path: &'a VPath, data: Bytes, expect: Expect) -> BoxFuture<'a, Result<Version, VfsError>> { self.0.write(path, data, expect) }
        fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> { self.0.remove(path) }
        fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> { self.0.rename(from, to) }
        fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> { self.0.mkdir(path) }
        fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> { self.0.resolve(path) }
        fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> { self.0.set_mode(path, mode) }
        fn search(&self) -> &dyn Search { self.0.search() }
    }
}
