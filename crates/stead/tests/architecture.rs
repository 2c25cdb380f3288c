//! The place for tests of rules about the code base: crate dependencies, file length, and which
//! crates may touch the outside world.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;
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
                "stead-sandbox/src/orphans.rs",
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
            &["stead/src/cli/print.rs", "stead/src/cli/env.rs"],
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

#[test]
fn each_file_says_what_it_may_touch_and_a_pure_one_touches_nothing() {
    // Whatever has an effect needs one of these.
    let needed = [
        ".await",
        "async ",
        "std::fs",
        "std::env",
        "std::io::std",
        "tokio::",
        "::now(",
        "Mutex",
        "RwLock",
        "Atomic",
        "OnceCell",
        "OnceLock",
        "LazyLock",
        "rand::",
    ];
    // Code with an effect, and the name of the effect.
    let signs = [
        ("Instant::now(", "the clock"),
        ("SystemTime::now(", "the clock"),
        ("Timestamp::now(", "the clock"),
        ("Id::fresh(", "randomness"),
        ("journal.record(", "the journal (appends)"),
        (".emit(", "what it is given"),
    ];
    let mut problems = Vec::new();
    for (name, code) in sources() {
        let mut header = code.lines().take_while(|line| line.starts_with("//!"));
        let effects: Vec<&str> = header
            .clone()
            .filter_map(|line| line.strip_prefix("//! Effects: "))
            .collect();
        let listed: Vec<&str> = header
            .by_ref()
            .skip_while(|line| !line.starts_with("//! Effects: "))
            .map(|line| line.trim_start_matches("//! "))
            .collect();
        let listed = listed.join(" ");
        let own_code = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let own_code: String = own_code.collect();
        for (sign, effect) in signs {
            if own_code.contains(sign)
                && !listed.contains(effect)
                && listed != "Effects: test support."
            {
                problems.push(format!(
                    "{name}: has `{sign}`, and its header does not say: {effect}"
                ));
            }
        }
        match effects.as_slice() {
            ["none."] => {
                let lines = code.lines().enumerate();
                let mut code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
                if let Some((line, text)) =
                    code.find(|(_, line)| needed.iter().any(|word| line.contains(word)))
                {
                    let text = text.trim();
                    problems.push(format!("{name}:{}: no effects, but: {text}", line + 1));
                }
            }
            [_] => {}
            [] => problems.push(format!("{name}: its header lacks a line `//! Effects: …`")),
            [_, _, ..] => problems.push(format!("{name}: its header has several such lines")),
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
    let mut files = std::collections::BTreeSet::new();
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
