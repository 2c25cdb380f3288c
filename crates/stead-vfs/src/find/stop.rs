//! When a search ends early.

use crate::search::Bounds;
use std::future::Future;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Cancelled,
    Late,
}

/// The two things that end a search.
#[derive(Debug)]
pub(crate) struct Stop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Stop {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self {
            cancel: bounds.cancel.clone(),
            deadline: bounds.deadline,
        }
    }

    /// What `work` gives, unless the search ends before it.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, Ended> {
        // Asked first, for work that never waits would never be stopped.
        if self.cancel.is_cancelled() {
            return Err(Ended::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(Ended::Late);
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Ended::Cancelled),
            done = work => Ok(done),
            () = tokio::time::sleep_until(self.deadline.into()) => Err(Ended::Late),
        }
    }
}
