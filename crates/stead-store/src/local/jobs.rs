//! The state of one queue as pure data: its jobs, without their payloads.
//!
//! Effects: none.

use super::add_ms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const DEDUP_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// The reason of a dead letter whose worker did not respond.
const EXPIRED_REASON: &str = "the worker did not answer in time";

/// The jobs of one queue. Payloads are stored elsewhere, by id.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct JobTable {
    /// The number of jobs so far, from which ids are made.
    count: u64,
    waiting: BTreeMap<String, WaitingJob>,
    dead: BTreeMap<String, DeadJobRecord>,
    /// The dedup keys, each with its job and the time it was added.
    known: BTreeMap<String, (String, i64)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WaitingJob {
    due_ms: i64,
    attempt: u32,
    max_attempts: u32,
    state: JobState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JobState {
    /// Not claimed.
    Free,
    /// Claimed by a worker, at least until it is due.
    Claimed,
}

/// A job that failed on its last attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DeadJobRecord {
    pub(crate) attempts: u32,
    pub(crate) reason: String,
}

/// The result of adding a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddOutcome {
    New(String),
    Existing(String),
}

/// The result that a worker reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Settlement {
    Ack,
    Nack { delay: Duration, reason: String },
    Extend { hide: Duration },
}

impl JobTable {
    pub(crate) fn add(
        &mut self,
        now_ms: i64,
        dedup: Option<String>,
        delay: Duration,
        max_attempts: u32,
    ) -> AddOutcome {
        self.known
            .retain(|_, (_, added_ms)| now_ms < add_ms(*added_ms, DEDUP_MEMORY));
        if let Some((id, _)) = dedup.as_ref().and_then(|key| self.known.get(key)) {
            return AddOutcome::Existing(id.clone());
        }
        self.count += 1;
        let id = format!("{:016x}", self.count);
        if let Some(key) = dedup {
            self.known.insert(key, (id.clone(), now_ms));
        }
        let waiting = WaitingJob {
            due_ms: add_ms(now_ms, delay),
            attempt: 0,
            max_attempts,
            state: JobState::Free,
        };
        self.waiting.insert(id.clone(), waiting);
        AddOutcome::New(id)
    }

    /// Claims the job that has been due longest and returns it with the number of the delivery.
    /// Jobs without attempts left become dead letters on the way.
    pub(crate) fn claim(&mut self, now_ms: i64, hide: Duration) -> Option<(String, u32)> {
        loop {
            let due = self.waiting.iter().filter(|(_, job)| job.due_ms <= now_ms);
            // Of several jobs that are due at the same time, the oldest.
            let (id, _) = due.min_by_key(|(id, job)| (job.due_ms, *id))?;
            let id = id.clone();
            let job = self.waiting.get_mut(&id)?;
            if job.attempt > 0 && job.attempt >= job.max_attempts {
                self.move_to_dead(&id, EXPIRED_REASON);
                continue;
            }
            job.attempt += 1;
            job.due_ms = add_ms(now_ms, hide);
            job.state = JobState::Claimed;
            return Some((id, job.attempt));
        }
    }

    /// Records a worker's result. Returns false if the job does not belong to that worker.
    pub(crate) fn settle(
        &mut self,
        now_ms: i64,
        id: &str,
        attempt: u32,
        settle: &Settlement,
    ) -> bool {
        let job = self
            .waiting
            .get_mut(id)
            .filter(|job| job.state == JobState::Claimed && job.attempt == attempt);
        let Some(job) = job else { return false };
        match settle {
            Settlement::Ack => {
                self.waiting.remove(id);
            }
            Settlement::Extend { hide } => job.due_ms = add_ms(now_ms, *hide),
            Settlement::Nack { reason, .. } if job.attempt >= job.max_attempts => {
                self.move_to_dead(id, reason)
            }
            Settlement::Nack { delay, .. } => {
                job.state = JobState::Free;
                job.due_ms = add_ms(now_ms, *delay);
            }
        }
        true
    }

    /// Returns the dead letters that come after `after`.
    pub(crate) fn dead<'a>(
        &'a self,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a String, &'a DeadJobRecord)> {
        self.dead
            .iter()
            .filter(move |(id, _)| after.is_none_or(|after| id.as_str() > after))
    }

    fn move_to_dead(&mut self, id: &str, reason: &str) {
        if let Some(job) = self.waiting.remove(id) {
            self.dead.insert(
                id.to_owned(),
                DeadJobRecord {
                    attempts: job.attempt,
                    reason: reason.to_owned(),
                },
            );
        }
    }
}
