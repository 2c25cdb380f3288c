//! The place for tests of paths that listings and searches leave out unless they are named.

use super::p;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::{
    Bounds, Expect, GlobQuery, GrepQuery, Guarded, LocalVfs, Protected, ReadRange, Rules, StoreVfs,
    Unlisted, VPath, Vfs,
};
use tokio_util::sync::CancellationToken;

const FILES: [&str; 5] = [
    "agents/main/s.jsonl",
    "agents.md",
    "data/agents/a.jsonl",
    "data/usage.jsonl",
    "data/x.md",
];

async fn unlisted(inner: Arc<dyn Vfs>) -> Unlisted {
    for path in FILES {
        inner
            .write(&p(path), "needle".into(), Expect::Any)
            .await
            .unwrap();
    }
    Unlisted::new(inner, ["agents", "data/agents", "data/usage.jsonl"].map(p))
}

fn bounds(limit: usize) -> Bounds {
    Bounds::new(limit, CancellationToken::new())
}

async fn glob(vfs: &dyn Vfs, root: &str, pattern: &str) -> Vec<String> {
    let query = GlobQuery {
        pattern: pattern.to_owned(),
        root: p(root),
    };
    let found = vfs.search().glob(query, bounds(9)).await.unwrap();
    assert!(!found.truncated);
    found.paths.iter().map(VPath::to_string).collect()
}

async fn grep(vfs: &dyn Vfs, root: &str, glob: Option<&str>) -> Vec<String> {
    let query = GrepQuery {
        glob: glob.map(str::to_owned),
        ..GrepQuery::new("needle", p(root))
    };
    let found = vfs.search().grep(query, bounds(9)).await.unwrap();
    found
        .files
        .iter()
        .map(|file| file.path.to_string())
        .collect()
}

/// Checks what the listings and searches of `vfs` show of [`FILES`].
async fn check_what_is_shown(vfs: &dyn Vfs) {
    #[rustfmt::skip]
    let searches: [(&str, &str, &[&str]); 10] = [
        ("", "*", &["agents.md", "data/x.md"]),
        ("", "**/*.jsonl", &[]),
        ("data", "*", &["data/x.md"]),
        ("", "a*/**", &[]),
        ("agents", "*", &["agents/main/s.jsonl"]),
        ("agents/main", "*", &["agents/main/s.jsonl"]),
        ("", "agents/**", &["agents/main/s.jsonl"]),
        ("", "./agents/main/*.jsonl", &["agents/main/s.jsonl"]),
        ("", "data/agents/*", &["data/agents/a.jsonl"]),
        ("data", "agents/a.jsonl", &["data/agents/a.jsonl"]),
    ];
    for (root, pattern, expected) in searches {
        assert_eq!(glob(vfs, root, pattern).await, expected, "{root} {pattern}");
    }
    #[rustfmt::skip]
    let greps: [(&str, Option<&str>, &[&str]); 5] = [
        ("", None, &["agents.md", "data/x.md"]),
        ("data", Some("*.jsonl"), &[]),
        ("data/usage.jsonl", None, &["data/usage.jsonl"]),
        ("", Some("data/usage.jsonl"), &["data/usage.jsonl"]),
        ("agents/main", None, &["agents/main/s.jsonl"]),
    ];
    for (root, filter, expected) in greps {
        assert_eq!(grep(vfs, root, filter).await, expected, "{root} {filter:?}");
    }
    let names = async |path: &str| -> Vec<String> {
        let listed = vfs.list(&p(path)).await.unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names("").await, ["agents.md", "data"]);
    assert_eq!(names("data").await, ["x.md"]);
    assert_eq!(names("agents").await, ["main"]);
    let walked = async |path: &str, limit: usize| {
        let walk = vfs.walk(&p(path), None, limit).await.unwrap();
        let paths: Vec<String> = walk
            .entries
            .iter()
            .map(|(path, _)| path.to_string())
            .collect();
        (paths, walk.truncated)
    };
    let all = ["agents.md", "data", "data/x.md"].map(str::to_owned);
    assert_eq!(walked("", 9).await, (all.to_vec(), false));
    assert_eq!(walked("", 2).await, (all[..2].to_vec(), true));
    assert_eq!(walked("data/agents", 9).await.0, ["data/agents/a.jsonl"]);
    let read = vfs.read(&p(FILES[0]), ReadRange::ALL).await.unwrap();
    assert_eq!(read.0, "needle", "it is left out, not closed");
}

#[tokio::test]
async fn searches_and_listings_leave_out_a_path_unless_it_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let trees: [Arc<dyn Vfs>; 2] = [
        Arc::new(LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap()),
        Arc::new(StoreVfs::in_memory()),
    ];
    for tree in trees {
        let unlisted = unlisted(tree.clone()).await;
        check_what_is_shown(&unlisted).await;
        let rules = Rules::new(&[], Protected::NONE).unwrap();
        let guarded = Guarded::new(tree, Arc::new(rules)).with_listings_of(Arc::new(unlisted));
        check_what_is_shown(&guarded).await;
    }
}

#[tokio::test]
async fn a_link_to_the_root_shows_no_more_than_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let vfs = unlisted(Arc::new(
        LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap(),
    ))
    .await;
    std::os::unix::fs::symlink(".", dir.path().join("here")).unwrap();
    assert_eq!(glob(&vfs, "here", "*.jsonl").await, Vec::<String>::new());
}
