//! Durable state of sessions: their journals, who may write them, and what is derived from them.
//!
//! [`Journals`] is the contract; [`FileJournals`] keeps each session as a file of JSON lines that
//! `cat` and `grep` can read. [`Disk`] is the one door to changing the local disk, so that tests can
//! fail or kill at any operation.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use stead_core::*;
//! use stead_store::{FileJournals, Journals, OsDisk};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let journals = FileJournals::new(folder, AgentId::new("main").unwrap(), Arc::new(OsDisk), Redactor::default());
//! let id = SessionId::new("first").unwrap();
//! let mut opened = journals.create(&id, None).await.unwrap();
//! opened.writer.append(vec![Entry::User(UserInput::text(RunId::fresh(), "hello"))]).await.unwrap();
//! drop(opened);
//! assert_eq!(journals.read(&id).await.unwrap().len(), 2);
//! # });
//! ```

mod disk;
mod error;
mod files;
mod group;
mod index;
mod journal;
mod journals;
mod lock;

#[cfg(test)]
mod tests;

pub use disk::{Disk, OsDisk, open_dir};
pub use error::StoreError;
pub use files::FileJournals;
pub use journals::{JournalWriter, Journals, Opened, Position, Summary, Torn, Wait};
pub use lock::Holder;
