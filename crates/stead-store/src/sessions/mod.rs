//! The contract of a place that keeps sessions, and the places that do.

mod files;
mod group_sync;
mod holder;
mod index;
mod journal;
mod lock;
mod store;
#[cfg(test)]
mod tests;

pub use files::FileSessions;
pub(crate) use files::{make_dirs, modified_ms};
pub use holder::{Holder, ProcessIdentity};
pub use store::StoreSessions;

use crate::{FencingToken, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::time::Duration;
use stead_core::{
    ChainSum, Entry, JournalLine, Redactor, RunOutcome, SessionId, SessionOrigin, SessionState,
    Usage, Usd,
};
use tokio_util::sync::CancellationToken;

/// A place that keeps sessions. One writer per session, enforced by the place.
pub trait Sessions: Debug + Send + Sync {
    /// Begins a session, empty or `from` another, and takes it for writing.
    fn create<'a>(
        &'a self,
        id: &'a SessionId,
        from: Option<SessionOrigin>,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>>;

    /// Takes a session for writing. With `known`, nothing is read if the journal still ends there.
    /// A torn last line is cut and reported; damage before it is an error.
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        known: Option<Position>,
        wait: LockWait,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>>;

    /// All lines of a session, checked, without taking it. A torn last line is left out.
    fn read<'a>(&'a self, id: &'a SessionId)
    -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>>;

    /// What there is, newest first. Summaries are derived and rebuilt where they are absent or
    /// stale.
    fn list(&self) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>>;

    /// Removes a session that nobody writes.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The lines of a session as they stand, checked, without their ends: for another place to take
    /// over.
    fn export<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>>;

    /// Takes over lines of another place. A session that is here already is extended if the lines
    /// go on from it; if they differ, it is left alone ([`StoreError::Exists`]).
    fn import<'a>(
        &'a self,
        id: &'a SessionId,
        lines: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<ImportOutcome, StoreError>>;

    /// Writes what is derived from a session (snapshot, index). Its failure loses nothing, so it is
    /// reported and not returned.
    fn update_derived<'a>(
        &'a self,
        state: &'a SessionState,
        position: Position,
    ) -> BoxFuture<'a, ()>;

    /// Where a person finds the journal of a session.
    fn locate(&self, id: &SessionId) -> String;

    /// Knows the secrets that are kept out of the journals, so that they can be kept out of
    /// elsewhere.
    fn redactor(&self) -> &Redactor;

    /// Brings derived state that was held back to its place.
    fn flush(&self) -> BoxFuture<'_, ()>;
}

/// What taking over a session came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is new here.
    New,
    /// It was here and got longer.
    Extended,
    /// It was here as it is.
    Same,
}

/// A session taken for writing. Dropping it gives the session back.
#[derive(Debug)]
pub struct OpenedSession {
    /// The session's state; none if it is still what the caller knew.
    pub state: Option<SessionState>,
    /// The only way to add to it.
    pub writer: Box<dyn JournalWriter>,
    /// What was cut off the end.
    pub torn: Option<TornTail>,
}

/// Adds to one journal.
pub trait JournalWriter: Debug + Send {
    /// Appends entries in one piece and returns them as they were written, secrets removed. Durable
    /// on return if any of them [must be](Entry::must_be_durable). After an error it takes no more.
    fn append(
        &mut self,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<Vec<JournalLine>, StoreError>>;

    /// Where the journal ends.
    fn position(&self) -> Position;

    /// The proof that this is the session's writer, for changes to documents beside it; none where
    /// the operating system sees to it.
    fn fence(&self) -> Option<&FencingToken>;

    /// Cancelled when someone else took the session over: whatever goes on for it must stop.
    fn lease_lost(&self) -> CancellationToken;

    /// Gives the session back. A writer that is merely dropped does so as well, but perhaps only
    /// after the time that a silent holder is given.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The last line.
    pub seq: u64,
    /// The chain's sum there.
    pub sum: ChainSum,
    /// Bytes up to there.
    pub bytes: u64,
}

/// A last line that was not written whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The line it would have been.
    pub line: u64,
    /// How many bytes were cut off.
    pub bytes: u64,
}

/// Whether to wait for a session that someone else writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Fail at once.
    No,
    /// At most this long.
    AtMost(Duration),
}

/// A session in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The first words said in it.
    pub title: String,
    /// The session that handed its work over, if it is a subagent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// Milliseconds since 1970 of the journal's last change; with `bytes`, the mark of staleness.
    pub updated_ms: i64,
    /// Entries in its journal.
    pub entries: u64,
    /// Runs begun.
    pub runs: u64,
    /// How the last run ended; absent while one is open.
    pub outcome: Option<RunOutcome>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Tokens used in all.
    pub usage: Usage,
    /// Money spent in all; absent when any part is not known.
    pub cost: Option<Usd>,
    /// Bytes of the journal this was derived from.
    pub bytes: u64,
    /// What is wrong with the journal, if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}
