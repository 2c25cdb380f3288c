//! The newest part of an output, told now and then.

use std::time::{Duration, Instant};

/// How often listeners are told.
const INTERVAL: Duration = Duration::from_millis(100);
/// How much they are told at once; what came before it in the same interval is left out.
const MAX_BYTES: usize = 4 * 1024;

/// What was written since listeners were last told.
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
        // A character that is not whole yet waits for its end.
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
