//! The entry that ends a run.
//!
//! Effects: none.

use crate::RunId;
use serde::{Deserialize, Serialize};

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub outcome: RunOutcome,
    /// Details, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// The model finished its answer.
    Completed,
    /// The step limit was reached.
    StepLimit,
    /// The money or token limit was reached.
    Budget,
    /// The time limit was reached.
    TimedOut,
    /// A person or a signal stopped it.
    Cancelled,
    /// It could not continue.
    Failed,
    /// It waits for a person's decision.
    Parked,
}

impl RunOutcome {
    /// Returns the name used in journals, events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::StepLimit => "step_limit",
            Self::Budget => "budget",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Parked => "parked",
        }
    }
}
