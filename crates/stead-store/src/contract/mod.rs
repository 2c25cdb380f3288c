//! The contracts of a store: four small traits.
//!
//! Every server backend implements all four; files on this machine implement three of them, because
//! local journals are files of their own ([`FileSessions`](crate::FileSessions)). One conformance
//! suite (`stead_testkit::store_suite`) runs on every backend. There is no read-modify-write without
//! a version: each change names the state it expects.
//!
//! Effects: none.

mod documents;
mod journals;
mod leases;
mod limits;
mod queue;
mod space;

pub use documents::{
    DocVersion, Document, DocumentChange, Documents, Expected, ListedDocument, MAX_BODY_BYTES,
    MAX_KEY_BYTES, MAX_META_BYTES,
};
pub use journals::{JournalTail, Journals};
pub use leases::{AcquireOutcome, Claim, FencingToken, Lease, Leases};
pub(crate) use limits::{check_changes, check_lines};
pub use queue::{ClaimedJob, DeadLetter, EnqueueOutcome, Job, Queue};
pub use space::{Space, folder_name};

use crate::Bus;
use std::sync::Arc;

/// A store of documents, leases and queues.
pub trait StateStore: Documents + Leases + Queue {
    /// Returns the kind and address of the store without credentials, such as
    /// `postgres://db.local/agents`.
    fn place(&self) -> &str;

    /// Returns whether other machines see the same state.
    fn is_shared(&self) -> bool;

    /// Returns the bus between the processes that use this store.
    fn bus(&self) -> Arc<dyn Bus>;
}

/// A store of documents, leases, queues and journals: everything that sessions need.
pub trait Store: StateStore + Journals {}

impl<T: StateStore + Journals> Store for T {}
