//! Queues as one file of jobs each, and a file for what each job is about.

use super::folder::{Folder, Part};
use super::{FileStore, names, now_ms};
use crate::local::{Added, Jobs, Settle};
use crate::{Claimed, Dead, Enqueued, Job, Queue, Space, StoreError};
use futures_util::future::BoxFuture;
use std::time::Duration;

impl Queue for FileStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<Enqueued, StoreError>> {
        let queue = queue.to_owned();
        Box::pin(self.write(space, move |folder| {
            let mut jobs = read(folder, &queue)?;
            match jobs.add(now_ms(), job.dedup, job.delay, job.max_attempts) {
                Added::Known(id) => Ok(Enqueued::Known(id)),
                Added::New(id) => {
                    // First, so that no job is ever seen without it. Cut off here, it is written
                    // over later.
                    folder.replace(Part::Payloads, &payload_name(&queue, &id), &[&job.payload])?;
                    write(folder, &queue, &jobs)?;
                    Ok(Enqueued::New(id))
                }
            }
        }))
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<Claimed>, StoreError>> {
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
            Ok(Some(Claimed {
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
        claimed: &'a Claimed,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(space, queue, claimed, Settle::Ack))
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(
            space,
            queue,
            claimed,
            Settle::Nack {
                delay,
                reason: reason.to_owned(),
            },
        ))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(space, queue, claimed, Settle::Extend { hide }))
    }

    fn dead<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Dead>, StoreError>> {
        let queue = queue.to_owned();
        let after = after.map(str::to_owned);
        Box::pin(self.read(space, move |folder| {
            let jobs = read(folder, &queue)?;
            let dead = jobs.dead(after.as_deref()).take(limit).map(|(id, buried)| {
                Ok(Dead {
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
        claimed: &Claimed,
        settle: Settle,
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
            if settle == Settle::Ack {
                // Last, and at worst it stays behind: no job refers to it any more.
                if let Err(error) = folder.remove(Part::Payloads, &payload_name(&queue, &id)) {
                    tracing::warn!(%error, "the payload of a job that is done could not be removed");
                }
            }
            Ok(true)
        })
        .await
    }
}

fn file_name(queue: &str) -> String {
    format!("{}.json", names::of_key(queue))
}

/// An id is as long as any other, so that no two queues can share a name.
fn payload_name(queue: &str, id: &str) -> String {
    format!("{}.{id}", names::of_key(queue))
}

fn payload(folder: &Folder, queue: &str, id: &str) -> Result<bytes::Bytes, StoreError> {
    let name = payload_name(queue, id);
    let found = folder.read(Part::Payloads, &name)?;
    let missing = || {
        folder.corrupt(
            &folder.file(Part::Payloads, &name),
            "it is missing".to_owned(),
        )
    };
    found.map(Into::into).ok_or_else(missing)
}

fn read(folder: &Folder, queue: &str) -> Result<Jobs, StoreError> {
    let name = file_name(queue);
    let Some(text) = folder.read(Part::Queues, &name)? else {
        return Ok(Jobs::default());
    };
    serde_json::from_slice(&text)
        .map_err(|cause| folder.corrupt(&folder.file(Part::Queues, &name), cause.to_string()))
}

fn write(folder: &Folder, queue: &str, jobs: &Jobs) -> Result<(), StoreError> {
    let name = file_name(queue);
    let text = serde_json::to_vec(jobs)
        .map_err(|cause| folder.corrupt(&folder.file(Part::Queues, &name), cause.to_string()))?;
    folder.replace(Part::Queues, &name, &[&text])
}
