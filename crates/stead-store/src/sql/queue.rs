//! The queues of the SQL store, in one table.
//!
//! A job is ready until it is done or dead; a claimed job is ready again at `due_ms`. `grip`
//! identifies the current owner: the process that added the job until its first delivery, then the
//! worker; it is empty after the job was returned. `dedup` is unique in its queue: a hash of the
//! job's dedup key, or else a unique value.
//!
//! Effects: the clock, randomness, the local disk (writes), the network.

mod claim;
mod enqueue;

use self::claim::ClaimOp;
use self::enqueue::EnqueueOp;
use super::driver::{DbFault, SqlRow, Statement};
use super::retry::PriorAttempts;
use super::{SqlStore, ms, placeholders};
use crate::contract::{ClaimedJob, DeadLetter, EnqueueOutcome, Job, Queue, Space};
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use std::time::Duration;

const READY: i64 = 0;
const DEAD: i64 = 1;
const DONE: i64 = 2;
/// The time for which a dedup key is remembered after its job ended.
const DEDUP_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// The time for which a job without a dedup key is remembered: longer than a lost response is
/// retried.
const DONE_MEMORY: Duration = Duration::from_secs(10 * 60);
/// The number of acknowledged jobs after which old jobs are removed, a limited number at a time.
const TIDY_EVERY: u32 = 64;
const TIDY_ROWS: i64 = 500;
const UNACKNOWLEDGED_REASON: &str = "it was not acknowledged in time";
const DEDUP_TAG: u8 = b'd';
const UNIQUE_TAG: u8 = b'u';
const FORGOTTEN_TAG: u8 = b'f';
/// The length of `DEDUP_TAG` and a SHA-256 hash. Other values are shorter.
const DEDUP_BYTES: i64 = 33;

impl Queue for SqlStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>> {
        async move {
            self.check_name(queue)?;
            self.check_value(&job.payload)?;
            let grip = new_claim_token();
            let dedup = match &job.dedup {
                Some(key) => tagged(DEDUP_TAG, &Sha256::digest(key.as_bytes())),
                None => tagged(UNIQUE_TAG, &grip),
            };
            let add = EnqueueOp {
                store: self,
                space,
                queue,
                job: &job,
                claim_token: &grip,
                dedup: &dedup,
            };
            self.retry(|earlier| add.attempt(earlier).boxed()).await
        }
        .boxed()
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>> {
        async move {
            let grip = new_claim_token();
            let take = ClaimOp {
                store: self,
                space,
                queue,
                hide_ms: ms(hide),
                claim_token: &grip,
            };
            self.retry(|earlier| take.attempt(earlier).boxed()).await
        }
        .boxed()
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        async move {
            let now = self.dialect.now();
            let set = format!(
                "state = {DONE}, ended_ms = {now}, \
                 due_ms = {now} + CASE WHEN LENGTH(dedup) = {DEDUP_BYTES} THEN ? ELSE ? END, payload = ?"
            );
            let spans = (ms(DEDUP_MEMORY), ms(DONE_MEMORY));
            let answer = |earlier| {
                let set = set.clone();
                async move {
                    let statement = Statement::new(update_claimed_sql(&set)).int(spans.0).int(spans.1).bytes(b"");
                    if self.update_claimed(statement, space, queue, claimed).await? {
                        return Ok(true);
                    }
                    let found = self.recheck_job(earlier, space, queue, claimed).await?;
                    Ok(found.is_some_and(|job| job.state == DONE))
                }
                .boxed()
            };
            let done = self.retry(answer).await?;
            if self.acks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDY_EVERY)
                && let Err(fault) = self.tidy(space, queue).await
            {
                // The job is done all the same; the next cleanup will remove it.
                tracing::debug!(place = %self.place, ?fault, "done jobs were not removed");
            }
            Ok(done)
        }
        .boxed()
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        async move {
            let now = self.dialect.now();
            let last = "attempts >= max_attempts";
            let set = format!(
                "state = CASE WHEN {last} THEN {DEAD} ELSE {READY} END, \
                 due_ms = CASE WHEN {last} THEN 0 ELSE {now} + ? END, \
                 ended_ms = CASE WHEN {last} THEN {now} ELSE 0 END, grip = ?, reason = ?"
            );
            let answer = |earlier| {
                let set = set.clone();
                async move {
                    let statement = Statement::new(update_claimed_sql(&set))
                        .int(ms(delay))
                        .bytes(b"")
                        .bytes(reason);
                    if self
                        .update_claimed(statement, space, queue, claimed)
                        .await?
                    {
                        return Ok(true);
                    }
                    let found = self.recheck_job(earlier, space, queue, claimed).await?;
                    Ok(found.is_some_and(|job| {
                        job.state != DONE && job.claim_token.is_empty() && job.reason == reason
                    }))
                }
                .boxed()
            };
            self.retry(answer).await
        }
        .boxed()
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.retry_boxed(move |_| {
            async move {
                let set = format!("due_ms = {} + ?", self.dialect.now());
                self.update_claimed(
                    Statement::new(update_claimed_sql(&set)).int(ms(hide)),
                    space,
                    queue,
                    claimed,
                )
                .await
            }
            .boxed()
        })
    }

    fn dead_letters<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, StoreError>> {
        async move {
            // Jobs whose last delivery expired are dead too, even if no worker has claimed since.
            self.retry(|_| self.bury_expired(space, queue).boxed()).await?;
            let sql = "SELECT id, payload, attempts, reason FROM stead_jobs \
                       WHERE space = ? AND queue = ? AND state = ? AND due_ms = 0 AND id > ? ORDER BY id LIMIT ?";
            let after = after.map_or(0, |after| parse_id(after).unwrap_or(i64::MAX));
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let statement = || Statement::new(sql).bytes(space.as_str()).bytes(queue).int(DEAD).int(after).int(limit);
            let dead = self.read(statement).await?.rows.into_iter().map(|mut row| {
                let id = format_id(row.int(0)?);
                let attempts = attempts_of(&row, 2)?;
                Ok(DeadLetter { id, payload: row.bytes(1)?.into(), attempts, reason: row.text(3)? })
            });
            dead.collect::<Result<_, DbFault>>().map_err(|fault| self.store_error(fault))
        }
        .boxed()
    }
}

/// Formats an id as text that compares as the numbers do.
fn format_id(id: i64) -> String {
    format!("{id:020}")
}

fn parse_id(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn attempts_of(row: &SqlRow, column: usize) -> Result<u32, DbFault> {
    let value = row.int(column)?;
    u32::try_from(value).map_err(|_| DbFault::Corrupt(format!("a job has {value} attempts")))
}

fn new_claim_token() -> [u8; 16] {
    uuid::Uuid::now_v7().into_bytes()
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    all.extend_from_slice(bytes);
    all
}

/// Returns the statement that updates a claimed job.
fn update_claimed_sql(set: &str) -> String {
    format!(
        "UPDATE stead_jobs SET {set} \
         WHERE id = ? AND space = ? AND queue = ? AND state = {READY} AND attempts = ? AND LENGTH(grip) > 0"
    )
}

/// The state of a job when it is checked again.
struct JobSnapshot {
    state: i64,
    claim_token: Vec<u8>,
    reason: String,
}

impl SqlStore {
    async fn update_claimed<'a>(
        &'a self,
        statement: Statement<'a>,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> Result<bool, DbFault> {
        let Some(id) = parse_id(&claimed.id) else {
            return Ok(false);
        };
        let statement = statement
            .int(id)
            .bytes(space.as_str())
            .bytes(queue)
            .int(i64::from(claimed.attempt));
        Ok(self.driver.write(statement).await?.changed > 0)
    }

    /// Returns the job as it was after this delivery, if an earlier attempt may have changed it.
    async fn recheck_job(
        &self,
        earlier: PriorAttempts,
        space: &Space,
        queue: &str,
        claimed: &ClaimedJob,
    ) -> Result<Option<JobSnapshot>, DbFault> {
        let (PriorAttempts::Unknown, Some(id)) = (earlier, parse_id(&claimed.id)) else {
            return Ok(None);
        };
        let sql = "SELECT state, grip, reason FROM stead_jobs WHERE id = ? AND space = ? AND queue = ? AND attempts = ?";
        let statement = Statement::new(sql)
            .int(id)
            .bytes(space.as_str())
            .bytes(queue);
        let row = self
            .driver
            .write(statement.int(i64::from(claimed.attempt)))
            .await?
            .first();
        row.map(|mut row| {
            Ok(JobSnapshot {
                state: row.int(0)?,
                claim_token: row.bytes(1)?,
                reason: row.text(2)?,
            })
        })
        .transpose()
    }

    /// Turns jobs whose last delivery expired into dead letters.
    async fn bury_expired(&self, space: &Space, queue: &str) -> Result<(), DbFault> {
        let now = self.dialect.now();
        let sql = format!(
            "UPDATE stead_jobs SET state = {DEAD}, due_ms = 0, ended_ms = {now}, reason = ?, grip = ? WHERE space = ? \
             AND queue = ? AND state = {READY} AND due_ms <= {now} AND attempts >= max_attempts"
        );
        let statement = Statement::new(sql)
            .bytes(UNACKNOWLEDGED_REASON)
            .bytes(b"")
            .bytes(space.as_str())
            .bytes(queue);
        self.driver.write(statement).await.map(|_| ())
    }

    /// Removes jobs that ended so long ago that they can be forgotten.
    async fn tidy(&self, space: &Space, queue: &str) -> Result<(), DbFault> {
        let sql = format!(
            "SELECT id FROM stead_jobs WHERE space = ? AND queue = ? AND state = {DONE} AND due_ms <= {} LIMIT ?",
            self.dialect.now()
        );
        let statement = Statement::new(sql)
            .bytes(space.as_str())
            .bytes(queue)
            .int(TIDY_ROWS);
        let rows = self.driver.read(statement).await?.rows;
        if rows.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "DELETE FROM stead_jobs WHERE state = {DONE} AND id IN ({})",
            placeholders(rows.len())
        );
        let ids = rows
            .iter()
            .map(|row| row.int(0))
            .collect::<Result<Vec<_>, _>>()?;
        let statement = ids
            .into_iter()
            .fold(Statement::new(sql), Statement::int)
            .once();
        self.driver.write(statement).await.map(|_| ())
    }
}
