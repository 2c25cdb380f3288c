//! The `policy:` and `undo:` settings of agent.yaml: limits of runs, and of what is kept for undo.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::RunLimits;

/// The limits of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// The maximum number of model calls (default 200).
    pub max_steps: u32,
    /// The time limit of a run, in seconds (default 3600).
    pub run_timeout_seconds: u64,
    /// The time limit of a tool call, in seconds (default 120).
    pub tool_timeout_seconds: u64,
    /// The maximum number of parallel-safe calls of one step that run at the same time (default 8;
    /// 1 = sequential).
    pub parallel_tool_calls: u32,
    /// The maximum number of nested calls that one call of the model can make, at all levels
    /// together (default 1000; 0 = none).
    pub max_nested_calls: u32,
    /// The number of identical rounds (same calls, same results) after which the model is warned
    /// (default 3, 0 = never).
    pub repeat_nudge: u32,
    /// The number of identical rounds (same calls, same results) after which the run ends (default
    /// 6, 0 = never).
    pub repeat_end: u32,
    /// The maximum number of subagents of one session that work at the same time (default 8);
    /// further ones wait.
    pub max_concurrent_subagents: u32,
    /// The maximum depth of delegation (default 3).
    pub max_subagent_depth: u32,
    /// The number of seconds after which a subagent in the foreground continues in the background
    /// (default 600).
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
            max_nested_calls: 1_000,
            repeat_nudge: limits.repeat_nudge,
            repeat_end: limits.repeat_end,
            max_concurrent_subagents: 8,
            max_subagent_depth: 3,
            subagent_timeout_seconds: 600,
        }
    }
}

impl Policy {
    /// Returns the limits that the run machine enforces.
    pub fn limits(&self) -> RunLimits {
        RunLimits {
            max_steps: self.max_steps,
            repeat_nudge: self.repeat_nudge,
            repeat_end: self.repeat_end,
        }
    }
}

/// How long, and in how much space, changes of runs are kept for undo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoSettings {
    /// The maximum age in days (default 30).
    pub keep_days: u32,
    /// The maximum size in megabytes (default 1024).
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
