//! A small pool of database connections, and the driver that uses it.
//!
//! Effects: the clock, the local disk (writes), the network.

use super::super::driver::{
    DbFault, DbFuture, Driver, Statement, StatementResult, TransactionKind, Tx,
};
use super::{SqlBackend, fault};
use futures_util::FutureExt;
use sqlx::Connection;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection that was idle for longer is pinged first.
const PING_AFTER_IDLE: Duration = Duration::from_secs(1);
/// A connection that was idle for longer is closed.
const MAX_IDLE: Duration = Duration::from_secs(60);

pub(super) type ConnectionOptions<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// The treatment of a connection whose user was dropped in the middle of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbandonPolicy {
    /// The connection is closed, and the server rolls the transaction back.
    Close,
    /// The connection is kept, because the data lives in it. The transaction is rolled back before
    /// the next use.
    Keep,
}

/// Connections to one database, limited in number.
pub(super) struct ConnectionPool<DB: SqlBackend> {
    options: ConnectionOptions<DB>,
    abandoned: AbandonPolicy,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<IdleConnection<DB>>>,
}

struct IdleConnection<DB: SqlBackend> {
    conn: DB::Connection,
    since: Instant,
    unfinished: UnfinishedWork,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UnfinishedWork {
    Nothing,
    Transaction,
}

impl<DB: SqlBackend> ConnectionPool<DB> {
    pub(super) fn new(
        options: ConnectionOptions<DB>,
        max: usize,
        abandoned: AbandonPolicy,
    ) -> Arc<Self> {
        Arc::new(Self {
            options,
            abandoned,
            permits: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
        })
    }

    async fn acquire(self: &Arc<Self>) -> Result<PooledConnection<DB>, DbFault> {
        let permit = timeout(STATEMENT_TIMEOUT, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| DbFault::Lost("no connection became free".to_owned()))?
            .map_err(|_| DbFault::Lost("the store is closed".to_owned()))?;
        while let Some(mut idle) = self.take() {
            if self.revive(&mut idle).await {
                return Ok(PooledConnection {
                    conn: Some(idle.conn),
                    pool: self.clone(),
                    _permit: permit,
                });
            }
        }
        let conn = self.connect().await?;
        Ok(PooledConnection {
            conn: Some(conn),
            pool: self.clone(),
            _permit: permit,
        })
    }

    async fn connect(&self) -> Result<DB::Connection, DbFault> {
        with_timeout(CONNECT_TIMEOUT, async {
            let mut conn = DB::Connection::connect_with(&self.options)
                .await
                .map_err(fault::<DB>)?;
            if !DB::SESSION_SETUP.is_empty() {
                DB::script(&mut conn, DB::SESSION_SETUP)
                    .await
                    .map_err(fault::<DB>)?;
            }
            Ok(conn)
        })
        .await
    }

    /// Returns whether an idle connection can be used.
    async fn revive(&self, idle: &mut IdleConnection<DB>) -> bool {
        match idle.unfinished {
            UnfinishedWork::Nothing => {
                idle.since.elapsed() <= PING_AFTER_IDLE
                    || matches!(timeout(CONNECT_TIMEOUT, idle.conn.ping()).await, Ok(Ok(())))
            }
            UnfinishedWork::Transaction => {
                // The rollback fails if no transaction was open, which is fine.
                let undone =
                    timeout(STATEMENT_TIMEOUT, DB::script(&mut idle.conn, "ROLLBACK")).await;
                matches!(undone, Ok(Ok(()) | Err(sqlx::Error::Database(_))))
            }
        }
    }

    fn take(&self) -> Option<IdleConnection<DB>> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    fn put(&self, conn: DB::Connection, unfinished: UnfinishedWork) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The connection used last is taken first, so those at the front are not needed.
        if self.abandoned == AbandonPolicy::Close {
            let stale = idle
                .iter()
                .take_while(|idle| idle.since.elapsed() > MAX_IDLE)
                .count();
            idle.drain(..stale);
        }
        idle.push(IdleConnection {
            conn,
            since: Instant::now(),
            unfinished,
        });
    }
}

impl<DB: SqlBackend> fmt::Debug for ConnectionPool<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options are left out because they hold the password.
        f.debug_struct("Pool")
            .field("free", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

/// A connection in use.
struct PooledConnection<DB: SqlBackend> {
    /// The connection; `None` only while it is returned.
    conn: Option<DB::Connection>,
    pool: Arc<ConnectionPool<DB>>,
    _permit: OwnedSemaphorePermit,
}

impl<DB: SqlBackend> PooledConnection<DB> {
    async fn run(&mut self, statement: Statement<'_>) -> Result<StatementResult, DbFault> {
        let Some(conn) = &mut self.conn else {
            return Err(DbFault::Lost("the connection is closed".to_owned()));
        };
        with_timeout(STATEMENT_TIMEOUT, async {
            DB::run(conn, statement).await.map_err(fault::<DB>)
        })
        .await
    }

    async fn script(&mut self, sql: &'static str) -> Result<(), DbFault> {
        let Some(conn) = &mut self.conn else {
            return Err(DbFault::Lost("the connection is closed".to_owned()));
        };
        with_timeout(STATEMENT_TIMEOUT, async {
            DB::script(conn, sql).await.map_err(fault::<DB>)
        })
        .await
    }

    /// Returns a connection without an operation in progress to the pool.
    fn release(mut self) {
        if let Some(conn) = self.conn.take() {
            self.pool.put(conn, UnfinishedWork::Nothing);
        }
    }
}

impl<DB: SqlBackend> Drop for PooledConnection<DB> {
    fn drop(&mut self) {
        if let (Some(conn), AbandonPolicy::Keep) = (self.conn.take(), self.pool.abandoned) {
            self.pool.put(conn, UnfinishedWork::Transaction);
        }
    }
}

/// A database with its connections. Readers do not wait for writers where the database allows it.
#[derive(Debug)]
pub(super) struct PooledDriver<DB: SqlBackend> {
    pub(super) writers: Arc<ConnectionPool<DB>>,
    pub(super) readers: Arc<ConnectionPool<DB>>,
}

impl<DB: SqlBackend> Driver for PooledDriver<DB> {
    fn read<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult> {
        run_single(&self.readers, statement).boxed()
    }

    fn write<'a>(&'a self, statement: Statement<'a>) -> DbFuture<'a, StatementResult> {
        run_single(&self.writers, statement).boxed()
    }

    fn begin<'a>(&'a self, begin: TransactionKind) -> DbFuture<'a, Box<dyn Tx>> {
        async move {
            let mut slot = self.writers.acquire().await?;
            match slot.script(DB::begin(begin)).await {
                Ok(()) => Ok(Box::new(PooledTransaction { slot }) as Box<dyn Tx>),
                Err(fault @ DbFault::Lost(_)) => Err(fault),
                Err(fault) => {
                    slot.release();
                    Err(fault)
                }
            }
        }
        .boxed()
    }
}

async fn run_single<DB: SqlBackend>(
    pool: &Arc<ConnectionPool<DB>>,
    statement: Statement<'_>,
) -> Result<StatementResult, DbFault> {
    let mut slot = pool.acquire().await?;
    let answer = slot.run(statement).await;
    if !matches!(answer, Err(DbFault::Lost(_))) {
        slot.release();
    }
    answer
}

struct PooledTransaction<DB: SqlBackend> {
    slot: PooledConnection<DB>,
}

impl<DB: SqlBackend> Tx for PooledTransaction<DB> {
    fn run<'a>(&'a mut self, statement: Statement<'a>) -> DbFuture<'a, StatementResult> {
        self.slot.run(statement).boxed()
    }

    fn commit(self: Box<Self>) -> DbFuture<'static, ()> {
        self.finish("COMMIT").boxed()
    }

    fn roll_back(self: Box<Self>) -> DbFuture<'static, ()> {
        self.finish("ROLLBACK").boxed()
    }
}

impl<DB: SqlBackend> PooledTransaction<DB> {
    async fn finish(mut self: Box<Self>, sql: &'static str) -> Result<(), DbFault> {
        self.slot.script(sql).await?;
        self.slot.release();
        Ok(())
    }
}

async fn with_timeout<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, DbFault>>,
) -> Result<T, DbFault> {
    match timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(DbFault::Lost(format!(
            "no answer within {} s",
            limit.as_secs()
        ))),
    }
}
