//! Sessions: each is one conversation of an agent.
//!
//! A [`Session`] joins the folded journal ([`fold`]), the agent that acts ([`acting_agent`]) and the
//! permissions of the conversation ([`permissions`]). Between runs it holds no lock. Whatever
//! changes the journal opens it first, as a [`SessionWriter`]; the `run` module carries out runs.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

mod acting_agent;
mod files;
mod fold;
mod input;
pub use input::PreparedInput;
mod permissions;
mod rewind;
mod settings;
mod writer;

pub(crate) use files::RunFiles;
pub(crate) use permissions::session_view;
pub use rewind::RewindPoint;
pub(crate) use settings::{plan_mode_text, with_reminders};
pub(crate) use writer::{IfMissing, SessionWriter};

use crate::model_facts::{ASK_ENDPOINT_ABOVE_TOKENS, UNKNOWN_WINDOW_TOKENS};
use crate::run::{self, RunTrigger};
use crate::session_models::ModelChoice;
use crate::taint::TaintedFiles;
use crate::{Agent, AgentError, RunOptions, RunReport, SessionSeals, Subagents};
use acting_agent::ActingAgent;
use fold::SessionFold;
use std::sync::Arc;
use stead_core::{
    Block, JournalLine, Owner, Redactor, SessionId, SessionModel, SessionState, SpendAmount,
    SubagentOrigin,
};
use stead_gate::Grant;
use stead_place::OwnerState;
use stead_store::{FencingToken, Holder, LockWait, Sessions, StoreError};
use stead_tools::{ActiveSkills, FileVersions};
use stead_vfs::Freeze;

/// One conversation of an agent. Owned by one task; between runs it holds no file and no lock.
#[derive(Debug)]
pub struct Session {
    agents: ActingAgent,
    owner: Owner,
    id: SessionId,
    /// Where the journals of the owner's sessions lie.
    journals: Arc<dyn Sessions>,
    fold: SessionFold,
    /// The owner's grants, as of the start of the run.
    grants: Vec<Grant>,
    subagents: Arc<Subagents>,
    /// The subagents this session is one of, while its parent runs in this process.
    parent_subagents: Option<Arc<Subagents>>,
    /// The origin of a subagent's session whose journal does not exist yet.
    spawned: Option<SubagentOrigin>,
    /// Whether hooks were told that this process uses the session.
    start_announced: bool,
    /// Makes the files of running tools read-only in plan mode.
    freeze: Freeze,
    /// Proves what the person decided in this session.
    seals: SessionSeals,
}

impl Session {
    /// Returns the session `id` of the workspace's own agent.
    pub(crate) fn new(agent: Arc<Agent>, owner: Owner, id: SessionId) -> Self {
        Self::with_agents(ActingAgent::own(agent), owner, id)
    }

    /// Returns the session `id` of a subagent: `agent` of the workspace of `workspace_agent`.
    pub(crate) fn of_subagent(
        workspace_agent: Arc<Agent>,
        agent: Arc<Agent>,
        owner: Owner,
        id: SessionId,
    ) -> Self {
        let agents = ActingAgent::of_workspace(workspace_agent, agent);
        Self::with_agents(agents, owner, id)
    }

    fn with_agents(agents: ActingAgent, owner: Owner, id: SessionId) -> Self {
        let journals = agents.acting().parts.place.sessions(&owner);
        let subagents = Subagents::new(agents.workspace().clone(), owner.clone(), id.clone());
        let seals = agents.workspace().seals(&owner, &id);
        Self {
            agents,
            owner,
            id,
            journals,
            fold: SessionFold::default(),
            grants: Vec::new(),
            subagents: Arc::new(subagents),
            parent_subagents: None,
            spawned: None,
            start_announced: false,
            freeze: Freeze::default(),
            seals,
        }
    }

    /// Keeps the journal in `journals`, not where the agent keeps journals.
    pub(crate) fn with_journals(self, journals: Arc<dyn Sessions>) -> Self {
        Self { journals, ..self }
    }

    /// Sets the origin with which the journal of a new subagent's session begins.
    pub(crate) fn with_origin(self, spawned: Option<SubagentOrigin>) -> Self {
        Self { spawned, ..self }
    }

    /// Sets the subagents of the parent, which runs in this process: the permissions of the parent
    /// hold here as well, as they are at each moment.
    pub(crate) fn with_parent(self, parent: Arc<Subagents>) -> Self {
        let agent = self.agents.workspace().clone();
        let subagents = Subagents::new(agent, self.owner.clone(), self.id.clone())
            .with_tainted_files(parent.tainted_files().clone());
        Self {
            subagents: Arc::new(subagents),
            parent_subagents: Some(parent),
            ..self
        }
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session's state as of the last time the journal was read or written here.
    pub fn state(&self) -> &SessionState {
        self.fold.state()
    }

    /// The agent that acts.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        self.agents.acting()
    }

    /// The owner of the session.
    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }

    /// What proves the decisions of the person in this session.
    pub(crate) fn seals(&self) -> &SessionSeals {
        &self.seals
    }

    /// The store of the owner's journals.
    pub(crate) fn journals(&self) -> &Arc<dyn Sessions> {
        &self.journals
    }

    /// Removes secrets from texts that leave the process.
    pub(crate) fn redactor(&self) -> &Redactor {
        self.journals.redactor()
    }

    /// The subagents that work for this session.
    pub fn subagents(&self) -> &Arc<Subagents> {
        &self.subagents
    }

    /// The files that tainted calls wrote, as the session and its subagents know them.
    pub(crate) fn tainted_files(&self) -> &TaintedFiles {
        self.subagents.tainted_files()
    }

    /// The durable state of the session's owner.
    pub(crate) fn owner_state(&self) -> OwnerState {
        self.agent().place().state(&self.owner)
    }

    /// Whether the session belongs to a subagent whose parent runs in this process.
    pub(crate) fn is_delegated(&self) -> bool {
        self.parent_subagents.is_some()
    }

    /// Whether delegated tasks have ended that the model was not told of yet.
    pub fn has_finished_tasks(&self) -> bool {
        self.subagents.finished_since(&self.state().told).is_some()
    }

    /// The versions of files that the model has seen, and the skills that are active.
    pub(crate) fn tool_memory(&self) -> (Arc<FileVersions>, Arc<ActiveSkills>) {
        (self.fold.file_versions(), self.fold.active_skills())
    }

    /// Whether hooks were told that this process uses the session.
    pub(crate) fn is_announced(&self) -> bool {
        self.start_announced
    }

    /// Sets whether hooks were told that this process uses the session. Returns the value before.
    pub(crate) fn set_announced(&mut self, announced: bool) -> bool {
        std::mem::replace(&mut self.start_announced, announced)
    }

    /// Whether this process has read the whole journal, or written it.
    pub(crate) fn is_loaded(&self) -> bool {
        self.fold.position().is_some()
    }

    /// Waits until everything that is derived from journals is written.
    pub async fn flush(&self) {
        self.journals.flush().await;
    }

    /// Reads the session's journal without changing anything, so that it can be shown.
    pub async fn load(&mut self) -> Result<(), AgentError> {
        let mut state = SessionState::default();
        for line in self.journals.read(&self.id).await? {
            state.apply(line.seq, &line.entry)?;
        }
        self.replace_state(state);
        Ok(())
    }

    /// Takes in an entry that was read from the journal, if it is the next one, so that the session
    /// can be shown while another handle writes it.
    pub fn observe(&mut self, line: &JournalLine) -> Result<(), AgentError> {
        if line.seq == self.state().seq + 1 {
            self.fold.apply(std::slice::from_ref(line))?;
        }
        Ok(())
    }

    /// Returns who writes the session now: another process, or another handle of this one.
    pub async fn holder(&self) -> Option<Holder> {
        match self.journals.open(&self.id, None, LockWait::No).await {
            Ok(opened) => {
                opened.writer.close().await;
                None
            }
            Err(StoreError::Locked { holder, .. }) => Some(holder),
            // It does not exist, or cannot be opened by anybody.
            Err(_) => None,
        }
    }

    /// Whether another process, or another handle of this one, writes the session now.
    pub async fn is_busy(&self) -> bool {
        self.holder().await.is_some()
    }

    fn replace_state(&mut self, state: SessionState) {
        self.fold.replace(state);
        self.update_freeze();
    }

    /// Runs the agent on one input to its end. The input is durable before anything else happens.
    /// The session is created if it does not exist. A run that was left open is closed first.
    pub async fn run(
        &mut self,
        input: Vec<Block>,
        options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        run::run_session(self, RunTrigger::Input(input), options).await
    }

    /// Continues a session that was interrupted, parked or stopped, without new input.
    pub async fn resume(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        self.resume_with(SpendAmount::default(), options).await
    }

    /// Continues a run that had used up its budget, with `raise` more to spend. The raise is
    /// recorded.
    pub async fn resume_with(
        &mut self,
        raise: SpendAmount,
        options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        run::run_session(self, RunTrigger::Resume { raise }, options).await
    }

    /// Starts a run that nobody gave an input: the model is told of delegated tasks that have
    /// ended. An error if none has ([`Session::has_finished_tasks`]), or if a run is open.
    pub async fn wake(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        run::run_session(self, RunTrigger::Wake, options).await
    }

    /// The name of the agent that acts.
    pub fn active_agent_name(&self) -> String {
        self.agents.active_name(self.state())
    }

    /// The model that the journal of a new session records; none for work without a model.
    pub(crate) fn new_session_model(&self) -> Option<SessionModel> {
        let parts = &self.agent().parts;
        match parts.session_models.choice {
            ModelChoice::NotNeeded => None,
            ModelChoice::Explicit | ModelChoice::Configured => Some(parts.session_model.clone()),
        }
    }

    /// The model that the next run uses, as `provider:model`: the one that the session recorded,
    /// unless another was chosen for this use.
    pub fn next_model(&self) -> String {
        let next = self
            .model_change()
            .or_else(|| self.state().recorded_model());
        next.map_or_else(|| self.model().to_owned(), |model| model.name)
    }

    /// Switches to the model that the session ran with, also if its journal is from before models
    /// were recorded.
    pub(crate) fn use_recorded_model(&mut self) -> Result<(), AgentError> {
        match self
            .model_change()
            .or_else(|| self.state().recorded_model())
        {
            Some(model) => self.agents.use_model(&model),
            None => Ok(()),
        }
    }

    /// The model that is to be recorded for this session, if its journal says nothing or another.
    pub(crate) fn model_change(&self) -> Option<SessionModel> {
        let models = &self.agents.workspace().parts.session_models;
        let own = &self.agents.workspace().parts.session_model;
        match (models.choice, &self.state().session_model) {
            (ModelChoice::NotNeeded, _) => None,
            (ModelChoice::Configured, Some(_)) => None,
            (ModelChoice::Explicit, Some(recorded)) => (recorded != own).then(|| own.clone()),
            (ModelChoice::Explicit, None) => Some(own.clone()),
            // The journal is from before models were recorded.
            (ModelChoice::Configured, None) => match self.state().recorded_model() {
                Some(answered) if answered.name != own.name => Some(answered),
                Some(_) | None => Some(own.clone()),
            },
        }
    }

    /// The model of the agent that acted last, as `provider:model`.
    pub fn model(&self) -> &str {
        self.agent().parts.model.name()
    }

    /// The context window in tokens, if it is known by now: from a refusal by the provider, from
    /// settings or the built-in table, or from what the endpoint reported.
    pub fn window(&self) -> Option<u64> {
        self.state()
            .window
            .or_else(|| self.agent().model_limits.context_window())
    }

    /// The context window in tokens. If it is unknown and the context has grown, the endpoint is
    /// asked; if that does not know it either, [`UNKNOWN_WINDOW_TOKENS`] is assumed.
    pub async fn window_or_default(&self) -> u64 {
        if self.window().is_none() && self.state().used_tokens(0) > ASK_ENDPOINT_ABOVE_TOKENS {
            self.agent().model_limits.ask_endpoint().await;
        }
        self.window().unwrap_or(UNKNOWN_WINDOW_TOKENS)
    }

    /// Switches to the model and the agent that the journal names. Returns whether either was
    /// another one before.
    pub(crate) async fn switch_to_recorded_agent(
        &mut self,
        fence: Option<&FencingToken>,
    ) -> Result<bool, AgentError> {
        let files = self.files(fence);
        let switched = self
            .agents
            .switch(self.fold.state(), &self.owner, &files)
            .await?;
        if switched {
            self.subagents
                .set_workspace_agent(self.agents.workspace().clone());
        }
        Ok(switched)
    }

    /// Chooses the agent that acts, and checks choices of it.
    pub(crate) fn agents(&self) -> &ActingAgent {
        &self.agents
    }
}
