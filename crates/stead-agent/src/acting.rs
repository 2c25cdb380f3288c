//! Which agent acts in a session, on which files, and for whom.

use crate::crew::Now;
use crate::driver::Ending;
use crate::live::{Live, Stop};
use crate::steering::steered;
use crate::{Agent, AgentError, Session, Turn};
use std::sync::Arc;
use stead_core::{
    Allowance, Block, Change, ChildFiles, Entry, EventKind, Notice, Outcome, Owner, PlanStage, Set,
};
use stead_store::Fence;
use stead_vfs::{Overlay, ReadOnly, Scoped, VPath, Vfs};
use stead_workspace::Part;

impl Session {
    /// Its files. Those of a subagent are its parent's; where it works apart, its changes are its
    /// own.
    pub(crate) fn files(&self, fence: Option<&Fence>) -> Arc<dyn Vfs> {
        let place = &self.agent.parts.place;
        let Some(spawned) = self.state.spawned.as_ref().or(self.spawned.as_ref()) else {
            return place.files(&self.owner, &self.id, fence);
        };
        let files = place.files(&self.owner, &spawned.tree, fence);
        match spawned.files {
            ChildFiles::Shared => files,
            ChildFiles::Isolated => {
                let own = Scoped::new(files.clone(), self.own_folder());
                Arc::new(Overlay::new(Arc::new(own), Arc::new(ReadOnly::new(files))))
            }
        }
    }

    /// Where the changes of a subagent that works apart lie.
    fn own_folder(&self) -> VPath {
        let definition = &self.home.workspace().definition;
        let path = format!(
            "agents/{}/subagents/{}/files",
            definition.config.agent(),
            self.id
        );
        definition.tree.runtime.join(&path).unwrap_or(VPath::root())
    }

    /// What a turn of the agent that acts begins with.
    pub(crate) async fn turn(&self, fence: Option<&Fence>) -> Result<Turn, AgentError> {
        self.agent
            .turn(
                &self.owner,
                &self.id,
                &self.files(fence),
                Some(&self.crew),
                self.plans(),
            )
            .await
    }

    /// Whether it is to make a plan.
    pub(crate) fn plans(&self) -> bool {
        self.state
            .plan
            .as_ref()
            .and_then(PlanStage::making)
            .is_some()
    }

    /// Lets the agent act that the journal says. True if it is another than before.
    pub(crate) async fn take_part(&mut self, fence: Option<&Fence>) -> Result<bool, AgentError> {
        let part = if self.state.spawned.is_some() {
            Part::Child
        } else {
            Part::Main
        };
        let own = self.home.acting();
        let wanted = self.agent_on_record().unwrap_or_else(|| own.clone());
        if wanted == self.agent.acting() {
            return Ok(false);
        }
        if wanted == own && part == Part::Main {
            self.agent = self.home.clone();
            return Ok(true);
        }
        let files = self.home.workspace().shown(&self.files(fence));
        let specs = self.home.specs(&self.owner, &files).await?;
        let spec = specs
            .get(&wanted)
            .ok_or_else(|| AgentError::AgentGone(wanted.clone()))?;
        self.agent = self.home.role(spec, part)?;
        Ok(true)
    }

    /// The name of the agent that acts.
    pub fn acting(&self) -> String {
        self.agent_on_record().unwrap_or_else(|| self.home.acting())
    }

    /// The model that the agent asks which acted last, as `provider:model`.
    pub fn model(&self) -> &str {
        self.agent.parts.model.name()
    }

    /// The agent that the journal names; none if it is the workspace's own.
    fn agent_on_record(&self) -> Option<String> {
        self.state.acting.clone().or_else(|| {
            self.state
                .spawned
                .as_ref()
                .map(|spawned| spawned.agent.clone())
        })
    }

    /// The agent that acts when nobody asks for another.
    pub(crate) fn recorded_agent(&self) -> String {
        self.agent_on_record().unwrap_or_else(|| self.home.usual())
    }

    /// Refuses settings that name an agent which there is not, or which cannot act by itself.
    pub(crate) async fn check_agent(&self, set: &[Set]) -> Result<(), AgentError> {
        for set in set {
            let Change::Agent { to } = &set.change else {
                continue;
            };
            let known = self.home.agents_of(&self.owner, &self.files(None)).await?;
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
    pub(crate) fn introduced(&self, mut content: Vec<Block>) -> Vec<Block> {
        content.extend(self.reminder().map(Block::text));
        content
    }

    /// What the agent that acts is to be reminded of, if it was not yet.
    fn reminder(&self) -> Option<String> {
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
    pub(crate) async fn crew_spent(&self) -> Allowance {
        let tasks = self.crew.tasks().await.unwrap_or_default();
        tasks
            .iter()
            .fold(Allowance::default(), |sum, task| sum + task.spent)
    }
}

impl Live<'_> {
    /// Makes ready to hand work over.
    pub(crate) fn man(&self) {
        let session = &*self.session;
        let spawned = session.state.spawned.as_ref();
        session.crew.begin(Now {
            agent: session.agent.clone(),
            run: self.run.clone(),
            terms: session.terms(),
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
    pub(crate) async fn take_stock(&mut self) -> Result<(), Stop> {
        let from = self.session.agent.acting();
        if self.session.take_part(self.writer.fence()).await? {
            let turn = self.session.turn(self.writer.fence()).await?;
            self.dress(turn);
            let to = self.session.agent.acting();
            let model = self.session.agent.parts.model.name().to_owned();
            self.emit(EventKind::AgentSwitched { from, to, model });
        }
        if let Some(text) = self.session.reminder() {
            let notice = Notice {
                reminds: true,
                ..Notice::new(self.run.clone(), text)
            };
            self.record(vec![Entry::Notice(notice)]).await?;
        }
        self.session
            .crew
            .bind(self.session.agent.clone(), self.session.terms());
        self.tell_news().await?;
        Ok(())
    }

    /// Tells the model of tasks that ended since. True if there were any.
    async fn tell_news(&mut self) -> Result<bool, Stop> {
        let Some(news) = self.session.crew.news(&self.session.state.told) else {
            return Ok(false);
        };
        let notice = news.notice(self.run.clone());
        self.record(vec![Entry::Notice(notice)]).await?;
        Ok(true)
    }

    /// Whether there is more to do though the model is done: what was said meanwhile is heard,
    /// tasks in the background are waited for, and what came of them is told.
    pub(crate) async fn goes_on(&mut self, outcome: Outcome) -> Result<bool, Stop> {
        if outcome != Outcome::Completed {
            return Ok(false);
        }
        // What the model could not be asked about any more is the next input instead.
        let heeds = self.has_steps();
        loop {
            // Looked at before the news: whatever ends from here on is noticed.
            let mut ends = self.session.crew.ends();
            let works = self.session.crew.working() > 0;
            if heeds && self.steer().await? {
                return Ok(true);
            }
            if self.options.leftover == Leftover::Leave {
                return Ok(false);
            }
            if self.tell_news().await? {
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
                () = steered(inbox), if heeds => {}
                _ = ends.changed() => {}
            }
        }
    }

    /// The run is over: those who work for it are stopped if it was, and left alone if they may go
    /// on.
    pub(crate) async fn dismiss(&mut self, driven: &Result<Ending, Stop>) {
        let goes_on = matches!(
            driven,
            Ok(Ending {
                outcome: Outcome::Completed,
                ..
            })
        ) && self.options.leftover == Leftover::Leave;
        if !goes_on {
            self.session.crew.stop().await;
        }
    }

    /// Puts on the prompt and the tools of another agent.
    fn dress(&mut self, turn: Turn) {
        self.system = turn.prompt.parts().into();
        (self.tools, self.params, self.others) = (turn.tools, turn.params, turn.others);
        self.encoded = Arc::default();
        self.head = std::sync::OnceLock::new();
        self.offload = self.session.offload(&self.files, &self.tools);
    }
}

/// What becomes of tasks in the background when the model is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leftover {
    /// The run waits for them, and the model is told what came of them.
    #[default]
    Wait,
    /// They go on; whoever runs the agent wakes it when they are done.
    Leave,
}

impl Agent {
    /// The names of the agents of the workspace that can be switched to, its own included.
    pub async fn agents(self: &Arc<Self>) -> Result<Vec<String>, AgentError> {
        let files =
            self.parts
                .place
                .files(&self.parts.owner, &stead_core::SessionId::outside(), None);
        self.agents_of(&self.parts.owner, &files).await
    }

    async fn agents_of(
        &self,
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<Vec<String>, AgentError> {
        let specs = self.specs(owner, &self.workspace().shown(files)).await?;
        let mut names: Vec<String> = specs
            .values()
            .filter(|spec| spec.mode.is_primary())
            .map(|spec| spec.name.clone())
            .collect();
        let own = self.acting();
        if !names.contains(&own) {
            names.insert(0, own);
        }
        Ok(names)
    }
}
