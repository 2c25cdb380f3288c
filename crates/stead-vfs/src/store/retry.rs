//! Trying again when others were faster.

use std::time::Duration;
use stead_store::DocVersion;

/// Each loss means that someone else won, so this many in a row are rare.
const MAX_TRIES: u32 = 64;
/// Losses after which a writer steps back for a moment.
const EAGER_TRIES: u32 = 3;
const MAX_PAUSE_MS: u64 = 64;

/// Counts tries, and waits between them.
#[derive(Debug, Default)]
pub(super) struct RetryBackoff(u32);

impl RetryBackoff {
    /// Whether to try (again), after a pause if it was tried often already.
    pub(super) async fn next_try(&mut self) -> bool {
        self.0 += 1;
        if self.0 > MAX_TRIES {
            return false;
        }
        if self.0 > EAGER_TRIES {
            let most = (1 << (self.0 - EAGER_TRIES).min(16)).min(MAX_PAUSE_MS);
            // Versions end in random bits; those who lost together must not come back together.
            let pause_us = DocVersion::fresh().0 as u64 % (most * 1000);
            tokio::time::sleep(Duration::from_micros(pause_us)).await;
        }
        true
    }

    pub(super) fn is_first(&self) -> bool {
        self.0 == 1
    }
}
