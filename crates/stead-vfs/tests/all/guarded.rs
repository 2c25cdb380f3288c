//! The place for tests of guarded files: hidden paths leave no trace, read and write rights,
//! limits, nested guards.

use super::{World, p};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use stead_vfs::{
    Bounds, Expect, GlobQuery, GrepMode, GrepQuery, Guarded, LineRange, Protected, ReadRange, Rule,
    Rules, Search, Syntax, VPath, Vfs, VfsError, Visible,
};
use tokio_util::sync::CancellationToken;

const READ: &[AccessKind] = &[AccessKind::Read];
const WRITE: &[AccessKind] = &[AccessKind::Write];

fn guarded(inner: Arc<dyn Vfs>, rules: &[(&[AccessKind], &str, VerdictKind)]) -> Guarded {
    let rule = |(operations, path, mode): &(&[AccessKind], &str, VerdictKind)| Rule {
        operations: operations.to_vec(),
        paths: vec![(*path).to_owned()],
        mode: *mode,
    };
    let rules: Vec<Rule> = rules.iter().map(rule).collect();
    Guarded::new(
        inner,
        Arc::new(
            Rules::new(
                &rules,
                Protected::workspace("")
                    .with_unwritable(&[
                        "agent.yaml",
                        "tools.json",
                        ".stead",
                        "hooks",
                        "crons",
                        "profiles",
                        "agents",
                    ])
                    .with_quarantine("memory/quarantine"),
            )
            .unwrap(),
        ),
    )
}

/// Returns the result of every operation on `path` in one word.
async fn answers(vfs: &dyn Vfs, path: &VPath) -> Vec<String> {
    let word = |result: Result<(), VfsError>| match result {
        Ok(()) => "ok".to_owned(),
        Err(VfsError::Denied(about)) => format!("denied {about}"),
        Err(error) => error.to_string(),
    };
    let lines = LineRange {
        skip: 0,
        take: 1,
        max_line_bytes: 9,
        max_bytes: 9,
    };
    let glob = GlobQuery {
        pattern: "**".to_owned(),
        root: path.clone(),
    };
    vec![
        word(vfs.stat(path).await.map(drop)),
        word(vfs.read(path, ReadRange::ALL).await.map(drop)),
        word(vfs.read_lines(path, lines).await.map(drop)),
        word(vfs.list(path).await.map(drop)),
        word(vfs.walk(path, None, 9).await.map(drop)),
        vfs.search()
            .glob(glob, bounds(9))
            .await
            .map_or_else(|e| e.to_string(), |_| "ok".to_owned()),
        word(vfs.write(path, "new".into(), Expect::Any).await.map(drop)),
        word(vfs.set_mode(path, 0o600).await),
        word(vfs.mkdir(path).await),
        word(vfs.rename(path, &p("elsewhere")).await),
        word(vfs.remove(path).await),
    ]
}

fn bounds(limit: usize) -> Bounds {
    Bounds::new(limit, CancellationToken::new())
}

#[tokio::test]
async fn every_operation_answers_the_same_whether_a_denied_path_exists_or_not() {
    let world = World::new();
    world.put("s/file", "text");
    world.put("s/dir/x", "text");
    world.link("way", "s");
    let both: &[AccessKind] = &[AccessKind::Read, AccessKind::Write];
    let vfs = guarded(
        Arc::new(world.vfs.clone()),
        &[(both, "s/**", VerdictKind::Deny)],
    );
    for directory in ["s", "way"] {
        for name in [
            "file",
            "dir",
            "dir/x",
            "missing",
            "file/below",
            "missing/below/deep",
            "file/below/deep",
        ] {
            let path = p(&format!("{directory}/{name}"));
            let denied = format!("denied {path}");
            for (at, answer) in answers(&vfs, &path).await.into_iter().enumerate() {
                assert!(
                    answer == denied || answer == format!("permission denied for {path}"),
                    "{at} {path}: {answer}"
                );
            }
            assert!(
                matches!(vfs.resolve(&path).await, Err(VfsError::Denied(_))),
                "{path}"
            );
            assert!(
                matches!(vfs.rename(&p("way"), &path).await, Err(VfsError::Denied(_))),
                "{path}"
            );
        }
    }
    assert_eq!(world.names(), ["s", "s/dir", "s/dir/x", "s/file", "way"]);
}

#[tokio::test]
async fn reading_and_writing_are_rights_of_their_own() {
    let world = World::new();
    world.put("drop/old", "text");
    world.put("fixed/f", "text");
    let rules = [
        (READ, "drop", VerdictKind::Deny),
        (WRITE, "fixed", VerdictKind::Deny),
    ];
    let vfs = guarded(Arc::new(world.vfs.clone()), &rules);
    vfs.write(&p("drop/new/deep"), "x".into(), Expect::Absent)
        .await
        .unwrap();
    vfs.mkdir(&p("drop/made")).await.unwrap();
    assert_eq!(vfs.resolve(&p("drop/old")).await.unwrap(), p("drop/old"));
    assert!(matches!(
        vfs.stat(&p("drop/new/deep")).await,
        Err(VfsError::Denied(_))
    ));
    // The content could be read at its new path.
    assert!(matches!(
        vfs.rename(&p("drop/old"), &p("here")).await,
        Err(VfsError::Denied(_))
    ));
    vfs.remove(&p("drop/old")).await.unwrap();
    vfs.read(&p("fixed/f"), ReadRange::ALL).await.unwrap();
    for refused in [
        vfs.set_mode(&p("fixed/f"), 0o777).await,
        vfs.mkdir(&p("fixed/d/e")).await,
        vfs.rename(&p("fixed/f"), &p("free")).await,
        vfs.rename(&p("drop/made"), &p("fixed/d")).await,
        vfs.remove(&p("fixed")).await,
    ] {
        assert!(matches!(refused, Err(VfsError::Denied(_))), "{refused:?}");
    }
    assert_eq!(
        world.names(),
        [
            "drop",
            "drop/made",
            "drop/new",
            "drop/new/deep",
            "fixed",
            "fixed/f"
        ]
    );
}

#[tokio::test]
async fn what_is_hidden_uses_up_no_limit() {
    let world = World::new();
    for i in 0..1500 {
        world.put(&format!("d/a{i:04}"), "x");
    }
    ["d/z1", "d/z2", "d/z3"]
        .iter()
        .for_each(|name| world.put(name, "x"));
    let vfs = guarded(
        Arc::new(world.vfs.clone()),
        &[(READ, "d/a*", VerdictKind::Deny)],
    );
    for (limit, expected, truncated) in [(0, 0, true), (2, 2, true), (3, 3, false), (4, 3, false)] {
        let walk = vfs.walk(&p("d"), None, limit).await.unwrap();
        let names: Vec<&str> = walk.entries.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            (names, walk.truncated),
            (["d/z1", "d/z2", "d/z3"][..expected].to_vec(), truncated),
            "{limit}"
        );
        let query = GlobQuery {
            pattern: "**".to_owned(),
            root: p("d"),
        };
        let found = vfs.glob(query, bounds(limit)).await.unwrap();
        assert_eq!(
            (found.paths.len(), found.truncated, found.needs_approval),
            (expected, truncated, 0),
            "{limit}"
        );
    }
}

#[tokio::test]
async fn guards_within_guards_and_filters_all_hold() {
    let world = World::new();
    ["a", "b", "c", "d", "e"]
        .iter()
        .for_each(|name| world.put(name, "needle"));
    let inner = guarded(
        Arc::new(world.vfs.clone()),
        &[
            (READ, "a", VerdictKind::Deny),
            (READ, "e", VerdictKind::Ask),
        ],
    );
    let outer = guarded(
        Arc::new(inner),
        &[
            (READ, "b", VerdictKind::Deny),
            (READ, "d", VerdictKind::Ask),
        ],
    );
    let query = GrepQuery {
        syntax: Syntax::Literal,
        mode: GrepMode::Files,
        ..GrepQuery::new("needle", VPath::root())
    };
    let found = outer.grep(query.clone(), bounds(9)).await.unwrap();
    let paths = |files: &[stead_vfs::FileMatches]| {
        files.iter().map(|f| f.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (paths(&found.files), found.needs_approval),
        (vec!["c".to_owned()], 2)
    );
    let not_c = Bounds {
        visible: Visible::If(Arc::new(|path| path != "c")),
        ..bounds(9)
    };
    assert_eq!(outer.grep(query.clone(), not_c).await.unwrap().files, []);
    // The approval was for exactly this file.
    let one = outer
        .grep(
            GrepQuery {
                root: p("d"),
                ..query
            },
            bounds(9),
        )
        .await
        .unwrap();
    assert_eq!(
        (paths(&one.files), one.needs_approval),
        (vec!["d".to_owned()], 0)
    );
    assert!(matches!(
        outer.rename(&p("a"), &p("x")).await,
        Err(VfsError::Denied(_))
    ));
}

#[tokio::test]
async fn a_tree_that_cannot_be_judged_stays() {
    let world = World::new();
    let vfs = guarded(Arc::new(world.vfs.clone()), &[]);
    world.put("odd/x", "x");
    std::fs::create_dir(world.root().join("odd").join(OsStr::from_bytes(b"\xff"))).unwrap();
    std::fs::write(
        world
            .root()
            .join("odd")
            .join(OsStr::from_bytes(b"\xff/.env")),
        "key",
    )
    .unwrap();
    assert!(matches!(vfs.remove(&p("odd")).await, Err(VfsError::Denied(path)) if path == p("odd")));
    std::fs::create_dir(world.root().join("big")).unwrap();
    for i in 0..50_001 {
        std::fs::File::create(world.root().join(format!("big/{i}"))).unwrap();
    }
    assert!(matches!(vfs.remove(&p("big")).await, Err(VfsError::Denied(path)) if path == p("big")));
    std::fs::remove_file(world.root().join("big/0")).unwrap();
    vfs.rename(&p("big"), &p("bigger")).await.unwrap();
    vfs.remove(&p("bigger")).await.unwrap();
}

#[tokio::test]
async fn a_link_out_of_the_place_can_be_cleared_away_but_not_followed() {
    let world = World::new();
    world.link("venv/python", "/usr/bin/python3");
    world.link("loop", "loop");
    let vfs = guarded(Arc::new(world.vfs.clone()), &[]);
    assert!(matches!(
        vfs.stat(&p("venv/python")).await,
        Err(VfsError::Escapes(_))
    ));
    assert!(
        vfs.write(&p("loop"), "x".into(), Expect::Any)
            .await
            .is_err()
    );
    vfs.rename(&p("loop"), &p("circle")).await.unwrap();
    vfs.remove(&p("circle")).await.unwrap();
    vfs.remove(&p("venv")).await.unwrap();
    assert_eq!(world.names(), Vec::<String>::new());
}
