//! Why a command or a subscription failed.

use crate::{Hint, SessionId};

/// A failed request of a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The key was used for another command.
    #[error("the key {0:?} was used for a different command; use a new key for a new command")]
    KeyConflict(String),
    /// Too many commands wait.
    #[error("too many commands of session {0} wait; send more when it has taken some")]
    InboxFull(SessionId),
    /// There is no such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// The command is not possible.
    #[error("{message}")]
    Refused {
        /// The reason.
        message: String,
        /// What a person can do about it.
        hint: Option<Hint>,
    },
    /// The session, its store or its agent failed.
    #[error("{0}")]
    Failed(String),
}
