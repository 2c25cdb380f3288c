//! When a chat calls the person back to the terminal: it waits for an answer, or a long run has
//! ended, and nobody looks.
//!
//! Effects: none.

use std::time::Duration;

/// How long something must have waited, or a run have taken, where the terminal does not say whether
/// it is looked at.
const PATIENCE: Duration = Duration::from_secs(10);
/// The variable that turns notifications off.
pub(super) const VARIABLE: &str = "STEAD_NOTIFICATIONS";

/// Whether the terminal is looked at, as far as it says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Focus {
    #[default]
    Unknown,
    Here,
    Elsewhere,
}

/// What a chat does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatMoment {
    Idle,
    /// A run goes on.
    Runs,
    /// A question is open.
    Asks,
}

/// Tells the person at most once for each question and each end of a run.
#[derive(Debug)]
pub(super) struct Notifier {
    is_on: bool,
    pub(super) focus: Focus,
    moment: ChatMoment,
    /// How long the moment has lasted.
    since: Duration,
    run_began: Duration,
    is_told: bool,
}

impl Notifier {
    /// Returns a notifier as the value of [`VARIABLE`] says: `off` turns it off.
    pub(super) fn new(setting: Option<&str>) -> Self {
        Self {
            is_on: setting != Some("off"),
            focus: Focus::default(),
            moment: ChatMoment::Idle,
            since: Duration::ZERO,
            run_began: Duration::ZERO,
            is_told: true,
        }
    }

    /// Returns what to tell now. `now` is the time since the chat began.
    pub(super) fn look(&mut self, now: Duration, moment: ChatMoment) -> Option<&'static str> {
        if moment != self.moment {
            let ran = now.saturating_sub(self.run_began);
            let was_running = self.moment != ChatMoment::Idle;
            if moment != ChatMoment::Idle && !was_running {
                self.run_began = now;
            }
            self.moment = moment;
            self.since = now;
            self.is_told = match moment {
                ChatMoment::Asks => false,
                ChatMoment::Runs => true,
                // A short run is watched.
                ChatMoment::Idle => ran < PATIENCE && self.focus != Focus::Elsewhere,
            };
        }
        if self.is_told || !self.is_on {
            return None;
        }
        let waited = now.saturating_sub(self.since);
        let is_due = match (self.focus, moment) {
            (Focus::Here, _) | (_, ChatMoment::Runs) => false,
            (Focus::Elsewhere, _) | (Focus::Unknown, ChatMoment::Idle) => true,
            (Focus::Unknown, ChatMoment::Asks) => waited >= PATIENCE,
        };
        if moment == ChatMoment::Idle {
            self.is_told = true;
        }
        if !is_due {
            return None;
        }
        self.is_told = true;
        Some(match moment {
            ChatMoment::Asks => "Stead waits for your answer",
            ChatMoment::Idle | ChatMoment::Runs => "Stead is done",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Option<&str> = Some("Stead waits for your answer");
    const DONE: Option<&str> = Some("Stead is done");

    /// What is told at each of these seconds.
    fn told(
        setting: Option<&str>,
        focus: Focus,
        moments: &[(u64, ChatMoment)],
    ) -> Vec<Option<&'static str>> {
        let mut notifier = Notifier::new(setting);
        notifier.focus = focus;
        let look = |(second, moment): &(u64, ChatMoment)| {
            notifier.look(Duration::from_secs(*second), *moment)
        };
        moments.iter().map(look).collect()
    }

    #[test]
    fn who_looks_is_not_told_and_everybody_else_once() {
        use ChatMoment::{Asks, Idle, Runs};
        let question = [
            (0, Idle),
            (1, Runs),
            (2, Asks),
            (11, Asks),
            (12, Asks),
            (13, Asks),
        ];
        let long_run = [(0, Idle), (1, Runs), (20, Idle), (21, Idle)];
        let short_run = [(0, Idle), (1, Runs), (3, Idle), (30, Idle)];
        let none: Option<&str> = None;
        assert_eq!(
            told(None, Focus::Unknown, &question),
            [none, none, none, none, ASKED, none]
        );
        assert_eq!(
            told(None, Focus::Elsewhere, &question),
            [none, none, ASKED, none, none, none]
        );
        assert_eq!(told(None, Focus::Here, &question), [none; 6]);
        assert_eq!(told(Some("off"), Focus::Elsewhere, &question), [none; 6]);
        assert_eq!(
            told(None, Focus::Unknown, &long_run),
            [none, none, DONE, none]
        );
        assert_eq!(told(None, Focus::Here, &long_run), [none; 4]);
        assert_eq!(told(None, Focus::Unknown, &short_run), [none; 4]);
        assert_eq!(
            told(None, Focus::Elsewhere, &short_run),
            [none, none, DONE, none]
        );
    }
}
