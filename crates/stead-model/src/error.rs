//! Errors of model requests, by meaning rather than by status code.
//!
//! Effects: none.

use std::time::Duration;

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The conversation does not fit the model's context window.
    #[error("the conversation is too long for the model: {0}")]
    ContextOverflow(String),
    /// Too many requests.
    #[error("rate limited by the provider: {message}")]
    RateLimited {
        /// The delay that the provider asks for.
        retry_after: Option<Duration>,
        /// The provider's message.
        message: String,
    },
    /// The provider is temporarily unavailable.
    #[error("the provider is overloaded or failing (HTTP {status}): {message}")]
    Unavailable {
        /// The status code.
        status: u16,
        /// The delay that the provider asks for.
        retry_after: Option<Duration>,
        /// The provider's message.
        message: String,
    },
    /// The key is missing or wrong, or has no access to this model.
    #[error("the provider refused the key: {0}")]
    Auth(String),
    /// The account has no credit left.
    #[error("the provider's quota or credit is used up: {0}")]
    Quota(String),
    /// The model or endpoint does not exist.
    #[error("no such model or endpoint: {0}")]
    NotFound(String),
    /// The provider rejects the request.
    #[error("the provider rejected the request: {0}")]
    BadRequest(String),
    /// Connecting, waiting for data, or the whole answer took too long.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// The connection could not be established or broke.
    #[error("network: {0}")]
    Network(String),
    /// The answer broke off before its end.
    #[error("the answer was cut off before its end")]
    Cut,
    /// The answer violates the protocol.
    #[error("the provider's answer could not be understood: {0}")]
    Protocol(String),
    /// The settings of the model are wrong.
    #[error("{0}")]
    Config(String),
}

impl ModelError {
    /// Returns whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::TimedOut(_)
            | Self::Network(_)
            | Self::Cut
            | Self::Protocol(_) => true,
            Self::ContextOverflow(_)
            | Self::Auth(_)
            | Self::Quota(_)
            | Self::NotFound(_)
            | Self::BadRequest(_)
            | Self::Config(_) => false,
        }
    }

    /// Returns the delay that the provider asked for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                *retry_after
            }
            Self::ContextOverflow(_)
            | Self::Auth(_)
            | Self::Quota(_)
            | Self::NotFound(_)
            | Self::BadRequest(_)
            | Self::TimedOut(_)
            | Self::Network(_)
            | Self::Cut
            | Self::Protocol(_)
            | Self::Config(_) => None,
        }
    }

    /// Returns the error with its message changed by `edit`, for example to redact a secret.
    pub(crate) fn map_message(self, edit: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::ContextOverflow(words) => Self::ContextOverflow(edit(words)),
            Self::RateLimited {
                retry_after,
                message,
            } => Self::RateLimited {
                retry_after,
                message: edit(message),
            },
            Self::Unavailable {
                status,
                retry_after,
                message,
            } => Self::Unavailable {
                status,
                retry_after,
                message: edit(message),
            },
            Self::Auth(words) => Self::Auth(edit(words)),
            Self::Quota(words) => Self::Quota(edit(words)),
            Self::NotFound(words) => Self::NotFound(edit(words)),
            Self::BadRequest(words) => Self::BadRequest(edit(words)),
            Self::TimedOut(words) => Self::TimedOut(edit(words)),
            Self::Network(words) => Self::Network(edit(words)),
            Self::Cut => Self::Cut,
            Self::Protocol(words) => Self::Protocol(edit(words)),
            Self::Config(words) => Self::Config(edit(words)),
        }
    }
}
