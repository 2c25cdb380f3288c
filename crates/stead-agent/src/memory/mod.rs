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
mod error;
mod extract;
mod fact;
mod fact_document;
mod flush;
mod job;
mod merge;
mod merge_model;
mod merge_record;
mod owner_memory;
mod progress;
mod review;
mod tools;
mod transcript;
mod worker;

pub use consolidate::ConsolidationReport;
pub use error::MemoryError;
pub use fact::{Fact, FactSource, MAX_FACT_CHARS, without_sources};
pub use fact_document::FactDocument;
pub use flush::FlushReport;
pub use job::MemoryJob;
pub use merge_record::{MergeDiff, MergeRecord};
pub(crate) use owner_memory::FactFiles;
pub use review::{
    BlameLine, DeadJob, FactSelection, ForgetResult, LocatedFact, MemoryStatus, ReviewDecision,
};
pub(crate) use tools::memory_tools;
pub use worker::{MemoryWorker, WorkerOptions, WorkerReport};
