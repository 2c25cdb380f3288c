//! The file tree of a session.
//!
//! Effects: the clock.

use super::Session;
use super::acting_agent::ActingAgent;
use std::sync::Arc;
use stead_core::{ChildFiles, RunId, SessionId, SubagentOrigin};
use stead_store::{FencingToken, RunKey};
use stead_vfs::{Frozen, Guarded, Overlay, Recorded, Scoped, Unlisted, VPath, Vfs};

/// The files of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunFiles {
    /// The files of the session, as the harness itself uses them.
    pub(crate) unguarded: Arc<dyn Vfs>,
    /// The same for tools: rules are enforced, running state is not listed, and nothing can be written
    /// in plan mode.
    pub(crate) guarded: Arc<dyn Vfs>,
}

impl RunFiles {
    /// Returns `files` as the files of `session` during `run`. Without a run, changes cannot be
    /// undone.
    ///
    /// A write of a tool passes plan mode ([`Frozen`]), then the file rules ([`Guarded`]), and is
    /// recorded for undo only then ([`Recorded`]). Only listings and searches go through
    /// [`Unlisted`], which leaves out running state.
    pub(crate) fn new(session: &Session, files: Arc<dyn Vfs>, run: Option<&RunId>) -> Self {
        let mut tools = files.clone();
        if let Some(run) = run {
            let key = RunKey {
                session: session.id.clone(),
                run: run.clone(),
            };
            let changes = session.agent().place().changes(&session.owner);
            tools = Arc::new(Recorded::new(tools, changes, key));
        }
        let workspace = session.agent().workspace();
        let state = workspace.definition.running_state(&session.owner);
        let listed = Unlisted::new(tools.clone(), state);
        let guarded =
            Guarded::new(tools, workspace.rules.clone()).with_listings_of(Arc::new(listed));
        Self {
            unguarded: files,
            guarded: Arc::new(Frozen::new(Arc::new(guarded), session.freeze.clone())),
        }
    }
}

impl Session {
    /// The session's files.
    pub(crate) fn files(&self, fence: Option<&FencingToken>) -> Arc<dyn Vfs> {
        match self.state().spawned.as_ref().or(self.spawned.as_ref()) {
            None => self.agent().place().files(&self.owner, &self.id, fence),
            Some(origin) => self.subagent_files(origin, fence),
        }
    }

    /// Returns the files of a subagent's session: those of its parent. An isolated subagent keeps
    /// its changes in a folder of its own.
    pub(super) fn subagent_files(
        &self,
        origin: &SubagentOrigin,
        fence: Option<&FencingToken>,
    ) -> Arc<dyn Vfs> {
        let files = self.agent().place().files(&self.owner, &origin.tree, fence);
        match origin.files {
            ChildFiles::Shared => files,
            ChildFiles::Isolated => {
                let changes = Scoped::new(files.clone(), changes_folder(&self.agents, &self.id));
                Arc::new(Overlay::new(
                    Arc::new(changes),
                    Arc::new(Frozen::read_only(files)),
                ))
            }
        }
    }
}

/// Returns the folder for the changes of an isolated subagent.
fn changes_folder(agents: &ActingAgent, session: &SessionId) -> VPath {
    let definition = &agents.workspace().workspace().definition;
    let path = format!(
        "agents/{}/subagents/{session}/files",
        definition.config.agent_id()
    );
    definition
        .paths
        .runtime
        .join(&path)
        .unwrap_or(VPath::root())
}
