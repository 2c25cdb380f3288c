//! The `queue:` settings of agent.yaml: messages that arrive during a run.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::QueueMode;

/// The maximum of `cap`: waiting messages are held in memory.
const MAX_CAP: u32 = 1_000;
/// The maximum of `debounce_ms`.
const MAX_DEBOUNCE_MS: u64 = 3_600_000;

/// How messages that arrive during a run are handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSettings {
    /// The mode (default `collect`).
    pub mode: QueueMode,
    /// The number of milliseconds without messages after which collected messages become one input
    /// (default 1000).
    pub debounce_ms: u64,
    /// The maximum number of waiting messages (default 20).
    pub cap: u32,
    /// How messages above that number are handled (default `summarize`).
    #[serde(alias = "drop_policy")]
    pub drop: DropPolicy,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            mode: QueueMode::Collect,
            debounce_ms: 1000,
            cap: 20,
            drop: DropPolicy::Summarize,
        }
    }
}

impl QueueSettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        if !(1..=MAX_CAP).contains(&self.cap) {
            return Some((
                "queue.cap",
                format!("queue.cap must be a number from 1 to {MAX_CAP}"),
            ));
        }
        let long = self.debounce_ms > MAX_DEBOUNCE_MS;
        long.then(|| {
            (
                "queue.debounce_ms",
                format!("queue.debounce_ms must be at most {MAX_DEBOUNCE_MS}, which is an hour"),
            )
        })
    }
}

/// How messages above the maximum number are handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DropPolicy {
    /// The oldest message is dropped.
    Old,
    /// The newest message is refused.
    New,
    /// The oldest message is dropped, and one line of it is kept.
    #[default]
    Summarize,
}
