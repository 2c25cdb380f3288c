//! Questions to people about calls, and their answers.

use crate::{RuleId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to a person about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// Hash of the arguments the answer will be bound to.
    pub args_hash: String,
    /// A sentence that says why it is asked.
    pub rule: String,
    /// The rules that ask; none if only the permission mode does. Empty in journals written before
    /// rules had ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleId>,
    /// How it may be answered.
    #[serde(flatten)]
    pub terms: AskTerms,
}

/// How a question may be answered, by whom, and until when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskTerms {
    /// Answers that may be given; none listed = approve and reject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionKind>,
    /// Who may answer; none listed = whoever can open the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answerers: Vec<String>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<jiff::Timestamp>,
    /// What would happen, for people: a diff, a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

impl AskTerms {
    /// The answers that may be given.
    pub fn allowed(&self) -> &[DecisionKind] {
        match self.decisions.as_slice() {
            [] => &[DecisionKind::Approve, DecisionKind::Reject],
            listed => listed,
        }
    }

    /// Whether it may be answered so.
    pub fn accepts(&self, kind: DecisionKind) -> bool {
        self.allowed().contains(&kind)
    }

    /// Whether `who` may answer it.
    pub fn may_answer(&self, who: &str) -> bool {
        self.answerers.is_empty() || self.answerers.iter().any(|name| name == who)
    }

    /// Whether it was too late to answer at `now`.
    pub fn has_expired(&self, now: jiff::Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The ways to answer a question.
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
    /// It runs with other arguments.
    Edit,
    /// It does not run.
    Reject,
    /// It does not run; the answer is its result.
    Respond,
}

impl DecisionKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Edit, Self::Reject, Self::Respond];

    /// The name used in settings, journals and on the command line.
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
    /// Hash of the arguments that were shown.
    pub args_hash: String,
    /// Whether the call may run.
    pub approved: bool,
    /// Who said so.
    pub by: String,
    /// With these arguments instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Why not, or what to tell the model in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// Whether these words are the call's result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub responds: bool,
}

impl Decision {
    /// Who rejects what nobody answered in time.
    pub const EXPIRY: &str = "expiry";

    /// A plain yes of `by` to the call `id` with the arguments that were shown.
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
        }
    }

    /// Which of the ways to answer it is.
    pub fn kind(&self) -> DecisionKind {
        match (self.approved, &self.args, self.responds) {
            (true, Some(_), _) => DecisionKind::Edit,
            (true, None, _) => DecisionKind::Approve,
            (false, _, true) => DecisionKind::Respond,
            (false, _, false) => DecisionKind::Reject,
        }
    }
}
