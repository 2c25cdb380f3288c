//! The queues of the file store: one file with the jobs of a queue, and a file for each payload.
//!
//! Effects: the clock, randomness, the local disk (writes).

use super::locked_folder::{LockedFolder, SpaceSubfolder};
use super::{FileStore, names, now_ms};
use crate::local::{AddOutcome, JobTable, Settlement};
use crate::{ClaimedJob, DeadLetter, EnqueueOutcome, Job, Queue, Space, StoreError};
use futures_util::future::BoxFuture;
use std::time::Duration;

impl Queue for FileStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>> {
        let queue = queue.to_owned();
        Box::pin(self.write(space, move |folder| {
            let mut jobs = read(folder, &queue)?;
            match jobs.add(now_ms(), job.dedup, job.delay, job.max_attempts) {
                AddOutcome::Existing(id) => Ok(EnqueueOutcome::Existing(id)),
                AddOutcome::New(id) => {
                    // Written first, so that no job is seen without its payload. If this is
                    // interrupted, the payload is overwritten later.
                    folder.replace(
                        SpaceSubfolder::Payloads,
                        &payload_name(&queue, &id),
                        &[&job.payload],
                    )?;
                    write(folder, &queue, &jobs)?;
                    Ok(EnqueueOutcome::New(id))
                }
            }
        }))
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>> {
        let queue = queue.to_owned();
        Box::pin(self.read(space, move |folder| {
            let mut jobs = read(folder, &queue)?;
            let buried = jobs.dead(None).count();
            let claimed = jobs.claim(now_ms(), hide);
            if claimed.is_some() || jobs.dead(None).count() > buried {
                write(folder, &queue, &jobs)?;
            }
            let Some((id, attempt)) = claimed else {
                return Ok(None);
            };
            Ok(Some(ClaimedJob {
                payload: payload(folder, &queue, &id)?,
                id,
                attempt,
            }))
        }))
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(space, queue, claimed, Settlement::Ack))
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(
            space,
            queue,
            claimed,
            Settlement::Nack {
                delay,
                reason: reason.to_owned(),
            },
        ))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(space, queue, claimed, Settlement::Extend { hide }))
    }

    fn dead_letters<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, StoreError>> {
        let queue = queue.to_owned();
        let after = after.map(str::to_owned);
        Box::pin(self.read(space, move |folder| {
            let jobs = read(folder, &queue)?;
            let dead = jobs.dead(after.as_deref()).take(limit).map(|(id, buried)| {
                Ok(DeadLetter {
                    id: id.clone(),
                    payload: payload(folder, &queue, id)?,
                    attempts: buried.attempts,
                    reason: buried.reason.clone(),
                })
            });
            dead.collect()
        }))
    }
}

impl FileStore {
    async fn settle(
        &self,
        space: &Space,
        queue: &str,
        claimed: &ClaimedJob,
        settle: Settlement,
    ) -> Result<bool, StoreError> {
        let queue = queue.to_owned();
        let id = claimed.id.clone();
        let attempt = claimed.attempt;
        self.read(space, move |folder| {
            let mut jobs = read(folder, &queue)?;
            if !jobs.settle(now_ms(), &id, attempt, &settle) {
                return Ok(false);
            }
            write(folder, &queue, &jobs)?;
            if settle == Settlement::Ack {
                // Removed last. If this fails, a file remains that no job refers to.
                if let Err(error) = folder.remove(SpaceSubfolder::Payloads, &payload_name(&queue, &id)) {
                    tracing::warn!(%error, "the payload of a job that is done could not be removed");
                }
            }
            Ok(true)
        })
        .await
    }
}

fn file_name(queue: &str) -> String {
    format!("{}.json", names::key_file_name(queue))
}

/// Returns the file name of a payload. Ids have a fixed length, so that no two queues can share a
/// name.
fn payload_name(queue: &str, id: &str) -> String {
    format!("{}.{id}", names::key_file_name(queue))
}

fn payload(folder: &LockedFolder, queue: &str, id: &str) -> Result<bytes::Bytes, StoreError> {
    let name = payload_name(queue, id);
    let found = folder.read(SpaceSubfolder::Payloads, &name)?;
    let missing = || {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Payloads, &name),
            "it is missing".to_owned(),
        )
    };
    found.map(Into::into).ok_or_else(missing)
}

fn read(folder: &LockedFolder, queue: &str) -> Result<JobTable, StoreError> {
    let name = file_name(queue);
    let Some(text) = folder.read(SpaceSubfolder::Queues, &name)? else {
        return Ok(JobTable::default());
    };
    serde_json::from_slice(&text).map_err(|cause| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Queues, &name),
            cause.to_string(),
        )
    })
}

fn write(folder: &LockedFolder, queue: &str, jobs: &JobTable) -> Result<(), StoreError> {
    let name = file_name(queue);
    let text = serde_json::to_vec(jobs).map_err(|cause| {
        folder.corrupt(
            &folder.file(SpaceSubfolder::Queues, &name),
            cause.to_string(),
        )
    })?;
    folder.replace(SpaceSubfolder::Queues, &name, &[&text])
}
