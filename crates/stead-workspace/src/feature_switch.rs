//! The parts of the harness that can be switched off.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A part of the harness that can be switched off.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FeatureSwitch {
    /// The prompt sections that are loaded from the workspace.
    WorkspaceContext,
    /// The automatic extraction and consolidation of facts.
    MemoryHooks,
    /// The tools that search and save memories, and those that look into earlier sessions.
    MemoryTools,
    /// Subagents: their list and the tools that use them.
    Subagents,
    /// Loading skills again for each turn; without it, skills stay as they were when the agent was
    /// opened.
    DynamicSkills,
    /// Reading `tools.json`.
    ToolsConfig,
    /// Storing sessions; without it, they end with the process.
    SessionPersistence,
    /// The file tools.
    FilesystemTools,
    /// The tool that runs commands.
    Shell,
    /// Compaction of a full context.
    Compaction,
    /// Moving long results, long messages and media to files.
    Offload,
    /// Attaching files that an input names as `@path`.
    AtPaths,
    /// The todo list and its tool.
    Todos,
    /// The tools for tasks that outlive sessions.
    Tasks,
    /// The tools of plan mode.
    PlanMode,
}

impl FeatureSwitch {
    /// All switches.
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

/// The set of switches that are off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DisabledFeatures(pub BTreeSet<FeatureSwitch>);

impl DisabledFeatures {
    /// Whether `switch` is off.
    pub fn contains(&self, switch: FeatureSwitch) -> bool {
        self.0.contains(&switch)
    }
}
