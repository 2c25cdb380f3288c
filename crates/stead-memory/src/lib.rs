//! Long-term memory: facts with their sources in plain files, extracted from sessions and merged
//! over time.
//!
//! After a run, a job goes to a durable queue; the answer does not wait for it. A worker then
//! extracts facts from the new entries of the journal ([`Memory::flush`]) and adds them to
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
//! `flush`, `merge` and `consolidate`, `worker`.
//!
//! Effects: none.

mod ask;
mod consolidate;
mod context;
mod credentials;
mod days;
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
mod worker;

pub use consolidate::ConsolidationReport;
pub use context::{MemoryContext, MemoryModel, MemoryQuestion};
pub use error::MemoryError;
pub use fact::{Fact, FactSource, MAX_FACT_CHARS, without_sources};
pub use fact_document::FactDocument;
pub use fact_files::FactFiles;
pub use flush::FlushReport;
pub use forget::ForgetResult;
pub use memory::Memory;
pub use merge_record::{MergeDiff, MergeRecord};

pub use review::{BlameLine, DeadJob, FactSelection, LocatedFact, MemoryStatus, ReviewDecision};
pub use tools::memory_tools;
pub use worker::{MemoryWorker, WorkerOptions, WorkerReport};
