//! The place for tests of the shell parser against real bash: every command that runs is among the
//! parsed parts.

use super::rule_bypasses::{generous, lines, unescaped};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use stead_core::VerdictKind;
use stead_shell::{CommandPart, ShellScript, WordValue, judge, parse};
use tempfile::TempDir;

/// Commands that write down how they were called.
const RECORDERS: [&str; 12] = [
    "c0", "c1", "c2", "c3", "c4", "rm", "ls", "cat", "git", "npm", "tee", "hidden",
];
/// Wrappers as they are on this machine.
const WRAPPERS: [&str; 8] = [
    "env", "timeout", "nice", "nohup", "xargs", "sh", "bash", "stdbuf",
];

struct Playground {
    temp: TempDir,
    runs: Cell<usize>,
}

impl Playground {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let bin = temp.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::fs::create_dir(temp.path().join("cwd")).unwrap();
        let recorder = "#!/bin/sh\nline=${0##*/}\nfor word; do line=\"$line\u{1}$word\"; done\n\
            printf '%s\u{2}' \"$line\" >> \"$RECORD\"\n";
        for name in RECORDERS {
            std::fs::write(bin.join(name), recorder).unwrap();
            std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        for name in WRAPPERS {
            let real = ["/usr/bin", "/bin"].map(|dir| PathBuf::from(dir).join(name));
            symlink(
                real.iter().find(|path| path.exists()).unwrap(),
                bin.join(name),
            )
            .unwrap();
        }
        Self {
            temp,
            runs: Cell::new(0),
        }
    }

    /// Runs a line and returns the words of each command that ran.
    fn run(&self, line: &str) -> Vec<Vec<String>> {
        // Bash does not wait for `<(…)`, which may write when the next line has begun: to each its
        // own record.
        self.runs.set(self.runs.get() + 1);
        let record = self.temp.path().join(format!("record-{}", self.runs.get()));
        std::fs::write(&record, "").unwrap();
        // Those left in the background are waited for, whatever becomes of the line.
        let status = Command::new("/usr/bin/timeout")
            .args([
                "-k",
                "1",
                "10",
                "/bin/bash",
                "-c",
                "eval \"$1\"\nwait",
                "bash",
                line,
            ])
            .env_clear()
            .env("PATH", self.temp.path().join("bin"))
            .env("RECORD", &record)
            .current_dir(self.temp.path().join("cwd"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_ne!(status.code(), Some(124), "it did not end: {line}");
        let log = std::fs::read_to_string(&record).unwrap();
        log.split('\u{2}')
            .filter(|call| !call.is_empty())
            .map(|call| call.split('\u{1}').map(str::to_owned).collect())
            .collect()
    }
}

/// Whether a part may have been this call.
fn is_call(part: &CommandPart, call: &[String]) -> bool {
    let mut given = call.iter();
    for word in &part.words {
        match (&word.value, given.next()) {
            (WordValue::Unknown(_), _) => return true,
            (WordValue::Known(word), Some(given)) if word == given => {}
            (WordValue::Known(_), _) => return false,
        }
    }
    given.next().is_none()
}

fn unseen<'c>(script: &ShellScript, calls: &'c [Vec<String>]) -> Option<&'c Vec<String>> {
    calls
        .iter()
        .find(|call| !script.parts.iter().any(|part| is_call(part, call)))
}

fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a",
        "'b c'",
        "\"d e\"",
        "f\\ g",
        "$'h\\x69'",
        "\"x\\$y\"",
        "$(c4 z)",
        "`c3`",
        "\"$(c2 'q r')\"",
        "*",
        "{p,q}",
        "$x",
        "a#b",
        "''",
        "\\\\",
        "\"\\\\\"",
        "'\\'",
        "$'\\\\'",
        "\"it's\"",
        "'\"'",
        "-n",
        "\\;",
        "';'",
        "\"&&\"",
        "\\#c",
        "$'a\\'b'",
        "\"a\nb\"",
        "'a\nb'",
        "\\\n  k",
        "~",
        "${x:-$(c1 w)}",
        "<(c3 p)",
        "\"`c4`\"",
        "$((1+2))",
        "=",
        "a=b",
        "'$(hidden)'",
        "\"\\$(hidden)\"",
        "\\$x",
        "\\`hidden\\`",
        "{}",
        "]",
        "%",
        "2\\>x",
    ]);
    prop::collection::vec(word, 0..4)
        .prop_map(|words| words.iter().map(|word| format!(" {word}")).collect())
}

fn simple() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["c0", "c1", "'c2'", "c\\3", "\"c\"4", "$'c\\x30'"]);
    let before = prop::sample::select(vec!["", "", "", "X=1 ", "X=$(c1) ", "</dev/null ", "2>&1 "]);
    let after = prop::sample::select(vec![
        "",
        "",
        "",
        " >/dev/null",
        " 2>&1",
        " <<<x",
        " >f",
        " # hidden",
        " <<<\"$(c2)\"",
    ]);
    (before, name, words(), after)
        .prop_map(|(before, name, words, after)| format!("{before}{name}{words}{after}\n"))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn scripts() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => simple(),
        1 => words().prop_map(|words| format!("timeout 5 c1{words}\n")),
        1 => words().prop_map(|words| format!("env X=1 c2{words}\n")),
        1 => words().prop_map(|words| format!("nice -n 1 c3{words}\n")),
        1 => words().prop_map(|words| format!("command c4{words}\n")),
        1 => words().prop_map(|words| format!("time c4{words}\n")),
        1 => words().prop_map(|words| format!("echo m | xargs c0{words}\n")),
        1 => words().prop_map(|words| format!("xargs -I% c0 %{words} <<<m\n")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("{a}{b}")),
            two.clone()
                .prop_map(|(a, b)| format!("{{ {a}}} && {{ {b}}}\n")),
            two.clone()
                .prop_map(|(a, b)| format!("{{ {a}}} | ( {b})\n")),
            two.clone()
                .prop_map(|(a, b)| format!("( {a}) || {{ {b}}}; c0 & c1\n")),
            two.clone()
                .prop_map(|(a, b)| format!("if {a}then {b}else {b}fi\n")),
            two.clone()
                .prop_map(|(a, b)| format!("case a in b) {a};; (a|c) {b};; esac\n")),
            two.clone()
                .prop_map(|(a, b)| format!("c0 <<E\n$({a})\nE\n{b}")),
            two.prop_map(|(a, b)| format!(
                "c0 <<'E' | c1\n$(hidden)\nE\n! {{ {a}}}\n# hidden\n{b}"
            )),
            inner
                .clone()
                .prop_map(|a| format!("for v in 1 2; do {a}done\n")),
            inner
                .clone()
                .prop_map(|a| format!("until {a}do c1; break; done\n")),
            inner.clone().prop_map(|a| format!("f() {{ {a}}}\nf\n")),
            inner
                .clone()
                .prop_map(|a| format!("c1 \"$({a})\" $({a})\n")),
            inner
                .clone()
                .prop_map(|a| format!("sh -c {}\n", quoted(&a))),
            inner.clone().prop_map(|a| format!("eval {}\n", quoted(&a))),
            inner.prop_map(|a| format!("bash <<'E'\n{a}E\n")),
        ]
    })
}

#[test]
fn whatever_bash_runs_is_among_the_parts() {
    let playground = Playground::new();
    let clear = Cell::new(0);
    let ran = Cell::new(0);
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        max_shrink_iters: 50,
        ..Config::with_cases(Config::default().cases * 5 / 8)
    });
    let result = runner.run(&scripts(), |line| {
        let script = parse(&line);
        let calls = playground.run(&line);
        clear.set(clear.get() + usize::from(script.ambiguity.is_none()));
        ran.set(ran.get() + calls.len());
        let missed = unseen(&script, &calls).filter(|_| script.ambiguity.is_none());
        prop_assert!(missed.is_none(), "{missed:?} ran, of {line}\n{script:#?}");
        prop_assert!(
            !calls.iter().any(|call| call[0] == "hidden"),
            "what is quoted ran: {line}"
        );
        Ok(())
    });
    result.unwrap();
    let clear = clear.get();
    let ran = ran.get();
    assert!(
        clear > 60 && ran > 300,
        "only {clear} lines were clear, {ran} commands ran"
    );
}

#[test]
fn what_tricks_run_in_bash_is_among_the_parts() {
    let playground = Playground::new();
    let sections = [
        "# Another",
        "# Substitution",
        "# Here-documents",
        "# Quoting",
    ];
    let mut wanted = false;
    let mut tried = 0;
    let mut caught = 0;
    for line in include_str!("../data/rule_bypasses.txt").lines() {
        if line.starts_with("# ") {
            wanted = sections.iter().any(|section| line.starts_with(section));
        }
        // Nothing outside of the playground is called.
        if !wanted || line.starts_with("# ") || line.is_empty() || line.contains('/') {
            continue;
        }
        let line = unescaped(line);
        let script = parse(&line);
        let calls = playground.run(&line);
        tried += 1;
        caught += usize::from(calls.iter().any(|call| call[0] == "rm"));
        if script.ambiguity.is_none() {
            assert_eq!(unseen(&script, &calls), None, "{line}");
        }
    }
    assert!(
        tried > 250 && caught > 150,
        "{tried} were tried, {caught} ran what they hide"
    );
}

#[test]
fn what_is_allowed_runs_nothing_else_in_bash_and_writes_nothing() {
    let playground = Playground::new();
    let rules = generous();
    let mut runner = TestRunner::default();
    let mut ran = 0;
    for index in 0..4_000 {
        let start = [
            "ls ",
            "cat a ",
            "git status ",
            "ls '",
            "cat \"",
            "ls $(cat ",
        ][index % 6];
        let line = format!(
            "{start}{}",
            lines().new_tree(&mut runner).unwrap().current()
        );
        if judge(&rules, &line).kind != VerdictKind::Allow {
            continue;
        }
        for call in playground.run(&line) {
            let name = call[0].as_str();
            assert!(
                matches!(name, "ls" | "cat")
                    || call.starts_with(&["git".to_owned(), "status".to_owned()]),
                "{line}: {call:?}"
            );
            ran += 1;
        }
        let written: Vec<_> = std::fs::read_dir(playground.temp.path().join("cwd"))
            .unwrap()
            .flatten()
            .collect();
        assert!(written.is_empty(), "{line}: {written:?}");
    }
    assert!(ran > 50, "only {ran} commands ran");
}
