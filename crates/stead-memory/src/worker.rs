//! The worker that does the memory work of a tenant.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the store (writes),
//! the journal (reads), the model.

use crate::Memory;
use crate::due_work::{DueWork, WorkResult};
use crate::error::MemoryError;
use crate::job::tenant_jobs;
use crate::waiting::{Activity, NewEntries};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, TenantId, UserId};
use stead_place::OwnerState;
use stead_store::{AcquireOutcome, Claim, DocVersion, FencingToken, Leases, TenantJobKind};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The lease of the process that works exclusively.
const WORKER_LEASE: &str = "memory-worker";
/// How long a job that is not about memory is left to others.
const OTHER_JOB_DELAY: Duration = Duration::from_secs(60);
/// How long a job of the queue is claimed to be noted.
const QUEUED_JOB_CLAIM: Duration = Duration::from_secs(60);

/// The limits of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The time after which no work is begun or continued.
    pub limit: Duration,
    /// How long work stays with a worker that was killed (default 60 seconds).
    pub visibility_timeout: Duration,
    /// The delay after the first failure (default 30 seconds); it doubles with each failure.
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
    /// The number of pieces of work that are done: sessions looked through together, or a merge.
    pub done: u64,
    /// The number of those that failed and are tried again.
    pub failed: u64,
}

/// The end of a piece of work.
enum JobEnd {
    Done,
    /// It failed, which was noted.
    Failed,
    /// Another worker has it.
    Lost,
    /// The worker was stopped or its time is over.
    Stopped,
}

impl Memory {
    /// Does the memory work of all users of `tenant` until none is due.
    pub async fn work(
        &self,
        tenant: &TenantId,
        options: &WorkerOptions,
    ) -> Result<WorkerReport, MemoryError> {
        let end = Instant::now() + options.limit;
        let mut worked = WorkerReport::default();
        let mut others: Vec<UserId> = Vec::new();
        self.note_queued_jobs(tenant).await?;
        while Instant::now() < end && !options.cancel.is_cancelled() {
            let due = self.due_work(tenant).await?;
            // Another process works for the others.
            let mut mine = due.into_iter().filter(|(user, _)| !others.contains(user));
            let Some((user, due)) = mine.next() else {
                break;
            };
            let owner = Owner {
                tenant: tenant.clone(),
                user,
            };
            match self.work_leased(&owner, &due, options, end).await? {
                JobEnd::Done => worked.done += 1,
                JobEnd::Failed => worked.failed += 1,
                JobEnd::Lost => others.push(owner.user),
                JobEnd::Stopped => break,
            }
        }
        Ok(worked)
    }

    /// Does one piece of work of a user, unless another process works for that user.
    async fn work_leased(
        &self,
        owner: &Owner,
        due: &DueWork,
        options: &WorkerOptions,
        end: Instant,
    ) -> Result<JobEnd, MemoryError> {
        let state = self.cx.tenant_state(&owner.tenant);
        let name = format!("memory-of/{}", owner.user);
        let ttl = options.visibility_timeout;
        let Some(fence) = acquire(&state, &name, ttl).await? else {
            return Ok(JobEnd::Lost);
        };
        // Another process may have done it before the lease was free.
        let due_now = self.due_work(&owner.tenant).await?;
        let is_same = |now: &DueWork| match (now, due) {
            (DueWork::Flush(_), DueWork::Flush(_)) => true,
            (DueWork::Merge(now), DueWork::Merge(due)) => now.note.scope == due.note.scope,
            (DueWork::Flush(_), DueWork::Merge(_)) | (DueWork::Merge(_), DueWork::Flush(_)) => {
                false
            }
        };
        let mut due_now = due_now.into_iter();
        let ended = match due_now.find(|(user, now)| *user == owner.user && is_same(now)) {
            None => Ok(JobEnd::Done),
            Some((_, due)) => tokio::select! {
                biased;
                done = self.do_due_work(owner, &due, options.retry_delay) => {
                    done.map(|result| match result {
                        WorkResult::Done => JobEnd::Done,
                        WorkResult::Failed => JobEnd::Failed,
                    })
                }
                () = options.cancel.cancelled() => Ok(JobEnd::Stopped),
                () = tokio::time::sleep_until(end) => Ok(JobEnd::Stopped),
                lost = keep_lease(&state, &fence, ttl) => lost.map(|()| JobEnd::Lost),
            },
        };
        state.store.release(&state.space, &fence).await?;
        ended
    }

    /// Turns the jobs that earlier versions left in the queue into notes.
    async fn note_queued_jobs(&self, tenant: &TenantId) -> Result<(), MemoryError> {
        let jobs = tenant_jobs(&*self.cx, tenant);
        let notes = self.notes(tenant);
        while let Some(claimed) = jobs.claim(QUEUED_JOB_CLAIM).await? {
            let owner = Owner {
                tenant: tenant.clone(),
                user: claimed.job.user.clone(),
            };
            match &claimed.job.kind {
                TenantJobKind::ExtractFacts { session, upto } => {
                    let new = NewEntries {
                        upto: *upto,
                        tokens: 0,
                        at: self.cx.now(),
                        activity: Activity::Settled,
                    };
                    notes.note(&owner, session, new).await?;
                    jobs.ack(&claimed).await?;
                }
                TenantJobKind::MergeFacts { scope, .. } => {
                    notes.note_merge(&owner, scope, 0).await?;
                    jobs.ack(&claimed).await?;
                }
                TenantJobKind::Wake { .. } | TenantJobKind::Schedule { .. } => {
                    let reason = "this worker does memory jobs only";
                    jobs.nack(&claimed, OTHER_JOB_DELAY, reason).await?;
                }
            }
        }
        Ok(())
    }

    /// Like [`work`](Self::work), but returns `None` if another process works for the same
    /// tenant.
    pub async fn work_exclusively(
        &self,
        tenant: &TenantId,
        options: &WorkerOptions,
    ) -> Result<Option<WorkerReport>, MemoryError> {
        let state = self.cx.tenant_state(tenant);
        let ttl = options.visibility_timeout;
        let Some(fence) = acquire(&state, WORKER_LEASE, ttl).await? else {
            return Ok(None);
        };
        self.note_killed_runs(tenant).await?;
        let worked = tokio::select! {
            worked = self.work(tenant, options) => worked.map(Some),
            lost = keep_lease(&state, &fence, ttl) => lost.map(|()| None),
        };
        state.store.release(&state.space, &fence).await?;
        worked
    }

    /// Starts a worker in the background. It ends when the handle is dropped; the next worker takes
    /// over unfinished work.
    pub fn spawn_worker(&self, tenant: TenantId) -> MemoryWorker {
        /// How often it looks whether work is due.
        const EVERY: Duration = Duration::from_secs(60);
        let memory = self.clone();
        let wake = Arc::new(Notify::new());
        let woken = wake.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let options = WorkerOptions::with_limit(Duration::from_secs(600));
            // What fails here is noted by the next worker.
            let _ = memory.note_killed_runs(&tenant).await;
            loop {
                // Errors are part of the memory status; what is not done goes on waiting.
                let _ = memory.work(&tenant, &options).await;
                let _ = tokio::time::timeout(EVERY, woken.notified()).await;
            }
        });
        MemoryWorker {
            wake,
            _tasks: tasks,
        }
    }
}

/// Acquires a lease, unless another process has it.
async fn acquire(
    state: &OwnerState,
    name: &str,
    ttl: Duration,
) -> Result<Option<FencingToken>, MemoryError> {
    let me = DocVersion::fresh().to_string();
    let outcome = state
        .store
        .acquire(&state.space, name, &me, ttl, Claim::Free)
        .await?;
    Ok(match outcome {
        AcquireOutcome::Granted(fence) => Some(fence),
        AcquireOutcome::Held(_) => None,
    })
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
    /// Wakes the worker: something may be due.
    pub fn wake(&self) {
        self.wake.notify_one();
    }
}
