//! The progress of installing or publishing skills, which another task shows.
//!
//! Effects: none.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The progress of an operation. One task reads it while another works.
#[derive(Debug, Default)]
pub struct SkillProgress {
    phase: AtomicU8,
    done: AtomicUsize,
    total: AtomicUsize,
}

/// The phase of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkillPhase {
    Fetching = 1,
    Checking = 2,
    Writing = 3,
}

impl SkillProgress {
    pub(crate) fn enter(&self, phase: SkillPhase, total: usize) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Describes the phase.
    pub fn describe(&self) -> String {
        let word = match self.phase.load(Ordering::Relaxed) {
            1 => "fetching",
            2 => "checking",
            3 => "writing",
            _ => "beginning",
        };
        match self.total.load(Ordering::Relaxed) {
            0 => word.to_owned(),
            total => format!("{word} {}/{total}", self.done.load(Ordering::Relaxed)),
        }
    }
}
