//! Which agent of the workspace acts in a session.
//!
//! Effects: the environment, workspace files (reads).

use crate::session_models::ModelChoice;
use crate::{Agent, AgentError};
use std::sync::Arc;
use stead_core::{Owner, SessionChange, SessionModel, SessionState, SetEntry};
use stead_vfs::Vfs;
use stead_workspace::AgentRole;

/// The agent that acts in a session, and the workspace's own agent.
#[derive(Debug)]
pub(crate) struct ActingAgent {
    acting: Arc<Agent>,
    /// The workspace's own agent, with the model of the session.
    workspace: Arc<Agent>,
    /// The workspace's own agent as it was built.
    built: Arc<Agent>,
    /// Whether the workspace's own agent has another model than when `acting` was chosen.
    is_outdated: bool,
}

impl ActingAgent {
    /// The workspace's own agent acts.
    pub(crate) fn own(agent: Arc<Agent>) -> Self {
        Self::of_workspace(agent.clone(), agent)
    }

    /// `acting`, an agent of the workspace of `workspace`, acts.
    pub(crate) fn of_workspace(workspace: Arc<Agent>, acting: Arc<Agent>) -> Self {
        Self {
            acting,
            built: workspace.clone(),
            workspace,
            is_outdated: false,
        }
    }

    /// The agent that acts.
    pub(crate) fn acting(&self) -> &Arc<Agent> {
        &self.acting
    }

    /// The workspace's own agent.
    pub(crate) fn workspace(&self) -> &Arc<Agent> {
        &self.workspace
    }

    /// The name of the agent that acts according to the journal.
    pub(crate) fn active_name(&self, state: &SessionState) -> String {
        name_in_journal(state).unwrap_or_else(|| self.workspace.agents().own_name())
    }

    /// The name of the agent that acts according to the journal, or of the one that acts unless
    /// another is chosen.
    pub(crate) fn name_or_default(&self, state: &SessionState) -> String {
        name_in_journal(state).unwrap_or_else(|| self.workspace.agents().default_name())
    }

    /// Switches to the model and the agent that the journal names. Returns whether either was
    /// another one before.
    pub(crate) async fn switch(
        &mut self,
        state: &SessionState,
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<bool, AgentError> {
        let role = match state.spawned {
            Some(_) => AgentRole::Child,
            None => AgentRole::Main,
        };
        if let Some(recorded) = &state.session_model {
            self.use_model(recorded)?;
        }
        let wanted = self.active_name(state);
        if wanted == self.acting.agents().own_name() && !self.is_outdated {
            return Ok(false);
        }
        self.is_outdated = false;
        if wanted == self.workspace.agents().own_name() && role == AgentRole::Main {
            self.acting = self.workspace.clone();
            return Ok(true);
        }
        let files = self.workspace.workspace().prompt_files(files);
        let specs = self.workspace.agents().specs(owner, &files).await?;
        let spec = specs
            .get(&wanted)
            .ok_or_else(|| AgentError::AgentRemoved(wanted.clone()))?;
        self.acting = self.workspace.agents().agent(spec, role)?;
        Ok(true)
    }

    /// Gives the workspace's own agent the model that the session recorded, unless another was
    /// chosen for this use. The acting agent follows with the next [`switch`](Self::switch).
    pub(crate) fn use_model(&mut self, recorded: &SessionModel) -> Result<(), AgentError> {
        let configured = self.built.parts.session_models.choice == ModelChoice::Configured;
        if !configured || *recorded == self.workspace.parts.session_model {
            return Ok(());
        }
        self.workspace = match *recorded == self.built.parts.session_model {
            true => self.built.clone(),
            false => self.built.with_session_model(recorded)?,
        };
        self.is_outdated = true;
        Ok(())
    }

    /// The model that the settings name now, if the session runs with another one.
    pub(crate) fn unused_model(&self) -> Option<&str> {
        let configured = &self.built.parts.session_model.name;
        let is_set = self.built.parts.session_models.unavailable.is_none();
        let is_other = *configured != self.workspace.parts.session_model.name;
        (is_set && is_other).then_some(configured)
    }

    /// Refuses settings that name an agent which does not exist or cannot act by itself.
    pub(crate) async fn check_choices(
        &self,
        settings: &[SetEntry],
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<(), AgentError> {
        for setting in settings {
            let SessionChange::Agent { to } = &setting.change else {
                continue;
            };
            let known = self.workspace.agents().switchable_in(owner, files).await?;
            if !known.contains(to) {
                return Err(AgentError::NoSuchAgent {
                    name: to.clone(),
                    known,
                });
            }
        }
        Ok(())
    }

    /// The reminder that the definition of the acting agent asks for, if the model has not had it
    /// since the agent began to act.
    pub(crate) fn due_reminder(&self, state: &SessionState) -> Option<String> {
        let definition = &self.acting.workspace().definition;
        let text = definition.active_spec()?.system_reminder.as_ref()?;
        state
            .reminder_due
            .then(|| format!("<system_reminder>\n{}\n</system_reminder>", text.trim()))
    }
}

/// The agent that the journal names, or `None` if it is the workspace's own.
fn name_in_journal(state: &SessionState) -> Option<String> {
    let of_subagent = || state.spawned.as_ref().map(|spawned| spawned.agent.clone());
    state.acting.clone().or_else(of_subagent)
}
