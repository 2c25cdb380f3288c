//! The settings for messages that arrive during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

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

/// How a message that arrives during a run is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// All messages become one input after the run, once no more arrive for a moment.
    #[default]
    Collect,
    /// Each message becomes an input of its own, one after another.
    Followup,
    /// The message goes into the next step of the run; calls of this step that were not started are
    /// skipped.
    Steer,
    /// Like `Steer`, and the message is an input of its own afterwards.
    SteerBacklog,
    /// The model call and the tools are cancelled at once, and the message is the next input.
    Interrupt,
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

impl QueueMode {
    /// All modes.
    pub const ALL: [Self; 5] = [
        Self::Collect,
        Self::Followup,
        Self::Steer,
        Self::SteerBacklog,
        Self::Interrupt,
    ];

    /// Returns the name used in settings and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collect => "collect",
            Self::Followup => "followup",
            Self::Steer => "steer",
            Self::SteerBacklog => "steer-backlog",
            Self::Interrupt => "interrupt",
        }
    }
}

impl fmt::Display for QueueMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for QueueMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let named = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| format!("{text:?} is no mode of the queue; they are: {}", known()))
    }
}
