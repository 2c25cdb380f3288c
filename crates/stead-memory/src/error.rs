//! Errors of long-term memory.
//!
//! Effects: none.

use stead_core::BudgetExhausted;
use stead_core::Hint;
use stead_model::ModelError;
use stead_store::StoreError;
use stead_vfs::{VPath, VfsError};

/// Why an operation on memory failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The layout has no memory.
    #[error("this workspace has no memory: its layout ({0}) has no place for one")]
    NoMemory(String),
    /// There is no model to ask.
    #[error(
        "there is no model to extract and merge facts: set memory.model in agent.yaml \
         (scripted: and replay: models are not asked)"
    )]
    NoModel,
    /// The queue, a document or a journal cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A memory file cannot be read or written.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Too little of the budget is left.
    #[error(transparent)]
    Budget(#[from] BudgetExhausted),
    /// The model's answer is not what was asked for.
    #[error("the model's answer cannot be used: {0}")]
    Answer(String),
    /// The model did not answer in time.
    #[error("the model did not answer within {seconds} seconds")]
    TimedOut {
        /// The time limit.
        seconds: u64,
    },
    /// A memory file is not text.
    #[error("{path}:{line}: this is not UTF-8 text; repair the file, nothing was changed")]
    NotText {
        /// The file.
        path: VPath,
        /// The line, from 1.
        line: usize,
    },
    /// Others changed a file again and again while it was to be written.
    #[error("{0} is being changed by others all the time; it is tried again later")]
    Contended(VPath),
    /// There is no such fact.
    #[error("there is no fact {0}")]
    NoSuchFact(String),
    /// A document or a job cannot be parsed.
    #[error("the memory document or job {key} cannot be parsed: {cause}")]
    Unreadable {
        /// The key of the document.
        key: String,
        /// The reason.
        cause: String,
    },
}

impl MemoryError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSuchFact(_) => Some(Hint::ListFacts),
            Self::Store(error) => error.hint(),
            Self::Budget(_) => Some(Hint::RaiseBudget),
            Self::NoMemory(_)
            | Self::NoModel
            | Self::Files(_)
            | Self::Model(_)
            | Self::Answer(_)
            | Self::TimedOut { .. }
            | Self::NotText { .. }
            | Self::Contended(_)
            | Self::Unreadable { .. } => None,
        }
    }
}
