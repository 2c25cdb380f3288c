//! What runs changed, and what was there before: the memory of undo.

mod files;
mod store;

pub use files::FileUndoLog;
pub use store::StoreUndoLog;

use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use stead_core::{RunId, SessionId};

/// A log of changes per run, and the contents that were replaced, each kept once under its hash.
///
/// A record is on its way to the disk before the change it is about is made, so a killed process
/// leaves none out. It is not forced there: a power cut may cost the last ones, and the hash of a
/// content tells whether it is whole.
pub trait UndoLog: fmt::Debug + Send + Sync {
    /// Adds a line to the log of a run, after `images`: contents by their hash.
    fn record<'a>(
        &'a self,
        run: &'a RunKey,
        line: String,
        images: Vec<(String, Bytes)>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The lines of a run, in order.
    fn records<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// The content with this hash.
    fn image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>>;

    /// The runs that have a log, oldest first.
    fn runs(&self) -> BoxFuture<'_, Result<Vec<LoggedRun>, StoreError>>;

    /// The contents that are kept.
    fn images(&self) -> BoxFuture<'_, Result<Vec<PreImage>, StoreError>>;

    /// Forgets the log of a run.
    fn delete_run<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Forgets a content.
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

/// A run that changed something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRun {
    /// Which.
    pub key: RunKey,
    /// Milliseconds since 1970 of its last change.
    pub updated_ms: i64,
}

/// A content that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreImage {
    /// Its hash.
    pub hash: String,
    /// Its size.
    pub bytes: u64,
    /// Milliseconds since 1970 when it was first kept.
    pub kept_ms: i64,
}
