//! A problem in a SKILL.md and its position.
//!
//! Effects: none.

use std::fmt;

/// A problem in a text and its position.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillProblem {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem, and what to do about it.
    pub message: String,
}

impl SkillProblem {
    /// Creates a problem with the text as a whole.
    pub(crate) fn whole_file(message: impl Into<String>) -> Self {
        Self {
            line: 1,
            column: 1,
            message: message.into(),
        }
    }

    /// Creates a problem at `place`.
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

/// A position in a text; line and column count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}
