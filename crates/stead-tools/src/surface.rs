//! How tools are named to a model.

use serde::{Deserialize, Serialize};

/// How tools are named to a model.
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

/// Names of the title surface, each after the canonical one.
const TITLES: [(&str, &str); 11] = [
    ("read_file", "Read"),
    ("write_file", "Write"),
    ("edit_file", "Edit"),
    ("glob_files", "Glob"),
    ("grep_files", "Grep"),
    ("ls", "LS"),
    ("load_skill", "Skill"),
    ("execute", "Bash"),
    ("write_todos", "TodoWrite"),
    ("task", "SubAgent"),
    ("switch_agent", "AgentSwitch"),
];

impl Surface {
    /// The number by which the line after `skipped` ones is asked for here.
    pub fn offset(self, skipped: u64) -> u64 {
        match self {
            Self::Snake => skipped,
            Self::Title => skipped.saturating_add(1),
        }
    }

    /// What a tool is called here.
    pub fn name(self, canonical: &'static str) -> &'static str {
        match self {
            Self::Snake => canonical,
            Self::Title => TITLES
                .iter()
                .find(|(name, _)| *name == canonical)
                .map_or(canonical, |(_, title)| title),
        }
    }
}
