//! A store in a database: SQLite, PostgreSQL, MySQL or MariaDB.
//!
//! The logic is written once, over [`driver`]: statements with `?` for parameters, and numbers and
//! bytes as the only values. [`dialect`] has the differences in SQL and [`drivers`] the
//! connections.
//!
//! Every operation is one transaction. Conflicts with other transactions and lost connections are
//! retried for a while ([`retry`]); a retry after a lost response first checks whether the earlier
//! attempt was applied.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes), the network.

mod commit_plan;
mod cte_commit;
mod dialect;
mod documents;
mod driver;
mod drivers;
mod journals;
mod leases;
mod queue;
mod retry;
mod schema;
mod url;

use crate::Bus;
use crate::bus::{DEFAULT_RUNTIME_DIR, LocalBus, MemoryBus};
use crate::connect::without_credentials;
use crate::contract::{FencingToken, MAX_KEY_BYTES, Space, StateStore};
use crate::error::StoreError;
use crate::file_store::real_path;
use dialect::SqlDialect;
use driver::{DbFault, Driver, Statement, StatementResult, Tx};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use url::DatabaseTarget;

/// The maximum duration, about a century, so that sums of times do not overflow.
const MAX_SPAN_MS: u128 = 3_200_000_000_000;

/// A store in a database.
///
/// ```
/// use stead_store::{Document, DocumentChange, Documents, Expected, Space, SqlStore};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let store = SqlStore::connect("sqlite::memory:").await.unwrap();
/// let space = Space::new(["agents", "main"]);
/// let document = Document::new("metadata", "body");
/// let put = DocumentChange::Put { key: "a/b".into(), document: document.clone(), expect: Expected::Absent };
/// store.commit(&space, vec![put], None).await.unwrap();
/// assert_eq!(store.get(&space, "a/b").await.unwrap(), Some(document));
/// # });
/// ```
pub struct SqlStore {
    driver: Arc<dyn Driver>,
    dialect: SqlDialect,
    place: String,
    /// The URL, used only to remove its password from messages.
    url: String,
    limits: ServerLimits,
    bus: Arc<dyn Bus>,
    /// Counts acknowledged jobs, to remove old jobs after every few of them.
    acks: AtomicU32,
}

impl SqlStore {
    /// Opens the store at `url`: `sqlite:PATH`, `sqlite::memory:`, `postgres://…`, `mysql://…` or
    /// `mariadb://…`. Creates its tables if needed; the database itself must exist.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let target = url::parse_target(url)?;
        let (dialect, place) = match target {
            DatabaseTarget::Sqlite(path) => (SqlDialect::Sqlite, format!("sqlite:{path}")),
            DatabaseTarget::Postgres => (SqlDialect::Postgres, without_credentials(url)),
            DatabaseTarget::Mysql => (SqlDialect::Mysql, without_credentials(url)),
        };
        let driver = match target {
            DatabaseTarget::Sqlite(path) => drivers::sqlite(path)?,
            DatabaseTarget::Postgres => drivers::postgres(url)?,
            DatabaseTarget::Mysql => drivers::mysql(url)?,
        };
        let limits = ServerLimits::default();
        let bus = connect_bus(url, &driver, &place, Path::new(DEFAULT_RUNTIME_DIR))?;
        let mut store = Self {
            driver,
            dialect,
            place,
            url: url.to_owned(),
            limits,
            bus,
            acks: AtomicU32::new(0),
        };
        store.limits = store.set_up().await?;
        Ok(store)
    }

    /// Sets the folder of this machine for the sockets of the bus of SQLite and MySQL, which is
    /// `/tmp` by default. All processes that use the store must name the same one.
    pub fn with_runtime_dir(self, runtime_dir: &Path) -> Result<Self, StoreError> {
        let bus = connect_bus(&self.url, &self.driver, &self.place, runtime_dir)?;
        Ok(Self { bus, ..self })
    }

    /// Converts a fault that is not retried into an error for the caller.
    fn store_error(&self, fault: DbFault) -> StoreError {
        let place = self.place.clone();
        match fault {
            DbFault::Lost(cause) | DbFault::Contended(cause) => StoreError::Unavailable {
                place,
                cause: url::without_password(cause, &self.url),
            },
            DbFault::Duplicate(cause) | DbFault::Refused(cause) => StoreError::Store {
                place,
                cause: url::without_password(cause, &self.url),
            },
            DbFault::Corrupt(cause) => StoreError::Corrupt { place, cause },
            DbFault::Final(error) => error,
        }
    }

    /// Checks that a name can be a key in the database.
    fn check_name(&self, name: &str) -> Result<(), StoreError> {
        if name.len() <= MAX_KEY_BYTES {
            return Ok(());
        }
        let cause = format!(
            "a name has {} bytes, at most {MAX_KEY_BYTES} are kept",
            name.len()
        );
        Err(StoreError::Store {
            place: self.place.clone(),
            cause,
        })
    }

    /// Checks that a value fits into what the server accepts.
    fn check_value(&self, value: &[u8]) -> Result<(), StoreError> {
        let ServerLimits { value_bytes, .. } = self.limits;
        if value.len() <= value_bytes {
            return Ok(());
        }
        let cause = format!(
            "{} bytes are too many for its packets; raise its limit (MySQL: max_allowed_packet)",
            value.len()
        );
        Err(StoreError::Store {
            place: self.place.clone(),
            cause,
        })
    }

    /// Checks `fence` and keeps it valid until the transaction ends.
    async fn lock_fence(
        &self,
        tx: &mut dyn Tx,
        space: &Space,
        fence: &FencingToken,
    ) -> Result<(), DbFault> {
        let sql = format!(
            "SELECT token FROM stead_leases WHERE space = ? AND name = ?{}",
            self.dialect.for_share()
        );
        let found = tx
            .run(Statement::new(sql).bytes(space.as_str()).bytes(&fence.name))
            .await?
            .first();
        match found.map(|row| row.count(0)).transpose()? {
            Some(token) if token == fence.token => Ok(()),
            _ => Err(DbFault::Final(StoreError::Fenced {
                lease: fence.name.clone(),
            })),
        }
    }

    async fn read<'s>(
        &'s self,
        statement: impl Fn() -> Statement<'s> + Send,
    ) -> Result<StatementResult, StoreError> {
        self.retry(|_| self.driver.read(statement())).await
    }
}

impl fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("place", &self.place)
            .field("driver", &self.driver)
            .finish_non_exhaustive()
    }
}

impl StateStore for SqlStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn is_shared(&self) -> bool {
        match self.dialect {
            SqlDialect::Sqlite => false,
            SqlDialect::Postgres | SqlDialect::Mysql => true,
        }
    }

    fn bus(&self) -> Arc<dyn Bus> {
        self.bus.clone()
    }
}

/// Returns the bus of a database, which connects when it is used.
fn connect_bus(
    url: &str,
    driver: &Arc<dyn Driver>,
    place: &str,
    runtime_dir: &Path,
) -> Result<Arc<dyn Bus>, StoreError> {
    Ok(match url::parse_target(url)? {
        DatabaseTarget::Sqlite(drivers::SQLITE_MEMORY) => Arc::new(MemoryBus::default()),
        DatabaseTarget::Sqlite(path) => {
            let file = real_path(Path::new(path));
            Arc::new(LocalBus::new(runtime_dir, &file.to_string_lossy()))
        }
        DatabaseTarget::Mysql => Arc::new(LocalBus::new(runtime_dir, place)),
        DatabaseTarget::Postgres => drivers::postgres_bus(url, driver.clone(), place.to_owned())?,
    })
}

/// The limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServerLimits {
    /// The maximum number of bytes in the rows of one statement.
    statement_bytes: usize,
    /// The maximum number of bytes in one value.
    value_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            statement_bytes: 4 * 1024 * 1024,
            value_bytes: 512 * 1024 * 1024,
        }
    }
}

/// Converts to whole milliseconds, rounding up so that no duration becomes zero.
fn ms(span: Duration) -> i64 {
    let ms = span.as_nanos().div_ceil(1_000_000).min(MAX_SPAN_MS);
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Returns `?, ?, ?` with `count` placeholders.
fn placeholders(count: usize) -> String {
    let mut text = "?, ".repeat(count);
    text.truncate(text.len().saturating_sub(2));
    text
}
