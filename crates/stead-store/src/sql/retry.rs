//! Trying again what others or the network spoiled.

use super::SqlStore;
use super::driver::Fault;
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::time::Instant;

/// How long an operation is tried: long enough for a server to start again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Waits after the first and later failures, where others were in the way.
const CONTENDED: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(250));
/// The same, where the server is away.
const AWAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What is known of the attempts before this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    /// None of them did anything.
    Undone,
    /// An answer was lost: it may have been made.
    Unknown,
}

impl SqlStore {
    pub(super) async fn retrying<'a, T>(
        &'a self,
        mut attempt: impl FnMut(Earlier) -> BoxFuture<'a, Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let mut earlier = Earlier::Undone;
        let mut failures = 0;
        loop {
            let fault = match attempt(earlier).await {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            let Some((shortest, longest)) = delays(&fault).filter(|_| began.elapsed() < PATIENCE)
            else {
                return Err(self.give_up(fault));
            };
            if matches!(fault, Fault::Lost(_)) {
                earlier = Earlier::Unknown;
            }
            tracing::debug!(place = %self.place, ?fault, failures, "trying again");
            tokio::time::sleep(pause(shortest, longest, failures, chance())).await;
            failures += 1;
        }
    }
}

impl SqlStore {
    /// The same, for an operation that is nothing else.
    pub(super) fn retrying_boxed<'a, T: Send + 'a>(
        &'a self,
        attempt: impl FnMut(Earlier) -> BoxFuture<'a, Result<T, Fault>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        self.retrying(attempt).boxed()
    }
}

/// The shortest and longest wait after such a fault; none if trying again would not help.
fn delays(fault: &Fault) -> Option<(Duration, Duration)> {
    match fault {
        Fault::Lost(_) => Some(AWAY),
        Fault::Again(_) => Some(CONTENDED),
        Fault::Duplicate(_) | Fault::Refused(_) | Fault::Odd(_) | Fault::Final(_) => None,
    }
}

/// Doubles with each failure; the later half of it is up to chance, so that rivals do not meet
/// again.
fn pause(shortest: Duration, longest: Duration, failures: u32, chance: f64) -> Duration {
    let full = shortest
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(longest);
    full.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
}

/// Anything from 0 to 1.
fn chance() -> f64 {
    // The last bytes of such an id are random.
    let [.., a, b] = uuid::Uuid::now_v7().into_bytes();
    f64::from(u16::from_le_bytes([a, b])) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_vary_by_half() {
        let (shortest, longest) = CONTENDED;
        let at = |failures, chance| pause(shortest, longest, failures, chance).as_millis();
        assert_eq!(
            [at(0, 1.0), at(1, 1.0), at(2, 1.0), at(6, 1.0), at(40, 1.0)],
            [4, 8, 16, 250, 250]
        );
        assert_eq!([at(0, 0.0), at(40, 0.0)], [2, 125]);
    }
}
