//! What is searched: lines of sources.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What kind of thing a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchSourceKind {
    /// A file of memory; its places are line numbers.
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

/// Something whose lines are searched, as a whole of one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SearchSource {
    /// What it is.
    pub kind: SearchSourceKind,
    /// Its path or id.
    pub name: String,
}

impl SearchSource {
    /// A source.
    pub fn new(kind: SearchSourceKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }
}

/// Who said a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineSpeaker {
    /// Nobody: it stands in a file.
    Note,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A tool that brought words of people or machines that nobody here vouches for.
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

    /// Its name, as results show it.
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

/// One thing that was said or written. It may have several rows of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Where in its source: a line number or a sequence number.
    pub place: u64,
    /// When, if that is known.
    pub at: Option<Timestamp>,
    /// Who said it.
    pub voice: LineSpeaker,
    /// The words.
    pub text: String,
}

impl SourceLine {
    /// A line of a file.
    pub fn note(place: u64, text: impl Into<String>) -> Self {
        Self {
            place,
            at: None,
            voice: LineSpeaker::Note,
            text: text.into(),
        }
    }

    /// The same, written at that time.
    pub fn at(self, at: Timestamp) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }
}
