//! The place for tests of file permission rules under random rules, trees and accesses: gate,
//! tools, guarded files and an independent oracle agree.

use crate::permission_oracle::{Kind, Node, Op, Rule, Touch, World};
use crate::support::{
    agent, block_on, blocks, in_parallel, journal, model, results, session, text,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{ResultStatus, RunOutcome, VerdictKind};
use stead_store::OsDisk;
use stead_testkit::{FakeModel, FakeWire, reply};
use stead_vfs::{
    Bounds, Case, Expect, FileSearchError, GlobQuery, GrepMode, GrepQuery, Guarded, LineRange,
    LocalVfs, ReadRange, Syntax, VPath, Vfs, VfsError,
};
use tokio_util::sync::CancellationToken;

const SCENARIOS: u64 = 240;
const ACCESSES: usize = 24;
/// Every file, dotfiles included.
const ALL_FILES: &str = "**/{.*,*}";

/// Names that are easily confused, hidden, protected, or look like patterns.
const NAMES: [&str; 18] = [
    "a", "b", "A", ".h", "sp ace", "ünï", "x[1]", "{y,z}", "*", "s", "k.pem", ".env", ".Env.x",
    "id_rsa", "hooks", "aa", "a ", "-r",
];

/// splitmix64: one seed gives one scenario.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() {
        name.to_owned()
    } else {
        format!("{directory}/{name}")
    }
}

/// A tree of directories, files with a line to be found, and links to anything and nothing.
fn grow(dice: &mut Dice) -> BTreeMap<String, Node> {
    let mut nodes = BTreeMap::new();
    let mut directories = vec![String::new()];
    for id in 0..12 + dice.roll(10) {
        let path = joined(dice.pick::<String>(&directories), dice.pick::<&str>(&NAMES));
        if nodes.contains_key(&path) || path == "agent.yaml" {
            continue;
        }
        let node = match dice.roll(10) {
            0..3 => Node::Dir,
            3..7 => Node::File(
                (0..1 + dice.roll(3))
                    .map(|line| format!("needle {id}.{line}\n"))
                    .collect(),
            ),
            _ => {
                let all: Vec<String> = nodes.keys().cloned().collect();
                let up = "../".repeat(path.matches('/').count());
                Node::Link(match dice.roll(12) {
                    0 => "/etc/hostname".to_owned(),
                    1 => format!("{up}../outside"),
                    2 => path.rsplit('/').next().unwrap().to_owned(),
                    3 => "nowhere".to_owned(),
                    4 if !all.is_empty() => format!("{up}{}/nowhere", dice.pick(&all)),
                    _ if !all.is_empty() => format!("{up}{}", dice.pick(&all)),
                    _ => "nowhere".to_owned(),
                })
            }
        };
        if node == Node::Dir {
            directories.push(path.clone());
        }
        nodes.insert(path, node);
    }
    nodes
}

/// A pattern that often meets something in the tree.
fn pattern(dice: &mut Dice, paths: &[String]) -> String {
    if paths.is_empty() || dice.one_in(8) {
        return (*dice.pick(&[
            "**", "*", "**/*.pem", "**/.*", "[!a]*", "{a,b}/**", "**/a", "?", "s*/**/b",
        ]))
        .to_owned();
    }
    let literal = |name: &str| {
        name.chars()
            .flat_map(|c| {
                "*?[]{},\\"
                    .contains(c)
                    .then_some('\\')
                    .into_iter()
                    .chain([c])
            })
            .collect::<String>()
    };
    let mut parts: Vec<String> = dice.pick(paths).split('/').map(literal).collect();
    for part in &mut parts {
        match dice.roll(14) {
            0 => *part = "*".to_owned(),
            1 => *part = "**".to_owned(),
            2 => *part = "?*".to_owned(),
            3 => *part = format!("{{{part},zz}}"),
            4 => *part = format!("*{part}"),
            5 => *part = format!("[!q]{}", "*"),
            6 => {
                *part = format!(
                    "[{}bA]*",
                    part.chars().find(|c| c.is_alphanumeric()).unwrap_or('a')
                )
            }
            _ => {}
        }
    }
    let text = parts.join("/");
    match dice.roll(6) {
        0 => format!("/{text}"),
        1 => format!("{text}/"),
        2 => format!("{text}/**"),
        3 => format!("{text}/*"),
        _ => text,
    }
}

fn rules(dice: &mut Dice, nodes: &BTreeMap<String, Node>) -> Vec<Rule> {
    let paths: Vec<String> = nodes.keys().cloned().collect();
    let mut rules = Vec::new();
    for _ in 0..dice.roll(6) {
        let ops = dice
            .pick(&[vec![Op::Read], vec![Op::Write], vec![Op::Read, Op::Write]])
            .clone();
        let kind = *dice.pick(&[Kind::Deny, Kind::Deny, Kind::Ask, Kind::Allow]);
        rules.push(Rule {
            ops,
            paths: (0..1 + dice.roll(2))
                .map(|_| pattern(dice, &paths))
                .collect(),
            kind,
        });
    }
    rules
}

/// As it stands in `agent.yaml`, of which JSON is a part.
fn written(rules: &[Rule]) -> String {
    let rule = |rule: &Rule| {
        let ops: Vec<&str> = rule
            .ops
            .iter()
            .map(|op| if *op == Op::Read { "read" } else { "write" })
            .collect();
        let mode = ["allow", "ask", "deny"][rule.kind as usize];
        json!({"operations": ops, "paths": rule.paths, "mode": mode})
    };
    json!({"permissions": rules.iter().map(rule).collect::<Vec<_>>()}).to_string()
}

fn build(root: &Path, nodes: &BTreeMap<String, Node>) {
    for entry in std::fs::read_dir(root).unwrap().flatten() {
        let is_dir = entry.file_type().unwrap().is_dir();
        if is_dir {
            std::fs::remove_dir_all(entry.path())
        } else {
            std::fs::remove_file(entry.path())
        }
        .unwrap();
    }
    for (path, node) in nodes {
        let at = root.join(path);
        match node {
            Node::Dir => std::fs::create_dir(at).unwrap(),
            Node::File(content) => std::fs::write(at, content).unwrap(),
            Node::Link(target) => std::os::unix::fs::symlink(target, at).unwrap(),
        }
    }
}

fn snapshot(root: &Path) -> BTreeMap<String, Node> {
    let mut nodes = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(root.join(&directory)).unwrap().flatten() {
            let path = joined(&directory, entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            let node = if kind.is_symlink() {
                Node::Link(
                    std::fs::read_link(entry.path())
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned(),
                )
            } else if kind.is_dir() {
                open.push(path.clone());
                Node::Dir
            } else {
                Node::File(std::fs::read_to_string(entry.path()).unwrap())
            };
            nodes.insert(path, node);
        }
    }
    nodes
}

/// A path worth trying: something there, something through a link, something missing, something
/// look-alike.
fn target(dice: &mut Dice, world: &World) -> String {
    let all: Vec<String> = world.nodes.keys().cloned().collect();
    let some = dice.pick(&all).clone();
    match dice.roll(9) {
        0 => joined(&some, dice.pick::<&str>(&NAMES)),
        1 => joined(
            some.rsplit_once('/').map_or("", |(up, _)| up),
            dice.pick::<&str>(&NAMES),
        ),
        2 => some
            .chars()
            .map(|c| {
                if c.is_lowercase() {
                    c.to_ascii_uppercase()
                } else {
                    c.to_ascii_lowercase()
                }
            })
            .collect(),
        3 => {
            let links: Vec<&String> = all
                .iter()
                .filter(|path| matches!(world.nodes[*path], Node::Link(_)))
                .collect();
            if links.is_empty() {
                some
            } else {
                joined(dice.pick::<&String>(&links), dice.pick::<&str>(&NAMES))
            }
        }
        4 if dice.one_in(2) => String::new(),
        _ => some,
    }
}

/// The same path, written in another way.
fn spelled(dice: &mut Dice, path: &str) -> String {
    if path.is_empty() {
        return (*dice.pick(&[".", "/", "./", "//"])).to_owned();
    }
    match dice.roll(7) {
        0 => format!("./{path}"),
        1 => format!("/{path}"),
        2 => format!("{path}/"),
        3 => path.replace('/', "//"),
        4 => path.replace('/', "/./"),
        _ => path.to_owned(),
    }
}

/// A call, what it touches, and how to do the same on the guarded place.
struct Access {
    tool: &'static str,
    args: Value,
    touches: Vec<Touch>,
    path: String,
    to: String,
}

fn access(dice: &mut Dice, world: &World) -> Access {
    let path = target(dice, world);
    let to = target(dice, world);
    let p = spelled(dice, &path);
    let q = spelled(dice, &to);
    let read = || vec![Touch::Content(Op::Read, path.clone())];
    let write = || vec![Touch::Content(Op::Write, path.clone())];
    let (tool, args, touches) = match dice.roll(15) {
        0 => ("ls", json!({"path": p}), read()),
        1 => ("file_info", json!({"file_path": p}), read()),
        2 => ("read_file", json!({"file_path": p}), read()),
        3 => (
            "write_file",
            json!({"file_path": p, "content": "new"}),
            write(),
        ),
        4 => (
            "write_file",
            json!({"file_path": p, "content": "new", "mode": "append"}),
            [read(), write()].concat(),
        ),
        5 => (
            "write_file",
            json!({"file_path": p, "content": "new", "mode": "overwrite"}),
            write(),
        ),
        6 => (
            "overwrite_file",
            json!({"file_path": p, "content": "new"}),
            write(),
        ),
        7 => (
            "edit_file",
            json!({"file_path": p, "old_string": "needle", "new_string": "x", "replace_all": true}),
            [read(), write()].concat(),
        ),
        8 | 9 => (
            "delete_file",
            json!({"file_path": p}),
            vec![Touch::Tree(Op::Write, path.clone())],
        ),
        10 | 11 => {
            let from = path.clone();
            let touches = vec![
                Touch::Tree(Op::Read, from.clone()),
                Touch::Tree(Op::Write, from.clone()),
                Touch::Arrival {
                    from,
                    to: to.clone(),
                },
            ];
            ("move_file", json!({"from": p, "to": q}), touches)
        }
        12 => (
            "glob_files",
            json!({"pattern": ALL_FILES, "path": p}),
            read(),
        ),
        _ => {
            let mode = *dice.pick(&["content", "files", "count"]);
            let most = if dice.one_in(3) { 2 } else { 1000 };
            (
                "grep_files",
                json!({"pattern": "needle", "path": p, "glob": ALL_FILES, "output_mode": mode, "max_matches": most}),
                read(),
            )
        }
    };
    Access {
        tool,
        args,
        touches,
        path,
        to,
    }
}

/// The same on the guarded place; an error is what it says.
async fn directly(guarded: &Guarded, access: &Access) -> Result<(), VfsError> {
    let path = VPath::parse(&access.path)?;
    let to = VPath::parse(&access.to)?;
    let bounds = Bounds::new(10, CancellationToken::new());
    let plain = |error: FileSearchError| match error {
        FileSearchError::Vfs(error) => error,
        other => panic!("{other}"),
    };
    match access.tool {
        "ls" => {
            guarded.walk(&path, None, 5).await?;
            guarded.list(&path).await.map(drop)
        }
        "file_info" => guarded.stat(&path).await.map(drop),
        "read_file" => {
            let range = LineRange {
                skip: 0,
                take: 9,
                max_line_bytes: 99,
                max_bytes: 99,
            };
            guarded.read_lines(&path, range).await.map(drop)
        }
        "write_file" if access.args["mode"] == "append" => {
            guarded.read(&path, ReadRange::ALL).await?;
            guarded
                .write(&path, "new".into(), Expect::Any)
                .await
                .map(drop)
        }
        "edit_file" => {
            guarded.read(&path, ReadRange::ALL).await?;
            guarded.set_mode(&path, 0o600).await
        }
        "write_file" | "overwrite_file" => guarded
            .write(&path, "new".into(), Expect::Any)
            .await
            .map(drop),
        "delete_file" => guarded.remove(&path).await,
        "move_file" => guarded.rename(&path, &to).await,
        "glob_files" => {
            let query = GlobQuery {
                pattern: "**".to_owned(),
                root: path,
            };
            guarded
                .search()
                .glob(query, bounds)
                .await
                .map(drop)
                .map_err(plain)
        }
        "grep_files" => {
            let query = GrepQuery {
                pattern: "needle".to_owned(),
                syntax: Syntax::Literal,
                case: Case::Sensitive,
                root: path,
                glob: None,
                file_type: None,
                mode: GrepMode::Count,
            };
            guarded
                .search()
                .grep(query, bounds)
                .await
                .map(drop)
                .map_err(plain)
        }
        other => panic!("{other} has no counterpart"),
    }
}

async fn called(
    agent: &Arc<Agent>,
    access: &Access,
    approvals: &ApprovalPolicy,
) -> (ResultStatus, String) {
    let called = agent
        .sessionless()
        .call_tool(
            access.tool,
            access.args.clone(),
            approvals,
            CancellationToken::new(),
        )
        .await;
    (called.status, blocks(&called.content))
}

/// What a listing or search must say, to the letter; none if that depends on more than names.
fn expected(world: &World, access: &Access) -> Option<String> {
    let shown = if access.path.is_empty() {
        ".".to_owned()
    } else {
        access.path.clone()
    };
    let given = access.args["path"].as_str().unwrap_or_default();
    let note = |unasked: usize| {
        let files = if unasked == 1 {
            "1 file".to_owned()
        } else {
            format!("{unasked} files")
        };
        (unasked > 0).then(|| {
            format!("[{files} left out, because a person must be asked first; name the file or its directory as path]")
        })
    };
    let mut rows: Vec<String> = match access.tool {
        "ls" => {
            let rows = world.listing(&access.path)?;
            return Some(if rows.is_empty() {
                format!("[{shown} is empty]")
            } else {
                rows.join("\n")
            });
        }
        "glob_files" => {
            let (files, unasked) = world.searchable(&access.path, false)?;
            let none = files
                .is_empty()
                .then(|| format!("No files match {ALL_FILES:?} in {given}"));
            return Some(
                files
                    .into_iter()
                    .chain(none)
                    .chain(note(unasked))
                    .collect::<Vec<_>>()
                    .join("\n"),
            );
        }
        "grep_files" => Vec::new(),
        _ => return None,
    };
    let (files, unasked) = world.searchable(&access.path, true)?;
    let most = access.args["max_matches"].as_u64()? as usize;
    let lines = |path: &String| match &world.nodes[path] {
        Node::File(text) => text
            .lines()
            .map(str::to_owned)
            .filter(|line| line.contains("needle"))
            .collect::<Vec<_>>(),
        Node::Dir | Node::Link(_) => Vec::new(),
    };
    let mut more = false;
    for path in files.iter().filter(|path| !lines(path).is_empty()) {
        match access.args["output_mode"].as_str()? {
            "content" => rows.extend(
                lines(path)
                    .iter()
                    .enumerate()
                    .map(|(i, line)| format!("{path}:{}: {line}", i + 1)),
            ),
            "files" => rows.push(path.clone()),
            _ => rows.push(format!("{path}: {}", lines(path).len())),
        }
        more |= rows.len() > most;
        rows.truncate(most);
    }
    if rows.is_empty() {
        rows.push(format!("No matches for \"needle\" in {given}"));
    }
    if more {
        // How many ask is only known for what was looked at.
        rows.push(format!(
            "[there are more than max_matches={most}; narrow the pattern, the path or the glob]"
        ));
    } else {
        rows.extend(note(unasked));
    }
    Some(rows.join("\n"))
}

/// How often each tool met each verdict.
type Met = Mutex<BTreeMap<(&'static str, &'static str), usize>>;

fn count(met: &Met, tool: &'static str, kind: Kind) {
    *met.lock()
        .unwrap()
        .entry((tool, ["allow", "ask", "deny"][kind as usize]))
        .or_default() += 1;
}

async fn scenario(seed: u64, met: &Met, same_answers: &AtomicUsize) {
    let mut dice = Dice(seed);
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(temp.path().join("outside"), "needle outside").unwrap();
    let mut world = World {
        nodes: grow(&mut dice),
        rules: Vec::new(),
    };
    world.rules = rules(&mut dice, &world.nodes);
    world
        .nodes
        .insert("agent.yaml".to_owned(), Node::File(written(&world.rules)));
    // A workspace whose hooks lead nowhere is not opened at all; here they come to do so later.
    std::fs::write(root.join("agent.yaml"), written(&world.rules)).unwrap();
    let server = FakeModel::start(Vec::new());
    let agent = agent(&root, model(&server, FakeWire::Chat)).await;
    build(&root, &world.nodes);
    let files = Arc::new(LocalVfs::open(&root, Arc::new(OsDisk)).unwrap());
    let guarded = Guarded::new(files, agent.workspace().rules.clone());

    for _ in 0..ACCESSES {
        let access = access(&mut dice, &world);
        let place = format!(
            "seed {seed}: {} {} with {:?} in {:#?}",
            access.tool, access.args, world.rules, world.nodes
        );
        let kind = world.verdict(&access.touches);
        count(met, access.tool, kind);

        let verdict = agent
            .sessionless()
            .explain(access.tool, access.args.clone())
            .await
            .unwrap();
        let judged = match verdict.kind {
            VerdictKind::Allow => Kind::Allow,
            VerdictKind::Ask => Kind::Ask,
            VerdictKind::Deny => Kind::Deny,
        };
        assert_eq!(judged, kind, "{} — {place}", verdict.reason);

        let refused = match kind {
            Kind::Deny => Some(called(&agent, &access, &ApprovalPolicy::ApproveAll).await),
            Kind::Ask => Some(called(&agent, &access, &ApprovalPolicy::DenyAll).await),
            Kind::Allow => None,
        };
        if let Some((status, said)) = &refused {
            assert_eq!(*status, ResultStatus::Denied, "{said} — {place}");
            assert!(said.contains(&verdict.reason), "{said} — {place}");
        }
        if kind == Kind::Deny {
            assert!(
                directly(&guarded, &access).await.is_err(),
                "the guarded place let it pass: {place}"
            );
        }
        if refused.is_some() {
            assert_eq!(
                snapshot(&root),
                world.nodes,
                "a refusal changed something: {place}"
            );
        }
        if kind == Kind::Deny {
            // By its name alone: then nothing may depend on whether it is there.
            let by_name =
                world.is_denied(Op::Read, &access.path) && world.is_denied(Op::Write, &access.path);
            let parts = root.join(&access.path);
            if by_name
                && !access.path.is_empty()
                && parts.symlink_metadata().is_ok()
                && access.tool != "move_file"
            {
                let error = directly(&guarded, &access).await.unwrap_err().to_string();
                let is_dir = parts.symlink_metadata().unwrap().is_dir();
                if is_dir {
                    std::fs::remove_dir_all(&parts)
                } else {
                    std::fs::remove_file(&parts)
                }
                .unwrap();
                assert_eq!(
                    Some(called(&agent, &access, &ApprovalPolicy::ApproveAll).await),
                    refused,
                    "{place}"
                );
                assert_eq!(
                    directly(&guarded, &access).await.unwrap_err().to_string(),
                    error,
                    "{place}"
                );
                build(&root, &world.nodes);
                same_answers.fetch_add(1, Ordering::Relaxed);
            }
            continue;
        }
        if dice.one_in(4) {
            let done = directly(&guarded, &access).await;
            assert!(
                !matches!(done, Err(VfsError::Denied(_))),
                "the guarded place refused: {done:?} {place}"
            );
        } else {
            let (status, said) = called(&agent, &access, &ApprovalPolicy::ApproveAll).await;
            assert_ne!(status, ResultStatus::Denied, "{said} — {place}");
            assert!(!said.contains("permission denied"), "{said} — {place}");
            if let Some((_, name)) = said.split_once("did you mean ") {
                assert!(
                    !world.is_denied(Op::Read, name.trim_end_matches('?')),
                    "{said} — {place}"
                );
            }
            match expected(&world, &access).filter(|_| status == ResultStatus::Ok) {
                // A cut search knows of those that ask only as far as it came.
                Some(text) if text.contains("max_matches=") => {
                    assert!(said.starts_with(&text), "{said}\n{text}\n— {place}")
                }
                Some(text) => assert_eq!(without_times(&said), text, "{place}"),
                None => {}
            }
        }
        if snapshot(&root) != world.nodes {
            build(&root, &world.nodes);
        }
    }
}

/// A listing without the times of change.
fn without_times(text: &str) -> String {
    let row = |row: &str| match row.split_once(" bytes, ").or(row.split_once(" byte, ")) {
        Some((name, time)) if time.ends_with("Z)") => format!("{name} bytes)"),
        Some(_) | None => row.to_owned(),
    };
    text.split('\n').map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn gate_tools_guarded_place_and_oracle_agree_on_every_access() {
    let met = Met::default();
    let same_answers = AtomicUsize::new(0);
    let seeds: Vec<u64> = (0..SCENARIOS).collect();
    in_parallel(&seeds, |seed| {
        block_on(scenario(*seed, &met, &same_answers))
    });
    let met = met.into_inner().unwrap();
    // A generator that no longer meets a case would prove nothing about it.
    for tool in [
        "ls",
        "file_info",
        "read_file",
        "write_file",
        "overwrite_file",
        "edit_file",
        "delete_file",
        "move_file",
        "glob_files",
        "grep_files",
    ] {
        for kind in ["allow", "ask", "deny"] {
            assert!(
                met.get(&(tool, kind)).is_some_and(|times| *times >= 5),
                "{tool} met {kind} too rarely: {met:?}"
            );
        }
    }
    assert!(same_answers.into_inner() >= 50);
}

/// A folder with these files and rules; a target after `->` makes a link.
fn folder(rules: &str, files: &[&str]) -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(
        temp.path().join("agent.yaml"),
        format!("permissions:\n{rules}"),
    )
    .unwrap();
    for file in files {
        let (name, link) = file
            .split_once(" -> ")
            .map_or((*file, None), |(name, target)| (name, Some(target)));
        let at = temp.path().join(name);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        match link {
            Some(target) => std::os::unix::fs::symlink(target, at).unwrap(),
            None => std::fs::write(at, format!("needle in {name}\n")).unwrap(),
        }
    }
    temp
}

/// Calls in a folder: `(tool, arguments, how it ends, what is said)`; a text between `=` is all
/// that is said.
fn table(temp: &tempfile::TempDir, calls: &[(&str, Value, ResultStatus, &str)]) {
    let server = FakeModel::start(Vec::new());
    block_on(async {
        let agent = agent(temp.path(), model(&server, FakeWire::Chat)).await;
        for (tool, args, status, said) in calls {
            let called = agent
                .sessionless()
                .call_tool(
                    tool,
                    args.clone(),
                    &ApprovalPolicy::DenyAll,
                    CancellationToken::new(),
                )
                .await;
            let text = blocks(&called.content);
            let agrees = match said.strip_prefix('=') {
                Some(whole) => without_times(&text) == whole,
                None => text.contains(said),
            };
            assert!(
                called.status == *status && agrees,
                "{tool} {args}: {:?} {text}",
                called.status
            );
        }
    });
}

#[test]
fn a_tree_is_refused_as_a_whole_without_a_word_about_what_is_in_it() {
    use ResultStatus::{Denied, Error, Ok};
    let rules = "- {operations: [read, write], paths: ['**/hidden.pem'], mode: deny}\n\
                 - {operations: [write], paths: ['**/fixed.md'], mode: deny}\n\
                 - {operations: [write], paths: [in/kept, new/kept], mode: deny}\n";
    let files = [
        "d/e/hidden.pem",
        "d/a.txt",
        "f/fixed.md",
        "s/.env",
        "in/x",
        "l/link -> ../d/e/hidden.pem",
        "v/bad -> /usr/bin/python3",
        "go/kept/y",
    ];
    let temp = folder(rules, &files);
    let delete = |path: &str| ("delete_file", json!({"file_path": path}));
    let rename = |from: &str, to: &str| ("move_file", json!({"from": from, "to": to}));
    let calls = [
        (
            delete("d"),
            Denied,
            "=denied: something in d may not be changed",
        ),
        (
            rename("d", "moved"),
            Denied,
            "=denied: something in d may not be read",
        ),
        (
            delete("f"),
            Denied,
            "=denied: permissions[1]: deny write **/fixed.md, for something in f",
        ),
        (
            delete("s"),
            Denied,
            "=denied: something in s may not be changed",
        ),
        (
            delete("l"),
            Denied,
            "=denied: something in l may not be changed",
        ),
        (
            rename("in/x", "in/kept/x"),
            Denied,
            "=denied: permissions[2]: deny write in/kept",
        ),
        // go/kept would arrive as new/kept.
        (
            rename("go", "new"),
            Denied,
            "=denied: permissions[2]: deny write new/kept, for something in go",
        ),
        (rename("go", "in/go"), Ok, "Moved"),
        (
            rename("in/go/kept", "in/kept"),
            Denied,
            "=denied: permissions[2]: deny write in/kept",
        ),
        (rename("in/go", "in/go/kept/z"), Error, "into itself"),
        (delete("in/x"), Ok, "Deleted"),
        (
            delete("d/e"),
            Denied,
            "=denied: something in d/e may not be changed",
        ),
        (delete("v"), Ok, "Deleted"),
    ];
    table(
        &temp,
        &calls.map(|((tool, args), status, said)| (tool, args, status, said)),
    );
    assert!(temp.path().join("d/e/hidden.pem").exists() && temp.path().join("s/.env").exists());
}

#[test]
fn known_tricks_lead_nowhere() {
    use ResultStatus::{Denied, Error, Ok};
    let rules = "- {operations: [read, write], paths: [secrets/**], mode: deny}\n\
                 - {operations: [read], paths: [asked], mode: ask}\n";
    let files = [
        "secrets/a",
        "secrets/sub/b",
        "secrets/out -> ../ok/plain",
        "ok/plain",
        "ok/link -> ../secrets/a",
        "ok/dir -> ../secrets",
        "ok/chain -> hop",
        "ok/hop -> dir/sub/b",
        "asked/x",
        "asked/y",
        "data/j",
        "agents -> data",
        ".env -> conf/dev",
        "conf/dev",
        "Secrets/a",
        "dangling -> secrets/new",
        "devious -> nowhere/../secrets/new",
    ];
    let temp = folder(rules, &files);
    let read = |path: &str| ("read_file", json!({"file_path": path}));
    let write = |path: &str| ("write_file", json!({"file_path": path, "content": "evil"}));
    let delete = |path: &str| ("delete_file", json!({"file_path": path}));
    let deny_read = "=denied: permissions[0]: deny read secrets/**";
    let deny_write = "=denied: permissions[0]: deny write secrets/**";
    let calls = [
        (read("ok/link"), Denied, deny_read),
        (read("ok/chain"), Denied, deny_read),
        (read("ok/dir/sub/b"), Denied, deny_read),
        (read("ok/dir/nothing"), Denied, deny_read),
        // Through a file, which tells whether there is one.
        (read("ok/dir/a/x"), Denied, deny_read),
        (read("ok/dir/a/x/y"), Denied, deny_read),
        (read("ok/dir/out"), Denied, deny_read),
        (read("ok/../secrets/a"), Denied, "contains `..`"),
        (read(".//secrets/./a/"), Denied, deny_read),
        (read("Secrets/a"), Ok, "needle in Secrets/a"),
        (("ls", json!({"path": "ok"})), Ok, "=plain  (19 bytes)"),
        (("ls", json!({"path": "ok/dir"})), Denied, deny_read),
        (
            (
                "grep_files",
                json!({"pattern": "needle", "output_mode": "count"}),
            ),
            Ok,
            "=Secrets/a: 1\ndata/j: 1\nok/plain: 1\n[2 files left out, because a person must be asked first; name the file or its directory as path]",
        ),
        (
            ("glob_files", json!({"pattern": "**/*", "path": "."})),
            Ok,
            "=Secrets/a\nagent.yaml\ndata/j\nok/plain\n[2 files left out, because a person must be asked first; name the file or its directory as path]",
        ),
        (
            ("grep_files", json!({"pattern": "needle", "path": "asked"})),
            Denied,
            "nobody approved it (permissions[1]: ask read asked)",
        ),
        // A link in a denied directory is not removed through a link to that directory.
        (delete("ok/dir/out"), Denied, deny_write),
        (write("dangling"), Denied, deny_write),
        (write("devious"), Denied, "=denied: devious does not exist"),
        (
            write("data/k"),
            Denied,
            "=denied: protected: agents cannot be changed by the agent, and this is where it leads",
        ),
        (read("data/j"), Ok, "needle"),
        (delete("data"), Denied, "this is where it leads"),
        (
            read("conf/dev"),
            Denied,
            "=denied: protected: .env* holds secrets, and this is where it leads",
        ),
        (
            read("secretz/a"),
            Error,
            "=secretz/a does not exist; use glob_files or ls to find it",
        ),
        (read("secrets"), Denied, deny_read),
    ];
    table(
        &temp,
        &calls.map(|((tool, args), status, said)| (tool, args, status, said)),
    );
    assert!(
        temp.path().join("secrets/out").symlink_metadata().is_ok()
            && !temp.path().join("secrets/new").exists()
    );
}

#[test]
fn an_approved_question_runs_and_reads_what_its_rule_covers() {
    let rules = "- {operations: [read, write], paths: [asked], mode: ask}\n\
                 - {operations: [read], paths: ['**/never'], mode: deny}\n";
    let temp = folder(rules, &["asked/x", "asked/never/y", "b"]);
    let calls = [
        ("read_file", json!({"file_path": "asked/x"})),
        (
            "grep_files",
            json!({"pattern": "needle", "path": "asked", "output_mode": "files"}),
        ),
        (
            "write_file",
            json!({"file_path": "asked/new", "content": "yes"}),
        ),
    ];
    let mut script: Vec<_> = calls
        .into_iter()
        .map(|(tool, args)| reply().call(tool, args))
        .collect();
    script.push(reply().text("done"));
    let server = FakeModel::start(script);
    block_on(async {
        let agent = agent(temp.path(), model(&server, FakeWire::Chat)).await;
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = journal(&agent, &session("s")).await;
        let said: Vec<String> = results(&lines)
            .into_iter()
            .map(|(_, _, said)| said)
            .collect();
        assert!(said[0].contains("needle in asked/x"), "{said:?}");
        // asked/never is denied by a later rule only, and the first one that covers it asks.
        assert_eq!(said[1], "asked/never/y\nasked/x");
        assert!(said[2].starts_with("Created asked/new"), "{said:?}");
    });
}
