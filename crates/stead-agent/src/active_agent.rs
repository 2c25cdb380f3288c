//! Which agent acts in a session, on which files, and for whom.

use crate::active_run::{ActiveRun, RunStop};
use crate::driver::RunEnding;
use crate::steering::wait_for_steering;
use crate::subagents::DelegationContext;
use crate::turn_setup::{TurnComposer, TurnSession};
use crate::{AgentError, Session, TurnSetup};
use std::sync::Arc;
use stead_core::{
    Block, ChildFiles, Entry, EventKind, Notice, PlanStage, RunOutcome, SessionChange, SetEntry,
    SpendAmount,
};
use stead_store::FencingToken;
use stead_vfs::{Frozen, Overlay, Scoped, VPath, Vfs};
use stead_workspace::AgentRole;

impl Session {
    /// Its files. Those of a subagent are its parent's; where it works apart, its changes are its
    /// own.
    pub(crate) fn files(&self, fence: Option<&FencingToken>) -> Arc<dyn Vfs> {
        let place = &self.agent.parts.place;
        let Some(spawned) = self.state.spawned.as_ref().or(self.spawned.as_ref()) else {
            return place.files(&self.owner, &self.id, fence);
        };
        let files = place.files(&self.owner, &spawned.tree, fence);
        match spawned.files {
            ChildFiles::Shared => files,
            ChildFiles::Isolated => {
                let own = Scoped::new(files.clone(), self.isolated_changes_folder());
                Arc::new(Overlay::new(
                    Arc::new(own),
                    Arc::new(Frozen::read_only(files)),
                ))
            }
        }
    }

    /// Where the changes of a subagent that works apart lie.
    fn isolated_changes_folder(&self) -> VPath {
        let definition = &self.workspace_agent.workspace().definition;
        let path = format!(
            "agents/{}/subagents/{}/files",
            definition.config.agent_id(),
            self.id
        );
        definition
            .paths
            .runtime
            .join(&path)
            .unwrap_or(VPath::root())
    }

    /// What a turn of the agent that acts begins with.
    pub(crate) async fn turn_setup(
        &self,
        fence: Option<&FencingToken>,
    ) -> Result<TurnSetup, AgentError> {
        let turn = TurnSession {
            owner: &self.owner,
            session: &self.id,
            files: &self.files(fence),
            subagents: &self.subagents,
            planning: self.is_planning(),
        };
        TurnComposer::new(&self.agent).compose(turn).await
    }

    /// Whether it is to make a plan.
    pub(crate) fn is_planning(&self) -> bool {
        self.state
            .plan
            .as_ref()
            .and_then(PlanStage::draft_file)
            .is_some()
    }

    /// Lets the agent act that the journal says. True if it is another than before.
    pub(crate) async fn switch_to_recorded_agent(
        &mut self,
        fence: Option<&FencingToken>,
    ) -> Result<bool, AgentError> {
        let part = if self.state.spawned.is_some() {
            AgentRole::Child
        } else {
            AgentRole::Main
        };
        let own = self.workspace_agent.agents().own_name();
        let wanted = self.agent_from_journal().unwrap_or_else(|| own.clone());
        if wanted == self.agent.agents().own_name() {
            return Ok(false);
        }
        if wanted == own && part == AgentRole::Main {
            self.agent = self.workspace_agent.clone();
            return Ok(true);
        }
        let files = self
            .workspace_agent
            .workspace()
            .prompt_files(&self.files(fence));
        let specs = self
            .workspace_agent
            .agents()
            .specs(&self.owner, &files)
            .await?;
        let spec = specs
            .get(&wanted)
            .ok_or_else(|| AgentError::AgentRemoved(wanted.clone()))?;
        self.agent = self.workspace_agent.agents().agent(spec, part)?;
        Ok(true)
    }

    /// The name of the agent that acts.
    pub fn active_agent_name(&self) -> String {
        self.agent_from_journal()
            .unwrap_or_else(|| self.workspace_agent.agents().own_name())
    }

    /// The model that the agent asks which acted last, as `provider:model`.
    pub fn model(&self) -> &str {
        self.agent.parts.model.name()
    }

    /// The agent that the journal names; none if it is the workspace's own.
    fn agent_from_journal(&self) -> Option<String> {
        self.state.acting.clone().or_else(|| {
            self.state
                .spawned
                .as_ref()
                .map(|spawned| spawned.agent.clone())
        })
    }

    /// The agent that acts when nobody asks for another.
    pub(crate) fn agent_from_journal_or_default(&self) -> String {
        self.agent_from_journal()
            .unwrap_or_else(|| self.workspace_agent.agents().default_name())
    }

    /// Refuses settings that name an agent which there is not, or which cannot act by itself.
    pub(crate) async fn check_chosen_agents(&self, set: &[SetEntry]) -> Result<(), AgentError> {
        for set in set {
            let SessionChange::Agent { to } = &set.change else {
                continue;
            };
            let known = self
                .workspace_agent
                .agents()
                .switchable_in(&self.owner, &self.files(None))
                .await?;
            if !known.contains(to) {
                return Err(AgentError::NoSuchAgent {
                    name: to.clone(),
                    known,
                });
            }
        }
        Ok(())
    }

    /// An input with what the agent that acts is to be reminded of, if that changed since the last
    /// one. What was said comes first.
    pub(crate) fn with_agent_reminder(&self, mut content: Vec<Block>) -> Vec<Block> {
        content.extend(self.pending_agent_reminder().map(Block::text));
        content
    }

    /// What the agent that acts is to be reminded of, if it was not yet.
    fn pending_agent_reminder(&self) -> Option<String> {
        let words = self
            .agent
            .workspace()
            .definition
            .active_spec()?
            .system_reminder
            .as_ref()?;
        self.state
            .reminder_due
            .then(|| format!("<system_reminder>\n{}\n</system_reminder>", words.trim()))
    }

    /// What those who work for it spent, as far as it is on record.
    pub(crate) async fn subagent_spend(&self) -> SpendAmount {
        let tasks = self.subagents.tasks().await.unwrap_or_default();
        tasks
            .iter()
            .fold(SpendAmount::default(), |sum, task| sum + task.spent)
    }
}

impl ActiveRun<'_> {
    /// Makes ready to hand work over.
    pub(crate) fn start_subagents(&self) {
        let session = &*self.session;
        let spawned = session.state.spawned.as_ref();
        session.subagents.set_run_context(DelegationContext {
            agent: session.agent.clone(),
            run: self.run.clone(),
            permissions: session.permissions(),
            depth: spawned.map_or(0, |spawned| spawned.depth),
            tree: spawned.map_or_else(|| session.id.clone(), |spawned| spawned.tree.clone()),
            listener: self.options.listener.clone(),
            approvals: self.options.approvals.clone(),
            cancel: self.halt.cancel.clone(),
            budget: self.budget.clone(),
        });
    }

    /// Before the model is asked: the agent that acts does so with its own prompt, tools and model;
    /// it is reminded once, and told of tasks that ended.
    pub(crate) async fn refresh_turn(&mut self) -> Result<(), RunStop> {
        let from = self.session.agent.agents().own_name();
        if self
            .session
            .switch_to_recorded_agent(self.writer.fence())
            .await?
        {
            let turn = self.session.turn_setup(self.writer.fence()).await?;
            self.apply_turn(turn);
            let to = self.session.agent.agents().own_name();
            let model = self.session.agent.parts.model.name().to_owned();
            self.emit(EventKind::AgentSwitched { from, to, model });
        }
        if let Some(text) = self.session.pending_agent_reminder() {
            let notice = Notice {
                reminds: true,
                ..Notice::new(self.run.clone(), text)
            };
            self.record(vec![Entry::Notice(notice)]).await?;
        }
        self.session
            .subagents
            .update_permissions(self.session.agent.clone(), self.session.permissions());
        self.record_finished_tasks().await?;
        Ok(())
    }

    /// Tells the model of tasks that ended since. True if there were any.
    async fn record_finished_tasks(&mut self) -> Result<bool, RunStop> {
        let Some(news) = self
            .session
            .subagents
            .finished_since(&self.session.state.told)
        else {
            return Ok(false);
        };
        let notice = news.into_notice(self.run.clone());
        self.record(vec![Entry::Notice(notice)]).await?;
        Ok(true)
    }

    /// Whether there is more to do though the model is done: what was said meanwhile is heard,
    /// tasks in the background are waited for, and what came of them is told.
    pub(crate) async fn wait_for_more_work(
        &mut self,
        outcome: RunOutcome,
    ) -> Result<bool, RunStop> {
        if outcome != RunOutcome::Completed {
            return Ok(false);
        }
        // What the model could not be asked about any more is the next input instead.
        let heeds = self.has_steps_left();
        loop {
            // Looked at before the news: whatever ends from here on is noticed.
            let mut ends = self.session.subagents.watch_finished();
            let works = self.session.subagents.running_count() > 0;
            if heeds && self.steer().await? {
                return Ok(true);
            }
            if self.options.background_tasks == BackgroundTaskPolicy::Detach {
                return Ok(false);
            }
            if self.record_finished_tasks().await? {
                return Ok(true);
            }
            if !works {
                return Ok(false);
            }
            let halt = self.halt.clone();
            let inbox = self.options.inbox.clone();
            tokio::select! {
                biased;
                halted = halt.wait() => return Err(halted.into()),
                () = wait_for_steering(inbox), if heeds => {}
                _ = ends.changed() => {}
            }
        }
    }

    /// The run is over: those who work for it are stopped if it was, and left alone if they may go
    /// on.
    pub(crate) async fn stop_subagents(&mut self, driven: &Result<RunEnding, RunStop>) {
        let goes_on = matches!(
            driven,
            Ok(RunEnding {
                outcome: RunOutcome::Completed,
                ..
            })
        ) && self.options.background_tasks == BackgroundTaskPolicy::Detach;
        if !goes_on {
            self.session.subagents.stop().await;
        }
    }

    /// Puts on the prompt and the tools of another agent.
    fn apply_turn(&mut self, turn: TurnSetup) {
        self.system = turn.prompt.parts().into();
        (self.tools, self.params, self.fallback_setups) =
            (turn.tools, turn.params, turn.fallback_setups);
        self.encoded = Arc::default();
        self.head_tokens = std::sync::OnceLock::new();
        self.offload = self.session.offload(&self.files, &self.tools);
    }
}

/// What becomes of tasks in the background when the model is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundTaskPolicy {
    /// The run waits for them, and the model is told what came of them.
    #[default]
    Wait,
    /// They go on; whoever runs the agent wakes it when they are done.
    Detach,
}
