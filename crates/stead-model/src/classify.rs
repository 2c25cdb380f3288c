//! The meaning of provider errors: one table of phrases, one pure function.
//!
//! Effects: none.

use crate::ModelError;
use serde_json::Value;
use std::time::Duration;

/// The maximum length of a provider's text that is kept in an error.
const MAX_MESSAGE_CHARS: usize = 2000;

/// The status for errors that arrive inside a response which began with HTTP 200.
pub(crate) const IN_STREAM_STATUS: u16 = 200;

/// Phrases for "the prompt does not fit", in lower case.
const OVERFLOW: &[&str] = &[
    // Anthropic
    "prompt is too long",
    "exceed context limit",
    "request_too_large",
    // OpenAI, Azure, Groq, DeepSeek, vLLM, OpenRouter
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "reduce the length of the messages",
    "longer than the maximum model length",
    "context_window_exceeded",
    // Gemini
    "exceeds the maximum number of tokens",
    // llama.cpp, LM Studio, Ollama
    "exceed_context_size_error",
    "exceeds the available context size",
    "exceeds the context length",
    "exceeds maximum context",
    "greater than the context length",
    "context the overflows",
    // xAI, Mistral, Moonshot, Bedrock, Together
    "maximum prompt length",
    "too large for model with",
    "exceeded model token limit",
    "input is too long for requested model",
    "tokens + `max_new_tokens` must be",
];

/// Phrases for "no credit left".
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit",
    "billing_not_active",
    "credit balance is too low",
    "insufficient balance",
    "insufficient credits",
    "requires more credits",
];

/// Phrases for "wrong key" that come with other codes than 401 and 403.
const AUTH: &[&str] = &[
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "api key not valid",
    "api_key_invalid",
    "permission_denied",
    "unauthenticated",
];

/// Phrases for "no such model" that come with other codes than 404.
const NOT_FOUND: &[&str] = &[
    "model_not_found",
    "not_found_error",
    "is not a valid model id",
];

/// Phrases for "too many requests".
const RATE: &[&str] = &["rate_limit", "resource_exhausted", "too_many_requests"];

/// Phrases for "try again later".
const BUSY: &[&str] = &[
    "overloaded",
    "api_error",
    "server_error",
    "internal_error",
    "unavailable",
    "timeout_error",
];

/// Returns the meaning of an error response: its status, the delay from its headers, and its body.
/// With [`IN_STREAM_STATUS`] the body is an error object inside a stream.
pub(crate) fn classify(status: u16, retry_after: Option<Duration>, body: &[u8]) -> ModelError {
    let said = ErrorBody::parse(body);
    let status = match (status, said.status) {
        (IN_STREAM_STATUS, Some(inner)) => inner,
        (outer, _) => outer,
    };
    let retry_after = retry_after.or(said.retry_after);
    let message = said.message(status);
    let any = |wordings: &[&str]| {
        wordings
            .iter()
            .any(|wording| said.search_text.contains(wording))
    };

    // "Request too large" per minute is a 429 and not an overflow: there only the error code
    // counts.
    let overflows = any(OVERFLOW) || mentions_overflow(&said.search_text);
    if overflows && (status != 429 || said.search_text.contains("context_length_exceeded"))
        || status == 413
    {
        return ModelError::ContextOverflow(message);
    }
    if any(QUOTA) || status == 402 {
        return ModelError::Quota(message);
    }
    match status {
        401 | 403 => ModelError::Auth(message),
        404 => ModelError::NotFound(message),
        408 => ModelError::TimedOut(message),
        429 => ModelError::RateLimited {
            retry_after,
            message,
        },
        409 | 425 | 500.. => ModelError::Unavailable {
            status,
            retry_after,
            message,
        },
        _ if any(AUTH) => ModelError::Auth(message),
        _ if any(NOT_FOUND) => ModelError::NotFound(message),
        _ if any(RATE) => ModelError::RateLimited {
            retry_after,
            message,
        },
        // A refusal stays one, whatever else it says: only errors in a stream have no status.
        IN_STREAM_STATUS if any(BUSY) => ModelError::Unavailable {
            status,
            retry_after,
            message,
        },
        300..=399 => ModelError::BadRequest(format!(
            "the endpoint redirects; check the base URL ({message})"
        )),
        _ => ModelError::BadRequest(message),
    }
}

/// Returns whether a text that is in no table says that the prompt is too long: it names the
/// prompt, and an excess. A limit of the answer alone is another matter, because a shorter prompt
/// does not help there.
fn mentions_overflow(words: &str) -> bool {
    const ABOUT: [&str; 7] = [
        "context length",
        "context window",
        "context size",
        "context limit",
        "prompt",
        "input token",
        "input length",
    ];
    const TOO_MUCH: [&str; 8] = [
        "exceed",
        "too long",
        "too large",
        "longer than",
        "too many tokens",
        "over the limit",
        "overflow",
        "beyond",
    ];
    const ANSWER: [&str; 3] = ["max_tokens", "max_output_tokens", "max_completion_tokens"];
    let has = |list: &[&str]| list.iter().any(|wording| words.contains(wording));
    (words.contains("token") || words.contains("context"))
        && has(&ABOUT)
        && has(&TOO_MUCH)
        && !has(&ANSWER)
}

/// Returns the delay that the headers ask for: `retry-after-ms`, or `retry-after` in seconds or as
/// a date.
pub(crate) fn retry_after<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: jiff::Timestamp,
) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    if let Some(millis) = header("retry-after-ms").and_then(number) {
        return seconds(millis / 1000.0);
    }
    let text = header("retry-after")?;
    if let Some(given) = number(text) {
        return seconds(given);
    }
    let at = jiff::fmt::rfc2822::parse(text.trim()).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

/// The content of an error body, in any of its many shapes.
struct ErrorBody {
    text: String,
    /// Type, code, status and message in lower case, to search for phrases in.
    search_text: String,
    /// The status that the body itself names.
    status: Option<u16>,
    retry_after: Option<Duration>,
}

impl ErrorBody {
    fn parse(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let text = String::from_utf8_lossy(body).trim().to_owned();
            return Self {
                search_text: text.to_lowercase(),
                text,
                status: None,
                retry_after: None,
            };
        };
        // Gemini wraps the error in an array when it streams.
        let outer = value.get(0).unwrap_or(&value);
        let inner = match outer.get("error") {
            Some(error) if !error.is_null() => error,
            _ => outer,
        };
        let text = ["message", "detail", "msg"]
            .iter()
            .find_map(|key| inner.get(key))
            .unwrap_or(inner);
        let text = text
            .as_str()
            .map_or_else(|| text.to_string(), str::to_owned);
        let fields = ["type", "code", "status"]
            .iter()
            .filter_map(|key| inner.get(key));
        // OpenRouter reports the upstream provider's own error separately.
        let upstream = inner
            .pointer("/metadata/raw")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let names: Vec<String> = fields
            .map(|field| field.to_string().replace('"', ""))
            .collect();
        let words = format!("{} {text} {upstream}", names.join(" ")).to_lowercase();
        let text = if upstream.is_empty() {
            text
        } else {
            format!("{text}: {upstream}")
        };
        let status = ["code", "status"]
            .iter()
            .filter_map(|key| inner.get(key)?.as_u64())
            .find(|n| *n >= 400);
        let status = status
            .and_then(|n| u16::try_from(n).ok())
            .filter(|n| *n < 600);
        let delay = inner
            .get("details")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let delay = delay
            .filter_map(|detail| detail.get("retryDelay")?.as_str()?.strip_suffix('s'))
            .next();
        let retry_after = delay
            .and_then(|s| s.parse().ok())
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        Self {
            text,
            search_text: words,
            status,
            retry_after,
        }
    }

    fn message(&self, status: u16) -> String {
        if self.text.is_empty() {
            return format!("HTTP {status} with no explanation");
        }
        match self.text.char_indices().nth(MAX_MESSAGE_CHARS) {
            Some((end, _)) => format!("{}…", &self.text[..end]),
            None => self.text.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
