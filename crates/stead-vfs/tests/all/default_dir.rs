//! The place for tests of the default folder: short and real names are one file, and rules
//! hold for both.

use super::p;
use std::sync::Arc;
use stead_core::{AccessKind, PathAccess, PathScope, VerdictKind};
use stead_store::OsDisk;
use stead_vfs::{
    Bounds, DefaultDirVfs, Expect, GlobQuery, Guarded, LocalVfs, Protected, ReadRange, Rule, Rules,
    StoreVfs, VPath, Vfs, VfsError, judge_accesses,
};
use tokio_util::sync::CancellationToken;

const TOPS: [&str; 5] = ["agent", "config", "data", "memory", "workspace"];

fn homed(inner: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
    Arc::new(DefaultDirVfs::new(inner, p("workspace"), TOPS))
}

async fn write(vfs: &dyn Vfs, path: &str) {
    vfs.write(&p(path), path.to_owned().into(), Expect::Any)
        .await
        .unwrap();
}

async fn all(vfs: &dyn Vfs) -> Vec<String> {
    let walk = vfs.walk(&VPath::root(), None, 100).await.unwrap();
    walk.entries
        .into_iter()
        .map(|(path, _)| path.to_string())
        .collect()
}

#[tokio::test]
async fn a_path_lies_where_its_first_name_says() {
    let inner: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    write(&*inner, "old/there.md").await;
    write(&*inner, "README.md").await;
    let vfs = homed(inner.clone());
    for (path, real) in [
        ("notes.md", "workspace/notes.md"),
        ("deep/down/a.md", "workspace/deep/down/a.md"),
        ("workspace/own.md", "workspace/own.md"),
        ("agent/HEARTBEAT.md", "agent/HEARTBEAT.md"),
        ("data/x", "data/x"),
        ("database/x", "workspace/database/x"),
        ("old/new.md", "old/new.md"),
        ("README.md", "README.md"),
        ("", ""),
    ] {
        assert_eq!(vfs.resolve(&p(path)).await.unwrap(), p(real), "{path}");
    }
    for path in ["notes.md", "deep/a.md", "old/new.md", "memory/x.md"] {
        write(&*vfs, path).await;
        assert_eq!(
            vfs.read(&p(path), ReadRange::ALL).await.unwrap().0,
            path,
            "what was written is read by its name"
        );
    }
    let expected = [
        "README.md",
        "memory",
        "memory/x.md",
        "old",
        "old/new.md",
        "old/there.md",
        "workspace",
        "workspace/deep",
        "workspace/deep/a.md",
        "workspace/notes.md",
    ];
    assert_eq!(all(&*inner).await, expected);
    assert_eq!(all(&*vfs).await, expected, "the root is shown as it is");
    let names: Vec<String> = vfs
        .list(&p("deep"))
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["a.md"]);
    let walk = vfs.walk(&p("deep"), None, 10).await.unwrap();
    assert_eq!(walk.entries[0].0, p("deep/a.md"), "as it was asked for");
}

#[tokio::test]
async fn moves_removals_and_errors_speak_of_the_names_given() {
    let inner: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    let vfs = homed(inner.clone());
    write(&*vfs, "a/one").await;
    vfs.rename(&p("a/one"), &p("data/one")).await.unwrap();
    vfs.rename(&p("data/one"), &p("b")).await.unwrap();
    assert_eq!(
        all(&*inner).await,
        ["data", "workspace", "workspace/a", "workspace/b"]
    );
    let gone = vfs.read(&p("c/d"), ReadRange::ALL).await.unwrap_err();
    assert!(
        matches!(&gone, VfsError::NotFound(path) if *path == p("c/d")),
        "{gone}"
    );
    let taken = vfs.rename(&p("workspace/b"), &p("a")).await.unwrap_err();
    assert!(
        matches!(&taken, VfsError::Exists(path) if *path == p("a")),
        "{taken}"
    );
    let below_file = vfs
        .write(&p("b/c"), "x".into(), Expect::Any)
        .await
        .unwrap_err();
    assert!(
        matches!(&below_file, VfsError::NotDirectory(path) if *path == p("b/c")),
        "{below_file}"
    );
    vfs.remove(&p("a")).await.unwrap();
    vfs.remove(&p("b")).await.unwrap();
    assert_eq!(all(&*inner).await, ["data", "workspace"]);
}

#[tokio::test]
async fn a_link_at_the_root_that_leads_nowhere_is_there() {
    let temp = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("gone", temp.path().join("lost")).unwrap();
    let vfs = homed(Arc::new(
        LocalVfs::open(temp.path(), Arc::new(OsDisk)).unwrap(),
    ));
    vfs.remove(&p("lost")).await.unwrap();
    assert!(temp.path().join("lost").symlink_metadata().is_err());
}

#[tokio::test]
async fn rules_hold_for_the_real_path_whatever_it_is_called() {
    let deny = |kind, path: &str| Rule {
        operations: vec![kind],
        paths: vec![path.to_owned()],
        mode: VerdictKind::Deny,
    };
    let rules = [
        deny(AccessKind::Read, "workspace/box/secret"),
        deny(AccessKind::Write, "workspace/fixed"),
        deny(AccessKind::Write, "short"),
    ];
    let rules = Arc::new(
        Rules::new(
            &rules,
            Protected::workspace("data").with_unwritable(&[
                "config",
                "data",
                "memory/logs",
                "memory/conversations",
            ]),
        )
        .unwrap(),
    );
    let inner: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    for path in [
        "workspace/box/secret",
        "workspace/box/open",
        "workspace/fixed",
        "memory/logs/a",
        "config/agent.yaml",
    ] {
        write(&*inner, path).await;
    }
    let homed = homed(inner.clone());
    let guarded = Guarded::new(homed.clone(), rules.clone());
    let access = |kind, path: &str, scope| PathAccess {
        kind,
        path: path.to_owned(),
        scope,
    };
    for (kind, path, reach, expected) in [
        (
            AccessKind::Read,
            "box/secret",
            PathScope::Content,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Read,
            "box/open",
            PathScope::Content,
            VerdictKind::Allow,
        ),
        (
            AccessKind::Write,
            "fixed",
            PathScope::Content,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Write,
            "short",
            PathScope::Content,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Write,
            "other",
            PathScope::Content,
            VerdictKind::Allow,
        ),
        (AccessKind::Read, "box", PathScope::Tree, VerdictKind::Deny),
        (
            AccessKind::Write,
            "memory/logs/b",
            PathScope::Content,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Write,
            "memory/notes",
            PathScope::Content,
            VerdictKind::Allow,
        ),
        (
            AccessKind::Write,
            "memory",
            PathScope::Tree,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Write,
            "config/agent.yaml",
            PathScope::Content,
            VerdictKind::Deny,
        ),
        (
            AccessKind::Write,
            "fixed",
            PathScope::Arrival {
                from: "box".to_owned(),
            },
            VerdictKind::Deny,
        ),
    ] {
        let verdict = judge_accesses(&rules, &*homed, &[access(kind, path, reach.clone())])
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            verdict.kind, expected,
            "{kind:?} {path} {reach:?}: {}",
            verdict.reason
        );
    }
    // Moving the folder would make denied files readable.
    assert!(matches!(
        guarded.rename(&p("box"), &p("chest")).await,
        Err(VfsError::Denied(_))
    ));
    let bounds = Bounds::new(9, CancellationToken::new());
    let query = GlobQuery {
        pattern: "**".to_owned(),
        root: p("box"),
    };
    let found = guarded.search().glob(query, bounds).await.unwrap();
    assert_eq!(found.paths, [p("workspace/box/open")]);
}
