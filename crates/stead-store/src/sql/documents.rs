//! Documents in the table `stead_docs` of a database: SQLite (a local file), PostgreSQL, MySQL or
//! MariaDB. Commits are retried; reading them changes nothing.
//!
//! Effects: the clock, randomness, the local disk (writes), the network.

use super::commit_plan::{CommitPlan, FoundVersions, KeyChange, KeyOutcome};
use super::cte_commit::CteCommit;
use super::driver::{DbFault, Statement, TransactionKind, Tx, finish};
use super::retry::PriorAttempts;
use super::{SqlStore, placeholders};
use crate::contract::{
    DocVersion, Document, DocumentChange, Documents, Expected, FencingToken, ListedDocument, Space,
    check_changes,
};
use crate::error::StoreError;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// The maximum number of keys in one statement: well below every database's parameter limit, and
/// below the length from which MariaDB turns them into a joined table.
const KEYS_PER_STATEMENT: usize = 500;
/// The maximum number of rows written by one statement.
const ROWS_PER_STATEMENT: usize = 500;
/// The maximum number of moves in one statement. Each row is compared with all of them.
const MOVES_PER_STATEMENT: usize = 200;
/// Statements with more parts than this are not kept prepared by the server.
const PREPARED_PARTS: usize = 4;

impl Documents for SqlStore {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        async move {
            let sql = "SELECT version, meta, body FROM stead_docs WHERE space = ? AND dkey = ?";
            let answer = self
                .read(|| Statement::new(sql).bytes(space.as_str()).bytes(key))
                .await?;
            let document = answer.first().map(|mut row| {
                let version = version_of(&row.bytes(0)?)?;
                Ok(Document {
                    version,
                    meta: row.bytes(1)?.into(),
                    body: row.bytes(2)?.into(),
                })
            });
            document
                .transpose()
                .map_err(|fault| self.store_error(fault))
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        async move {
            // If `after` comes before every key with the prefix, the listing begins at the prefix.
            let after = after.filter(|after| *after >= prefix);
            let end = end_of_prefix(prefix);
            let from = if after.is_some() { ">" } else { ">=" };
            let to = if end.is_some() { " AND dkey < ?" } else { "" };
            let sql = format!(
                "SELECT dkey, version, meta FROM stead_docs WHERE space = ? AND dkey {from} ?{to} ORDER BY dkey LIMIT ?"
            );
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let answer = self
                .read(|| {
                    let statement = Statement::new(sql.clone()).bytes(space.as_str()).bytes(after.unwrap_or(prefix));
                    match &end {
                        Some(end) => statement.bytes(end).int(limit),
                        None => statement.int(limit),
                    }
                })
                .await?;
            let listed = answer.rows.into_iter().map(|mut row| {
                let version = version_of(&row.bytes(1)?)?;
                Ok(ListedDocument { key: row.text(0)?, version, meta: row.bytes(2)?.into() })
            });
            listed.collect::<Result<_, DbFault>>().map_err(|fault| self.store_error(fault))
        }
        .boxed()
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            check_changes(&self.place, &changes)?;
            let plan = CommitPlan::new(&changes);
            let commit = DocumentCommit {
                store: self,
                space,
                plan: &plan,
                fence,
            };
            self.retry(|earlier| commit.attempt(earlier).boxed()).await
        }
        .boxed()
    }
}

/// Returns the first text after all texts that begin with `prefix`, or `None` if there is none.
fn end_of_prefix(prefix: &str) -> Option<Vec<u8>> {
    let mut bytes = prefix.as_bytes().to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

fn version_of(bytes: &[u8]) -> Result<DocVersion, DbFault> {
    let bytes = bytes
        .try_into()
        .map_err(|_| DbFault::Corrupt(format!("a version has {} bytes", bytes.len())))?;
    Ok(DocVersion(u128::from_be_bytes(bytes)))
}

/// The keys that a transaction checks before it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckScope {
    /// The keys whose expectation is not checked by writing them.
    Required,
    /// All keys with an expectation.
    All,
}

/// A commit in progress.
struct DocumentCommit<'a> {
    store: &'a SqlStore,
    space: &'a Space,
    plan: &'a CommitPlan<'a>,
    fence: Option<&'a FencingToken>,
}

impl DocumentCommit<'_> {
    async fn attempt(&self, earlier: PriorAttempts) -> Result<(), DbFault> {
        let outcome = self.execute().await;
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

    /// Executes the commit in the cheapest way that is possible.
    async fn execute(&self) -> Result<(), DbFault> {
        if self.execute_as_statement().await?.is_some() || self.execute_as_cte().await?.is_some() {
            return Ok(());
        }
        match self.execute_in_transaction(CheckScope::Required).await {
            Err(DbFault::Duplicate(_)) => {}
            outcome => return outcome,
        }
        match self.execute_in_transaction(CheckScope::All).await {
            // Another commit inserted the key after the check. The next attempt will see it.
            Err(DbFault::Duplicate(cause)) => Err(DbFault::Contended(cause)),
            outcome => outcome,
        }
    }

    async fn is_applied(&self) -> Result<bool, DbFault> {
        let mut found = FoundVersions::new();
        for keys in self.plan.keys(|_| true).chunks(KEYS_PER_STATEMENT) {
            collect(
                &mut found,
                self.store.driver.write(self.versions(keys, "")).await?,
            )?;
        }
        Ok(self.plan.is_applied(&found))
    }

    fn conflict(key: &str) -> DbFault {
        DbFault::Final(StoreError::Conflict(key.to_owned()))
    }

    async fn execute_in_transaction(&self, look: CheckScope) -> Result<(), DbFault> {
        let mut tx = self.store.driver.begin(TransactionKind::Write).await?;
        let outcome = self.apply(&mut *tx, look).await;
        finish(tx, outcome).await
    }

    async fn apply(&self, tx: &mut dyn Tx, look: CheckScope) -> Result<(), DbFault> {
        if let Some(fence) = self.fence {
            self.store.lock_fence(tx, self.space, fence).await?;
        }
        // Keys are locked in key order, so that two commits do not wait for each other.
        let dialect = self.store.dialect;
        let mut found = FoundVersions::new();
        let is_check = |fate| matches!(fate, KeyOutcome::Unchanged);
        let is_looked_at = |touch: &KeyChange<'_>| match (look, touch.outcome, touch.expect) {
            (_, _, Expected::Any) => false,
            // Inserting fails if the key exists.
            (CheckScope::Required, KeyOutcome::Written(_), Expected::Absent) => false,
            (
                CheckScope::Required | CheckScope::All,
                _,
                Expected::Absent | Expected::Version(_),
            ) => true,
        };
        for (lock, keys) in [
            (
                dialect.for_share(),
                self.plan
                    .keys(|touch| is_looked_at(touch) && is_check(touch.outcome)),
            ),
            (
                dialect.for_update(),
                self.plan
                    .keys(|touch| is_looked_at(touch) && !is_check(touch.outcome)),
            ),
        ] {
            for keys in keys.chunks(KEYS_PER_STATEMENT) {
                collect(&mut found, tx.run(self.versions(keys, lock)).await?)?;
            }
        }
        if let Some(key) = self.plan.conflict(&found) {
            return Err(Self::conflict(key));
        }
        self.remove(
            tx,
            &self
                .plan
                .keys(|touch| matches!(touch.outcome, KeyOutcome::Deleted)),
        )
        .await?;
        for moves in self.plan.moves().chunks(MOVES_PER_STATEMENT) {
            self.rename(tx, moves).await?;
        }
        // A key that must stay absent cannot be locked, because there is no row. A placeholder row
        // stands in for it until the end, so that others who insert the key wait and see the
        // result.
        let blank = Document {
            version: DocVersion(0),
            meta: Bytes::new(),
            body: Bytes::new(),
        };
        let guarded = match dialect.allows_concurrent_absence() {
            true => self
                .plan
                .keys(|touch| is_check(touch.outcome) && touch.expect == Expected::Absent),
            false => Vec::new(),
        };
        let mut made = self.plan.writes(|expect| expect == Expected::Absent);
        made.extend(guarded.iter().map(|key| (*key, &blank)));
        made.sort_unstable_by_key(|(key, _)| *key);
        self.insert(tx, &made, "").await?;
        let overwritten = self.plan.writes(|expect| expect != Expected::Absent);
        self.insert(tx, &overwritten, dialect.or_overwrite_document())
            .await?;
        self.remove(tx, &guarded).await
    }

    /// Reads the versions of `keys`.
    fn versions<'k>(&'k self, keys: &[&'k str], lock: &str) -> Statement<'k> {
        let marks = placeholders(keys.len());
        let sql = format!(
            "SELECT dkey, version FROM stead_docs WHERE space = ? AND dkey IN ({marks}) ORDER BY dkey{lock}"
        );
        let statement = keys
            .iter()
            .fold(Statement::new(sql).bytes(self.space.as_str()), |s, key| {
                s.bytes(*key)
            });
        prepare_if_small(statement, keys.len())
    }

    async fn remove(&self, tx: &mut dyn Tx, keys: &[&str]) -> Result<(), DbFault> {
        for keys in keys.chunks(KEYS_PER_STATEMENT) {
            let sql = format!(
                "DELETE FROM stead_docs WHERE space = ? AND dkey IN ({})",
                placeholders(keys.len())
            );
            let statement = keys
                .iter()
                .fold(Statement::new(sql).bytes(self.space.as_str()), |s, key| {
                    s.bytes(*key)
                });
            tx.run(prepare_if_small(statement, keys.len())).await?;
        }
        Ok(())
    }

    async fn rename(&self, tx: &mut dyn Tx, moves: &[(&str, &str)]) -> Result<(), DbFault> {
        let cases = "WHEN ? THEN ? ".repeat(moves.len());
        let marks = placeholders(moves.len());
        let sql = format!(
            "UPDATE stead_docs SET dkey = CASE dkey {cases}END WHERE space = ? AND dkey IN ({marks})"
        );
        let mut statement = moves.iter().fold(Statement::new(sql), |s, (from, to)| {
            s.bytes(*from).bytes(*to)
        });
        statement = statement.bytes(self.space.as_str());
        statement = moves.iter().fold(statement, |s, (from, _)| s.bytes(*from));
        tx.run(prepare_if_small(statement, moves.len()))
            .await
            .map(|_| ())
    }

    async fn insert(
        &self,
        tx: &mut dyn Tx,
        rows: &[(&str, &Document)],
        ending: &str,
    ) -> Result<(), DbFault> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(batch_len(rest, self.store.limits.statement_bytes));
            let values = "(?, ?, ?, ?, ?), ".repeat(now.len());
            let values = values.trim_end_matches(", ");
            let sql = format!(
                "INSERT INTO stead_docs (space, dkey, version, meta, body) VALUES {values}{ending}"
            );
            let versions: Vec<[u8; 16]> = now
                .iter()
                .map(|(_, document)| document.version.0.to_be_bytes())
                .collect();
            let statement = now.iter().zip(&versions).fold(
                Statement::new(sql),
                |s, ((key, document), version)| {
                    s.bytes(self.space.as_str())
                        .bytes(*key)
                        .bytes(version)
                        .bytes(&document.meta)
                        .bytes(&document.body)
                },
            );
            tx.run(prepare_if_small(statement, now.len())).await?;
            rest = later;
        }
        Ok(())
    }

    /// Executes a commit of only inserts, overwrites and checks as one statement. Returns `None` if
    /// it changed nothing and the reason is unknown.
    async fn execute_as_cte(&self) -> Result<Option<()>, DbFault> {
        let SqlStore {
            dialect,
            limits,
            driver,
            ..
        } = self.store;
        let fence = match self
            .fence
            .map(|fence| (fence.name.as_str(), i64::try_from(fence.token)))
        {
            Some((name, Ok(token))) => Some((name, token)),
            Some((_, Err(_))) => return Ok(None),
            None => None,
        };
        let chain = match dialect.supports_writable_ctes() {
            true => CteCommit::new(
                self.plan,
                self.space.as_str(),
                fence,
                limits.statement_bytes,
            ),
            false => None,
        };
        let Some(chain) = chain else { return Ok(None) };
        match driver
            .write(chain.statement(dialect.or_overwrite_document()))
            .await
        {
            Ok(answer) => Ok((answer.changed > 0).then_some(())),
            Err(DbFault::Duplicate(_)) => chain
                .sole_inserted_key()
                .map_or(Ok(None), |key| Err(Self::conflict(key))),
            Err(fault) => Err(fault),
        }
    }

    /// Executes a commit of one change as one statement. Returns `None` if it changed nothing and
    /// the reason is unknown.
    async fn execute_as_statement(&self) -> Result<Option<()>, DbFault> {
        let dialect = self.store.dialect;
        let share = dialect.for_share();
        let overwrite = dialect.or_overwrite_document();
        let space = self.space.as_str();
        let mut touched = self.plan.touched.iter();
        let (Some((key, touch)), second) = (touched.next(), touched.next()) else {
            return Ok(None);
        };
        let (held, token) = match self.fence {
            Some(fence) => {
                let Ok(token) = i64::try_from(fence.token) else {
                    return Ok(None);
                };
                (
                    format!("space = ? AND name = ? AND token = ?{share}"),
                    Some((fence.name.as_str(), token)),
                )
            }
            None => (String::new(), None),
        };
        let fenced = |statement| with_fence(statement, space, token);
        let only_if = match token {
            Some(_) => format!(" AND EXISTS (SELECT 1 FROM stead_leases WHERE {held})"),
            None => String::new(),
        };
        let inserted = match token {
            Some(_) => format!("SELECT ?, ?, ?, ?, ? FROM stead_leases WHERE {held}"),
            None => "VALUES (?, ?, ?, ?, ?)".to_owned(),
        };
        let written: [u8; 16];
        let expected: [u8; 16];
        let statement = match (touch.outcome, touch.expect, second) {
            (KeyOutcome::Written(document), Expected::Absent | Expected::Any, None) => {
                let ending = if touch.expect == Expected::Any {
                    overwrite
                } else {
                    ""
                };
                let sql = format!(
                    "INSERT INTO stead_docs (space, dkey, version, meta, body) {inserted}{ending}"
                );
                written = document.version.0.to_be_bytes();
                let statement = Statement::new(sql).bytes(space).bytes(*key).bytes(&written);
                fenced(statement.bytes(&document.meta).bytes(&document.body))
            }
            (KeyOutcome::Written(document), Expected::Version(version), None) => {
                let sql = format!(
                    "UPDATE stead_docs SET version = ?, meta = ?, body = ? \
                     WHERE space = ? AND dkey = ? AND version = ?{only_if}"
                );
                written = document.version.0.to_be_bytes();
                expected = version.0.to_be_bytes();
                let statement = Statement::new(sql)
                    .bytes(&written)
                    .bytes(&document.meta)
                    .bytes(&document.body);
                fenced(statement.bytes(space).bytes(*key).bytes(&expected))
            }
            (KeyOutcome::Deleted, Expected::Version(version), None) => {
                let sql = format!(
                    "DELETE FROM stead_docs WHERE space = ? AND dkey = ? AND version = ?{only_if}"
                );
                expected = version.0.to_be_bytes();
                fenced(
                    Statement::new(sql)
                        .bytes(space)
                        .bytes(*key)
                        .bytes(&expected),
                )
            }
            _ => return Ok(None),
        };
        match self.store.driver.write(statement).await {
            Ok(answer) if answer.changed > 0 => Ok(Some(())),
            Ok(_) if self.fence.is_some() => Ok(None),
            Ok(_) | Err(DbFault::Duplicate(_)) => Err(Self::conflict(key)),
            Err(fault) => Err(fault),
        }
    }
}

fn with_fence<'a>(
    statement: Statement<'a>,
    space: &'a str,
    fence: Option<(&'a str, i64)>,
) -> Statement<'a> {
    match fence {
        Some((name, token)) => statement.bytes(space).bytes(name).int(token),
        None => statement,
    }
}

fn collect(found: &mut FoundVersions, answer: super::StatementResult) -> Result<(), DbFault> {
    for mut row in answer.rows {
        found.insert(row.text(0)?, version_of(&row.bytes(1)?)?);
    }
    Ok(())
}

/// Returns how many of `rows` one statement takes, at least one.
fn batch_len(rows: &[(&str, &Document)], max_bytes: usize) -> usize {
    let mut bytes = 0;
    let fits = |(key, document): &&(&str, &Document)| {
        bytes += key.len() + document.meta.len() + document.body.len();
        bytes <= max_bytes
    };
    rows.iter()
        .take(ROWS_PER_STATEMENT)
        .take_while(fits)
        .count()
        .max(1)
}

fn prepare_if_small(statement: Statement<'_>, parts: usize) -> Statement<'_> {
    if parts > PREPARED_PARTS {
        statement.once()
    } else {
        statement
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_its_successor_begins() {
        assert_eq!(end_of_prefix("a/"), Some(b"a0".to_vec()));
        assert_eq!(end_of_prefix("é"), Some(vec![0xc3, 0xaa]));
        assert_eq!(end_of_prefix(""), None);
    }

    #[test]
    fn a_statement_takes_rows_up_to_its_bytes_and_at_least_one() {
        let half = Document::new("", vec![0; 50]);
        let rows: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .map(|key| (key, &half))
            .collect();
        assert_eq!(
            [10, 100, 102, 1000].map(|max| batch_len(&rows, max)),
            [1, 1, 2, 3]
        );
        let small = Document::new("", "");
        let rows = vec![("a", &small); ROWS_PER_STATEMENT + 1];
        assert_eq!(batch_len(&rows, 100_000), ROWS_PER_STATEMENT);
    }
}
