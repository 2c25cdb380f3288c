//! The place for tests of frozen files: reads pass, writes are refused except to one file.

use super::{World, p};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_vfs::{
    DefaultDirVfs, Expect, Freeze, Frozen, LocalVfs, ReadRange, StoreVfs, Vfs, VfsError,
};

type Change = (
    &'static str,
    for<'a> fn(&'a dyn Vfs) -> BoxFuture<'a, Result<(), VfsError>>,
);

const CHANGES: [Change; 8] = [
    ("write", |vfs| {
        Box::pin(async {
            vfs.write(&p("new"), "x".into(), Expect::Any)
                .await
                .map(drop)
        })
    }),
    ("overwrite", |vfs| {
        Box::pin(async {
            vfs.write(&p("old"), "x".into(), Expect::Any)
                .await
                .map(drop)
        })
    }),
    ("stream", |vfs| {
        Box::pin(async {
            let pieces = Box::pin(futures_util::stream::iter(["x".into()]));
            vfs.write_stream(&p("new"), pieces).await.map(drop)
        })
    }),
    ("remove", |vfs| {
        Box::pin(async { vfs.remove(&p("old")).await })
    }),
    ("rename", |vfs| {
        Box::pin(async { vfs.rename(&p("old"), &p("new")).await })
    }),
    ("rename the one file", |vfs| {
        Box::pin(async { vfs.rename(&p("plans/PLAN.md"), &p("new")).await })
    }),
    ("mkdir", |vfs| {
        Box::pin(async { vfs.mkdir(&p("folder")).await })
    }),
    ("set_mode", |vfs| {
        Box::pin(async { vfs.set_mode(&p("old"), 0o600).await })
    }),
];

// The files refuse changes even if the gate fails to.
#[tokio::test]
async fn while_it_is_frozen_nothing_changes_but_the_one_file() {
    let inner: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
    for path in ["old", "plans/PLAN.md"] {
        inner
            .write(&p(path), "before".into(), Expect::Any)
            .await
            .unwrap();
    }
    let freeze = Freeze::default();
    let vfs = Frozen::new(inner.clone(), freeze.clone());
    freeze.set(Some(p("plans/PLAN.md")));
    for (name, change) in CHANGES {
        let refused = change(&vfs).await;
        assert!(
            matches!(refused, Err(VfsError::ReadOnly(_))),
            "{name}: {refused:?}"
        );
    }
    vfs.write(&p("plans/PLAN.md"), "1. look".into(), Expect::Any)
        .await
        .unwrap();
    let walk = vfs.walk(&p(""), None, 10).await.unwrap();
    let found: Vec<String> = walk
        .entries
        .iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(found, ["old", "plans", "plans/PLAN.md"]);
    assert_eq!(
        vfs.read(&p("old"), ReadRange::ALL).await.unwrap().0,
        "before"
    );
    freeze.set(None);
    vfs.write(&p("new"), "after".into(), Expect::Absent)
        .await
        .unwrap();
}

#[tokio::test]
async fn the_one_file_may_lie_in_a_home_but_not_behind_a_link() {
    let world = World::new();
    std::fs::write(world.root().join("AGENTS.md"), "rules").unwrap();
    std::fs::create_dir(world.root().join("plans")).unwrap();
    std::os::unix::fs::symlink("../AGENTS.md", world.root().join("plans/PLAN.md")).unwrap();
    let local: Arc<dyn Vfs> =
        Arc::new(LocalVfs::open(&world.root(), Arc::new(stead_store::OsDisk)).unwrap());
    let freeze = Freeze::default();
    freeze.set(Some(p("plans/PLAN.md")));
    let linked = Frozen::new(local, freeze.clone());
    let refused = linked
        .write(&p("plans/PLAN.md"), "x".into(), Expect::Any)
        .await;
    assert!(matches!(refused, Err(VfsError::ReadOnly(_))), "{refused:?}");
    assert_eq!(
        std::fs::read_to_string(world.root().join("AGENTS.md")).unwrap(),
        "rules"
    );
    let homed = Arc::new(DefaultDirVfs::new(
        Arc::new(StoreVfs::in_memory()),
        p("workspace"),
        ["data"],
    ));
    let vfs = Frozen::new(homed, freeze);
    vfs.write(&p("plans/PLAN.md"), "x".into(), Expect::Any)
        .await
        .unwrap();
}
