//! The driver for PostgreSQL.
//!
//! Effects: the environment, the local disk (reads), the network.

use super::super::driver::{Driver, Statement, StatementResult, TransactionKind};
use super::pool::{AbandonPolicy, ConnectionPool, PooledDriver};
use super::{DbErrorClass, SqlBackend, SqlDialect, run_on, script_on};
use crate::StoreError;
use futures_util::future::BoxFuture;
use sqlx::error::DatabaseError;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection, Postgres};
use std::sync::Arc;

const MAX_CONNECTIONS: usize = 16;

/// Returns the database at `url` without connecting yet.
pub(in super::super) fn connect(url: &str) -> Result<Arc<dyn Driver>, StoreError> {
    let options: PgConnectOptions = url.parse().map_err(|cause: sqlx::Error| {
        StoreError::Setup(format!("the URL of the store: {cause}"))
    })?;
    let pool = ConnectionPool::new(
        options.disable_statement_logging(),
        MAX_CONNECTIONS,
        AbandonPolicy::Close,
    );
    Ok(Arc::new(PooledDriver::<Postgres> {
        writers: pool.clone(),
        readers: pool,
    }))
}

impl SqlBackend for Postgres {
    const DIALECT: SqlDialect = SqlDialect::Postgres;
    // Set here and not in the URL's options, which connection poolers refuse. A process that sleeps
    // inside a transaction must not block whoever takes its lease over.
    const SESSION_SETUP: &'static str = "SET statement_timeout = 30000; \
        SET idle_in_transaction_session_timeout = 10000; \
        SET default_transaction_isolation = 'read committed'";

    fn begin(begin: TransactionKind) -> &'static str {
        match begin {
            TransactionKind::Write | TransactionKind::Schema => "BEGIN",
        }
    }

    /// Classifies by the codes in PostgreSQL's appendix A.
    fn classify_error(error: &dyn DatabaseError) -> DbErrorClass {
        match error.code().as_deref().unwrap_or_default() {
            "23505" => DbErrorClass::Duplicate,
            // Serialization failure, deadlock, lock not available, cancelled for taking too long.
            "40001" | "40P01" | "55P03" | "57014" => DbErrorClass::Contended,
            // Shut down, crashed, starting, too many clients, idle in transaction for too long.
            "57P01" | "57P02" | "57P03" | "53300" | "25P03" => DbErrorClass::Lost,
            code if code.starts_with("08") => DbErrorClass::Lost,
            _ => DbErrorClass::Refused,
        }
    }

    fn run<'a>(
        conn: &'a mut PgConnection,
        statement: Statement<'a>,
    ) -> BoxFuture<'a, sqlx::Result<StatementResult>> {
        run_on::<Self>(conn, statement, |done| (done.rows_affected(), None))
    }

    fn script<'a>(
        conn: &'a mut PgConnection,
        sql: &'static str,
    ) -> BoxFuture<'a, sqlx::Result<()>> {
        script_on::<Self>(conn, sql)
    }
}
