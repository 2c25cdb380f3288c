//! What can go wrong with memory.

use stead_core::BudgetExhausted;
use stead_model::ModelError;
use stead_store::StoreError;
use stead_vfs::{VPath, VfsError};

/// Why something could not be remembered, or done to what is remembered.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The layout has no memory.
    #[error("this workspace has no memory: its layout ({0}) has no place for one")]
    NoMemory(String),
    /// Nobody can be asked.
    #[error(
        "there is no model to extract and merge facts: set memory.model in agent.yaml \
         (scripted: and replay: models are not asked)"
    )]
    NoModel,
    /// The queue, a mark or a journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A memory file.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Too little of the day's budget is left.
    #[error(transparent)]
    Budget(#[from] BudgetExhausted),
    /// The model answered something else than it was asked for.
    #[error("the model's answer cannot be used: {0}")]
    Answer(String),
    /// The model took too long.
    #[error("the model did not answer within {0} seconds")]
    Slow(u64),
    /// A memory file is not text.
    #[error("{path}:{line}: this is not UTF-8 text; repair the file, nothing was changed")]
    NotText {
        /// The file.
        path: VPath,
        /// The line, from 1.
        line: usize,
    },
    /// A file was changed again and again while it was to be written.
    #[error("{0} is being changed by others all the time; it is tried again later")]
    Contended(VPath),
    /// There is no such fact.
    #[error("there is no fact {0}; `stead memory list` and `stead memory review` show their ids")]
    NoSuchFact(String),
    /// What is kept about the progress of a job is not what was written there.
    #[error("what is kept as {key} cannot be read: {cause}")]
    Unreadable {
        /// The document.
        key: String,
        /// Why.
        cause: String,
    },
}
