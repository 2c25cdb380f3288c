//! A call, from its intent to its result.

use crate::{Block, RunId, SessionChange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The intent to run a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallIntent {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// The tool's canonical name.
    pub tool: String,
    /// Hash of the arguments.
    pub args_hash: String,
    /// Whether it can change anything.
    pub changes: bool,
    /// Whether it may be run again if interrupted.
    pub repeatable: bool,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// How it ended.
    pub status: ResultStatus,
    /// What the model is told.
    pub content: Vec<Block>,
    /// Versions of files this call read or wrote, by path: the base of the changed-since-read
    /// check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, String>,
    /// The skill whose body this result brought into the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activates: Option<SkillActivation>,
    /// Whether it brought in words of people or machines that nobody here vouches for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// How the session goes on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<SessionChange>,
    /// Tasks of subagents whose end it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
}

impl CallResult {
    /// A result that says `content` and brings nothing else.
    pub fn new(
        run: RunId,
        id: impl Into<String>,
        status: ResultStatus,
        content: Vec<Block>,
    ) -> Self {
        Self {
            run,
            id: id.into(),
            status,
            content,
            seen: BTreeMap::new(),
            activates: None,
            untrusted: false,
            change: None,
            tasks: Vec::new(),
            ms: 0,
        }
    }
}

/// A skill that became part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillActivation {
    /// Its name.
    pub skill: String,
    /// SHA-256 of its SKILL.md, so that another text under the same name counts as another skill.
    pub version: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It did what was asked.
    Ok,
    /// It failed; the content says why.
    Error,
    /// The gate or a person refused it; it did not run.
    Denied,
    /// It was cancelled, and may have run in part.
    Cancelled,
    /// The process died during it; it may have run.
    Interrupted,
    /// It was never begun.
    Skipped,
}

impl ResultStatus {
    /// The name used in journals, events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }

    /// Whether a model should be told that this is an error.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}
