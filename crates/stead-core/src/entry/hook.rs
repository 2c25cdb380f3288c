//! What came of asking hooks.

use crate::RunId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What came of asking a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// The run during which it was asked, or which had just ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What happened, by the event's canonical name.
    pub event: String,
    /// The hook's name.
    pub hook: String,
    /// What came of it.
    pub outcome: HookOutcome,
    /// The call it was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Why it blocked or failed, or what it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The arguments with which the call goes on from here; its answer is on record as the model
    /// gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
}

/// What came of asking a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It let things go on, perhaps with a word to the model.
    Passed,
    /// It said no.
    Blocked,
    /// It changed what goes on.
    Rewrote,
    /// It gave no answer that counts.
    Failed,
    /// It gave none in time.
    TimedOut,
}

impl HookOutcome {
    /// The name used in journals and on the command line.
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
