//! The place for tests of composed file systems: overlays, mounts, scopes and read-only views.

use crate::{Place, local_place, memory_place, overlay_of, routes_place, scoped};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use stead_store::{
    Document, DocumentChange, Documents, FencingToken, ListedDocument, Space, StoreError,
};
use stead_testkit::vfs_suite::{self, SCRIPT_OPERATIONS, VfsOracle};
use stead_vfs::{
    Bounds, Expect, FileKind, Frozen, GlobQuery, GrepMode, GrepQuery, Guarded, Overlay, Protected,
    ReadRange, Routes, Rule, Rules, Scoped, StoreVfs, Syntax, VPath, Version, Vfs, VfsError,
};
use tokio_util::sync::CancellationToken;

fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

async fn put(vfs: &dyn Vfs, path: &str, content: &str) -> Version {
    vfs.write(&p(path), content.to_owned().into(), Expect::Any)
        .await
        .unwrap()
}

async fn content(vfs: &dyn Vfs, path: &str) -> String {
    let (bytes, _) = vfs.read(&p(path), ReadRange::ALL).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn glob(vfs: &dyn Vfs, pattern: &str) -> (Vec<String>, Vec<String>) {
    let query = GlobQuery {
        pattern: pattern.into(),
        root: p(""),
    };
    let found = vfs
        .search()
        .glob(query, Bounds::new(100, CancellationToken::new()))
        .await
        .unwrap();
    (
        found.paths.iter().map(ToString::to_string).collect(),
        found.failed.iter().map(ToString::to_string).collect(),
    )
}

/// Runs a script on an overlay whose lower layer is full of random files, which must not change.
async fn script_over(upper: Place, lower: Place, seed: u64) {
    vfs_suite::scatter(&*lower.vfs, seed, 60).await;
    let before = vfs_suite::tree(&*lower.vfs).await;
    let oracle = vfs_suite::oracle_of(&*lower.vfs).await;
    let below = Arc::clone(&lower.vfs);
    let overlay = overlay_of(upper, lower);
    vfs_suite::script_from(&*overlay.vfs, oracle, seed, SCRIPT_OPERATIONS).await;
    assert_eq!(
        vfs_suite::tree(&*below).await,
        before,
        "seed {seed}: the lower layer changed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overlays_over_random_content_in_memory() {
    for seed in (0..).take(stead_testkit::rounds(8)) {
        script_over(memory_place(), memory_place(), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn overlays_over_random_content_on_disk() {
    script_over(memory_place(), local_place(), 50).await;
    script_over(local_place(), memory_place(), 51).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_overlay_over_an_overlay() {
    for seed in (60..).take(stead_testkit::rounds(4)) {
        let lowest = memory_place();
        let middle = memory_place();
        vfs_suite::scatter(&*lowest.vfs, seed, 30).await;
        let lower = overlay_of(middle, lowest);
        vfs_suite::scatter(&*lower.vfs, seed + 100, 30).await;
        script_over(memory_place(), lower, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scripts_across_mounts() {
    let mounts = ["sub", "deep/a", "deep/a/b", ".hid", "a-b"];
    for seed in (200..).take(stead_testkit::rounds(8)) {
        let place = routes_place(&mounts);
        let oracle = VfsOracle::default().with_fixed(&mounts);
        vfs_suite::script_from(&*place.vfs, oracle, seed, SCRIPT_OPERATIONS / 2).await;
    }
}

#[tokio::test]
async fn a_mask_stays_and_what_is_made_there_is_uppers_alone() {
    let upper = memory_place();
    let lower = memory_place();
    for path in ["d/a", "d/b", "e/f", "g"] {
        put(&*lower.vfs, path, "lower").await;
    }
    let overlay = Overlay::new(Arc::clone(&upper.vfs), Arc::clone(&lower.vfs));
    overlay.remove(&p("d")).await.unwrap();
    overlay.mkdir(&p("d")).await.unwrap();
    assert_eq!(overlay.list(&p("d")).await.unwrap(), vec![]);
    put(&overlay, "d/a", "upper").await;
    overlay.remove(&p("g")).await.unwrap();
    put(&overlay, "g/now/a/directory", "upper").await;
    let all = [
        "d/",
        "d/a \"upper\"",
        "e/",
        "e/f \"lower\"",
        "g/",
        "g/now/",
        "g/now/a/",
        "g/now/a/directory \"upper\"",
    ];
    assert_eq!(vfs_suite::tree(&overlay).await, all);
    overlay.remove(&p("d/a")).await.unwrap();
    assert_eq!(overlay.list(&p("d")).await.unwrap(), vec![]);
    assert_eq!(content(&*lower.vfs, "d/a").await, "lower");
}

#[tokio::test]
async fn layers_hide_each_other_as_told() {
    let upper = memory_place();
    let lower = memory_place();
    for path in ["d/a", "d/b", "e/f", "g", "h/i"] {
        put(&*lower.vfs, path, "lower").await;
    }
    let overlay = Overlay::new(Arc::clone(&upper.vfs), Arc::clone(&lower.vfs));

    // An empty file over a directory, written directly to the upper layer.
    put(&*upper.vfs, "h", "").await;
    assert_eq!(overlay.stat(&p("h")).await.unwrap().kind, FileKind::File);
    assert!(matches!(
        overlay.read(&p("h/i"), ReadRange::ALL).await,
        Err(VfsError::NotDirectory(_))
    ));
    overlay.remove(&p("h")).await.unwrap();
    assert!(
        matches!(overlay.stat(&p("h/i")).await, Err(VfsError::NotFound(_))),
        "the lower one shines through"
    );

    // Another process that opens the same two layers sees the same.
    let again = Overlay::new(Arc::clone(&upper.vfs), Arc::clone(&lower.vfs));
    assert_eq!(
        vfs_suite::tree(&again).await,
        [
            "d/",
            "d/a \"lower\"",
            "d/b \"lower\"",
            "e/",
            "e/f \"lower\"",
            "g \"lower\""
        ]
    );

    // The overlay's own file can be neither listed nor opened.
    for name in [".stead-overlay.json", ".stead-overlay.x/y"] {
        assert!(matches!(
            again.stat(&p(name)).await,
            Err(VfsError::NotFound(_))
        ));
        assert!(matches!(
            again.read(&p(name), ReadRange::ALL).await,
            Err(VfsError::NotFound(_))
        ));
        assert!(matches!(
            again.remove(&p(name)).await,
            Err(VfsError::NotFound(_))
        ));
        assert!(matches!(
            again.write(&p(name), "x".into(), Expect::Any).await,
            Err(VfsError::Denied(_))
        ));
        assert!(matches!(
            again.mkdir(&p(name)).await,
            Err(VfsError::Denied(_))
        ));
        assert!(matches!(
            again.rename(&p("g"), &p(name)).await,
            Err(VfsError::Denied(_))
        ));
    }
    assert_eq!(glob(&again, ".*").await.0, Vec::<String>::new());

    // A move that copied leaves no hidden file.
    again.rename(&p("d"), &p("moved/here")).await.unwrap();
    let names: Vec<_> = upper
        .vfs
        .list(&p(""))
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, [".stead-overlay.json", "moved"]);
}

#[tokio::test]
async fn a_version_of_the_lower_layer_is_good_for_one_writer() {
    let upper = memory_place();
    let lower = memory_place();
    put(&*lower.vfs, "f", "old").await;
    lower.vfs.set_mode(&p("f"), 0o751).await.unwrap();
    let overlay = Overlay::new(Arc::clone(&upper.vfs), Arc::clone(&lower.vfs));
    let (_, version) = overlay.read(&p("f"), ReadRange::ALL).await.unwrap();
    let first = overlay
        .write(&p("f"), "new".into(), Expect::Version(version.clone()))
        .await
        .unwrap();
    let second = overlay
        .write(&p("f"), "other".into(), Expect::Version(version))
        .await;
    assert!(matches!(second, Err(VfsError::Changed(_))), "{second:?}");
    let stat = overlay.stat(&p("f")).await.unwrap();
    assert_eq!((stat.version, stat.mode), (first, Some(0o751)));
    // The upper layer's own version, without its tag, is not a version of the overlay.
    let own = upper.vfs.stat(&p("f")).await.unwrap().version;
    let untagged = overlay
        .write(&p("f"), "x".into(), Expect::Version(own))
        .await;
    assert!(
        matches!(untagged, Err(VfsError::Changed(_))),
        "{untagged:?}"
    );
    assert_eq!(
        (
            content(&overlay, "f").await,
            content(&*lower.vfs, "f").await
        ),
        ("new".into(), "old".into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_removals_at_once_are_all_masked() {
    let upper = memory_place();
    let lower = memory_place();
    for i in 0..20 {
        put(&*lower.vfs, &format!("d/{i}"), "x").await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for i in 0..20 {
        // Each overlay caches its own masks.
        let overlay = Overlay::new(Arc::clone(&upper.vfs), Arc::clone(&lower.vfs));
        tasks.spawn(async move { overlay.remove(&p(&format!("d/{i}"))).await });
    }
    tasks
        .join_all()
        .await
        .into_iter()
        .for_each(|removed| removed.unwrap());
    let overlay = Overlay::new(upper.vfs, lower.vfs);
    assert_eq!(vfs_suite::tree(&overlay).await, ["d/"]);
}

/// A store that never answers.
#[derive(Debug)]
struct Gone;

fn gone<T>() -> BoxFuture<'static, Result<T, StoreError>>
where
    T: Send + 'static,
{
    Box::pin(async {
        Err(StoreError::Unavailable {
            place: "gone:".into(),
            cause: "no route to host".into(),
        })
    })
}

impl Documents for Gone {
    fn get<'a>(
        &'a self,
        _: &'a Space,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        gone()
    }

    fn list<'a>(
        &'a self,
        _: &'a Space,
        _: &'a str,
        _: Option<&'a str>,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        gone()
    }

    fn commit<'a>(
        &'a self,
        _: &'a Space,
        _: Vec<DocumentChange>,
        _: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        gone()
    }
}

#[tokio::test]
async fn one_failing_route_does_not_spoil_a_search() {
    let default = memory_place();
    put(&*default.vfs, "a/hit", "needle\n").await;
    let mounted = memory_place();
    put(&*mounted.vfs, "x/hit", "needle\n").await;
    let failing: Arc<dyn Vfs> = Arc::new(StoreVfs::new(Arc::new(Gone), Space::new(["x"])));
    let mounts = BTreeMap::from([(p("m/n"), mounted.vfs), (p("b"), Arc::clone(&failing))]);
    let routes = Routes::new(default.vfs, mounts);
    let (paths, failed) = glob(&routes, "hit").await;
    assert_eq!(paths, ["a/hit", "m/n/x/hit"]);
    assert!(
        failed.len() == 1 && failed[0].starts_with("b: ") && failed[0].contains("no route to host"),
        "{failed:?}"
    );
    let query = GrepQuery {
        syntax: Syntax::Literal,
        mode: GrepMode::Files,
        ..GrepQuery::new("needle", p(""))
    };
    let found = routes
        .search()
        .grep(query.clone(), Bounds::new(10, CancellationToken::new()))
        .await
        .unwrap();
    assert_eq!((found.files.len(), found.failed.len()), (2, 1));
    // Searched alone, it reports the reason, with the path in the whole tree.
    let query = GrepQuery {
        root: p("b/c"),
        ..query
    };
    let alone = routes
        .search()
        .grep(query, Bounds::new(10, CancellationToken::new()))
        .await
        .unwrap_err();
    assert!(alone.to_string().starts_with("b/c: "), "{alone}");
    let read = routes.read(&p("b/c"), ReadRange::ALL).await.unwrap_err();
    assert!(
        matches!(&read, VfsError::Unavailable { path, .. } if *path == p("b/c")),
        "{read:?}"
    );
    // The default may fail, too.
    let local = local_place();
    put(&*local.vfs, "hit", "needle\n").await;
    let routes = Routes::new(failing, BTreeMap::from([(p("m"), local.vfs)]));
    let (paths, failed) = glob(&routes, "hit").await;
    assert_eq!((paths, failed.len()), (vec!["m/hit".to_owned()], 1));
}

/// A store whose operations never complete.
#[derive(Debug)]
struct Silent;

impl Documents for Silent {
    fn get<'a>(
        &'a self,
        _: &'a Space,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        Box::pin(std::future::pending())
    }

    fn list<'a>(
        &'a self,
        _: &'a Space,
        _: &'a str,
        _: Option<&'a str>,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        Box::pin(std::future::pending())
    }

    fn commit<'a>(
        &'a self,
        _: &'a Space,
        _: Vec<DocumentChange>,
        _: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_search_ends_in_time_wherever_a_place_hangs() {
    let silent =
        || -> Arc<dyn Vfs> { Arc::new(StoreVfs::new(Arc::new(Silent), Space::new(["x"]))) };
    let memory = || memory_place().vfs;
    let places: [Arc<dyn Vfs>; 6] = [
        silent(),
        Arc::new(Overlay::new(silent(), memory())),
        Arc::new(Overlay::new(memory(), silent())),
        Arc::new(Scoped::new(silent(), p("a/b"))),
        Arc::new(Routes::new(silent(), BTreeMap::from([(p("m"), memory())]))),
        Arc::new(Routes::new(memory(), BTreeMap::from([(p("m"), silent())]))),
    ];
    for place in places {
        let soon = || std::time::Instant::now() + std::time::Duration::from_millis(30);
        let bounds = || Bounds {
            deadline: soon(),
            ..Bounds::new(10, CancellationToken::new())
        };
        let query = GlobQuery {
            pattern: "**".into(),
            root: p(""),
        };
        let wait = std::time::Duration::from_secs(5);
        let found = tokio::time::timeout(wait, place.search().glob(query.clone(), bounds()))
            .await
            .unwrap()
            .unwrap();
        assert!(found.timed_out, "{place:?}");
        let later = Bounds::new(10, CancellationToken::new());
        let cancel = later.cancel.clone();
        let cancelled = async {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            cancel.cancel();
        };
        let search = tokio::time::timeout(wait, place.search().glob(query, later));
        let (found, ()) = tokio::join!(search, cancelled);
        assert!(
            matches!(found.unwrap(), Err(stead_vfs::FileSearchError::Cancelled)),
            "{place:?}"
        );
    }
}

#[tokio::test]
async fn the_longest_path_decides_and_what_is_mounted_hides_what_is_below() {
    let place = routes_place(&["m", "m/inner"]);
    put(&*place.vfs, "m/f", "outer mount").await;
    put(&*place.vfs, "m/inner/f", "inner mount").await;
    put(&*place.vfs, "mm", "default").await;
    let names: Vec<_> = place
        .vfs
        .list(&p("m"))
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["f", "inner"]);
    assert_eq!(glob(&*place.vfs, "**").await.0, ["m/f", "m/inner/f", "mm"]);
    for path in ["m", "m/inner"] {
        assert!(matches!(
            place.vfs.remove(&p(path)).await,
            Err(VfsError::Denied(_))
        ));
        assert!(matches!(
            place.vfs.rename(&p(path), &p("elsewhere")).await,
            Err(VfsError::Denied(_))
        ));
    }
    place.vfs.set_mode(&p("m/f"), 0o700).await.unwrap();
    place
        .vfs
        .rename(&p("m/f"), &p("m/inner/g/h"))
        .await
        .unwrap();
    assert_eq!(
        place.vfs.stat(&p("m/inner/g/h")).await.unwrap().mode,
        Some(0o700),
        "mode bits travel"
    );
    assert!(matches!(
        place.vfs.stat(&p("m/f")).await,
        Err(VfsError::NotFound(_))
    ));
}

#[tokio::test]
async fn a_scope_shows_nothing_of_what_is_around_it() {
    let local = local_place();
    put(&*local.vfs, "secret", "secret").await;
    put(&*local.vfs, "tenants/a/f", "mine").await;
    put(&*local.vfs, "tenants/ab/f", "another's").await;
    put(&*local.vfs, ".gitignore", "f\n").await;
    let root = local._held[0].path().to_owned();
    std::os::unix::fs::symlink("../../secret", root.join("tenants/a/out")).unwrap();
    std::os::unix::fs::symlink("../ab", root.join("tenants/a/beside")).unwrap();
    std::os::unix::fs::symlink("f", root.join("tenants/a/inside")).unwrap();
    let scope = Scoped::new(local.vfs, p("tenants/a"));
    assert_eq!(content(&scope, "inside").await, "mine");
    assert_eq!(scope.resolve(&p("inside")).await.unwrap(), p("f"));
    assert_eq!(
        glob(&scope, "**").await.0,
        ["f"],
        "ignore files above have no say"
    );
    for path in ["out", "beside/f", "beside"] {
        let told = [
            scope.stat(&p(path)).await.map(drop),
            scope.list(&p(path)).await.map(drop),
            scope.read(&p(path), ReadRange::ALL).await.map(drop),
            scope
                .write(&p(path), "x".into(), Expect::Any)
                .await
                .map(drop),
            scope.set_mode(&p(path), 0o600).await,
            scope.resolve(&p(path)).await.map(drop),
        ];
        assert!(
            told.iter()
                .all(|told| matches!(told, Err(VfsError::Escapes(at)) if *at == p(path))),
            "{told:?}"
        );
    }
    assert!(matches!(
        scope.remove(&p("beside/f")).await,
        Err(VfsError::Escapes(_))
    ));
    assert!(matches!(
        scope.rename(&p("f"), &p("beside/g")).await,
        Err(VfsError::Escapes(_))
    ));
    let error = scope
        .read(&p("none/x"), ReadRange::ALL)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "none/x does not exist");
    scope.remove(&p("beside")).await.unwrap();
    assert_eq!(
        std::fs::read_to_string(root.join("tenants/ab/f")).unwrap(),
        "another's"
    );
}

#[tokio::test]
async fn a_scope_that_was_never_written_is_empty() {
    let scope = scoped(memory_place(), "not/yet").vfs;
    assert_eq!(scope.stat(&p("")).await.unwrap().kind, FileKind::Directory);
    assert_eq!(scope.list(&p("")).await.unwrap(), vec![]);
    assert_eq!(glob(&*scope, "**").await, (vec![], vec![]));
    assert!(matches!(
        scope.remove(&p("")).await,
        Err(VfsError::Denied(_))
    ));
}

#[tokio::test]
async fn what_lower_denies_is_uppers_alone() {
    let upper = memory_place();
    let lower = memory_place();
    put(&*lower.vfs, "own/theirs", "lower").await;
    put(&*lower.vfs, "plain/f", "lower").await;
    let rule = Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: vec!["own".to_owned()],
        mode: VerdictKind::Deny,
    };
    let hidden = Guarded::new(
        lower.vfs,
        Arc::new(Rules::new(&[rule], Protected::NONE).unwrap()),
    );
    let overlay = Overlay::new(Arc::clone(&upper.vfs), Arc::new(hidden));
    assert_eq!(
        vfs_suite::tree(&overlay).await,
        ["plain/", "plain/f \"lower\""]
    );
    assert!(matches!(
        overlay.read(&p("own/theirs"), ReadRange::ALL).await,
        Err(VfsError::Denied(_))
    ));
    // The upper layer may contain such a name, and its content can be listed, walked, searched and
    // removed.
    put(&*upper.vfs, "own/mine", "upper").await;
    assert_eq!(
        overlay.resolve(&p("own/mine")).await.unwrap(),
        p("own/mine")
    );
    let names: Vec<_> = overlay
        .list(&p("own"))
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["mine"]);
    let all = ["own/", "own/mine \"upper\"", "plain/", "plain/f \"lower\""];
    assert_eq!(vfs_suite::tree(&overlay).await, all);
    assert_eq!(
        glob(&overlay, "**").await,
        (vec!["own/mine".to_owned(), "plain/f".to_owned()], vec![])
    );
    overlay.remove(&p("plain/f")).await.unwrap();
    assert_eq!(content(&overlay, "own/mine").await, "upper");
    overlay.remove(&p("own")).await.unwrap();
    assert_eq!(vfs_suite::tree(&overlay).await, ["plain/"]);
}

#[tokio::test]
async fn read_only_is_read_only() {
    let memory = memory_place();
    put(&*memory.vfs, "d/f", "text").await;
    let vfs = Frozen::read_only(Arc::clone(&memory.vfs));
    let refused = [
        vfs.write(&p("d/f"), "x".into(), Expect::Any)
            .await
            .map(drop),
        vfs.write(&p("new"), "x".into(), Expect::Absent)
            .await
            .map(drop),
        vfs.remove(&p("d")).await,
        vfs.rename(&p("d"), &p("e")).await,
        vfs.mkdir(&p("e")).await,
        vfs.set_mode(&p("d/f"), 0o600).await,
    ];
    assert!(
        refused
            .iter()
            .all(|refused| matches!(refused, Err(VfsError::ReadOnly(_)))),
        "{refused:?}"
    );
    assert_eq!(
        vfs_suite::tree(&vfs).await,
        vfs_suite::tree(&*memory.vfs).await
    );
    assert_eq!(content(&vfs, "d/f").await, "text");
    assert_eq!(glob(&vfs, "**").await.0, ["d/f"]);
}
