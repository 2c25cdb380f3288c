//! How far a long operation has come, for whoever watches it.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Where an operation stands; read by one task while another works.
#[derive(Debug, Default)]
pub struct SkillProgress {
    phase: AtomicU8,
    done: AtomicUsize,
    total: AtomicUsize,
}

/// What is being done.
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

    /// In words.
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
