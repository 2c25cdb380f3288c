//! The options of a run: how it is carried out.
//!
//! Effects: none.

use crate::{ApprovalPolicy, Budget, MessageQueue};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stead_core::{Event, InputId, JournalLine, Origin, Pinned, SetEntry};
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
    pub inbox_rows: Vec<InputId>,
    /// Stops the run.
    pub cancel: CancellationToken,
    /// How questions about calls are answered.
    pub approvals: ApprovalPolicy,
    /// Whether to wait for a session that another process writes.
    pub wait: LockWait,
    /// Whether the input is pinned: shown word for word whatever else is left out later.
    pub pin: Pinned,
    /// The JSON schema that the answer must conform to. An answer that does not is corrected once;
    /// then the run fails.
    pub output_schema: Option<Value>,
    /// The budget, if another run pays; none = the budget of the settings.
    pub budget: Option<Budget>,
    /// The queue of messages that arrive during the run.
    pub queue: Option<Arc<MessageQueue>>,
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
            inbox_rows: Vec::new(),
            cancel: CancellationToken::new(),
            approvals: ApprovalPolicy::default(),
            wait: LockWait::No,
            pin: Pinned::No,
            output_schema: None,
            budget: None,
            queue: None,
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

/// What happens to background tasks when the model is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackgroundTaskPolicy {
    /// The run waits for them, and the model is told their results.
    #[default]
    Wait,
    /// They go on; the caller wakes the session when they are done.
    Detach,
}
