//! What is wrong with a text, and where.

use std::fmt;

/// Something wrong in a text, with its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl SkillProblem {
    /// A problem with the text as a whole.
    pub(crate) fn whole_file(message: impl Into<String>) -> Self {
        Self {
            line: 1,
            column: 1,
            message: message.into(),
        }
    }

    /// A problem at `place`.
    pub(crate) fn at(place: TextPosition, message: impl Into<String>) -> Self {
        Self {
            line: place.line,
            column: place.column,
            message: message.into(),
        }
    }
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// A place in a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}
