//! The error of a client: why a command or a subscription failed.
//!
//! Effects: none.

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
    /// No model is set.
    #[error("no model is set")]
    NoModel,
    /// The command is wrong, or not possible now. Nothing was recorded.
    #[error("{message}")]
    Refused {
        /// The reason.
        message: String,
        /// What a person can do about it.
        hint: Option<Hint>,
    },
    /// The session, its store or its agent failed.
    #[error("{message}")]
    Failed {
        /// The reason.
        message: String,
        /// What a person can do about it.
        hint: Option<Hint>,
    },
}

impl ClientError {
    /// Returns a failure without a hint.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            hint: None,
        }
    }

    /// Returns a refusal without a hint.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused {
            message: message.into(),
            hint: None,
        }
    }

    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoSession(_) => Some(Hint::ListSessions),
            Self::Refused { hint, .. } | Self::Failed { hint, .. } => hint.clone(),
            Self::KeyConflict(_) | Self::InboxFull(_) | Self::NoModel => None,
        }
    }
}
