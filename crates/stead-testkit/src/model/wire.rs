//! The four wires: their paths, and the format of errors.
//!
//! Effects: test support.

use super::script::FakeFailure;
use serde_json::{Value, json};

/// A provider protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeWire {
    /// OpenAI Chat Completions and everything compatible.
    Chat,
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// Gemini `generateContent`.
    Gemini,
}

/// Whether an answer is sent whole or as events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// One JSON document.
    Whole,
    /// Events.
    Stream,
    /// Events, with the usage chunk that Chat Completions sends only on request.
    StreamWithUsage,
}

impl FakeWire {
    /// All wires.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Messages, Self::Responses, Self::Gemini];

    /// Returns the wire of a request target (path and query).
    pub fn of(target: &str) -> Option<Self> {
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/v1/chat/completions" | "/chat/completions" => Some(Self::Chat),
            "/v1/messages" | "/messages" => Some(Self::Messages),
            "/v1/responses" | "/responses" => Some(Self::Responses),
            _ => {
                let (model, verb) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
                let known = matches!(verb, "generateContent" | "streamGenerateContent");
                (known && !model.is_empty()).then_some(Self::Gemini)
            }
        }
    }

    /// Returns whether a request asks for a stream.
    pub(super) fn mode(self, target: &str, body: &Value) -> ResponseMode {
        match self {
            Self::Gemini if target.contains(":streamGenerateContent") => ResponseMode::Stream,
            Self::Gemini => ResponseMode::Whole,
            Self::Chat | Self::Messages | Self::Responses if body["stream"] != json!(true) => {
                ResponseMode::Whole
            }
            Self::Chat if body["stream_options"]["include_usage"] == json!(true) => {
                ResponseMode::StreamWithUsage
            }
            Self::Chat | Self::Messages | Self::Responses => ResponseMode::Stream,
        }
    }

    /// Returns an error body in this provider's format.
    pub(super) fn error(self, failure: &FakeFailure) -> String {
        let FakeFailure {
            status,
            message,
            kind,
            ..
        } = failure;
        let kind = kind.as_deref();
        match self {
            Self::Chat | Self::Responses => {
                let class = match status {
                    400 | 404 | 413 | 422 => "invalid_request_error",
                    401 | 403 => "authentication_error",
                    429 => "rate_limit_error",
                    _ => "server_error",
                };
                json!({"error": {"message": message, "type": class, "param": null, "code": kind}})
            }
            Self::Messages => {
                let class = kind.unwrap_or(match status {
                    400 => "invalid_request_error",
                    401 => "authentication_error",
                    403 => "permission_error",
                    404 => "not_found_error",
                    413 => "request_too_large",
                    429 => "rate_limit_error",
                    529 => "overloaded_error",
                    _ => "api_error",
                });
                json!({"type": "error", "error": {"type": class, "message": message}})
            }
            Self::Gemini => {
                let class = kind.unwrap_or(match status {
                    400 => "INVALID_ARGUMENT",
                    401 => "UNAUTHENTICATED",
                    403 => "PERMISSION_DENIED",
                    404 => "NOT_FOUND",
                    429 => "RESOURCE_EXHAUSTED",
                    503 => "UNAVAILABLE",
                    _ => "INTERNAL",
                });
                json!({"error": {"code": status, "message": message, "status": class}})
            }
        }
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_says_which_wire_is_spoken() {
        let cases = [
            ("/v1/chat/completions", Some(FakeWire::Chat)),
            ("/chat/completions?x=1", Some(FakeWire::Chat)),
            ("/v1/messages", Some(FakeWire::Messages)),
            ("/v1/messages/count_tokens", None),
            ("/responses", Some(FakeWire::Responses)),
            (
                "/v1beta/models/gemini-x:generateContent",
                Some(FakeWire::Gemini),
            ),
            (
                "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
                Some(FakeWire::Gemini),
            ),
            ("/v1beta/models/gemini-x:countTokens", None),
            ("/v1beta/models/:generateContent", None),
            ("/", None),
        ];
        for (target, expected) in cases {
            assert_eq!(FakeWire::of(target), expected, "{target}");
        }
    }
}
