//! Commands that run other commands.

use super::options::Spec;
use super::reader::name_length;
use super::script::{Assignment, Part, Reach, RedirectKind, Script, Unknown, Value, Word};
use super::{MAX_PARTS, parse_within};

/// Wrappers inside of wrappers.
const MAX_WRAPPERS: usize = 16;
/// Where the options of a wrapper are not known, so many of its words are tried as the beginning of
/// a command.
const MAX_GUESSES: usize = 24;

/// What a wrapper runs.
enum Inside {
    Command(Part),
    Script(String, Reach),
    /// It may not be what it looks like.
    Doubt(&'static str),
}

/// What some shells know and others read as something else.
const DIALECT: [&str; 19] = [
    "$'", "$\"", "$[", "&>", "|&", "<<<", "<(", ">(", "[[", "((", "=(", "+=", ";&", "eval",
    "function", "coproc", "select", "time", "${",
];

/// Adds what wrappers run after them.
pub(super) fn look_through(script: Script, level: usize) -> Script {
    let mut out = Script {
        parts: Vec::new(),
        unclear: script.unclear,
    };
    for part in script.parts {
        add(part, level, &mut out);
    }
    out
}

fn add(part: Part, level: usize, out: &mut Script) {
    if out.parts.len() >= MAX_PARTS {
        return out.doubt(format!("more than {MAX_PARTS} commands"), 0);
    }
    let inside = inside(&part);
    let outer = part.reach;
    let name = part.name().unwrap_or_default().to_owned();
    out.parts.push(part);
    if !inside.is_empty() && level >= MAX_WRAPPERS {
        return out.doubt("too many commands that run commands", 0);
    }
    for inside in inside {
        match inside {
            Inside::Command(mut part) => {
                part.reach = within(outer, part.reach);
                add(part, level + 1, out);
            }
            Inside::Doubt(reason) => out.doubt(reason, 0),
            Inside::Script(text, reach) => {
                let script = parse_within(&text, level + 1);
                for mut part in script.parts {
                    part.reach = within(within(outer, reach), part.reach);
                    if out.parts.len() >= MAX_PARTS {
                        return out.doubt(format!("more than {MAX_PARTS} commands"), 0);
                    }
                    out.parts.push(part);
                }
                if let Some(unclear) = script.unclear {
                    out.doubt(
                        format!("what `{name}` runs: {}", unclear.reason),
                        unclear.at,
                    );
                }
            }
        }
    }
}

fn within(outer: Reach, inner: Reach) -> Reach {
    match (outer, inner) {
        (Reach::Behind, _) | (_, Reach::Behind) => Reach::Behind,
        (Reach::Direct | Reach::Inner, Reach::Direct | Reach::Inner) => Reach::Inner,
    }
}

fn inside(part: &Part) -> Vec<Inside> {
    let (Some(name), [_, words @ ..]) = (part.name(), part.words.as_slice()) else {
        return Vec::new();
    };
    match base_name(name) {
        "bash" | "rbash" => shell(part, words),
        "sh" | "dash" | "ash" => dialect(shell(part, words)),
        "ksh" | "mksh" | "zsh" | "fish" | "csh" | "tcsh" => {
            let mut inside = shell(part, words);
            inside.push(Inside::Doubt("another shell than bash"));
            inside
        }
        "eval" => joined(words, Reach::Inner),
        "trap" => trap(words),
        "find" | "fd" | "fdfind" => find(words),
        "xargs" => xargs(words),
        "command"
            if matches!(
                words.first().and_then(Word::known),
                Some("-v" | "-V" | "-pv" | "-pV")
            ) =>
        {
            Vec::new()
        }
        "env" => env(words),
        "sudo" | "doas" => sudo(words),
        "su" | "runuser" => dialect(su(words)),
        "watch" => match WATCH.operands(words) {
            Some(rest) => dialect(joined(rest, Reach::Inner)),
            None => anything_and_guesses(words),
        },
        "timeout" => match TIMEOUT.operands(words) {
            Some([_, rest @ ..]) => command(rest),
            Some([]) => Vec::new(),
            None => anything_and_guesses(words),
        },
        "parallel" | "strace" | "ltrace" | "flock" | "chroot" | "unshare" | "nsenter"
        | "firejail" | "bwrap" | "script" | "systemd-run" | "taskset" | "chrt" | "prlimit"
        | "expect" | "unbuffer" | "entr" | "start-stop-daemon" => anything_and_guesses(words),
        other => match prefix(other).map(|spec| spec.operands(words)) {
            Some(Some(rest)) => command(rest),
            Some(None) => anything_and_guesses(words),
            None => Vec::new(),
        },
    }
}

pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

const fn letters(flags: &'static str, valued: &'static str) -> Spec {
    Spec {
        flags,
        valued,
        long: &[],
        long_valued: &[],
    }
}

const TIMEOUT: Spec = Spec {
    flags: "vfp",
    valued: "sk",
    long: &["foreground", "preserve-status", "verbose"],
    long_valued: &["signal", "kill-after"],
};
const ENV: Spec = Spec {
    flags: "i0v",
    valued: "uC",
    long: &["ignore-environment", "null", "debug"],
    long_valued: &["unset", "chdir"],
};
const XARGS: Spec = Spec {
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
const SUDO: Spec = Spec {
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
const WATCH: Spec = Spec {
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

/// Wrappers whose command simply follows their options.
fn prefix(name: &str) -> Option<Spec> {
    match name {
        "command" => Some(letters("p", "")),
        "builtin" | "nohup" | "busybox" | "toybox" | "chronic" | "fakeroot" | "noglob"
        | "nocorrect" => Some(letters("", "")),
        "exec" => Some(letters("cl", "a")),
        "setsid" => Some(letters("cfw", "")),
        "nice" => Some(Spec {
            long_valued: &["adjustment"],
            ..letters("0123456789", "n")
        }),
        "ionice" => Some(Spec {
            long: &["ignore"],
            long_valued: &["class", "classdata"],
            ..letters("t", "cn")
        }),
        "stdbuf" => Some(Spec {
            long_valued: &["input", "output", "error"],
            ..letters("", "ioe")
        }),
        "time" => Some(Spec {
            long_valued: &["format", "output"],
            ..letters("pvaqV", "fo")
        }),
        _ => None,
    }
}

/// The words as a command, with assignments before it.
fn command(words: &[Word]) -> Vec<Inside> {
    let is_assignment = |word: &&Word| word.known().and_then(split_assignment).is_some();
    let count = words.iter().take_while(is_assignment).count();
    let (before, words) = words.split_at(count);
    if words.is_empty() {
        return Vec::new();
    }
    if matches!(
        words.first().map(|word| word.source.as_str()),
        Some("!" | "{" | "if" | "while" | "until" | "for")
    ) {
        return vec![anything()];
    }
    let assignments = before
        .iter()
        .filter_map(Word::known)
        .filter_map(split_assignment)
        .collect();
    vec![Inside::Command(Part {
        assignments,
        ..Part::new(words.to_vec(), Reach::Inner)
    })]
}

fn split_assignment(text: &str) -> Option<Assignment> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty() && name_length(name) == name.len();
    is_name.then(|| Assignment {
        name: name.to_owned(),
        value: Value::Known(value.to_owned()),
    })
}

fn anything() -> Inside {
    Inside::Command(Part::anything(Reach::Inner))
}

/// Where the command begins is not known: anything may run, and rules that deny see each
/// possibility.
fn anything_and_guesses(words: &[Word]) -> Vec<Inside> {
    std::iter::once(anything()).chain(guesses(words)).collect()
}

fn guesses(words: &[Word]) -> impl Iterator<Item = Inside> {
    let starts = (0..words.len())
        .take(MAX_GUESSES)
        .filter_map(|start| words.get(start..));
    starts.map(|words| Inside::Command(Part::new(words.to_vec(), Reach::Behind)))
}

/// Words that are put together and read again. If some are not known, anything may run, and rules
/// that deny see what stands before those.
fn joined(words: &[Word], reach: Reach) -> Vec<Inside> {
    let known: Vec<&str> = words.iter().map_while(Word::known).collect();
    let text = known.join(" ");
    match known.len() {
        all if all == words.len() => vec![Inside::Script(text, reach)],
        0 => vec![anything()],
        _ => vec![anything(), Inside::Script(text, Reach::Behind)],
    }
}

fn trap(words: &[Word]) -> Vec<Inside> {
    match words {
        [] => Vec::new(),
        [handler, ..] => match handler.known() {
            Some("-" | "" | "-l" | "-p") => Vec::new(),
            Some(_) | None => joined(std::slice::from_ref(handler), Reach::Inner),
        },
    }
}

/// Adds a doubt if a plain shell may read a text in another way than bash does.
fn dialect(mut inside: Vec<Inside>) -> Vec<Inside> {
    let differs = |inside: &Inside| match inside {
        Inside::Script(text, _) => DIALECT.iter().any(|mark| text.contains(mark)),
        Inside::Command(_) | Inside::Doubt(_) => false,
    };
    if inside.iter().any(differs) {
        inside.push(Inside::Doubt("`sh` may read it in another way than bash"));
    }
    inside
}

/// `sh -c TEXT`, `bash -lc TEXT`, `bash <<END`.
fn shell(part: &Part, words: &[Word]) -> Vec<Inside> {
    let mut takes_text = false;
    let mut rest = words;
    while let [word, after @ ..] = rest {
        let Some(text) = word.known() else {
            return vec![anything()];
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
        (Some(text), true) => joined(std::slice::from_ref(text), Reach::Inner),
        (Some(_), false) => Vec::new(),
        (None, _) => {
            let bodies = part
                .redirects
                .iter()
                .filter_map(|redirect| match &redirect.kind {
                    RedirectKind::Heredoc(Some(body)) => {
                        Some(Inside::Script(body.clone(), Reach::Inner))
                    }
                    RedirectKind::Text => redirect
                        .target
                        .known()
                        .map(|text| Inside::Script(text.to_owned(), Reach::Inner)),
                    RedirectKind::Heredoc(None)
                    | RedirectKind::Read
                    | RedirectKind::Write
                    | RedirectKind::Duplicate => None,
                });
            std::iter::once(anything()).chain(bodies).collect()
        }
    }
}

/// `find … -exec COMMAND {} ;` and its kin.
fn find(words: &[Word]) -> Vec<Inside> {
    let runs = |word: &Word| {
        matches!(
            word.known(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        )
    };
    let mut inside = Vec::new();
    let mut rest = words;
    while let Some(at) = rest.iter().position(runs) {
        let command: Vec<Word> = rest
            .iter()
            .skip(at + 1)
            .take_while(|word| !matches!(word.known(), Some(";" | "+")))
            .map(|word| replaced(word, "{}"))
            .collect();
        rest = rest.get(at + 1..).unwrap_or_default();
        if !command.is_empty() {
            inside.push(Inside::Command(Part::new(command, Reach::Inner)));
        }
    }
    inside
}

fn xargs(words: &[Word]) -> Vec<Inside> {
    let Some(rest) = XARGS.operands(words) else {
        return anything_and_guesses(words);
    };
    if rest.is_empty() {
        return Vec::new();
    }
    let options = words.get(..words.len() - rest.len()).unwrap_or_default();
    let mut command: Vec<Word> = match replacement(options) {
        Some(mark) => rest.iter().map(|word| replaced(word, mark)).collect(),
        None => rest.to_vec(),
    };
    command.push(Word::unknown("…", Unknown::Input));
    vec![Inside::Command(Part::new(command, Reach::Inner))]
}

/// What `-I` says is replaced by what was read.
fn replacement(options: &[Word]) -> Option<&str> {
    let at = options
        .iter()
        .position(|word| word.source.starts_with('-') && word.source.contains('I'))?;
    let (_, attached) = options.get(at)?.known()?.split_once('I')?;
    if attached.is_empty() {
        options.get(at + 1)?.known()
    } else {
        Some(attached)
    }
}

fn replaced(word: &Word, mark: &str) -> Word {
    match word.known() {
        Some(text) if text.contains(mark) => Word::unknown(word.source.clone(), Unknown::Input),
        Some(_) | None => word.clone(),
    }
}

fn env(words: &[Word]) -> Vec<Inside> {
    match ENV.operands(words) {
        Some(rest) => command(rest),
        None => {
            // `-S` splits its text by rules of its own, which are near to those of a shell.
            let texts = words.iter().filter_map(Word::known).map(|text| {
                text.strip_prefix("--split-string=")
                    .or(text.strip_prefix("-S"))
                    .unwrap_or(text)
                    .to_owned()
            });
            let texts = texts
                .filter(|text| !text.is_empty())
                .map(|text| Inside::Script(text, Reach::Behind));
            std::iter::once(anything())
                .chain(texts)
                .chain(guesses(words))
                .collect()
        }
    }
}

/// Whoever allows `sudo X` means just that; rules that deny see X.
fn sudo(words: &[Word]) -> Vec<Inside> {
    let Some(rest) = SUDO.operands(words) else {
        return guesses(words).collect();
    };
    let behind = |inside| match inside {
        Inside::Command(part) => Inside::Command(Part {
            reach: Reach::Behind,
            ..part
        }),
        Inside::Script(text, _) => Inside::Script(text, Reach::Behind),
        Inside::Doubt(reason) => Inside::Doubt(reason),
    };
    command(rest).into_iter().map(behind).collect()
}

fn su(words: &[Word]) -> Vec<Inside> {
    let attached = |word: &Word| {
        word.known()
            .and_then(|text| text.strip_prefix("--command="))
            .map(str::to_owned)
    };
    let at = words
        .iter()
        .position(|word| matches!(word.known(), Some("-c" | "--command")));
    let text = at
        .and_then(|at| words.get(at + 1))
        .and_then(Word::known)
        .map(str::to_owned);
    match text.or_else(|| words.iter().find_map(attached)) {
        Some(text) => vec![Inside::Script(text, Reach::Behind)],
        None => guesses(words).collect(),
    }
}
