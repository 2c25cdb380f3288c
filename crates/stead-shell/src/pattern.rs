//! The patterns of command rules.

use super::script::{CommandPart, ShellWord};
use super::wrappers::base_name;
use serde::{Deserialize, Serialize};

/// A pattern for the commands that a rule covers.
///
/// A pattern consists of words. A last word `*` matches any further words, or none (`git:*` is
/// `git *`); `*` inside a word matches any text within that word; a quoted word is literal. `*` alone
/// matches every command. In a rule that allows, the last `*` does not match words that make a
/// command run other programs (`data/escapes.txt`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CommandPattern {
    text: String,
    words: Vec<PatternWord>,
    tail: PatternTail,
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

/// How a command's name is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameComparison {
    /// As it is written: `./ls` may be any program.
    Exact,
    /// By its last component: `/bin/rm` is `rm`.
    Base,
}

impl CommandPattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let mut words = split(text)?;
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

    /// Returns the number of words that the pattern names.
    pub(super) fn word_count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn matches(&self, part: &CommandPart, name: NameComparison) -> PatternMatch {
        if self.is_everything() {
            return PatternMatch::Yes;
        }
        let mut words = part.words.iter();
        for (index, pattern) in self.words.iter().enumerate() {
            match words.next().map(ShellWord::known) {
                None => return PatternMatch::No,
                Some(None) => return PatternMatch::Maybe,
                Some(Some(word)) if pattern.matches_word(word) => {}
                Some(Some(word))
                    if index == 0
                        && name == NameComparison::Base
                        && pattern.matches_word(base_name(word)) => {}
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
    fn matches_word(&self, word: &str) -> bool {
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
