//! Every operation on every kind of path, and every move between them.
//!
//! Effects: test support.

use super::op::{self, VfsOp, p};
use super::oracle::{VfsOracle, WriteExpectation};
use super::oracle_search::{AnyCase, Needle, SearchReport};
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use stead_vfs::{Expect, LineRange, ReadRange, Vfs};

/// The paths of the cases. [`prepare`] creates what is at each of them.
const PATHS: [&str; 16] = [
    "file",
    "empty",
    "dir",
    "dir/inner",
    "dir/inner/through",
    "dir/new",
    "dir/sub",
    "twin",
    "twin/twin",
    "hollow",
    "none",
    "none/below/deep",
    "file/through",
    "file/through/deep",
    ".dot",
    "ünï/日本 1.txt",
];

/// The number of parallel cases. Each is in its own directory, so they do not affect each other.
const CASES_AT_ONCE: usize = 8;

/// Returns the operations that only read.
fn looks(path: &str) -> Vec<VfsOp> {
    let path = || path.to_owned();
    let range = LineRange {
        skip: 0,
        take: 2,
        max_line_bytes: 4,
        max_bytes: 100,
    };
    let mut ops = vec![
        VfsOp::Stat(path()),
        VfsOp::List(path()),
        VfsOp::Lines {
            path: path(),
            range,
        },
        VfsOp::Lines {
            path: path(),
            range: LineRange { skip: 1, ..range },
        },
        VfsOp::Resolve(path()),
        VfsOp::Glob {
            pattern: "**".into(),
            root: path(),
            limit: 100,
        },
        VfsOp::Glob {
            pattern: ".*".into(),
            root: path(),
            limit: 1,
        },
    ];
    ops.extend(
        [(0, u64::MAX), (0, 0), (2, 3), (99, 1)].map(|(offset, len)| VfsOp::Read {
            path: path(),
            offset,
            len,
        }),
    );
    ops.extend([0, 1, 100].map(|limit| VfsOp::Walk {
        path: path(),
        after: None,
        limit,
    }));
    ops.push(VfsOp::Walk {
        path: path(),
        after: Some(format!("{}/inner", path())),
        limit: 100,
    });
    ops.extend(
        [
            SearchReport::Lines(1),
            SearchReport::Files,
            SearchReport::Count,
        ]
        .map(|report| VfsOp::Grep {
            needle: Needle::Contains("ne"),
            any_case: AnyCase::No,
            report,
            glob: None,
            root: path(),
            limit: 10,
        }),
    );
    ops
}

/// Returns the operations that change something, repeated where the second time differs.
fn changes(path: &str) -> Vec<Vec<VfsOp>> {
    let content: Arc<[u8]> = Arc::from(&b"new\n"[..]);
    let wants = [
        WriteExpectation::Any,
        WriteExpectation::Absent,
        WriteExpectation::Current,
        WriteExpectation::Stale,
        WriteExpectation::Foreign,
    ];
    let write = |want| VfsOp::Write {
        path: path.to_owned(),
        content: Arc::clone(&content),
        want,
    };
    let mut all: Vec<Vec<VfsOp>> = wants.map(|want| vec![write(want)]).into();
    all.push(vec![
        VfsOp::Remove(path.to_owned()),
        VfsOp::Remove(path.to_owned()),
        write(WriteExpectation::Absent),
    ]);
    all.push(vec![
        VfsOp::Mkdir(path.to_owned()),
        VfsOp::Mkdir(path.to_owned()),
        write(WriteExpectation::Any),
    ]);
    let set_mode = VfsOp::SetMode {
        path: path.to_owned(),
        mode: 0o750,
    };
    all.push(vec![
        set_mode,
        VfsOp::Stat(path.to_owned()),
        write(WriteExpectation::Current),
        VfsOp::Stat(path.to_owned()),
    ]);
    all
}

/// Runs some hundred cases, each in its own directory. Leaves the place empty.
pub async fn cases(vfs: Arc<dyn Vfs>) {
    let vfs = &*vfs;
    at_the_root(vfs).await;
    let mut oracle = prepare(vfs, "looks").await;
    for path in PATHS {
        for op in looks(&format!("looks/{path}")) {
            compare(vfs, &mut oracle, &op).await;
        }
    }
    let changes = PATHS.into_iter().flat_map(|path| {
        let moves = PATHS.map(|to| {
            vec![VfsOp::Rename {
                from: path.into(),
                to: to.into(),
            }]
        });
        changes(path).into_iter().chain(moves)
    });
    let cases = changes
        .enumerate()
        .map(|(number, ops)| case(vfs, number, ops));
    stream::iter(cases)
        .buffer_unordered(CASES_AT_ONCE)
        .collect::<()>()
        .await;
    vfs.remove(&p("looks")).await.unwrap();
    assert_eq!(super::tree(vfs).await, Vec::<String>::new());
    long_names(vfs).await;
}

async fn case(vfs: &dyn Vfs, number: usize, ops: Vec<VfsOp>) {
    let name = &format!("case{number}");
    let mut oracle = prepare(vfs, name).await;
    for op in ops {
        compare(vfs, &mut oracle, &moved(op, name)).await;
    }
    compare(
        vfs,
        &mut oracle,
        &VfsOp::Walk {
            path: name.clone(),
            after: None,
            limit: 100,
        },
    )
    .await;
    vfs.remove(&p(name)).await.unwrap();
}

/// Returns the operation with its paths inside a directory.
fn moved(op: VfsOp, directory: &str) -> VfsOp {
    let within = |path: String| format!("{directory}/{path}");
    match op {
        VfsOp::Write {
            path,
            content,
            want,
        } => VfsOp::Write {
            path: within(path),
            content,
            want,
        },
        VfsOp::Remove(path) => VfsOp::Remove(within(path)),
        VfsOp::Mkdir(path) => VfsOp::Mkdir(within(path)),
        VfsOp::Stat(path) => VfsOp::Stat(within(path)),
        VfsOp::SetMode { path, mode } => VfsOp::SetMode {
            path: within(path),
            mode,
        },
        VfsOp::Rename { from, to } => VfsOp::Rename {
            from: within(from),
            to: within(to),
        },
        other => panic!("{other:?} is not in the table of changes"),
    }
}

async fn prepare(vfs: &dyn Vfs, name: &str) -> VfsOracle {
    let mut oracle = VfsOracle::default();
    let files = [
        ("file", "one\ntwo\nthree lines"),
        ("empty", ""),
        ("dir/inner", "inner\n"),
        ("dir/sub/deep/leaf", "leaf\nline\n"),
        ("twin/twin/twin/leaf", "line\n"),
        (".dot", "none\n"),
        ("ünï/日本 1.txt", "本\r\nline\r\n"),
    ];
    for (path, content) in files {
        let content = Arc::from(content.as_bytes());
        compare(
            vfs,
            &mut oracle,
            &VfsOp::Write {
                path: format!("{name}/{path}"),
                content,
                want: WriteExpectation::Absent,
            },
        )
        .await;
    }
    compare(vfs, &mut oracle, &VfsOp::Mkdir(format!("{name}/hollow"))).await;
    oracle
}

async fn compare(vfs: &dyn Vfs, oracle: &mut VfsOracle, op: &VfsOp) {
    let answer = op::on_place(vfs, op, oracle).await;
    assert_eq!(answer, op::on_oracle(oracle, op), "{op:?}");
}

async fn at_the_root(vfs: &dyn Vfs) {
    let mut oracle = VfsOracle::default();
    let root = String::new;
    let mut ops = looks("");
    // The path of the last walk does not exist here.
    ops.retain(|op| !matches!(op, VfsOp::Walk { after: Some(_), .. }));
    ops.push(VfsOp::Write {
        path: "f".into(),
        content: Arc::from(&b"f"[..]),
        want: WriteExpectation::Absent,
    });
    ops.extend(changes("").into_iter().flatten());
    ops.extend(
        [("", "f"), ("", ""), ("", "g/h"), ("f", "")].map(|(from, to)| VfsOp::Rename {
            from: from.into(),
            to: to.into(),
        }),
    );
    ops.extend([
        VfsOp::List(root()),
        VfsOp::Remove("f".into()),
        VfsOp::List(root()),
    ]);
    for op in ops {
        compare(vfs, &mut oracle, &op).await;
    }
}

/// Tests names and paths of the maximum length that every place must support.
async fn long_names(vfs: &dyn Vfs) {
    let names = [
        "n".repeat(255),
        "ü".repeat(127),
        "x".repeat(255),
        "f".repeat(200),
    ];
    let path = p(&names.join("/"));
    let version = vfs
        .write(&path, "far".into(), Expect::Absent)
        .await
        .unwrap();
    assert_eq!(
        vfs.read(&path, ReadRange::ALL).await.unwrap(),
        ("far".into(), version)
    );
    let entries = vfs.list(&path.parent().unwrap()).await.unwrap();
    assert_eq!(
        entries
            .iter()
            .map(|entry| entry.name.clone())
            .collect::<Vec<_>>(),
        [names[3].clone()]
    );
    vfs.remove(&p(&names[0])).await.unwrap();
}
