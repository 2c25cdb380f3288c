//! What sessions begin with that do not begin empty.

use crate::{Fork, PermissionMode, SessionId};
use serde::{Deserialize, Serialize};

/// What a session begins with that does not begin empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// The beginning of another session.
    Fork(Fork),
    /// Work that another session hands over.
    Spawned(Box<Spawned>),
}

/// Who handed a subagent its work, and what binds it for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
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
    /// Permission modes of all above it; the strictest verdict of all holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<PermissionMode>,
    /// The plan that is being made above it: until then nothing may be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planning: Option<String>,
    /// Whose files it works on.
    #[serde(default)]
    pub files: ChildFiles,
    /// The session whose files these are: that of a person.
    pub tree: SessionId,
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
