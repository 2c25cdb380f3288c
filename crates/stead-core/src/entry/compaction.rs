//! The entry of a compaction.
//!
//! Effects: none.

use crate::{ContextView, RunId, Usage, Usd};
use serde::{Deserialize, Serialize};

/// A compaction: from here on the model is shown less of the conversation. The conversation itself
/// stays unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The open run, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The cause.
    pub cause: CompactionCause,
    /// The new view.
    #[serde(flatten)]
    pub view: ContextView,
    /// What is no longer shown.
    pub dropped: DroppedCounts,
    /// The tokens of the context before, as far as known.
    pub before_tokens: u64,
    /// The estimated tokens after.
    pub after_tokens: u64,
    /// The context window, if a provider's refusal revealed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The subject that a person asked to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// The reason why there is no summary by a model although one was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The model that wrote the summary, as `provider:model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The token usage of the summary.
    #[serde(default)]
    pub usage: Usage,
    /// The cost; absent if unknown or if no model was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
}

/// The cause of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionCause {
    /// The context reached its limit.
    Limit,
    /// A provider reported that the context does not fit.
    Overflow,
    /// A person requested it.
    Manual,
}

/// What a compaction leaves out of the context beyond earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCounts {
    /// The number of messages that the summary replaces.
    pub messages: u64,
    /// The number of results that are shown shortened.
    pub results: u64,
    /// The number of calls whose long arguments are shown shortened.
    pub calls: u64,
}

impl DroppedCounts {
    /// Describes the counts: `12 messages summarised, 3 results shortened`.
    pub fn describe(&self) -> String {
        let counted = |n: u64, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let parts = [
            counted(self.messages, "message summarised", "messages summarised"),
            counted(self.results, "result shortened", "results shortened"),
            counted(self.calls, "call shortened", "calls shortened"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            "nothing left out".to_owned()
        } else {
            parts.join(", ")
        }
    }
}
