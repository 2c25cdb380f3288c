//! Claiming the next job of a queue in the database.
//!
//! Effects: the clock, the local disk (writes), the network.

use super::super::SqlStore;
use super::super::driver::{DbFault, SqlRow, Statement, TransactionKind, Tx, finish};
use super::super::retry::PriorAttempts;
use super::{DEAD, READY, UNACKNOWLEDGED_REASON, attempts_of, format_id};
use crate::contract::{ClaimedJob, Space};

/// A claim operation in progress.
pub(super) struct ClaimOp<'a> {
    pub(super) store: &'a SqlStore,
    pub(super) space: &'a Space,
    pub(super) queue: &'a str,
    pub(super) hide_ms: i64,
    pub(super) claim_token: &'a [u8],
}

impl ClaimOp<'_> {
    /// Executes the operation once. `earlier` says whether an earlier attempt may have succeeded.
    pub(super) async fn attempt(
        &self,
        earlier: PriorAttempts,
    ) -> Result<Option<ClaimedJob>, DbFault> {
        if earlier == PriorAttempts::Unknown
            && let Some(claimed) = self.find_earlier_claim().await?
        {
            return Ok(Some(claimed));
        }
        if !self.store.dialect.updates_return_rows() {
            let mut tx = self.store.driver.begin(TransactionKind::Write).await?;
            let outcome = self.claim_in_tx(&mut *tx).await;
            return finish(tx, outcome).await;
        }
        let sql = format!(
            "{} WHERE id = ({}) RETURNING id, attempts, state, payload",
            self.set_sql(),
            self.due_sql("id")
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

    /// Returns the job that was claimed by an attempt whose response was lost.
    async fn find_earlier_claim(&self) -> Result<Option<ClaimedJob>, DbFault> {
        let sql = format!(
            "SELECT id, attempts, payload FROM stead_jobs WHERE space = ? AND queue = ? AND state = {READY} AND grip = ?"
        );
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.queue)
            .bytes(self.claim_token);
        self.store
            .driver
            .write(statement)
            .await?
            .first()
            .map(|row| claimed(row, 2))
            .transpose()
    }

    async fn claim_in_tx(&self, tx: &mut dyn Tx) -> Result<Option<ClaimedJob>, DbFault> {
        let look = self.due_sql("id, attempts, max_attempts, payload");
        let set = format!("{} WHERE id = ?", self.set_sql());
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
                return Ok(Some(ClaimedJob {
                    attempt: claimed.attempt + 1,
                    ..claimed
                }));
            }
        }
    }

    /// Returns the query that locks the job that has been due longest, skipping locked ones.
    fn due_sql(&self, columns: &str) -> String {
        let dialect = self.store.dialect;
        let now = dialect.now();
        let lock = dialect.for_update_skip_locked();
        format!(
            "SELECT {columns} FROM stead_jobs WHERE space = ? AND queue = ? AND state = {READY} AND due_ms <= {now} \
             ORDER BY due_ms, id LIMIT 1{lock}"
        )
    }

    /// Returns the assignments that deliver a job, or bury it if it has no attempts left. Attempts
    /// come last, because MySQL evaluates assignments in order.
    fn set_sql(&self) -> String {
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
            .bytes(UNACKNOWLEDGED_REASON)
            .bytes(b"")
            .bytes(self.claim_token)
    }
}

fn claimed(mut row: SqlRow, payload: usize) -> Result<ClaimedJob, DbFault> {
    let attempt = attempts_of(&row, 1)?;
    Ok(ClaimedJob {
        id: format_id(row.int(0)?),
        payload: row.bytes(payload)?.into(),
        attempt,
    })
}
