//! The permissions of a session, as the gate is told them.
//!
//! Effects: the local disk (reads), the store (reads).

use super::Session;
use crate::admission::{CallGate, GateContext};
use crate::commands::MachineView;
use crate::{AgentError, DelegationBounds};
use stead_core::{PermissionCeiling, PermissionMode, PlanStage, SessionState};
use stead_gate::{Grant, SessionPermissions, SessionTaint};
use stead_tools::SessionView;
use stead_vfs::VPath;

impl Session {
    /// The permission mode. In a folder that is not trusted, it is `explore` whatever the session
    /// says. A mode wider than the agent's own counts only if this person chose it.
    pub fn permission_mode(&self) -> PermissionMode {
        if self.agent().workspace().trust.is_restricted() {
            return PermissionMode::Explore;
        }
        let own = self.agent().workspace().config().permission_mode;
        match self.unsealed_mode() {
            Some(_) => own,
            None => self.state().mode.unwrap_or(own),
        }
    }

    /// The permission mode that the journal names, if it is wider than the agent's own and this
    /// person did not choose it.
    pub(crate) fn unsealed_mode(&self) -> Option<PermissionMode> {
        let own = self.agent().workspace().config().permission_mode;
        let seal = self.state().mode_seal.as_deref();
        let mode = self.state().mode.filter(|mode| mode.is_wider_than(own))?;
        (!self.seals().mode_counts(mode, seal)).then_some(mode)
    }

    /// The restrictions of the session: those it inherits, and what it has taken in.
    fn current_ceiling(&self) -> PermissionCeiling {
        let mut ceiling = self.state().ceiling().cloned().unwrap_or_default();
        if let Some(PlanStage::Making { file }) = &self.state().plan {
            ceiling.planning = Some(file.clone());
        }
        if self.state().tainted.is_some() {
            ceiling.tainted = true;
            ceiling.taint.add_all(&self.state().taint_origins());
        }
        let of_parent = self
            .parent_subagents
            .as_ref()
            .and_then(|parent| parent.current_permissions());
        if let Some(of_parent) = of_parent {
            ceiling.tighten(&of_parent.ceiling_for_subagents());
        }
        ceiling
    }

    /// The permissions of the session's calls, besides the rules of the acting agent.
    pub(crate) fn permissions(&self) -> SessionPermissions {
        SessionPermissions {
            mode: self.permission_mode(),
            ceiling: self.current_ceiling(),
            grants: self.grants.clone(),
            denied_tools: CallGate::new(self.agent()).denied_tools(),
        }
    }

    /// The facts about the conversation that the gate needs.
    pub(crate) fn gate_context(&self) -> GateContext {
        let permissions = self.permissions();
        GateContext {
            taint: self.taint_under(&permissions.ceiling),
            view: session_view(self.state()),
            machine: self.machine_view(),
            file_versions: self.tool_memory().0,
            permissions,
        }
    }

    /// Where the commands of the session find the workspace.
    pub(crate) fn machine_view(&self) -> MachineView {
        let spawned = self.state().spawned.as_ref();
        let tree = spawned.map_or(&self.id, |spawned| &spawned.tree);
        MachineView::new(&**self.agent().place(), &self.owner, &self.id, tree)
    }

    /// What the session has taken in, or a parent of it, if it is tainted.
    pub(crate) fn taint(&self) -> Option<SessionTaint> {
        self.taint_under(&self.current_ceiling())
    }

    fn taint_under(&self, ceiling: &PermissionCeiling) -> Option<SessionTaint> {
        ceiling.tainted.then(|| SessionTaint {
            // A subagent that was tainted from the beginning has been so since its first entry.
            seq: self.state().tainted.unwrap_or(1),
            origins: ceiling.taint.clone(),
        })
    }

    /// The bounds of work that this session delegates.
    pub(crate) fn delegation_bounds(&self) -> DelegationBounds {
        let spawned = self.state().spawned.as_ref();
        let depth = spawned.map_or(0, |spawned| spawned.depth);
        let tree = spawned.map_or_else(|| self.id.clone(), |spawned| spawned.tree.clone());
        DelegationBounds::new(self.id.clone(), &self.permissions(), depth, tree)
    }

    /// Reads the owner's grants. Those in a folder that is not trusted have no
    /// effect.
    pub(crate) async fn load_grants(&mut self) -> Result<(), AgentError> {
        self.grants = match self.agent().workspace().trust.is_restricted() {
            true => Vec::new(),
            false => self.agent().grants(&self.owner).list().await?,
        };
        // Other processes may have marked files since the last run.
        self.tainted_files().forget();
        Ok(())
    }

    /// Adds grants that were just given.
    pub(crate) fn add_grants(&mut self, grants: &[Grant]) {
        self.grants.extend_from_slice(grants);
    }

    /// Makes the files of running tools read-only if the session is in plan mode, and writable
    /// otherwise.
    pub(super) fn update_freeze(&self) {
        let file = self.permissions().ceiling.planning;
        // A plan file with an invalid path can be written by nobody.
        self.freeze
            .set(file.map(|file| VPath::parse(&file).unwrap_or(VPath::root())));
    }

    /// Tells running subagents the current permissions, which bind them at once.
    pub(crate) fn update_subagent_permissions(&self) {
        self.subagents
            .update_permissions(self.agent().clone(), self.permissions());
    }
}

/// Returns the part of the state that tools see.
pub(crate) fn session_view(state: &SessionState) -> SessionView {
    SessionView {
        todos: state.todos.clone(),
        plan: state.plan.clone(),
    }
}
