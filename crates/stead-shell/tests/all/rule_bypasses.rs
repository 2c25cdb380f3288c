//! The place for tests of known ways around command rules (tests/data/rule_bypasses.txt), and fuzzing of
//! the shell parser.

use super::rules;
use proptest::prelude::*;
use std::time::{Duration, Instant};
use stead_core::VerdictKind::{Allow, Deny};
use stead_shell::{CommandRules, Invocation, judge, parse};

const TRICKS: &str = include_str!("../data/rule_bypasses.txt");
const HARMLESS: [&str; 8] = [
    "ls",
    "ls -la src",
    "git status",
    "git status -s",
    "cat a.txt",
    "echo hello",
    "npm test",
    "git log --oneline | head -5",
];

pub(super) fn generous() -> CommandRules {
    rules(r#"{"reads": "allow", "allow": ["git status *", "ls *", "cat *", "echo *", "npm test"]}"#)
}

/// A line of the catalogue with `{U+000A}` as what it stands for.
pub(super) fn unescaped(line: &str) -> String {
    let mut pieces = line.split("{U+");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_once('}').unwrap();
        text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        text.push_str(rest);
    }
    text
}

fn tricks() -> Vec<String> {
    let lines = TRICKS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(unescaped).collect()
}

#[test]
fn no_trick_is_ever_allowed() {
    let rules = generous();
    for command in HARMLESS {
        assert_eq!(
            judge(&rules, command).kind,
            Allow,
            "{command}: {}",
            judge(&rules, command).reason
        );
    }
    let tricks = tricks();
    assert!(tricks.len() > 700, "only {}", tricks.len());
    let allowed: Vec<_> = tricks
        .iter()
        .filter(|trick| judge(&rules, *trick).kind == Allow)
        .collect();
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[test]
fn no_trick_beside_an_allowed_command_is_allowed() {
    let rules = generous();
    let tricks = tricks();
    for (index, trick) in tricks.iter().enumerate() {
        let harmless = HARMLESS[index % HARMLESS.len()];
        let joint = ["; ", " && ", " || ", "\n", " | ", " & "][index % 6];
        let before = format!("{harmless}{joint}{trick}");
        let around = [
            format!("{trick}\n{harmless}"),
            format!("echo \"$({trick}\n)\""),
        ]
        .into_iter()
        .skip(index / 6 % 2)
        .take(1);
        // What follows may make a whole of what was broken, so only whole ones are put before and
        // inside.
        let whole = parse(trick).ambiguity.is_none();
        for joined in std::iter::once(before).chain(around.filter(|_| whole)) {
            let judged = judge(&rules, &joined);
            assert_ne!(judged.kind, Allow, "{joined:?}");
        }
    }
}

#[test]
fn a_deny_rule_sees_through_every_wrapper() {
    let rules = rules(r#"{"allow": ["*"], "deny": ["danger *"]}"#);
    let wraps: &[fn(&str) -> String] = &[
        |c| format!("env X=Y {c}"),
        |c| format!("env -i {c}"),
        |c| format!("command {c}"),
        |c| format!("nohup {c} &"),
        |c| format!("nice -n 5 {c}"),
        |c| format!("nice --odd {c}"),
        |c| format!("timeout -k 1 5 {c}"),
        |c| format!("time {c}"),
        |c| format!("sudo -u root {c}"),
        |c| format!("sudo --odd {c}"),
        |c| format!("stdbuf -oL {c}"),
        |c| format!("xargs -0 {c}"),
        |c| format!("find . -exec {c} {{}} +"),
        |c| format!("exec {c}"),
        |c| format!("busybox {c}"),
        |c| format!("strace -f {c}"),
        |c| format!("/usr/bin/env {c}"),
        |c| format!("sh -c {}", quoted(c)),
        |c| format!("bash -lc {} x", quoted(c)),
        |c| format!("eval {}", quoted(c)),
        |c| format!("env -S {}", quoted(c)),
        |c| format!("su -c {}", quoted(c)),
        |c| format!("trap {} EXIT", quoted(c)),
    ];
    let lists: &[fn(&str) -> String] = &[
        |c| format!("ls; {c}"),
        |c| format!("ls $({c})"),
        |c| format!("cat <<E\n$({c})\nE"),
        |c| format!("if {c}; then ls; fi"),
        |c| format!("f() {{ {c}; }}; f"),
        |c| format!("X=1 {c} > x"),
        |c| format!("ls <({c})"),
        |c| c.to_owned(),
    ];
    for (index, outer) in wraps.iter().enumerate() {
        for name in [
            "danger",
            "/bin/danger",
            "d\\anger",
            "'danger'",
            "$'\\x64anger'",
        ]
        .iter()
        .skip(index % 4)
        .take(2)
        {
            for list in lists {
                let command = list(&outer(&format!("{name} x")));
                assert_eq!(
                    judge(&rules, &command).kind,
                    Deny,
                    "{command:?}: {:?}",
                    judge(&rules, &command)
                );
            }
            for inner in wraps.iter().filter(|inner| !inner("c").ends_with('&')) {
                let command = outer(&inner(&format!("{name} x")));
                assert_eq!(
                    judge(&rules, &command).kind,
                    Deny,
                    "{command:?}: {:?}",
                    judge(&rules, &command)
                );
            }
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Pieces of which lines are made that come near to being valid.
pub(super) fn lines() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "ls",
        "cat",
        "echo",
        "git status",
        "rm",
        "x",
        "-l",
        " ",
        " ",
        " ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "$",
        "${",
        "}",
        "{",
        "(",
        "((",
        "))",
        "<",
        ">",
        ">>",
        "<<E",
        "\nE\n",
        "<<<",
        "<(",
        "#",
        "!",
        "*",
        "[",
        "]",
        "[[",
        "]]",
        "~",
        "=",
        "X=1",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "case",
        "esac",
        ";;",
        "function",
        "f()",
        "$'",
        "$x",
        "$((1))",
        "2>&1",
        ">/dev/null",
        "sh -c ",
        "eval ",
        "xargs ",
        "sudo ",
        "\t",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 25 / 16))]

    #[test]
    fn reading_never_panics_and_says_the_same_twice(line in lines(), any in "\\PC{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let raw = String::from_utf8_lossy(&bytes).into_owned();
        for text in [&line, &any, &raw] {
            prop_assert_eq!(parse(text), parse(text));
            judge(&generous(), text);
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_part_by_part(line in lines()) {
        let rules = generous();
        if judge(&rules, &line).kind == Allow {
            let alone = |part: &&stead_shell::CommandPart| part.invocation == Invocation::Direct && !part.source.contains("<<");
            for part in parse(&line).parts.iter().filter(alone) {
                prop_assert_eq!(judge(&rules, &part.source).kind, Allow, "{} of {}", part.source, line);
            }
        }
    }

    #[test]
    fn a_rule_never_makes_another_milder(line in lines()) {
        let allowing = judge(&generous(), &line).kind;
        let mut stricter = generous();
        stricter.deny = rules(r#"{"deny": ["cat *"]}"#).deny;
        prop_assert!(judge(&stricter, &line).kind >= allowing);
    }
}

#[test]
fn the_time_to_read_grows_with_the_length() {
    for unit in [
        "a b ", "$(", "a; ", "${x:-", "\"$(", "((", "`", "'", "<<E ", "{ ", "[[ ", "case ", "a=(",
        "if ", "\\", "$'",
    ] {
        let started = Instant::now();
        parse(&unit.repeat(60_000 / unit.len()));
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{unit:?} took {:?}",
            started.elapsed()
        );
    }
}
