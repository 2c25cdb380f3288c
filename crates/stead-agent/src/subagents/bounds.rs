//! The bounds of subagents: what they may do, and where their work comes from.
//!
//! Effects: none.

use stead_core::{
    ChildFiles, PermissionCeiling, PlanStage, SessionChange, SessionId, SetEntry, SubagentOrigin,
};
use stead_gate::SessionPermissions;
use stead_workspace::{AgentSpec, SubagentIsolation};

/// The bounds of agents that work for a session, as subagents or for its hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationBounds {
    /// The session that delegates.
    pub parent: SessionId,
    /// The number of delegations through which its own work came; 0 for a session that a person
    /// uses.
    pub depth: u32,
    /// The restrictions of the session and of all its parents. The first mode is that of the
    /// session.
    pub ceiling: PermissionCeiling,
    /// The session whose file tree is used.
    pub tree: SessionId,
}

/// The names by which a session knows a task that it delegates.
pub(crate) struct TaskIdentity {
    pub(crate) task: String,
    pub(crate) agent: String,
    pub(crate) label: Option<String>,
}

impl DelegationBounds {
    /// Creates the bounds for work that the session `parent` delegates.
    pub(crate) fn new(
        parent: SessionId,
        permissions: &SessionPermissions,
        depth: u32,
        tree: SessionId,
    ) -> Self {
        Self {
            parent,
            depth,
            ceiling: permissions.ceiling_for_subagents(),
            tree,
        }
    }

    /// Returns the bounds after these settings of the session were changed.
    pub(crate) fn with_settings(mut self, set: &[SetEntry]) -> Self {
        for SetEntry { change, .. } in set {
            match change {
                SessionChange::Mode { to, .. } => {
                    self.ceiling.modes.splice(0..1, [*to]).for_each(drop)
                }
                SessionChange::Plan {
                    plan: Some(PlanStage::Making { file }),
                } => self.ceiling.planning = Some(file.clone()),
                // Plan mode ends with the run, which is still open.
                SessionChange::Plan { .. }
                | SessionChange::Todos { .. }
                | SessionChange::Agent { .. }
                | SessionChange::Ceiling(_)
                | SessionChange::Model { .. }
                | SessionChange::Trust
                | SessionChange::Title { .. } => {}
            }
        }
        self
    }

    /// Returns the origin that is recorded in the new session of a subagent.
    pub(crate) fn into_spawned(self, task: TaskIdentity, files: ChildFiles) -> SubagentOrigin {
        let Self {
            parent: by,
            depth,
            ceiling,
            tree,
        } = self;
        let TaskIdentity { task, agent, label } = task;
        SubagentOrigin {
            by,
            task,
            agent,
            label,
            depth: depth + 1,
            ceiling,
            files,
            tree,
        }
    }

    /// Returns the setting that renews the ceiling of an existing session of a subagent.
    pub(crate) fn into_ceiling_setting(self) -> SetEntry {
        SetEntry {
            change: SessionChange::Ceiling(self.ceiling),
            by: self.parent.to_string(),
        }
    }
}

/// Returns which file tree a subagent works on.
pub(crate) fn child_files(spec: &AgentSpec) -> Result<ChildFiles, String> {
    match &spec.isolation {
        SubagentIsolation::Isolated => Ok(ChildFiles::Isolated),
        SubagentIsolation::Shared => Ok(ChildFiles::Shared),
        SubagentIsolation::Folder(path) => Err(format!(
            "{} has a workspace of its own at {path}, which is not supported yet",
            spec.name
        )),
    }
}
