//! The undo log: the changes of runs, and the previous contents of files.
//!
//! Effects: none.

mod files;
mod store;

pub use files::FileUndoLog;
pub use store::StoreUndoLog;

use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use stead_core::{RunId, SessionId};

/// A log of changes for each run, with the replaced contents, each stored once under its hash.
///
/// A record is written before the change it describes is made, so a killed process misses none. It
/// is not synced: a power failure may lose the last records, and the hash of a content shows
/// whether it is complete.
pub trait UndoLog: fmt::Debug + Send + Sync {
    /// Adds a line to the log of a run, after storing `images`: contents by their hash.
    fn record<'a>(
        &'a self,
        run: &'a RunKey,
        line: String,
        images: Vec<(String, Bytes)>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the lines of a run, in order.
    fn records<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// Returns the content with this hash.
    fn image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// Returns the runs that have a log, oldest first.
    fn runs(&self) -> BoxFuture<'_, Result<Vec<LoggedRun>, StoreError>>;

    /// Returns the stored contents.
    fn images(&self) -> BoxFuture<'_, Result<Vec<PreImage>, StoreError>>;

    /// Deletes the log of a run.
    fn delete_run<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Deletes a content.
    fn delete_image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// One run of one session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKey {
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
}

/// A run that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRun {
    /// The run.
    pub key: RunKey,
    /// The time of its last change in milliseconds since 1970.
    pub updated_ms: i64,
}

/// A stored content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// The hash.
    pub hash: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The time when it was first stored, in milliseconds since 1970.
    pub kept_ms: i64,
}
