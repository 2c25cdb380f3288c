//! What a command line comes to.

use std::ops::Range;

/// Everything that a command line would run, as far as that can be told without running it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellScript {
    /// Every command in it, wherever it stands. What a substitution runs comes before the command
    /// that uses it, what a wrapper or a here-document runs after it.
    pub parts: Vec<CommandPart>,
    /// Why this reading is not certain. Then `parts` are those that were found, and there may be
    /// others.
    pub ambiguity: Option<Ambiguity>,
}

/// Why a command line cannot be read for certain, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {at})")]
pub struct Ambiguity {
    /// In words.
    pub reason: String,
    /// The byte of the command line.
    pub at: usize,
}

/// One simple command; without words it only assigns or redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPart {
    /// The command's name and its arguments.
    pub words: Vec<ShellWord>,
    /// `NAME=value` before the name.
    pub assignments: Vec<Assignment>,
    /// In their order.
    pub redirects: Vec<Redirect>,
    /// How it comes to run.
    pub invocation: Invocation,
    /// As it is written.
    pub source: String,
}

/// How a part comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// It stands in the command line.
    Direct,
    /// Another part, such as `timeout` or `sh -c`, runs it. Both must be allowed.
    Wrapped,
    /// Another part that counts as a command of its own, such as `sudo`, runs it, or may. Only
    /// rules that deny or ask look here.
    BehindCommand,
}

/// One word after all quoting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellWord {
    /// As it is written.
    pub source: String,
    /// What the command gets.
    pub value: WordValue,
}

/// What a word comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordValue {
    /// Exactly this one word.
    Known(String),
    /// Only running it tells; it may be any number of words.
    Unknown(UnknownCause),
}

/// What a word waits for.
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
    /// What the command reads: the words that `xargs` and `find -exec` add.
    Input,
}

/// `NAME=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// What it is set to.
    pub value: WordValue,
}

/// One redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// What it does.
    pub kind: RedirectKind,
    /// The file, descriptor, text or delimiter after the operator.
    pub target: ShellWord,
}

/// What a redirection does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`.
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`, `<>`, `>&file`.
    Write,
    /// `2>&1`, `<&3`, `>&-`: no file is opened.
    Duplicate,
    /// `<<`, with its body if nothing in that is expanded.
    Heredoc(Option<String>),
    /// `<<<`.
    Text,
}

impl ShellWord {
    /// A word that is its own source.
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

    /// The word, if it is known.
    pub fn known(&self) -> Option<&str> {
        match &self.value {
            WordValue::Known(text) => Some(text),
            WordValue::Unknown(_) => None,
        }
    }
}

impl CommandPart {
    pub(super) fn new(words: Vec<ShellWord>, reach: Invocation) -> Self {
        let source = words
            .iter()
            .map(|word| word.source.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        Self {
            words,
            assignments: Vec::new(),
            redirects: Vec::new(),
            invocation: reach,
            source,
        }
    }

    /// A part of which nothing is known but that it runs.
    pub(super) fn unknown_command(reach: Invocation) -> Self {
        Self::new(vec![ShellWord::unknown("…", UnknownCause::Input)], reach)
    }

    /// The command's name, if it is known.
    pub fn name(&self) -> Option<&str> {
        self.words.first().and_then(ShellWord::known)
    }

    /// Whether a redirection opens something other than a file to read or `/dev/null`.
    pub fn writes(&self) -> bool {
        self.redirects.iter().any(Redirect::writes)
    }
}

impl Redirect {
    /// Whether it may change a file or reach the network (`/dev/tcp/…`).
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
    /// Notes why the reading is uncertain; the first reason stands.
    pub(super) fn mark_ambiguous(&mut self, reason: impl Into<String>, at: usize) {
        if self.ambiguity.is_none() {
            self.ambiguity = Some(Ambiguity {
                reason: reason.into(),
                at,
            });
        }
    }
}

/// The text of a place in the source, or nothing if it is no such place.
pub(super) fn slice(source: &str, place: Range<usize>) -> &str {
    source.get(place).unwrap_or_default()
}
