//! Collecting changes of the session index, so that it is not written after every run. The file
//! itself is written by `FileSessions`.
//!
//! Effects: the clock.

use crate::{SessionSummary, StoreError};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stead_core::SessionId;

/// The minimum interval between writes of the index while runs end in quick succession.
const INDEX_INTERVAL: Duration = Duration::from_millis(250);
/// The interval is also at least this multiple of the time that writing takes, which grows with the
/// number of sessions.
const WRITE_TIME_FACTOR: u32 = 20;

/// The summaries that are not yet in the index file, and the time of the next write.
#[derive(Debug, Default)]
pub(super) struct PendingIndexWrites {
    state: Mutex<PendingSummaries>,
}

#[derive(Debug, Default)]
struct PendingSummaries {
    changes: BTreeMap<SessionId, SessionSummary>,
    /// The earliest time of the next write.
    due: Option<Instant>,
}

/// Whether the index must be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexWrite {
    /// The index must be written now.
    Due,
    /// A later write includes the change.
    Later,
}

impl PendingIndexWrites {
    /// Adds a changed summary. Returns whether the index must be written now.
    pub(super) fn add(&self, id: SessionId, summary: SessionSummary) -> IndexWrite {
        let mut state = self.lock();
        state.changes.insert(id, summary);
        match state.due {
            Some(due) if Instant::now() < due => IndexWrite::Later,
            Some(_) | None => IndexWrite::Due,
        }
    }

    /// Passes the changes to `write`, if there are any, and sets the time of the next write.
    pub(super) fn flush(
        &self,
        write: impl FnOnce(BTreeMap<SessionId, SessionSummary>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let begun = Instant::now();
        let changes = {
            let mut state = self.lock();
            if state.changes.is_empty() {
                return Ok(());
            }
            state.due = Some(begun + INDEX_INTERVAL);
            std::mem::take(&mut state.changes)
        };
        let written = write(changes);
        let rest = (begun.elapsed() * WRITE_TIME_FACTOR).max(INDEX_INTERVAL);
        self.lock().due = Some(begun + rest);
        written
    }

    fn lock(&self) -> MutexGuard<'_, PendingSummaries> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
