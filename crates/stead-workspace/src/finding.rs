//! Findings: problems of a workspace, and where they are.
//!
//! Effects: none.

use serde::{Serialize, Serializer};
use std::fmt;
use stead_core::{Hint, SourcePosition};

/// A problem of a workspace, or a setting without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How severe the problem is.
    pub severity: Severity,
    /// The file or the option with the problem.
    #[serde(rename = "file")]
    pub source: FindingSource,
    /// The position in the file.
    #[serde(flatten)]
    pub place: SourcePosition,
    /// The description of the problem.
    pub message: String,
    /// The next step for a person, where the message does not say it.
    #[serde(skip)]
    pub hint: Option<Hint>,
}

/// The file or the option that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingSource {
    /// A file, by its path from the root of the workspace.
    File(String),
    /// An option that the workspace was opened with.
    Option(OpenOption),
}

/// An option of [`OpenOptions`](crate::OpenOptions) that findings can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenOption {
    /// The main agent.
    Agent,
    /// The additional context files.
    ContextFiles,
    /// The additional folders of skills.
    Skills,
}

/// How severe a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A setting that is known and has no effect in this version.
    Inactive,
    /// Something that works, though perhaps not as intended.
    Warning,
    /// An error that does not stop the agent: it runs without the faulty part. A validation of the
    /// workspace fails.
    NonFatal,
    /// An error that keeps the workspace from being opened.
    Error,
}

impl Finding {
    /// Creates a finding about a whole file or an option.
    pub fn new(
        severity: Severity,
        source: impl Into<FindingSource>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            source: source.into(),
            place: SourcePosition::START,
            message: message.into(),
            hint: None,
        }
    }

    /// Creates an error about a whole file or an option.
    pub fn error(source: impl Into<FindingSource>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, source, message)
    }

    /// Returns the finding with its position in the file.
    pub fn with_position(self, place: SourcePosition) -> Self {
        Self { place, ..self }
    }

    /// Returns the finding with a next step for a person.
    pub fn with_hint(self, hint: Hint) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

impl Severity {
    /// Returns the word that is printed for the severity.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "not active yet",
            Self::Warning => "warning",
            Self::NonFatal => "error",
            Self::Error => "error",
        }
    }
}

impl FindingSource {
    /// Returns the path of the file, if the finding is about one.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            Self::Option(_) => None,
        }
    }
}

impl From<OpenOption> for FindingSource {
    fn from(option: OpenOption) -> Self {
        Self::Option(option)
    }
}

impl From<String> for FindingSource {
    fn from(file: String) -> Self {
        Self::File(file)
    }
}

impl From<&String> for FindingSource {
    fn from(file: &String) -> Self {
        Self::File(file.clone())
    }
}

impl From<&str> for FindingSource {
    fn from(file: &str) -> Self {
        Self::File(file.to_owned())
    }
}

impl fmt::Display for FindingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(path) => path,
            Self::Option(OpenOption::Agent) => "option agent",
            Self::Option(OpenOption::ContextFiles) => "option context files",
            Self::Option(OpenOption::Skills) => "option skills",
        })
    }
}

impl Serialize for FindingSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourcePosition { line, column } = self.place;
        match &self.source {
            FindingSource::File(path) => write!(f, "{path}:{line}:{column}: ")?,
            FindingSource::Option(_) => write!(f, "{}: ", self.source)?,
        }
        match self.severity {
            Severity::Error | Severity::NonFatal => f.write_str(&self.message),
            Severity::Warning | Severity::Inactive => {
                write!(f, "{}: {}", self.severity.as_str(), self.message)
            }
        }
    }
}
