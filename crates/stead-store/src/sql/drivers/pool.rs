//! A few connections, kept open between uses.

use super::super::driver::{Answer, Answered, Begin, Driver, Fault, Statement, Tx};
use super::{Flavour, fault};
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
/// A connection that was idle for longer is asked for a sign of life first.
const TRUSTED_IDLE: Duration = Duration::from_secs(1);
/// A connection that was idle for longer is closed.
const MAX_IDLE: Duration = Duration::from_secs(60);

pub(super) type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// What becomes of a connection whose user went away in the middle of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// It is closed, and the server undoes what was begun.
    Close,
    /// It is kept, because the data lives and dies with it; what was begun is undone before its
    /// next use.
    Keep,
}

/// Connections to one database, at most so many at a time.
pub(super) struct Pool<DB: Flavour> {
    options: Options<DB>,
    abandoned: Abandoned,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle<DB>>>,
}

struct Idle<DB: Flavour> {
    conn: DB::Connection,
    since: Instant,
    unfinished: Unfinished,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unfinished {
    Nothing,
    Transaction,
}

impl<DB: Flavour> Pool<DB> {
    pub(super) fn new(options: Options<DB>, max: usize, abandoned: Abandoned) -> Arc<Self> {
        Arc::new(Self {
            options,
            abandoned,
            permits: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
        })
    }

    async fn acquire(self: &Arc<Self>) -> Result<Slot<DB>, Fault> {
        let permit = timeout(STATEMENT_TIMEOUT, self.permits.clone().acquire_owned())
            .await
            .map_err(|_| Fault::Lost("no connection became free".to_owned()))?
            .map_err(|_| Fault::Lost("the store is closed".to_owned()))?;
        while let Some(mut idle) = self.take() {
            if self.revive(&mut idle).await {
                return Ok(Slot {
                    conn: Some(idle.conn),
                    home: self.clone(),
                    _permit: permit,
                });
            }
        }
        let conn = self.connect().await?;
        Ok(Slot {
            conn: Some(conn),
            home: self.clone(),
            _permit: permit,
        })
    }

    async fn connect(&self) -> Result<DB::Connection, Fault> {
        within(CONNECT_TIMEOUT, async {
            let mut conn = DB::Connection::connect_with(&self.options)
                .await
                .map_err(fault::<DB>)?;
            if !DB::GREETING.is_empty() {
                DB::script(&mut conn, DB::GREETING)
                    .await
                    .map_err(fault::<DB>)?;
            }
            Ok(conn)
        })
        .await
    }

    /// Whether an idle connection can be used.
    async fn revive(&self, idle: &mut Idle<DB>) -> bool {
        match idle.unfinished {
            Unfinished::Nothing => {
                idle.since.elapsed() <= TRUSTED_IDLE
                    || matches!(timeout(CONNECT_TIMEOUT, idle.conn.ping()).await, Ok(Ok(())))
            }
            Unfinished::Transaction => {
                // Refused where no transaction was open, and that is fine too.
                let undone =
                    timeout(STATEMENT_TIMEOUT, DB::script(&mut idle.conn, "ROLLBACK")).await;
                matches!(undone, Ok(Ok(()) | Err(sqlx::Error::Database(_))))
            }
        }
    }

    fn take(&self) -> Option<Idle<DB>> {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    fn put(&self, conn: DB::Connection, unfinished: Unfinished) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The last used is taken first, so those at the front are those not needed.
        if self.abandoned == Abandoned::Close {
            let stale = idle
                .iter()
                .take_while(|idle| idle.since.elapsed() > MAX_IDLE)
                .count();
            idle.drain(..stale);
        }
        idle.push(Idle {
            conn,
            since: Instant::now(),
            unfinished,
        });
    }
}

impl<DB: Flavour> fmt::Debug for Pool<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the options: they hold the password.
        f.debug_struct("Pool")
            .field("free", &self.permits.available_permits())
            .finish_non_exhaustive()
    }
}

/// A connection in use.
struct Slot<DB: Flavour> {
    /// None only while it goes back.
    conn: Option<DB::Connection>,
    home: Arc<Pool<DB>>,
    _permit: OwnedSemaphorePermit,
}

impl<DB: Flavour> Slot<DB> {
    async fn run(&mut self, statement: Statement<'_>) -> Result<Answer, Fault> {
        let Some(conn) = &mut self.conn else {
            return Err(Fault::Lost("the connection is closed".to_owned()));
        };
        within(STATEMENT_TIMEOUT, async {
            DB::run(conn, statement).await.map_err(fault::<DB>)
        })
        .await
    }

    async fn script(&mut self, sql: &'static str) -> Result<(), Fault> {
        let Some(conn) = &mut self.conn else {
            return Err(Fault::Lost("the connection is closed".to_owned()));
        };
        within(STATEMENT_TIMEOUT, async {
            DB::script(conn, sql).await.map_err(fault::<DB>)
        })
        .await
    }

    /// Gives a connection back on which nothing is under way.
    fn release(mut self) {
        if let Some(conn) = self.conn.take() {
            self.home.put(conn, Unfinished::Nothing);
        }
    }
}

impl<DB: Flavour> Drop for Slot<DB> {
    fn drop(&mut self) {
        if let (Some(conn), Abandoned::Keep) = (self.conn.take(), self.home.abandoned) {
            self.home.put(conn, Unfinished::Transaction);
        }
    }
}

/// A database with its connections. Those that read wait for no writer where the database allows
/// it.
#[derive(Debug)]
pub(super) struct Pooled<DB: Flavour> {
    pub(super) writers: Arc<Pool<DB>>,
    pub(super) readers: Arc<Pool<DB>>,
}

impl<DB: Flavour> Driver for Pooled<DB> {
    fn read<'a>(&'a self, statement: Statement<'a>) -> Answered<'a, Answer> {
        alone(&self.readers, statement).boxed()
    }

    fn write<'a>(&'a self, statement: Statement<'a>) -> Answered<'a, Answer> {
        alone(&self.writers, statement).boxed()
    }

    fn begin<'a>(&'a self, begin: Begin) -> Answered<'a, Box<dyn Tx>> {
        async move {
            let mut slot = self.writers.acquire().await?;
            match slot.script(DB::begin(begin)).await {
                Ok(()) => Ok(Box::new(Open { slot }) as Box<dyn Tx>),
                Err(fault @ Fault::Lost(_)) => Err(fault),
                Err(fault) => {
                    slot.release();
                    Err(fault)
                }
            }
        }
        .boxed()
    }
}

async fn alone<DB: Flavour>(
    pool: &Arc<Pool<DB>>,
    statement: Statement<'_>,
) -> Result<Answer, Fault> {
    let mut slot = pool.acquire().await?;
    let answer = slot.run(statement).await;
    if !matches!(answer, Err(Fault::Lost(_))) {
        slot.release();
    }
    answer
}

struct Open<DB: Flavour> {
    slot: Slot<DB>,
}

impl<DB: Flavour> Tx for Open<DB> {
    fn run<'a>(&'a mut self, statement: Statement<'a>) -> Answered<'a, Answer> {
        self.slot.run(statement).boxed()
    }

    fn commit(self: Box<Self>) -> Answered<'static, ()> {
        self.finish("COMMIT").boxed()
    }

    fn roll_back(self: Box<Self>) -> Answered<'static, ()> {
        self.finish("ROLLBACK").boxed()
    }
}

impl<DB: Flavour> Open<DB> {
    async fn finish(mut self: Box<Self>, sql: &'static str) -> Result<(), Fault> {
        self.slot.script(sql).await?;
        self.slot.release();
        Ok(())
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    match timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Fault::Lost(format!(
            "no answer within {} s",
            limit.as_secs()
        ))),
    }
}
