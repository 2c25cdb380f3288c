//! The patterns of command rules.
//!
//! Effects: none.

use super::line::join_folder;
use super::script::{CommandPart, ShellWord};
use super::wrappers::base_name;
use serde::{Deserialize, Serialize};

/// A pattern for the commands that a rule covers.
///
/// A pattern consists of words. A last word `*` matches any further words, or none (`git:*` is
/// `git *`); `*` inside a word matches any text within that word; a quoted word is literal. `*` alone
/// matches every command. `(in FOLDER)` before the words names the folder of the workspace in which
/// a rule that allows applies; without it, that is the root. In a rule that allows, `*` matches no
/// path with `..` in it, and outside a sandbox the rule allows only reads (`data/reads.txt`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CommandPattern {
    text: String,
    words: Vec<PatternWord>,
    tail: PatternTail,
    /// The folder that the pattern names.
    folder: Option<String>,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The pattern has no words.
    #[error(
        "a command pattern needs at least one word, such as `git status *`; `*` alone is every command"
    )]
    Empty,
    /// A quote is not closed.
    #[error("`{0}`: a quote is not closed")]
    OpenQuote(String),
    /// The folder before the words is not one of the workspace.
    #[error(
        "`{0}`: `(in FOLDER)` names a folder of the workspace, such as `(in web) npm test`, without `*` and `..`"
    )]
    Folder(String),
    /// The pattern contains a character that joins commands, redirects or expands.
    #[error(
        "`{text}`: `{found}` is no part of one command; each command of a line is judged alone, so write one pattern per command, or quote the word"
    )]
    NotAWord {
        /// The pattern.
        text: String,
        /// The character.
        found: char,
    },
}

/// The pieces of a word between its `*`s.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PatternWord(Vec<String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternTail {
    None,
    Any,
}

/// Whether a pattern matches a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternMatch {
    Yes,
    /// It depends on words with unknown values.
    Maybe,
    No,
}

/// What a rule is for: in doubt, it does not allow, and it does restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleEffect {
    /// A command's name counts as it is written, for `./ls` may be any program. `*` matches no path
    /// with `..` in it.
    Allows,
    /// A command's name counts by its last component: `/bin/rm` is `rm`.
    Restricts,
}

impl CommandPattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let (folder, rest) = split_folder(text)?;
        let mut words = split(rest)?;
        let mut tail = PatternTail::None;
        if let Some(last) = words.last_mut() {
            match last.0.as_slice() {
                [before, after] if before.is_empty() && after.is_empty() => {
                    words.pop();
                    tail = PatternTail::Any;
                }
                [before, after]
                    if after.is_empty() && before.len() > 1 && before.ends_with(':') =>
                {
                    *last = PatternWord(vec![before.trim_end_matches(':').to_owned()]);
                    tail = PatternTail::Any;
                }
                _ => {}
            }
        }
        if words.is_empty() && tail == PatternTail::None {
            return Err(PatternError::Empty);
        }
        Ok(Self {
            text: text.trim().to_owned(),
            words,
            tail,
            folder,
        })
    }

    /// Returns the pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is `*`, which matches every command.
    pub fn is_everything(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether the pattern has no wildcard.
    pub fn is_exact(&self) -> bool {
        let is_plain = |word: &PatternWord| word.0.len() == 1;
        self.tail == PatternTail::None && self.words.iter().all(is_plain)
    }

    /// Whether the pattern applies in a folder, if it allows.
    pub(super) fn applies_in(&self, folder: &str) -> bool {
        self.folder.as_deref().unwrap_or(".") == folder
    }

    /// Whether the pattern restricts in a folder; `None` is one that is not known.
    pub(super) fn restricts_in(&self, folder: Option<&str>) -> bool {
        match (&self.folder, folder) {
            (Some(named), Some(folder)) => named == folder,
            (None, _) | (Some(_), None) => true,
        }
    }

    pub(super) fn matches(&self, part: &CommandPart, effect: RuleEffect) -> PatternMatch {
        let goes_up = |word: &ShellWord| word.known().is_some_and(|word| steps_up(word) > 0);
        let mut after = part.words.iter().skip(self.words.len());
        if effect == RuleEffect::Allows && after.any(goes_up) {
            return PatternMatch::No;
        }
        if self.is_everything() {
            return PatternMatch::Yes;
        }
        let mut words = part.words.iter();
        for (index, pattern) in self.words.iter().enumerate() {
            match words.next().map(ShellWord::known) {
                None => return PatternMatch::No,
                Some(None) => return PatternMatch::Maybe,
                Some(Some(word)) if pattern.matches_word(word, effect) => {}
                Some(Some(word))
                    if index == 0
                        && effect == RuleEffect::Restricts
                        && pattern.matches_word(base_name(word), effect) => {}
                Some(Some(_)) => return PatternMatch::No,
            }
        }
        match (self.tail, words.next().map(ShellWord::known)) {
            (PatternTail::Any, _) | (PatternTail::None, None) => PatternMatch::Yes,
            (PatternTail::None, Some(None)) => PatternMatch::Maybe,
            (PatternTail::None, Some(Some(_))) => PatternMatch::No,
        }
    }
}

impl PatternWord {
    fn matches_word(&self, word: &str, effect: RuleEffect) -> bool {
        let named = || self.0.iter().map(|piece| steps_up(piece)).sum::<usize>();
        if effect == RuleEffect::Allows && steps_up(word) > named() {
            return false;
        }
        let [first, middle @ .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| only == word);
        };
        let Some(mut rest) = word.strip_prefix(first.as_str()) else {
            return false;
        };
        for piece in middle {
            let Some((_, after)) = rest.split_once(piece.as_str()) else {
                return false;
            };
            rest = after;
        }
        rest.ends_with(last.as_str())
    }
}

/// Returns the number of `..` among the names of the paths in a word.
fn steps_up(word: &str) -> usize {
    let names = word.split(['/', '=', ':', ',', ';']);
    names.filter(|name| *name == "..").count()
}

/// Splits `(in FOLDER)` from a pattern.
fn split_folder(text: &str) -> Result<(Option<String>, &str), PatternError> {
    let Some(inside) = text.trim_start().strip_prefix("(in ") else {
        return Ok((None, text));
    };
    let refused = || PatternError::Folder(text.to_owned());
    let (folder, rest) = inside.split_once(')').ok_or_else(refused)?;
    let is_plain =
        !folder.contains(['*', '?', '[', '\\']) && !folder.split('/').any(|name| name == "..");
    let folder = join_folder(".", folder.trim())
        .filter(|_| is_plain)
        .ok_or_else(refused)?;
    Ok((Some(folder), rest))
}

fn split(text: &str) -> Result<Vec<PatternWord>, PatternError> {
    let mut words = Vec::new();
    let mut word: Option<Vec<String>> = None;
    let mut chars = text.trim().chars();
    while let Some(c) = chars.next() {
        if c == ' ' || c == '\t' {
            words.extend(word.take().map(PatternWord));
            continue;
        }
        let pieces = word.get_or_insert_with(|| vec![String::new()]);
        match c {
            '*' => pieces.push(String::new()),
            '\'' | '"' => {
                let Some((quoted, after)) = chars.as_str().split_once(c) else {
                    return Err(PatternError::OpenQuote(text.to_owned()));
                };
                chars = after.chars();
                pieces
                    .last_mut()
                    .map(|last| last.push_str(quoted))
                    .unwrap_or_default();
            }
            ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' => {
                return Err(PatternError::NotAWord {
                    text: text.to_owned(),
                    found: c,
                });
            }
            control if control.is_control() => {
                return Err(PatternError::NotAWord {
                    text: text.to_owned(),
                    found: '\u{fffd}',
                });
            }
            plain => pieces
                .last_mut()
                .map(|last| last.push(plain))
                .unwrap_or_default(),
        }
    }
    words.extend(word.map(PatternWord));
    Ok(words)
}

impl TryFrom<String> for CommandPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        Self::new(&text)
    }
}

impl From<CommandPattern> for String {
    fn from(pattern: CommandPattern) -> Self {
        pattern.text
    }
}
