//! The `memory:` settings of agent.yaml: long-term memory.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_model::ModelName;

/// When facts are looked for in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlushAfter {
    /// After each run.
    Run,
    /// When the session ended, was idle for `memory.idle_minutes`, or is about to be summarised,
    /// and `memory.flush_tokens` new tokens wait.
    Idle,
}

/// The name in `memory.model` of the model that the session runs with.
const OWN_MODEL: &str = "own";

/// The model that extracts and merges facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryModelChoice<'a> {
    /// A cheap model of the session's provider where one is known, otherwise the session's own.
    Cheap,
    /// The session's own model.
    Own,
    /// This one, as `provider:model`.
    Named(&'a str),
}

/// The settings of long-term memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// The maximum number of tokens of `MEMORY.md` in the prompt (default 8000); the newest are
    /// kept.
    pub max_tokens: u32,
    /// Whether facts are extracted from conversations. The layout decides if it is left out.
    pub flush: Option<bool>,
    /// When facts are extracted: `idle` or `run`, which is after each run. The layout decides if it
    /// is left out.
    pub flush_after: Option<FlushAfter>,
    /// Minutes after which a session in which nothing happens is idle (default 30).
    pub idle_minutes: u32,
    /// How many new tokens must wait, in all sessions together, before idle sessions are looked
    /// through (default 4000). Fewer wait for a day at most.
    pub flush_tokens: u32,
    /// The model that extracts and merges facts, as `provider:model`, or `own` for that of the
    /// session (default: a cheap model of the session's provider, where one is known).
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
            flush_after: None,
            idle_minutes: 30,
            flush_tokens: 4000,
            model: None,
            consolidate_minutes: 30,
            archive_days: 90,
        }
    }
}

impl MemorySettings {
    /// Returns the model that extracts and merges facts.
    pub fn model_choice(&self) -> MemoryModelChoice<'_> {
        match self.model.as_deref() {
            None => MemoryModelChoice::Cheap,
            Some(OWN_MODEL) => MemoryModelChoice::Own,
            Some(name) => MemoryModelChoice::Named(name),
        }
    }

    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        if self.archive_days == 0 {
            return Some((
                "memory.archive_days",
                "memory.archive_days must be at least 1".to_owned(),
            ));
        }
        let MemoryModelChoice::Named(name) = self.model_choice() else {
            return None;
        };
        let wrong = name.parse::<ModelName>().err()?;
        Some(("memory.model", format!("memory.model: {wrong}")))
    }
}
