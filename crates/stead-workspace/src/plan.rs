//! The `plan:` settings of agent.yaml: plan mode.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_vfs::VPath;

/// The settings of plan mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanSettings {
    /// The folder of plans (default `plans`).
    pub directory: String,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            directory: "plans".to_owned(),
        }
    }
}

impl PlanSettings {
    /// Returns the path of the plan.
    pub fn file(&self) -> VPath {
        let folder = VPath::parse(&self.directory).unwrap_or(VPath::root());
        folder.join("PLAN.md").unwrap_or(folder)
    }

    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        let wrong = VPath::parse(&self.directory).err()?;
        Some(("plan.directory", format!("plan.directory: {wrong}")))
    }
}
