//! Rendering a reply on a wire, whole or as events.
//!
//! Effects: test support.

mod chat;
mod gemini;
mod messages;
mod responses;

use super::script::{FakeAnswer, FakeAnswerBody, FakeReply, FakeReplyPiece};
use super::{FakeWire, ResponseMode};
use serde_json::{Value, json};
use std::fmt::Write;
use stead_core::{StopReason, Usage};

/// The properties of the request that an answer needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct RenderContext {
    /// A number that makes the ids of this answer unique on the server.
    pub(super) serial: usize,
    pub(super) request_bytes: usize,
}

/// Returns the body of a [`reply`](super::reply) on a wire. `serial` makes its ids unique; its
/// input tokens are estimated from `request_bytes` unless the reply sets them. Panics on any other
/// kind of answer.
pub fn render(
    answer: &FakeAnswer,
    wire: FakeWire,
    mode: ResponseMode,
    serial: usize,
    request_bytes: usize,
) -> String {
    match &answer.body {
        FakeAnswerBody::Reply(reply) => body(
            reply,
            wire,
            mode,
            RenderContext {
                serial,
                request_bytes,
            },
        ),
        other => panic!("only a reply() can be rendered, not {other:?}"),
    }
}

pub(super) fn body(
    reply: &FakeReply,
    wire: FakeWire,
    mode: ResponseMode,
    asked: RenderContext,
) -> String {
    let whole = CompleteReply::new(reply, asked);
    match (wire, mode) {
        (FakeWire::Chat, ResponseMode::Whole) => whole.chat().to_string(),
        (FakeWire::Chat, ResponseMode::Stream) => whole.chat_events(None),
        (FakeWire::Chat, ResponseMode::StreamWithUsage) => {
            whole.chat_events(Some(&whole.chat_usage()))
        }
        (FakeWire::Messages, ResponseMode::Whole) => whole.messages().to_string(),
        (FakeWire::Messages, ResponseMode::Stream | ResponseMode::StreamWithUsage) => {
            whole.messages_events()
        }
        (FakeWire::Responses, ResponseMode::Whole) => whole.responses().to_string(),
        (FakeWire::Responses, ResponseMode::Stream | ResponseMode::StreamWithUsage) => {
            whole.responses_events()
        }
        (FakeWire::Gemini, ResponseMode::Whole) => whole
            .gemini(whole.gemini_parts(), Some(whole.gemini_stop()))
            .to_string(),
        (FakeWire::Gemini, ResponseMode::Stream | ResponseMode::StreamWithUsage) => {
            whole.gemini_events()
        }
    }
}

const MODEL: &str = "fake";
const CREATED: u64 = 1_700_000_000;
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// A reply with defaults for everything that the script left open.
struct CompleteReply<'a> {
    id: String,
    pieces: Vec<(&'a FakeReplyPiece, String)>,
    usage: Usage,
    stop: StopReason,
}

impl<'a> CompleteReply<'a> {
    fn new(reply: &'a FakeReply, asked: RenderContext) -> Self {
        let id_of = |(k, piece): (usize, &'a FakeReplyPiece)| match piece {
            FakeReplyPiece::Call { id: Some(id), .. } => (piece, id.clone()),
            FakeReplyPiece::Call { id: None, .. } => {
                (piece, format!("call_{:04}_{k}", asked.serial))
            }
            FakeReplyPiece::Thinking(_) => (piece, format!("rs_{:04}_{k}", asked.serial)),
            FakeReplyPiece::Text(_) => (piece, format!("msg_{:04}_{k}", asked.serial)),
        };
        let pieces: Vec<_> = reply.pieces.iter().enumerate().map(id_of).collect();
        let has_calls = reply
            .pieces
            .iter()
            .any(|piece| matches!(piece, FakeReplyPiece::Call { .. }));
        let output_bytes: usize = reply.pieces.iter().map(FakeReplyPiece::len).sum();
        let estimate = || Usage {
            input_tokens: asked.request_bytes as u64 / 4,
            output_tokens: 1 + output_bytes as u64 / 4,
            ..Usage::default()
        };
        Self {
            id: format!("resp_{:04}", asked.serial),
            pieces,
            usage: reply.usage.unwrap_or_else(estimate),
            stop: reply.stop.clone().unwrap_or(if has_calls {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            }),
        }
    }

    fn texts(&self) -> Option<String> {
        self.joined(|piece| match piece {
            FakeReplyPiece::Text(text) => Some(text),
            FakeReplyPiece::Thinking(_) | FakeReplyPiece::Call { .. } => None,
        })
    }

    fn thoughts(&self) -> Option<String> {
        self.joined(|piece| match piece {
            FakeReplyPiece::Thinking(text) => Some(text),
            FakeReplyPiece::Text(_) | FakeReplyPiece::Call { .. } => None,
        })
    }

    fn joined(&self, pick: impl Fn(&FakeReplyPiece) -> Option<&String>) -> Option<String> {
        let found: Vec<&str> = self
            .pieces
            .iter()
            .filter_map(|(p, _)| pick(p))
            .map(String::as_str)
            .collect();
        (!found.is_empty()).then(|| found.concat())
    }
}

impl FakeReplyPiece {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.len(),
            Self::Call { name, args, .. } => name.len() + args.len(),
        }
    }
}

fn with(base: &Value, key: &str, value: Value) -> Value {
    let mut out = base.clone();
    out[key] = value;
    out
}

fn object(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| json!({}))
}

fn event(out: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        writeln!(out, "event: {name}").expect("a String takes everything");
    }
    write!(out, "data: {data}\n\n").expect("a String takes everything");
}

/// Splits a text into words with their spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// Splits a text into four pieces of about the same size, none of them empty.
fn quarters(text: &str) -> impl Iterator<Item = &str> {
    let cut = |k: usize| {
        (text.len() * k / 4..=text.len())
            .find(|at| text.is_char_boundary(*at))
            .expect("the end is one")
    };
    (0..4)
        .map(move |k| &text[cut(k)..cut(k + 1)])
        .filter(|part| !part.is_empty())
}
