//! Journals in two tables: one row for each journal's end, one for each line.

use super::SqlStore;
use super::driver::{Begin, Fault, Row, Statement, Tx, end};
use super::retry::Earlier;
use crate::contract::{Fence, Journals, Space, Tail, check_lines};
use crate::error::StoreError;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// Most lines read or written by one statement.
const LINES_PER_STATEMENT: usize = 1000;
/// Appends of more lines than this are written by statements the server does not keep.
const PREPARED_LINES: usize = 8;

impl Journals for SqlStore {
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a Fence,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.check_name(journal)?;
            check_lines(&self.place, lines)?;
            lines.iter().try_for_each(|line| self.check_value(line))?;
            let append = Append { store: self, space, journal, after, lines, fence };
            self.retrying(|earlier| append.attempt(earlier).boxed()).await
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
            let mut left = i64::try_from(max_bytes).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
            let mut lines = Vec::new();
            loop {
                let page = self.page(space, journal, from, left).await?;
                let count = page.len();
                left -= page.iter().map(counted).sum::<i64>();
                lines.extend(page);
                // Less than a whole page means that there is no more, or no more room.
                if count < LINES_PER_STATEMENT || left <= 0 {
                    return Ok(lines);
                }
                from += LINES_PER_STATEMENT as i64;
            }
        }
        .boxed()
    }

    fn tail<'a>(&'a self, space: &'a Space, journal: &'a str) -> BoxFuture<'a, Result<Option<Tail>, StoreError>> {
        async move {
            let sql = "SELECT h.journal, h.seq, h.bytes, h.updated_ms, l.line \
                       FROM stead_journals h JOIN stead_lines l ON l.journal = h.id AND l.seq = h.seq \
                       WHERE h.space = ? AND h.journal = ?";
            let row = self.read(|| Statement::new(sql).bytes(space.as_str()).bytes(journal)).await?.first();
            let tail = row.map(named_tail).transpose().map_err(|fault| self.give_up(fault))?;
            Ok(tail.map(|(_, tail)| tail))
        }
        .boxed()
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Tail)>, StoreError>> {
        async move {
            let from = if after.is_some() { ">" } else { ">=" };
            let sql = format!(
                "SELECT h.journal, h.seq, h.bytes, h.updated_ms, l.line \
                 FROM stead_journals h JOIN stead_lines l ON l.journal = h.id AND l.seq = h.seq \
                 WHERE h.space = ? AND h.journal {from} ? ORDER BY h.journal LIMIT ?"
            );
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let statement =
                || Statement::new(sql.clone()).bytes(space.as_str()).bytes(after.unwrap_or_default()).int(limit);
            let rows = self.read(statement).await?.rows;
            rows.into_iter().map(named_tail).collect::<Result<_, _>>().map_err(|fault| self.give_up(fault))
        }
        .boxed()
    }

    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a Fence,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.retrying_boxed(move |_| {
            async move {
                let mut tx = self.driver.begin(Begin::Write).await?;
                let outcome = self.erase_in(&mut *tx, space, journal, fence).await;
                end(tx, outcome).await
            }
            .boxed()
        })
    }
}

impl SqlStore {
    async fn erase_in(&self, tx: &mut dyn Tx, space: &Space, journal: &str, fence: &Fence) -> Result<(), Fault> {
        self.hold(tx, space, fence).await?;
        let Some(head) = self.head(tx, space, journal).await? else { return Ok(()) };
        tx.run(Statement::new("DELETE FROM stead_lines WHERE journal = ?").int(head.id)).await?;
        tx.run(Statement::new("DELETE FROM stead_journals WHERE id = ?").int(head.id)).await?;
        Ok(())
    }

    /// The end of a journal, locked.
    async fn head(&self, tx: &mut dyn Tx, space: &Space, journal: &str) -> Result<Option<Head>, Fault> {
        let lock = self.dialect.for_update();
        let sql = format!("SELECT id, seq, bytes FROM stead_journals WHERE space = ? AND journal = ?{lock}");
        let row = tx.run(Statement::new(sql).bytes(space.as_str()).bytes(journal)).await?.first();
        row.map(|row| Ok(Head { id: row.int(0)?, seq: row.int(1)?, bytes: row.int(2)? })).transpose()
    }

    /// Lines from `from` on: those of one statement, and of these the ones that fit into `max_bytes`.
    async fn page(&self, space: &Space, journal: &str, from: i64, max_bytes: i64) -> Result<Vec<Bytes>, StoreError> {
        let sql = "SELECT l.line FROM stead_journals h JOIN stead_lines l ON l.journal = h.id \
                   WHERE h.space = ? AND h.journal = ? AND l.seq >= ? AND l.seq < ? AND (l.seq = ? OR l.upto <= ? + \
                   COALESCE((SELECT b.upto FROM stead_lines b WHERE b.journal = h.id AND b.seq = ?), 0)) \
                   ORDER BY l.seq";
        let statement = || {
            let statement = Statement::new(sql).bytes(space.as_str()).bytes(journal).int(from);
            statement.int(from.saturating_add(LINES_PER_STATEMENT as i64)).int(from).int(max_bytes).int(from - 1)
        };
        let rows = self.read(statement).await?.rows;
        let lines = rows.into_iter().map(|mut row| Ok(Bytes::from(row.bytes(0)?)));
        lines.collect::<Result<_, Fault>>().map_err(|fault| self.give_up(fault))
    }
}

struct Head {
    id: i64,
    seq: i64,
    bytes: i64,
}

fn named_tail(mut row: Row) -> Result<(String, Tail), Fault> {
    let tail = Tail { seq: row.count(1)?, bytes: row.count(2)?, updated_ms: row.int(3)?, last: row.bytes(4)?.into() };
    Ok((row.text(0)?, tail))
}

/// A line's number for the database, which knows none above the largest.
fn seq_of(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Bytes of a line with its line end.
fn counted(line: &Bytes) -> i64 {
    i64::try_from(line.len()).unwrap_or(i64::MAX - 1) + 1
}

/// Lines on their way to the end of a journal.
struct Append<'a> {
    store: &'a SqlStore,
    space: &'a Space,
    journal: &'a str,
    after: u64,
    lines: &'a [Bytes],
    fence: &'a Fence,
}

impl Append<'_> {
    async fn attempt(&self, earlier: Earlier) -> Result<(), Fault> {
        let outcome = match self.in_one_statement().await {
            Ok(Some(())) => Ok(()),
            Ok(None) => self.in_a_transaction().await,
            Err(fault) => Err(fault),
        };
        match outcome {
            // Perhaps what is in the way is what the lost attempt left.
            Err(Fault::Final(StoreError::Conflict(_) | StoreError::Fenced { .. }))
                if earlier == Earlier::Unknown && self.is_made().await? =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Whether the journal ends in these lines.
    async fn is_made(&self) -> Result<bool, Fault> {
        if self.lines.is_empty() {
            return Ok(false);
        }
        let sql = "SELECT l.line FROM stead_journals h JOIN stead_lines l ON l.journal = h.id \
                   WHERE h.space = ? AND h.journal = ? AND l.seq > ? ORDER BY l.seq LIMIT ?";
        // One more than ours, to see whether others came after.
        let limit = i64::try_from(self.lines.len()).unwrap_or(i64::MAX - 1) + 1;
        let statement = Statement::new(sql).bytes(self.space.as_str()).bytes(self.journal);
        let rows = self.store.driver.write(statement.int(seq_of(self.after)).int(limit)).await?.rows;
        let found = rows.into_iter().map(|mut row| row.bytes(0)).collect::<Result<Vec<_>, _>>()?;
        Ok(found.iter().eq(self.lines.iter()))
    }

    async fn in_a_transaction(&self) -> Result<(), Fault> {
        let mut tx = self.store.driver.begin(Begin::Write).await?;
        let outcome = match self.apply(&mut *tx).await {
            // Somebody else began the journal. The next look will see it.
            Err(Fault::Duplicate(cause)) => Err(Fault::Again(cause)),
            outcome => outcome,
        };
        end(tx, outcome).await
    }

    async fn apply(&self, tx: &mut dyn Tx) -> Result<(), Fault> {
        self.store.hold(tx, self.space, self.fence).await?;
        let found = self.store.head(tx, self.space, self.journal).await?;
        if found.as_ref().map_or(0, |head| head.seq) != seq_of(self.after) {
            return Err(Fault::Final(StoreError::Conflict(self.journal.to_owned())));
        }
        if self.lines.is_empty() {
            return Ok(());
        }
        let head = match found {
            Some(head) => head,
            None => self.begin(tx).await?,
        };
        let (mut seq, mut bytes) = (head.seq, head.bytes);
        let mut rest = self.lines;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(how_many(rest, self.store.limits.statement_bytes));
            let values = "(?, ?, ?, ?), ".repeat(now.len());
            let sql = format!("INSERT INTO stead_lines (journal, seq, upto, line) VALUES {values}");
            let statement = now.iter().fold(Statement::new(sql.trim_end_matches(", ").to_owned()), |s, line| {
                seq += 1;
                bytes += counted(line);
                s.int(head.id).int(seq).int(bytes).bytes(line)
            });
            tx.run(if now.len() > PREPARED_LINES { statement.once() } else { statement }).await?;
            rest = later;
        }
        let now = self.store.dialect.now();
        let sql = format!("UPDATE stead_journals SET seq = ?, bytes = ?, updated_ms = {now} WHERE id = ?");
        tx.run(Statement::new(sql).int(seq).int(bytes).int(head.id)).await.map(|_| ())
    }

    /// Begins a journal that is not there.
    async fn begin(&self, tx: &mut dyn Tx) -> Result<Head, Fault> {
        let returning = self.store.dialect.returning_id();
        let sql = format!(
            "INSERT INTO stead_journals (space, journal, seq, bytes, updated_ms) VALUES (?, ?, 0, 0, 0){returning}"
        );
        let answer = tx.run(Statement::new(sql).bytes(self.space.as_str()).bytes(self.journal)).await?;
        Ok(Head { id: new_id(answer)?, seq: 0, bytes: 0 })
    }

    /// An append of a few lines to a journal that is there, where it can be one statement. None if that did
    /// nothing and does not say why.
    async fn in_one_statement(&self) -> Result<Option<()>, Fault> {
        let dialect = self.store.dialect;
        let few = (1..=PREPARED_LINES).contains(&self.lines.len())
            && how_many(self.lines, self.store.limits.statement_bytes) == self.lines.len();
        let (true, true, Ok(token)) =
            (dialect.chains_changes() && self.after > 0, few, i64::try_from(self.fence.token))
        else {
            return Ok(None);
        };
        let values = "(?, ?, ?), ".repeat(self.lines.len());
        let (share, now) = (dialect.for_share(), dialect.now());
        let sql = format!(
            "WITH held AS (SELECT 1 FROM stead_leases WHERE space = ? AND name = ? AND token = ?{share}), \
             head AS (UPDATE stead_journals SET seq = ?, bytes = bytes + ?, updated_ms = {now} \
             WHERE space = ? AND journal = ? AND seq = ? AND EXISTS (SELECT 1 FROM held) RETURNING id, bytes) \
             INSERT INTO stead_lines (journal, seq, upto, line) \
             SELECT head.id, l.seq, head.bytes - l.rest, l.line FROM head, (VALUES {}) AS l (seq, rest, line)",
            values.trim_end_matches(", ")
        );
        let (space, after) = (self.space.as_str(), seq_of(self.after));
        let added = i64::try_from(self.lines.len()).unwrap_or(i64::MAX);
        let mut rest: i64 = self.lines.iter().map(counted).sum();
        let statement = Statement::new(sql).bytes(space).bytes(&self.fence.name).int(token);
        let statement =
            statement.int(after.saturating_add(added)).int(rest).bytes(space).bytes(self.journal).int(after);
        let mut seq = after;
        let statement = self.lines.iter().fold(statement, |s, line| {
            seq = seq.saturating_add(1);
            rest -= counted(line);
            s.int(seq).int(rest).bytes(line)
        });
        let changed = self.store.driver.write(statement).await?.changed;
        Ok((changed > 0).then_some(()))
    }
}

/// The number of the row that was just made.
pub(super) fn new_id(answer: super::Answer) -> Result<i64, Fault> {
    match (answer.made, answer.rows.first()) {
        (_, Some(row)) => row.int(0),
        (Some(id), None) => Ok(id),
        (None, None) => Err(Fault::Odd("a new row has no number".to_owned())),
    }
}

/// How many of `lines` one statement takes; at least one.
fn how_many(lines: &[Bytes], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |line: &&Bytes| {
        bytes += line.len();
        bytes <= max_bytes
    };
    lines.iter().take(LINES_PER_STATEMENT).take_while(fits).count().max(1)
}
