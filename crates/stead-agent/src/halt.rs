//! When to stop: someone cancels, or the time is up.

use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halted {
    Cancelled,
    TimedOut,
    /// Another process took the session over.
    TakenOver,
}

/// Watches for the end of a run.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    pub(crate) cancel: CancellationToken,
    deadline: Instant,
    lost: CancellationToken,
}

impl Halt {
    pub(crate) fn new(cancel: CancellationToken, limit: Duration, lost: CancellationToken) -> Self {
        // Beyond any life of a process, and within any clock.
        const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        Self { cancel, deadline: Instant::now() + limit.min(LONGEST), lost }
    }

    /// Returns when the run must stop; never before.
    pub(crate) async fn wait(&self) -> Halted {
        tokio::select! {
            biased;
            () = self.lost.cancelled() => Halted::TakenOver,
            () = self.cancel.cancelled() => Halted::Cancelled,
            () = tokio::time::sleep_until(self.deadline) => Halted::TimedOut,
        }
    }

    /// Whether it must stop now.
    pub(crate) fn check(&self) -> Result<(), Halted> {
        if self.lost.is_cancelled() {
            Err(Halted::TakenOver)
        } else if self.cancel.is_cancelled() {
            Err(Halted::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(Halted::TimedOut)
        } else {
            Ok(())
        }
    }
}
