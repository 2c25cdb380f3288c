//! The entry of a hook run.
//!
//! Effects: none.

use crate::{NestedCall, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A hook run and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// The current run, or the one that had just ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The canonical name of the hook event.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// The outcome.
    pub outcome: HookOutcome,
    /// The call that it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The reason why it blocked or failed, or a description of what it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The arguments that the call continues with. The model's answer in the journal stays
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// What the call is, if it is a nested call and this is the first entry about it. Only an entry
    /// with `args` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<NestedCall>,
    /// The duration in milliseconds.
    #[serde(default)]
    pub ms: u64,
}

/// The outcome of a hook run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It did not object, and may have added context.
    Passed,
    /// It refused.
    Blocked,
    /// It changed the input.
    Rewrote,
    /// It gave no valid answer.
    Failed,
    /// It did not answer in time.
    TimedOut,
}

impl HookOutcome {
    /// Returns the name used in journals and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Blocked => "blocked",
            Self::Rewrote => "rewrote",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
        }
    }
}
