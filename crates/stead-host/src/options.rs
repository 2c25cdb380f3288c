//! How the sessions of a host behave.
//!
//! Effects: none.

use stead_agent::BackgroundTaskPolicy;
use stead_core::AnswerPolicy;

/// How a session of a host behaves. The options are those of whoever opens the session first: all
/// who use it at the same time share its actor ([`Host::open`](crate::Host::open)).
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionOptions {
    /// What happens to background tasks when the model is done.
    pub background_tasks: BackgroundTaskPolicy,
    /// What happens to messages that wait when a run has ended.
    pub queue: QueuePolicy,
    /// How questions are answered in runs whose command does not say it.
    pub answers: AnswerPolicy,
}

/// What happens to messages that wait when a run has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The next run begins with them.
    #[default]
    Continue,
    /// The next run begins with them if the model was done. Otherwise, and when the session is
    /// opened, they wait for the next command, so that whoever sent them can take them back
    /// ([`Command::Withdraw`](stead_core::Command::Withdraw)).
    HoldIfStopped,
    /// They are left to other processes.
    Leave,
}
