//! The definition of one agent among those of a workspace: front matter and a prompt.

use crate::FixedText;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stead_model::ModelSettings;

/// What an agent may be used for.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    /// As the main agent of a session, or to switch to.
    #[default]
    Primary,
    /// To delegate to.
    Subagent,
    /// As both.
    All,
}

impl AgentMode {
    /// Whether it can be the main agent of a session.
    pub fn is_primary(self) -> bool {
        matches!(self, Self::Primary | Self::All)
    }

    /// Whether it can be delegated to.
    pub fn is_subagent(self) -> bool {
        matches!(self, Self::Subagent | Self::All)
    }
}

/// An agent of a workspace, whichever layout defines it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSpec {
    /// Its name: that of its file.
    pub name: String,
    /// Its file, from the root of the workspace.
    pub source: String,
    /// What it may be used for.
    pub mode: AgentMode,
    /// What it is for, in a line.
    pub description: Option<String>,
    /// The model it asks; none = that of the workspace, or of the agent that delegates to it.
    pub model: Option<ModelSettings>,
    /// What the model is reminded of after a switch to it.
    pub system_reminder: Option<String>,
    /// Tools it may use, as written; none = no restriction.
    pub tools: Option<Vec<String>>,
    /// Tools it may not use, as written.
    pub denied_tools: Vec<String>,
    /// Skills it may use; none = all.
    pub skills: Option<Vec<String>>,
    /// Actions it may use; none = all.
    pub actions: Option<Vec<String>>,
    /// Tool servers it may use; none = all.
    pub servers: Option<Vec<String>>,
    /// Agents it may switch to.
    pub switch_targets: Vec<String>,
    /// Agents it may delegate to; none = every subagent.
    pub subagents: Option<Vec<String>>,
    /// Bounds of its runs, where they differ from the workspace's.
    pub policy: SpecPolicy,
    /// Whether it is left out of what the model is told.
    pub hidden: bool,
    /// Whether what it works on is its own or its parent's.
    pub isolation: SubagentIsolation,
    /// Its prompt.
    pub prompt: String,
    /// What is said beside it or in its place, where the layout composes prompts; empty = its
    /// prompt alone.
    pub texts: Vec<FixedText>,
    /// Whether it works in the background unless told otherwise.
    pub background: bool,
    /// What its result must look like: a JSON schema.
    pub result_schema: Option<Value>,
}

/// As what an agent of a workspace acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentRole {
    /// As the main agent of a session.
    Main,
    /// For another agent, which hands it a task.
    Child,
}

/// Bounds of an agent's runs; those left out are the workspace's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpecPolicy {
    /// Model calls at most.
    pub max_steps: Option<u32>,
    /// Seconds for a whole run.
    pub run_timeout_seconds: Option<u64>,
    /// Seconds for one tool call.
    pub tool_timeout_seconds: Option<u64>,
    /// Whether calls of one step may run side by side.
    pub parallel_tool_calls: Option<bool>,
    /// How many subagents may run at once.
    pub max_concurrent_subagents: Option<u32>,
}

/// Whose files a subagent works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SubagentIsolation {
    /// Its own.
    #[default]
    Isolated,
    /// Its parent's.
    Shared,
    /// A workspace of its own that lies at this path.
    Folder(String),
}
