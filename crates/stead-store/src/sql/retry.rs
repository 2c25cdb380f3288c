//! Retries of database operations after conflicts and lost connections.
//!
//! Effects: the clock, randomness.

use super::SqlStore;
use super::driver::DbFault;
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which an operation is retried: long enough for a server to restart.
const RETRY_BUDGET: Duration = Duration::from_secs(10);
/// The first and the longest delay after conflicts.
const CONTENDED_DELAYS: (Duration, Duration) =
    (Duration::from_millis(4), Duration::from_millis(250));
/// The first and the longest delay after lost connections.
const DISCONNECTED_DELAYS: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(1));

/// What is known about the attempts before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriorAttempts {
    /// None of them was applied.
    NotApplied,
    /// A response was lost: an attempt may have been applied.
    Unknown,
}

impl SqlStore {
    pub(super) async fn retry<'a, T>(
        &'a self,
        mut attempt: impl FnMut(PriorAttempts) -> BoxFuture<'a, Result<T, DbFault>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let mut earlier = PriorAttempts::NotApplied;
        let mut failures = 0;
        loop {
            let fault = match attempt(earlier).await {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            let Some((shortest, longest)) =
                delays(&fault).filter(|_| began.elapsed() < RETRY_BUDGET)
            else {
                return Err(self.store_error(fault));
            };
            if matches!(fault, DbFault::Lost(_)) {
                earlier = PriorAttempts::Unknown;
            }
            tracing::debug!(place = %self.place, ?fault, failures, "trying again");
            tokio::time::sleep(backoff(shortest, longest, failures, random_fraction())).await;
            failures += 1;
        }
    }
}

impl SqlStore {
    /// Like [`Self::retry`], for operations that consist only of it.
    pub(super) fn retry_boxed<'a, T: Send + 'a>(
        &'a self,
        attempt: impl FnMut(PriorAttempts) -> BoxFuture<'a, Result<T, DbFault>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        self.retry(attempt).boxed()
    }
}

/// Returns the shortest and longest delay after a fault, or `None` if a retry would not help.
fn delays(fault: &DbFault) -> Option<(Duration, Duration)> {
    match fault {
        DbFault::Lost(_) => Some(DISCONNECTED_DELAYS),
        DbFault::Contended(_) => Some(CONTENDED_DELAYS),
        DbFault::Duplicate(_) | DbFault::Refused(_) | DbFault::Corrupt(_) | DbFault::Final(_) => {
            None
        }
    }
}

/// Returns a delay that doubles with each failure. Its second half is random, so that rivals do not
/// collide again.
fn backoff(shortest: Duration, longest: Duration, failures: u32, chance: f64) -> Duration {
    let full = shortest
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(longest);
    full.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

/// Returns a random number from 0 to 1.
fn random_fraction() -> f64 {
    // The last bytes of such an id are random.
    let [.., a, b] = uuid::Uuid::now_v7().into_bytes();
    f64::from(u16::from_le_bytes([a, b])) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_vary_by_half() {
        let (shortest, longest) = CONTENDED_DELAYS;
        let at = |failures, chance| backoff(shortest, longest, failures, chance).as_millis();
        assert_eq!(
            [at(0, 1.0), at(1, 1.0), at(2, 1.0), at(6, 1.0), at(40, 1.0)],
            [4, 8, 16, 250, 250]
        );
        assert_eq!([at(0, 0.0), at(40, 0.0)], [2, 125]);
    }
}
