//! Errors of sessions and stores as clients are told them.
//!
//! Effects: none.

use stead_agent::{AgentError, NoModelReason};
use stead_core::{ClientError, SessionId};
use stead_store::{InboxError, StoreError};

pub(crate) fn from_agent(error: &AgentError) -> ClientError {
    match error {
        AgentError::Store(StoreError::NotFound(session)) => ClientError::NoSession(session.clone()),
        AgentError::NoModel(NoModelReason::NotSet) => ClientError::NoModel,
        other => {
            let message = other.to_string();
            let hint = other.hint();
            match other.is_failure() {
                true => ClientError::Failed { message, hint },
                false => ClientError::Refused { message, hint },
            }
        }
    }
}

pub(crate) fn from_inbox(session: &SessionId, error: InboxError) -> ClientError {
    match error {
        InboxError::KeyConflict(key) => ClientError::KeyConflict(key),
        InboxError::Full(_) => ClientError::InboxFull(session.clone()),
        InboxError::TooLarge { .. } => ClientError::refused(error.to_string()),
        InboxError::Store(error) => from_store(error),
    }
}

pub(crate) fn from_store(error: StoreError) -> ClientError {
    match error {
        StoreError::NotFound(session) => ClientError::NoSession(session),
        other => ClientError::Failed {
            message: other.to_string(),
            hint: other.hint(),
        },
    }
}

/// Whether another process runs the session.
pub(crate) fn is_locked(error: &AgentError) -> bool {
    matches!(error, AgentError::Store(StoreError::Locked { .. }))
}

/// Whether an error may be gone later: the session is busy, or its store or model is unavailable.
pub(crate) fn is_passing(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::Store(
            StoreError::Locked { .. } | StoreError::Unavailable { .. } | StoreError::Fenced { .. }
        ) | AgentError::NoModel(_)
            | AgentError::SessionModel { .. }
    )
}
