//! One conversation.

use crate::begin::{Begin, Origin};
use crate::driver::Ending;
use crate::gate::Grant;
use crate::halt::Halt;
use crate::hooks::Hooked;
use crate::live::Live;
use crate::offload::{Loader, Offload};
use crate::{Agent, AgentError, Budget, Crew, Pinned, RunOptions, RunReport};
use futures_util::future::BoxFuture;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stead_core::{
    Allowance, Beginning, Block, Entry, EventKind, Fork, Level, Notice, Outcome, Owner, Pin,
    Rewind, Run, RunId, SessionId, SessionState, Spawned, Turn, UserInput,
};
use stead_store::{JournalWriter, Opened, Position, RunKey, Sessions, StoreError, Wait};
use stead_tools::{ActiveSkills, Readers, Registry, Seen};
use stead_vfs::{Freeze, Frozen, Recorded, Vfs};
use stead_workspace::Switch;

/// One conversation of an agent. Owned by one task; between runs it holds no file and no lock.
#[derive(Debug)]
pub struct Session {
    /// The agent of the workspace that acts.
    pub(crate) agent: Arc<Agent>,
    /// The workspace's own.
    pub(crate) home: Arc<Agent>,
    pub(crate) owner: Owner,
    pub(crate) id: SessionId,
    /// Where it is kept.
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) state: SessionState,
    /// Where the journal ended when we last saw it.
    pub(crate) position: Option<Position>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) active: Arc<ActiveSkills>,
    /// What people allowed for good.
    pub(crate) granted: Vec<Grant>,
    /// Those who work for it.
    pub(crate) crew: Arc<Crew>,
    /// Those it works with for its parent, while that is at work here: what binds the parent now
    /// binds it, too.
    pub(crate) above: Option<Arc<Crew>>,
    /// What it begins with, if it is to begin as that of a subagent.
    pub(crate) spawned: Option<Spawned>,
    /// Whether hooks were told that this process has taken it up.
    pub(crate) taken_up: bool,
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
        Self::of_child(agent.clone(), agent, owner, id, None)
    }

    /// A session of `agent`, one of those of the workspace of `home`.
    pub(crate) fn of_child(
        home: Arc<Agent>,
        agent: Arc<Agent>,
        owner: Owner,
        id: SessionId,
        spawned: Option<Spawned>,
    ) -> Self {
        let sessions = agent.parts.place.sessions(&owner);
        let crew = Arc::new(Crew::new(home.clone(), owner.clone(), id.clone()));
        Self {
            agent,
            home,
            owner,
            id,
            sessions,
            state: SessionState::default(),
            position: None,
            seen: Arc::default(),
            active: Arc::default(),
            granted: Vec::new(),
            crew,
            above: None,
            spawned,
            taken_up: false,
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
        self.go(Begin::Input(input), options).await
    }

    /// Goes on with a session that was interrupted, parked or stopped, without new input.
    pub async fn resume(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        self.go(
            Begin::Resume {
                raise: Allowance::default(),
            },
            options,
        )
        .await
    }

    /// The same for a run that had used up its budget, with `raise` more to spend. That is on
    /// record.
    pub async fn resume_with(
        &mut self,
        raise: Allowance,
        options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        self.go(Begin::Resume { raise }, options).await
    }

    /// Loads the session's state without changing anything, so that it can be shown.
    pub async fn load(&mut self) -> Result<(), AgentError> {
        let mut state = SessionState::default();
        for line in self.sessions.read(&self.id).await? {
            state.apply(line.seq, &line.entry)?;
        }
        self.adopt(state);
        self.position = None;
        Ok(())
    }

    /// Sees to it that what was said is looked through for what to remember. A run without an
    /// answer taught nothing.
    async fn remember_later(&self, report: &RunReport) {
        if report.steps > 0 && report.outcome != Outcome::Parked {
            // A queue that cannot be written loses nothing: the next job begins where the last one
            // ended.
            let _ = self
                .agent
                .enqueue_flush(&self.owner, &self.id, self.state.seq)
                .await;
        }
    }

    /// Keeps the memory of undo within its bounds, after one in fifty of the runs that add to it:
    /// looking through it takes the longer the more sessions there are.
    async fn collect_sometimes(&self, run: &RunId) {
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
            let _ = self.agent.collect(&self.owner, crate::Really::Do).await;
        }
    }

    /// The points that can be returned to, oldest first.
    pub fn rewind_points(&self) -> Vec<RewindPoint> {
        let inputs = self.state.turns.iter().filter(|turn| turn.opens.is_some());
        let point = |(i, turn): (usize, &Turn)| RewindPoint {
            turn: i + 1,
            text: turn.message.text(),
            before: turn.seq - 1,
        };
        inputs.enumerate().map(point).collect()
    }

    /// Returns to the point before turn `turn` (from 1). Nothing is erased: the journal records it.
    pub async fn rewind(&mut self, turn: usize, wait: Wait) -> Result<RewindPoint, AgentError> {
        let mut writer = self.take(wait, Missing::Fail).await?.0;
        if self.state.run.is_some() {
            self.write(
                &mut *writer,
                self.state
                    .close(Outcome::Cancelled, "the session was rewound"),
            )
            .await?;
        }
        let point = self.rewind_point(turn)?;
        self.write(
            &mut *writer,
            vec![Entry::Rewind(Rewind { to: point.before })],
        )
        .await?;
        self.sessions.derive(&self.state, writer.position()).await;
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
        let parent = Beginning::Fork(Fork {
            session: self.id.clone(),
            seq: upto,
        });
        let mut fork = self.agent.session_of(self.owner.clone(), to);
        let mut opened = journals.create(&fork.id, Some(parent)).await?;
        fork.adopt(opened.state.take().unwrap_or_default());
        let lines = journals.read(&self.id).await?;
        let entries = lines
            .into_iter()
            .skip(1)
            .filter(|line| line.seq <= upto)
            .map(|line| line.entry)
            .collect();
        let entries = self.carried_to(&fork, entries).await?;
        fork.write(&mut *opened.writer, entries).await?;
        if fork.state.run.is_some() {
            let close = fork
                .state
                .close(Outcome::Cancelled, "forked while this run was open");
            fork.write(&mut *opened.writer, close).await?;
        }
        journals.derive(&fork.state, opened.writer.position()).await;
        opened.writer.close().await;
        Ok(fork)
    }

    /// Boxed, so that the code of a run is made once, and not in every crate that runs one.
    pub(crate) fn go(
        &mut self,
        begin: Begin,
        options: RunOptions,
    ) -> BoxFuture<'_, Result<RunReport, AgentError>> {
        Box::pin(self.go_through(begin, options))
    }

    async fn go_through(
        &mut self,
        begin: Begin,
        mut options: RunOptions,
    ) -> Result<RunReport, AgentError> {
        let missing = match begin {
            Begin::Input(_) => Missing::Create,
            Begin::Resume { .. } | Begin::Wake => Missing::Fail,
        };
        self.agent.check_budget()?;
        let raise = match &begin {
            Begin::Input(_) | Begin::Wake => Allowance::default(),
            Begin::Resume { raise } => *raise,
        };
        // With a workspace that cannot be read nothing is written, nor where an agent is chosen
        // that there is not.
        let mut turn = self.turn(None).await?;
        let planned = self.plans();
        self.check_agent(&options.set).await?;
        self.granted = self.agent.grants(&self.owner).await?;
        let fresh = RunId::fresh();
        let (begin, mut submitted) = self.submit(begin, &fresh, &options).await?;
        let (mut writer, torn) = self.take(options.wait, missing).await?;
        let mut changed = self.take_part(None).await?;
        self.crew.recover().await.map_err(AgentError::Crew)?;
        let superseded = self.state.run.is_some() && matches!(begin, Begin::Input(_));
        let before = self.recorded_agent();
        let set = self
            .put(&mut *writer, std::mem::take(&mut options.set))
            .await?;
        changed |= self.take_part(None).await? || self.plans() != planned;
        let switched = self.state.runs > 0 && self.recorded_agent() != before;
        if changed {
            turn = self.turn(writer.fence()).await?;
        }
        let begin = match begin {
            Begin::Input(content) => {
                let files = self.files(writer.fence());
                let content = self
                    .shortened(self.offload(&files, &turn.tools), &fresh, content)
                    .await;
                Begin::Input(self.introduced(self.reminded(content)))
            }
            other @ (Begin::Resume { .. } | Begin::Wake) => other,
        };
        let (mut opening, origin) = self.opening(begin, fresh)?;
        let resumed = origin != Origin::Input;
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
        let mut live = self.live(writer, run, turn, options);
        live.record(opening).await?;
        live.emit(EventKind::RunStarted {
            session: session.clone(),
            model: model.clone(),
            resumed,
        });
        live.tell_changes(&set);
        if switched {
            let to = live.session.agent.acting();
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
                level: Level::Warning,
                text,
            });
        }
        if let Some(torn) = torn {
            live.emit(EventKind::Notice {
                level: Level::Warning,
                text: torn,
            });
        }
        let driven = match live.fund(raise).await {
            Ok(()) => {
                live.man();
                live.begin(submitted, origin.as_str()).await
            }
            Err(error) => Err(error.into()),
        };
        live.dismiss(&driven).await;
        let driven = match driven {
            Ok(ending) => Ok(ending),
            Err(stop) => live.wind_up(stop).await,
        };
        let ending = match driven {
            Ok(ending) => ending,
            Err(error) => {
                live.report(
                    &session,
                    &Ending {
                        outcome: Outcome::Failed,
                        reason: Some(error.to_string()),
                    },
                );
                return Err(error);
            }
        };
        live.ended(&ending).await;
        live.write_usage().await;
        let mut report = live.report(&session, &ending);
        let writer = live.writer;
        report.waiting = self.crew.waiting().await;
        self.sessions.derive(&self.state, writer.position()).await;
        writer.close().await;
        self.remember_later(&report).await;
        self.collect_sometimes(&report.run).await;
        Ok(report)
    }

    /// What a run works with.
    pub(crate) fn live(
        &mut self,
        writer: Box<dyn JournalWriter>,
        run: RunId,
        turn: crate::Turn,
        options: RunOptions,
    ) -> Live<'_> {
        self.refreeze();
        let place = self.agent.parts.place.clone();
        let files = self.files(writer.fence());
        let limit = Duration::from_secs(self.agent.policy().run_timeout_seconds);
        let halt =
            Halt::new(options.cancel.clone(), limit, writer.lost()).heeding(options.inbox.clone());
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
        let loader = Loader::new(
            files.clone(),
            self.agent.workspace().definition.tree.runtime.clone(),
        );
        Live {
            tool_files: Arc::new(Frozen::new(self.agent.guard(recorded), self.freeze.clone())),
            session: self,
            writer,
            run,
            system: turn.prompt.parts().into(),
            tools: turn.tools,
            params: turn.params,
            others: turn.others,
            options,
            halt,
            files,
            offload,
            loader,
            encoded: Arc::default(),
            head: OnceLock::new(),
            unlogged: Vec::new(),
            events: 0,
            budget: Budget::unlimited(),
            cut: None,
            hooked: Hooked::default(),
        }
    }

    /// Takes what is too long for the conversation; none if that is switched off, or no path could
    /// name its folder.
    pub(crate) fn offload(&self, files: &Arc<dyn Vfs>, tools: &Registry) -> Option<Offload> {
        let workspace = self.agent.workspace();
        if workspace.config().disable.has(Switch::Offload) {
            return None;
        }
        let readers = Readers::among(tools, tools.surface());
        let redactor = self.sessions.redactor().clone();
        Offload::new(workspace, &self.id, files.clone(), redactor, readers).ok()
    }

    /// An input as it goes on record.
    async fn shortened(
        &self,
        offload: Option<Offload>,
        run: &RunId,
        content: Vec<Block>,
    ) -> Vec<Block> {
        match offload {
            Some(offload) => offload.input(run, content, self.window()).await,
            None => content,
        }
    }

    /// Takes the session for writing and brings our state up to date. Also returns what was torn.
    pub(crate) async fn take(
        &mut self,
        wait: Wait,
        missing: Missing,
    ) -> Result<(Box<dyn JournalWriter>, Option<String>), AgentError> {
        let journals = self.sessions.clone();
        let mut opened = journals.open(&self.id, self.position, wait).await;
        if matches!(opened, Err(StoreError::NotFound(_))) && missing == Missing::Create {
            let from = self
                .spawned
                .take()
                .map(|spawned| Beginning::Spawned(Box::new(spawned)));
            opened = match journals.create(&self.id, from).await {
                // Someone else was faster: it is their session now, to be waited for as told.
                Err(StoreError::Exists(_) | StoreError::Locked { .. }) => {
                    journals.open(&self.id, None, wait).await
                }
                other => other,
            };
        }
        let Opened {
            state,
            writer,
            torn,
        } = opened?;
        if let Some(state) = state {
            self.adopt(state);
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

    fn adopt(&mut self, state: SessionState) {
        self.seen = Arc::new(Seen::new(state.seen.clone()));
        self.active = Arc::new(ActiveSkills::new(&state.skills));
        self.state = state;
        self.refreeze();
    }

    pub(crate) async fn write(
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
pub(crate) enum Missing {
    Create,
    Fail,
}

impl Live<'_> {
    fn report(&mut self, session: &SessionId, ending: &Ending) -> RunReport {
        let state = &self.session.state;
        let text = state.final_text();
        let (steps, usage, cost) = self.session.last_run_totals();
        let Ending { outcome, reason } = ending;
        let redactor = self.session.sessions.redactor();
        let reason = reason
            .as_ref()
            .map(|reason| redactor.clean(reason).into_owned());
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
