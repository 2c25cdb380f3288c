//! The place for tests of rules about the code base: crate dependencies, file length, and which
//! crates may touch the outside world.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The rooms, top to bottom: a crate may use those after it.
const HOUSE: [&str; 17] = [
    "stead-bench",
    "stead",
    "stead-host",
    "stead-agent",
    "stead-memory",
    "stead-gate",
    "stead-workspace",
    "stead-place",
    "stead-skills",
    "stead-tools",
    "stead-sandbox",
    "stead-model",
    "stead-vfs",
    "stead-search",
    "stead-store",
    "stead-shell",
    "stead-core",
];
const MAX_LINES: usize = 800;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// All source files outside tests, with their text up to the first test module.
fn sources() -> BTreeMap<String, String> {
    fn walk(dir: &Path, root: &Path, out: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                walk(&path, root, out);
            } else if name.ends_with(".rs") && name.contains("/src/") && !is_test(&name) {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text
                    .split("\n#[cfg(test)]\nmod tests {")
                    .next()
                    .unwrap_or("")
                    .to_owned();
                out.insert(name, code);
            }
        }
    }
    fn is_test(name: &str) -> bool {
        name.starts_with("stead-testkit")
            || name.contains("/tests/")
            || name.ends_with("tests.rs")
            || name.ends_with("testing.rs")
    }
    let mut out = BTreeMap::new();
    walk(&crates(), &crates(), &mut out);
    assert!(out.len() > 40, "only {} files were found", out.len());
    out
}

#[test]
fn arrows_go_down_only() {
    for (level, name) in HOUSE.iter().enumerate() {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let shipped = manifest.split("[dev-dependencies]").next().unwrap();
        for used in shipped
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|n| n.starts_with("stead"))
        {
            let below = HOUSE.iter().position(|room| *room == used);
            assert!(
                below.is_some_and(|below| below > level),
                "{name} uses {used}, which is not below it"
            );
        }
    }
}

#[test]
fn every_crate_is_a_room_of_the_house() {
    for entry in std::fs::read_dir(crates()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        assert!(
            HOUSE.contains(&name.as_str()) || name == "stead-testkit",
            "{name} has no place in the house"
        );
    }
}

#[test]
fn no_file_is_longer_than_can_be_read() {
    for (name, code) in sources() {
        let lines = code.lines().count();
        assert!(
            lines <= MAX_LINES,
            "{name} has {lines} lines, at most {MAX_LINES} without tests"
        );
    }
}

#[test]
fn doors_to_the_outside_stay_in_their_homes() {
    // What is looked for, and the places where it may stand.
    let doors: [(&str, &[&str]); 9] = [
        (
            "std::fs::",
            &[
                "stead-store/",
                "stead-search/src/index_file.rs",
                // Files of the system: `/proc`, `/sys` and those that a sandbox is made of.
                "stead-sandbox/src/",
                "stead-vfs/src/local",
                "stead-model/src/files.rs",
                "stead/src/cli/",
                "stead-bench/src/",
            ],
        ),
        ("std::env::var", &["stead/src/cli/env.rs"]),
        // Everything printed goes through the sink that makes text harmless to a terminal.
        ("println!(", &[]),
        ("print!(", &[]),
        (
            "io::stdout()",
            &[
                "stead/src/cli/print.rs",
                "stead/src/cli/env.rs",
                "stead/src/cli/chat/terminal.rs",
                "stead-bench/src/print.rs",
            ],
        ),
        (
            "io::stderr()",
            &[
                "stead/src/cli/print.rs",
                "stead/src/cli/env.rs",
                // The helper of a sandbox has no other way to say why it ends.
                "stead-sandbox/src/inside/mod.rs",
                "stead-sandbox/src/bin/",
            ],
        ),
        ("tokio::spawn(", &[]),
        ("std::process::Command", &[]),
        ("unsafe ", &[]),
    ];
    for (name, code) in sources() {
        for (door, homes) in &doors {
            let at_home = homes.iter().any(|home| name.starts_with(home));
            let line = code
                .lines()
                .position(|line| line.contains(door) && !line.trim_start().starts_with("//"));
            if let (Some(line), false) = (line, at_home) {
                panic!("{name}:{} uses `{door}` outside its home", line + 1);
            }
        }
    }
}

/// What code can touch outside the memory of the process, in the order of headers.
const EFFECTS: [&str; 17] = [
    "the clock",
    "randomness",
    "the environment",
    "the terminal",
    "workspace files (reads)",
    "workspace files (writes)",
    "the local disk (reads)",
    "the local disk (writes)",
    "the store (reads)",
    "the store (writes)",
    "the journal (reads)",
    "the journal (writes)",
    "hooks",
    "tools",
    "the model",
    "the network",
    "processes",
];

/// Code with an effect: calls of the system, and of contracts whose methods have names of their own.
const SIGNS: [(&str, &str); 65] = [
    ("Instant::now(", "the clock"),
    ("SystemTime::now(", "the clock"),
    ("Timestamp::now(", "the clock"),
    ("time::timeout(", "the clock"),
    ("time::sleep(", "the clock"),
    ("Uuid::now_v7(", "the clock"),
    ("Uuid::now_v7(", "randomness"),
    ("Id::fresh(", "randomness"),
    ("env::var", "the environment"),
    ("env::current_dir(", "the environment"),
    ("TimeZone::system(", "the environment"),
    ("outln!(", "the terminal"),
    ("errln!(", "the terminal"),
    ("io::stdin(", "the terminal"),
    ("io::stdout(", "the terminal"),
    ("io::stderr(", "the terminal"),
    ("vfs.read(", "workspace files (reads)"),
    ("files.read(", "workspace files (reads)"),
    ("vfs.stat(", "workspace files (reads)"),
    ("files.stat(", "workspace files (reads)"),
    ("vfs.read_lines(", "workspace files (reads)"),
    (".search().glob(", "workspace files (reads)"),
    (".search().grep(", "workspace files (reads)"),
    ("vfs.write(", "workspace files (writes)"),
    (".write_stream(", "workspace files (writes)"),
    ("vfs.set_directory_mode(", "workspace files (writes)"),
    ("std::fs::read", "the local disk (reads)"),
    ("std::fs::metadata(", "the local disk (reads)"),
    ("fs::File::open(", "the local disk (reads)"),
    (".canonicalize(", "the local disk (reads)"),
    ("fs::canonicalize(", "the local disk (reads)"),
    (".local_dir(", "the local disk (reads)"),
    ("disk.create(", "the local disk (writes)"),
    ("disk.write_all(", "the local disk (writes)"),
    ("disk.sync(", "the local disk (writes)"),
    ("disk.set_len(", "the local disk (writes)"),
    ("disk.rename(", "the local disk (writes)"),
    ("disk.remove(", "the local disk (writes)"),
    ("disk.create_dir(", "the local disk (writes)"),
    ("disk.replace(", "the local disk (writes)"),
    ("store.get(", "the store (reads)"),
    ("store.list(", "the store (reads)"),
    (".dead_letters(", "the store (reads)"),
    ("store.commit(", "the store (writes)"),
    ("store.enqueue(", "the store (writes)"),
    ("store.claim(", "the store (writes)"),
    ("store.acquire(", "the store (writes)"),
    (".delete_run(", "the store (writes)"),
    (".delete_image(", "the store (writes)"),
    ("sessions().list_all(", "the journal (reads)"),
    ("sessions.list_all(", "the journal (reads)"),
    (".read_from(", "the journal (reads)"),
    ("journals.tail(", "the journal (reads)"),
    ("journals.read(", "the journal (reads)"),
    ("journals.create(", "the journal (writes)"),
    ("journals.open(", "the journal (writes)"),
    ("journal.record(", "the journal (writes)"),
    (".update_derived(", "the journal (writes)"),
    ("ask_hook(", "hooks"),
    ("tool.call(", "tools"),
    ("model.stream(", "the model"),
    ("model.complete(", "the model"),
    ("TcpStream::connect", "the network"),
    ("sandbox.exec(", "processes"),
    ("process::Command::new(", "processes"),
];

/// Returns the effects that the header of a file lists, or what is wrong with it. Writing includes
/// reading.
fn listed_effects(code: &str) -> Result<BTreeSet<&'static str>, String> {
    let header = code.lines().take_while(|line| line.starts_with("//!"));
    let words: Vec<&str> = header.map(|line| line[3..].trim()).collect();
    let header = words.join(" ");
    let (_, list) = header
        .rsplit_once("Effects: ")
        .ok_or("its header has no line `//! Effects: …`")?;
    let list = list
        .strip_suffix('.')
        .ok_or("its effects end without a dot")?;
    match list {
        "none" => return Ok(BTreeSet::new()),
        "all" | "test support" => return Ok(EFFECTS.into()),
        _ => {}
    }
    let mut listed = BTreeSet::new();
    let mut last = None;
    for word in list.split(", ") {
        let at = EFFECTS.iter().position(|effect| *effect == word);
        let at = at.ok_or(format!("the glossary has no effect {word:?}"))?;
        if last >= Some(at) {
            return Err(format!("{word} stands in another order in the glossary"));
        }
        last = Some(at);
        listed.insert(EFFECTS[at]);
        if let Some(subject) = word.strip_suffix("(writes)") {
            let reads = |effect: &&&str| effect.strip_suffix("(reads)") == Some(subject);
            listed.extend(EFFECTS.iter().filter(reads));
        }
    }
    Ok(listed)
}

/// Returns the names of the functions that a text calls, with the type that is named before them
/// (`Type::name`).
fn called_names(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for before in text.split('(') {
        let rest = before.trim_end_matches(is_name);
        names.insert(&before[rest.len()..]);
        let of_type = rest.strip_suffix("::").unwrap_or("");
        let start = of_type.trim_end_matches(is_name).len();
        names.insert(&before[start..]);
    }
    names
}

/// Returns the type whose functions a block implements, from the line that opens the block.
fn implemented_type(line: &str) -> Option<&str> {
    let subject = line.strip_prefix("impl")?;
    let subject = match subject.split_once(" for ") {
        Some((_, subject)) => subject,
        None => subject.rsplit_once("> ").map_or(subject, |(_, rest)| rest),
    };
    let name = subject.trim().split(['<', ' ']).next()?;
    name.rsplit("::").next().filter(|name| !name.is_empty())
}

/// Where the functions of each name are, and their texts.
type NamedFunctions<'a> = BTreeMap<String, Vec<(&'a str, String)>>;

/// Returns the effects of the functions whose name says which function is called: those of their text
/// and of the functions that they call. Names of contracts stand in the code base once more for each
/// implementation, and names of one word are also those of other libraries; neither is followed. Nor is
/// `ask_hook`, a contract that is no trait.
fn effects_of_functions<'a>(named: &'a NamedFunctions<'a>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut effects = BTreeMap::new();
    let mut calls = BTreeMap::new();
    for (name, all) in named {
        let is_followed = name.contains(['_', ':']) && name != "ask_hook";
        if let ([(_, text)], true) = (all.as_slice(), is_followed) {
            let found = SIGNS.iter().filter(|(sign, _)| text.contains(sign));
            effects.insert(name.as_str(), found.map(|(_, effect)| *effect).collect());
            calls.insert(name.as_str(), called_names(text));
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (name, called) in &calls {
            let of_called = called.iter().filter_map(|called| effects.get(called));
            let all: BTreeSet<&str> = of_called.flatten().copied().collect();
            let known: &mut BTreeSet<&str> = effects.entry(name).or_default();
            let before = known.len();
            known.extend(all);
            changed |= known.len() > before;
        }
    }
    effects
}

#[test]
fn each_file_lists_the_effects_of_its_code_and_of_what_it_calls() {
    let sources = sources();
    let mut problems = Vec::new();
    let mut files = BTreeMap::new();
    let mut named = NamedFunctions::new();
    for (file, code) in &sources {
        match listed_effects(code) {
            Ok(listed) => drop(files.insert(file.as_str(), listed)),
            Err(problem) => problems.push(format!("{file}: {problem}")),
        }
        for (name, text) in functions(code) {
            named.entry(name.to_owned()).or_default().push((file, text));
        }
        // Also by the types to which they belong.
        for block in code.split("\nimpl").skip(1) {
            let block = format!("impl{}", block.split("\n}\n").next().unwrap());
            let Some(subject) = block.lines().next().and_then(implemented_type) else {
                continue;
            };
            for (name, text) in functions(&block) {
                let name = format!("{subject}::{name}");
                named.entry(name).or_default().push((file, text));
            }
        }
    }
    let effects = effects_of_functions(&named);
    for (file, text) in named.values().flatten() {
        let Some(listed) = files.get(file) else {
            continue;
        };
        for (sign, effect) in SIGNS {
            if text.contains(sign) && !listed.contains(effect) {
                problems.push(format!("{file}: has `{sign}`; its header lacks: {effect}"));
            }
        }
        for called in called_names(text) {
            let of_called = effects.get(called).into_iter().flatten();
            for effect in of_called.filter(|effect| !listed.contains(*effect)) {
                let called = format!("calls {called}()");
                problems.push(format!("{file}: {called}; its header lacks: {effect}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The functions of a source file with their texts, as rustfmt lays them out: from the line with the
/// name to the closing brace below it.
fn functions(code: &str) -> Vec<(&str, String)> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines: Vec<&str> = code.lines().filter(is_code).collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((before, name)) = line.split_once("fn ") else {
            continue;
        };
        let is_modifier = |word: &str| word.starts_with("pub") || matches!(word, "async" | "const");
        if !before.split_whitespace().all(is_modifier) {
            continue;
        }
        let name = name.split(['(', '<']).next().unwrap();
        let indent = &before[..before.len() - before.trim_start().len()];
        let end = format!("{indent}}}");
        let mut text = String::new();
        for line in &lines[at..] {
            let is_declaration = line.ends_with(';') && !text.contains("{\n");
            text.push_str(line);
            text.push('\n');
            if *line == end || is_declaration || (line.ends_with('}') && text.lines().count() == 1)
            {
                break;
            }
        }
        found.push((name, text));
    }
    found
}

#[test]
fn the_path_of_an_input_in_the_map_is_the_path_in_the_code() {
    let map = std::fs::read_to_string(crates().parent().unwrap().join("ARCHITECTURE.md")).unwrap();
    let section = map.split("## One input, hop by hop").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut files = BTreeSet::new();
    // The functions of each part of the path.
    let mut parts = Vec::new();
    // The texts of the functions so far: each calls others of the list.
    let mut earlier = String::from("main(");
    for part in section.split("<details>").skip(1) {
        let mut count = 0;
        for line in part.lines() {
            let Some((file, names)) = line.split_once(".rs: ") else {
                continue;
            };
            let (room, rest) = file.split_once('/').unwrap();
            let path = crates().join(room).join("src").join(rest);
            let code = std::fs::read_to_string(path.with_extension("rs"))
                .unwrap_or_else(|e| panic!("{line}: {e}"));
            let (names, makes) = names.split_once(" makes ").unwrap_or((names, ""));
            let is_maker = !makes.is_empty();
            for name in names.split(", ") {
                let called = name.trim_end_matches('*');
                let called = called.rsplit("::").next().unwrap();
                let all = functions(&code).into_iter();
                let text: String = all
                    .filter(|(name, _)| *name == called)
                    .map(|(_, text)| text)
                    .collect();
                assert!(!text.is_empty(), "{line}: there is no {name}");
                let is_called = earlier.contains(&format!("{called}("));
                assert!(
                    is_called || is_maker || name.ends_with('*'),
                    "{line}: no function above calls {name}"
                );
                for made in makes.split(", ") {
                    assert!(text.contains(made), "{line}: {name} makes no {made}");
                }
                earlier.push_str(&text);
                count += 1;
            }
            files.insert(file);
        }
        let heading = format!("({count})</summary>");
        assert!(part.contains(&heading), "a heading should say: {heading}");
        parts.push(count);
    }
    let [actor, start, run, back, makers] = parts[..] else {
        panic!("the section should have five parts");
    };
    let all = actor + start + run + back + makers;
    let before = actor + start + makers;
    let files = files.len();
    let counted = format!("{all} functions in {files} files, {before} of them before the loop");
    let section = section.replace('\n', " ");
    assert!(section.contains(&counted), "the map should say: {counted}");
    assert!(all <= 90 && files <= 55 && before <= 35, "{counted}");
}
