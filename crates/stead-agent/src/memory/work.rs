//! Who does what was put off: any process that has the time.

use super::error::MemoryError;
use super::job::{MemoryJob, QUEUE};
use super::marks::{Kept, Merged};
use crate::Agent;
use std::sync::Arc;
use std::time::Duration;
use stead_core::Owner;
use stead_store::{Acquired, Claim, Claimed, Fence, Leases};
use stead_workspace::State;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The lease of the one process that works on its own.
const WORKER: &str = "worker";
/// Longest wait before a job that failed is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long a worker works, and how it treats jobs.
#[derive(Debug, Clone)]
pub struct WorkOptions {
    /// No job is begun or gone on with after this.
    pub limit: Duration,
    /// How long a job stays with a worker that is not heard of (default 60 seconds).
    pub hide: Duration,
    /// How long a job that failed for the first time rests; after that twice as long each time
    /// (default 30 seconds).
    pub rest: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

impl WorkOptions {
    /// Works for at most `limit`.
    pub fn for_at_most(limit: Duration) -> Self {
        let hide = Duration::from_secs(60);
        let rest = Duration::from_secs(30);
        Self {
            limit,
            hide,
            rest,
            cancel: CancellationToken::new(),
        }
    }
}

/// What a worker did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Worked {
    /// Jobs that are done.
    pub done: u64,
    /// Jobs that failed, to be tried again.
    pub failed: u64,
}

/// How a job came to its end.
enum Ended {
    Done,
    Failed(String),
    /// It is another worker's now.
    Lost,
    /// There is no time left.
    Stopped,
}

impl Agent {
    /// Does what was put off for `owner`, until nothing is due.
    pub async fn work(&self, owner: &Owner, options: &WorkOptions) -> Result<Worked, MemoryError> {
        let end = Instant::now() + options.limit;
        let state = self.memory_state(owner);
        let mut worked = Worked::default();
        while Instant::now() < end && !options.cancel.is_cancelled() {
            let Some(claimed) = state.store.claim(&state.space, QUEUE, options.hide).await? else {
                break;
            };
            match self.attend(owner, &state, &claimed, options, end).await? {
                Ended::Done => {
                    state.store.ack(&state.space, QUEUE, &claimed).await?;
                    worked.done += 1;
                }
                Ended::Failed(reason) => {
                    let wait = options
                        .rest
                        .saturating_mul(1 << (claimed.attempt.clamp(1, 16) - 1))
                        .min(LONGEST_WAIT);
                    state
                        .store
                        .nack(&state.space, QUEUE, &claimed, wait, &reason)
                        .await?;
                    worked.failed += 1;
                }
                Ended::Lost => {}
                Ended::Stopped => {
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

    /// The same, unless another process is at it for the same owner: then nothing happens.
    pub async fn work_alone(
        &self,
        owner: &Owner,
        options: &WorkOptions,
    ) -> Result<Option<Worked>, MemoryError> {
        let state = self.memory_state(owner);
        let me = format!("{} {:?}", std::process::id(), Instant::now());
        let fence = match state
            .store
            .acquire(&state.space, WORKER, &me, options.hide, Claim::Free)
            .await?
        {
            Acquired::Ours(fence) => fence,
            Acquired::Held(_) => return Ok(None),
        };
        let worked = tokio::select! {
            worked = self.work(owner, options) => worked.map(Some),
            lost = keep(&state, &fence, options.hide) => lost.map(|()| None),
        };
        state.store.release(&state.space, &fence).await?;
        worked
    }

    /// A worker beside what else the process does. It ends when the handle is dropped, and whatever
    /// it was at is taken up by the next.
    pub fn background(self: &Arc<Self>, owner: Owner) -> Background {
        /// How often it looks for what others put off, or what is due by now.
        const EVERY: Duration = Duration::from_secs(60);
        let agent = self.clone();
        let wake = Arc::new(Notify::new());
        let woken = wake.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let options = WorkOptions::for_at_most(Duration::from_secs(600));
            loop {
                // What went wrong is told by `stead memory status`; the queue keeps what was not
                // done.
                let _ = agent.work(&owner, &options).await;
                let _ = tokio::time::timeout(EVERY, woken.notified()).await;
            }
        });
        Background {
            wake,
            _tasks: tasks,
        }
    }

    pub(super) fn memory_state(&self, owner: &Owner) -> State {
        let mut state = self.parts.place.state(owner);
        state.space = state.space.within("memory");
        state
    }

    /// Does one job, telling the queue from time to time that somebody is at it.
    async fn attend(
        &self,
        owner: &Owner,
        state: &State,
        claimed: &Claimed,
        options: &WorkOptions,
        end: Instant,
    ) -> Result<Ended, MemoryError> {
        let mut work = std::pin::pin!(self.perform(owner, &claimed.payload));
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    return Ok(done.map_or_else(|error| Ended::Failed(error.to_string()), |()| Ended::Done));
                }
                () = options.cancel.cancelled() => return Ok(Ended::Stopped),
                () = tokio::time::sleep_until(end) => return Ok(Ended::Stopped),
                () = tokio::time::sleep(options.hide / 3) => {
                    if !state.store.extend(&state.space, QUEUE, claimed, options.hide).await? {
                        return Ok(Ended::Lost);
                    }
                }
            }
        }
    }

    async fn perform(&self, owner: &Owner, payload: &bytes::Bytes) -> Result<(), MemoryError> {
        match MemoryJob::parse(payload)? {
            MemoryJob::Flush { session, upto } => self.flush(owner, &session, upto).await.map(drop),
            MemoryJob::Consolidate { scope, generation } => {
                let home = self.home_of_scope(owner, &scope)?;
                let merged: Option<Kept<Merged>> = home.get(&home.merged_key()).await?;
                if merged.map_or(0, |kept| kept.value.generation) != generation {
                    // Somebody did it, and saw to whatever came after.
                    return Ok(());
                }
                self.consolidate(owner, Some(&scope)).await.map(drop)
            }
        }
    }
}

/// Renews a lease until it is lost.
async fn keep(state: &State, fence: &Fence, ttl: Duration) -> Result<(), MemoryError> {
    loop {
        tokio::time::sleep(ttl / 3).await;
        if !Leases::renew(&*state.store, &state.space, fence, ttl).await? {
            return Ok(());
        }
    }
}

/// A worker beside what else the process does.
#[derive(Debug)]
pub struct Background {
    wake: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Background {
    /// There is something to do.
    pub fn wake(&self) {
        self.wake.notify_one();
    }
}
