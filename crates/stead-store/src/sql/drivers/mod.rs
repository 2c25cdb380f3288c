//! The three databases, each over its own sqlx driver.
//!
//! Connections are kept here and not in sqlx's pool: that one asks the server for a sign of life
//! each time a connection comes back, which doubles the round trips of a single statement.

mod mysql;
mod pool;
mod postgres;
mod sqlite;

pub(super) use mysql::connect as mysql;
pub(super) use postgres::connect as postgres;
pub(super) use sqlite::connect as sqlite;

use super::dialect::Dialect;
use super::driver::{Answer, Begin, Fault, Param, Reuse, Row, Statement, Value};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryStreamExt};
use sqlx::database::HasStatementCache;
use sqlx::error::DatabaseError;
use sqlx::{
    AssertSqlSafe, ColumnIndex, Database, Decode, Either, Encode, Executor, IntoArguments,
    Row as _, Type, TypeInfo, ValueRef,
};

/// A database as sqlx knows it, and what it leaves to us.
trait Flavour: Database + HasStatementCache {
    const DIALECT: Dialect;
    /// What every new connection is told first.
    const GREETING: &'static str;

    fn begin(begin: Begin) -> &'static str;
    fn sort(error: &dyn DatabaseError) -> Sort;
    fn run<'a>(
        conn: &'a mut Self::Connection,
        statement: Statement<'a>,
    ) -> BoxFuture<'a, sqlx::Result<Answer>>;
    fn script<'a>(
        conn: &'a mut Self::Connection,
        sql: &'static str,
    ) -> BoxFuture<'a, sqlx::Result<()>>;
}

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Lost,
    Again,
    Duplicate,
    Refused,
}

fn fault<DB: Flavour>(error: sqlx::Error) -> Fault {
    use sqlx::Error as E;
    match error {
        E::Database(error) => {
            let said = error.message().to_owned();
            match DB::sort(error.as_ref()) {
                Sort::Lost => Fault::Lost(said),
                Sort::Again => Fault::Again(said),
                Sort::Duplicate => Fault::Duplicate(said),
                Sort::Refused => Fault::Refused(said),
            }
        }
        E::Io(cause) => Fault::Lost(cause.to_string()),
        // A connection that speaks nonsense is of no use; a new one may be.
        E::Protocol(_) | E::WorkerCrashed | E::BeginFailed => Fault::Lost(error.to_string()),
        E::ColumnDecode { .. } | E::Decode(_) => Fault::Odd(error.to_string()),
        other => Fault::Refused(other.to_string()),
    }
}

fn run_on<'a, DB>(
    conn: &'a mut DB::Connection,
    statement: Statement<'a>,
    result: impl Fn(&DB::QueryResult) -> (u64, Option<i64>) + Send + 'a,
) -> BoxFuture<'a, sqlx::Result<Answer>>
where
    DB: Flavour,
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
        let mut answer = Answer::default();
        let mut stream = conn.fetch_many(query);
        while let Some(part) = stream.try_next().await? {
            match part {
                Either::Left(done) => {
                    let (changed, made) = result(&done);
                    answer.changed += changed;
                    answer.made = made;
                }
                Either::Right(row) => {
                    answer.rows.push(Row((0..row.len())
                        .map(|at| value::<DB>(&row, at))
                        .collect::<Result<_, _>>()?));
                }
            }
        }
        Ok(answer)
    }
    .boxed()
}

fn value<DB>(row: &DB::Row, at: usize) -> sqlx::Result<Value>
where
    DB: Flavour,
    for<'v> i64: Decode<'v, DB> + Type<DB>,
    for<'v> Vec<u8>: Decode<'v, DB> + Type<DB>,
    usize: ColumnIndex<DB::Row>,
{
    let raw = row.try_get_raw(at)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    let kind = raw.type_info();
    if <i64 as Type<DB>>::compatible(&kind) {
        return Ok(Value::Int(i64::decode(raw).map_err(sqlx::Error::Decode)?));
    }
    if <Vec<u8> as Type<DB>>::compatible(&kind) {
        return Ok(Value::Bytes(
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
    DB: Flavour,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
{
    async move { conn.execute(sqlx::raw_sql(sql)).await.map(|_| ()) }.boxed()
}
