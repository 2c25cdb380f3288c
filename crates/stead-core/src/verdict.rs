//! The gate's answer.

use serde::{Deserialize, Serialize};

/// Allow, Ask or Deny, and the rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The decision.
    pub kind: VerdictKind,
    /// The deciding rule in words a person can find again.
    pub rule: String,
}

/// The three decisions, mildest first, so that `max` narrows.
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
pub enum VerdictKind {
    /// The call may run.
    Allow,
    /// A person must say.
    Ask,
    /// The call is refused.
    Deny,
}

impl Verdict {
    /// Allowed by `rule`.
    pub fn allow(rule: impl Into<String>) -> Self {
        Self {
            kind: VerdictKind::Allow,
            rule: rule.into(),
        }
    }

    /// To be asked, because of `rule`.
    pub fn ask(rule: impl Into<String>) -> Self {
        Self {
            kind: VerdictKind::Ask,
            rule: rule.into(),
        }
    }

    /// Denied by `rule`.
    pub fn deny(rule: impl Into<String>) -> Self {
        Self {
            kind: VerdictKind::Deny,
            rule: rule.into(),
        }
    }
}
