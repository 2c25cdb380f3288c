//! A parsed command line: its commands with their words and redirections.
//!
//! Effects: none.

use std::ops::Range;

/// All commands that a command line would run, as far as that can be determined without running it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellScript {
    /// All commands in the line. The commands of a substitution come before the command that uses
    /// it, those of a wrapper or a here-document after it.
    pub parts: Vec<CommandPart>,
    /// The reason why the result is not certain. Then there may be more commands than `parts`.
    pub ambiguity: Option<Ambiguity>,
}

/// Why a command line cannot be parsed with certainty, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {at})")]
pub struct Ambiguity {
    /// The reason.
    pub reason: String,
    /// The byte offset in the command line.
    pub at: usize,
}

/// One simple command. A part without words only assigns or redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// The command's name and its arguments.
    pub words: Vec<ShellWord>,
    /// `NAME=value` before the name.
    pub assignments: Vec<Assignment>,
    /// The redirections in order.
    pub redirects: Vec<Redirect>,
    /// How the part comes to run.
    pub invocation: Invocation,
    /// The part as it is written.
    pub source: String,
}

/// How a part comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// The part is written in the command line.
    Direct,
    /// Another part, such as `timeout` or `sh -c`, runs it. Both must be allowed.
    Wrapped,
    /// Another part that counts as a command of its own, such as `sudo`, runs it, or may run it.
    /// Only rules that deny or ask consider it.
    BehindCommand,
}

/// One word after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// The word as it is written.
    pub source: String,
    /// The value that the command gets.
    pub value: WordValue,
}

/// The value of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordValue {
    /// Exactly this word.
    Known(String),
    /// The value is known only when the command runs; it may be any number of words.
    Unknown(UnknownCause),
}

/// Why the value of a word is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownCause {
    /// `$x`, `${x…}`.
    Variable,
    /// `$(…)`, backticks, `<(…)`.
    Substitution,
    /// `$((…))`.
    Arithmetic,
    /// `*`, `?`, `[…]`.
    Glob,
    /// `{a,b}`.
    Brace,
    /// `~`.
    Tilde,
    /// An escape of `$'…'` that is not decoded here.
    Escape,
    /// Input of the command: the words that `xargs` and `find -exec` add.
    Input,
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The value of the variable.
    pub value: WordValue,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// The kind of redirection.
    pub kind: RedirectKind,
    /// The file, descriptor, text or delimiter after the operator.
    pub target: ShellWord,
}

/// The kind of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, `<>`, `>&file`.
    Write,
    /// `2>&1`, `<&3`, `>&-`: no file is opened.
    Duplicate,
    /// `<<`, with its body if nothing in it is expanded.
    Heredoc(Option<String>),
    /// `<<<`.
    Text,
}

impl ShellWord {
    /// Creates a word that equals its source.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            source: text.clone(),
            value: WordValue::Known(text),
        }
    }

    pub(super) fn unknown(source: impl Into<String>, why: UnknownCause) -> Self {
        Self {
            source: source.into(),
            value: WordValue::Unknown(why),
        }
    }

    /// Returns the value, if it is known.
    pub fn known(&self) -> Option<&str> {
        match &self.value {
            WordValue::Known(text) => Some(text),
            WordValue::Unknown(_) => None,
        }
    }
}

impl CommandPart {
    pub(super) fn new(words: Vec<ShellWord>, invocation: Invocation) -> Self {
        let source = words
            .iter()
            .map(|word| word.source.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        Self {
            words,
            assignments: Vec::new(),
            redirects: Vec::new(),
            invocation,
            source,
        }
    }

    /// Creates a part about which nothing is known except that it runs.
    pub(super) fn unknown_command(invocation: Invocation) -> Self {
        Self::new(
            vec![ShellWord::unknown("…", UnknownCause::Input)],
            invocation,
        )
    }

    /// Returns the command's name, if it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(ShellWord::known)
    }

    /// Whether a redirection opens something other than a file to read or `/dev/null`.
    pub fn writes(&self) -> bool {
        self.redirects.iter().any(Redirect::writes)
    }
}

impl Redirect {
    /// Whether the part may change a file or reach the network (`/dev/tcp/…`).
    pub fn writes(&self) -> bool {
        match (&self.kind, self.target.known()) {
            (RedirectKind::Write, target) => target != Some("/dev/null"),
            (RedirectKind::Read, Some(target)) => {
                target.starts_with("/dev/tcp") || target.starts_with("/dev/udp")
            }
            (RedirectKind::Read, None) => true,
            (RedirectKind::Duplicate | RedirectKind::Heredoc(_) | RedirectKind::Text, _) => false,
        }
    }
}

impl ShellScript {
    /// Whether everything that the line runs is written in it, so that the same line does the same
    /// the next time, as far as a line can tell.
    pub fn is_determined(&self) -> bool {
        let is_known = |value: &WordValue| match value {
            WordValue::Known(_) => true,
            WordValue::Unknown(_) => false,
        };
        // What may run behind a command is a guess.
        let mut parts = self
            .parts
            .iter()
            .filter(|part| part.invocation != Invocation::BehindCommand);
        let is_certain = self.ambiguity.is_none() && !self.parts.is_empty();
        is_certain
            && parts.all(|part| {
                let words = part.words.iter().map(|word| &word.value);
                let values = part.assignments.iter().map(|assignment| &assignment.value);
                let targets = part.redirects.iter().map(|redirect| &redirect.target.value);
                words.chain(values).chain(targets).all(is_known)
            })
    }

    /// Marks the script as ambiguous. The first reason is kept.
    pub(super) fn mark_ambiguous(&mut self, reason: impl Into<String>, at: usize) {
        if self.ambiguity.is_none() {
            self.ambiguity = Some(Ambiguity {
                reason: reason.into(),
                at,
            });
        }
    }
}

/// Returns the text of a range of the source, or an empty text if the range is invalid.
pub(super) fn slice(source: &str, place: Range<usize>) -> &str {
    source.get(place).unwrap_or_default()
}
