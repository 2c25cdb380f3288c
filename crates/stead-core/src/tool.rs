//! What a tool declares about itself.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A tool as the model and the gate see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The canonical, snake_case name.
    pub name: String,
    /// Other names under which it may be called or listed.
    pub aliases: Vec<String>,
    /// What the model is told about it.
    pub description: String,
    /// JSON schema of the arguments. Shared: a thousand sessions use one copy.
    pub parameters: Arc<Value>,
    /// What a call can do.
    pub risk: Risk,
}

/// What a call of a tool can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Risk {
    /// The strongest thing it can do.
    pub effect: ToolEffect,
    /// Whether it may run beside other calls of the same step.
    pub parallel_safe: bool,
    /// Whether running it twice is the same as once, so that an interrupted call may be run again.
    pub repeatable: bool,
}

/// The strongest thing a call can do, weakest first.
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
pub enum ToolEffect {
    /// Changes nothing.
    Reads,
    /// Changes files of the workspace.
    Writes,
    /// Reaches out to other machines.
    Network,
    /// Runs commands.
    Executes,
}

impl Risk {
    /// A tool that only reads: parallel, repeatable.
    pub const READS: Self = Self {
        effect: ToolEffect::Reads,
        parallel_safe: true,
        repeatable: true,
    };
    /// A tool that changes files: one at a time, never repeated on its own.
    pub const WRITES: Self = Self {
        effect: ToolEffect::Writes,
        parallel_safe: false,
        repeatable: false,
    };
}

/// One path that a call would touch, for the gate. The text is as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAccess {
    /// The path argument.
    pub path: String,
    /// The kind of access.
    pub kind: AccessKind,
    /// The extent of the access.
    pub scope: PathScope,
}

/// How much of a path a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathScope {
    /// The target of the path, with links followed.
    Content,
    /// The path itself without following a link, and everything below it.
    Tree,
    /// The path itself, and below it every name that is now below `from`: the destination of a
    /// move.
    Arrival {
        /// The source of the move.
        from: String,
    },
}

/// The kind of access to a path.
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
pub enum AccessKind {
    /// Its content, or names below it, are read.
    Read,
    /// It is created, changed, moved or removed.
    Write,
}

/// Returns a short hash of arguments, independent of the order of keys. Intents and approvals are
/// bound to it.
pub fn args_hash(args: &Value) -> String {
    // serde_json's map is sorted by key, so its text is canonical.
    let digest = Sha256::digest(args.to_string().as_bytes());
    digest
        .iter()
        .take(8)
        .fold(String::with_capacity(16), |mut hex, byte| {
            use std::fmt::Write;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
