//! What binds whoever works for a session, whichever way the work came to them.

use crate::Session;
use crate::gate::Terms;
use stead_core::{Ceiling, Change, ChildFiles, PlanStage, SessionId, Set, Spawned};
use stead_workspace::{AgentSpec, Isolation};

/// What binds whoever works for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The session.
    pub by: SessionId,
    /// Through how many hands its own work came.
    pub depth: u32,
    /// What binds from there and from above it; the first mode is its own.
    pub ceiling: Ceiling,
    /// The session whose files it works on.
    pub tree: SessionId,
}

/// A piece of work, as those know it who handed it over.
pub(crate) struct Named {
    pub(crate) task: String,
    pub(crate) agent: String,
    pub(crate) label: Option<String>,
}

impl Bound {
    pub(crate) fn new(by: SessionId, terms: &Terms, depth: u32, tree: SessionId) -> Self {
        Self {
            by,
            depth,
            ceiling: terms.below(),
            tree,
        }
    }

    /// The same once this is set in the session.
    pub(crate) fn setting(mut self, set: &[Set]) -> Self {
        for Set { change, .. } in set {
            match change {
                Change::Mode { to } => self.ceiling.modes.splice(0..1, [*to]).for_each(drop),
                Change::Plan {
                    plan: Some(PlanStage::Making { file }),
                } => self.ceiling.planning = Some(file.clone()),
                // What ends with the run has not ended yet.
                Change::Plan { .. }
                | Change::Todos { .. }
                | Change::Agent { .. }
                | Change::Ceiling(_) => {}
            }
        }
        self
    }

    /// What the session of one who works for it begins with.
    pub(crate) fn spawned(self, named: Named, files: ChildFiles) -> Spawned {
        let Self {
            by,
            depth,
            ceiling,
            tree,
        } = self;
        let Named { task, agent, label } = named;
        Spawned {
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
    pub(crate) fn renewed(self) -> Set {
        Set {
            change: Change::Ceiling(self.ceiling),
            by: self.by.to_string(),
        }
    }
}

/// Whose files an agent works on that is handed work.
pub(crate) fn files_of(spec: &AgentSpec) -> Result<ChildFiles, String> {
    match &spec.isolation {
        Isolation::Isolated => Ok(ChildFiles::Isolated),
        Isolation::Shared => Ok(ChildFiles::Shared),
        Isolation::At(path) => Err(format!(
            "{} has a workspace of its own at {path}, which is not supported yet",
            spec.name
        )),
    }
}

impl Session {
    /// What binds whoever works for it.
    pub(crate) fn bound(&self) -> Bound {
        let spawned = self.state.spawned.as_ref();
        let depth = spawned.map_or(0, |spawned| spawned.depth);
        let tree = spawned.map_or_else(|| self.id.clone(), |spawned| spawned.tree.clone());
        Bound::new(self.id.clone(), &self.terms(), depth, tree)
    }
}
