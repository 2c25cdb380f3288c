//! The contract for durable queues: each job is delivered at least once, to one worker at a time.
//!
//! Effects: none.

use super::Space;
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::time::Duration;

/// Durable queues of jobs. All times are measured by the store's clock.
///
/// A claimed job is hidden for a while. If it is neither acknowledged nor returned by then, it is
/// delivered again. A job that was delivered `max_attempts` times becomes a dead letter.
pub trait Queue: fmt::Debug + Send + Sync {
    /// Adds a job, unless the queue has one with the same dedup key or had one that ended within
    /// the last day.
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>>;

    /// Claims the job that has been due longest and hides it for `hide`.
    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>>;

    /// Marks a job as done. Returns false if it was delivered again in the meantime and no longer
    /// belongs to the caller.
    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Marks a delivery as failed for `reason`: the job is due again after `delay`, or becomes a
    /// dead letter if this was its last attempt. Returns false if the job no longer belongs to the
    /// caller.
    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Hides a claimed job for `hide` from now. Returns false if the job no longer belongs to the
    /// caller.
    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns at most `limit` dead letters that come after `after`, oldest first.
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
    /// The data for the worker.
    pub payload: Bytes,
    /// The dedup key. Two jobs of one queue with the same key are the same job.
    pub dedup: Option<String>,
    /// The delay until it is due.
    pub delay: Duration,
    /// The number of deliveries after which the job becomes a dead letter.
    pub max_attempts: u32,
}

/// The result of adding a job. The text is the job's id; ids of later jobs compare greater.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// The job was added.
    New(String),
    /// The queue already has the job.
    Existing(String),
}

/// A job that a worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The id of the job.
    pub id: String,
    /// The data for the worker.
    pub payload: Bytes,
    /// The number of this delivery, from 1. Together with the id it proves the claim.
    pub attempt: u32,
}

/// A job that failed on its last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The id of the job.
    pub id: String,
    /// The data for the worker.
    pub payload: Bytes,
    /// The number of deliveries.
    pub attempts: u32,
    /// The reason why the last delivery failed.
    pub reason: String,
}
