//! The search index: syncing sources and listing them.
//!
//! Effects: the local disk (writes).

use crate::error::{SqliteFault, classify_error};
use crate::index_file::{self, IndexConnections};
use crate::rows::{BATCH_ROWS, rows};
use crate::{IndexError, SearchSource, SearchSourceKind, SourceLine};
use serde_json::Value;
use sqlx::{Row, SqliteConnection};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// A search index of the lines of sources. It is derived, so it may be deleted at any time, and
/// several processes may use one file at once.
#[derive(Debug)]
pub struct Index {
    /// The file, or `None` in memory.
    path: Option<PathBuf>,
    connections: RwLock<IndexConnections>,
    /// Held while a damaged file is replaced.
    repair_lock: tokio::sync::Mutex<()>,
}

/// The result of syncing a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncOutcome {
    /// The index had this version.
    Unchanged,
    /// The index has this version now.
    Replaced,
}

/// The result of appending to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The new lines were added.
    Added,
    /// The index has another version than the one that grew: all lines must be synced.
    Stale,
}

impl Index {
    /// Opens the index in the file `path`, creating it if needed. A file that is damaged or not an
    /// index of this format is replaced by an empty one.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, IndexError> {
        let path = path.as_ref();
        let opened = index_file::open(path)
            .await
            .map_err(|error| unavailable(&path.display().to_string(), &error))?;
        Ok(Self::of(Some(path.to_owned()), opened))
    }

    /// Creates an index in memory.
    pub async fn in_memory() -> Result<Self, IndexError> {
        let opened = index_file::in_memory()
            .await
            .map_err(|error| unavailable(MEMORY, &error))?;
        Ok(Self::of(None, opened))
    }

    fn of(path: Option<PathBuf>, connections: IndexConnections) -> Self {
        Self {
            path,
            connections: RwLock::new(connections),
            repair_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Replaces the lines of `source` by `lines`, unless the index has `version` already.
    pub async fn sync(
        &self,
        source: &SearchSource,
        version: &str,
        lines: &[SourceLine],
    ) -> Result<SyncOutcome, IndexError> {
        let done = self.try_sync(source, version, lines).await;
        self.replace_if_damaged(done).await
    }

    async fn try_sync(
        &self,
        source: &SearchSource,
        version: &str,
        lines: &[SourceLine],
    ) -> sqlx::Result<SyncOutcome> {
        let mut tx = self
            .connections()
            .writer
            .begin_with("BEGIN IMMEDIATE")
            .await?;
        let known = find_source(&mut tx, source).await?;
        if known.as_ref().is_some_and(|known| known.version == version) {
            return Ok(SyncOutcome::Unchanged);
        }
        let id = match known {
            Some(known) => {
                delete_rows(&mut tx, known.id).await?;
                known.id
            }
            None => {
                let made = sqlx::query(
                    "INSERT INTO sources (kind, name, version, rows) VALUES (?, ?, '', 0)",
                );
                made.bind(source.kind.code())
                    .bind(&source.name)
                    .execute(&mut *tx)
                    .await?
                    .last_insert_rowid()
            }
        };
        let count = add_rows(&mut tx, source, id, lines).await?;
        let set = sqlx::query("UPDATE sources SET version = ?, rows = ? WHERE id = ?");
        set.bind(version)
            .bind(count)
            .bind(id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(SyncOutcome::Replaced)
    }

    /// Adds `lines` to a source that only grew from version `from` to `version`.
    pub async fn append(
        &self,
        source: &SearchSource,
        from: &str,
        version: &str,
        lines: &[SourceLine],
    ) -> Result<AppendOutcome, IndexError> {
        let done = self.try_append(source, from, version, lines).await;
        self.replace_if_damaged(done).await
    }

    async fn try_append(
        &self,
        source: &SearchSource,
        from: &str,
        version: &str,
        lines: &[SourceLine],
    ) -> sqlx::Result<AppendOutcome> {
        let mut tx = self
            .connections()
            .writer
            .begin_with("BEGIN IMMEDIATE")
            .await?;
        // Another process may have added the same lines in the meantime.
        let Some(known) = find_source(&mut tx, source)
            .await?
            .filter(|known| known.version == from)
        else {
            return Ok(AppendOutcome::Stale);
        };
        let count = add_rows(&mut tx, source, known.id, lines).await?;
        let set = sqlx::query("UPDATE sources SET version = ?, rows = rows + ? WHERE id = ?");
        set.bind(version)
            .bind(count)
            .bind(known.id)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(AppendOutcome::Added)
    }

    /// Removes a source.
    pub async fn remove(&self, source: &SearchSource) -> Result<(), IndexError> {
        let done = self.try_remove(source).await;
        self.replace_if_damaged(done).await
    }

    async fn try_remove(&self, source: &SearchSource) -> sqlx::Result<()> {
        let mut tx = self
            .connections()
            .writer
            .begin_with("BEGIN IMMEDIATE")
            .await?;
        let Some(known) = find_source(&mut tx, source).await? else {
            return Ok(());
        };
        delete_rows(&mut tx, known.id).await?;
        sqlx::query("DELETE FROM sources WHERE id = ?")
            .bind(known.id)
            .execute(&mut *tx)
            .await?;
        sqlx::query("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM rows)")
            .execute(&mut *tx)
            .await?;
        tx.commit().await
    }

    /// Releases the space of removed sources.
    pub async fn compact(&self) -> Result<(), IndexError> {
        let writer = self.connections().writer;
        let merged = sqlx::query("INSERT INTO words (words) VALUES ('optimize')")
            .execute(&writer)
            .await;
        self.replace_if_damaged(merged).await?;
        let compacted = sqlx::raw_sql("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&writer)
            .await;
        self.replace_if_damaged(compacted).await.map(drop)
    }

    /// Returns the sources of one kind with their versions.
    pub async fn sources(
        &self,
        kind: SearchSourceKind,
    ) -> Result<BTreeMap<String, String>, IndexError> {
        let rows =
            sqlx::query("SELECT name, version FROM sources WHERE kind = ?").bind(kind.code());
        let rows = rows.fetch_all(&self.connections().readers).await;
        let pairs = rows.and_then(|rows| {
            rows.iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                .collect()
        });
        self.replace_if_damaged(pairs).await
    }

    /// Returns the version of `source` in the index.
    pub async fn version(&self, source: &SearchSource) -> Result<Option<String>, IndexError> {
        let row = sqlx::query("SELECT version FROM sources WHERE kind = ? AND name = ?");
        let row = row
            .bind(source.kind.code())
            .bind(&source.name)
            .fetch_optional(&self.connections().readers)
            .await;
        let version = row.and_then(|row| row.map(|row| row.try_get(0)).transpose());
        self.replace_if_damaged(version).await
    }

    pub(crate) fn connections(&self) -> IndexConnections {
        self.connections
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the result of an operation. If it shows that the file is damaged, the file is
    /// replaced.
    pub(crate) async fn replace_if_damaged<T>(
        &self,
        outcome: sqlx::Result<T>,
    ) -> Result<T, IndexError> {
        let error = match outcome {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match (classify_error(&error), &self.path) {
            (SqliteFault::Busy, _) => Err(IndexError::Busy),
            (SqliteFault::Damaged, Some(path)) => {
                tracing::warn!(index = %path.display(), %error, "the search index is damaged");
                let _one = self.repair_lock.lock().await;
                let old = self.connections();
                old.writer.close().await;
                old.readers.close().await;
                self.replace_file(path).await
            }
            // Another call found the damage first. It may have failed to replace the file.
            (SqliteFault::Other, Some(path)) if matches!(error, sqlx::Error::PoolClosed) => {
                let _one = self.repair_lock.lock().await;
                match self.connections().writer.is_closed() {
                    true => self.replace_file(path).await,
                    false => Err(IndexError::Rebuilt),
                }
            }
            (SqliteFault::Damaged | SqliteFault::Other, path) => {
                let place = path
                    .as_ref()
                    .map_or_else(|| MEMORY.to_owned(), |path| path.display().to_string());
                Err(unavailable(&place, &error))
            }
        }
    }
}

const MEMORY: &str = "in memory";

impl Index {
    /// Makes a new file in place of a damaged one, whose connections are closed. An index that was
    /// replaced is reported as an error, because the caller has to begin again.
    async fn replace_file<T>(&self, path: &Path) -> Result<T, IndexError> {
        let made = index_file::replace(path).await;
        let made = made.map_err(|error| unavailable(&path.display().to_string(), &error))?;
        *self
            .connections
            .write()
            .unwrap_or_else(PoisonError::into_inner) = made;
        Err(IndexError::Rebuilt)
    }
}

fn unavailable(place: &str, error: &sqlx::Error) -> IndexError {
    IndexError::Unavailable {
        place: place.to_owned(),
        cause: error.to_string(),
    }
}

struct IndexedSource {
    id: i64,
    version: String,
}

async fn find_source(
    conn: &mut SqliteConnection,
    source: &SearchSource,
) -> sqlx::Result<Option<IndexedSource>> {
    let row = sqlx::query("SELECT id, version FROM sources WHERE kind = ? AND name = ?");
    let row = row
        .bind(source.kind.code())
        .bind(&source.name)
        .fetch_optional(conn)
        .await?;
    row.map(|row| {
        Ok(IndexedSource {
            id: row.try_get(0)?,
            version: row.try_get(1)?,
        })
    })
    .transpose()
}

async fn delete_rows(conn: &mut SqliteConnection, source: i64) -> sqlx::Result<()> {
    let words =
        sqlx::query("DELETE FROM words WHERE rowid IN (SELECT id FROM rows WHERE source = ?)");
    words.bind(source).execute(&mut *conn).await?;
    sqlx::query("DELETE FROM rows WHERE source = ?")
        .bind(source)
        .execute(conn)
        .await
        .map(drop)
}

/// Adds the rows of `lines`. Returns their number.
async fn add_rows(
    conn: &mut SqliteConnection,
    source: &SearchSource,
    id: i64,
    lines: &[SourceLine],
) -> sqlx::Result<i64> {
    let last = sqlx::query("SELECT COALESCE(MAX(id), 0) FROM rows")
        .fetch_one(&mut *conn)
        .await?;
    let mut all = rows(source, id, lines, last.try_get::<i64, _>(0)? + 1);
    let mut count = 0;
    loop {
        let batch: Vec<Value> = all.by_ref().take(BATCH_ROWS).collect();
        if batch.is_empty() {
            return Ok(count);
        }
        count += i64::try_from(batch.len()).unwrap_or(i64::MAX);
        let batch = Value::Array(batch).to_string();
        let text = sqlx::query(
            "INSERT INTO rows (id, source, place, at_ms, voice, hash, text) \
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6 \
             FROM json_each(?)",
        );
        text.bind(&batch).execute(&mut *conn).await?;
        let words = sqlx::query(
            "INSERT INTO words (rowid, scope, sequence, beside) \
             SELECT value ->> 0, value ->> 7, value ->> 8, value ->> 9 FROM json_each(?)",
        );
        words.bind(&batch).execute(&mut *conn).await?;
    }
}
