//! The arguments of a command that only reads.
//!
//! Effects: none.

use super::read_table::{Operands, OptionValue, ReadCommandEntry};

/// The arguments of a command, by the options of its entry in the table.
#[derive(Default)]
pub(super) struct ReadArguments<'w> {
    operands: Vec<&'w str>,
    /// The operands after `--`.
    files: Vec<&'w str>,
    /// The long options that were given.
    pub(super) options: Vec<&'w str>,
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
    /// Reads the words after the name of a command, by the options of its entry.
    pub(super) fn read(entry: &ReadCommandEntry, words: &[&'w str]) -> Result<Self, String> {
        let mut found = Self::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let refused = || format!("`{word}` is not among the options that only read");
            let missing = || format!("`{word}` needs a value");
            if *word == "--" {
                found.files.extend(rest.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                let option = word.split('=').next().unwrap_or(word);
                let takes = entry.word(option).ok_or_else(refused)?;
                found.options.push(option);
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

    /// Returns the paths that are read.
    pub(super) fn paths(mut self, kind: Operands) -> Result<Vec<String>, String> {
        let files = std::mem::take(&mut self.files);
        let mut operands = std::mem::take(&mut self.operands);
        if kind == Operands::HeadFiles {
            if let Some(other) = operands.iter().find(|word| !is_head(word)) {
                return Err(format!("`{other}` is not `HEAD` or an ancestor of it"));
            }
            let is_plain =
                |file: &&str| !file.starts_with(':') && !file.contains(['*', '?', '[', '\\']);
            let Some(file) = files.iter().find(|file| !is_plain(file)) else {
                return match files.is_empty() {
                    true => Err(
                        "it shows contents of files that it does not name; name them after `--`"
                            .to_owned(),
                    ),
                    false => Ok(files.into_iter().map(str::to_owned).collect()),
                };
            };
            return Err(format!("`{file}` may be many files"));
        }
        operands.extend(files);
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
            (Operands::Paths | Operands::OnePath | Operands::Files, paths) => all(paths),
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
            (Operands::Find | Operands::Test | Operands::HeadFiles, _) => {
                return Err("it is no list of files".to_owned());
            }
        };
        self.paths.extend(named);
        Ok(self.paths)
    }
}

/// Whether a revision is `HEAD` or an ancestor of it, and so certainly a commit: the id of a file's
/// content is a revision too.
fn is_head(revision: &str) -> bool {
    let rest = revision.strip_prefix("HEAD");
    rest.is_some_and(|rest| {
        let is_step = |byte: u8| b"~^0123456789".contains(&byte);
        !rest.starts_with(|c: char| c.is_ascii_digit()) && rest.bytes().all(is_step)
    })
}

/// Whether a sed script only prints lines by number: `10,20p`, `$p`, `5q`.
fn is_line_script(script: &str) -> bool {
    !script.is_empty()
        && script
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b",$;pdq= ".contains(&byte))
}
