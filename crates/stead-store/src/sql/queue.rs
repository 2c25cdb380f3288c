//! Queues in one table.
//!
//! A job is ready until it is done or dead; a claimed one is ready again at `due_ms`. `grip` is the
//! mark of whoever has it: the one that added it until its first delivery, then the worker, and
//! empty once it was given back. `dedup` is unique in its queue: a hash of the job's own key, or
//! else something that nobody has.

use super::driver::{Begin, Fault, Row, Statement, Tx, end};
use super::journals::new_id;
use super::retry::Earlier;
use super::{SqlStore, marks, ms};
use crate::contract::{Claimed, Dead, Enqueued, Job, Queue, Space};
use crate::error::StoreError;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use std::sync::atomic::Ordering;
use std::time::Duration;

const READY: i64 = 0;
const DEAD: i64 = 1;
const DONE: i64 = 2;
/// How long a dedup key is remembered after its job ended.
const DEDUP_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a job without one is remembered: longer than anybody asks again after a lost answer.
const DONE_MEMORY: Duration = Duration::from_secs(10 * 60);
/// Every so many acknowledged jobs, those that may be forgotten are removed, at most so many at a
/// time.
const TIDY_EVERY: u32 = 64;
const TIDY_ROWS: i64 = 500;
const UNANSWERED: &str = "it was not acknowledged in time";
const DEDUP_TAG: u8 = b'd';
const UNIQUE_TAG: u8 = b'u';
const FORGOTTEN_TAG: u8 = b'f';
/// `DEDUP_TAG` and a SHA-256. The others are shorter.
const DEDUP_BYTES: i64 = 33;

impl Queue for SqlStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<Enqueued, StoreError>> {
        async move {
            self.check_name(queue)?;
            self.check_value(&job.payload)?;
            let grip = fresh_grip();
            let dedup = match &job.dedup {
                Some(key) => tagged(DEDUP_TAG, &Sha256::digest(key.as_bytes())),
                None => tagged(UNIQUE_TAG, &grip),
            };
            let add = Add {
                store: self,
                space,
                queue,
                job: &job,
                grip: &grip,
                dedup: &dedup,
            };
            self.retrying(|earlier| add.attempt(earlier).boxed()).await
        }
        .boxed()
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<Claimed>, StoreError>> {
        async move {
            let grip = fresh_grip();
            let take = Take {
                store: self,
                space,
                queue,
                hide_ms: ms(hide),
                grip: &grip,
            };
            self.retrying(|earlier| take.attempt(earlier).boxed()).await
        }
        .boxed()
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
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
                    let statement = Statement::new(ours(&set)).int(spans.0).int(spans.1).bytes(b"");
                    if self.change_ours(statement, space, queue, claimed).await? {
                        return Ok(true);
                    }
                    let found = self.look_again(earlier, space, queue, claimed).await?;
                    Ok(found.is_some_and(|job| job.state == DONE))
                }
                .boxed()
            };
            let done = self.retrying(answer).await?;
            if self.acks.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIDY_EVERY)
                && let Err(fault) = self.tidy(space, queue).await
            {
                // The job is done all the same; the next round will tidy up.
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
        claimed: &'a Claimed,
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
                    let statement = Statement::new(ours(&set))
                        .int(ms(delay))
                        .bytes(b"")
                        .bytes(reason);
                    if self.change_ours(statement, space, queue, claimed).await? {
                        return Ok(true);
                    }
                    let found = self.look_again(earlier, space, queue, claimed).await?;
                    Ok(found.is_some_and(|job| {
                        job.state != DONE && job.grip.is_empty() && job.reason == reason
                    }))
                }
                .boxed()
            };
            self.retrying(answer).await
        }
        .boxed()
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.retrying_boxed(move |_| {
            async move {
                let set = format!("due_ms = {} + ?", self.dialect.now());
                self.change_ours(
                    Statement::new(ours(&set)).int(ms(hide)),
                    space,
                    queue,
                    claimed,
                )
                .await
            }
            .boxed()
        })
    }

    fn dead<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Dead>, StoreError>> {
        async move {
            // Those whose last delivery ran out are dead as well, although nobody asked for a job
            // since.
            self.retrying(|_| self.bury(space, queue).boxed()).await?;
            let sql = "SELECT id, payload, attempts, reason FROM stead_jobs \
                       WHERE space = ? AND queue = ? AND state = ? AND due_ms = 0 AND id > ? ORDER BY id LIMIT ?";
            let after = after.map_or(0, |after| id_of(after).unwrap_or(i64::MAX));
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let statement = || Statement::new(sql).bytes(space.as_str()).bytes(queue).int(DEAD).int(after).int(limit);
            let dead = self.read(statement).await?.rows.into_iter().map(|mut row| {
                let id = shown(row.int(0)?);
                let attempts = attempts_of(&row, 2)?;
                Ok(Dead { id, payload: row.bytes(1)?.into(), attempts, reason: row.text(3)? })
            });
            dead.collect::<Result<_, Fault>>().map_err(|fault| self.give_up(fault))
        }
        .boxed()
    }
}

/// Ids as text that compares as the numbers do.
fn shown(id: i64) -> String {
    format!("{id:020}")
}

fn id_of(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn attempts_of(row: &Row, column: usize) -> Result<u32, Fault> {
    let value = row.int(column)?;
    u32::try_from(value).map_err(|_| Fault::Odd(format!("a job has {value} attempts")))
}

fn fresh_grip() -> [u8; 16] {
    uuid::Uuid::now_v7().into_bytes()
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![tag];
    all.extend_from_slice(bytes);
    all
}

/// Changes a job that is in somebody's hands.
fn ours(set: &str) -> String {
    format!(
        "UPDATE stead_jobs SET {set} \
         WHERE id = ? AND space = ? AND queue = ? AND state = {READY} AND attempts = ? AND LENGTH(grip) > 0"
    )
}

/// What a second look at a job shows.
struct Seen {
    state: i64,
    grip: Vec<u8>,
    reason: String,
}

impl SqlStore {
    async fn change_ours<'a>(
        &'a self,
        statement: Statement<'a>,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
    ) -> Result<bool, Fault> {
        let Some(id) = id_of(&claimed.id) else {
            return Ok(false);
        };
        let statement = statement
            .int(id)
            .bytes(space.as_str())
            .bytes(queue)
            .int(i64::from(claimed.attempt));
        Ok(self.driver.write(statement).await?.changed > 0)
    }

    /// The job as it was after this delivery, if an earlier attempt may have changed it.
    async fn look_again(
        &self,
        earlier: Earlier,
        space: &Space,
        queue: &str,
        claimed: &Claimed,
    ) -> Result<Option<Seen>, Fault> {
        let (Earlier::Unknown, Some(id)) = (earlier, id_of(&claimed.id)) else {
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
            Ok(Seen {
                state: row.int(0)?,
                grip: row.bytes(1)?,
                reason: row.text(2)?,
            })
        })
        .transpose()
    }

    /// Buries the jobs whose last delivery was not answered in time.
    async fn bury(&self, space: &Space, queue: &str) -> Result<(), Fault> {
        let now = self.dialect.now();
        let sql = format!(
            "UPDATE stead_jobs SET state = {DEAD}, due_ms = 0, ended_ms = {now}, reason = ?, grip = ? WHERE space = ? \
             AND queue = ? AND state = {READY} AND due_ms <= {now} AND attempts >= max_attempts"
        );
        let statement = Statement::new(sql)
            .bytes(UNANSWERED)
            .bytes(b"")
            .bytes(space.as_str())
            .bytes(queue);
        self.driver.write(statement).await.map(|_| ())
    }

    /// Removes jobs that were done so long ago that they may be forgotten.
    async fn tidy(&self, space: &Space, queue: &str) -> Result<(), Fault> {
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
            marks(rows.len())
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

/// A job on its way into a queue.
struct Add<'a> {
    store: &'a SqlStore,
    space: &'a Space,
    queue: &'a str,
    job: &'a Job,
    grip: &'a [u8],
    dedup: &'a [u8],
}

impl Add<'_> {
    async fn attempt(&self, earlier: Earlier) -> Result<Enqueued, Fault> {
        let dialect = self.store.dialect;
        let now = dialect.now();
        let returning = dialect.returning_id();
        let sql = format!(
            "INSERT INTO stead_jobs (space, queue, dedup, state, due_ms, attempts, max_attempts, ended_ms, grip, \
             payload, reason) VALUES (?, ?, ?, {READY}, {now} + ?, 0, ?, 0, ?, ?, ?){returning}"
        );
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.queue)
            .bytes(self.dedup);
        let statement = statement
            .int(ms(self.job.delay))
            .int(i64::from(self.job.max_attempts.max(1)));
        match self
            .store
            .driver
            .write(
                statement
                    .bytes(self.grip)
                    .bytes(&self.job.payload)
                    .bytes(b""),
            )
            .await
        {
            Ok(answer) => Ok(Enqueued::New(shown(new_id(answer)?))),
            Err(Fault::Duplicate(_)) => self.known(earlier).await,
            Err(fault) => Err(fault),
        }
    }

    /// There is a job with this key. Whether it still counts.
    async fn known(&self, earlier: Earlier) -> Result<Enqueued, Fault> {
        let sql = format!(
            "SELECT id, state, ended_ms, {}, grip FROM stead_jobs WHERE space = ? AND queue = ? AND dedup = ?",
            self.store.dialect.now()
        );
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.queue)
            .bytes(self.dedup);
        let again = || Fault::Again("a job with the same key went away just now".to_owned());
        let mut row = self
            .store
            .driver
            .write(statement)
            .await?
            .first()
            .ok_or_else(again)?;
        let id = row.int(0)?;
        let state = row.int(1)?;
        let ended_ms = row.int(2)?;
        let now_ms = row.int(3)?;
        let is_mine = self.job.dedup.is_none() || row.bytes(4)? == self.grip;
        if earlier == Earlier::Unknown && is_mine {
            return Ok(Enqueued::New(shown(id)));
        }
        if state == READY || ended_ms.saturating_add(ms(DEDUP_MEMORY)) > now_ms {
            return Ok(Enqueued::Known(shown(id)));
        }
        // Ended too long ago: the key is free again. A dead letter stays, under another one.
        let forgotten = tagged(FORGOTTEN_TAG, &id.to_be_bytes());
        let statement = match state {
            DONE => Statement::new(format!(
                "DELETE FROM stead_jobs WHERE id = ? AND state = {DONE}"
            ))
            .int(id),
            _ => Statement::new(format!(
                "UPDATE stead_jobs SET dedup = ? WHERE id = ? AND state = {DEAD}"
            ))
            .bytes(&forgotten)
            .int(id),
        };
        self.store.driver.write(statement).await?;
        Err(Fault::Again(
            "the key of a job was forgotten just now".to_owned(),
        ))
    }
}

/// A worker that wants a job.
struct Take<'a> {
    store: &'a SqlStore,
    space: &'a Space,
    queue: &'a str,
    hide_ms: i64,
    grip: &'a [u8],
}

impl Take<'_> {
    async fn attempt(&self, earlier: Earlier) -> Result<Option<Claimed>, Fault> {
        if earlier == Earlier::Unknown
            && let Some(claimed) = self.taken_already().await?
        {
            return Ok(Some(claimed));
        }
        if !self.store.dialect.updates_return_rows() {
            let mut tx = self.store.driver.begin(Begin::Write).await?;
            let outcome = self.take_in(&mut *tx).await;
            return end(tx, outcome).await;
        }
        let sql = format!(
            "{} WHERE id = ({}) RETURNING id, attempts, state, payload",
            self.set(),
            self.due("id")
        );
        loop {
            let statement = self
                .with_set(Statement::new(sql.clone()))
                .bytes(self.space.as_str())
                .bytes(self.queue);
            let Some(row) = self.store.driver.write(statement).await?.first() else {
                return Ok(None);
            };
            if row.int(2)? == READY {
                return claimed(row, 3).map(Some);
            }
        }
    }

    /// The job that an attempt took whose answer was lost.
    async fn taken_already(&self) -> Result<Option<Claimed>, Fault> {
        let sql = format!(
            "SELECT id, attempts, payload FROM stead_jobs WHERE space = ? AND queue = ? AND state = {READY} AND grip = ?"
        );
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.queue)
            .bytes(self.grip);
        self.store
            .driver
            .write(statement)
            .await?
            .first()
            .map(|row| claimed(row, 2))
            .transpose()
    }

    async fn take_in(&self, tx: &mut dyn Tx) -> Result<Option<Claimed>, Fault> {
        let look = self.due("id, attempts, max_attempts, payload");
        let set = format!("{} WHERE id = ?", self.set());
        loop {
            let statement = Statement::new(look.clone())
                .bytes(self.space.as_str())
                .bytes(self.queue);
            let Some(row) = tx.run(statement).await?.first() else {
                return Ok(None);
            };
            tx.run(self.with_set(Statement::new(set.clone())).int(row.int(0)?))
                .await?;
            if row.int(1)? < row.int(2)? {
                let claimed = claimed(row, 3)?;
                return Ok(Some(Claimed {
                    attempt: claimed.attempt + 1,
                    ..claimed
                }));
            }
        }
    }

    /// Finds the job that has been due longest and locks it, passing over those that others look
    /// at.
    fn due(&self, columns: &str) -> String {
        let dialect = self.store.dialect;
        let now = dialect.now();
        let lock = dialect.for_update_of_free();
        format!(
            "SELECT {columns} FROM stead_jobs WHERE space = ? AND queue = ? AND state = {READY} AND due_ms <= {now} \
             ORDER BY due_ms, id LIMIT 1{lock}"
        )
    }

    /// Delivers a job, or buries it if it was delivered often enough. Attempts come last: MySQL's
    /// later parts see what its earlier ones set.
    fn set(&self) -> String {
        let now = self.store.dialect.now();
        let over = "attempts >= max_attempts";
        format!(
            "UPDATE stead_jobs SET state = CASE WHEN {over} THEN {DEAD} ELSE {READY} END, \
             due_ms = CASE WHEN {over} THEN 0 ELSE {now} + ? END, \
             ended_ms = CASE WHEN {over} THEN {now} ELSE 0 END, \
             reason = CASE WHEN {over} THEN ? ELSE reason END, grip = CASE WHEN {over} THEN ? ELSE ? END, \
             attempts = CASE WHEN {over} THEN attempts ELSE attempts + 1 END"
        )
    }

    fn with_set<'s>(&'s self, statement: Statement<'s>) -> Statement<'s> {
        statement
            .int(self.hide_ms)
            .bytes(UNANSWERED)
            .bytes(b"")
            .bytes(self.grip)
    }
}

fn claimed(mut row: Row, payload: usize) -> Result<Claimed, Fault> {
    let attempt = attempts_of(&row, 1)?;
    Ok(Claimed {
        id: shown(row.int(0)?),
        payload: row.bytes(payload)?.into(),
        attempt,
    })
}
