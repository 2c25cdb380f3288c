//! The place for tests of trees in a store: chunks, crashes, fencing, round trips and large
//! directories.

use crate::faulty_store::{Loss, Shaky};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stead_store::{AcquireOutcome, Claim, Documents, Leases, MemoryStore, Space};
use stead_vfs::{Expect, PathError, ReadRange, StoreVfs, VPath, Vfs, VfsError};

const AT_ONCE: Duration = Duration::ZERO;

struct World {
    store: Arc<Shaky>,
    space: Space,
    vfs: StoreVfs,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(Shaky::new(MemoryStore::new()));
        let space = Space::new(["files"]);
        let vfs = StoreVfs::new(Arc::clone(&store) as Arc<dyn Documents>, space.clone());
        Self { store, space, vfs }
    }

    /// Returns the number of documents whose key begins with `prefix`.
    async fn count(&self, prefix: &str) -> usize {
        self.store
            .store
            .list(&self.space, prefix, None, usize::MAX)
            .await
            .unwrap()
            .len()
    }

    fn trips(&self) -> (usize, usize, usize) {
        let of = |count: &std::sync::atomic::AtomicUsize| count.swap(0, Ordering::Relaxed);
        (
            of(&self.store.gets),
            of(&self.store.lists),
            of(&self.store.commits),
        )
    }
}

fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn large(byte: u8, len: usize) -> bytes::Bytes {
    (0..len)
        .map(|i| byte.wrapping_add((i / 1000) as u8))
        .collect::<Vec<u8>>()
        .into()
}

#[tokio::test]
async fn large_contents_lie_in_chunks_that_go_with_them() {
    let world = World::new();
    let content = large(1, 3_000_000);
    for path in ["a/large", "a/other"] {
        world
            .vfs
            .write(&p(path), content.clone(), Expect::Absent)
            .await
            .unwrap();
    }
    assert_eq!((world.count("c:").await, world.count("g:").await), (12, 0));
    assert_eq!(
        world
            .vfs
            .read(&p("a/large"), ReadRange::ALL)
            .await
            .unwrap()
            .0,
        content
    );
    world.trips();
    for (offset, len) in [
        (0, 1),
        (524_287, 2),
        (524_288, 524_288),
        (2_999_999, 5),
        (3_000_000, 1),
        (1_000_000, 1_500_000),
    ] {
        let (read, _) = world
            .vfs
            .read(&p("a/large"), ReadRange { offset, len })
            .await
            .unwrap();
        let end = content.len().min((offset + len) as usize);
        assert_eq!(read, content.slice(offset as usize..end), "{offset}+{len}");
    }
    assert_eq!(
        world.trips().0,
        6 + 1 + 2 + 1 + 1 + 4,
        "only the chunks that are needed are fetched"
    );

    world
        .vfs
        .write(&p("a/large"), "small".into(), Expect::Any)
        .await
        .unwrap();
    assert_eq!(world.count("c:").await, 6);
    world.vfs.rename(&p("a"), &p("b/c")).await.unwrap();
    assert_eq!(
        world
            .vfs
            .read(&p("b/c/other"), ReadRange::ALL)
            .await
            .unwrap()
            .0,
        content
    );
    world.vfs.remove(&p("b")).await.unwrap();
    assert_eq!(world.count("").await, 0, "nothing is left of an empty tree");
}

#[tokio::test]
async fn a_failed_write_of_a_large_file_leaves_the_old_one_and_is_swept() {
    // The upload takes two commits, and the node a third.
    for failing in 0..3 {
        for loss in [Loss::Request, Loss::Answer] {
            let world = World::new();
            world
                .vfs
                .write(&p("d/f"), large(1, 700_000), Expect::Absent)
                .await
                .unwrap();
            world.store.fail_after(failing, loss);
            let failed = world
                .vfs
                .write(&p("d/f"), large(2, 5_000_000), Expect::Any)
                .await;
            assert!(
                matches!(failed, Err(VfsError::Unavailable { .. })),
                "{failed:?}"
            );
            let made = failing == 2 && loss == Loss::Answer;
            let expected = if made {
                large(2, 5_000_000)
            } else {
                large(1, 700_000)
            };
            assert_eq!(
                world.vfs.read(&p("d/f"), ReadRange::ALL).await.unwrap().0,
                expected,
                "{failing} {loss:?}"
            );
            world.vfs.sweep(AT_ONCE).await.unwrap();
            assert_eq!(
                world.vfs.read(&p("d/f"), ReadRange::ALL).await.unwrap().0,
                expected,
                "{failing} {loss:?}"
            );
            let chunks = if made { 10 } else { 2 };
            assert_eq!(
                (world.count("c:").await, world.count("g:").await),
                (chunks, 0),
                "{failing} {loss:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_writer_that_is_swept_begins_again_and_a_young_one_is_left_alone() {
    let world = World::new();
    let path = p("f");
    // A writer that died after its first commit.
    let write = world.vfs.write(&path, large(1, 9_000_000), Expect::Absent);
    let died = tokio::select! {
        biased;
        _ = async { while world.count("c:").await == 0 { tokio::task::yield_now().await; } } => true,
        _ = write => false,
    };
    assert!(died && world.count("g:").await == 1);
    assert_eq!(world.vfs.sweep(Duration::from_secs(3600)).await.unwrap(), 0);
    assert_eq!(world.vfs.sweep(AT_ONCE).await.unwrap(), 1);
    assert_eq!(world.count("").await, 0);

    // A writer during sweeps of everything: it succeeds, or fails and must start again.
    let write = world.vfs.write(&path, large(1, 9_000_000), Expect::Absent);
    let sweeper = async {
        for _ in 0..5 {
            world.vfs.sweep(AT_ONCE).await.unwrap();
        }
    };
    let (written, ()) = tokio::join!(write, sweeper);
    written.unwrap();
    assert_eq!(
        world.vfs.read(&p("f"), ReadRange::ALL).await.unwrap().0,
        large(1, 9_000_000)
    );
    world.vfs.sweep(AT_ONCE).await.unwrap();
    assert_eq!(world.count("c:").await, 18);
}

#[tokio::test]
async fn a_lost_lease_stops_every_change() {
    let world = World::new();
    let lease = async |holder: &str| {
        let claim = Claim::Takeover(1);
        match world
            .store
            .store
            .acquire(&world.space, "s", holder, Duration::from_secs(60), claim)
            .await
            .unwrap()
        {
            AcquireOutcome::Granted(fence) => fence,
            AcquireOutcome::Held(lease) => panic!("{lease:?}"),
        }
    };
    let first = world.vfs.fenced(lease("one").await);
    first
        .write(&p("d/f"), "1".into(), Expect::Any)
        .await
        .unwrap();
    let second = world.vfs.fenced(lease("two").await);
    let refused = [
        first
            .write(&p("d/f"), "2".into(), Expect::Any)
            .await
            .map(drop),
        first
            .write(&p("large"), large(1, 100_000), Expect::Any)
            .await
            .map(drop),
        first.mkdir(&p("e")).await,
        first.rename(&p("d"), &p("e")).await,
        first.set_mode(&p("d/f"), 0o600).await,
        first.remove(&p("d")).await,
    ];
    assert!(
        refused
            .iter()
            .all(|refused| matches!(refused, Err(VfsError::Fenced(_)))),
        "{refused:?}"
    );
    assert_eq!(first.read(&p("d/f"), ReadRange::ALL).await.unwrap().0, "1");
    second
        .write(&p("d/f"), "2".into(), Expect::Any)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_path_that_does_not_fit_is_refused_by_every_operation() {
    let world = World::new();
    let long = p(&vec!["n".repeat(205); 5].join("/"));
    assert!(long.as_str().len() > 1024);
    let told = [
        world.vfs.stat(&long).await.map(drop),
        world.vfs.list(&long).await.map(drop),
        world.vfs.read(&long, ReadRange::ALL).await.map(drop),
        world
            .vfs
            .write(&long, "x".into(), Expect::Any)
            .await
            .map(drop),
        world.vfs.mkdir(&long).await,
        world.vfs.remove(&long).await,
        world.vfs.rename(&p("f"), &long).await,
        world.vfs.walk(&long, None, 1).await.map(drop),
    ];
    assert!(
        told.iter()
            .all(|told| matches!(told, Err(VfsError::Path(PathError::TooLong)))),
        "{told:?}"
    );
    let half = |name: &str| vec![name.repeat(215); 3].join("/");
    world
        .vfs
        .write(&p(&half("a")), "x".into(), Expect::Any)
        .await
        .unwrap();
    let moved = world.vfs.rename(&p(&"a".repeat(215)), &p(&half("b"))).await;
    assert!(
        matches!(moved, Err(VfsError::Path(PathError::TooLong))),
        "{moved:?}"
    );
}

#[tokio::test]
async fn operations_take_few_round_trips() {
    let world = World::new();
    world
        .vfs
        .write(&p("a/b/first"), "1".into(), Expect::Absent)
        .await
        .unwrap();
    world.trips();
    world
        .vfs
        .write(&p("a/b/f"), "1".into(), Expect::Absent)
        .await
        .unwrap();
    assert_eq!(world.trips(), (0, 0, 1), "create");
    let version = world
        .vfs
        .write(&p("a/b/f"), "2".into(), Expect::Any)
        .await
        .unwrap();
    assert_eq!(world.trips(), (0, 1, 1), "replace");
    world
        .vfs
        .write(&p("a/b/f"), "3".into(), Expect::Version(version))
        .await
        .unwrap();
    assert_eq!(world.trips(), (0, 1, 1), "compare and set");
    world.vfs.read(&p("a/b/f"), ReadRange::ALL).await.unwrap();
    assert_eq!(world.trips(), (1, 0, 0), "read");
    world.vfs.stat(&p("a/b/f")).await.unwrap();
    assert_eq!(world.trips(), (0, 1, 0), "stat");
    world.vfs.list(&p("a/b")).await.unwrap();
    assert_eq!(world.trips(), (0, 1, 0), "list");
    world.vfs.rename(&p("a/b/f"), &p("a/b/g")).await.unwrap();
    assert_eq!(world.trips(), (0, 1, 1), "move");
    world.vfs.remove(&p("a/b/g")).await.unwrap();
    assert_eq!(world.trips(), (0, 1, 1), "remove");
}

#[tokio::test]
async fn a_tree_of_many_thousand_files_is_walked_in_pages_moved_and_removed() {
    let world = World::new();
    let plain = StoreVfs::new(
        Arc::clone(&world.store) as Arc<dyn Documents>,
        world.space.clone(),
    );
    for i in 0..6_000 {
        let path = p(&format!("t/d{}/s{}/f{i:05}", i % 10, i % 3));
        plain
            .write(&path, "x".into(), Expect::Absent)
            .await
            .unwrap();
    }
    let whole = plain.walk(&p("t"), None, usize::MAX).await.unwrap().entries;
    assert_eq!(whole.len(), 6_000 + 10 + 30);
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = plain.walk(&p("t"), after.as_ref(), 999).await.unwrap();
        after = page.entries.last().map(|(path, _)| path.clone());
        paged.extend(page.entries);
        if !page.truncated {
            break;
        }
    }
    assert_eq!(paged, whole);
    plain.rename(&p("t"), &p("u/v")).await.unwrap();
    assert_eq!(
        plain
            .walk(&p("u/v"), None, usize::MAX)
            .await
            .unwrap()
            .entries
            .len(),
        whole.len()
    );
    world.trips();
    plain.remove(&p("u")).await.unwrap();
    assert_eq!(world.trips().2, 2, "in commits of a bounded size");
    assert_eq!(world.count("").await, 0);
}

/// Entries that are added between reading a tree and moving or removing it, in every kind of
/// directory.
#[tokio::test]
async fn what_is_made_in_a_tree_that_is_going_away_is_not_left_behind() {
    for inside in [
        "d/new",
        "d/full/new",
        "d/hollow/new",
        "d/hollow/more/new",
        "d/full/sub/new",
    ] {
        for moves in [true, false] {
            let world = World::new();
            world
                .vfs
                .write(&p("d/full/f"), "f".into(), Expect::Absent)
                .await
                .unwrap();
            world.vfs.mkdir(&p("d/hollow")).await.unwrap();
            world.vfs.mkdir(&p("d/full/sub")).await.unwrap();
            let (reached, release) = world.store.hold();
            let d = p("d");
            let e = p("e");
            let going = async {
                if moves {
                    world.vfs.rename(&d, &e).await.unwrap()
                } else {
                    world.vfs.remove(&d).await.unwrap()
                }
            };
            let other = async {
                reached.await.unwrap();
                world
                    .vfs
                    .write(&p(inside), "new".into(), Expect::Absent)
                    .await
                    .unwrap();
                release.send(()).unwrap();
            };
            tokio::join!(going, other);
            if moves {
                let moved = p(&format!("e{}", &inside[1..]));
                assert_eq!(
                    world.vfs.read(&moved, ReadRange::ALL).await.unwrap().0,
                    "new",
                    "{inside}"
                );
                world.vfs.remove(&e).await.unwrap();
            }
            assert_eq!(
                world.count("").await,
                0,
                "{inside} is left behind, moves: {moves}"
            );
        }
    }
}

/// The opposite case: the directory is removed, or becomes a file, between the check and the
/// commit.
#[tokio::test]
async fn what_loses_its_directory_makes_it_again_or_says_why_not() {
    for becomes_file in [false, true] {
        let world = World::new();
        world
            .vfs
            .write(&p("d/sub/f"), "f".into(), Expect::Absent)
            .await
            .unwrap();
        let (reached, release) = world.store.hold();
        let path = p("d/sub/new");
        let write = world.vfs.write(&path, "new".into(), Expect::Any);
        let other = async {
            reached.await.unwrap();
            world.vfs.remove(&p("d")).await.unwrap();
            if becomes_file {
                world
                    .vfs
                    .write(&p("d"), "file".into(), Expect::Absent)
                    .await
                    .unwrap();
            }
            release.send(()).unwrap();
        };
        let (written, ()) = tokio::join!(write, other);
        let tree = stead_testkit::vfs_suite::tree(&world.vfs).await;
        if becomes_file {
            assert!(
                matches!(written, Err(VfsError::NotDirectory(_))),
                "{written:?}"
            );
            assert_eq!(tree, ["d \"file\""]);
        } else {
            written.unwrap();
            assert_eq!(tree, ["d/", "d/sub/", "d/sub/new \"new\""]);
        }
    }
}
