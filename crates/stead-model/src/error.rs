//! What can go wrong between us and a model, by meaning rather than by status code.

use std::time::Duration;

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The conversation does not fit the model's window.
    #[error("the conversation is too long for the model: {0}")]
    ContextOverflow(String),
    /// Too many requests.
    #[error("rate limited by the provider: {message}")]
    RateLimited {
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// The provider is busy or broken for the moment.
    #[error("the provider is overloaded or failing (HTTP {status}): {message}")]
    Unavailable {
        /// The status code.
        status: u16,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
        /// Its words.
        message: String,
    },
    /// No key, a wrong key, or no right to this model.
    #[error("the provider refused the key: {0}")]
    Auth(String),
    /// No money left at the provider.
    #[error("the provider's quota or credit is used up: {0}")]
    Quota(String),
    /// No such model or endpoint.
    #[error("no such model or endpoint: {0}")]
    NotFound(String),
    /// The provider does not accept the request.
    #[error("the provider rejected the request: {0}")]
    BadRequest(String),
    /// Connection, first byte, next byte or whole answer took too long.
    #[error("timed out: {0}")]
    TimedOut(String),
    /// The connection could not be made or broke.
    #[error("network: {0}")]
    Network(String),
    /// The answer ended before its end.
    #[error("the answer was cut off before its end")]
    Cut,
    /// The answer is not what the wire's protocol says.
    #[error("the provider's answer could not be understood: {0}")]
    Protocol(String),
    /// The model or its settings are wrong on our side.
    #[error("{0}")]
    Config(String),
}

impl ModelError {
    /// Whether the same request may succeed later.
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

    /// How long the provider asked to wait.
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

    /// The same error with its words changed by `edit`, for example to remove a secret.
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
