//! The file of a search index: opened if it is valid, replaced otherwise.
//!
//! Effects: the local disk (writes).

use crate::error::{SqliteFault, classify_error};
use crate::schema::{APPLICATION_ID, FORMAT_VERSION, TABLES};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Row, SqlitePool};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that another process may write before an operation fails.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
const READERS: u32 = 3;

/// The connections to one index.
#[derive(Debug, Clone)]
pub(crate) struct IndexConnections {
    /// A single connection: writers wait for it in order, instead of polling the file lock.
    pub(crate) writer: SqlitePool,
    pub(crate) readers: SqlitePool,
}

/// Creates an index in memory.
pub(crate) async fn in_memory() -> Result<IndexConnections, sqlx::Error> {
    // Each connection would have its own database, so there is only one, and it is never closed.
    let options = SqliteConnectOptions::new()
        .in_memory(true)
        .disable_statement_logging();
    let pool = pool(1, options).await?;
    create_tables(&pool).await?;
    Ok(IndexConnections {
        writer: pool.clone(),
        readers: pool,
    })
}

/// Opens the index at `path`. A file that is damaged, not an index, or of another format is
/// replaced.
pub(crate) async fn open(path: &Path) -> Result<IndexConnections, sqlx::Error> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(sqlx::Error::Io)?;
    }
    check_files(path)?;
    // SQLite does not wait for another process that is creating the same file; it fails.
    let _held = lock_for_replacement(path).await?;
    match connect(path).await {
        Ok(Some(connections)) => return Ok(connections),
        Ok(None) => {}
        Err(error) if classify_error(&error) == SqliteFault::Damaged => {}
        Err(error) => return Err(error),
    }
    recreate(path).await
}

/// Replaces the file at `path` by an empty index. Of several processes that find the same damage,
/// one does.
pub(crate) async fn replace(path: &Path) -> Result<IndexConnections, sqlx::Error> {
    check_files(path)?;
    let _held = lock_for_replacement(path).await?;
    if let Ok(Some(connections)) = connect(path).await
        && is_healthy(&connections).await
    {
        return Ok(connections);
    }
    recreate(path).await
}

/// Takes the lock for creating or replacing the file.
async fn lock_for_replacement(path: &Path) -> Result<File, sqlx::Error> {
    let lock = sibling_path(path, "-lock");
    tokio::task::spawn_blocking(move || {
        // A pipe in its place must not be waited for, nor a link be followed.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        options.custom_flags(flags.bits().cast_signed());
        let file = options.open(&lock)?;
        file.lock().map(|()| file)
    })
    .await
    .map_err(|error| sqlx::Error::Io(std::io::Error::other(error)))?
    .map_err(sqlx::Error::Io)
}

/// Refuses an index of which a file is a pipe or a link: those of a folder from elsewhere could stop
/// the program, or have it write somewhere else.
fn check_files(path: &Path) -> Result<(), sqlx::Error> {
    for suffix in ["", "-wal", "-shm", "-lock"] {
        let file = sibling_path(path, suffix);
        let is_other = std::fs::symlink_metadata(&file).is_ok_and(|found| !found.is_file());
        if is_other {
            let text = format!("{} is not a regular file; remove it", file.display());
            return Err(sqlx::Error::Io(std::io::Error::other(text)));
        }
    }
    Ok(())
}

async fn recreate(path: &Path) -> Result<IndexConnections, sqlx::Error> {
    tracing::info!(index = %path.display(), "the search index is made anew");
    for file in [
        path.to_owned(),
        sibling_path(path, "-wal"),
        sibling_path(path, "-shm"),
    ] {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(sqlx::Error::Io(error));
            }
            _ => {}
        }
    }
    let made = connect(path).await?;
    made.ok_or_else(|| {
        sqlx::Error::Io(std::io::Error::other(
            "another program keeps its own data there",
        ))
    })
}

async fn is_healthy(connections: &IndexConnections) -> bool {
    let checked = sqlx::query("PRAGMA quick_check(1)")
        .fetch_one(&connections.writer)
        .await;
    let scanned = sqlx::query("INSERT INTO words (words, rank) VALUES ('integrity-check', 0)");
    checked.is_ok_and(|row| row.try_get::<String, _>(0).is_ok_and(|said| said == "ok"))
        && scanned.execute(&connections.writer).await.is_ok()
}

fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Opens the index at `path`, creating it if needed. Returns `None` if the file belongs to another
/// program or has another format.
async fn connect(path: &Path) -> Result<Option<IndexConnections>, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        // A power failure may lose the last commits and nothing else; they are derived.
        .synchronous(SqliteSynchronous::Normal)
        .disable_statement_logging();
    let writer = pool(1, options.clone()).await?;
    let number = async |sql: &'static str| {
        sqlx::query(sql)
            .fetch_one(&writer)
            .await?
            .try_get::<i64, _>(0)
    };
    let marks = (
        number("PRAGMA application_id").await?,
        number("PRAGMA user_version").await?,
    );
    match marks {
        (APPLICATION_ID, FORMAT_VERSION) => {}
        (0, 0) if number("SELECT COUNT(*) FROM sqlite_schema").await? == 0 => {
            create_tables(&writer).await?
        }
        _ => {
            writer.close().await;
            return Ok(None);
        }
    }
    let readers = pool(READERS, options).await?;
    Ok(Some(IndexConnections { writer, readers }))
}

async fn pool(max: u32, options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    // The first connection is opened at once, so that problems with the file are found now.
    let pool = SqlitePoolOptions::new()
        .max_connections(max)
        .test_before_acquire(false);
    pool.idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(BUSY_TIMEOUT)
        .connect_with(options)
        .await
}

async fn create_tables(writer: &SqlitePool) -> Result<(), sqlx::Error> {
    let mut tx = writer.begin_with("BEGIN IMMEDIATE").await?;
    // Another process may have created the tables first.
    let made = sqlx::query("SELECT COUNT(*) FROM sqlite_schema")
        .fetch_one(&mut *tx)
        .await?
        .try_get::<i64, _>(0)?;
    if made == 0 {
        let marks = format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION};"
        );
        sqlx::raw_sql(AssertSqlSafe(format!("{TABLES}{marks}")))
            .execute(&mut *tx)
            .await?;
    }
    tx.commit().await
}
