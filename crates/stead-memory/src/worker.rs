//! The worker that does the memory jobs of a tenant.
//!
//! Effects: in-process state, the clock, workspace files (writes), the store (writes), the model.

use crate::Memory;
use crate::error::MemoryError;
use crate::job::tenant_jobs;
use crate::owner_memory::OwnerMemory;
use crate::progress::{MergeProgress, Versioned};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, TenantId};
use stead_place::OwnerState;
use stead_store::{
    AcquireOutcome, Claim, ClaimedTenantJob, FencingToken, Leases, TenantJobKind, TenantJobs,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The lease of the process that works exclusively.
const WORKER_LEASE: &str = "memory-worker";
/// How long a job that is not about memory is left to others.
const OTHER_JOB_DELAY: Duration = Duration::from_secs(60);
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
    /// The job is not about memory.
    NotMemory,
}

impl Memory {
    /// Does the memory jobs of all users of `tenant` until none is due.
    pub async fn work(
        &self,
        tenant: &TenantId,
        options: &WorkerOptions,
    ) -> Result<WorkerReport, MemoryError> {
        let end = Instant::now() + options.limit;
        let jobs = tenant_jobs(&*self.cx, tenant);
        let mut worked = WorkerReport::default();
        while Instant::now() < end && !options.cancel.is_cancelled() {
            let Some(claimed) = jobs.claim(options.visibility_timeout).await? else {
                break;
            };
            match self.run_job(tenant, &jobs, &claimed, options, end).await? {
                JobEnd::Done => {
                    jobs.ack(&claimed).await?;
                    worked.done += 1;
                }
                JobEnd::Failed(reason) => {
                    let wait = options
                        .retry_delay
                        .saturating_mul(1 << (claimed.claim.attempt.clamp(1, 16) - 1))
                        .min(MAX_RETRY_DELAY);
                    jobs.nack(&claimed, wait, &reason).await?;
                    worked.failed += 1;
                }
                JobEnd::Lost => {}
                JobEnd::NotMemory => {
                    let reason = "this worker does memory jobs only";
                    jobs.nack(&claimed, OTHER_JOB_DELAY, reason).await?;
                }
                JobEnd::Stopped => {
                    let reason = "the worker was stopped";
                    jobs.nack(&claimed, Duration::ZERO, reason).await?;
                    break;
                }
            }
        }
        Ok(worked)
    }

    /// Like [`work`](Self::work), but returns `None` if another process works for the same
    /// tenant.
    pub async fn work_exclusively(
        &self,
        tenant: &TenantId,
        options: &WorkerOptions,
    ) -> Result<Option<WorkerReport>, MemoryError> {
        let state = self.cx.tenant_state(tenant);
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
            worked = self.work(tenant, options) => worked.map(Some),
            lost = keep_lease(&state, &fence, options.visibility_timeout) => lost.map(|()| None),
        };
        state.store.release(&state.space, &fence).await?;
        worked
    }

    /// Starts a worker in the background. It ends when the handle is dropped; the next worker takes
    /// over an unfinished job.
    pub fn spawn_worker(&self, tenant: TenantId) -> MemoryWorker {
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
                let _ = memory.work(&tenant, &options).await;
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
        tenant: &TenantId,
        jobs: &TenantJobs,
        claimed: &ClaimedTenantJob,
        options: &WorkerOptions,
        end: Instant,
    ) -> Result<JobEnd, MemoryError> {
        let owner = Owner {
            tenant: tenant.clone(),
            user: claimed.job.user.clone(),
        };
        let mut work = std::pin::pin!(self.execute_job(&owner, &claimed.job.kind));
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    return Ok(done.unwrap_or_else(|error| JobEnd::Failed(error.to_string())));
                }
                () = options.cancel.cancelled() => return Ok(JobEnd::Stopped),
                () = tokio::time::sleep_until(end) => return Ok(JobEnd::Stopped),
                () = tokio::time::sleep(options.visibility_timeout / 3) => {
                    if !jobs.extend(claimed, options.visibility_timeout).await? {
                        return Ok(JobEnd::Lost);
                    }
                }
            }
        }
    }

    async fn execute_job(&self, owner: &Owner, job: &TenantJobKind) -> Result<JobEnd, MemoryError> {
        match job {
            TenantJobKind::ExtractFacts { session, upto } => {
                self.flush(owner, session, *upto).await?;
            }
            TenantJobKind::MergeFacts { scope, generation } => {
                let home = OwnerMemory::of_scope(&self.cx, owner, scope)?;
                let merged: Option<Versioned<MergeProgress>> =
                    home.documents.get(&home.documents.merged_key()).await?;
                // If it is another one, another worker merged and enqueued the next job.
                if merged.map_or(0, |kept| kept.value.generation) == *generation {
                    home.consolidate().await?;
                }
            }
            TenantJobKind::Wake { .. } | TenantJobKind::Schedule { .. } => {
                return Ok(JobEnd::NotMemory);
            }
        }
        Ok(JobEnd::Done)
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
