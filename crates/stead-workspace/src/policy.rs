//! Bounds of runs, and of what is kept about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::RunLimits;

/// Bounds of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Model calls at most (default 200).
    pub max_steps: u32,
    /// Seconds for a whole run (default 3600).
    pub run_timeout_seconds: u64,
    /// Seconds for one tool call (default 120).
    pub tool_timeout_seconds: u64,
    /// How many parallel-safe calls of one step run at once (default 8; 1 = one after another).
    pub parallel_tool_calls: u32,
    /// Rounds of the same calls with the same results until the model is told (default 3, 0 =
    /// never).
    pub repeat_nudge: u32,
    /// Rounds of the same calls with the same results until the run ends (default 6, 0 = never).
    pub repeat_end: u32,
    /// How many subagents of one session work at once (default 8); more wait.
    pub max_concurrent_subagents: u32,
    /// Through how many hands a task may go (default 3).
    pub max_subagent_depth: u32,
    /// Seconds after which a subagent that is waited for goes on in the background (default 600).
    pub subagent_timeout_seconds: u64,
}

impl Default for Policy {
    fn default() -> Self {
        let limits = RunLimits::default();
        Self {
            max_steps: limits.max_steps,
            run_timeout_seconds: 3600,
            tool_timeout_seconds: 120,
            parallel_tool_calls: 8,
            repeat_nudge: limits.repeat_nudge,
            repeat_end: limits.repeat_end,
            max_concurrent_subagents: 8,
            max_subagent_depth: 3,
            subagent_timeout_seconds: 600,
        }
    }
}

impl Policy {
    /// The part that the Run machine enforces.
    pub fn limits(&self) -> RunLimits {
        RunLimits {
            max_steps: self.max_steps,
            repeat_nudge: self.repeat_nudge,
            repeat_end: self.repeat_end,
        }
    }
}

/// How long, and in how much space, it is kept what runs changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoSettings {
    /// Days (default 30).
    pub keep_days: u32,
    /// Megabytes (default 1024).
    pub max_mb: u64,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self {
            keep_days: 30,
            max_mb: 1024,
        }
    }
}
