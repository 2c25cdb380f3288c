//! What the model is no longer shown.

use crate::{ContextView, RunId, Usage, Usd};
use serde::{Deserialize, Serialize};

/// The model is shown less of the conversation from here on. The conversation itself stays as it
/// is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// The open run, if it happened during one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Why.
    pub cause: CompactionCause,
    /// What is shown now.
    #[serde(flatten)]
    pub view: ContextView,
    /// What is no longer shown.
    pub dropped: DroppedCounts,
    /// Tokens of the context before, as far as known.
    pub before_tokens: u64,
    /// An estimate of them after.
    pub after_tokens: u64,
    /// The window that a provider's refusal told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What a person wanted kept above all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Why there is no summary by a model though one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The model that wrote the summary, as `provider:model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tokens used for the summary.
    #[serde(default)]
    pub usage: Usage,
    /// What it cost; absent when not known, or when nothing was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
}

/// Why a context was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionCause {
    /// It had reached its limit.
    Limit,
    /// A provider said that it does not fit.
    Overflow,
    /// A person wanted it.
    Manual,
}

/// What a compaction leaves out of the context, beside what earlier ones did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCounts {
    /// Messages for which the summary stands.
    pub messages: u64,
    /// Results that are shown shortened.
    pub results: u64,
    /// Calls whose long arguments are shown shortened.
    pub calls: u64,
}

impl DroppedCounts {
    /// In words: `12 messages summarised, 3 results shortened`.
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
