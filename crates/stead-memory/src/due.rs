//! When sessions are looked through for facts: a decision about what waits.
//!
//! Effects: none.

use crate::waiting::{Activity, WaitingSession};
use stead_workspace::{FlushAfter, MemorySettings};

/// After this time what waits is looked through, however little it is.
const LONGEST_WAIT_MS: i64 = 24 * 60 * 60 * 1000;
/// The failed attempts after which a session waits for a new run or a person.
pub(crate) const MAX_FAILURES: u32 = 8;

/// The rule by which sessions are looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlushRule {
    /// How long nothing must have happened in a session.
    idle_ms: i64,
    /// How many new tokens there must be in all sessions together.
    tokens: u64,
}

impl FlushRule {
    pub(crate) fn new(after: FlushAfter, settings: &MemorySettings) -> Self {
        match after {
            FlushAfter::Run => Self {
                idle_ms: 0,
                tokens: 0,
            },
            FlushAfter::Idle => Self {
                idle_ms: i64::from(settings.idle_minutes) * 60_000,
                tokens: u64::from(settings.flush_tokens),
            },
        }
    }

    /// The number of new tokens that must wait.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the time from which a session of a user can be looked through; `None` if a person
    /// or a new run must come first.
    fn ready_ms(&self, waiting: &WaitingSession) -> Option<i64> {
        let settled = match waiting.activity {
            Activity::Settled => waiting.at_ms,
            Activity::Ongoing => waiting.at_ms.saturating_add(self.idle_ms),
        };
        (waiting.failures < MAX_FAILURES).then(|| settled.max(waiting.retry_ms))
    }

    /// Returns the time from which the sessions of one user are looked through if nothing else
    /// happens; `None` if there is none to look through.
    pub(crate) fn due_ms<'a>(
        &self,
        waiting: impl IntoIterator<Item = &'a WaitingSession>,
    ) -> Option<i64> {
        let mut ready: Vec<(i64, &WaitingSession)> = waiting
            .into_iter()
            .filter_map(|waiting| Some((self.ready_ms(waiting)?, waiting)))
            .collect();
        ready.sort_by_key(|(at_ms, _)| *at_ms);
        let mut tokens: u64 = 0;
        let mut due: Option<i64> = None;
        for (at_ms, waiting) in ready {
            tokens = tokens.saturating_add(waiting.tokens);
            let at_last = waiting.since_ms.saturating_add(LONGEST_WAIT_MS).max(at_ms);
            let enough = if tokens >= self.tokens {
                at_ms
            } else {
                at_last
            };
            due = Some(due.map_or(enough, |due| due.min(enough)));
        }
        due
    }

    /// Whether this session is one of those that are looked through at `now_ms`, if any are.
    pub(crate) fn is_ready(&self, waiting: &WaitingSession, now_ms: i64) -> bool {
        self.ready_ms(waiting).is_some_and(|at_ms| at_ms <= now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;

    fn waiting(at_minute: i64, tokens: u64) -> WaitingSession {
        WaitingSession {
            user: "u".to_owned(),
            session: "s".to_owned(),
            upto: 9,
            tokens,
            since_ms: at_minute * MINUTE_MS,
            at_ms: at_minute * MINUTE_MS,
            activity: Activity::Ongoing,
            failures: 0,
            retry_ms: 0,
            error: None,
        }
    }

    #[test]
    fn sessions_are_looked_through_when_they_are_idle_and_there_is_enough_or_it_waited_for_a_day() {
        let day = 24 * 60;
        let settled = |one: WaitingSession| WaitingSession {
            activity: Activity::Settled,
            ..one
        };
        let failed = |one: WaitingSession, failures, retry: i64| WaitingSession {
            failures,
            retry_ms: retry * MINUTE_MS,
            ..one
        };
        let table = [
            ("nothing", vec![], None),
            ("enough in one", vec![waiting(0, 4_000)], Some(30)),
            ("too little", vec![waiting(0, 3_999)], Some(day)),
            (
                "enough in two",
                vec![waiting(0, 3_000), waiting(10, 1_000)],
                Some(40),
            ),
            (
                "the oldest decides when it is too little",
                vec![waiting(50, 1), waiting(0, 1)],
                Some(day),
            ),
            ("it has ended", vec![settled(waiting(5, 4_000))], Some(5)),
            (
                "it has ended, with little",
                vec![settled(waiting(5, 3_999))],
                Some(day + 5),
            ),
            (
                "it failed",
                vec![failed(waiting(0, 4_000), 2, 45)],
                Some(45),
            ),
            ("given up", vec![failed(waiting(0, 9_000), 8, 1)], None),
            (
                "given up, and another",
                vec![failed(waiting(0, 9_000), 8, 1), waiting(0, 10)],
                Some(day),
            ),
        ];
        let rule = FlushRule::new(FlushAfter::Idle, &MemorySettings::default());
        for (what, sessions, minutes) in table {
            let due = rule.due_ms(&sessions).map(|ms| ms / MINUTE_MS);
            assert_eq!(due, minutes, "{what}");
        }
        let at_once = FlushRule::new(FlushAfter::Run, &MemorySettings::default());
        assert_eq!(at_once.due_ms(&[waiting(7, 1)]), Some(7 * MINUTE_MS));
    }
}
