//! The report of a run: how it ended, as the client that began it is told.
//!
//! Effects: none.

use crate::{RunId, RunOutcome, SessionId, Usage, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The outcome; a parked run has not ended.
    pub outcome: RunOutcome,
    /// Details of the outcome, if there are any.
    pub reason: Option<String>,
    /// The final text.
    pub text: String,
    /// Model calls made.
    pub steps: u32,
    /// Tokens used.
    pub usage: Usage,
    /// The cost; none if any part of it is unknown.
    pub cost: Option<Usd>,
    /// The answer as a value, if it had to conform to a JSON schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Tasks of subagents that wait for a person's decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingTask>,
}

/// A task of a subagent that waits for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingTask {
    /// The id of the task.
    pub task: String,
    /// The session that delegated it, which can resume once there is an answer.
    pub session: SessionId,
}
