//! What every store does: four small traits.
//!
//! All four are implemented by each backend, and one conformance suite
//! (`stead_testkit::store_suite`) runs on every one of them. Nothing here is read-modify-write
//! without a version: whoever changes something says what must still hold.

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

/// A place that holds shared state: all four contracts, in one.
pub trait Store: Documents + Journals + Leases + Queue {
    /// What kind of store this is, and where, without a password: `postgres://db.local/agents`.
    fn place(&self) -> &str;

    /// Whether other machines see the same state.
    fn is_shared(&self) -> bool;
}
