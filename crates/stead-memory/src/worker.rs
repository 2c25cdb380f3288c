//! The worker that does the jobs of the memory queue.

use crate::Memory;
use crate::error::MemoryError;
use crate::job::{MemoryJob, QUEUE};
use crate::owner_memory::{OwnerMemory, memory_state};
use crate::progress::{MergeProgress, Versioned};
use std::sync::Arc;
use std::time::Duration;
use stead_core::Owner;
use stead_place::OwnerState;
use stead_store::{AcquireOutcome, Claim, ClaimedJob, FencingToken, Leases};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The lease of the process that works exclusively.
const WORKER_LEASE: &str = "worker";
/// The longest delay before a failed job is tried again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3600);

/// The limits of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The time after which no job is begun or continued.
    pub limit: Duration,
    /// How long a claimed job stays with a worker that does not renew it (default 60 seconds).
    pub visibility_timeout: Duration,
    /// The delay after the first failure of a job (default 30 seconds); it doubles with each
    /// failure.
    pub retry_delay: Duration,
    /// Stops the worker.
    pub cancel: CancellationToken,
}

impl WorkerOptions {
    /// Creates options with a time limit and defaults otherwise.
    pub fn with_limit(limit: Duration) -> Self {
        let hide = Duration::from_secs(60);
        let rest = Duration::from_secs(30);
        Self {
            limit,
            visibility_timeout: hide,
            retry_delay: rest,
            cancel: CancellationToken::new(),
        }
    }
}

/// The result of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct WorkerReport {
    /// The number of jobs that are done.
    pub done: u64,
    /// The number of jobs that failed and are tried again.
    pub failed: u64,
}

/// The end of a job.
enum JobEnd {
    Done,
    Failed(String),
    /// Another worker claimed it.
    Lost,
    /// The worker was stopped or its time is over.
    Stopped,
}

impl Memory {
    /// Does the jobs of `owner` until none is due.
    pub async fn work(
        &self,
        owner: &Owner,
        options: &WorkerOptions,
    ) -> Result<WorkerReport, MemoryError> {
        let end = Instant::now() + options.limit;
        let state = memory_state(&*self.cx, owner);
        let mut worked = WorkerReport::default();
        while Instant::now() < end && !options.cancel.is_cancelled() {
            let Some(claimed) = state
                .store
                .claim(&state.space, QUEUE, options.visibility_timeout)
                .await?
            else {
                break;
            };
            match self.run_job(owner, &state, &claimed, options, end).await? {
                JobEnd::Done => {
                    state.store.ack(&state.space, QUEUE, &claimed).await?;
                    worked.done += 1;
                }
                JobEnd::Failed(reason) => {
                    let wait = options
                        .retry_delay
                        .saturating_mul(1 << (claimed.attempt.clamp(1, 16) - 1))
                        .min(MAX_RETRY_DELAY);
                    state
                        .store
                        .nack(&state.space, QUEUE, &claimed, wait, &reason)
                        .await?;
                    worked.failed += 1;
                }
                JobEnd::Lost => {}
                JobEnd::Stopped => {
                    let reason = "the worker was stopped";
                    state
                        .store
                        .nack(&state.space, QUEUE, &claimed, Duration::ZERO, reason)
                        .await?;
                    break;
                }
            }
        }
        Ok(worked)
    }

    /// Like [`work`](Self::work), but returns `None` if another process works for the same owner.
    pub async fn work_exclusively(
        &self,
        owner: &Owner,
        options: &WorkerOptions,
    ) -> Result<Option<WorkerReport>, MemoryError> {
        let state = memory_state(&*self.cx, owner);
        let me = format!("{} {:?}", std::process::id(), Instant::now());
        let fence = match state
            .store
            .acquire(
                &state.space,
                WORKER_LEASE,
                &me,
                options.visibility_timeout,
                Claim::Free,
            )
            .await?
        {
            AcquireOutcome::Granted(fence) => fence,
            AcquireOutcome::Held(_) => return Ok(None),
        };
        let worked = tokio::select! {
            worked = self.work(owner, options) => worked.map(Some),
            lost = keep_lease(&state, &fence, options.visibility_timeout) => lost.map(|()| None),
        };
        state.store.release(&state.space, &fence).await?;
        worked
    }

    /// Starts a worker in the background. It ends when the handle is dropped; the next worker takes
    /// over an unfinished job.
    pub fn spawn_worker(&self, owner: Owner) -> MemoryWorker {
        /// How often the queue is polled.
        const EVERY: Duration = Duration::from_secs(60);
        let memory = self.clone();
        let wake = Arc::new(Notify::new());
        let woken = wake.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let options = WorkerOptions::with_limit(Duration::from_secs(600));
            loop {
                // Errors are part of the memory status; unfinished jobs stay in the queue.
                let _ = memory.work(&owner, &options).await;
                let _ = tokio::time::timeout(EVERY, woken.notified()).await;
            }
        });
        MemoryWorker {
            wake,
            _tasks: tasks,
        }
    }

    /// Does one job and renews the claim on it meanwhile.
    async fn run_job(
        &self,
        owner: &Owner,
        state: &OwnerState,
        claimed: &ClaimedJob,
        options: &WorkerOptions,
        end: Instant,
    ) -> Result<JobEnd, MemoryError> {
        let mut work = std::pin::pin!(self.execute_job(owner, &claimed.payload));
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    return Ok(done.map_or_else(|error| JobEnd::Failed(error.to_string()), |()| JobEnd::Done));
                }
                () = options.cancel.cancelled() => return Ok(JobEnd::Stopped),
                () = tokio::time::sleep_until(end) => return Ok(JobEnd::Stopped),
                () = tokio::time::sleep(options.visibility_timeout / 3) => {
                    if !state.store.extend(&state.space, QUEUE, claimed, options.visibility_timeout).await? {
                        return Ok(JobEnd::Lost);
                    }
                }
            }
        }
    }

    async fn execute_job(&self, owner: &Owner, payload: &bytes::Bytes) -> Result<(), MemoryError> {
        match MemoryJob::parse(payload)? {
            MemoryJob::Flush { session, upto } => self.flush(owner, &session, upto).await.map(drop),
            MemoryJob::Consolidate { scope, generation } => {
                let home = OwnerMemory::of_scope(&self.cx, owner, &scope)?;
                let merged: Option<Versioned<MergeProgress>> =
                    home.documents.get(&home.documents.merged_key()).await?;
                if merged.map_or(0, |kept| kept.value.generation) != generation {
                    // Another worker did it, and enqueued what follows.
                    return Ok(());
                }
                home.consolidate().await.map(drop)
            }
        }
    }
}

/// Renews a lease until it is lost.
async fn keep_lease(
    state: &OwnerState,
    fence: &FencingToken,
    ttl: Duration,
) -> Result<(), MemoryError> {
    loop {
        tokio::time::sleep(ttl / 3).await;
        if !Leases::renew(&*state.store, &state.space, fence, ttl).await? {
            return Ok(());
        }
    }
}

/// A worker in the background.
#[derive(Debug)]
pub struct MemoryWorker {
    wake: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl MemoryWorker {
    /// Wakes the worker: there may be a new job.
    pub fn wake(&self) {
        self.wake.notify_one();
    }
}
