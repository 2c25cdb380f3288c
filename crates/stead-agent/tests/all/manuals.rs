//! The place for the test that no rule with a wildcard runs anything but reads. It does not know how
//! a program can be made to run another one. It writes command lines from the options of the
//! programs' manuals (tests/data/manuals.txt), in every spelling, with payloads in every value and
//! operand, and runs each line that the gate allows, in a network namespace without network. A
//! payload that works leaves a file, or prints what the file rules deny.

use crate::subagents::{Says, answers};
use crate::support::{agent_with_host, block_on, in_parallel};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use stead_core::VerdictKind::Allow;
use stead_shell::{CommandRules, judge};
use stead_testkit::rounds;
use tempfile::TempDir;

const MANUALS: &str = include_str!("../data/manuals.txt");
/// The seed of the first round.
const SEED: u64 = 0x5eed_cafe;
/// The lines that are run in each round, of those that the gate allows.
const RUN_PER_ROUND: usize = 700;
/// What the file rules deny.
const SECRET: &str = "open-sesame-7731";
/// Everything that rules for commands can allow without naming a line.
const RULES: &str = "commands: {reads: allow, allow: ['*', 'git *', 'sed *', 'npm test *']}\n\
    permissions: [{operations: [read], paths: ['secrets/**', 'history.txt'], mode: deny}]\nmemory: {flush: false}\n";

/// Texts that make some program run another one, write a file, or show what is denied.
const PAYLOADS: [&str; 60] = [
    "touch CANARY",
    "!touch CANARY",
    "|touch CANARY",
    "$(touch CANARY)",
    "`touch CANARY`",
    ";touch CANARY;",
    "CANARY",
    "./CANARY",
    ">CANARY",
    "1e touch CANARY",
    "w CANARY",
    "s/a/b/w CANARY",
    "s/a/touch CANARY/e",
    "1r .env",
    "1p;w CANARY",
    "1{e touch CANARY\n}",
    "BEGIN{system(\"touch CANARY\")}",
    "BEGIN{print>\"CANARY\"}",
    "{print|\"touch CANARY\"}",
    "import os;os.system(\"touch CANARY\")",
    "require('child_process').execSync('touch CANARY')",
    "system('touch CANARY')",
    "./evil.sh",
    "evil.sh",
    "@evil.sh",
    "evil.mk",
    "evil.awk",
    "evil.py",
    "evil.rc",
    "./evil.mjs",
    ".shell touch CANARY",
    ".once |touch CANARY",
    "ext::sh -c touch% CANARY",
    "alias.status=!touch CANARY",
    "core.pager=touch CANARY",
    "core.fsmonitor=touch CANARY",
    "diff.external=./evil.sh",
    "GIT_EXTERNAL_DIFF=./evil.sh",
    "ProxyCommand=touch CANARY",
    "x:=$(shell touch CANARY)",
    "exec=touch CANARY",
    "a[$(touch CANARY)]",
    "%G?",
    "%(signature)",
    ".env",
    "./src/../.env",
    "secrets/key",
    "secrets",
    "link/key",
    ".",
    "..",
    "recurse",
    "skill",
    "/etc/passwd",
    "history.txt",
    "HEAD:.env",
    ":0:.env",
    ":(top).env",
    "HEAD~1",
    "*",
];

/// What stands in the place of an operand or a value that is meant to be harmless.
fn usual(slot: &str) -> &str {
    match slot {
        "SCRIPT" => "1p",
        "FILE" | "COND" => "a.txt",
        "PATTERN" => "a",
        "TEXT" => "x",
        "REV" => "HEAD",
        "DIR" => "src",
        "PROGRAM" => "true",
        "URL" => "http://127.0.0.1:9/x",
        "CANARY" => "CANARY",
        other => other,
    }
}

/// A program of the manuals.
struct Manual {
    names: Vec<&'static str>,
    operands: Vec<&'static str>,
    options: Vec<&'static str>,
}

fn manuals() -> Vec<Manual> {
    let lines = MANUALS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(" |").collect();
            let [names, operands, options] = fields[..] else {
                panic!("not three fields: {line}")
            };
            Manual {
                names: words(names),
                operands: words(operands),
                options: words(options),
            }
        })
        .collect()
}

/// A generator of numbers that a seed determines.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Returns the ways to write an option, each as words, with a value if it is to have one.
fn spellings(option: &str, flags: &[&str], value: &str) -> Vec<Vec<String>> {
    let name = option.trim_end_matches(['=', '?']);
    let takes = name != option;
    let words = |words: &[String]| words.to_vec();
    let mut all = Vec::new();
    if let Some(long) = name.strip_prefix("--") {
        let half = &long[..long.len().div_ceil(2)];
        let short = &long[..long.len() - 1];
        let forms = [
            name.to_owned(),
            format!("--{half}"),
            format!("--{short}"),
            format!("-{long}"),
            format!("---{long}"),
            format!("--{}", long.replace('-', "_")),
            format!("--{}", long.to_uppercase()),
            format!("--no-{long}"),
        ];
        for form in forms {
            all.push(words(&[format!("{form}={value}")]));
            match takes {
                true => all.push(words(&[form, value.to_owned()])),
                false => all.push(words(&[form])),
            }
        }
    } else {
        all.push(words(&[name.to_owned()]));
        all.push(words(&[format!("{name}{value}")]));
        all.push(words(&[format!("{name}={value}")]));
        all.push(words(&[name.to_owned(), value.to_owned()]));
        all.push(words(&[format!("-{name}={value}")]));
        if let ([flag, ..], 2) = (flags, name.len()) {
            all.push(words(&[format!("{flag}{}", &name[1..])]));
            all.push(words(&[format!("{flag}{}{value}", &name[1..])]));
            all.push(words(&[format!("{flag}{}", &name[1..]), value.to_owned()]));
        }
    }
    all
}

fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@+,%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Writes lines with every option in every spelling, with values and operands by the numbers.
fn lines(numbers: &mut Numbers) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for manual in manuals() {
        let mut flags: Vec<&str> = manual.options.clone();
        flags.retain(|option| option.len() == 2 && !option.starts_with("--"));
        for option in &manual.options {
            let flag = [numbers.pick(if flags.is_empty() { &["-q"] } else { &flags })];
            for at in 0..spellings(option, &flag, "").len() {
                let value = match numbers.below(3) {
                    0 => numbers.pick(&["1", "a", "a.txt", "src", "0", "x"]),
                    _ => numbers.pick(&PAYLOADS),
                };
                let spelled = spellings(option, &flag, value).swap_remove(at);
                all.insert(line(&manual, spelled, numbers));
            }
        }
    }
    all
}

/// Writes one line: the option before, after or between the operands.
fn line(manual: &Manual, option: Vec<String>, numbers: &mut Numbers) -> String {
    let mut operands: Vec<String> = Vec::new();
    for slot in &manual.operands {
        let is_word = usual(slot) == *slot && *slot != "CANARY";
        let operand = match numbers.below(4) {
            0 if !is_word => numbers.pick(&PAYLOADS),
            _ => usual(slot),
        };
        operands.push(operand.to_owned());
    }
    match numbers.below(12) {
        0 => operands.push(numbers.pick(&PAYLOADS).to_owned()),
        1 => operands.insert(0, "--".to_owned()),
        2 => operands.clear(),
        _ => {}
    }
    let second = match numbers.below(3) {
        0 => vec![
            manual.options[numbers.below(manual.options.len())]
                .trim_end_matches(['=', '?'])
                .to_owned(),
        ],
        _ => Vec::new(),
    };
    let names = manual.names.iter().map(|name| (*name).to_owned());
    // After `--` an option is none.
    let ends_options = manual.operands.contains(&"--") && numbers.below(8) > 0;
    let words: Vec<String> = match numbers.below(4) {
        _ if ends_options => names.chain(option).chain(second).chain(operands).collect(),
        0 => names.chain(operands).chain(second).chain(option).collect(),
        1 => names.chain(second).chain(option).chain(operands).collect(),
        _ => names.chain(option).chain(operands).chain(second).collect(),
    };
    let mut line = words
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ");
    match numbers.below(40) {
        0 => line.push_str(" < .env"),
        1 => line.push_str(" <<< 'touch CANARY'"),
        2 => line = format!("cd src && {line}"),
        3 => line = format!("{line} | cat"),
        _ => {}
    }
    line
}

/// A workspace, in a folder with another one beside it.
struct Workspace {
    whole: TempDir,
}

impl Workspace {
    fn path(&self) -> PathBuf {
        self.whole.path().join("work")
    }
}

/// A workspace full of traps.
fn workspace() -> Workspace {
    let dir = Workspace {
        whole: tempfile::tempdir().unwrap(),
    };
    std::fs::create_dir(dir.whole.path().join("beside")).unwrap();
    std::fs::write(dir.whole.path().join("beside/b.txt"), "b\n").unwrap();
    let put = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("agent.yaml", RULES);
    put("a.txt", "a\nb\n");
    put("src/a.txt", "a\nc\n");
    put("history.txt", SECRET);
    put(".env", &format!("KEY={SECRET}\n"));
    put("secrets/key", SECRET);
    put("evil.sh", "#!/bin/sh\ntouch CANARY\n");
    put("evil.mk", "all:\n\ttouch CANARY\n");
    put("Makefile", "x test all:\n\ttouch CANARY\n");
    put("evil.awk", "BEGIN{system(\"touch CANARY\")}\n");
    put("evil.py", "import os;os.system('touch CANARY')\n");
    put(
        "evil.rc",
        "[core]\npager = touch CANARY\nuse_askpass = ./evil.sh\n",
    );
    put(
        "evil.mjs",
        "import {execSync} from 'child_process'; execSync('touch CANARY')\n",
    );
    put(
        "package.json",
        "{\"name\": \"x\", \"scripts\": {\"test\": \"touch CANARY\"}}\n",
    );
    put("skill/a.txt", "a\n");
    std::os::unix::fs::symlink("secrets", dir.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc", dir.path().join("src/out")).unwrap();
    std::fs::set_permissions(
        dir.path().join("evil.sh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let git = |folder: &str, line: &str| {
        let ran = run(
            &format!("cd {folder} && git -c user.name=a -c user.email=a@b {line}"),
            &dir.path(),
        );
        assert!(ran.status.success(), "git {line}: {ran:?}");
    };
    git(".", "init -q -b main .");
    git(".", "add a.txt src history.txt .env secrets evil.sh");
    git(".", "commit -q -m first");
    git(".", "rm -q --cached .env history.txt");
    git(".", "commit -q -m second");
    put("a.txt", "a\nb\nchanged\n");
    git("skill", "init -q .");
    git("skill", "add a.txt");
    // Git looks into a file again only if it is not as old as the index says.
    let file = std::fs::File::options()
        .append(true)
        .open(dir.path().join("skill/a.txt"));
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    file.unwrap().set_modified(earlier).unwrap();
    put("skill/.git/info/attributes", "* filter=evil diff=evil\n");
    let evil = "[filter \"evil\"]\n\tclean = touch CANARY\n[diff \"evil\"]\n\ttextconv = touch CANARY;:\n[core]\n\tfsmonitor = touch CANARY\n";
    std::fs::write(
        dir.path().join("skill/.git/config"),
        format!("[core]\n\tbare = false\n{evil}"),
    )
    .unwrap();
    dir
}

/// Runs a line as a command of an agent would, without network.
fn run(line: &str, dir: &Path) -> Output {
    let network = match rustix::process::getuid().is_root() {
        true => "-n",
        false => "-rn",
    };
    Command::new("unshare")
        .args([network, "timeout", "-k", "1", "5", "bash", "-c", line])
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", dir.join("src"))
        .envs([
            ("TERM", "dumb"),
            ("LANG", "C.UTF-8"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
        ])
        .envs([
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
        ])
        .envs([
            ("GIT_CONFIG_VALUE_0", "explicit"),
            ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_1", "false"),
        ])
        .stdin(Stdio::null())
        .output()
        .expect("unshare is needed (package util-linux)")
}

/// What lies in a folder: each file with its content, and of `.git` what decides what git runs.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && entry.file_name() == ".git" {
            let config = path.join("config");
            all.insert(config.clone(), std::fs::read(config).unwrap_or_default());
        } else if kind.is_dir() {
            all.extend(files(&path));
        }
        let content = match kind.is_file() {
            true => std::fs::read(&path).unwrap_or_default(),
            false => Vec::new(),
        };
        all.insert(path, content);
    }
    all
}

/// Returns what a line did that no read does, in its folder or beside it.
fn harm(line: &str, place: &Workspace, before: &BTreeMap<PathBuf, Vec<u8>>) -> Option<String> {
    let ran = run(line, &place.path());
    let after = files(place.whole.path());
    let said =
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if after != *before {
        let paths: BTreeSet<&PathBuf> = after.keys().chain(before.keys()).collect();
        let changed = paths
            .into_iter()
            .filter(|path| after.get(*path) != before.get(*path));
        let changed: Vec<&PathBuf> = changed.collect();
        return Some(format!("{line}: changed {changed:?}"));
    }
    said.contains(SECRET)
        .then(|| format!("{line}: printed what is denied"))
}

#[test]
fn a_payload_that_works_is_noticed() {
    for line in [
        "sed --line-length 5 '1e touch CANARY' a.txt",
        "awk --assign x=1 'BEGIN{system(\"touch CANARY\")}'",
        "make -E '$(shell touch CANARY)' x",
        "sort -o CANARY a.txt",
        "cd skill && git status",
        "git log -U3",
        "grep -d recurse KEY .",
        "git show HEAD~1:history.txt",
        // What was there is overwritten.
        "sort -r -o a.txt a.txt",
        "sed -i s/a/x/ a.txt",
        "cp a.txt agent.yaml",
        "git config core.pager 'touch CANARY'",
        // Outside the folder.
        "touch ../beside/CANARY",
        "sort -r -o ../beside/b.txt a.txt",
        "touch ../CANARY",
    ] {
        let place = workspace();
        let before = files(place.whole.path());
        assert!(harm(line, &place, &before).is_some(), "{line}");
    }
    let place = workspace();
    let before = files(place.whole.path());
    assert_eq!(harm("cat a.txt", &place, &before), None);
    let online = run("cat < /dev/tcp/127.0.0.1/9", &place.path());
    assert!(!online.status.success(), "there is no network");
}

#[test]
fn no_canary_fires_from_a_line_that_a_rule_allows() {
    let dir = workspace();
    let settings: CommandRules = serde_json::from_value(
        json!({"reads": "allow", "allow": ["*", "git *", "sed *", "npm test *"]}),
    )
    .unwrap();
    let mut tried = 0;
    let mut programs = BTreeSet::new();
    for round in 0..rounds(1) {
        let mut numbers = Numbers(SEED.wrapping_add(round as u64 * 0x9e37_79b9));
        let all: Vec<String> = lines(&mut numbers).into_iter().collect();
        tried += all.len();
        let by_rules = Mutex::new(Vec::new());
        in_parallel(&all.chunks(500).collect::<Vec<_>>(), |chunk| {
            let mut allowed: Vec<String> = chunk.to_vec();
            allowed.retain(|line| judge(&settings, line).kind == Allow);
            by_rules.lock().unwrap().extend(allowed);
        });
        let mut by_rules = by_rules.into_inner().unwrap();
        by_rules.sort();
        // The same choice for the same seed.
        while by_rules.len() > RUN_PER_ROUND * 2 {
            by_rules.swap_remove(numbers.below(by_rules.len()));
        }
        let mut allowed = Vec::new();
        block_on(async {
            let agent = agent_with_host(&dir.path(), answers(|_, _, _| Says::Never)).await;
            for line in by_rules {
                let verdict = agent
                    .sessionless()
                    .explain("execute", json!({"command": line}))
                    .await;
                if verdict.unwrap().kind == Allow {
                    allowed.push(line);
                }
            }
        });
        allowed.truncate(RUN_PER_ROUND);
        let before = files(dir.whole.path());
        let harmful = Mutex::new(Vec::new());
        in_parallel(&allowed, |line| {
            harmful.lock().unwrap().extend(harm(line, &dir, &before));
        });
        let harmful = harmful.into_inner().unwrap();
        assert!(
            harmful.is_empty(),
            "seed {SEED:#x}, round {round}: {harmful:#?}"
        );
        programs.extend(
            allowed
                .iter()
                .filter_map(|line| line.split(' ').next())
                .map(str::to_owned),
        );
        assert!(
            allowed.len() > 300,
            "only {} lines were allowed",
            allowed.len()
        );
    }
    assert!(tried > 20_000, "only {tried} lines were tried");
    assert!(programs.len() > 18, "only {programs:?} were run");
}
