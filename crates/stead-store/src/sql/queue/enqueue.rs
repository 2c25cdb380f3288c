//! Adding a job to a queue in the database.
//!
//! Effects: the clock, the local disk (writes), the network.

use super::super::driver::{DbFault, Statement};
use super::super::journals::inserted_row_id;
use super::super::retry::PriorAttempts;
use super::super::{SqlStore, ms};
use super::{DEAD, DEDUP_MEMORY, DONE, FORGOTTEN_TAG, READY, format_id, tagged};
use crate::contract::{EnqueueOutcome, Job, Space};

/// An enqueue operation in progress.
pub(super) struct EnqueueOp<'a> {
    pub(super) store: &'a SqlStore,
    pub(super) space: &'a Space,
    pub(super) queue: &'a str,
    pub(super) job: &'a Job,
    pub(super) claim_token: &'a [u8],
    pub(super) dedup: &'a [u8],
}

impl EnqueueOp<'_> {
    /// Executes the operation once. `earlier` says whether an earlier attempt may have succeeded.
    pub(super) async fn attempt(&self, earlier: PriorAttempts) -> Result<EnqueueOutcome, DbFault> {
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
                    .bytes(self.claim_token)
                    .bytes(&self.job.payload)
                    .bytes(b""),
            )
            .await
        {
            Ok(answer) => Ok(EnqueueOutcome::New(format_id(inserted_row_id(answer)?))),
            Err(DbFault::Duplicate(_)) => self.resolve_duplicate(earlier).await,
            Err(fault) => Err(fault),
        }
    }

    /// Decides whether an existing job with this key still counts.
    async fn resolve_duplicate(&self, earlier: PriorAttempts) -> Result<EnqueueOutcome, DbFault> {
        let sql = format!(
            "SELECT id, state, ended_ms, {}, grip FROM stead_jobs WHERE space = ? AND queue = ? AND dedup = ?",
            self.store.dialect.now()
        );
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.queue)
            .bytes(self.dedup);
        let again = || DbFault::Contended("a job with the same key went away just now".to_owned());
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
        let is_mine = self.job.dedup.is_none() || row.bytes(4)? == self.claim_token;
        if earlier == PriorAttempts::Unknown && is_mine {
            return Ok(EnqueueOutcome::New(format_id(id)));
        }
        if state == READY || ended_ms.saturating_add(ms(DEDUP_MEMORY)) > now_ms {
            return Ok(EnqueueOutcome::Existing(format_id(id)));
        }
        // The job ended too long ago, so the key is free again. A dead letter stays, under another
        // value.
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
        Err(DbFault::Contended(
            "the key of a job was forgotten just now".to_owned(),
        ))
    }
}
