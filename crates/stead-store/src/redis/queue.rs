//! The queues of the Redis store: sorted sets of jobs by the time they are due.
//!
//! Effects: the clock, randomness, the network.

use super::{RedisStore, lex_range_start, limit, millis, number, text};
use crate::{ClaimedJob, DeadLetter, EnqueueOutcome, Job, Queue, Space, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::time::Duration;

impl Queue for RedisStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>> {
        Box::pin(async move {
            let mut args = vec![
                text(queue),
                request_id(),
                job.payload,
                millis(job.delay),
                number(job.max_attempts),
            ];
            args.extend(job.dedup.map(Bytes::from));
            let mut reply = self.call(&self.scripts.enqueue, space, &args).await?;
            let is_new = reply.text()? == "new";
            let id = reply.text()?;
            Ok(if is_new {
                EnqueueOutcome::New(id)
            } else {
                EnqueueOutcome::Existing(id)
            })
        })
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>> {
        Box::pin(async move {
            let args = [text(queue), request_id(), millis(hide)];
            let mut reply = self.call(&self.scripts.claim, space, &args).await?;
            if reply.is_exhausted() {
                return Ok(None);
            }
            Ok(Some(ClaimedJob {
                id: reply.text()?,
                payload: reply.bytes()?,
                attempt: reply.number()?,
            }))
        })
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(space, queue, claimed, vec![Bytes::from_static(b"ack")]))
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
            vec![Bytes::from_static(b"nack"), millis(delay), text(reason)],
        ))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.settle(
            space,
            queue,
            claimed,
            vec![Bytes::from_static(b"extend"), millis(hide)],
        ))
    }

    fn dead_letters<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, StoreError>> {
        Box::pin(async move {
            let mut reply = self
                .call(
                    &self.scripts.dead,
                    space,
                    &[text(queue), lex_range_start(after), limit(most)],
                )
                .await?;
            let mut dead = Vec::new();
            while !reply.is_exhausted() {
                let id = reply.text()?;
                let payload = reply.bytes()?;
                dead.push(DeadLetter {
                    id,
                    payload,
                    attempts: reply.number()?,
                    reason: reply.text()?,
                });
            }
            Ok(dead)
        })
    }
}

impl RedisStore {
    async fn settle(
        &self,
        space: &Space,
        queue: &str,
        claimed: &ClaimedJob,
        act: Vec<Bytes>,
    ) -> Result<bool, StoreError> {
        let mut args = vec![text(queue), text(&claimed.id), number(claimed.attempt)];
        args.extend(act);
        self.call(&self.scripts.settle, space, &args)
            .await?
            .boolean()
    }
}

/// Returns an id by which the server recognises a repeated request.
fn request_id() -> Bytes {
    number(uuid::Uuid::now_v7())
}
