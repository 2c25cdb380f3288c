//! A thousand random operations, each compared with the oracle.
//!
//! Effects: test support.

use super::op::{self, VfsOp, bytes_text, p};
use super::oracle::{OracleNode, VfsOracle, WriteExpectation};
use super::oracle_search::{AnyCase, Needle, SearchReport};
use super::rng::Rng;
use std::fmt;
use std::sync::Arc;
use stead_vfs::{FileKind, LineRange, ReadRange, Vfs};

/// The answers of a place to a script, and its final tree. They are equal for equal seeds on every
/// place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The operations with their answers.
    pub answers: Vec<String>,
    /// The paths with their contents.
    pub tree: Vec<String>,
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.answers
            .iter()
            .chain(&self.tree)
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Performs `operations` random operations, determined by `seed`, on an empty place. Every answer
/// and error must equal the oracle's.
pub async fn script(vfs: &dyn Vfs, seed: u64, operations: usize) -> Transcript {
    script_from(vfs, VfsOracle::default(), seed, operations).await
}

/// Performs a script on a place with the content of `oracle`.
pub async fn script_from(
    vfs: &dyn Vfs,
    mut oracle: VfsOracle,
    seed: u64,
    operations: usize,
) -> Transcript {
    let mut rng = Rng::new(seed);
    let mut answers = Vec::with_capacity(operations);
    for number in 0..operations {
        let op = random(&mut rng, &oracle);
        let answer = op::on_place(vfs, &op, &oracle).await;
        let expected = op::on_oracle(&mut oracle, &op);
        assert_eq!(
            answer,
            expected,
            "seed {seed}, operation {number}: {}",
            op_text(&op)
        );
        answers.push(format!("{} => {answer}", op_text(&op)));
    }
    let expected = Transcript {
        answers: Vec::new(),
        tree: oracle_tree(&oracle),
    };
    let tree = tree(vfs).await;
    assert_eq!(tree, expected.tree, "seed {seed}: another tree");
    Transcript { answers, tree }
}

/// Returns the content of a place as an oracle.
pub async fn oracle_of(vfs: &dyn Vfs) -> VfsOracle {
    let mut oracle = VfsOracle::default();
    for (path, entry) in vfs.walk(&p(""), None, usize::MAX).await.unwrap().entries {
        let node = match entry.kind {
            FileKind::Directory => OracleNode::Directory,
            FileKind::File => {
                let (content, _) = vfs.read(&path, ReadRange::ALL).await.unwrap();
                OracleNode::File {
                    content: content.to_vec().into(),
                    mode: None,
                }
            }
            FileKind::Other => panic!("{path} is neither a file nor a directory"),
        };
        oracle.nodes.insert(path.as_str().to_owned(), node);
    }
    oracle
}

/// Returns every path of a place with its content.
pub async fn tree(vfs: &dyn Vfs) -> Vec<String> {
    oracle_tree(&oracle_of(vfs).await)
}

fn oracle_tree(oracle: &VfsOracle) -> Vec<String> {
    let shown = oracle.nodes.iter().map(|(path, node)| match node {
        OracleNode::Directory => format!("{path}/"),
        OracleNode::File { content, .. } => format!("{path} {}", bytes_text(content)),
    });
    shown.collect()
}

/// Writes random files, some of them in a few directories, for example below an overlay.
pub async fn scatter(vfs: &dyn Vfs, seed: u64, files: usize) {
    let mut rng = Rng::new(seed);
    let mut oracle = VfsOracle::default();
    for _ in 0..files {
        let path = path(&mut rng, &oracle);
        let op = VfsOp::Write {
            content: content(&mut rng, &path),
            path,
            want: WriteExpectation::Any,
        };
        op::on_place(vfs, &op, &oracle).await;
        op::on_oracle(&mut oracle, &op);
    }
}

fn op_text(op: &VfsOp) -> String {
    match op {
        VfsOp::Write {
            path,
            content,
            want,
        } => format!("Write {path:?} {} {want:?}", bytes_text(content)),
        other => format!("{other:?}"),
    }
}

const NAMES: [&str; 16] = [
    "a",
    "b",
    "c",
    "sub",
    "deep",
    "x y",
    "ünï",
    "-dash",
    "d.rs",
    "e.txt",
    "keep.log",
    "f.log",
    ".hid",
    ".gitignore",
    ".ignore",
    "a-b",
];
const RULES: [&str; 8] = [
    "*.log\n",
    "*.log\n!keep.log\n",
    "/a\n",
    "sub/\n",
    "deep/*.txt\n",
    "# none\n\n",
    "*.rs\n!/d.rs\n",
    "**/b\n",
];
const PATTERNS: [&str; 16] = [
    "**",
    "*",
    "*.rs",
    "*.{rs,txt}",
    "a/**",
    "**/b",
    "/*",
    "./a",
    "[!a]*",
    "sub/*",
    ".*",
    "**/.hid",
    "?",
    "a/*/c",
    "none*",
    "{a,b}/**/*.txt",
];
const WORDS: [&str; 6] = ["alpha", "Beta", "gamma delta", "ünï", "", "x"];

fn random(rng: &mut Rng, oracle: &VfsOracle) -> VfsOp {
    let limit = |rng: &mut Rng| [0, 1, 2, 3, 10, 1000][rng.below(6)];
    match rng.below(100) {
        0..30 => {
            let want = [
                WriteExpectation::Any,
                WriteExpectation::Any,
                WriteExpectation::Absent,
                WriteExpectation::Current,
                WriteExpectation::Current,
                WriteExpectation::Stale,
                WriteExpectation::Foreign,
            ];
            let path = path(rng, oracle);
            VfsOp::Write {
                content: content(rng, &path),
                path,
                want: want[rng.below(7)],
            }
        }
        30..38 => {
            let offset = [0, 1, 7, 100_000, 600_000][rng.below(5)];
            let len = [0, 5, 70_000, u64::MAX][rng.below(4)];
            VfsOp::Read {
                path: path(rng, oracle),
                offset,
                len,
            }
        }
        38..44 => {
            let range = LineRange {
                skip: rng.below(4) as u64,
                take: rng.below(5),
                max_line_bytes: [3, 40, 1000][rng.below(3)],
                max_bytes: [1, 50, 100_000][rng.below(3)],
            };
            VfsOp::Lines {
                path: path(rng, oracle),
                range,
            }
        }
        44..50 => VfsOp::Stat(path(rng, oracle)),
        50..56 => VfsOp::List(path(rng, oracle)),
        56..61 => {
            let after = (rng.below(2) == 0).then(|| path(rng, oracle));
            VfsOp::Walk {
                path: directory(rng, oracle),
                after,
                limit: limit(rng),
            }
        }
        61..67 => VfsOp::Remove(path(rng, oracle)),
        67..77 => {
            let from = path(rng, oracle);
            let to = match rng.below(8) {
                0 => format!("{from}/{}", NAMES[rng.below(NAMES.len())]),
                1 => from.clone(),
                _ => path(rng, oracle),
            };
            VfsOp::Rename { from, to }
        }
        77..82 => VfsOp::Mkdir(path(rng, oracle)),
        82..85 => VfsOp::SetMode {
            path: path(rng, oracle),
            mode: [0o600, 0o640, 0o755, 0o700][rng.below(4)],
        },
        85..87 => VfsOp::Resolve(path(rng, oracle)),
        87..93 => VfsOp::Glob {
            pattern: rng.pick(&PATTERNS).to_owned(),
            root: directory(rng, oracle),
            limit: limit(rng),
        },
        _ => {
            let needles = [
                Needle::Contains("a"),
                Needle::Begins("alpha"),
                Needle::Ends("Beta"),
                Needle::Contains("ÜN"),
            ];
            VfsOp::Grep {
                needle: needles[rng.below(4)],
                any_case: [AnyCase::Yes, AnyCase::No][rng.below(2)],
                report: [
                    SearchReport::Lines(0),
                    SearchReport::Lines(1),
                    SearchReport::Files,
                    SearchReport::Count,
                ][rng.below(4)],
                glob: (rng.below(3) == 0).then(|| rng.pick(&PATTERNS).to_owned()),
                root: directory(rng, oracle),
                limit: limit(rng),
            }
        }
    }
}

/// Returns a path: often an existing one or a sibling of one, sometimes any.
fn path(rng: &mut Rng, oracle: &VfsOracle) -> String {
    let known: Vec<&String> = oracle.nodes.keys().collect();
    let name = NAMES[rng.below(NAMES.len())];
    match rng.below(10) {
        0..5 if !known.is_empty() => known[rng.below(known.len())].clone(),
        5..7 if !known.is_empty() => format!("{}/{name}", known[rng.below(known.len())]),
        7..9 => (0..rng.below(3))
            .map(|_| NAMES[rng.below(8)])
            .chain([name])
            .collect::<Vec<_>>()
            .join("/"),
        _ => name.to_owned(),
    }
}

/// Returns a root for a search: mostly the root or a directory.
fn directory(rng: &mut Rng, oracle: &VfsOracle) -> String {
    let is_directory = |node: &OracleNode| matches!(node, OracleNode::Directory);
    let known: Vec<&String> = oracle
        .nodes
        .iter()
        .filter(|(_, node)| is_directory(node))
        .map(|(p, _)| p)
        .collect();
    match rng.below(4) {
        0 | 1 => String::new(),
        2 if !known.is_empty() => known[rng.below(known.len())].clone(),
        _ => path(rng, oracle),
    }
}

/// Returns a content: a few lines, ignore rules, nothing, or something large or binary. Ignore
/// files get rules only: megabytes of them would slow searches down and prove nothing.
fn content(rng: &mut Rng, path: &str) -> Arc<[u8]> {
    let text = match rng.below(24) {
        _ if path.ends_with("ignore") => RULES[rng.below(RULES.len())].to_owned(),
        0 => String::new(),
        1 => "binary\0alpha\n".to_owned(),
        2..6 => RULES[rng.below(RULES.len())].to_owned(),
        6 => format!("{}\n", rng.next()).repeat([4_000, 40_000, 70_000][rng.below(3)]),
        7 => "one long line ".repeat(300),
        _ => {
            let end = ["\n", "\n", "\r\n"][rng.below(3)];
            let lines: Vec<_> = (0..rng.below(5)).map(|_| rng.pick(&WORDS)).collect();
            let last = ["", end][rng.below(2)];
            format!("{}{last}", lines.join(end))
        }
    };
    text.into_bytes().into()
}
