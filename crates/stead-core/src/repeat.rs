//! Detecting an agent that repeats itself.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The longest cycle that is detected, in steps (1 = the same step again, 2 = alternating …).
const MAX_PERIOD: usize = 8;

/// The last steps of a run, each as one hash over its calls and their results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatGuard {
    recent: VecDeque<u64>,
}

/// How often a cycle was repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    /// The number of steps in the cycle.
    pub period: usize,
    /// The number of consecutive rounds, including the first.
    pub rounds: u32,
}

impl RepeatGuard {
    /// Records a step, keeping enough to detect `max_rounds` rounds of the longest cycle.
    pub fn record(&mut self, step: u64, max_rounds: u32) {
        self.recent.push_back(step);
        while self.recent.len() > MAX_PERIOD * max_rounds.max(1) as usize {
            self.recent.pop_front();
        }
    }

    /// Returns the cycle with the most rounds that ends at the newest step.
    pub fn longest_repetition(&self) -> Repetition {
        let rounds_of = |period: usize| {
            let newest_first = |i: usize| self.recent[self.recent.len() - 1 - i];
            let matching = (period..self.recent.len())
                .take_while(|&i| newest_first(i) == newest_first(i % period))
                .count();
            Repetition {
                period,
                rounds: (matching / period) as u32 + 1,
            }
        };
        (1..=MAX_PERIOD.min(self.recent.len()))
            .map(rounds_of)
            .reduce(|best, next| {
                if next.rounds > best.rounds {
                    next
                } else {
                    best
                }
            })
            .unwrap_or(Repetition {
                period: 1,
                rounds: 0,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(steps: &[u64]) -> (usize, u32) {
        let mut guard = RepeatGuard::default();
        steps.iter().for_each(|&s| guard.record(s, 6));
        let r = guard.longest_repetition();
        (r.period, r.rounds)
    }

    #[test]
    fn circles_of_one_to_eight_steps_are_counted_and_others_are_not() {
        assert_eq!(rounds(&[]), (1, 0));
        assert_eq!(rounds(&[1]), (1, 1));
        assert_eq!(rounds(&[7, 1, 1, 1]), (1, 3));
        assert_eq!(rounds(&[1, 2, 1, 2, 1, 2]), (2, 3));
        assert_eq!(rounds(&[1, 2, 3, 1, 2, 3]), (3, 2));
        assert_eq!(rounds(&[1, 2, 3, 4, 5, 6]), (1, 1));
        let circle =
            |period: u64| -> Vec<u64> { (0..period * 3).map(|step| step % period).collect() };
        for period in 5..=8 {
            assert_eq!(rounds(&circle(period)), (period as usize, 3));
        }
        assert_eq!(rounds(&circle(9)).1, 1);
        assert_eq!(rounds(&[1; 60]), (1, 48));
    }
}
