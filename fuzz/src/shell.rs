//! Command lines and the rules about them.

use stead_core::VerdictKind;
use stead_shell::{
    CommandPart, CommandPattern, CommandRules, Invocation, ReadPolicy, ShellScript, ShellWord,
    allows, judge, parse, program_files,
};

pub(crate) const TOKENS: &[&str] = &[
    "$(",
    ")",
    "`",
    "'",
    "\"",
    "\\",
    "\n",
    ";",
    "&&",
    "||",
    "|",
    "&",
    ">",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<<",
    "${",
    "}",
    "$((",
    "))",
    "$'",
    "\\x72",
    "if ",
    "; then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "case x in ",
    ") ",
    ";;",
    " esac",
    "{ ",
    "; }",
    "( ",
    "[[ ",
    " ]]",
    "f() ",
    "sh -c '",
    "eval ",
    "xargs ",
    "timeout 5 ",
    "sudo ",
    "env X=1 ",
    "find . -exec ",
    " \\;",
    "rm ",
    "git ",
    "cat ",
    "x=",
    "*",
    "~",
    "#",
    "!",
    "<(",
    ">(",
    "2>&1",
    " -- ",
    "\\\n",
    "\t",
    "é",
    "\u{a0}",
    "function f ",
    "coproc ",
    "time ",
];

/// Asserts of a command line:
///
/// - An ambiguity is at a place in it.
/// - Each command and word that stands in it directly is a piece of it.
/// - Words that are known keep their values when they are quoted and parsed again.
/// - A rule that denies a command denies the whole line, wherever the command stands.
/// - An ambiguous line is never allowed, and neither is one that writes allowed as reading only.
/// - The programs of any part can be looked for.
///
/// The line is read as a pattern, too: its text gives the same pattern again.
pub fn shell(data: &[u8]) {
    let command = crate::text(data);
    let script = parse(&command);
    check_script(&command, &script);
    // One part is enough: the next input has another.
    if let Some(part) = script.parts.get(data.len() % script.parts.len().max(1)) {
        check_requoted(part);
        check_denied(&command, part);
    }
    check_allowed(&command, &script);
    if let Ok(pattern) = CommandPattern::new(&command) {
        let again = CommandPattern::new(pattern.text());
        assert_eq!(again.as_ref(), Ok(&pattern), "a pattern from its own text");
    }
}

fn check_script(command: &str, script: &ShellScript) {
    if let Some(ambiguity) = &script.ambiguity {
        assert!(ambiguity.at <= command.len(), "outside: {ambiguity:?}");
        return;
    }
    for part in &script.parts {
        match part.invocation {
            Invocation::Direct => {}
            Invocation::Wrapped | Invocation::BehindCommand => continue,
        }
        // `f() …` is the part `function f`, however it is written.
        if part.name() == Some("function") {
            continue;
        }
        assert!(
            command.contains(&part.source),
            "not in the line: {:?}",
            part.source
        );
        for word in &part.words {
            assert!(
                command.contains(&word.source),
                "not in the line: {:?}",
                word.source
            );
        }
    }
}

/// Quotes the words of a part, and parses them again.
fn check_requoted(part: &CommandPart) {
    let Some(words) = known_words(part) else {
        return;
    };
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    let again = parse(&quoted.join(" "));
    if again.ambiguity.is_some() {
        return;
    }
    let first = again.parts.first();
    assert_eq!(
        first.and_then(known_words),
        Some(words),
        "quoted and parsed again"
    );
}

/// Returns the values of the words, if there are some and all are known.
fn known_words(part: &CommandPart) -> Option<Vec<&str>> {
    let words: Option<Vec<&str>> = part.words.iter().map(ShellWord::known).collect();
    words.filter(|words| !words.is_empty())
}

fn check_denied(command: &str, part: &CommandPart) {
    let Some(name) = part.name() else {
        return;
    };
    let Ok(pattern) = CommandPattern::new(&format!("'{name}' *")) else {
        return;
    };
    if name.is_empty() || name.contains('\'') {
        return;
    }
    let rules = CommandRules {
        deny: vec![pattern],
        ..CommandRules::default()
    };
    let verdict = judge(&rules, command);
    assert_eq!(
        verdict.kind,
        VerdictKind::Deny,
        "{name} is denied: {verdict:?}"
    );
}

fn check_allowed(command: &str, script: &ShellScript) {
    if allows(&["*".to_owned()], command) {
        assert_eq!(script.ambiguity, None, "ambiguous, and allowed");
    }
    let reading = CommandRules {
        reads: ReadPolicy::Allow,
        ..CommandRules::default()
    };
    if judge(&reading, command).kind == VerdictKind::Allow {
        assert_eq!(script.ambiguity, None, "ambiguous, and allowed to read");
        for part in &script.parts {
            assert!(!part.writes(), "writes, and is allowed to read: {part:?}");
            assert_eq!(part.assignments, [], "assigns, and is allowed to read");
        }
    }
    for part in &script.parts {
        // It must not panic.
        let _ = program_files(part);
    }
}
