//! Origins of sessions that do not start empty.
//!
//! Effects: none.

use crate::{Fork, PermissionMode, SessionId, SessionModel, TaintOrigins};
use serde::{Deserialize, Serialize};

/// What the first entry of a new session records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSession {
    /// The origin, if the session does not start empty.
    pub origin: Option<SessionOrigin>,
    /// The model that it runs with.
    pub model: Option<SessionModel>,
}

impl NewSession {
    /// Returns a session that begins as a fork of another.
    pub fn forked(fork: Fork, model: Option<SessionModel>) -> Self {
        Self {
            origin: Some(SessionOrigin::Fork(fork)),
            model,
        }
    }
}

/// The origin of a session that does not start empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A fork of another session.
    Fork(Fork),
    /// A task from another session.
    Spawned(Box<SubagentOrigin>),
}

/// The origin of a subagent's session, with its restrictions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentOrigin {
    /// The parent session.
    pub by: SessionId,
    /// The task's id in the parent session.
    pub task: String,
    /// The agent that works on it.
    pub agent: String,
    /// The label that the parent gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The depth: 1 for a child of a person's session.
    pub depth: u32,
    /// The restrictions that it inherits.
    #[serde(flatten)]
    pub ceiling: PermissionCeiling,
    /// The files that it works on.
    #[serde(default)]
    pub files: ChildFiles,
    /// The session whose files these are, at the top of the tree.
    pub tree: SessionId,
}

/// The restrictions that a subagent inherits from its parent, in addition to its own rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionCeiling {
    /// The permission modes of its ancestors; the strictest verdict applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PermissionMode>,
    /// The file of a plan that is being made: until a person agrees to it, nothing else may be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<String>,
    /// The tools that are denied to its ancestors, as named in their lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Whether an ancestor has taken in untrusted content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// Where that content comes from, as far as it is known.
    #[serde(default, skip_serializing_if = "TaintOrigins::is_empty")]
    pub taint: TaintOrigins,
}

impl PermissionCeiling {
    /// Adds the restrictions of `other`.
    pub fn tighten(&mut self, other: &Self) {
        for mode in &other.modes {
            if !self.modes.contains(mode) {
                self.modes.push(*mode);
            }
        }
        for tool in &other.denied {
            if !self.denied.contains(tool) {
                self.denied.push(tool.clone());
            }
        }
        self.planning = self.planning.take().or_else(|| other.planning.clone());
        self.tainted |= other.tainted;
        self.taint.add_all(&other.taint);
    }
}

/// The files that a subagent works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildFiles {
    /// Those of its parent.
    #[default]
    Shared,
    /// Those of its parent, but changes stay its own.
    Isolated,
}
