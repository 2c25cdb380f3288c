//! Long-term memory: facts with their sources in plain files, found in what was said and merged
//! over time.
//!
//! After a run a job goes to a durable queue, and the reply does not wait for it. Whoever works
//! next looks through the journal from the session's mark on
//! ([`Agent::flush`](crate::Agent::flush)), and what the model finds is added to
//! `memory/YYYY-MM-DD.md`. From time to time new facts are merged into `MEMORY.md`
//! ([`Agent::consolidate`](crate::Agent::consolidate)). What came from outside goes to
//! `memory/quarantine/`, where neither a prompt nor a merge sees it until a person approves.
//!
//! Read in this order: `fact` and `ledger` (the files), `transcript` (what is trusted), `flush`,
//! `merge` and `consolidate`, `work`.

mod ask;
mod consolidate;
mod credentials;
mod decide;
mod error;
mod extract;
mod fact;
mod flush;
mod home;
mod job;
mod ledger;
mod marks;
mod merge;
mod record;
mod review;
mod tools;
mod transcript;
mod work;

pub use consolidate::ConsolidationReport;
pub use error::MemoryError;
pub use fact::{Fact, FactSource, MAX_FACT_CHARS, without_sources};
pub use flush::FlushReport;
pub(crate) use home::FactFiles;
pub use job::MemoryJob;
pub use ledger::FactDocument;
pub use record::{MergeDiff, MergeRecord};
pub use review::{
    BlameLine, DeadJob, FactSelection, ForgetResult, LocatedFact, MemoryStatus, ReviewDecision,
};
pub(crate) use tools::memory_tools;
pub use work::{MemoryWorker, WorkerOptions, WorkerReport};
