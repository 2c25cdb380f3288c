//! Ending a search early: when it is cancelled, or at its deadline.
//!
//! Effects: the clock.

use crate::search::Bounds;
use std::future::Future;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// The reason why a search ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchInterrupted {
    Cancelled,
    TimedOut,
}

/// The conditions that end a search: cancellation and a deadline.
#[derive(Debug)]
pub(crate) struct SearchStop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl SearchStop {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            cancel: bounds.cancel.clone(),
            deadline: bounds.deadline,
        }
    }

    /// Returns the result of `work`, unless the search ends before it.
    pub(crate) async fn run<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, SearchInterrupted> {
        // Checked first, because work that never waits could never be stopped.
        if self.cancel.is_cancelled() {
            return Err(SearchInterrupted::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(SearchInterrupted::TimedOut);
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(SearchInterrupted::Cancelled),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline.into()) => Err(SearchInterrupted::TimedOut),
        }
    }
}
