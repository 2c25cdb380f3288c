//! What the logic needs of a database: statements, alone or in a transaction.

use crate::StoreError;
use futures_util::future::BoxFuture;
use std::borrow::Cow;
use std::fmt;

pub(super) type DbFuture<'a, T> = BoxFuture<'a, Result<T, DbFault>>;

/// A database that can be reached.
pub(super) trait Driver: fmt::Debug + Send + Sync {
    /// Runs a statement that only reads.
    fn read<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Runs a statement that is a transaction of its own.
    fn write<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Begins a transaction that will write. Dropped before its end, it is undone.
    fn begin<'a>(&'a self, begin: TransactionKind) -> DbFuture<'a, Box<dyn Tx>>;
}

/// A transaction.
pub(super) trait Tx: Send {
    /// Runs a statement.
    fn run<'a>(&'a mut self, statement: Statement<'a>) -> DbFuture<'a, StatementResult>;

    /// Makes it durable.
    fn commit(self: Box<Self>) -> DbFuture<'static, ()>;

    /// Undoes it.
    fn roll_back(self: Box<Self>) -> DbFuture<'static, ()>;
}

/// Ends a transaction as its outcome demands.
pub(super) async fn finish<T>(tx: Box<dyn Tx>, outcome: Result<T, DbFault>) -> Result<T, DbFault> {
    match outcome {
        Ok(value) => tx.commit().await.map(|()| value),
        // The connection is of no more use, and closing it undoes the transaction.
        Err(fault @ DbFault::Lost(_)) => Err(fault),
        Err(fault) => {
            // What fails here closes the connection, and the transaction is undone all the same.
            let _ = tx.roll_back().await;
            Err(fault)
        }
    }
}

/// How a transaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionKind {
    /// To write rows.
    Write,
    /// To make tables.
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

    /// Not worth keeping: its text depends on how much there was to do.
    pub(super) fn once(mut self) -> Self {
        self.reuse = Reuse::Once;
        self
    }
}

/// Whether the server should keep a statement for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reuse {
    Prepared,
    Once,
}

/// A value on its way to the database.
#[derive(Debug, Clone, Copy)]
pub(super) enum Param<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

/// What a statement gave.
#[derive(Debug, Default)]
pub(super) struct StatementResult {
    pub(super) rows: Vec<SqlRow>,
    /// How many rows it changed.
    pub(super) changed: u64,
    /// The number the database gave to a new row, where a driver tells it beside the rows.
    pub(super) inserted_id: Option<i64>,
}

impl StatementResult {
    /// The only row, if there is one.
    pub(super) fn first(self) -> Option<SqlRow> {
        self.rows.into_iter().next()
    }
}

/// One row: its values, each taken once.
#[derive(Debug)]
pub(super) struct SqlRow(pub(super) Vec<SqlValue>);

/// A value from the database. Text is bytes everywhere, so that no collation or padding touches it.
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

    /// A number that is never negative.
    pub(super) fn count(&self, column: usize) -> Result<u64, DbFault> {
        let value = self.int(column)?;
        u64::try_from(value).map_err(|_| DbFault::Corrupt(format!("column {column} is {value}")))
    }
}

/// Why an attempt failed, sorted by what can be done about it.
#[derive(Debug)]
pub(super) enum DbFault {
    /// The connection is gone or the answer did not come: it may have been done.
    Lost(String),
    /// Others were in the way, and nothing was done.
    Contended(String),
    /// A row with this key is there already, and nothing was done.
    Duplicate(String),
    /// The database will not do it.
    Refused(String),
    /// What is stored makes no sense.
    Corrupt(String),
    /// An answer of the store's own. Trying again would give the same.
    Final(StoreError),
}

impl From<StoreError> for DbFault {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}
