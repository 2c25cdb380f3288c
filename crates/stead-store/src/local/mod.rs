//! What stores without a server decide for themselves: who holds a lease, which job is next.
//!
//! No I/O and no clock: the time is handed in, in milliseconds since any moment that stays the
//! same.

mod jobs;
mod lease_record;

pub(crate) use jobs::{AddOutcome, JobTable, Settlement};
pub(crate) use lease_record::LeaseRecord;

use std::time::Duration;

/// `wait` from `now`.
pub(crate) fn add_ms(now_ms: i64, wait: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
