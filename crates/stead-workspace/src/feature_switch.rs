//! Parts of the harness that can be switched off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Parts of the harness that can be switched off.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FeatureSwitch {
    /// What is loaded from the workspace into the prompt.
    WorkspaceContext,
    /// Extracting and consolidating memories on its own.
    MemoryHooks,
    /// The tools to search and save memories, and those to look into earlier sessions.
    MemoryTools,
    /// Subagents, their list and the tools to use them.
    Subagents,
    /// Merging skills anew each turn; without it they stay as they were when the agent was opened.
    DynamicSkills,
    /// Reading `tools.json`.
    ToolsConfig,
    /// Keeping sessions; without it they end with the process.
    SessionPersistence,
    /// The file tools.
    FilesystemTools,
    /// The tool to run commands.
    Shell,
    /// Making room when the context is full.
    Compaction,
    /// Moving long results and messages, and media, to files.
    Offload,
    /// Attaching files that an input names as `@path`.
    AtPaths,
    /// The list of things to do, and the tool that keeps it.
    Todos,
    /// The tools for tasks that outlive conversations.
    Tasks,
    /// The tools of plan mode.
    PlanMode,
}

impl FeatureSwitch {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::WorkspaceContext,
        Self::MemoryHooks,
        Self::MemoryTools,
        Self::Subagents,
        Self::DynamicSkills,
        Self::ToolsConfig,
        Self::SessionPersistence,
        Self::FilesystemTools,
        Self::Shell,
        Self::Compaction,
        Self::Offload,
        Self::AtPaths,
        Self::Todos,
        Self::Tasks,
        Self::PlanMode,
    ];
}

/// What is switched off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DisabledFeatures(pub BTreeSet<FeatureSwitch>);

impl DisabledFeatures {
    /// Whether `switch` is among them.
    pub fn contains(&self, switch: FeatureSwitch) -> bool {
        self.0.contains(&switch)
    }
}
