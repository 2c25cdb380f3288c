//! The driver for MySQL and MariaDB.
//!
//! Effects: the network.

use super::super::driver::{Driver, Statement, StatementResult, TransactionKind};
use super::pool::{AbandonPolicy, ConnectionPool, PooledDriver};
use super::{DbErrorClass, SqlBackend, SqlDialect, run_on, script_on};
use crate::StoreError;
use futures_util::future::BoxFuture;
use sqlx::error::DatabaseError;
use sqlx::mysql::{MySqlConnectOptions, MySqlDatabaseError};
use sqlx::{ConnectOptions, MySql, MySqlConnection};
use std::sync::Arc;

const MAX_CONNECTIONS: usize = 16;

/// Returns the database at `url` without connecting yet.
pub(in super::super) fn connect(url: &str) -> Result<Arc<dyn Driver>, StoreError> {
    let options: MySqlConnectOptions = url.parse().map_err(|cause: sqlx::Error| {
        StoreError::Setup(format!("the URL of the store: {cause}"))
    })?;
    if options.get_database().is_none() {
        return Err(StoreError::Setup(
            "the URL of the store names no database: mysql://host/DATABASE".to_owned(),
        ));
    }
    // The clock is read in the session's time zone, which must be one without gaps.
    let options = options
        .timezone("+00:00".to_owned())
        .disable_statement_logging();
    let pool = ConnectionPool::new(options, MAX_CONNECTIONS, AbandonPolicy::Close);
    Ok(Arc::new(PooledDriver::<MySql> {
        writers: pool.clone(),
        readers: pool,
    }))
}

impl SqlBackend for MySql {
    const DIALECT: SqlDialect = SqlDialect::Mysql;
    // Without READ COMMITTED, looking up an absent key locks its neighbours. Of a key longer than
    // `max_sort_length`, the rest would not be compared. A process that sleeps inside a transaction
    // must not block whoever takes its lease over: MariaDB ends such transactions, MySQL only such
    // connections.
    const SESSION_SETUP: &'static str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; \
        SET SESSION innodb_lock_wait_timeout = 20, max_sort_length = 2048 \
        /*M!100300 , idle_transaction_timeout = 10 */ /*!80000 , wait_timeout = 20 */";

    fn begin(begin: TransactionKind) -> &'static str {
        match begin {
            TransactionKind::Write | TransactionKind::Schema => "BEGIN",
        }
    }

    /// Classifies by the error numbers of MySQL and MariaDB.
    fn classify_error(error: &dyn DatabaseError) -> DbErrorClass {
        match error
            .try_downcast_ref::<MySqlDatabaseError>()
            .map(MySqlDatabaseError::number)
        {
            Some(1062) => DbErrorClass::Duplicate,
            // Deadlock, lock wait timeout, record has changed since last read.
            Some(1213 | 1205 | 1020) => DbErrorClass::Contended,
            // Too many connections, shutting down, killed, interrupted, network, disconnected for
            // inactivity.
            Some(1040 | 1053 | 1077 | 1158..=1161 | 1203 | 1317 | 1927 | 2006 | 2013 | 4031) => {
                DbErrorClass::Lost
            }
            _ => DbErrorClass::Refused,
        }
    }

    fn run<'a>(
        conn: &'a mut MySqlConnection,
        statement: Statement<'a>,
    ) -> BoxFuture<'a, sqlx::Result<StatementResult>> {
        run_on::<Self>(conn, statement, |done| {
            (
                done.rows_affected(),
                i64::try_from(done.last_insert_id()).ok(),
            )
        })
    }

    fn script<'a>(
        conn: &'a mut MySqlConnection,
        sql: &'static str,
    ) -> BoxFuture<'a, sqlx::Result<()>> {
        script_on::<Self>(conn, sql)
    }
}
