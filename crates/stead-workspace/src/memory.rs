//! The `memory:` settings of agent.yaml: long-term memory.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_model::ModelName;

/// The settings of long-term memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// The maximum number of tokens of `MEMORY.md` in the prompt (default 8000); the newest are
    /// kept.
    pub max_tokens: u32,
    /// Whether facts are extracted from the conversation after each run. The layout decides if it
    /// is left out.
    pub flush: Option<bool>,
    /// The model that extracts and merges facts, as `provider:model` (default: the agent's own).
    pub model: Option<String>,
    /// Minutes between two merges of new facts into `MEMORY.md` (default 30, 0 = after every
    /// extraction).
    pub consolidate_minutes: u32,
    /// Days after which the facts of a day move to `memory/archive/` (default 90).
    pub archive_days: u32,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            max_tokens: 8000,
            flush: None,
            model: None,
            consolidate_minutes: 30,
            archive_days: 90,
        }
    }
}

impl MemorySettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        if self.archive_days == 0 {
            return Some((
                "memory.archive_days",
                "memory.archive_days must be at least 1".to_owned(),
            ));
        }
        let wrong = self.model.as_ref()?.parse::<ModelName>().err()?;
        Some(("memory.model", format!("memory.model: {wrong}")))
    }
}
