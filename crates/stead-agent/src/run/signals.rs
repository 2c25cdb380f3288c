//! Signals that reach a run from outside: cancellation, the time limit, a lost lease, and messages.
//!
//! Effects: the clock.

use crate::MessageQueue;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HaltReason {
    Cancelled,
    /// A message arrived that ends the run.
    Interrupted,
    TimedOut,
    /// Another process took the session over.
    TakenOver,
}

/// The signals that reach one run.
#[derive(Debug, Clone)]
pub(crate) struct RunSignals {
    cancel: CancellationToken,
    deadline: Instant,
    lease_lost: CancellationToken,
    queue: Option<Arc<MessageQueue>>,
}

impl RunSignals {
    /// Returns the signals of work that ends after `limit`, or when either token is cancelled.
    pub(crate) fn new(
        cancel: CancellationToken,
        limit: Duration,
        lease_lost: CancellationToken,
    ) -> Self {
        // Longer than any process runs, and short enough for any clock.
        const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        Self {
            cancel,
            deadline: Instant::now() + limit.min(LONGEST),
            lease_lost,
            queue: None,
        }
    }

    /// Adds the messages of an queue.
    pub(crate) fn with_queue(self, queue: Option<Arc<MessageQueue>>) -> Self {
        Self { queue, ..self }
    }

    /// The token that cancels the run.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
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

    /// Returns an error if the run must stop now.
    pub(crate) fn check(&self) -> Result<(), HaltReason> {
        let interrupted = || {
            self.queue
                .as_ref()
                .is_some_and(|queue| queue.has_interrupt())
        };
        if self.lease_lost.is_cancelled() {
            Err(HaltReason::TakenOver)
        } else if self.cancel.is_cancelled() {
            Err(HaltReason::Cancelled)
        } else if interrupted() {
            Err(HaltReason::Interrupted)
        } else if Instant::now() >= self.deadline {
            Err(HaltReason::TimedOut)
        } else {
            Ok(())
        }
    }

    /// Whether a steering message waits.
    pub(crate) fn has_steering(&self) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|queue| queue.has_steering())
    }

    /// Returns when a steering message waits; never before.
    pub(crate) async fn wait_for_steering(&self) {
        match &self.queue {
            Some(queue) => queue.wait_for_steering().await,
            None => std::future::pending().await,
        }
    }

    /// The queue, if messages can reach the run.
    pub(crate) fn queue(&self) -> Option<&Arc<MessageQueue>> {
        self.queue.as_ref()
    }

    async fn wait_for_interrupt(&self) {
        match &self.queue {
            Some(queue) => queue.wait_for_interrupt().await,
            None => std::future::pending().await,
        }
    }
}
