//! When to stop: someone cancels, or the time is up.

use crate::Inbox;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltReason {
    Cancelled,
    /// By a message that goes before it.
    Interrupted,
    TimedOut,
    /// Another process took the session over.
    TakenOver,
}

/// Watches for the end of a run.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    pub(crate) cancel: CancellationToken,
    deadline: Instant,
    lease_lost: CancellationToken,
    inbox: Option<Arc<Inbox>>,
}

impl Halt {
    pub(crate) fn new(cancel: CancellationToken, limit: Duration, lost: CancellationToken) -> Self {
        // Beyond any life of a process, and within any clock.
        const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        Self {
            cancel,
            deadline: Instant::now() + limit.min(LONGEST),
            lease_lost: lost,
            inbox: None,
        }
    }

    /// The same, which a message to `inbox` may end.
    pub(crate) fn with_inbox(self, inbox: Option<Arc<Inbox>>) -> Self {
        Self { inbox, ..self }
    }

    async fn wait_for_interrupt(&self) {
        match &self.inbox {
            Some(inbox) => inbox.wait_for_interrupt().await,
            None => std::future::pending().await,
        }
    }

    /// Returns when the run must stop; never before.
    pub(crate) async fn wait(&self) -> HaltReason {
        tokio::select! {
            biased;
            () = self.lease_lost.cancelled() => HaltReason::TakenOver,
            () = self.cancel.cancelled() => HaltReason::Cancelled,
            () = self.wait_for_interrupt() => HaltReason::Interrupted,
            () = tokio::time::sleep_until(self.deadline) => HaltReason::TimedOut,
        }
    }

    /// Whether it must stop now.
    pub(crate) fn check(&self) -> Result<(), HaltReason> {
        if self.lease_lost.is_cancelled() {
            Err(HaltReason::TakenOver)
        } else if self.cancel.is_cancelled() {
            Err(HaltReason::Cancelled)
        } else if self
            .inbox
            .as_ref()
            .is_some_and(|inbox| inbox.has_interrupt())
        {
            Err(HaltReason::Interrupted)
        } else if Instant::now() >= self.deadline {
            Err(HaltReason::TimedOut)
        } else {
            Ok(())
        }
    }
}
