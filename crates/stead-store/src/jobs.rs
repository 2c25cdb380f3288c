//! The jobs of an agent for a tenant: one queue for all of the tenant's users, so that one worker
//! serves them all.
//!
//! Effects: the store (writes).

use crate::{ClaimedJob, DeadLetter, EnqueueOutcome, Job, Space, StateStore, StoreError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{SessionId, UserId};

/// The name of the queue.
const QUEUE: &str = "jobs";
/// The number of attempts before a job becomes a dead letter.
const MAX_ATTEMPTS: u32 = 8;
/// How long a job that this version does not know is left to others.
const UNKNOWN_DELAY: Duration = Duration::from_secs(60);
/// The number of dead letters that are read at once.
const DEAD_PAGE: usize = 100;
/// The number of unknown jobs that one claim passes over.
const MAX_UNKNOWN: usize = 16;

/// The queue of a tenant.
#[derive(Debug, Clone)]
pub struct TenantJobs {
    store: Arc<dyn StateStore>,
    space: Space,
}

/// A job of a tenant: what is to be done, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredJob", into = "StoredJob")]
pub struct TenantJob {
    /// The user of the tenant.
    pub user: UserId,
    /// What is to be done.
    pub kind: TenantJobKind,
}

/// The kinds of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum TenantJobKind {
    /// Extract facts from a session into long-term memory.
    ExtractFacts {
        /// The session.
        session: SessionId,
        /// The last entry to extract from.
        upto: u64,
    },
    /// Merge new facts into curated memory.
    MergeFacts {
        /// The memory: that of all sessions, or of one.
        scope: String,
        /// The number of earlier merges. If there were more since, the job has nothing to do.
        generation: u64,
    },
    /// Look at a session: its inbox, an open run, the end of a wait.
    Wake {
        /// The session.
        session: SessionId,
    },
    /// Begin a run that was scheduled.
    Schedule {
        /// The name of the schedule.
        schedule: String,
        /// The session in which the run begins; `None` for a new one.
        session: Option<SessionId>,
    },
}

/// A job that a worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTenantJob {
    /// The job.
    pub job: TenantJob,
    /// The claim.
    pub claim: ClaimedJob,
}

/// A job as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredJob {
    user: String,
    #[serde(flatten)]
    kind: TenantJobKind,
}

impl TryFrom<StoredJob> for TenantJob {
    type Error = stead_core::NameError;

    fn try_from(stored: StoredJob) -> Result<Self, Self::Error> {
        Ok(Self {
            user: UserId::new(stored.user)?,
            kind: stored.kind,
        })
    }
}

impl From<TenantJob> for StoredJob {
    fn from(job: TenantJob) -> Self {
        Self {
            user: job.user.to_string(),
            kind: job.kind,
        }
    }
}

impl TenantJobs {
    /// Returns the queue in `space`, which is that of `Place::tenant_state`.
    pub fn new(store: Arc<dyn StateStore>, space: Space) -> Self {
        Self { store, space }
    }

    /// Adds a job that is due after `delay`, unless there is one with the same `dedup` key or one
    /// ended within the last day.
    pub async fn enqueue(
        &self,
        job: &TenantJob,
        delay: Duration,
        dedup: Option<String>,
    ) -> Result<EnqueueOutcome, StoreError> {
        let payload = serde_json::to_vec(job).map_err(|cause| StoreError::Store {
            place: self.store.place().to_owned(),
            cause: cause.to_string(),
        })?;
        let job = Job {
            payload: payload.into(),
            dedup,
            delay,
            max_attempts: MAX_ATTEMPTS,
        };
        self.store.enqueue(&self.space, QUEUE, job).await
    }

    /// Claims the job that has been due longest and hides it for `hide`. Jobs that this version does
    /// not know are left to others.
    pub async fn claim(&self, hide: Duration) -> Result<Option<ClaimedTenantJob>, StoreError> {
        for _ in 0..MAX_UNKNOWN {
            let Some(claim) = self.store.claim(&self.space, QUEUE, hide).await? else {
                return Ok(None);
            };
            match parse(&claim.payload) {
                Ok(job) => return Ok(Some(ClaimedTenantJob { job, claim })),
                Err(cause) => {
                    let reason = format!("this version does not know the job: {cause}");
                    self.store
                        .nack(&self.space, QUEUE, &claim, UNKNOWN_DELAY, &reason)
                        .await?;
                }
            }
        }
        Ok(None)
    }

    /// Marks a job as done. Returns false if it no longer belongs to the caller.
    pub async fn ack(&self, claimed: &ClaimedTenantJob) -> Result<bool, StoreError> {
        self.store.ack(&self.space, QUEUE, &claimed.claim).await
    }

    /// Marks a delivery as failed for `reason`: the job is due again after `delay`, or becomes a
    /// dead letter. Returns false if it no longer belongs to the caller.
    pub async fn nack(
        &self,
        claimed: &ClaimedTenantJob,
        delay: Duration,
        reason: &str,
    ) -> Result<bool, StoreError> {
        self.store
            .nack(&self.space, QUEUE, &claimed.claim, delay, reason)
            .await
    }

    /// Hides a claimed job for `hide` from now. Returns false if it no longer belongs to the caller.
    pub async fn extend(
        &self,
        claimed: &ClaimedTenantJob,
        hide: Duration,
    ) -> Result<bool, StoreError> {
        self.store
            .extend(&self.space, QUEUE, &claimed.claim, hide)
            .await
    }

    /// Returns at most `limit` jobs that failed on their last attempt and come after `after`, oldest
    /// first.
    pub async fn dead_letters(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.store
            .dead_letters(&self.space, QUEUE, after, limit)
            .await
    }

    /// Returns at most `limit` jobs of `user` that failed on their last attempt, oldest first.
    pub async fn dead_letters_of(
        &self,
        user: &UserId,
        limit: usize,
    ) -> Result<Vec<(TenantJob, DeadLetter)>, StoreError> {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.dead_letters(after.as_deref(), DEAD_PAGE).await?;
            let is_last = page.len() < DEAD_PAGE;
            after = page.last().map(|dead| dead.id.clone());
            for dead in page {
                match parse(&dead.payload) {
                    Ok(job) if job.user == *user => found.push((job, dead)),
                    Ok(_) | Err(_) => {}
                }
                if found.len() == limit {
                    return Ok(found);
                }
            }
            if is_last {
                return Ok(found);
            }
        }
    }
}

fn parse(payload: &Bytes) -> Result<TenantJob, serde_json::Error> {
    serde_json::from_slice(payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, Queue};

    const HIDE: Duration = Duration::from_secs(60);

    fn job(user: &str, kind: TenantJobKind) -> TenantJob {
        TenantJob {
            user: UserId::new(user).unwrap(),
            kind,
        }
    }

    #[tokio::test]
    async fn one_worker_gets_the_jobs_of_all_users_when_they_are_due() {
        let store = Arc::new(MemoryStore::new());
        let space = Space::new(["tenant"]);
        let queue = TenantJobs::new(store.clone(), space.clone());
        let session = SessionId::new("s").unwrap();
        let wake = job("ann@a/b", TenantJobKind::Wake { session });
        let schedule = TenantJobKind::Schedule {
            schedule: "weekly".to_owned(),
            session: None,
        };
        let extract = TenantJobKind::ExtractFacts {
            session: SessionId::new("s").unwrap(),
            upto: 7,
        };
        let jobs = [
            job("ä", extract),
            TenantJob {
                user: UserId::default(),
                ..job("x", schedule)
            },
        ];
        queue.enqueue(&wake, HIDE, None).await.unwrap();
        for job in &jobs {
            let key = Some("once".to_owned() + job.user.as_str());
            let added = queue.enqueue(job, Duration::ZERO, key.clone()).await;
            let again = queue.enqueue(job, Duration::ZERO, key).await.unwrap();
            let EnqueueOutcome::New(id) = added.unwrap() else {
                panic!("{again:?}");
            };
            assert_eq!(again, EnqueueOutcome::Existing(id));
        }
        for job in &jobs {
            let claimed = queue.claim(HIDE).await.unwrap().unwrap();
            assert_eq!(claimed.job, *job);
            assert!(queue.extend(&claimed, HIDE).await.unwrap());
            assert!(queue.ack(&claimed).await.unwrap());
        }
        assert_eq!(queue.claim(HIDE).await.unwrap(), None, "not due yet");
        // A job of a newer version is left to it.
        let unknown = Job {
            payload: Bytes::from_static(br#"{"user":"a","do":"dream"}"#),
            dedup: None,
            delay: Duration::ZERO,
            max_attempts: 1,
        };
        store.enqueue(&space, QUEUE, unknown).await.unwrap();
        queue.enqueue(&wake, Duration::ZERO, None).await.unwrap();
        let claimed = queue.claim(HIDE).await.unwrap().unwrap();
        assert_eq!(claimed.job, wake);
        assert!(queue.nack(&claimed, HIDE, "later").await.unwrap());
        let dead = queue.dead_letters(None, 9).await.unwrap();
        assert!(dead[0].reason.contains("dream"), "{dead:?}");
    }
}
