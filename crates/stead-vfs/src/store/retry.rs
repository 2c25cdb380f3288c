//! Retries of a change in the store after conflicts with other writers.
//!
//! Effects: the clock, randomness.

use std::time::Duration;
use stead_store::DocVersion;

/// Each conflict means that another writer succeeded, so this many in a row are rare.
const MAX_TRIES: u32 = 64;
/// The number of conflicts after which a writer pauses.
const EAGER_TRIES: u32 = 3;
const MAX_PAUSE_MS: u64 = 64;

/// Counts attempts, and pauses between them.
#[derive(Debug, Default)]
pub(super) struct RetryBackoff(u32);

impl RetryBackoff {
    /// Returns whether to try (again), after a pause if there were several attempts.
    pub(super) async fn next_try(&mut self) -> bool {
        self.0 += 1;
        if self.0 > MAX_TRIES {
            return false;
        }
        if self.0 > EAGER_TRIES {
            let most = (1 << (self.0 - EAGER_TRIES).min(16)).min(MAX_PAUSE_MS);
            // Versions end in random bits; writers that lost together must not return together.
            let pause_us = DocVersion::fresh().0 as u64 % (most * 1000);
            tokio::time::sleep(Duration::from_micros(pause_us)).await;
        }
        true
    }

    pub(super) fn is_first(&self) -> bool {
        self.0 == 1
    }
}
