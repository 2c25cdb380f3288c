//! Durable state: sessions with their journals, and stores of documents, leases and queues.
//!
//! - [`Sessions`]: the journals of an agent's sessions, with one writer per session.
//!   [`FileSessions`] keeps each session as a file of JSON lines; [`StoreSessions`] keeps them in a
//!   [`Store`].
//! - [`Documents`], [`Journals`], [`Leases`], [`Queue`]: the contracts of a store. [`StateStore`]
//!   is a store without journals, [`Store`] one with all four. [`connect()`] opens a store by its
//!   URL.
//! - [`SessionInbox`]: commands that wait for the process that holds a session.
//! - [`TenantJobs`]: the jobs of a tenant, in one queue.
//! - [`Bus`]: hints and live deltas between processes, which may be lost.
//! - [`UndoLog`]: the previous contents of files that runs changed. [`LineLog`]: a log that many
//!   processes append to.
//! - [`Disk`]: the only interface for changing the local disk, so that tests can inject faults at
//!   any operation.
//!
//! ```
//! use std::sync::Arc;
//! use stead_core::{AgentId, Entry, NewSession, Redactor, RunId, SessionId, UserInput};
//! use stead_store::{FileSessions, OsDisk, Sessions};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let sessions = FileSessions::new(folder, AgentId::new("main").unwrap(), Arc::new(OsDisk), Redactor::default());
//! let id = SessionId::new("first").unwrap();
//! let mut opened = sessions.create(&id, NewSession::default()).await.unwrap();
//! opened.writer.append(vec![Entry::User(UserInput::text(RunId::fresh(), "hello"))]).await.unwrap();
//! drop(opened);
//! assert_eq!(sessions.read(&id).await.unwrap().len(), 2);
//! # });
//! ```
//!
//! Redis, PostgreSQL and MySQL are built in with the features `redis`, `postgres` and `mysql`.
//!
//! Effects: none.

mod bus;
mod connect;
mod contract;
mod disk;
mod error;
mod file_store;
mod ignored_dir;
mod inbox;
mod jobs;
mod line_log;
mod local;
mod memory_store;
#[cfg(feature = "redis")]
mod redis;
mod regular_file;
mod sessions;
mod sql;
mod undo_log;

pub use bus::{Bus, BusMessage, BusSubscription, MAX_BUS_MESSAGE_BYTES, Topic};
pub use connect::connect;
pub use contract::{
    AcquireOutcome, Claim, ClaimedJob, DeadLetter, DocVersion, Document, DocumentChange, Documents,
    EnqueueOutcome, Expected, FencingToken, Job, JournalTail, Journals, Lease, Leases,
    ListedDocument, MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_META_BYTES, Queue, Space, StateStore, Store,
    folder_name,
};
pub use disk::{Disk, OsDisk, open_dir};
pub use error::StoreError;
pub use file_store::FileStore;
pub use ignored_dir::IgnoredDir;
pub use inbox::{
    InboxError, InboxRow, InputOutcome, InputStatus, Inserted, MAX_INPUT_KEY_BYTES,
    MAX_WAITING_INPUTS, REMEMBERED_INPUTS, SessionInbox,
};
pub use jobs::{ClaimedTenantJob, TenantJob, TenantJobKind, TenantJobs};
pub use line_log::{FileLineLog, LineLog, RewriteLines, StoreLineLog};
pub use memory_store::MemoryStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
pub use sessions::{
    CursorError, FileSessions, Holder, ImportOutcome, JournalEnd, JournalWriter, LockWait,
    MovedAgents, OpenedSession, PageCursor, PageRequest, Position, ProcessIdentity, SessionPage,
    SessionSummary, Sessions, StoreSessions, TornTail, agents_in, move_agents,
};
pub use sql::SqlStore;
pub use undo_log::{FileUndoLog, LoggedRun, PreImage, RunKey, StoreUndoLog, UndoLog};
