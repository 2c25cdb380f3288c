//! Parsing command lines, word by word.

use super::*;

/// Returns a script on one line: parts with their words; unknown words as `?`, assignments before,
/// redirections and invocation after, ambiguity last.
fn shown(command: &str) -> String {
    let script = parse(command);
    let mut parts: Vec<String> = script.parts.iter().map(shown_part).collect();
    if script.ambiguity.is_some() {
        parts.push("UNCLEAR".to_owned());
    }
    parts.join(" / ")
}

fn shown_part(part: &CommandPart) -> String {
    let value = |value: &WordValue| match value {
        WordValue::Known(text) if text.contains([' ', '\n']) || text.is_empty() => {
            format!("«{text}»")
        }
        WordValue::Known(text) => text.clone(),
        WordValue::Unknown(_) => "?".to_owned(),
    };
    let set = part
        .assignments
        .iter()
        .map(|a| format!("{}={}", a.name, value(&a.value)));
    let words = part.words.iter().map(|word| value(&word.value));
    let redirects = part.redirects.iter().map(|redirect| {
        let target = value(&redirect.target.value);
        match &redirect.kind {
            RedirectKind::Read => format!("<{target}"),
            RedirectKind::Write => format!(">{target}"),
            RedirectKind::Duplicate => format!("&{target}"),
            RedirectKind::Heredoc(Some(body)) => format!("<<«{body}»"),
            RedirectKind::Heredoc(None) => "<<?".to_owned(),
            RedirectKind::Text => format!("<<<{target}"),
        }
    });
    let reach = match part.invocation {
        Invocation::Direct => None,
        Invocation::Wrapped => Some("(inner)".to_owned()),
        Invocation::BehindCommand => Some("(behind)".to_owned()),
    };
    set.chain(words)
        .chain(redirects)
        .chain(reach)
        .collect::<Vec<_>>()
        .join(" ")
}

fn table(cases: &[(&str, &str)]) {
    let wrong = cases
        .iter()
        .filter(|(command, expected)| shown(command) != *expected);
    let wrong: Vec<_> = wrong
        .map(|(command, _)| (command, shown(command), parse(command).ambiguity))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn quoting_is_resolved_where_that_is_certain() {
    table(&[
        ("ls -l src", "ls -l src"),
        ("l\\s 'a b' \"c d\"e f'g'\"h\"", "ls «a b» «c de» fgh"),
        ("\\rm -rf x", "rm -rf x"),
        ("r''m x", "rm x"),
        ("$'\\x72m' x", "rm x"),
        (
            "echo $'a\\\\' ; rm x ; echo 'b'",
            "echo a\\ / rm x / echo b / UNCLEAR",
        ),
        (r#"echo "a\"b\$c\`d\\e\f""#, r#"echo a"b$c`d\e\f"#),
        ("echo a#b # c; rm x", "echo a#b"),
        ("echo \"# $(rm x)\"", "rm x / echo ?"),
        ("ls \\\n  -l", "ls -l"),
        ("ls '' {} $ a=b", "ls «» {} $ a=b"),
        ("echo \"fix!\"", "echo fix!"),
    ]);
}

#[test]
fn what_only_running_tells_is_unknown() {
    table(&[
        ("$x a", "? a"),
        ("l${x}s", "?"),
        ("cat${IFS}f", "?"),
        (
            "ls *.rs [ab] a? {a,b} ~ ~/x $x \"$x\" $((1+2)) \"${x:-y}\"",
            "ls ? ? ? ? ? ? ? ? ? ?",
        ),
        ("/bin/r[m] x", "? x"),
        ("{rm,-rf,x}", "? / UNCLEAR"),
        ("echo $'a\\0b'", "echo ?"),
    ]);
}

#[test]
fn every_command_is_a_part_wherever_it_stands() {
    table(&[
        ("a; b & c && d || e | f |& g", "a / b / c / d / e / f / g"),
        ("a\nb\n\n c", "a / b / c"),
        ("(a; b) && { c; d; }", "a / b / c / d"),
        (
            "if a; then b; elif c; then d; else e; fi",
            "a / b / c / d / e",
        ),
        ("while a; do b; done; until c; do d; done", "a / b / c / d"),
        ("for f in $(a) b; do c $f; done", "a / c ?"),
        ("for PATH in /x; do ls; done", "PATH=? / ls"),
        ("case $(a) in x|y) b;; (z) c;& *) d; esac", "a / b / c / d"),
        ("! a", "a"),
        ("f() { a; }; f", "function f / a / f"),
        ("function f { a; }\nf", "function f / a / f"),
        (
            "echo $(a $(b)) `c` \"$(d)\" \"`e`\"",
            "b / a ? / c / d / e / echo ? ? ? ?",
        ),
        ("diff <(a) <(b) > >(c)", "a / b / c / diff ? ? >?"),
        ("x=$(a) y=1 b", "a / x=? y=1 b"),
        ("x=1", "x=1"),
        ("x=($(a) b)", "a / x=?"),
        ("echo ${x:-$(a)}", "a / echo ?"),
        ("cat <<E\n$(a)\nE\nb", "cat <<? / a / b"),
        ("cat <<'E' | b\n$(a)\nE", "cat <<«$(a)\n» / b"),
        ("cat <<-E\n\tx\n\tE\n", "cat <<«\tx\n»"),
        ("cat <<< \"$(a)\"", "a / cat <<<?"),
        ("[ -f x ] && a", "[ -f x ] / a"),
        ("[[ -f $(a) ]] && b", "a / [[ -f ? ]] / b"),
        ("{ a; } > f 2>&1", "a / >f &1"),
        (
            "a >f >>g 2>/dev/null <h &>i >|j 2>&1 >&-",
            "a >f >g >/dev/null <h >i >j &1 &-",
        ),
        (">f a b", "a b >f"),
        ("a >f b", "a b >f"),
    ]);
}

#[test]
fn wrappers_are_looked_through_and_stay() {
    table(&[
        ("env X=1 rm a", "env X=1 rm a / X=1 rm a (inner)"),
        ("env -u Y -i rm a", "env -u Y -i rm a / rm a (inner)"),
        (
            "timeout -s KILL 5 nice -n 3 rm a",
            "timeout -s KILL 5 nice -n 3 rm a / nice -n 3 rm a (inner) / rm a (inner)",
        ),
        ("command -v rm", "command -v rm"),
        ("command rm", "command rm / rm (inner)"),
        ("time -p rm a", "time -p rm a / rm a (inner)"),
        ("nohup rm a &", "nohup rm a / rm a (inner)"),
        ("sudo -u x rm a", "sudo -u x rm a / rm a (behind)"),
        (
            "sudo sh -c 'rm a'",
            "sudo sh -c «rm a» / sh -c «rm a» (behind) / rm a (behind)",
        ),
        ("xargs -0 rm -f", "xargs -0 rm -f / rm -f ? (inner)"),
        ("xargs -I% mv % b", "xargs -I% mv % b / mv ? b ? (inner)"),
        (
            "xargs -I a -I echo sh -c echo",
            "xargs -I a -I echo sh -c echo / ? ? ? ? (inner)",
        ),
        (
            "xargs -dI -Iecho sh -c echo",
            "xargs -dI -Iecho sh -c echo / ? ? ? ? (inner)",
        ),
        ("xargs", "xargs"),
        (
            "find . -name x -exec rm {} \\; -exec ls {} +",
            "find . -name x -exec rm {} ; -exec ls {} + / rm ? (inner) / ls ? (inner)",
        ),
        ("sh -c 'a; b'", "sh -c «a; b» / a (inner) / b (inner)"),
        ("bash -lc \"rm a\" x", "bash -lc «rm a» x / rm a (inner)"),
        (
            "bash -o pipefail -c 'a | b'",
            "bash -o pipefail -c «a | b» / a (inner) / b (inner)",
        ),
        ("sh -c \"$x\"", "sh -c ? / ? (inner)"),
        (
            "bash <<'E'\nrm a\nE",
            "bash <<«rm a\n» / ? (inner) / rm a (inner)",
        ),
        ("bash script.sh", "bash script.sh"),
        ("eval rm 'a b'", "eval rm «a b» / rm a b (inner)"),
        ("eval \"$x\"", "eval ? / ? (inner)"),
        ("trap 'rm a' EXIT", "trap «rm a» EXIT / rm a (inner)"),
        ("busybox rm a", "busybox rm a / rm a (inner)"),
        ("exec -a x rm a", "exec -a x rm a / rm a (inner)"),
        ("su -c 'rm a' root", "su -c «rm a» root / rm a (behind)"),
        (
            "nice --weird rm a",
            "nice --weird rm a / ? (inner) / --weird rm a (behind) / rm a (behind) / a (behind)",
        ),
    ]);
}

#[test]
fn what_is_not_certain_is_unclear() {
    let cases = [
        "ls )",
        "ls (",
        "if a",
        "a 'b",
        "a \"b",
        "a `b",
        "$(a",
        "${a",
        "a <",
        "a <<E\nb",
        "ls \u{a0}x",
        "l\u{200b}s",
        "ls\r\n",
        "a \u{0}",
        "ls \u{202e}x",
        "r\\\nm x",
        "a &\\\n& b",
        "echo $\\\n(a)",
        "echo !!",
        "echo \"!x\"",
        "echo $((x))",
        "echo $((a[1]))",
        "((x++))",
        "echo ${x@P}",
        "echo ${!x}",
        "echo ${a[$i]}",
        "echo ${x:=y}",
        "echo ${x:$y}",
        "echo $[1]",
        "${ a;}",
        "coproc a",
        "[[ a -eq b ]]",
        "echo $\"a\"",
        "cat <<$x\nE\n$x",
        "ls ;; a",
        "fi",
        "} a",
        "for ((;;)); do a; done",
        "echo @(a|b)",
        "a b()",
        "sh -c 'a (b'",
        "sh -c \"echo $'a'\"",
        "sh -c 'a &> b'",
        "zsh -c a",
        "watch 'a <(b)'",
    ];
    for command in cases {
        assert!(
            parse(command).ambiguity.is_some(),
            "{command:?} is {}",
            shown(command)
        );
    }
}

#[test]
fn bounds_hold() {
    assert_eq!(parse(&"a".repeat(MAX_BYTES)).ambiguity, None);
    let long = parse(&"a".repeat(MAX_BYTES + 1));
    assert_eq!(long.ambiguity.map(|unclear| unclear.at), Some(MAX_BYTES));
    assert_eq!(parse(&"a;".repeat(MAX_PARTS)).ambiguity, None);
    let many = parse(&"a;".repeat(MAX_PARTS + 1));
    assert_eq!(
        many.ambiguity.map(|unclear| unclear.reason),
        Some("more than 200 commands".to_owned())
    );
    let deep = |levels: usize| format!("{}a{}", "( ".repeat(levels), " )".repeat(levels));
    assert_eq!(parse(&deep(MAX_DEPTH - 1)).ambiguity, None);
    let too_deep = parse(&deep(MAX_DEPTH))
        .ambiguity
        .map(|unclear| unclear.reason);
    assert_eq!(
        too_deep,
        Some("nested more than 100 levels deep".to_owned())
    );
}
