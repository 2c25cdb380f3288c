//! The contract for keeping sessions, and its implementations.
//!
//! Effects: the journal (reads).

mod dirs;
mod files;
mod group_sync;
mod holder;
mod index;
mod journal;
mod journal_file;
mod journal_range;
mod listing;
mod lock;
mod long_journal;
mod page;
mod pending_index;
mod read_positions;
mod relocate;
mod snapshot;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use dirs::{make_dirs, modified_ms};
pub use files::FileSessions;
pub use holder::{Holder, ProcessIdentity};
pub use page::{CursorError, PageCursor, PageRequest, SessionPage};
pub use relocate::{MovedAgents, agents_in, move_agents};
pub use store::StoreSessions;

use crate::{FencingToken, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::time::Duration;
use stead_core::{
    ChainSum, Entry, JournalLine, NewSession, Redactor, RunOutcome, SessionId, SessionState, Usage,
    Usd,
};
use tokio_util::sync::CancellationToken;

/// The end of the name of a journal's file.
const JOURNAL_SUFFIX: &str = ".log.jsonl";

/// Returns the name of the journal's file of `id`.
fn journal_name(id: &SessionId) -> String {
    format!("{id}{JOURNAL_SUFFIX}")
}

/// Sessions of an agent. Each session has at most one writer at a time.
pub trait Sessions: Debug + Send + Sync {
    /// Creates a session whose first entry records `new`, and opens it for writing.
    fn create<'a>(
        &'a self,
        id: &'a SessionId,
        new: NewSession,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>>;

    /// Opens a session for writing. With `known`, nothing is read if the journal still ends there.
    /// A torn last line is removed and reported; damage before it is an error.
    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        known: Option<Position>,
        wait: LockWait,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>>;

    /// Returns all lines of a session, verified, without opening it for writing. A torn last line
    /// is left out.
    fn read<'a>(&'a self, id: &'a SessionId)
    -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>>;

    /// Returns lines of a session from number `from_seq` on: about `limit_bytes` of them, and at
    /// least one if there is one. They are verified along their chain; lines before them are not.
    /// A torn last line is left out.
    fn read_from<'a>(
        &'a self,
        id: &'a SessionId,
        from_seq: u64,
        limit_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>>;

    /// Returns the end of a session's journal, or `None` if there is no such session. The cost does
    /// not depend on the length of the journal. A torn last line does not count.
    fn tail<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<JournalEnd>, StoreError>>;

    /// Returns summaries of sessions, newest first, one page of them. Absent or outdated summaries
    /// on the page are derived again.
    fn list(&self, page: PageRequest) -> BoxFuture<'_, Result<SessionPage, StoreError>>;

    /// Returns summaries of all sessions, newest first, for work that concerns all of them.
    fn list_all(&self) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(async move { Ok(self.list(PageRequest::everything()).await?.sessions) })
    }

    /// Removes a session that has no writer.
    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the lines of a session unchanged and verified, without line ends, for importing
    /// elsewhere.
    fn export<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>>;

    /// Imports the lines of a session from elsewhere. An existing session is extended if the lines
    /// continue it; if they differ, it is left unchanged ([`StoreError::Exists`]).
    fn import<'a>(
        &'a self,
        id: &'a SessionId,
        lines: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<ImportOutcome, StoreError>>;

    /// Writes the data derived from a session (snapshot, index). A failure loses nothing, so it is
    /// logged and not returned.
    fn update_derived<'a>(
        &'a self,
        state: &'a SessionState,
        position: Position,
    ) -> BoxFuture<'a, ()>;

    /// Returns the location of a session's journal, for people.
    fn locate(&self, id: &SessionId) -> String;

    /// Returns the redactor with the secrets that are kept out of the journals.
    fn redactor(&self) -> &Redactor;

    /// Writes derived data that was held back.
    fn flush(&self) -> BoxFuture<'_, ()>;
}

/// The result of importing a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The session did not exist.
    New,
    /// The session existed and was extended.
    Extended,
    /// The session existed with the same lines.
    Same,
}

/// A session that is open for writing. Dropping it releases the session.
#[derive(Debug)]
pub struct OpenedSession {
    /// The state of the session, or `None` if it is the state the caller knew.
    pub state: Option<SessionState>,
    /// The writer of the journal.
    pub writer: Box<dyn JournalWriter>,
    /// The torn line that was removed.
    pub torn: Option<TornTail>,
}

/// The writer of one journal.
pub trait JournalWriter: Debug + Send + Sync {
    /// Appends entries atomically and returns them as written, with secrets removed. Durable on
    /// return if one of them [must be](Entry::must_be_durable). After an error the writer accepts
    /// no more entries.
    fn append(
        &mut self,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<Vec<JournalLine>, StoreError>>;

    /// Returns the end of the journal.
    fn position(&self) -> Position;

    /// Returns the fencing token for changes to documents of this session, or `None` if the
    /// operating system enforces the single writer.
    fn fence(&self) -> Option<&FencingToken>;

    /// Returns a token that is cancelled when another process takes the session over. All work for
    /// the session must stop then.
    fn lease_lost(&self) -> CancellationToken;

    /// Releases the session. Dropping the writer does so too, but possibly only when the lease
    /// expires.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The end of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The number of the last line.
    pub seq: u64,
    /// The chained checksum of the last line.
    pub sum: ChainSum,
    /// The length of the journal in bytes.
    pub bytes: u64,
}

/// The number of the last line of a journal and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEnd {
    /// The number of the last line.
    pub seq: u64,
    /// The length of the journal in bytes.
    pub bytes: u64,
}

/// A last line that was not completely written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The number of the line.
    pub line: u64,
    /// The number of bytes that were removed.
    pub bytes: u64,
}

/// How long to wait for a session that another process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Fail at once.
    No,
    /// Wait at most this long.
    AtMost(Duration),
}

/// A session in a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The title that a person gave, or the beginning of the first input.
    pub title: String,
    /// The parent session, if this is a subagent's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The time of the journal's last change in milliseconds since 1970. Together with `bytes` it
    /// shows whether the summary is outdated.
    pub updated_ms: i64,
    /// The number of entries in the journal.
    pub entries: u64,
    /// The number of runs.
    pub runs: u64,
    /// The outcome of the last run; absent while a run is open.
    pub outcome: Option<RunOutcome>,
    /// The model that gave the last answer.
    pub model: Option<String>,
    /// The total token usage.
    pub usage: Usage,
    /// The total cost; absent if any part is unknown.
    pub cost: Option<Usd>,
    /// The length in bytes of the journal that this was derived from.
    pub bytes: u64,
    /// The reason why the journal cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}
