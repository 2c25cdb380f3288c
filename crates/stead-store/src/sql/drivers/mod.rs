//! The databases, each over its own sqlx driver.
//!
//! Connections are pooled here and not by sqlx, whose pool pings the server each time a connection
//! is returned. That doubles the round trips of a single statement.
//!
//! Effects: the local disk (writes), the network.

mod absent;
#[cfg(feature = "mysql")]
mod mysql;
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_bus;
mod sqlite;

#[cfg(not(feature = "mysql"))]
pub(super) use absent::mysql;
#[cfg(not(feature = "postgres"))]
pub(super) use absent::{postgres, postgres_bus};
#[cfg(feature = "mysql")]
pub(super) use mysql::connect as mysql;
#[cfg(feature = "postgres")]
pub(super) use postgres::connect as postgres;
#[cfg(feature = "postgres")]
pub(super) use postgres_bus::connect as postgres_bus;
pub(super) use sqlite::{SQLITE_MEMORY, connect as sqlite};

use super::dialect::SqlDialect;
use super::driver::{
    DbFault, Param, Reuse, SqlRow, SqlValue, Statement, StatementResult, TransactionKind,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use sqlx::database::HasStatementCache;
use sqlx::error::DatabaseError;
use sqlx::{
    AssertSqlSafe, ColumnIndex, Database, Decode, Either, Encode, Executor, IntoArguments,
    Row as _, Type, TypeInfo, ValueRef,
};

/// A database of sqlx with what its drivers do not provide.
trait SqlBackend: Database + HasStatementCache {
    const DIALECT: SqlDialect;
    /// The first statement of every new connection.
    const SESSION_SETUP: &'static str;

    fn begin(begin: TransactionKind) -> &'static str;
    fn classify_error(error: &dyn DatabaseError) -> DbErrorClass;
    fn run<'a>(
        conn: &'a mut Self::Connection,
        statement: Statement<'a>,
    ) -> BoxFuture<'a, sqlx::Result<StatementResult>>;
    fn script<'a>(
        conn: &'a mut Self::Connection,
        sql: &'static str,
    ) -> BoxFuture<'a, sqlx::Result<()>>;
}

/// The kind of a database error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DbErrorClass {
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        expect(dead_code, reason = "a file has no connection that can be lost")
    )]
    Lost,
    Contended,
    Duplicate,
    Refused,
}

fn fault<DB: SqlBackend>(error: sqlx::Error) -> DbFault {
    use sqlx::Error as E;
    match error {
        E::Database(error) => {
            let said = error.message().to_owned();
            match DB::classify_error(error.as_ref()) {
                DbErrorClass::Lost => DbFault::Lost(said),
                DbErrorClass::Contended => DbFault::Contended(said),
                DbErrorClass::Duplicate => DbFault::Duplicate(said),
                DbErrorClass::Refused => DbFault::Refused(said),
            }
        }
        E::Io(cause) => DbFault::Lost(cause.to_string()),
        // A connection with a protocol error is unusable; a new one may work.
        E::Protocol(_) | E::WorkerCrashed | E::BeginFailed => DbFault::Lost(error.to_string()),
        E::ColumnDecode { .. } | E::Decode(_) => DbFault::Corrupt(error.to_string()),
        other => DbFault::Refused(other.to_string()),
    }
}

fn run_on<'a, DB>(
    conn: &'a mut DB::Connection,
    statement: Statement<'a>,
    result: impl Fn(&DB::QueryResult) -> (u64, Option<i64>) + Send + 'a,
) -> BoxFuture<'a, sqlx::Result<StatementResult>>
where
    DB: SqlBackend,
    DB::Arguments: IntoArguments<DB>,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'v> i64: Encode<'v, DB> + Decode<'v, DB> + Type<DB>,
    for<'v> &'v [u8]: Encode<'v, DB> + Type<DB>,
    for<'v> Vec<u8>: Decode<'v, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    async move {
        let sql = DB::DIALECT.placeholders(statement.sql);
        let mut query =
            sqlx::query::<DB>(AssertSqlSafe(sql)).persistent(statement.reuse == Reuse::Prepared);
        for param in statement.params {
            query = match param {
                Param::Int(value) => query.bind(value),
                Param::Bytes(value) => query.bind(value),
            };
        }
        let mut answer = StatementResult::default();
        let mut stream = conn.fetch_many(query);
        while let Some(part) = stream.try_next().await? {
            match part {
                Either::Left(done) => {
                    let (changed, made) = result(&done);
                    answer.changed += changed;
                    answer.inserted_id = made;
                }
                Either::Right(row) => {
                    answer.rows.push(SqlRow(
                        (0..row.len())
                            .map(|at| value::<DB>(&row, at))
                            .collect::<Result<_, _>>()?,
                    ));
                }
            }
        }
        Ok(answer)
    }
    .boxed()
}

fn value<DB>(row: &DB::Row, at: usize) -> sqlx::Result<SqlValue>
where
    DB: SqlBackend,
    for<'v> i64: Decode<'v, DB> + Type<DB>,
    for<'v> Vec<u8>: Decode<'v, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    let raw = row.try_get_raw(at)?;
    if raw.is_null() {
        return Ok(SqlValue::Null);
    }
    let kind = raw.type_info();
    if <i64 as Type<DB>>::compatible(&kind) {
        return Ok(SqlValue::Int(
            i64::decode(raw).map_err(sqlx::Error::Decode)?,
        ));
    }
    if <Vec<u8> as Type<DB>>::compatible(&kind) {
        return Ok(SqlValue::Bytes(
            Vec::<u8>::decode(raw).map_err(sqlx::Error::Decode)?,
        ));
    }
    Err(sqlx::Error::Decode(
        format!("column {at} has the type {}", kind.name()).into(),
    ))
}

fn script_on<'a, DB>(
    conn: &'a mut DB::Connection,
    sql: &'static str,
) -> BoxFuture<'a, sqlx::Result<()>>
where
    DB: SqlBackend,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    async move { conn.execute(sqlx::raw_sql(sql)).await.map(|_| ()) }.boxed()
}
