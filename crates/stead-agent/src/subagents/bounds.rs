//! What binds whoever works for a session, whichever way the work came to them.

use crate::Session;
use stead_core::{
    ChildFiles, PermissionCeiling, PlanStage, SessionChange, SessionId, SetEntry, SubagentOrigin,
};
use stead_gate::SessionPermissions;
use stead_workspace::{AgentSpec, SubagentIsolation};

/// What binds whoever works for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationBounds {
    /// The session.
    pub parent: SessionId,
    /// Through how many hands its own work came.
    pub depth: u32,
    /// What binds from there and from above it; the first mode is its own.
    pub ceiling: PermissionCeiling,
    /// The session whose files it works on.
    pub tree: SessionId,
}

/// A piece of work, as those know it who handed it over.
pub(crate) struct TaskIdentity {
    pub(crate) task: String,
    pub(crate) agent: String,
    pub(crate) label: Option<String>,
}

impl DelegationBounds {
    pub(crate) fn new(
        by: SessionId,
        terms: &SessionPermissions,
        depth: u32,
        tree: SessionId,
    ) -> Self {
        Self {
            parent: by,
            depth,
            ceiling: terms.ceiling_for_subagents(),
            tree,
        }
    }

    /// The same once this is set in the session.
    pub(crate) fn with_settings(mut self, set: &[SetEntry]) -> Self {
        for SetEntry { change, .. } in set {
            match change {
                SessionChange::Mode { to } => self.ceiling.modes.splice(0..1, [*to]).for_each(drop),
                SessionChange::Plan {
                    plan: Some(PlanStage::Making { file }),
                } => self.ceiling.planning = Some(file.clone()),
                // What ends with the run has not ended yet.
                SessionChange::Plan { .. }
                | SessionChange::Todos { .. }
                | SessionChange::Agent { .. }
                | SessionChange::Ceiling(_) => {}
            }
        }
        self
    }

    /// What the session of one who works for it begins with.
    pub(crate) fn into_spawned(self, named: TaskIdentity, files: ChildFiles) -> SubagentOrigin {
        let Self {
            parent: by,
            depth,
            ceiling,
            tree,
        } = self;
        let TaskIdentity { task, agent, label } = named;
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

    /// What the session of one who worked for it before goes on with.
    pub(crate) fn into_ceiling_setting(self) -> SetEntry {
        SetEntry {
            change: SessionChange::Ceiling(self.ceiling),
            by: self.parent.to_string(),
        }
    }
}

/// Whose files an agent works on that is handed work.
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

impl Session {
    /// What binds whoever works for it.
    pub(crate) fn delegation_bounds(&self) -> DelegationBounds {
        let spawned = self.state.spawned.as_ref();
        let depth = spawned.map_or(0, |spawned| spawned.depth);
        let tree = spawned.map_or_else(|| self.id.clone(), |spawned| spawned.tree.clone());
        DelegationBounds::new(self.id.clone(), &self.permissions(), depth, tree)
    }
}
