//! One conversation.

use crate::active_run::ActiveRun;
use crate::admission::CallGate;
use crate::budget;
use crate::driver::RunEnding;
use crate::halt::Halt;
use crate::hooks::PendingHookOutput;
use crate::offload::{MediaLoader, Offload};
use crate::run_trigger::{RunOrigin, RunTrigger};
use crate::{Agent, AgentError, Budget, Pinned, RunOptions, RunReport, Subagents};
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stead_core::{
    Block, Entry, EventKind, Fork, Notice, NoticeLevel, Owner, Pin, Rewind, Run, RunId, RunOutcome,
    SessionId, SessionOrigin, SessionState, SpendAmount, SubagentOrigin, TurnMessage, UserInput,
};
use stead_gate::Grant;
use stead_store::{JournalWriter, LockWait, OpenedSession, Position, RunKey, Sessions, StoreError};
use stead_tools::{ActiveSkills, FileVersions, ReadTools, Registry};
use stead_vfs::{Freeze, Frozen, Recorded, Vfs};
use stead_workspace::FeatureSwitch;

/// One conversation of an agent. Owned by one task; between runs it holds no file and no lock.
#[derive(Debug)]
pub struct Session {
    /// The agent of the workspace that acts.
    pub(crate) agent: Arc<Agent>,
    /// The workspace's own.
    pub(crate) workspace_agent: Arc<Agent>,
    pub(crate) owner: Owner,
    pub(crate) id: SessionId,
    /// Where it is kept.
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) state: SessionState,
    /// Where the journal ended when we last saw it.
    pub(crate) position: Option<Position>,
    pub(crate) seen_files: Arc<FileVersions>,
    pub(crate) active_skills: Arc<ActiveSkills>,
    /// What people allowed for good.
    pub(crate) grants: Vec<Grant>,
    /// Those who work for it.
    pub(crate) subagents: Arc<Subagents>,
    /// Those it works with for its parent, while that is at work here: what binds the parent now
    /// binds it, too.
    pub(crate) parent_subagents: Option<Arc<Subagents>>,
    /// What it begins with, if it is to begin as that of a subagent.
    pub(crate) spawned: Option<SubagentOrigin>,
    /// Whether hooks were told that this process has taken it up.
    pub(crate) start_announced: bool,
    /// Switches writing off for its tools.
    pub(crate) freeze: Freeze,
}

/// A point of the conversation that can be returned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindPoint {
    /// The turn, from 1.
    pub turn: usize,
    /// What the person said there.
    pub text: String,
    /// The last entry before it.
    pub before: u64,
}

impl Session {
    pub(crate) fn new(agent: Arc<Agent>, owner: Owner, id: SessionId) -> Self {
        Self::with_agent(agent.clone(), agent, owner, id, None)
    }

    /// A session of `agent`, one of those of the workspace of `home`.
    pub(crate) fn with_agent(
        home: Arc<Agent>,
        agent: Arc<Agent>,
        owner: Owner,
        id: SessionId,
        spawned: Option<SubagentOrigin>,
    ) -> Self {
        let sessions = agent.parts.place.sessions(&owner);
        let crew = Arc::new(Subagents::new(home.clone(), owner.clone(), id.clone()));
        Self {
            agent,
            workspace_agent: home,
            owner,
            id,
            sessions,
            state: SessionState::default(),
            position: None,
            seen_files: Arc::default(),
            active_skills: Arc::default(),
            grants: Vec::new(),
            subagents: crew,
            parent_subagents: None,
            spawned,
            start_announced: false,
            freeze: Freeze::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Its state as last seen.
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// Brings derived state that was held back to its place.
    pub async fn flush(&self) {
        self.sessions.flush().await;
    }

    /// What the model is told first about a call whose arguments a person changed.
    pub(crate) fn edit_note(&self, id: &str) -> Option<String> {
        let run = self.state.run.as_ref()?;
        run.edit_note(
            &run.pending
                .iter()
                .find(|pending| pending.call.id == id)?
                .call,
        )
    }

    /// Works one input to its end. The input is durable before anything else happens; the session
    /// is begun if there is none yet. A run that was left open is closed first.
    pub async fn run(
        &mut self,
        input: Vec<Block>,
        options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        self.start_run(RunTrigger::Input(input), options).await
    }

    /// Goes on with a session that was interrupted, parked or stopped, without new input.
    pub async fn resume(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        self.start_run(
            RunTrigger::Resume {
                raise: SpendAmount::default(),
            },
            options,
        )
        .await
    }

    /// The same for a run that had used up its budget, with `raise` more to spend. That is on
    /// record.
    pub async fn resume_with(
        &mut self,
        raise: SpendAmount,
        options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        self.start_run(RunTrigger::Resume { raise }, options).await
    }

    /// Loads the session's state without changing anything, so that it can be shown.
    pub async fn load(&mut self) -> Result<(), AgentError> {
        let mut state = SessionState::default();
        for line in self.sessions.read(&self.id).await? {
            state.apply(line.seq, &line.entry)?;
        }
        self.replace_state(state);
        self.position = None;
        Ok(())
    }

    /// Sees to it that what was said is looked through for what to remember. A run without an
    /// answer taught nothing.
    async fn enqueue_memory_flush(&self, report: &RunReport) {
        if report.steps > 0 && report.outcome != RunOutcome::Parked {
            // A queue that cannot be written loses nothing: the next job begins where the last one
            // ended.
            let _ = self
                .agent
                .memory()
                .enqueue_flush(&self.owner, &self.id, self.state.seq)
                .await;
        }
    }

    /// Keeps the memory of undo within its bounds, after one in fifty of the runs that add to it:
    /// looking through it takes the longer the more sessions there are.
    async fn collect_garbage_sometimes(&self, run: &RunId) {
        let sum: u32 = run.as_str().bytes().map(u32::from).sum();
        if !sum.is_multiple_of(50) {
            return;
        }
        let key = RunKey {
            session: self.id.clone(),
            run: run.clone(),
        };
        let records = self
            .agent
            .parts
            .place
            .changes(&self.owner)
            .records(&key)
            .await;
        if records.is_ok_and(|records| !records.is_empty()) {
            // `stead gc` says what is wrong, if anything is.
            let collector = self.agent.collector(&self.owner);
            let _ = collector.collect(crate::GcMode::Apply).await;
        }
    }

    /// The points that can be returned to, oldest first.
    pub fn rewind_points(&self) -> Vec<RewindPoint> {
        let inputs = self
            .state
            .turns
            .iter()
            .filter(|turn| turn.starts_run.is_some());
        let point = |(i, turn): (usize, &TurnMessage)| RewindPoint {
            turn: i + 1,
            text: turn.message.text(),
            before: turn.seq - 1,
        };
        inputs.enumerate().map(point).collect()
    }

    /// Returns to the point before turn `turn` (from 1). Nothing is erased: the journal records it.
    pub async fn rewind(&mut self, turn: usize, wait: LockWait) -> Result<RewindPoint, AgentError> {
        let mut writer = self.open_for_writing(wait, IfMissing::Fail).await?.0;
        if self.state.run.is_some() {
            self.append(
                &mut *writer,
                self.state
                    .close(RunOutcome::Cancelled, "the session was rewound"),
            )
            .await?;
        }
        let point = self.rewind_point(turn)?;
        self.append(
            &mut *writer,
            vec![Entry::Rewind(Rewind { to: point.before })],
        )
        .await?;
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        Ok(point)
    }

    /// Copies this session up to the point before turn `turn`, or all of it, into a new one.
    pub async fn fork(&mut self, to: SessionId, turn: Option<usize>) -> Result<Self, AgentError> {
        self.load().await?;
        let upto = match turn {
            Some(turn) => self.rewind_point(turn)?.before,
            None => self.state.seq,
        };
        let journals = &self.sessions;
        let parent = SessionOrigin::Fork(Fork {
            session: self.id.clone(),
            seq: upto,
        });
        let mut fork = self.agent.session_of(self.owner.clone(), to);
        let mut opened = journals.create(&fork.id, Some(parent)).await?;
        fork.replace_state(opened.state.take().unwrap_or_default());
        let lines = journals.read(&self.id).await?;
        let entries = lines
            .into_iter()
            .skip(1)
            .filter(|line| line.seq <= upto)
            .map(|line| line.entry)
            .collect();
        let entries = self.copy_entries_to(&fork, entries).await?;
        fork.append(&mut *opened.writer, entries).await?;
        if fork.state.run.is_some() {
            let close = fork
                .state
                .close(RunOutcome::Cancelled, "forked while this run was open");
            fork.append(&mut *opened.writer, close).await?;
        }
        journals
            .update_derived(&fork.state, opened.writer.position())
            .await;
        opened.writer.close().await;
        Ok(fork)
    }

    /// Boxed, so that the code of a run is made once, and not in every crate that runs one.
    pub(crate) fn start_run(
        &mut self,
        begin: RunTrigger,
        options: RunOptions,
    ) -> BoxFuture<'_, Result<RunReport, AgentError>> {
        Box::pin(self.run_to_end(begin, options))
    }

    async fn run_to_end(
        &mut self,
        begin: RunTrigger,
        mut options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        let missing = match begin {
            RunTrigger::Input(_) => IfMissing::Create,
            RunTrigger::Resume { .. } | RunTrigger::Wake => IfMissing::Fail,
        };
        budget::check_prices(&self.agent.parts)?;
        let raise = match &begin {
            RunTrigger::Input(_) | RunTrigger::Wake => SpendAmount::default(),
            RunTrigger::Resume { raise } => *raise,
        };
        // With a workspace that cannot be read nothing is written, nor where an agent is chosen
        // that there is not.
        let mut turn = self.turn_setup(None).await?;
        let planned = self.is_planning();
        self.check_chosen_agents(&options.settings).await?;
        self.grants = self.agent.grants(&self.owner).list().await?;
        let fresh = RunId::fresh();
        let (begin, mut submitted) = self.submit(begin, &fresh, &options).await?;
        let (mut writer, torn) = self.open_for_writing(options.wait, missing).await?;
        let mut changed = self.switch_to_recorded_agent(None).await?;
        self.subagents
            .recover_tasks()
            .await
            .map_err(AgentError::TaskRecords)?;
        let superseded = self.state.run.is_some() && matches!(begin, RunTrigger::Input(_));
        let before = self.agent_from_journal_or_default();
        let set = self
            .record_settings(&mut *writer, std::mem::take(&mut options.settings))
            .await?;
        changed |= self.switch_to_recorded_agent(None).await? || self.is_planning() != planned;
        let switched = self.state.runs > 0 && self.agent_from_journal_or_default() != before;
        if changed {
            turn = self.turn_setup(writer.fence()).await?;
        }
        let begin = match begin {
            RunTrigger::Input(content) => {
                let files = self.files(writer.fence());
                let content = self
                    .offload_input(self.offload(&files, &turn.tools), &fresh, content)
                    .await;
                RunTrigger::Input(self.with_agent_reminder(self.with_plan_reminder(content)))
            }
            other @ (RunTrigger::Resume { .. } | RunTrigger::Wake) => other,
        };
        let (mut opening, origin) = self.opening_entries(begin, fresh)?;
        let resumed = origin != RunOrigin::Input;
        let run = match (&opening.last(), &self.state.run) {
            (Some(Entry::User(UserInput { run, .. }) | Entry::Notice(Notice { run, .. })), _) => {
                run.clone()
            }
            (_, Some(run)) => run.id.clone(),
            (_, None) => return Err(AgentError::NothingToResume(self.id.clone())),
        };
        if options.pin == Pinned::Yes && !resumed {
            let seq = writer.position().seq + opening.len() as u64;
            opening.push(Entry::Pin(Pin { seq, pinned: true }));
        }
        opening.extend(submitted.entries(&run, &opening));
        let session = self.id.clone();
        let model = self.agent.parts.model.name().to_owned();
        let mut live = self.active_run(writer, run, turn, options);
        live.record(opening).await?;
        live.emit(EventKind::RunStarted {
            session: session.clone(),
            model: model.clone(),
            resumed,
        });
        live.notify_setting_changes(&set);
        if switched {
            let to = live.session.agent.agents().own_name();
            live.emit(EventKind::AgentSwitched {
                from: before,
                to,
                model,
            });
        }
        if superseded {
            let text =
                "the run before was still open; it is closed, and its open calls are skipped"
                    .to_owned();
            live.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
        if let Some(torn) = torn {
            live.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text: torn,
            });
        }
        let driven = match live.open_budget(raise).await {
            Ok(()) => {
                live.start_subagents();
                live.begin_with_hooks(submitted, origin.as_str()).await
            }
            Err(error) => Err(error.into()),
        };
        live.stop_subagents(&driven).await;
        let driven = match driven {
            Ok(ending) => Ok(ending),
            Err(stop) => live.close_run(stop).await,
        };
        let ending = match driven {
            Ok(ending) => ending,
            Err(error) => {
                live.report(
                    &session,
                    &RunEnding {
                        outcome: RunOutcome::Failed,
                        reason: Some(error.to_string()),
                    },
                );
                return Err(error);
            }
        };
        live.run_end_hooks(&ending).await;
        live.write_usage().await;
        let mut report = live.report(&session, &ending);
        let writer = live.writer;
        report.waiting = self.subagents.waiting_tasks().await;
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        self.enqueue_memory_flush(&report).await;
        self.collect_garbage_sometimes(&report.run).await;
        Ok(report)
    }

    /// What a run works with.
    pub(crate) fn active_run(
        &mut self,
        writer: Box<dyn JournalWriter>,
        run: RunId,
        turn: crate::TurnSetup,
        options: RunOptions,
    ) -> ActiveRun<'_> {
        self.update_freeze();
        let place = self.agent.parts.place.clone();
        let files = self.files(writer.fence());
        let limit = Duration::from_secs(self.agent.policy().run_timeout_seconds);
        let halt = Halt::new(options.cancel.clone(), limit, writer.lease_lost())
            .with_inbox(options.inbox.clone());
        let key = RunKey {
            session: self.id.clone(),
            run: run.clone(),
        };
        let recorded = Arc::new(Recorded::new(
            files.clone(),
            place.changes(&self.owner),
            key,
        ));
        let offload = self.offload(&files, &turn.tools);
        let loader = MediaLoader::new(
            files.clone(),
            self.agent.workspace().definition.paths.runtime.clone(),
        );
        ActiveRun {
            tool_files: Arc::new(Frozen::new(
                CallGate::new(&self.agent).guarded_files(recorded),
                self.freeze.clone(),
            )),
            session: self,
            writer,
            run,
            system: turn.prompt.parts().into(),
            tools: turn.tools,
            params: turn.params,
            fallback_setups: turn.fallback_setups,
            options,
            halt,
            files,
            offload,
            loader,
            encoded: Arc::default(),
            head_tokens: OnceLock::new(),
            unlogged_usage: Vec::new(),
            event_count: 0,
            budget: Budget::unlimited(),
            budget_cut: None,
            hook_output: PendingHookOutput::default(),
        }
    }

    /// Takes what is too long for the conversation; none if that is switched off, or no path could
    /// name its folder.
    pub(crate) fn offload(&self, files: &Arc<dyn Vfs>, tools: &Registry) -> Option<Offload> {
        let workspace = self.agent.workspace();
        if workspace.config().disable.contains(FeatureSwitch::Offload) {
            return None;
        }
        let readers = ReadTools::available_in(tools, tools.surface());
        let redactor = self.sessions.redactor().clone();
        Offload::new(workspace, &self.id, files.clone(), redactor, readers).ok()
    }

    /// An input as it goes on record.
    async fn offload_input(
        &self,
        offload: Option<Offload>,
        run: &RunId,
        content: Vec<Block>,
    ) -> Vec<Block> {
        match offload {
            Some(offload) => offload.offload_input(run, content, self.window()).await,
            None => content,
        }
    }

    /// Takes the session for writing and brings our state up to date. Also returns what was torn.
    pub(crate) async fn open_for_writing(
        &mut self,
        wait: LockWait,
        missing: IfMissing,
    ) -> Result<(Box<dyn JournalWriter>, Option<String>), AgentError> {
        let journals = self.sessions.clone();
        let mut opened = journals.open(&self.id, self.position, wait).await;
        if matches!(opened, Err(StoreError::NotFound(_))) && missing == IfMissing::Create {
            let from = self
                .spawned
                .take()
                .map(|spawned| SessionOrigin::Spawned(Box::new(spawned)));
            opened = match journals.create(&self.id, from).await {
                // Someone else was faster: it is their session now, to be waited for as told.
                Err(StoreError::Exists(_) | StoreError::Locked { .. }) => {
                    journals.open(&self.id, None, wait).await
                }
                other => other,
            };
        }
        let OpenedSession {
            state,
            writer,
            torn,
        } = opened?;
        if let Some(state) = state {
            self.replace_state(state);
        }
        self.position = Some(writer.position());
        let torn = torn.map(|torn| {
            format!(
                "line {} of the journal was not written whole; {} bytes were cut off",
                torn.line, torn.bytes
            )
        });
        Ok((writer, torn))
    }

    fn replace_state(&mut self, state: SessionState) {
        self.seen_files = Arc::new(FileVersions::new(state.seen.clone()));
        self.active_skills = Arc::new(ActiveSkills::new(&state.skills));
        self.state = state;
        self.update_freeze();
    }

    pub(crate) async fn append(
        &mut self,
        writer: &mut dyn JournalWriter,
        entries: Vec<Entry>,
    ) -> Result<(), AgentError> {
        let lines = writer.append(entries).await?;
        self.apply(&lines)?;
        self.position = Some(writer.position());
        Ok(())
    }

    /// The point before turn `turn` (from 1).
    pub fn rewind_point(&self, turn: usize) -> Result<RewindPoint, AgentError> {
        let points = self.rewind_points();
        let turns = points.len();
        let wanted = turn.checked_sub(1).and_then(|i| points.into_iter().nth(i));
        wanted.ok_or_else(|| AgentError::NoSuchTurn {
            session: self.id.clone(),
            turn,
            turns,
        })
    }
}

/// What to do about a session that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Fail,
}

impl ActiveRun<'_> {
    fn report(&mut self, session: &SessionId, ending: &RunEnding) -> RunReport {
        let state = &self.session.state;
        let text = state.final_text();
        let (steps, usage, cost) = self.session.last_run_totals();
        let RunEnding { outcome, reason } = ending;
        let redactor = self.session.sessions.redactor();
        let reason = reason
            .as_ref()
            .map(|reason| redactor.redact(reason).into_owned());
        self.emit(EventKind::RunEnded {
            outcome: *outcome,
            reason: reason.clone(),
            text: text.clone(),
            steps,
            usage,
            cost,
        });
        RunReport {
            session: session.clone(),
            run: self.run.clone(),
            outcome: *outcome,
            reason,
            text,
            steps,
            usage,
            cost,
            waiting: Vec::new(),
        }
    }
}

impl Session {
    fn last_run_totals(&self) -> (u32, stead_core::Usage, Option<stead_core::Usd>) {
        let run: Option<&Run> = self.state.run.as_ref().or(self.state.last_run.as_ref());
        run.map_or_else(Default::default, |run| (run.steps, run.usage, run.cost))
    }
}
