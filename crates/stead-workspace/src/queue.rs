//! Settings of what becomes of messages that come while a run goes on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Messages that may wait at most: they are held in memory.
const MAX_CAP: u32 = 1_000;
/// The longest silence that can be waited for.
const MAX_DEBOUNCE_MS: u64 = 3_600_000;

/// What becomes of messages that come while a run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueSettings {
    /// How they are handled (default `collect`).
    pub mode: QueueMode,
    /// Milliseconds of silence after which collected messages are taken as one (default 1000).
    pub debounce_ms: u64,
    /// Messages that may wait (default 20).
    pub cap: u32,
    /// What becomes of more than that (default `summarize`).
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
    /// What is wrong with them, and the key it is about.
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

/// How a message that comes while a run goes on is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// All that came are one input, once the run is done and nobody said anything for a moment.
    #[default]
    Collect,
    /// Each is an input of its own, one after another.
    Followup,
    /// It goes into the next step of the run; calls of this step that were not begun are skipped.
    Steer,
    /// The same, and it is an input of its own afterwards.
    SteerBacklog,
    /// The model call and the tools are cancelled now; it is the next input.
    Interrupt,
}

/// What becomes of messages that are more than may wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DropPolicy {
    /// The oldest is dropped.
    Old,
    /// The newest is refused.
    New,
    /// The oldest is dropped, and a line of it is kept.
    #[default]
    Summarize,
}

impl QueueMode {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Collect,
        Self::Followup,
        Self::Steer,
        Self::SteerBacklog,
        Self::Interrupt,
    ];

    /// The name used in settings and commands.
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
