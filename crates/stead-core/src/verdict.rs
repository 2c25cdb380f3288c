//! The gate's decision about a call, and the rules behind it.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Allow, Ask or Deny, with the rules that decided.
///
/// Code decides by [`kind`](Self::kind) and [`rules`](Self::rules); [`reason`](Self::reason) is for
/// people and models and is never parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The decision.
    pub kind: VerdictKind,
    /// The rules that decided, in the order in which they were evaluated.
    pub rules: Vec<RuleId>,
    /// A sentence that explains the decision.
    pub reason: String,
}

/// The three decisions, mildest first, so that the maximum is the strictest.
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
    /// A person must decide.
    Ask,
    /// The call is refused.
    Deny,
}

/// The stable name of a rule: its source and its content, such as
/// `permissions:ask write docs/**`.
///
/// An id is made from what the rule says, not from its position. Moving a rule keeps its id, and
/// changing it makes another rule, which grants given for the old one do not answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleSource {
    /// Plan mode, until a person agrees to the plan.
    PlanMode,
    /// The restrictions that a subagent inherits.
    Ceiling,
    /// `allow` and `deny` lists of tools.
    ToolLists,
    /// The profile of the model.
    Profile,
    /// `permissions:`, the rules for files.
    Permissions,
    /// Files that decide what the agent is or may do.
    Protected,
    /// `commands:`, the rules for commands.
    Commands,
    /// `commands.reads`, the rule for commands that only read.
    CommandReads,
    /// How the project is attached.
    Project,
    /// `approvals:`.
    Approvals,
    /// The permission mode.
    Mode,
    /// The session is tainted and the call would write a prompt source.
    Taint,
    /// The tool itself asks about every call.
    Tool,
    /// A grant.
    Grant,
    /// A path that cannot be resolved or named.
    Path,
}

impl RuleId {
    /// Returns the id of the rule of `source` with this content.
    pub fn new(source: RuleSource, content: impl fmt::Display) -> Self {
        Self(format!("{}:{content}", source.as_str()))
    }

    /// Returns the id of the rule of `source` whose content must not be shown, because it may name
    /// a hidden file.
    pub fn hidden(source: RuleSource, content: impl fmt::Display) -> Self {
        let digest = crate::args_hash(&serde_json::Value::from(content.to_string()));
        Self::new(source, format_args!("#{digest}"))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RuleSource {
    /// Returns the name that begins the ids of its rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlanMode => "plan_mode",
            Self::Ceiling => "ceiling",
            Self::ToolLists => "tools",
            Self::Profile => "profile",
            Self::Permissions => "permissions",
            Self::Protected => "protected",
            Self::Commands => "commands",
            Self::CommandReads => "commands.reads",
            Self::Project => "project",
            Self::Approvals => "approvals",
            Self::Mode => "mode",
            Self::Taint => "taint",
            Self::Tool => "tool",
            Self::Grant => "grant",
            Self::Path => "path",
        }
    }
}

impl Verdict {
    /// Returns a verdict that allows by `rule`.
    pub fn allow(rule: RuleId, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Allow, rule, reason)
    }

    /// Returns a verdict that asks because of `rule`.
    pub fn ask(rule: RuleId, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Ask, rule, reason)
    }

    /// Returns a verdict that denies by `rule`.
    pub fn deny(rule: RuleId, reason: impl Into<String>) -> Self {
        Self::new(VerdictKind::Deny, rule, reason)
    }

    /// Returns a verdict of `kind` by `rule`.
    pub fn new(kind: VerdictKind, rule: RuleId, reason: impl Into<String>) -> Self {
        Self {
            kind,
            rules: vec![rule],
            reason: reason.into(),
        }
    }

    /// Returns whether the call may run without asking.
    pub fn is_allowed(&self) -> bool {
        self.kind == VerdictKind::Allow
    }
}
