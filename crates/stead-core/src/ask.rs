//! Questions to people about calls, and their answers.
//!
//! Effects: none.

use crate::{NestedCall, RuleId, RunId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A question to a person about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// The hash of the arguments that the answer is bound to.
    pub args_hash: String,
    /// A sentence that explains why the call is asked about.
    pub rule: String,
    /// The rules that ask; empty if only the permission mode does, and in journals written before
    /// rules had ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleId>,
    /// How it may be answered.
    #[serde(flatten)]
    pub terms: AskTerms,
    /// What the call is, if it is a nested call and this is the first entry about it.
    #[serde(flatten)]
    pub nested: Option<NestedCall>,
}

/// The conditions for answering a question: how, by whom, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskTerms {
    /// The allowed answers; empty means approve and reject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionKind>,
    /// The people who may answer; empty means everybody who can open the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answerers: Vec<String>,
    /// The time until which it can be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<jiff::Timestamp>,
    /// What the call would do, for people: a diff, a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The versions of the files that a yes is bound to, by path; empty for one that is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl AskTerms {
    /// Returns these terms, with a yes bound to these versions of files.
    pub fn bound_to(self, files: BTreeMap<String, String>) -> Self {
        Self { files, ..self }
    }

    /// Returns the allowed answers.
    pub fn allowed(&self) -> &[DecisionKind] {
        match self.decisions.as_slice() {
            [] => &[DecisionKind::Approve, DecisionKind::Reject],
            listed => listed,
        }
    }

    /// Returns whether an answer of this kind is allowed.
    pub fn accepts(&self, kind: DecisionKind) -> bool {
        self.allowed().contains(&kind)
    }

    /// Returns whether `who` may answer.
    pub fn may_answer(&self, who: &str) -> bool {
        self.answerers.is_empty() || self.answerers.iter().any(|name| name == who)
    }

    /// Returns whether the question has expired at `now`.
    pub fn has_expired(&self, now: jiff::Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The kinds of answers.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The call runs as it is.
    Approve,
    /// The call runs with other arguments.
    Edit,
    /// The call does not run.
    Reject,
    /// The call does not run; the answer is its result.
    Respond,
}

impl DecisionKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];

    /// Returns the name used in settings, journals and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Edit => "edit",
            Self::Reject => "reject",
            Self::Respond => "respond",
        }
    }
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// The hash of the arguments that were shown.
    pub args_hash: String,
    /// Whether the call may run.
    pub approved: bool,
    /// The person who answered.
    pub by: String,
    /// The arguments to use instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The reason of a rejection, or the result for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Whether `words` is the call's result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub responds: bool,
    /// Proves that the person approved it on this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

impl Decision {
    /// The name of the answerer for questions that expired.
    pub const EXPIRY: &str = "expiry";

    /// Returns an approval by `by` of the call `id` with the arguments that were shown.
    pub fn approve(
        run: RunId,
        id: impl Into<String>,
        args_hash: impl Into<String>,
        by: impl Into<String>,
    ) -> Self {
        let id = id.into();
        let args_hash = args_hash.into();
        let by = by.into();
        Self {
            run,
            id,
            args_hash,
            approved: true,
            by,
            args: None,
            words: None,
            responds: false,
            seal: None,
        }
    }

    /// Returns the kind of the answer.
    pub fn kind(&self) -> DecisionKind {
        match (self.approved, &self.args, self.responds) {
            (true, Some(_), _) => DecisionKind::Edit,
            (true, None, _) => DecisionKind::Approve,
            (false, _, true) => DecisionKind::Respond,
            (false, _, false) => DecisionKind::Reject,
        }
    }
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "with", rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// The call runs.
    Yes,
    /// The call does not run, and the model is told why.
    No {
        /// The reason.
        reason: Option<String>,
    },
    /// The call runs, and a grant allows calls like it from now on.
    Always,
    /// The call runs with these arguments.
    Edit(Value),
    /// The call does not run; this text is its result.
    Respond(String),
    /// The run parks; the question can be answered later by another process.
    Later,
}

impl ApprovalAnswer {
    /// Returns the kind of decision that it is; `None` if the question is to wait.
    pub fn kind(&self) -> Option<DecisionKind> {
        match self {
            Self::Yes | Self::Always => Some(DecisionKind::Approve),
            Self::No { .. } => Some(DecisionKind::Reject),
            Self::Edit(_) => Some(DecisionKind::Edit),
            Self::Respond(_) => Some(DecisionKind::Respond),
            Self::Later => None,
        }
    }

    /// Returns a refusal without a reason.
    pub fn no() -> Self {
        Self::No { reason: None }
    }
}

/// A question about one call, as people are asked it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalQuestion {
    /// The session that asks.
    pub session: SessionId,
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, which the answer is valid for.
    pub args: Value,
    /// The hash of the arguments ([`ApprovalReply::args_hash`]).
    pub args_hash: String,
    /// A sentence that explains why the call is asked about.
    pub rule: String,
    /// How the question may be answered, by whom and until when, with a preview of the call.
    #[serde(flatten)]
    pub terms: AskTerms,
    /// What [`ApprovalAnswer::Always`] would allow, in words; `None` if that answer is not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_scope: Option<String>,
    /// The name of the tool that makes the call, if it is a nested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
}

impl ApprovalQuestion {
    /// Returns the reply that gives this answer.
    pub fn reply(&self, answer: ApprovalAnswer) -> ApprovalReply {
        ApprovalReply {
            id: self.id.clone(),
            args_hash: self.args_hash.clone(),
            answer,
        }
    }
}

/// What happens to a run whose questions are answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterAnswer {
    /// It is resumed by whoever answers.
    #[default]
    Resume,
    /// It stays parked until somebody resumes it.
    Leave,
}

/// An answer to one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalReply {
    /// The call.
    pub id: String,
    /// The hash of the arguments that the person saw.
    pub args_hash: String,
    /// The answer.
    pub answer: ApprovalAnswer,
}
