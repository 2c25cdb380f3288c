//! Checking whether a command only reads, and which paths.

use super::read_table::{Operands, OptionValue, ReadCommandEntry};
use super::script::{CommandPart, RedirectKind, ShellWord};

/// Whether a part only reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadOnlyCheck {
    /// The part only reads, at most these files and folders. `.` is the current folder.
    Yes {
        /// The paths as they are written, without duplicates.
        paths: Vec<String>,
        /// How deep the part reads into folders.
        depth: ReadDepth,
    },
    /// The part may do more.
    No {
        /// The word or redirection that may do more.
        why: String,
    },
    /// The paths that the part reads are unknown before it runs.
    Unclear {
        /// The word with the unknown value.
        why: String,
    },
}

/// How deep a command reads into folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// At most the names in them.
    Names,
    /// Everything below them.
    Below,
    /// Everything in the repository, in any of its folders.
    Repository,
}

/// The git commands that show names, numbers and messages, but no contents of files.
const GIT_NAMES: [&str; 16] = [
    "status",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "describe",
    "shortlog",
    "rev-list",
    "merge-base",
    "name-rev",
    "for-each-ref",
    "show-ref",
    "branch",
    "tag",
    "remote",
    "stash",
    "worktree",
];

/// The operators of `[` and `test`, without `-v`, which evaluates an index.
const TESTS: [&str; 28] = [
    "-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h", "-p", "-S", "-z", "-n", "-eq", "-ne",
    "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "=", "!=", "==", "!", "]",
];
/// The options of git that may come before its subcommand.
const GIT_OPTIONS: [&str; 3] = ["--no-pager", "-P", "--no-optional-locks"];

/// Checks whether a part only reads: the command, its options and its redirections must all be in
/// the table. In doubt it does not.
pub fn check_read_only(part: &CommandPart) -> ReadOnlyCheck {
    if let Some(assignment) = part.assignments.first() {
        return no(format!("it sets `{}`", assignment.name));
    }
    let mut paths = Vec::new();
    for redirect in &part.redirects {
        match (&redirect.kind, redirect.target.known()) {
            _ if redirect.writes() => {
                return no(format!("it redirects to `{}`", redirect.target.source));
            }
            (RedirectKind::Read, Some(path)) => paths.push(path.to_owned()),
            (RedirectKind::Read, None) => return unclear(&redirect.target),
            (
                RedirectKind::Write
                | RedirectKind::Duplicate
                | RedirectKind::Heredoc(_)
                | RedirectKind::Text,
                _,
            ) => {}
        }
    }
    if let Some(word) = part.words.iter().find(|word| word.known().is_none()) {
        return unclear(word);
    }
    let words = plain_git(
        &part
            .words
            .iter()
            .filter_map(ShellWord::known)
            .collect::<Vec<_>>(),
    );
    if !words.is_empty() {
        match operands(&words) {
            Ok(named) => paths.extend(named),
            Err(why) => return no(why),
        }
    }
    paths.retain(|path| path != "-" && path != "/dev/null");
    paths.sort();
    paths.dedup();
    ReadOnlyCheck::Yes {
        paths,
        depth: read_depth(&words),
    }
}

/// Returns how deep a command of the table reads. In doubt, everything below.
fn read_depth(words: &[&str]) -> ReadDepth {
    let option = |letters: &str| {
        let has = |word: &str| {
            word.starts_with('-')
                && !word.starts_with("--")
                && word.contains(|c| letters.contains(c))
        };
        words.iter().skip(1).any(|word| has(word))
    };
    let long = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.iter().any(|name| word.starts_with(name)))
    };
    let is_below = match words {
        [] => false,
        ["git", sub, ..] if GIT_NAMES.contains(sub) => false,
        ["git", "log", ..]
            if !option("puSGL") && !long(&["--patch", "--stat", "--raw", "--cc"]) =>
        {
            false
        }
        ["git", ..] => return ReadDepth::Repository,
        [
            "ls" | "dir" | "vdir" | "diff" | "grep" | "egrep" | "fgrep",
            ..,
        ] => option("rR") || long(&["--recursive", "--dereference-recursive", "--directories"]),
        [
            "find" | "fd" | "fdfind" | "tree" | "du" | "rg" | "ag" | "ack",
            ..,
        ] => true,
        _ => false,
    };
    if is_below {
        ReadDepth::Below
    } else {
        ReadDepth::Names
    }
}

fn no(why: String) -> ReadOnlyCheck {
    ReadOnlyCheck::No { why }
}

fn unclear(word: &ShellWord) -> ReadOnlyCheck {
    ReadOnlyCheck::Unclear {
        why: format!("what `{}` comes to is not known", word.source),
    }
}

/// Returns the words without the options of git that have no effect here.
fn plain_git<'w>(words: &[&'w str]) -> Vec<&'w str> {
    match words {
        ["git", rest @ ..] => {
            let skipped = rest
                .iter()
                .take_while(|word| GIT_OPTIONS.contains(word))
                .count();
            std::iter::once("git")
                .chain(rest.iter().skip(skipped).copied())
                .collect()
        }
        other => other.to_vec(),
    }
}

/// Returns the paths that a command reads, or the reason why it may do more.
fn operands(words: &[&str]) -> Result<Vec<String>, String> {
    let name = words.first().copied().unwrap_or_default();
    let Some((entry, count)) = ReadCommandEntry::find(words) else {
        return Err(format!("`{name}` is not a known read-only command"));
    };
    let arguments = words.get(count..).unwrap_or_default();
    match entry.operands {
        Operands::Test => test(arguments),
        Operands::Find => find(&entry, arguments),
        Operands::None
        | Operands::Text
        | Operands::Paths
        | Operands::PathsOrHere
        | Operands::OnePath
        | Operands::Pattern
        | Operands::Format
        | Operands::Lines
        | Operands::Revisions => ReadArguments::read(&entry, arguments)?.paths(entry.operands),
    }
}

#[derive(Default)]
struct ReadArguments<'w> {
    operands: Vec<&'w str>,
    /// The files that options name.
    paths: Vec<String>,
    /// Whether `-e`, `-f` or a similar option was given: then the first operand is not a pattern.
    pattern: PatternSource,
}

#[derive(Default, PartialEq, Eq)]
enum PatternSource {
    #[default]
    Operand,
    Option,
}

impl<'w> ReadArguments<'w> {
    fn read(entry: &ReadCommandEntry, words: &[&'w str]) -> Result<Self, String> {
        let mut found = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let refused = || format!("`{word}` is not among the options that only read");
            let missing = || format!("`{word}` needs a value");
            if *word == "--" {
                found.operands.extend(rest.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                let takes = entry.word(&format!("--{name}")).ok_or_else(refused)?;
                let value = match (takes, value) {
                    (OptionValue::Nothing, None) | (OptionValue::Attached, _) => None,
                    (OptionValue::Nothing, Some(_)) => return Err(refused()),
                    (OptionValue::Text | OptionValue::Path, Some(value)) => Some(value),
                    (OptionValue::Text | OptionValue::Path, None) => {
                        Some(*rest.next().ok_or_else(missing)?)
                    }
                };
                found.option(name, takes, value);
            } else if let Some(letters) =
                word.strip_prefix('-').filter(|letters| !letters.is_empty())
            {
                if entry.takes_number() && letters.bytes().all(|byte| byte.is_ascii_digit()) {
                    continue;
                }
                for (at, letter) in letters.char_indices() {
                    let takes = entry.letter(letter).ok_or_else(refused)?;
                    let attached = letters.get(at + letter.len_utf8()..).unwrap_or_default();
                    match takes {
                        OptionValue::Nothing => {}
                        OptionValue::Attached => break,
                        OptionValue::Text | OptionValue::Path => {
                            let value = if attached.is_empty() {
                                *rest.next().ok_or_else(missing)?
                            } else {
                                attached
                            };
                            found.option(&letter.to_string(), takes, Some(value));
                            break;
                        }
                    }
                }
            } else {
                found.operands.push(word);
            }
        }
        Ok(found)
    }

    fn option(&mut self, name: &str, takes: OptionValue, value: Option<&str>) {
        if matches!(name, "e" | "f" | "regexp" | "file" | "files") {
            self.pattern = PatternSource::Option;
        }
        if takes == OptionValue::Path {
            self.paths.extend(value.map(str::to_owned));
        }
    }

    fn paths(mut self, kind: Operands) -> Result<Vec<String>, String> {
        let operands = std::mem::take(&mut self.operands);
        let here = || vec![".".to_owned()];
        let all = |operands: &[&str]| {
            operands
                .iter()
                .map(|path| (*path).to_owned())
                .collect::<Vec<_>>()
        };
        let named = match (kind, operands.as_slice()) {
            (Operands::None, []) | (Operands::Text, _) => Vec::new(),
            (Operands::None, [first, ..]) => {
                return Err(format!("`{first}` may make it do more than read"));
            }
            (Operands::OnePath, [_, second, ..]) => {
                return Err(format!("`{second}` would be written"));
            }
            (Operands::Paths | Operands::OnePath, paths) => all(paths),
            (Operands::PathsOrHere, []) => here(),
            (Operands::PathsOrHere, paths) => all(paths),
            (Operands::Pattern, paths) => {
                let skipped = usize::from(self.pattern == PatternSource::Operand);
                match paths.get(skipped..).unwrap_or_default() {
                    [] => here(),
                    paths => all(paths),
                }
            }
            (Operands::Format, formats) => {
                match formats.iter().find(|format| !format.starts_with('+')) {
                    Some(other) => return Err(format!("`{other}` may set the time")),
                    None => Vec::new(),
                }
            }
            (Operands::Lines, [script, paths @ ..]) if is_line_script(script) => all(paths),
            (Operands::Lines, _) => {
                return Err("its script may do more than print lines by number".to_owned());
            }
            (Operands::Revisions, operands) => {
                let in_revision = operands
                    .iter()
                    .filter_map(|operand| operand.split_once(':'))
                    .map(|(_, path)| path);
                let mut paths = here();
                paths.extend(
                    in_revision
                        .filter(|path| !path.is_empty())
                        .map(str::to_owned),
                );
                paths.extend(all(operands));
                paths
            }
            (Operands::Find | Operands::Test, _) => return Err("it is no list of files".to_owned()),
        };
        self.paths.extend(named);
        Ok(self.paths)
    }
}

/// Whether a sed script only prints lines by number: `10,20p`, `$p`, `5q`.
fn is_line_script(script: &str) -> bool {
    !script.is_empty()
        && script
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b",$;pdq= ".contains(&byte))
}

fn find(entry: &ReadCommandEntry, words: &[&str]) -> Result<Vec<String>, String> {
    let mut starts = Vec::new();
    let mut paths = Vec::new();
    let mut in_expression = false;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "(" | ")" | "!" | "," => in_expression = true,
            option if option.starts_with('-') => {
                in_expression |= option != "-P";
                match entry.word(option) {
                    None => {
                        return Err(format!(
                            "`{option}` is not among the options that only read"
                        ));
                    }
                    Some(OptionValue::Nothing | OptionValue::Attached) => {}
                    Some(takes @ (OptionValue::Text | OptionValue::Path)) => {
                        let Some(value) = rest.next() else {
                            return Err(format!("`{option}` needs a value"));
                        };
                        if takes == OptionValue::Path {
                            paths.push((*value).to_owned());
                        }
                    }
                }
            }
            path if !in_expression => starts.push(path.to_owned()),
            other => return Err(format!("`{other}` stands where an option should")),
        }
    }
    if starts.is_empty() {
        starts.push(".".to_owned());
    }
    starts.append(&mut paths);
    Ok(starts)
}

fn test(words: &[&str]) -> Result<Vec<String>, String> {
    let (operators, others): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| TESTS.contains(word));
    drop(operators);
    match others.iter().find(|word| word.starts_with('-')) {
        Some(unknown) => Err(format!(
            "`{unknown}` is not among the conditions that only read"
        )),
        None => Ok(others
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()),
    }
}
