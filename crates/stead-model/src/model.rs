//! The contract of a model: the trait `Model`, what it is asked, and what it answers.
//!
//! Effects: the model.

use crate::{Abilities, Caching, ModelError, ModelFacts, ReportedLimits};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use stead_core::{Block, Message, StopReason, ToolSpec, Usage};

/// A language model.
pub trait Model: Debug + Send + Sync {
    /// Returns what is known about the model without asking its endpoint.
    fn facts(&self) -> &ModelFacts;

    /// Returns the name of the model as `provider:model`.
    fn name(&self) -> &str {
        &self.facts().name
    }

    /// Asks the endpoint for the limits of the model. This is a request of its own with its own
    /// deadline; a failure gives no limits.
    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        Box::pin(std::future::ready(ReportedLimits::default()))
    }

    /// Sends a request and streams the answer. The stream ends with exactly one [`Delta::Done`] or
    /// with an error; an answer that breaks off is an error. Dropping the stream cancels the
    /// request.
    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>>;

    /// Sends a request and waits for the whole answer.
    fn complete<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let mut stream = self.stream(request);
            while let Some(delta) = stream.next().await {
                if let Delta::Done(reply) = delta? {
                    return Ok(*reply);
                }
            }
            Err(ModelError::Cut)
        })
    }
}

/// A piece of an answer as it arrives.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// Text of the answer.
    Text(String),
    /// Text of the model's thinking.
    Thinking(String),
    /// A tool call begins. `index` counts the answer's calls from 0.
    CallStarted {
        /// The index of the call.
        index: u32,
        /// The name of the tool.
        name: String,
    },
    /// More of a call's arguments, as JSON text.
    CallArgs {
        /// The index of the call.
        index: u32,
        /// The piece of text.
        json: String,
    },
    /// The request failed and is about to be sent again: everything before this is void.
    Retry {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// The delay before it.
        wait_ms: u64,
        /// The reason of the failure.
        reason: String,
    },
    /// The tokens that are counted so far, where a provider says so before the end of the answer.
    Usage(Usage),
    /// The whole answer. Only this may be acted on.
    Done(Box<Reply>),
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Thinking, text and calls in the model's order.
    pub content: Vec<Block>,
    /// The token usage.
    pub usage: Usage,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The model that answered, as `provider:model`; differs from the requested one after a
    /// fallback.
    pub model: String,
}

impl Reply {
    /// Returns the deltas that a stream of this answer would have had.
    pub(crate) fn deltas(&self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let mut calls = 0;
        for block in &self.content {
            match block {
                Block::Text { text } => deltas.push(Delta::Text(text.clone())),
                Block::Thinking(thinking) if thinking.text.is_empty() => {}
                Block::Thinking(thinking) => deltas.push(Delta::Thinking(thinking.text.clone())),
                Block::ToolCall(call) => {
                    deltas.push(Delta::CallStarted {
                        index: calls,
                        name: call.name.clone(),
                    });
                    deltas.push(Delta::CallArgs {
                        index: calls,
                        json: call.args.to_string(),
                    });
                    calls += 1;
                }
                Block::Media(_) => {}
            }
        }
        deltas
    }
}

/// A request to a model. The same request always gives the same bytes on a wire.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The system prompt, stable parts first.
    pub system: Arc<[SystemPart]>,
    /// The tools, in a stable order.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// Settings of this request.
    pub params: Params,
    /// The encoded messages, which a wire reuses between the requests of one run.
    pub encoded: Arc<Encoded>,
    /// The requests for fallback models, by name, if they differ from this one.
    pub fallback_requests: Vec<(String, Request)>,
}

impl Request {
    /// Returns the request for the model of this name.
    pub fn for_model(&self, model: &str) -> &Self {
        self.fallback_requests
            .iter()
            .find(|(name, _)| name == model)
            .map_or(self, |(_, request)| request)
    }
}

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPart {
    /// The text.
    pub text: String,
    /// Whether it stays the same in later requests. A cache breakpoint goes after the last stable
    /// part.
    pub stable: bool,
}

/// Settings of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params {
    /// The maximum length of the answer in tokens.
    pub max_output_tokens: Option<u32>,
    /// What the context window has left for an answer, if that is known. Wires that must name a
    /// limit do not go beyond it.
    pub answer_room: Option<u32>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The number of tokens for thinking; `None` for the model's default.
    pub thinking_tokens: Option<u32>,
    /// How long the provider keeps the beginning of the request.
    pub caching: Caching,
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
    /// The JSON schema that the answer must conform to. Wires with a mode for that use it; others
    /// leave it to the prompt.
    pub answer_schema: Option<Arc<Value>>,
}

/// Whether tools may be called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool may be called. Their specs are still sent, so that the cached prefix stays valid.
    None,
}

/// The encoded messages of the last request, so that the next one encodes only new messages: the
/// time of a step must not grow with the history. Wires use it through `wire::encode`.
#[derive(Debug, Default)]
pub struct Encoded(pub(crate) Mutex<EncodedPrefix>);

#[derive(Debug, Default)]
pub(crate) struct EncodedPrefix {
    /// The dialect of the encoding.
    pub(crate) dialect: &'static str,
    /// The abilities that it was encoded for.
    pub(crate) abilities: Option<Abilities>,
    /// The bytes before the messages.
    pub(crate) head: Option<EncodedHead>,
    /// The encoded messages, each with the offset where its bytes end.
    pub(crate) messages: Vec<(Arc<Message>, usize)>,
    pub(crate) bytes: Vec<u8>,
}

/// The bytes before the messages, with the values they were made from. The bytes are shared by all
/// requests that begin with them.
#[derive(Debug, Clone)]
pub(crate) struct EncodedHead {
    pub(crate) model: String,
    /// Whether no message follows, so that no comma is needed.
    pub(crate) has_no_messages: bool,
    pub(crate) system: Arc<[SystemPart]>,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) params: Params,
    pub(crate) mode: crate::wire::WireMode,
    pub(crate) bytes: Arc<[u8]>,
}

/// The newest head of a model. Most of its sessions have the same prompt and tools, and share it.
#[derive(Debug, Default)]
pub(crate) struct NewestHead(pub(crate) Mutex<Option<EncodedHead>>);
