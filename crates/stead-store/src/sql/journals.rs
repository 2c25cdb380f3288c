//! The journals of the SQL store, in two tables: one row for each journal, one for each line.
//!
//! The end of a journal is its last line and is stored nowhere else. The line number is part of the
//! key, so two appends after the same line cannot both succeed, and most appends are one statement:
//! a line is inserted if the lease is held and the previous line exists.
//!
//! Effects: the clock, randomness, the local disk (writes), the network.

use super::SqlStore;
use super::driver::{DbFault, SqlRow, Statement, TransactionKind, Tx, finish};
use super::retry::PriorAttempts;
use crate::contract::{FencingToken, JournalTail, Journals, Space, check_lines};
use crate::error::StoreError;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// The maximum number of lines read or written by one statement.
const LINES_PER_STATEMENT: usize = 1000;
/// Appends of more lines than this use statements that the server does not keep prepared.
const PREPARED_LINES: usize = 8;

impl Journals for SqlStore {
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.check_name(journal)?;
            check_lines(&self.place, lines)?;
            lines.iter().try_for_each(|line| self.check_value(line))?;
            let append = JournalAppend {
                store: self,
                space,
                journal,
                after,
                lines,
                fence,
            };
            self.retry(|earlier| append.attempt(earlier).boxed()).await
        }
        .boxed()
    }

    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        async move {
            let mut from = seq_of(from.max(1));
            let mut left = i64::try_from(max_bytes)
                .unwrap_or(i64::MAX / 4)
                .min(i64::MAX / 4);
            let mut lines = Vec::new();
            loop {
                let page = self.page(space, journal, from, left).await?;
                let count = page.len();
                left -= page.iter().map(stored_bytes).sum::<i64>();
                lines.extend(page);
                // An incomplete page means that there are no more lines, or no more room.
                if count < LINES_PER_STATEMENT || left <= 0 {
                    return Ok(lines);
                }
                from += LINES_PER_STATEMENT as i64;
            }
        }
        .boxed()
    }

    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>> {
        async move {
            // The journal is looked up by a subquery: for a join, a planner would fetch and sort
            // all lines.
            let sql = "SELECT seq, upto, at_ms, line FROM stead_lines \
                       WHERE journal = (SELECT id FROM stead_journals WHERE space = ? AND journal = ?) \
                       ORDER BY seq DESC LIMIT 1";
            let row = self.read(|| Statement::new(sql).bytes(space.as_str()).bytes(journal)).await?.first();
            row.map(|mut row| tail_of(&mut row)).transpose().map_err(|fault| self.store_error(fault))
        }
        .boxed()
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>> {
        async move {
            let from = if after.is_some() { ">" } else { ">=" };
            let sql = format!(
                "SELECT l.seq, l.upto, l.at_ms, l.line, h.journal \
                 FROM stead_journals h JOIN stead_lines l ON l.journal = h.id AND l.seq = \
                 (SELECT m.seq FROM stead_lines m WHERE m.journal = h.id ORDER BY m.seq DESC LIMIT 1) \
                 WHERE h.space = ? AND h.journal {from} ? ORDER BY h.journal LIMIT ?"
            );
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let statement =
                || Statement::new(sql.clone()).bytes(space.as_str()).bytes(after.unwrap_or_default()).int(limit);
            let rows = self.read(statement).await?.rows;
            let names = rows.into_iter().map(|mut row| Ok((row.text(4)?, tail_of(&mut row)?)));
            names.collect::<Result<_, DbFault>>().map_err(|fault| self.store_error(fault))
        }
        .boxed()
    }

    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.retry_boxed(move |_| {
            async move {
                let mut tx = self.driver.begin(TransactionKind::Write).await?;
                let outcome = self.erase_in(&mut *tx, space, journal, fence).await;
                finish(tx, outcome).await
            }
            .boxed()
        })
    }
}

impl SqlStore {
    async fn erase_in(
        &self,
        tx: &mut dyn Tx,
        space: &Space,
        journal: &str,
        fence: &FencingToken,
    ) -> Result<(), DbFault> {
        self.lock_fence(tx, space, fence).await?;
        let Some(id) = self.lock_journal_id(tx, space, journal).await? else {
            return Ok(());
        };
        tx.run(Statement::new("DELETE FROM stead_lines WHERE journal = ?").int(id))
            .await?;
        tx.run(Statement::new("DELETE FROM stead_journals WHERE id = ?").int(id))
            .await?;
        Ok(())
    }

    /// Returns the id of a journal and locks it against appends until the transaction ends.
    async fn lock_journal_id(
        &self,
        tx: &mut dyn Tx,
        space: &Space,
        journal: &str,
    ) -> Result<Option<i64>, DbFault> {
        let lock = self.dialect.for_update();
        let sql = format!("SELECT id FROM stead_journals WHERE space = ? AND journal = ?{lock}");
        let row = tx
            .run(Statement::new(sql).bytes(space.as_str()).bytes(journal))
            .await?
            .first();
        row.map(|row| row.int(0)).transpose()
    }

    /// Returns lines from `from` on: those of one statement that fit into `max_bytes`.
    async fn page(
        &self,
        space: &Space,
        journal: &str,
        from: i64,
        max_bytes: i64,
    ) -> Result<Vec<Bytes>, StoreError> {
        // Uncorrelated subqueries are evaluated once.
        let sql = "SELECT line FROM stead_lines \
                   WHERE journal = (SELECT id FROM stead_journals WHERE space = ? AND journal = ?) \
                   AND seq >= ? AND seq < ? AND (seq = ? OR upto <= ? + COALESCE((SELECT b.upto FROM stead_lines b \
                   WHERE b.journal = (SELECT id FROM stead_journals WHERE space = ? AND journal = ?) \
                   AND b.seq = ?), 0)) ORDER BY seq";
        let statement = || {
            let space = space.as_str();
            let end = from.saturating_add(LINES_PER_STATEMENT as i64);
            let statement = Statement::new(sql)
                .bytes(space)
                .bytes(journal)
                .int(from)
                .int(end)
                .int(from);
            statement
                .int(max_bytes)
                .bytes(space)
                .bytes(journal)
                .int(from - 1)
        };
        let rows = self.read(statement).await?.rows;
        let lines = rows
            .into_iter()
            .map(|mut row| Ok(Bytes::from(row.bytes(0)?)));
        lines
            .collect::<Result<_, DbFault>>()
            .map_err(|fault| self.store_error(fault))
    }
}

fn tail_of(row: &mut SqlRow) -> Result<JournalTail, DbFault> {
    Ok(JournalTail {
        seq: row.count(0)?,
        bytes: row.count(1)?,
        updated_ms: row.int(2)?,
        last: row.bytes(3)?.into(),
    })
}

/// Converts a line number for the database, capped at its largest number.
fn seq_of(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Returns the length of a line with its line end, in bytes.
fn stored_bytes(line: &Bytes) -> i64 {
    i64::try_from(line.len()).unwrap_or(i64::MAX - 1) + 1
}

/// An append in progress.
struct JournalAppend<'a> {
    store: &'a SqlStore,
    space: &'a Space,
    journal: &'a str,
    after: u64,
    lines: &'a [Bytes],
    fence: &'a FencingToken,
}

impl JournalAppend<'_> {
    async fn attempt(&self, earlier: PriorAttempts) -> Result<(), DbFault> {
        let outcome = match self.execute_as_statement().await {
            Ok(Some(())) => Ok(()),
            Ok(None) => self.execute_in_transaction().await,
            Err(fault) => Err(fault),
        };
        match outcome {
            // The conflict may be with the result of the attempt whose response was lost.
            Err(DbFault::Final(StoreError::Conflict(_) | StoreError::Fenced { .. }))
                if earlier == PriorAttempts::Unknown && self.is_applied().await? =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Returns whether the journal ends in these lines.
    async fn is_applied(&self) -> Result<bool, DbFault> {
        if self.lines.is_empty() {
            return Ok(false);
        }
        let sql = "SELECT l.line FROM stead_journals h JOIN stead_lines l ON l.journal = h.id \
                   WHERE h.space = ? AND h.journal = ? AND l.seq > ? ORDER BY l.seq LIMIT ?";
        // One line more than ours, to detect lines after them.
        let limit = i64::try_from(self.lines.len()).unwrap_or(i64::MAX - 1) + 1;
        let statement = Statement::new(sql)
            .bytes(self.space.as_str())
            .bytes(self.journal);
        let rows = self
            .store
            .driver
            .write(statement.int(seq_of(self.after)).int(limit))
            .await?
            .rows;
        let found = rows
            .into_iter()
            .map(|mut row| row.bytes(0))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(found.iter().eq(self.lines.iter()))
    }

    async fn execute_in_transaction(&self) -> Result<(), DbFault> {
        let mut tx = self.store.driver.begin(TransactionKind::Write).await?;
        let outcome = match self.apply(&mut *tx).await {
            // Another process created the journal. The next attempt will see it.
            Err(DbFault::Duplicate(cause)) => Err(DbFault::Contended(cause)),
            outcome => outcome,
        };
        finish(tx, outcome).await
    }

    async fn apply(&self, tx: &mut dyn Tx) -> Result<(), DbFault> {
        self.store.lock_fence(tx, self.space, self.fence).await?;
        let found = self
            .store
            .lock_journal_id(tx, self.space, self.journal)
            .await?;
        let (mut seq, mut bytes) = match found {
            Some(id) => last_line(tx, id).await?,
            None => (0, 0),
        };
        if seq != seq_of(self.after) {
            return Err(DbFault::Final(StoreError::Conflict(
                self.journal.to_owned(),
            )));
        }
        if self.lines.is_empty() {
            return Ok(());
        }
        let id = match found {
            Some(id) => id,
            None => self.begin(tx).await?,
        };
        let now = self.store.dialect.now();
        let mut rest = self.lines;
        while !rest.is_empty() {
            let (few, later) = rest.split_at(batch_len(rest, self.store.limits.statement_bytes));
            let values = format!("(?, ?, ?, {now}, ?), ").repeat(few.len());
            let values = values.trim_end_matches(", ");
            let sql = format!(
                "INSERT INTO stead_lines (journal, seq, upto, at_ms, line) VALUES {values}"
            );
            let statement = few.iter().fold(Statement::new(sql), |s, line| {
                seq += 1;
                bytes += stored_bytes(line);
                s.int(id).int(seq).int(bytes).bytes(line)
            });
            tx.run(if few.len() > PREPARED_LINES {
                statement.once()
            } else {
                statement
            })
            .await?;
            rest = later;
        }
        Ok(())
    }

    /// Creates a journal that does not exist.
    async fn begin(&self, tx: &mut dyn Tx) -> Result<i64, DbFault> {
        let returning = self.store.dialect.returning_id();
        let sql = format!("INSERT INTO stead_journals (space, journal) VALUES (?, ?){returning}");
        inserted_row_id(
            tx.run(
                Statement::new(sql)
                    .bytes(self.space.as_str())
                    .bytes(self.journal),
            )
            .await?,
        )
    }

    /// Appends a few lines to an existing journal as one statement. Returns `None` if it changed
    /// nothing and the reason is unknown.
    async fn execute_as_statement(&self) -> Result<Option<()>, DbFault> {
        let few = (1..=PREPARED_LINES).contains(&self.lines.len())
            && batch_len(self.lines, self.store.limits.statement_bytes) == self.lines.len();
        let (true, true, Ok(token)) = (self.after > 0, few, i64::try_from(self.fence.token)) else {
            return Ok(None);
        };
        let dialect = self.store.dialect;
        // A derived table of one row would cost MariaDB a temporary file.
        let (seq, more, line, table) = match self.lines.len() - 1 {
            0 => ("?", "?", "?", String::new()),
            others => {
                let rest = " UNION ALL SELECT ?, ?, ?".repeat(others);
                let table = format!(", (SELECT ? AS seq, ? AS more, ? AS line{rest}) AS new");
                ("new.seq", "new.more", "new.line", table)
            }
        };
        let now = dialect.now();
        let lock = dialect.for_share_of("f", "h");
        let sql = format!(
            "INSERT INTO stead_lines (journal, seq, upto, at_ms, line) \
             SELECT h.id, {seq}, b.upto + {more}, {now}, {line} \
             FROM stead_leases f, stead_journals h, stead_lines b{table} \
             WHERE f.space = ? AND f.name = ? AND f.token = ? AND h.space = ? AND h.journal = ? \
             AND b.journal = h.id AND b.seq = ?{lock}"
        );
        let space = self.space.as_str();
        let after = seq_of(self.after);
        let mut seq = after;
        let mut more = 0;
        let statement = self.lines.iter().fold(Statement::new(sql), |s, line| {
            seq = seq.saturating_add(1);
            more += stored_bytes(line);
            s.int(seq).int(more).bytes(line)
        });
        let statement = statement.bytes(space).bytes(&self.fence.name).int(token);
        match self
            .store
            .driver
            .write(statement.bytes(space).bytes(self.journal).int(after))
            .await
        {
            Ok(answer) => Ok((answer.changed > 0).then_some(())),
            // The lease is held, and there are lines after this one.
            Err(DbFault::Duplicate(_)) => Err(DbFault::Final(StoreError::Conflict(
                self.journal.to_owned(),
            ))),
            Err(fault) => Err(fault),
        }
    }
}

/// Returns the number of the last line and the length of all lines in bytes.
async fn last_line(tx: &mut dyn Tx, journal: i64) -> Result<(i64, i64), DbFault> {
    let sql = "SELECT seq, upto FROM stead_lines WHERE journal = ? ORDER BY seq DESC LIMIT 1";
    match tx.run(Statement::new(sql).int(journal)).await?.first() {
        Some(row) => Ok((row.int(0)?, row.int(1)?)),
        None => Ok((0, 0)),
    }
}

/// Returns the id of the row that was just inserted.
pub(super) fn inserted_row_id(answer: super::StatementResult) -> Result<i64, DbFault> {
    match (answer.inserted_id, answer.rows.first()) {
        (_, Some(row)) => row.int(0),
        (Some(id), None) => Ok(id),
        (None, None) => Err(DbFault::Corrupt("a new row has no number".to_owned())),
    }
}

/// Returns how many of `lines` one statement takes, at least one.
fn batch_len(lines: &[Bytes], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |line: &&Bytes| {
        bytes += line.len();
        bytes <= max_bytes
    };
    lines
        .iter()
        .take(LINES_PER_STATEMENT)
        .take_while(fits)
        .count()
        .max(1)
}
