//! Keeping the first results of a search in path order, whatever order they arrive in.
//!
//! Effects: none.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Results by path. Once there are more than the limit, later paths need not be searched.
#[derive(Debug)]
pub(super) struct FirstResults<T> {
    limit: usize,
    /// Lets the walkers check without the lock while there is room.
    full: AtomicBool,
    sorted: Mutex<SortedResults<T>>,
}

#[derive(Debug)]
struct SortedResults<T> {
    results: BTreeMap<Box<str>, (T, usize)>,
    weight: usize,
}

impl<T> FirstResults<T> {
    pub(super) fn new(limit: usize) -> Self {
        let kept = SortedResults {
            results: BTreeMap::new(),
            weight: 0,
        };
        Self {
            limit,
            full: AtomicBool::new(false),
            sorted: Mutex::new(kept),
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns whether a result at `path`, or at any path that begins with it, would be beyond the
    /// limit.
    pub(super) fn is_beyond(&self, path: &str) -> bool {
        if !self.full.load(Ordering::Relaxed) {
            return false;
        }
        let kept = self.sorted.lock().unwrap_or_else(PoisonError::into_inner);
        kept.results
            .last_key_value()
            .is_some_and(|(last, _)| path > &**last)
    }

    /// Adds the result for `path`, which counts as `weight` results.
    pub(super) fn add(&self, path: &str, result: T, weight: usize) {
        let mut kept = self.sorted.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        kept.results.insert(path.into(), (result, weight));
        kept.weight += weight;
        // One result beyond the limit is kept to show that there are more.
        while let Some(last) = kept.results.last_entry()
            && kept.weight - last.get().1 > self.limit
        {
            let (_, weight) = last.remove();
            kept.weight -= weight;
        }
        if kept.weight > self.limit {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the results in order with their weights, including one beyond the limit if there is
    /// one.
    pub(super) fn into_results(self) -> impl Iterator<Item = (Box<str>, T, usize)> {
        let kept = self
            .sorted
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        kept.results
            .into_iter()
            .map(|(path, (result, weight))| (path, result, weight))
    }
}
