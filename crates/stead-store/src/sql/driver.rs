//! Part of the SQL store: the interface to a database, for statements alone or in a transaction.
//!
//! Effects: the clock, the local disk (writes), the network.

use crate::StoreError;
use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::fmt;

pub(super) type DbFuture<'a, T> = BoxFuture<'a, Result<T, DbFault>>;

/// A database connection pool.
pub(super) trait Driver: fmt::Debug + Send + Sync {
    /// Runs a statement that only reads.
    fn read<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Runs a statement as a transaction of its own.
    fn write<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Begins a transaction that will write. Dropping it before the end rolls it back.
    fn begin<'a>(&'a self, begin: TransactionKind) -> DbFuture<'a, Box<dyn Tx>>;
}

/// A transaction.
pub(super) trait Tx: Send {
    /// Runs a statement.
    fn run<'a>(&'a mut self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Commits it.
    fn commit(self: Box<Self>) -> DbFuture<'static, ()>;

    /// Rolls it back.
    fn roll_back(self: Box<Self>) -> DbFuture<'static, ()>;
}

/// Commits or rolls back a transaction, depending on its outcome.
pub(super) async fn finish<T>(tx: Box<dyn Tx>, outcome: Result<T, DbFault>) -> Result<T, DbFault> {
    match outcome {
        Ok(value) => tx.commit().await.map(|()| value),
        // The connection is unusable, and closing it rolls the transaction back.
        Err(fault @ DbFault::Lost(_)) => Err(fault),
        Err(fault) => {
            // A failure here closes the connection, which rolls the transaction back too.
            let _ = tx.roll_back().await;
            Err(fault)
        }
    }
}

/// The kind of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionKind {
    /// To write rows.
    Write,
    /// To create tables.
    Schema,
}

/// A statement with its parameters, each written as `?`.
#[derive(Debug)]
pub(super) struct Statement<'a> {
    pub(super) sql: Cow<'static, str>,
    pub(super) params: Vec<Param<'a>>,
    pub(super) reuse: Reuse,
}

impl<'a> Statement<'a> {
    pub(super) fn new(sql: impl Into<Cow<'static, str>>) -> Self {
        Self {
            sql: sql.into(),
            params: Vec::new(),
            reuse: Reuse::Prepared,
        }
    }

    pub(super) fn int(mut self, value: i64) -> Self {
        self.params.push(Param::Int(value));
        self
    }

    pub(super) fn bytes(mut self, value: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.params.push(Param::Bytes(value.as_ref()));
        self
    }

    /// Marks a statement as not worth preparing, because its text depends on the amount of data.
    pub(super) fn once(mut self) -> Self {
        self.reuse = Reuse::Once;
        self
    }
}

/// Whether the server should keep a statement prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Prepared,
    Once,
}

/// A parameter value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Param<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

/// The result of a statement.
#[derive(Debug, Default)]
pub(super) struct StatementResult {
    pub(super) rows: Vec<SqlRow>,
    /// The number of changed rows.
    pub(super) changed: u64,
    /// The id of a new row, if the driver reports it beside the rows.
    pub(super) inserted_id: Option<i64>,
}

impl StatementResult {
    /// Returns the only row, if there is one.
    pub(super) fn first(self) -> Option<SqlRow> {
        self.rows.into_iter().next()
    }
}

/// One row. Each value can be taken once.
#[derive(Debug)]
pub(super) struct SqlRow(pub(super) Vec<SqlValue>);

/// A value from the database. Text is bytes everywhere, so that no collation or padding changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SqlValue {
    Null,
    Int(i64),
    Bytes(Vec<u8>),
}

impl SqlRow {
    pub(super) fn int(&self, column: usize) -> Result<i64, DbFault> {
        match self.0.get(column) {
            Some(SqlValue::Int(value)) => Ok(*value),
            other => Err(DbFault::Corrupt(format!(
                "column {column} is {other:?} and no number"
            ))),
        }
    }

    pub(super) fn bytes(&mut self, column: usize) -> Result<Vec<u8>, DbFault> {
        match self.0.get_mut(column) {
            Some(SqlValue::Bytes(value)) => Ok(std::mem::take(value)),
            other => Err(DbFault::Corrupt(format!(
                "column {column} is {other:?} and no bytes"
            ))),
        }
    }

    pub(super) fn text(&mut self, column: usize) -> Result<String, DbFault> {
        String::from_utf8(self.bytes(column)?)
            .map_err(|_| DbFault::Corrupt(format!("column {column} is no text")))
    }

    /// Returns a number that must not be negative.
    pub(super) fn count(&self, column: usize) -> Result<u64, DbFault> {
        let value = self.int(column)?;
        u64::try_from(value).map_err(|_| DbFault::Corrupt(format!("column {column} is {value}")))
    }
}

/// The reason why an attempt failed, by what can be done about it.
#[derive(Debug)]
pub(super) enum DbFault {
    /// The connection is gone or the response did not come: the statement may have been executed.
    Lost(String),
    /// A conflict with other transactions; nothing was changed.
    Contended(String),
    /// A row with this key exists already; nothing was changed.
    Duplicate(String),
    /// The database refused the statement.
    Refused(String),
    /// The stored data is invalid.
    Corrupt(String),
    /// An error of the store itself, which a retry would repeat.
    Final(StoreError),
}

impl From<StoreError> for DbFault {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}
