//! The names under which tools are shown to a model.
//!
//! Effects: none.

use crate::ToolIdentity;
use serde::{Deserialize, Serialize};

/// The names under which tools are shown to a model.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// `read_file`, `edit_file`, …
    #[default]
    Snake,
    /// `Read`, `Edit`, …, with the parameters that models know from other harnesses.
    Title,
}

impl Surface {
    /// Returns the `offset` that reads on after `skipped` lines: lines to skip on the snake surface,
    /// the number of the first line on the title surface.
    pub fn offset(self, skipped: u64) -> u64 {
        match self {
            Self::Snake => skipped,
            Self::Title => skipped.saturating_add(1),
        }
    }

    /// Returns the name of a tool on this surface.
    pub fn name(self, tool: &ToolIdentity) -> &'static str {
        match self {
            Self::Snake => tool.name,
            Self::Title => tool.title.unwrap_or(tool.name),
        }
    }
}
