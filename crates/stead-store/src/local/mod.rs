//! Leases and queues as pure state, for stores without a server.
//!
//! There is no I/O and no clock: the caller passes the time, in milliseconds since any fixed
//! moment.
//!
//! Effects: none.

mod jobs;
mod lease_record;

pub(crate) use jobs::{AddOutcome, JobTable, Settlement};
pub(crate) use lease_record::LeaseRecord;

use std::time::Duration;

/// Returns the time `wait` after `now_ms`.
pub(crate) fn add_ms(now_ms: i64, wait: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}
