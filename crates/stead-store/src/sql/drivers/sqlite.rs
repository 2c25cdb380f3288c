//! The driver for SQLite, in a file or in memory.
//!
//! Effects: the local disk (writes).

use super::super::driver::{Driver, Statement, StatementResult, TransactionKind};
use super::pool::{AbandonPolicy, ConnectionPool, PooledDriver};
use super::{DbErrorClass, SqlBackend, SqlDialect, run_on, script_on};
use crate::StoreError;
use futures_util::future::BoxFuture;
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Sqlite, SqliteConnection};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The time that another process may write before SQLite reports that it is busy.
const BUSY: Duration = Duration::from_secs(5);
const READERS: usize = 4;
/// The name of a database in memory.
pub(in super::super) const SQLITE_MEMORY: &str = ":memory:";

/// Returns the database in the file `path`, which is created with its folder, or in memory.
pub(in super::super) fn connect(path: &str) -> Result<Arc<dyn Driver>, StoreError> {
    let options = SqliteConnectOptions::new()
        .busy_timeout(BUSY)
        .disable_statement_logging();
    if path == SQLITE_MEMORY {
        // Each connection has an in-memory database of its own, so there is only one connection.
        let pool = ConnectionPool::new(options.in_memory(true), 1, AbandonPolicy::Keep);
        return Ok(Arc::new(PooledDriver::<Sqlite> {
            writers: pool.clone(),
            readers: pool,
        }));
    }
    if let Some(folder) = Path::new(path).parent() {
        std::fs::create_dir_all(folder).map_err(|cause| StoreError::io(folder, cause))?;
    }
    let options = options
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        // Not NORMAL: a power failure could lose the last commits.
        .synchronous(SqliteSynchronous::Full);
    // Writers wait here in order for the only connection, instead of polling the file lock.
    let writers = ConnectionPool::new(options.clone(), 1, AbandonPolicy::Close);
    let readers = ConnectionPool::new(options, READERS, AbandonPolicy::Close);
    Ok(Arc::new(PooledDriver::<Sqlite> { writers, readers }))
}

impl SqlBackend for Sqlite {
    const DIALECT: SqlDialect = SqlDialect::Sqlite;
    const SESSION_SETUP: &'static str = "";

    fn begin(begin: TransactionKind) -> &'static str {
        match begin {
            TransactionKind::Write => "BEGIN IMMEDIATE",
            TransactionKind::Schema => "BEGIN EXCLUSIVE",
        }
    }

    /// Classifies by SQLite's extended result codes, whose lowest byte is the primary code.
    fn classify_error(error: &dyn DatabaseError) -> DbErrorClass {
        const BUSY: i32 = 5;
        const LOCKED: i32 = 6;
        const CONSTRAINT_PRIMARYKEY: i32 = 1555;
        const CONSTRAINT_UNIQUE: i32 = 2067;
        match error
            .code()
            .and_then(|code| code.parse::<i32>().ok())
            .unwrap_or_default()
        {
            CONSTRAINT_PRIMARYKEY | CONSTRAINT_UNIQUE => DbErrorClass::Duplicate,
            code if matches!(code & 0xff, BUSY | LOCKED) => DbErrorClass::Contended,
            _ => DbErrorClass::Refused,
        }
    }

    fn run<'a>(
        conn: &'a mut SqliteConnection,
        statement: Statement<'a>,
    ) -> BoxFuture<'a, sqlx::Result<StatementResult>> {
        run_on::<Self>(conn, statement, |done| (done.rows_affected(), None))
    }

    fn script<'a>(
        conn: &'a mut SqliteConnection,
        sql: &'static str,
    ) -> BoxFuture<'a, sqlx::Result<()>> {
        script_on::<Self>(conn, sql)
    }
}
