//! Wrappers: commands that run other commands, such as `timeout`, `xargs` and `sh -c`.
//!
//! Effects: none.

use super::options::OptionSpec;
use super::parser::name_length;
use super::script::{
    Assignment, CommandPart, Invocation, RedirectKind, ShellScript, ShellWord, UnknownCause,
    WordValue,
};
use super::{MAX_PARTS, parse_within};

/// The maximum nesting depth of wrappers.
const MAX_WRAPPERS: usize = 16;
/// The maximum number of words that are tried as the start of a command, where the options of a
/// wrapper are unknown.
const MAX_GUESSES: usize = 24;

/// A command that a wrapper runs.
enum WrappedCommand {
    Command(CommandPart),
    Script(String, Invocation),
    /// The command may not be what it looks like.
    Ambiguous(&'static str),
}

/// Syntax that some shells support and others parse differently.
const DIALECT: [&str; 19] = [
    "$'", "$\"", "$[", "&>", "|&", "<<<", "<(", ">(", "[[", "((", "=(", "+=", ";&", "eval",
    "function", "coproc", "select", "time", "${",
];

/// Adds the commands that wrappers run, after the wrappers.
pub(super) fn expand_wrappers(script: ShellScript, level: usize) -> ShellScript {
    let mut out = ShellScript {
        parts: Vec::new(),
        ambiguity: script.ambiguity,
    };
    for part in script.parts {
        add(part, level, &mut out);
    }
    out
}

fn add(part: CommandPart, level: usize, out: &mut ShellScript) {
    if out.parts.len() >= MAX_PARTS {
        return out.mark_ambiguous(format!("more than {MAX_PARTS} commands"), 0);
    }
    let inside = wrapped_commands(&part);
    let outer = part.invocation;
    let name = part.name().unwrap_or_default().to_owned();
    out.parts.push(part);
    if !inside.is_empty() && level >= MAX_WRAPPERS {
        return out.mark_ambiguous("too many commands that run commands", 0);
    }
    for inside in inside {
        match inside {
            WrappedCommand::Command(mut part) => {
                part.invocation = combine_invocations(outer, part.invocation);
                add(part, level + 1, out);
            }
            WrappedCommand::Ambiguous(reason) => out.mark_ambiguous(reason, 0),
            WrappedCommand::Script(text, reach) => {
                let script = parse_within(&text, level + 1);
                for mut part in script.parts {
                    part.invocation =
                        combine_invocations(combine_invocations(outer, reach), part.invocation);
                    if out.parts.len() >= MAX_PARTS {
                        return out.mark_ambiguous(format!("more than {MAX_PARTS} commands"), 0);
                    }
                    out.parts.push(part);
                }
                if let Some(unclear) = script.ambiguity {
                    out.mark_ambiguous(
                        format!("what `{name}` runs: {}", unclear.reason),
                        unclear.at,
                    );
                }
            }
        }
    }
}

fn combine_invocations(outer: Invocation, inner: Invocation) -> Invocation {
    match (outer, inner) {
        (Invocation::BehindCommand, _) | (_, Invocation::BehindCommand) => {
            Invocation::BehindCommand
        }
        (Invocation::Direct | Invocation::Wrapped, Invocation::Direct | Invocation::Wrapped) => {
            Invocation::Wrapped
        }
    }
}

fn wrapped_commands(part: &CommandPart) -> Vec<WrappedCommand> {
    let (Some(name), [_, words @ ..]) = (part.name(), part.words.as_slice()) else {
        return Vec::new();
    };
    match base_name(name) {
        "bash" | "rbash" => shell(part, words),
        "sh" | "dash" | "ash" => mark_dialect_ambiguity(shell(part, words)),
        "ksh" | "mksh" | "zsh" | "fish" | "csh" | "tcsh" => {
            let mut inside = shell(part, words);
            inside.push(WrappedCommand::Ambiguous("another shell than bash"));
            inside
        }
        "eval" => reparse_joined(words, Invocation::Wrapped),
        "trap" => trap(words),
        "find" | "fd" | "fdfind" => find(words),
        "xargs" => xargs(words),
        "command"
            if matches!(
                words.first().and_then(ShellWord::known),
                Some("-v" | "-V" | "-pv" | "-pV")
            ) =>
        {
            Vec::new()
        }
        "env" => env(words),
        "sudo" | "doas" => sudo(words),
        "su" | "runuser" => mark_dialect_ambiguity(su(words)),
        "watch" => match WATCH.operands(words) {
            Some(rest) => mark_dialect_ambiguity(reparse_joined(rest, Invocation::Wrapped)),
            None => unknown_command_and_guesses(words),
        },
        "timeout" => match TIMEOUT.operands(words) {
            Some([_, rest @ ..]) => command(rest),
            Some([]) => Vec::new(),
            None => unknown_command_and_guesses(words),
        },
        "parallel" | "strace" | "ltrace" | "flock" | "chroot" | "unshare" | "nsenter"
        | "firejail" | "bwrap" | "script" | "systemd-run" | "taskset" | "chrt" | "prlimit"
        | "expect" | "unbuffer" | "entr" | "start-stop-daemon" => {
            unknown_command_and_guesses(words)
        }
        other => match prefix_options(other).map(|spec| spec.operands(words)) {
            Some(Some(rest)) => command(rest),
            Some(None) => unknown_command_and_guesses(words),
            None => Vec::new(),
        },
    }
}

pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

const fn letters(flags: &'static str, valued: &'static str) -> OptionSpec {
    OptionSpec {
        flags,
        valued,
        long: &[],
        long_valued: &[],
    }
}

const TIMEOUT: OptionSpec = OptionSpec {
    flags: "vfp",
    valued: "sk",
    long: &["foreground", "preserve-status", "verbose"],
    long_valued: &["signal", "kill-after"],
};
const ENV: OptionSpec = OptionSpec {
    flags: "i0v",
    valued: "uC",
    long: &["ignore-environment", "null", "debug"],
    long_valued: &["unset", "chdir"],
};
const XARGS: OptionSpec = OptionSpec {
    flags: "0rtpxo",
    valued: "nPLIdaEs",
    long: &[
        "null",
        "no-run-if-empty",
        "verbose",
        "interactive",
        "exit",
        "open-tty",
    ],
    long_valued: &[
        "max-args",
        "max-procs",
        "delimiter",
        "arg-file",
        "max-chars",
    ],
};
const SUDO: OptionSpec = OptionSpec {
    flags: "EHnkKAbiSsPL",
    valued: "ugCDhprtTURa",
    long: &[
        "preserve-env",
        "set-home",
        "non-interactive",
        "login",
        "shell",
        "stdin",
        "background",
    ],
    long_valued: &["user", "group", "chdir", "chroot", "host", "prompt"],
};
const WATCH: OptionSpec = OptionSpec {
    flags: "dtbegcxwpqr",
    valued: "n",
    long: &[
        "differences",
        "no-title",
        "beep",
        "errexit",
        "chgexit",
        "color",
        "exec",
        "precise",
    ],
    long_valued: &["interval"],
};

/// Returns the options of wrappers with a command that simply follows them.
fn prefix_options(name: &str) -> Option<OptionSpec> {
    match name {
        "command" => Some(letters("p", "")),
        "builtin" | "nohup" | "busybox" | "toybox" | "chronic" | "fakeroot" | "noglob"
        | "nocorrect" => Some(letters("", "")),
        "exec" => Some(letters("cl", "a")),
        "setsid" => Some(letters("cfw", "")),
        "nice" => Some(OptionSpec {
            long_valued: &["adjustment"],
            ..letters("0123456789", "n")
        }),
        "ionice" => Some(OptionSpec {
            long: &["ignore"],
            long_valued: &["class", "classdata"],
            ..letters("t", "cn")
        }),
        "stdbuf" => Some(OptionSpec {
            long_valued: &["input", "output", "error"],
            ..letters("", "ioe")
        }),
        "time" => Some(OptionSpec {
            long_valued: &["format", "output"],
            ..letters("pvaqV", "fo")
        }),
        _ => None,
    }
}

/// Returns the words as a command, with assignments before it.
fn command(words: &[ShellWord]) -> Vec<WrappedCommand> {
    let is_assignment = |word: &&ShellWord| word.known().and_then(split_assignment).is_some();
    let count = words.iter().take_while(is_assignment).count();
    let (before, words) = words.split_at(count);
    if words.is_empty() {
        return Vec::new();
    }
    if matches!(
        words.first().map(|word| word.source.as_str()),
        Some("!" | "{" | "if" | "while" | "until" | "for")
    ) {
        return vec![unknown_command()];
    }
    let assignments = before
        .iter()
        .filter_map(ShellWord::known)
        .filter_map(split_assignment)
        .collect();
    vec![WrappedCommand::Command(CommandPart {
        assignments,
        ..CommandPart::new(words.to_vec(), Invocation::Wrapped)
    })]
}

fn split_assignment(text: &str) -> Option<Assignment> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty() && name_length(name) == name.len();
    is_name.then(|| Assignment {
        name: name.to_owned(),
        value: WordValue::Known(value.to_owned()),
    })
}

fn unknown_command() -> WrappedCommand {
    WrappedCommand::Command(CommandPart::unknown_command(Invocation::Wrapped))
}

/// Returns an unknown command, because its start is unknown, and every possible command for the
/// rules that deny.
fn unknown_command_and_guesses(words: &[ShellWord]) -> Vec<WrappedCommand> {
    std::iter::once(unknown_command())
        .chain(guesses(words))
        .collect()
}

fn guesses(words: &[ShellWord]) -> impl Iterator<Item = WrappedCommand> {
    let starts = (0..words.len())
        .take(MAX_GUESSES)
        .filter_map(|start| words.get(start..));
    starts.map(|words| {
        WrappedCommand::Command(CommandPart::new(words.to_vec(), Invocation::BehindCommand))
    })
}

/// Joins the words and parses them again. If some are unknown, any command may run, and rules that
/// deny see the words before those.
fn reparse_joined(words: &[ShellWord], reach: Invocation) -> Vec<WrappedCommand> {
    let known: Vec<&str> = words.iter().map_while(ShellWord::known).collect();
    let text = known.join(" ");
    match known.len() {
        all if all == words.len() => vec![WrappedCommand::Script(text, reach)],
        0 => vec![unknown_command()],
        _ => vec![
            unknown_command(),
            WrappedCommand::Script(text, Invocation::BehindCommand),
        ],
    }
}

fn trap(words: &[ShellWord]) -> Vec<WrappedCommand> {
    match words {
        [] => Vec::new(),
        [handler, ..] => match handler.known() {
            Some("-" | "" | "-l" | "-p") => Vec::new(),
            Some(_) | None => reparse_joined(std::slice::from_ref(handler), Invocation::Wrapped),
        },
    }
}

/// Marks an ambiguity if a plain shell may parse a text differently than bash.
fn mark_dialect_ambiguity(mut inside: Vec<WrappedCommand>) -> Vec<WrappedCommand> {
    let differs = |inside: &WrappedCommand| match inside {
        WrappedCommand::Script(text, _) => DIALECT.iter().any(|mark| text.contains(mark)),
        WrappedCommand::Command(_) | WrappedCommand::Ambiguous(_) => false,
    };
    if inside.iter().any(differs) {
        inside.push(WrappedCommand::Ambiguous(
            "`sh` may read it in another way than bash",
        ));
    }
    inside
}

/// Returns the commands of `sh -c TEXT`, `bash -lc TEXT`, `bash <<END`.
fn shell(part: &CommandPart, words: &[ShellWord]) -> Vec<WrappedCommand> {
    let mut takes_text = false;
    let mut rest = words;
    while let [word, after @ ..] = rest {
        let Some(text) = word.known() else {
            return vec![unknown_command()];
        };
        rest = after;
        match text.as_bytes() {
            b"--" | b"-" => break,
            b"--rcfile" | b"--init-file" => rest = after.get(1..).unwrap_or_default(),
            [b'-', b'-', ..] => {}
            [b'-' | b'+', letters @ ..] => {
                takes_text |= text.starts_with('-') && letters.contains(&b'c');
                if letters
                    .iter()
                    .any(|letter| letter.eq_ignore_ascii_case(&b'o'))
                {
                    rest = after.get(1..).unwrap_or_default();
                }
            }
            _ => {
                rest = std::slice::from_ref(word);
                break;
            }
        }
    }
    match (rest.first(), takes_text) {
        (Some(text), true) => reparse_joined(std::slice::from_ref(text), Invocation::Wrapped),
        (Some(_), false) => Vec::new(),
        (None, _) => {
            let bodies =
                part.redirects
                    .iter()
                    .filter_map(|redirect| match &redirect.kind {
                        RedirectKind::Heredoc(Some(body)) => {
                            Some(WrappedCommand::Script(body.clone(), Invocation::Wrapped))
                        }
                        RedirectKind::Text => redirect.target.known().map(|text| {
                            WrappedCommand::Script(text.to_owned(), Invocation::Wrapped)
                        }),
                        RedirectKind::Heredoc(None)
                        | RedirectKind::Read
                        | RedirectKind::Write
                        | RedirectKind::Duplicate => None,
                    });
            std::iter::once(unknown_command()).chain(bodies).collect()
        }
    }
}

/// Returns the commands of `find … -exec COMMAND {} ;` and similar options.
fn find(words: &[ShellWord]) -> Vec<WrappedCommand> {
    let runs = |word: &ShellWord| {
        matches!(
            word.known(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        )
    };
    let mut inside = Vec::new();
    let mut rest = words;
    while let Some(at) = rest.iter().position(runs) {
        let words = rest.get(at + 1..).unwrap_or_default();
        // `find` takes `+` for the end only after `{}`, `fd` takes it for a word.
        let ends = |end: &usize| match words.get(*end).and_then(ShellWord::known) {
            Some(";") => true,
            Some("+") => *end > 0 && words.get(*end - 1).and_then(ShellWord::known) == Some("{}"),
            Some(_) | None => false,
        };
        let end = (0..words.len()).find(ends).unwrap_or(words.len());
        let command: Vec<ShellWord> = words
            .iter()
            .take(end)
            .map(|word| replaced(word, "{}"))
            .collect();
        rest = rest.get(at + 1..).unwrap_or_default();
        if !command.is_empty() {
            inside.push(WrappedCommand::Command(CommandPart::new(
                command,
                Invocation::Wrapped,
            )));
        }
    }
    inside
}

/// Returns the command of `xargs`; its input adds an unknown last word.
fn xargs(words: &[ShellWord]) -> Vec<WrappedCommand> {
    let Some(rest) = XARGS.operands(words) else {
        return unknown_command_and_guesses(words);
    };
    if rest.is_empty() {
        return Vec::new();
    }
    let options = words.get(..words.len() - rest.len()).unwrap_or_default();
    let mut command: Vec<ShellWord> = match replacement(options) {
        Some(mark) => rest.iter().map(|word| replaced(word, mark)).collect(),
        None => rest.to_vec(),
    };
    command.push(ShellWord::unknown("…", UnknownCause::Input));
    vec![WrappedCommand::Command(CommandPart::new(
        command,
        Invocation::Wrapped,
    ))]
}

/// Returns the text that `-I` replaces by the input. It is empty, which is part of every word, if
/// several options may be meant: the last one counts, but an `I` may also belong to another option's
/// value.
fn replacement(options: &[ShellWord]) -> Option<&str> {
    const ANY: &str = "";
    let may_replace = |word: &ShellWord| word.source.starts_with('-') && word.source.contains('I');
    let at = options.iter().position(may_replace)?;
    if options.iter().filter(|word| may_replace(word)).count() > 1 {
        return Some(ANY);
    }
    let Some((_, attached)) = options
        .get(at)?
        .known()
        .and_then(|word| word.split_once('I'))
    else {
        return Some(ANY);
    };
    if attached.is_empty() {
        options.get(at + 1)?.known()
    } else {
        Some(attached)
    }
}

fn replaced(word: &ShellWord, mark: &str) -> ShellWord {
    match word.known() {
        Some(text) if text.contains(mark) => {
            ShellWord::unknown(word.source.clone(), UnknownCause::Input)
        }
        Some(_) | None => word.clone(),
    }
}

fn env(words: &[ShellWord]) -> Vec<WrappedCommand> {
    match ENV.operands(words) {
        Some(rest) => command(rest),
        None => {
            // `-S` splits its text by its own rules, which are similar to those of a shell.
            let texts = words.iter().filter_map(ShellWord::known).map(|text| {
                text.strip_prefix("--split-string=")
                    .or(text.strip_prefix("-S"))
                    .unwrap_or(text)
                    .to_owned()
            });
            let texts = texts
                .filter(|text| !text.is_empty())
                .map(|text| WrappedCommand::Script(text, Invocation::BehindCommand));
            std::iter::once(unknown_command())
                .chain(texts)
                .chain(guesses(words))
                .collect()
        }
    }
}

/// Returns the command of `sudo`. An allow rule for `sudo X` covers just that; rules that deny see
/// X.
fn sudo(words: &[ShellWord]) -> Vec<WrappedCommand> {
    let Some(rest) = SUDO.operands(words) else {
        return guesses(words).collect();
    };
    let behind = |inside| match inside {
        WrappedCommand::Command(part) => WrappedCommand::Command(CommandPart {
            invocation: Invocation::BehindCommand,
            ..part
        }),
        WrappedCommand::Script(text, _) => WrappedCommand::Script(text, Invocation::BehindCommand),
        WrappedCommand::Ambiguous(reason) => WrappedCommand::Ambiguous(reason),
    };
    command(rest).into_iter().map(behind).collect()
}

fn su(words: &[ShellWord]) -> Vec<WrappedCommand> {
    let attached = |word: &ShellWord| {
        word.known()
            .and_then(|text| text.strip_prefix("--command="))
            .map(str::to_owned)
    };
    let at = words
        .iter()
        .position(|word| matches!(word.known(), Some("-c" | "--command")));
    let text = at
        .and_then(|at| words.get(at + 1))
        .and_then(ShellWord::known)
        .map(str::to_owned);
    match text.or_else(|| words.iter().find_map(attached)) {
        Some(text) => vec![WrappedCommand::Script(text, Invocation::BehindCommand)],
        None => guesses(words).collect(),
    }
}
