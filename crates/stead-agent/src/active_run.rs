//! A run that is going on: the session, its journal, and whoever listens.

use crate::halt::{Halt, HaltReason};
use crate::hooks::PendingHookOutput;
use crate::offload::{MediaLoader, Offload};
use crate::{
    AgentError, ApprovalPolicy, BackgroundTaskPolicy, Budget, BudgetError, Inbox, Pinned, Session,
    StopCause, TurnSetup, UsageRecord, WaitingTask,
};
use std::fmt;
use std::sync::{Arc, OnceLock};
use stead_core::{
    BudgetExhausted, Entry, Event, EventKind, JournalLine, Message, NoticeLevel, RunId, RunOutcome,
    SessionId, SetEntry, Usage, Usd,
};
use stead_model::{Encoded, ModelError, Params, SystemPart};
use stead_store::{JournalWriter, LockWait};
use stead_tools::{ActiveSkills, Registry};
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

/// Hears the events of a run as they happen. Called in order, from the task that drives the run, so
/// it must be quick.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// How a run is to be carried out.
#[derive(Clone)]
pub struct RunOptions {
    /// Hears what happens.
    pub listener: Listener,
    /// Stops the run.
    pub cancel: CancellationToken,
    /// Answers questions.
    pub approvals: ApprovalPolicy,
    /// Whether to wait for a session that another process writes.
    pub wait: LockWait,
    /// Whether the input is pinned: shown word for word whatever else is left out later.
    pub pin: Pinned,
    /// What may be spent, where another run pays for it; none = as the settings say.
    pub budget: Option<Budget>,
    /// Takes what is said while the run goes on.
    pub inbox: Option<Arc<Inbox>>,
    /// What becomes of tasks in the background when the model is done.
    pub background_tasks: BackgroundTaskPolicy,
    /// What the person changes of how the session goes on, before the run begins. What is so
    /// already is not on record.
    pub settings: Vec<SetEntry>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            listener: Arc::new(|_| {}),
            cancel: CancellationToken::new(),
            approvals: ApprovalPolicy::default(),
            wait: LockWait::No,
            pin: Pinned::No,
            budget: None,
            inbox: None,
            background_tasks: BackgroundTaskPolicy::default(),
            settings: Vec::new(),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("approvals", &self.approvals)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct RunReport {
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// How it ended, or that it is parked.
    pub outcome: RunOutcome,
    /// More words, where there are any.
    pub reason: Option<String>,
    /// The final text.
    pub text: String,
    /// Model calls made.
    pub steps: u32,
    /// Tokens used.
    pub usage: Usage,
    /// Money spent; absent when any part is not known.
    pub cost: Option<Usd>,
    /// Tasks of subagents that wait for a person's decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingTask>,
}

/// Why the loop stopped before the machine said so.
#[derive(Debug)]
pub(crate) enum RunStop {
    /// From outside.
    Halted(HaltReason),
    /// The model could not be asked.
    Model(ModelError),
    /// A tool says nobody but a person can help.
    Tool(String),
    /// A hook says so.
    Hook(String),
    /// Too little money, or too few tokens, are left to ask the model.
    Budget(BudgetExhausted),
    /// Nothing more can be recorded.
    Journal(AgentError),
}

impl From<HaltReason> for RunStop {
    fn from(halted: HaltReason) -> Self {
        Self::Halted(halted)
    }
}

impl From<ModelError> for RunStop {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<BudgetError> for RunStop {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::Exhausted(exhausted) => Self::Budget(exhausted),
            BudgetError::Store(error) => Self::Journal(error.into()),
        }
    }
}

impl From<AgentError> for RunStop {
    fn from(error: AgentError) -> Self {
        Self::Journal(error)
    }
}

impl From<RunStop> for AgentError {
    fn from(stop: RunStop) -> Self {
        match stop {
            RunStop::Halted(HaltReason::Cancelled) => Self::Stopped(StopCause::Cancelled),
            RunStop::Halted(HaltReason::Interrupted) => Self::Stopped(StopCause::Interrupted),
            RunStop::Halted(HaltReason::TimedOut) => Self::Stopped(StopCause::TimedOut),
            RunStop::Halted(HaltReason::TakenOver) => Self::Stopped(StopCause::TakenOver),
            RunStop::Model(error) => Self::Model(error),
            RunStop::Tool(reason) => Self::Stopped(StopCause::Tool { reason }),
            RunStop::Hook(reason) => Self::Hook(reason),
            RunStop::Budget(exhausted) => Self::Stopped(StopCause::Budget(exhausted)),
            RunStop::Journal(error) => error,
        }
    }
}

/// A run that is going on.
pub(crate) struct ActiveRun<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) writer: Box<dyn JournalWriter>,
    pub(crate) run: RunId,
    pub(crate) system: Arc<[SystemPart]>,
    /// What the model can call.
    pub(crate) tools: Registry,
    /// Settings of each request.
    pub(crate) params: Params,
    /// The same for others who may answer in the model's place.
    pub(crate) fallback_setups: Vec<(String, TurnSetup)>,
    pub(crate) options: RunOptions,
    pub(crate) halt: Halt,
    /// The tree as this session sees it.
    pub(crate) files: Arc<dyn Vfs>,
    /// The same as its tools see it: rules hold, and every change is remembered.
    pub(crate) tool_files: Arc<dyn Vfs>,
    /// Takes what is too long for the conversation; none if that is switched off.
    pub(crate) offload: Option<Offload>,
    /// Loads what was taken of it.
    pub(crate) loader: MediaLoader,
    pub(crate) encoded: Arc<Encoded>,
    /// An estimate of the prompt and the tools, made when first asked for.
    pub(crate) head_tokens: OnceLock<u64>,
    /// What calls used and is not written down yet.
    pub(crate) unlogged_usage: Vec<UsageRecord>,
    pub(crate) event_count: u64,
    /// What it may spend.
    pub(crate) budget: Budget,
    /// Why the newest answer was cut off, if its budget did it.
    pub(crate) budget_cut: Option<String>,
    /// What hooks said that is needed later.
    pub(crate) hook_output: PendingHookOutput,
}

impl ActiveRun<'_> {
    /// Records entries and applies them: the only way a session's state changes. Returns them as
    /// they were written, without secrets.
    pub(crate) async fn record(
        &mut self,
        entries: Vec<Entry>,
    ) -> Result<Vec<JournalLine>, AgentError> {
        let lines = self.writer.append(entries).await?;
        self.session.apply(&lines)?;
        self.session.position = Some(self.writer.position());
        Ok(lines)
    }

    /// What can be called, as whoever gave the newest answer was shown it.
    pub(crate) fn callable_tools(&self) -> &Registry {
        let answered = self.session.state.model.as_deref();
        let other = self
            .fallback_setups
            .iter()
            .find(|(name, _)| answered == Some(name.as_str()));
        other.map_or(&self.tools, |(_, turn)| &turn.tools)
    }

    /// The conversation as a model is sent it, with all that is shown in it.
    pub(crate) async fn messages(&mut self) -> Vec<Arc<Message>> {
        self.loader.load(self.session.state.messages()).await
    }

    /// Tells the listener, but no secret; and hooks, if it is a warning.
    pub(crate) fn emit(&mut self, kind: EventKind) {
        if let EventKind::Notice {
            level: NoticeLevel::Warning,
            text,
        } = &kind
        {
            self.note_warning(text);
        }
        self.notify_listener(kind);
    }

    /// Tells the listener alone.
    pub(crate) fn notify_listener(&mut self, kind: EventKind) {
        let kind = kind.redacted(self.session.sessions.redactor());
        self.event_count += 1;
        let event = Event {
            seq: self.event_count,
            run: self.run.clone(),
            source: Vec::new(),
            kind,
        };
        (self.options.listener)(&event);
    }
}

impl Session {
    /// Takes in lines that were just written.
    pub(crate) fn apply(&mut self, lines: &[JournalLine]) -> Result<(), stead_core::FoldError> {
        let mut rebinds = false;
        for line in lines {
            self.state.apply(line.seq, &line.entry)?;
            match &line.entry {
                Entry::Result(result) => {
                    rebinds |= result.change.is_some() || result.untrusted;
                    self.seen_files.record(&result.seen);
                    result
                        .activates
                        .iter()
                        .for_each(|activation| self.active_skills.record(activation));
                }
                Entry::Rewind(_) | Entry::Compaction(_) => {
                    self.active_skills = Arc::new(ActiveSkills::new(&self.state.skills))
                }
                Entry::Session(_)
                | Entry::User(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Steer(_)
                | Entry::Pin(_)
                | Entry::Hook(_)
                | Entry::End(_) => {}
                Entry::Set(_) => rebinds = true,
            }
        }
        self.update_freeze();
        if rebinds {
            // What binds it binds those who work for it from here on, also in the same step.
            self.subagents
                .update_permissions(self.agent.clone(), self.permissions());
        }
        Ok(())
    }
}
