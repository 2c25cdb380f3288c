//! The clock of an agent, which a program may replace.
//!
//! Effects: the clock.

use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;

/// Tells the time. By default it is the machine's.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Fn() -> Timestamp + Send + Sync>>);

impl Clock {
    /// Returns a clock that asks `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(Timestamp::now, |now| now())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
