//! Errors of models over HTTP, as [`ModelError`]s.
//!
//! Effects: none.

use super::MAX_ANSWER_BYTES;
use crate::ModelError;

pub(super) fn config_error(name: &str, problem: &str) -> ModelError {
    ModelError::Config(format!("{name}: {problem}"))
}

pub(super) fn answer_too_long() -> ModelError {
    ModelError::Protocol(format!("the answer has more than {MAX_ANSWER_BYTES} bytes"))
}

/// Returns the error of a request that failed on the network.
pub(crate) fn network_error(error: reqwest::Error) -> ModelError {
    let kind = if error.is_timeout() {
        ModelError::TimedOut
    } else {
        ModelError::Network
    };
    // The URL may hold a key.
    kind(error_chain(&error.without_url()))
}

/// Formats an error with its causes: the outermost alone ("error sending request") explains
/// nothing.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        next = cause.source();
    }
    words
}
