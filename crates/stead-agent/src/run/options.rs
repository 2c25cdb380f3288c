//! How a run is carried out, and how it ended.

use crate::session::Pinned;
use crate::{ApprovalPolicy, Budget, MessageQueue, WaitingTask};
use std::fmt;
use std::sync::Arc;
use stead_core::{
    Event, InputId, JournalLine, Origin, RunId, RunOutcome, SessionId, SetEntry, Usage, Usd,
};
use stead_store::LockWait;
use tokio_util::sync::CancellationToken;

/// Receives the events of a run as they happen. It is called in order from the task that drives the
/// run, so it must be quick.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Receives the journal entries of a run after they were written, with the term of the writer
/// ([`EventId::epoch`](stead_core::EventId)). It is called in order from the task that drives the
/// run, so it must be quick.
pub type EntryListener = Arc<dyn Fn(u64, &[JournalLine]) + Send + Sync>;

/// The options of a run.
#[derive(Clone)]
pub struct RunOptions {
    /// The event listener.
    pub listener: Listener,
    /// The listener for journal entries.
    pub entries: Option<EntryListener>,
    /// Who gave the input.
    pub origin: Origin,
    /// The rows of the session's inbox that the input is made of.
    pub inputs: Vec<InputId>,
    /// Stops the run.
    pub cancel: CancellationToken,
    /// How questions about calls are answered.
    pub approvals: ApprovalPolicy,
    /// Whether to wait for a session that another process writes.
    pub wait: LockWait,
    /// Whether the input is pinned: shown word for word whatever else is left out later.
    pub pin: Pinned,
    /// The budget, if another run pays; none = the budget of the settings.
    pub budget: Option<Budget>,
    /// The inbox for messages during the run.
    pub inbox: Option<Arc<MessageQueue>>,
    /// What happens to background tasks when the model is done.
    pub background_tasks: BackgroundTaskPolicy,
    /// Session settings to apply before the run. Settings that would change nothing are not recorded.
    pub settings: Vec<SetEntry>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            listener: Arc::new(|_| {}),
            entries: None,
            origin: Origin::default(),
            inputs: Vec::new(),
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
    /// The outcome; a parked run has not ended.
    pub outcome: RunOutcome,
    /// Details of the outcome, if there are any.
    pub reason: Option<String>,
    /// The final text.
    pub text: String,
    /// Model calls made.
    pub steps: u32,
    /// Tokens used.
    pub usage: Usage,
    /// The cost; none if any part of it is unknown.
    pub cost: Option<Usd>,
    /// Tasks of subagents that wait for a person's decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingTask>,
}

/// What happens to background tasks when the model is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundTaskPolicy {
    /// The run waits for them, and the model is told their results.
    #[default]
    Wait,
    /// They go on; the caller wakes the session when they are done.
    Detach,
}
