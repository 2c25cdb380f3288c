//! The tables of the SQL store, created and migrated on first use.
//!
//! Effects: the clock, randomness, the local disk (writes), the network.

use super::dialect::SqlDialect;
use super::driver::{DbFault, Statement, TransactionKind, Tx, finish};
use super::{ServerLimits, SqlStore};
use crate::contract::{MAX_BODY_BYTES, MAX_KEY_BYTES};
use crate::error::StoreError;
use futures_util::FutureExt;

/// The version of the tables that this code knows. [`migration`] n results in version n.
const VERSION: i64 = 1;
/// The key of PostgreSQL's advisory lock, the same in every process.
const LOCK: i64 = 0x0073_7465_6164;
const MAX_SPACE_BYTES: usize = 400;
const MYSQL_LOCK_SECONDS: i64 = 25;

impl SqlStore {
    /// Brings the tables up to date and returns the server's limits. Of several processes that
    /// start at once, one does it.
    pub(super) async fn set_up(&self) -> Result<ServerLimits, StoreError> {
        let found = self.retry(|_| self.version().boxed()).await?;
        if !self.is_current(found)? {
            self.retry(|_| self.migrate().boxed()).await?;
        }
        self.ask_limits().await
    }

    /// Returns whether tables of version `found` are up to date. `None` means that there are none.
    fn is_current(&self, found: Option<i64>) -> Result<bool, StoreError> {
        match found {
            Some(version) if version > VERSION => Err(StoreError::Setup(format!(
                "the tables in {} are of version {version}, and this stead knows versions up to {VERSION}; \
                 upgrade stead",
                self.place
            ))),
            found => Ok(found == Some(VERSION)),
        }
    }

    async fn version(&self) -> Result<Option<i64>, DbFault> {
        let tables = self
            .driver
            .write(Statement::new(self.dialect.schema_tables()))
            .await?
            .first();
        if tables
            .map(|row| row.int(0))
            .transpose()?
            .unwrap_or_default()
            == 0
        {
            return Ok(None);
        }
        let row = self
            .driver
            .write(Statement::new(READ_VERSION))
            .await?
            .first();
        row.map(|row| row.int(0)).transpose()
    }

    async fn migrate(&self) -> Result<(), DbFault> {
        let mut tx = self.driver.begin(TransactionKind::Schema).await?;
        let outcome = self.migrate_in(&mut *tx).await;
        let unlocked = match self.dialect {
            // Creating a table ends MySQL's transactions, so the lock belongs to the connection.
            SqlDialect::Mysql => tx
                .run(Statement::new(format!("SELECT RELEASE_LOCK({MYSQL_LOCK})")))
                .await
                .map(|_| ()),
            SqlDialect::Sqlite | SqlDialect::Postgres => Ok(()),
        };
        finish(tx, outcome.and(unlocked)).await
    }

    async fn migrate_in(&self, tx: &mut dyn Tx) -> Result<(), DbFault> {
        self.lock(tx).await?;
        let create = format!(
            "CREATE TABLE IF NOT EXISTS stead_schema (version BIGINT NOT NULL PRIMARY KEY){}",
            self.dialect.table_options()
        );
        tx.run(Statement::new(create).once()).await?;
        let found = tx
            .run(Statement::new(READ_VERSION).once())
            .await?
            .first()
            .map(|row| row.int(0))
            .transpose()?;
        if self.is_current(found)? {
            return Ok(());
        }
        for version in found.unwrap_or_default() + 1..=VERSION {
            for sql in migration(self.dialect, version) {
                tx.run(Statement::new(sql).once()).await?;
            }
            tx.run(
                Statement::new("INSERT INTO stead_schema (version) VALUES (?)")
                    .int(version)
                    .once(),
            )
            .await?;
        }
        tracing::info!(place = %self.place, ?found, VERSION, "tables are up to date");
        Ok(())
    }

    async fn lock(&self, tx: &mut dyn Tx) -> Result<(), DbFault> {
        match self.dialect {
            // The transaction began with a lock on everything.
            SqlDialect::Sqlite => Ok(()),
            SqlDialect::Postgres => {
                let sql = "SELECT CAST(COUNT(pg_advisory_xact_lock(?)) AS BIGINT)";
                tx.run(Statement::new(sql).int(LOCK).once())
                    .await
                    .map(|_| ())
            }
            SqlDialect::Mysql => {
                let sql = format!("SELECT GET_LOCK({MYSQL_LOCK}, ?)");
                let row = tx
                    .run(Statement::new(sql).int(MYSQL_LOCK_SECONDS).once())
                    .await?
                    .first();
                match row.map(|row| row.int(0)).transpose()? {
                    Some(1) => Ok(()),
                    _ => Err(DbFault::Contended(
                        "another process is making the tables".to_owned(),
                    )),
                }
            }
        }
    }

    async fn ask_limits(&self) -> Result<ServerLimits, StoreError> {
        match self.dialect {
            SqlDialect::Sqlite | SqlDialect::Postgres => Ok(ServerLimits::default()),
            SqlDialect::Mysql => {
                let answer = self
                    .read(|| Statement::new("SELECT CAST(@@max_allowed_packet AS SIGNED)"))
                    .await?;
                let bytes = answer
                    .first()
                    .map(|row| row.count(0))
                    .transpose()
                    .map_err(|fault| self.store_error(fault))?;
                let bytes = bytes
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .unwrap_or(usize::MAX);
                if bytes < MIN_PACKET_BYTES {
                    return Err(StoreError::Setup(format!(
                        "{} takes packets of {bytes} bytes only; set max_allowed_packet to 16M or more",
                        self.place
                    )));
                }
                let defaults = ServerLimits::default();
                Ok(ServerLimits {
                    statement_bytes: defaults.statement_bytes.min(bytes / 2),
                    value_bytes: defaults.value_bytes.min(bytes - PACKET_REST_BYTES),
                })
            }
        }
    }
}

/// A packet must have room for the largest document.
const MIN_PACKET_BYTES: usize = 2 * MAX_BODY_BYTES;
/// The room in a packet beside its largest value.
const PACKET_REST_BYTES: usize = 256 * 1024;
const READ_VERSION: &str =
    "SELECT MAX(version) FROM stead_schema WHERE version > 0 HAVING COUNT(*) > 0";
/// The lock belongs to the server, so the database is part of its name.
const MYSQL_LOCK: &str = "CONCAT('stead:', SHA1(DATABASE()))";

/// Returns the statements that migrate to `version` from the one before. Each can be run again,
/// because MySQL cannot roll back the first ones when a later one fails.
fn migration(dialect: SqlDialect, version: i64) -> Vec<String> {
    match version {
        1 => first_tables(dialect),
        _ => Vec::new(),
    }
}

fn first_tables(dialect: SqlDialect) -> Vec<String> {
    let space = dialect.key_bytes_type(MAX_SPACE_BYTES);
    let name = dialect.key_bytes_type(MAX_KEY_BYTES);
    let short = dialect.key_bytes_type(64);
    let bytes = dialect.bytes_type();
    let id = dialect.id_type();
    let options = dialect.table_options();
    let table = |name: &str, columns: &str| {
        format!("CREATE TABLE IF NOT EXISTS {name} ({columns}){options}")
    };
    let due = "(space, queue, state, due_ms, id)";
    let mut statements = vec![
        // The columns that are read of every document come before the body, which is stored
        // elsewhere if it is large.
        table(
            "stead_docs",
            &format!(
                "space {space} NOT NULL, dkey {name} NOT NULL, version {short} NOT NULL, meta {bytes} NOT NULL, \
                 body {bytes} NOT NULL, PRIMARY KEY (space, dkey)"
            ),
        ),
        table(
            "stead_leases",
            &format!(
                "space {space} NOT NULL, name {name} NOT NULL, token BIGINT NOT NULL, holder {bytes} NOT NULL, \
                 expires_ms BIGINT NOT NULL, PRIMARY KEY (space, name)"
            ),
        ),
        table(
            "stead_journals",
            &format!(
                "id {id}, space {space} NOT NULL, journal {name} NOT NULL, UNIQUE (space, journal)"
            ),
        ),
        // `upto` is the length of all lines up to this one, so that a page is found without reading
        // it.
        table(
            "stead_lines",
            &format!(
                "journal BIGINT NOT NULL, seq BIGINT NOT NULL, upto BIGINT NOT NULL, at_ms BIGINT NOT NULL, \
                 line {bytes} NOT NULL, PRIMARY KEY (journal, seq)"
            ),
        ),
    ];
    let jobs = format!(
        "id {id}, space {space} NOT NULL, queue {name} NOT NULL, dedup {short} NOT NULL, state BIGINT NOT NULL, \
         due_ms BIGINT NOT NULL, attempts BIGINT NOT NULL, max_attempts BIGINT NOT NULL, ended_ms BIGINT NOT NULL, \
         grip {short} NOT NULL, payload {bytes} NOT NULL, reason {bytes} NOT NULL, UNIQUE (space, queue, dedup)"
    );
    match dialect {
        SqlDialect::Sqlite | SqlDialect::Postgres => {
            statements.push(table("stead_jobs", &jobs));
            statements.push(format!(
                "CREATE INDEX IF NOT EXISTS stead_jobs_due ON stead_jobs {due}"
            ));
        }
        // MySQL has no CREATE INDEX IF NOT EXISTS.
        SqlDialect::Mysql => statements.push(table(
            "stead_jobs",
            &format!("{jobs}, INDEX stead_jobs_due {due}"),
        )),
    }
    statements
}
