//! Checking whether a command only reads, and which paths.
//!
//! Effects: none.

use super::read_arguments::ReadArguments;
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

/// What a command shows of the paths it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// Files, and at most the names in folders.
    Names,
    /// Files. A folder must not be among the paths.
    Files,
    /// Files, and everything below folders.
    Below,
    /// Names, numbers and messages of the repository that git finds.
    Repository,
    /// The named files, in any version that the repository has of them. A folder must not be among
    /// the paths.
    RepositoryFiles,
}

impl ReadDepth {
    /// Whether the command asks git, which may start programs that the repository names.
    pub fn uses_git(self) -> bool {
        match self {
            Self::Repository | Self::RepositoryFiles => true,
            Self::Names | Self::Files | Self::Below => false,
        }
    }

    /// Whether the paths must be files.
    pub fn is_for_files(self) -> bool {
        match self {
            Self::Files | Self::RepositoryFiles => true,
            Self::Names | Self::Below | Self::Repository => false,
        }
    }
}

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
    let mut depth = ReadDepth::Names;
    let words = plain_git(
        &part
            .words
            .iter()
            .filter_map(ShellWord::known)
            .collect::<Vec<_>>(),
    );
    if !words.is_empty() {
        match operands(&words) {
            Ok((named, depth_of_kind)) => {
                paths.extend(named);
                depth = depth_of_kind;
            }
            Err(why) => return no(why),
        }
    }
    paths.retain(|path| path != "-" && path != "/dev/null");
    paths.sort();
    paths.dedup();
    ReadOnlyCheck::Yes { paths, depth }
}

/// Returns how deep a command of the table reads. In doubt, everything below.
fn read_depth(kind: Operands, words: &[&str]) -> ReadDepth {
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
    let is_git = words.first() == Some(&"git");
    let is_below = match (kind, words) {
        (Operands::HeadFiles, _) => return ReadDepth::RepositoryFiles,
        _ if is_git => return ReadDepth::Repository,
        (Operands::Files, _) => return ReadDepth::Files,
        (_, ["ls", ..]) => option("R") || long(&["--recursive"]),
        (_, ["grep", ..]) => option("rRd") || long(&["--recursive", "--directories"]),
        (_, ["find" | "rg", ..]) => true,
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

/// Returns the paths that a command reads and how deep, or the reason why it may do more.
fn operands(words: &[&str]) -> Result<(Vec<String>, ReadDepth), String> {
    let name = words.first().copied().unwrap_or_default();
    let mut refused = Err(format!("`{name}` is not a known read-only command"));
    // Some formats make git verify signatures, which runs a program.
    let verifies = |word: &&&str| word.contains("%G") || word.contains("signature");
    if let Some(word) = words.iter().find(verifies).filter(|_| name == "git") {
        return Err(format!("`{word}` may make it run another program"));
    }
    for (entry, count) in ReadCommandEntry::find(words) {
        let arguments = words.get(count..).unwrap_or_default();
        match entry_operands(&entry, arguments) {
            Ok(paths) => return Ok((paths, read_depth(entry.operands, words))),
            Err(why) => refused = Err(why),
        }
    }
    refused
}

fn entry_operands(entry: &ReadCommandEntry, arguments: &[&str]) -> Result<Vec<String>, String> {
    match entry.operands {
        Operands::Test => test(arguments),
        Operands::Find => find(entry, arguments),
        Operands::None
        | Operands::Text
        | Operands::Paths
        | Operands::PathsOrHere
        | Operands::OnePath
        | Operands::Pattern
        | Operands::Format
        | Operands::Lines
        | Operands::Files
        | Operands::Revisions
        | Operands::HeadFiles => {
            let read = ReadArguments::read(entry, arguments)?;
            let needed = entry.needed();
            if !needed.is_empty() && !needed.iter().any(|name| read.options.contains(name)) {
                let needed = needed.join(" ");
                return Err(format!(
                    "it shows contents of files that it does not name; give one of {needed}, or `--` and the files"
                ));
            }
            read.paths(entry.operands)
        }
    }
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
