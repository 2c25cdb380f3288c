//! The types of a session's inbox: rows, outcomes and errors.
//!
//! Effects: none.

use super::MAX_WAITING_INPUTS;
use crate::StoreError;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stead_core::{InputId, InputStatus, SessionId};

/// The result of an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// The input waits now.
    New(InputId),
    /// An input with the same key and body was inserted before.
    Existing {
        /// The earlier input.
        id: InputId,
        /// Its state.
        status: InputStatus,
    },
}

/// The outcome of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InputOutcome {
    /// The input is in the journal.
    Recorded {
        /// The number of its entry.
        seq: u64,
    },
    /// The command was carried out, and the journal says nothing of it.
    Done,
    /// The input was refused. At most 1,000 bytes of the reason are remembered.
    Refused {
        /// The reason.
        reason: String,
    },
}

/// A waiting row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxRow {
    /// The input.
    pub id: InputId,
    /// The time of the insertion, by the clock of the process that inserted it.
    pub at: Timestamp,
    /// The command.
    pub body: Bytes,
}

/// A failed operation of an inbox. Nothing was inserted or settled.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// The key was used for another input.
    #[error("the key {0:?} was used for a different input; use a new key for a new input")]
    KeyConflict(String),
    /// Too many rows wait.
    #[error(
        "{MAX_WAITING_INPUTS} inputs of session {0} wait already; send more when the session has taken some"
    )]
    Full(SessionId),
    /// The key or the body is too long.
    #[error("the {part} of an input may have at most {max} bytes, this one has {bytes}")]
    TooLarge {
        /// What is too long.
        part: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The store failed. An insertion may have been made: with a key it can be repeated.
    #[error(transparent)]
    Store(#[from] StoreError),
}
