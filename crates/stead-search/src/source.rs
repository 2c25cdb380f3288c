//! What a search index is made from: sources and their lines.
//!
//! Effects: none.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchSourceKind {
    /// A memory file; its places are line numbers.
    Memory,
    /// A session; its places are sequence numbers of its journal.
    Session,
}

impl SearchSourceKind {
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Memory => 0,
            Self::Session => 1,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        [Self::Memory, Self::Session]
            .into_iter()
            .find(|kind| kind.code() == code)
    }
}

/// A source whose lines are searched, with one version at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchSource {
    /// The kind.
    pub kind: SearchSourceKind,
    /// The path or id.
    pub name: String,
}

impl SearchSource {
    /// Returns a source.
    pub fn new(kind: SearchSourceKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }
}

/// The speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineSpeaker {
    /// None: a line of a file.
    Note,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A tool whose result is untrusted content.
    Outside,
    /// The harness.
    Harness,
}

impl LineSpeaker {
    const ALL: [Self; 6] = [
        Self::Note,
        Self::User,
        Self::Assistant,
        Self::Tool,
        Self::Outside,
        Self::Harness,
    ];

    /// Returns the name shown in results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Outside => "tool, untrusted",
            Self::Harness => "harness",
        }
    }

    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Note => 0,
            Self::User => 1,
            Self::Assistant => 2,
            Self::Tool => 3,
            Self::Harness => 4,
            Self::Outside => 5,
        }
    }

    pub(crate) fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|voice| voice.code() == code)
    }
}

/// One line of a source. It may have several rows of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// The position in its source: a line number or a sequence number.
    pub position: u64,
    /// The time, if known.
    pub at: Option<Timestamp>,
    /// The speaker.
    pub voice: LineSpeaker,
    /// The text.
    pub text: String,
}

impl SourceLine {
    /// Returns a line of a file.
    pub fn note(position: u64, text: impl Into<String>) -> Self {
        Self {
            position,
            at: None,
            voice: LineSpeaker::Note,
            text: text.into(),
        }
    }

    /// Sets the time of the line.
    pub fn at(self, at: Timestamp) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }
}
