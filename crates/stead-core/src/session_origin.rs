//! What sessions begin with that do not begin empty.

use crate::{Fork, PermissionMode, SessionId};
use serde::{Deserialize, Serialize};

/// What a session begins with that does not begin empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionOrigin {
    /// The beginning of another session.
    Fork(Fork),
    /// Work that another session hands over.
    Spawned(Box<SubagentOrigin>),
}

/// Who handed a subagent its work, and what binds it for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentOrigin {
    /// The session that did.
    pub by: SessionId,
    /// The task, as it is known there.
    pub task: String,
    /// The agent of the workspace that works.
    pub agent: String,
    /// What the one who handed it over calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How many hands it went through: 1 for a child of a person's session.
    pub depth: u32,
    /// What binds it from above.
    #[serde(flatten)]
    pub ceiling: PermissionCeiling,
    /// Whose files it works on.
    #[serde(default)]
    pub files: ChildFiles,
    /// The session whose files these are: that of a person.
    pub tree: SessionId,
}

/// What binds a session from above, whatever its own rules say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionCeiling {
    /// The permission modes of those it works for; the strictest verdict of all holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PermissionMode>,
    /// The file of a plan that is being made: until it is agreed to, nothing else may be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<String>,
    /// Tools that are denied to those it works for, as their lists name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Whether words that nobody here vouches for were taken in above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

impl PermissionCeiling {
    /// What binds from another side binds as well.
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
    }
}

/// Whose files a subagent works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildFiles {
    /// Its parent's.
    #[default]
    Shared,
    /// Its parent's as they are, and its changes are its own.
    Isolated,
}
