//! The definition of one agent of a workspace: front matter and a prompt.
//!
//! Effects: none.

use crate::FixedText;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stead_model::ModelSettings;
use stead_vfs::CheckedRule;

/// The uses that an agent allows.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    /// The agent can be the main agent of a session, and can be switched to.
    #[default]
    Primary,
    /// The agent can be delegated to.
    Subagent,
    /// Both.
    All,
}

impl AgentMode {
    /// Whether the agent can be the main agent of a session.
    pub fn is_primary(self) -> bool {
        matches!(self, Self::Primary | Self::All)
    }

    /// Whether the agent can be delegated to.
    pub fn is_subagent(self) -> bool {
        matches!(self, Self::Subagent | Self::All)
    }
}

/// An agent of a workspace, the same for every layout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSpec {
    /// The agent's name, which is the name of its file.
    pub name: String,
    /// The agent's file, from the root of the workspace.
    pub source: String,
    /// The uses that the agent allows.
    pub mode: AgentMode,
    /// A one-line description of the agent's purpose.
    pub description: Option<String>,
    /// The agent's model; none = the model of the workspace, or of the agent that delegates to it.
    pub model: Option<ModelSettings>,
    /// The reminder that the model is sent after a switch to the agent.
    pub system_reminder: Option<String>,
    /// The tools that the agent may use, as written; none = no restriction.
    pub tools: Option<Vec<String>>,
    /// The tools that the agent may not use, as written.
    pub denied_tools: Vec<String>,
    /// The skills that the agent may use; none = all.
    pub skills: Option<Vec<String>>,
    /// The actions that the agent may use; none = all.
    pub actions: Option<Vec<String>>,
    /// The tool servers that the agent may use; none = all.
    pub servers: Option<Vec<String>>,
    /// The agents that the agent may switch to.
    pub switch_targets: Vec<String>,
    /// The agents that the agent may delegate to; none = every subagent.
    pub subagents: Option<Vec<String>>,
    /// The limits of the agent's runs, where they differ from the workspace's.
    pub policy: SpecPolicy,
    /// Whether the agent is hidden from the model.
    pub hidden: bool,
    /// Whether the agent works on its own files or on its parent's.
    pub isolation: SubagentIsolation,
    /// Rules for reading and writing files, which can only narrow those of the workspace. An agent
    /// that has any cannot hand work to others, whom they would not bind.
    pub permissions: Vec<CheckedRule>,
    /// The agent's prompt.
    pub prompt: String,
    /// Further prompt texts, for layouts that compose prompts; empty = the prompt alone.
    pub texts: Vec<FixedText>,
    /// Whether the agent's tasks run in the background by default.
    pub background: bool,
    /// The JSON schema of the agent's result.
    pub result_schema: Option<Value>,
}

/// The role in which an agent of a workspace acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentRole {
    /// The main agent of a session.
    Main,
    /// A subagent that works on a task of another agent.
    Child,
}

/// The limits of an agent's runs. The workspace's limits apply where a field is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpecPolicy {
    /// The maximum number of model calls.
    pub max_steps: Option<u32>,
    /// The time limit of a run, in seconds.
    pub run_timeout_seconds: Option<u64>,
    /// The time limit of a tool call, in seconds.
    pub tool_timeout_seconds: Option<u64>,
    /// Whether the calls of one step may run in parallel.
    pub parallel_tool_calls: Option<bool>,
    /// The maximum number of subagents that run at the same time.
    pub max_concurrent_subagents: Option<u32>,
}

/// The files that a subagent works on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SubagentIsolation {
    /// A copy of its own.
    #[default]
    Isolated,
    /// The files of its parent.
    Shared,
    /// A workspace of its own at this path.
    Folder(String),
}
