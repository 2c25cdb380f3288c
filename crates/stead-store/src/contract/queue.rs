//! Work to be done later, at least once and by one worker at a time.

use super::Space;
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::Duration;

/// Durable queues of jobs. Time is the store's own.
///
/// A claimed job is hidden for a while. If it is neither acknowledged nor given back by then, it is
/// delivered again; a job that was delivered `max_attempts` times goes to the dead letters.
pub trait Queue: fmt::Debug + Send + Sync {
    /// Adds a job, unless one with its dedup key is there already or was within the last day, done
    /// or dead.
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>>;

    /// Takes the job that has been due longest and hides it for `hide`.
    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>>;

    /// The job is done. False if it was delivered again in the meantime: then it is not ours any
    /// more.
    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The job failed for `reason`: it is due again after `delay`, or dead if that was its last
    /// attempt. False if it is not ours any more.
    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Hides a claimed job for `hide` from now. False if it is not ours any more.
    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// At most `limit` jobs that failed for good and come after `after`, oldest first.
    fn dead_letters<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, StoreError>>;
}

/// A job to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What the worker is told.
    pub payload: Bytes,
    /// Two jobs of one queue with the same key are the same job.
    pub dedup: Option<String>,
    /// How long until it is due.
    pub delay: Duration,
    /// How often it is delivered before it is given up.
    pub max_attempts: u32,
}

/// What came of adding a job. The text is the job's id; ids of later jobs compare greater.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It was added.
    New(String),
    /// It was there.
    Existing(String),
}

/// A job in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The job.
    pub id: String,
    /// What to do.
    pub payload: Bytes,
    /// Which delivery this is, from 1. With the id, the proof that it is ours.
    pub attempt: u32,
}

/// A job that failed for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub id: String,
    /// What it was to do.
    pub payload: Bytes,
    /// How often it was delivered.
    pub attempts: u32,
    /// Why the last delivery failed.
    pub reason: String,
}
