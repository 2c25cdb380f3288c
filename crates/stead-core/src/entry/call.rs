//! Entries of a tool call: its intent and its result.
//!
//! Effects: none.

use crate::{Block, NestedCall, RunId, SessionChange, TaintOrigin, TaintOrigins};
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
    /// The hash of the arguments.
    pub args_hash: String,
    /// Whether it can change anything.
    pub changes: bool,
    /// Whether it may be run again if it is interrupted.
    pub repeatable: bool,
    /// What the call is, if it is a nested call and this is the first entry about it.
    #[serde(flatten)]
    pub nested: Option<NestedCall>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// How it ended.
    pub status: ResultStatus,
    /// The exit code of the command that it ran, if it ran one to its end. Other than 0, the command
    /// failed, whatever the status of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The content for the model.
    pub content: Vec<Block>,
    /// The versions of files that this call read or wrote, by path, for detecting changes since the
    /// last read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, String>,
    /// The skill whose body this result contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activates: Option<SkillActivation>,
    /// Whether it contains untrusted content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// Where the untrusted content comes from, as far as it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taint: Vec<TaintOrigin>,
    /// The change of the session that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<SessionChange>,
    /// The subagent tasks whose end it reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// The duration in milliseconds.
    #[serde(default)]
    pub ms: u64,
    /// What the call is, if it is a nested call and this is the first entry about it.
    #[serde(flatten)]
    pub nested: Option<NestedCall>,
}

impl CallResult {
    /// Returns a result with `content` and nothing else.
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
            exit_code: None,
            content,
            seen: BTreeMap::new(),
            activates: None,
            untrusted: false,
            taint: Vec::new(),
            change: None,
            tasks: Vec::new(),
            ms: 0,
            nested: None,
        }
    }
}

impl CallResult {
    /// Adds the origins of untrusted content. With at least one the result is untrusted.
    pub fn add_taint(&mut self, origins: impl IntoIterator<Item = TaintOrigin>) {
        let all: TaintOrigins = std::mem::take(&mut self.taint)
            .into_iter()
            .chain(origins)
            .collect();
        self.taint = all.named().to_vec();
        self.untrusted |= !self.taint.is_empty();
    }
}

/// A skill that became part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillActivation {
    /// The name of the skill.
    pub skill: String,
    /// The SHA-256 hash of its SKILL.md, so that another text under the same name counts as another
    /// skill.
    pub version: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultStatus {
    /// It succeeded.
    Ok,
    /// It failed; the content says why.
    Error,
    /// The gate or a person denied it; it did not run.
    Denied,
    /// It was cancelled, and may have run in part.
    Cancelled,
    /// The process died during it; it may have run.
    Interrupted,
    /// It was never started.
    Skipped,
}

impl ResultStatus {
    /// Returns the name used in journals, events and on the command line.
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

    /// Returns whether the model is told that this is an error.
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }

    /// Returns how people are shown the end of a call. A command that failed is a failure, although
    /// the call that ran it succeeded.
    pub fn shown(self, exit_code: Option<i32>) -> ShownEnd {
        match (self, exit_code) {
            (Self::Ok, Some(code)) if code != 0 => ShownEnd::CommandFailed(code),
            (Self::Ok, _) => ShownEnd::Succeeded,
            (Self::Denied, _) => ShownEnd::Denied,
            (Self::Error | Self::Cancelled | Self::Interrupted | Self::Skipped, _) => {
                ShownEnd::Failed
            }
        }
    }
}

/// The end of a call as people are shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownEnd {
    /// It did what it was asked to.
    Succeeded,
    /// Its command ended with this exit code.
    CommandFailed(i32),
    /// It failed, was stopped, or was not begun.
    Failed,
    /// It was denied.
    Denied,
}
