//! What calls of models beside the answers of runs cost in this process.
//!
//! Effects: none.

use std::sync::atomic::{AtomicU64, Ordering};
use stead_core::Usd;

/// Counts the calls beside the answers of runs.
#[derive(Debug, Default)]
pub(crate) struct SideSpending {
    calls: AtomicU64,
    unpriced_calls: AtomicU64,
    nanos: AtomicU64,
}

/// The calls beside the answers of runs so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SideTotal {
    /// How many calls there were.
    pub calls: u64,
    /// The cost of those whose price is known.
    pub cost: Usd,
    /// How many have an unknown price.
    pub unpriced_calls: u64,
}

impl SideSpending {
    pub(crate) fn add(&self, cost: Option<Usd>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match cost {
            Some(cost) => self.nanos.fetch_add(cost.nanos(), Ordering::Relaxed),
            None => self.unpriced_calls.fetch_add(1, Ordering::Relaxed),
        };
    }

    pub(crate) fn total(&self) -> SideTotal {
        SideTotal {
            calls: self.calls.load(Ordering::Relaxed),
            cost: Usd::from_nanos(self.nanos.load(Ordering::Relaxed)),
            unpriced_calls: self.unpriced_calls.load(Ordering::Relaxed),
        }
    }
}
