//! Long-term memory: facts with their sources in plain files, extracted from sessions and merged
//! over time.
//!
//! The end of a run leaves a durable note that its session waits ([`Memory::run_ended`]); the answer
//! waits for nothing. Once enough is new and the sessions are idle, a worker ([`Memory::work`])
//! looks through several of them with one question to a model, and adds the facts to
//! `memory/YYYY-MM-DD.md`. From time to time new facts are merged into `MEMORY.md`
//! ([`Memory::consolidate`]). Facts from untrusted content go to `memory/quarantine/`, where
//! neither a prompt nor a merge sees them until a person accepts them ([`Memory::decide`]).
//!
//! The crate knows neither agents nor running sessions: a [`Memory`] works over a [`MemoryContext`]
//! that gives it files, documents, journals and a model to ask. Files are Markdown, and every fact
//! carries its source:
//!
//! ```
//! use stead_memory::{FactDocument, without_sources};
//!
//! let text = "# Notes\n- Prefers tabs. <!-- stead: id=4f0c by=user -->\n";
//! let document = FactDocument::parse(text);
//! let (line, fact) = document.facts().next().unwrap();
//! assert_eq!((line, fact.text.as_str(), fact.id()), (1, "Prefers tabs.", "4f0c"));
//! assert_eq!(without_sources(&document.lines()[1]), "- Prefers tabs.");
//! ```
//!
//! Read in this order: `fact` and `fact_document` (the files), `transcript` (what is trusted),
//! `waiting` and `due` (what waits, and when it is looked through), `flush`, `merge` and
//! `consolidate`, `due_work` and `worker`.
//!
//! Effects: none.

mod ask;
mod consolidate;
mod context;
mod credentials;
mod days;
mod due;
mod due_work;
mod error;
mod extract;
mod fact;
mod fact_document;
mod fact_files;
mod flush;
mod forget;
mod job;
mod memory;
mod merge;
mod merge_model;
mod merge_record;
mod owner_memory;
mod progress;
mod review;
mod tools;
mod transcript;
mod waiting;
mod worker;

pub use consolidate::ConsolidationReport;
pub use context::{MemoryContext, MemoryModel, MemoryQuestion};
pub use error::MemoryError;
pub use fact::{Fact, FactSource, MAX_FACT_CHARS, without_sources};
pub use fact_document::FactDocument;
pub use fact_files::FactFiles;
pub use flush::FlushReport;
pub use forget::ForgetResult;
pub use memory::{FailedFlush, Memory, NewPart};
pub use merge_record::{MergeDiff, MergeRecord};

pub use review::{
    BlameLine, DeadJob, FactSelection, LocatedFact, MemoryStatus, PendingSession, ReviewDecision,
};
pub use tools::memory_tools;
pub use worker::{MemoryWorker, WorkerOptions, WorkerReport};
