//! What is wrong, doubtful or not yet active in a workspace, and where.

use serde::Serialize;
use std::fmt;

/// Something that a person should know about a file of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file, from the root of the workspace.
    pub file: String,
    /// Where in it.
    #[serde(flatten)]
    pub place: SourcePosition,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is understood, and has no effect in this version.
    Inactive,
    /// It works, though perhaps not as meant.
    Warning,
    /// It breaks a rule; the agent runs all the same, without what is wrong. `stead check` fails on
    /// it.
    NonFatal,
    /// The workspace is not opened because of it.
    Error,
}

/// A line and a column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourcePosition {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl SourcePosition {
    /// Where a file begins.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl Finding {
    /// A finding about the whole of `file`.
    pub fn new(severity: Severity, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            file: file.into(),
            place: SourcePosition::START,
            message: message.into(),
        }
    }

    /// An error about the whole of `file`.
    pub fn error(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, file, message)
    }

    /// The same at `place`.
    pub fn with_position(self, place: SourcePosition) -> Self {
        Self { place, ..self }
    }
}

impl Severity {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "not active yet",
            Self::Warning => "warning",
            Self::NonFatal => "error",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            severity,
            file,
            place: SourcePosition { line, column },
            message,
        } = self;
        match severity {
            Severity::Error | Severity::NonFatal => write!(f, "{file}:{line}:{column}: {message}"),
            Severity::Warning | Severity::Inactive => {
                write!(
                    f,
                    "{file}:{line}:{column}: {}: {message}",
                    severity.as_str()
                )
            }
        }
    }
}
