//! Part of spills: the newest part of an output, reported at intervals.
//!
//! Effects: the clock.

use std::time::{Duration, Instant};

/// The interval between two reports.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most that one report contains; what came earlier in the same interval is left out.
const MAX_BYTES: usize = 4 * 1024;

/// The output since the last report.
#[derive(Debug, Default)]
pub(super) struct OutputDeltas {
    pending: Vec<u8>,
    last_sent: Option<Instant>,
}

impl OutputDeltas {
    pub(super) fn push(&mut self, piece: &[u8], listener: &(dyn Fn(String) + Send + Sync)) {
        self.pending
            .extend_from_slice(&piece[piece.len().saturating_sub(MAX_BYTES)..]);
        self.pending
            .drain(..self.pending.len().saturating_sub(MAX_BYTES));
        if self.last_sent.is_none_or(|told| told.elapsed() >= INTERVAL) {
            self.flush(listener);
        }
    }

    pub(super) fn flush(&mut self, listener: &(dyn Fn(String) + Send + Sync)) {
        // An incomplete character waits for its end.
        let whole = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.pending.len(),
        };
        if whole == 0 {
            return;
        }
        let piece: Vec<u8> = self.pending.drain(..whole).collect();
        listener(String::from_utf8_lossy(&piece).into_owned());
        self.last_sent = Some(Instant::now());
    }
}
