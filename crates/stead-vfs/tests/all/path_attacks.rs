//! The place for tests of hostile paths on the local backend: links, special files and the root,
//! with every operation.

use super::{OPERATIONS, Told, World, p};
use rustix::fs::{CWD, FileType, Mode};
use std::time::Duration;
use stead_vfs::{FileKind, VfsError};

fn world() -> World {
    let world = World::new();
    world.put("plain", "plain");
    world.put("dir/inner", "inner");
    let outside = world.outside();
    world.link("relative", "../outside/secret");
    world.link("absolute", outside.join("secret"));
    world.link("chain1", "dir/chain2");
    world.link("dir/chain2", "../../outside/secret");
    world.link("outdir", "../outside");
    world.link("absdir", &outside);
    world.link("absolute-inside", world.root().join("plain"));
    world.link("dotdots", "dir/../../outside/secret");
    world.link("updir", "..");
    world.link("loop", "loop");
    world.link("proc", "/proc/self/root");
    world.link("device", "/dev/zero");
    world.link("dangling-out", "../outside/new");
    rustix::fs::mkfifoat(CWD, world.root().join("fifo"), Mode::from_raw_mode(0o644)).unwrap();
    let node = rustix::fs::makedev(1, 5);
    // Devices need privileges; a FIFO is a special file too.
    let made = rustix::fs::mknodat(
        CWD,
        world.root().join("zero"),
        FileType::CharacterDevice,
        Mode::RWXU,
        node,
    );
    made.or_else(|_| rustix::fs::mkfifoat(CWD, world.root().join("zero"), Mode::RWXU))
        .unwrap();
    drop(std::os::unix::net::UnixListener::bind(world.root().join("socket")).unwrap());
    world
}

const ATTACKS: &[&str] = &[
    "relative",
    "absolute",
    "chain1",
    "dir/chain2",
    "outdir/secret",
    "outdir/new",
    "outdir/new/deep",
    "absdir/secret",
    "absolute-inside",
    "dotdots",
    "updir/outside/secret",
    "loop",
    "loop/x",
    "proc/etc/passwd",
    "device",
    "dangling-out",
    "dangling-out/x",
    "fifo",
    "fifo/x",
    "zero",
    "socket",
    "outdir",
    "absdir",
    "updir",
    "proc",
];

async fn answer(world: &World, operation: super::Operation, path: &str) -> Told {
    let call = operation(world.vfs.clone(), p(path));
    tokio::time::timeout(Duration::from_secs(5), call)
        .await
        .expect("an operation must not wait")
}

#[tokio::test]
async fn no_operation_on_any_attack_reads_or_changes_the_outside() {
    for (name, operation) in OPERATIONS {
        for path in ATTACKS {
            let world = world();
            let told = answer(&world, *operation, path).await;
            if let Ok(told) = &told {
                assert!(
                    !told.contains("secret") && !told.contains("root:"),
                    "{name} {path} told {told}"
                );
            }
            let outside: Vec<_> = std::fs::read_dir(world.outside())
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            assert_eq!(outside, ["secret"], "{name} {path} ({told:?})");
            assert_eq!(
                std::fs::read_to_string(world.outside().join("secret")).unwrap(),
                "secret",
                "{name} {path}"
            );
        }
    }
}

#[tokio::test]
async fn what_leaves_is_named_as_such_and_what_is_special_too() {
    let content = ["stat", "read", "read_lines", "write"];
    for (name, operation) in OPERATIONS.iter().filter(|(name, _)| content.contains(name)) {
        for path in [
            "relative",
            "absolute",
            "chain1",
            "outdir/secret",
            "dotdots",
            "absolute-inside",
            "device",
        ] {
            let told = answer(&world(), *operation, path).await;
            assert!(
                matches!(told, Err(VfsError::Escapes(_))),
                "{name} {path}: {told:?}"
            );
        }
        for path in ["fifo", "zero", "socket"]
            .iter()
            .filter(|_| *name != "stat")
        {
            let told = answer(&world(), *operation, path).await;
            assert!(
                matches!(told, Err(VfsError::Special(_))),
                "{name} {path}: {told:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_listing_shows_escaping_links_and_special_files_as_other() {
    use stead_vfs::Vfs;
    let world = world();
    let entries = world.vfs.list(&p(".")).await.unwrap();
    let kinds: Vec<_> = entries
        .iter()
        .filter(|e| e.kind != FileKind::Other)
        .map(|e| e.name.as_str())
        .collect();
    assert_eq!(kinds, ["dir", "plain"]);
}

#[tokio::test]
async fn removing_or_moving_a_link_touches_the_link_only() {
    use stead_vfs::Vfs;
    let world = world();
    for path in [
        "outdir",
        "absolute",
        "updir",
        "loop",
        "dangling-out",
        "fifo",
    ] {
        world.vfs.remove(&p(path)).await.unwrap();
    }
    world.vfs.rename(&p("absdir"), &p("moved")).await.unwrap();
    assert_eq!(
        std::fs::read_link(world.root().join("moved")).unwrap(),
        world.outside()
    );
    assert_eq!(
        std::fs::read_to_string(world.outside().join("secret")).unwrap(),
        "secret"
    );
}

#[tokio::test]
async fn removing_a_tree_unlinks_the_links_in_it() {
    use stead_vfs::Vfs;
    let world = World::new();
    world.put("tree/a/b/c", "c");
    world.put("tree/a/d", "d");
    world.link("tree/a/out", "../../../outside");
    world.link("tree/abs", world.outside());
    world.vfs.remove(&p("tree")).await.unwrap();
    assert_eq!(world.names(), Vec::<String>::new());
    assert_eq!(
        std::fs::read_to_string(world.outside().join("secret")).unwrap(),
        "secret"
    );
}

#[tokio::test]
async fn the_root_itself_is_not_removed_moved_or_written() {
    use stead_vfs::{Expect, Vfs};
    let world = world();
    assert!(matches!(
        world.vfs.remove(&p(".")).await,
        Err(VfsError::Denied(_))
    ));
    assert!(matches!(
        world.vfs.rename(&p("."), &p("x")).await,
        Err(VfsError::Denied(_))
    ));
    assert!(matches!(
        world.vfs.write(&p("."), "x".into(), Expect::Any).await,
        Err(VfsError::IsDirectory(_))
    ));
    world.vfs.mkdir(&p(".")).await.unwrap();
}
