//! Decoding answers of Chat Completions, streamed or whole, from strict and from lenient servers.
//!
//! Effects: none.

use super::ORIGIN;
use crate::classify::{IN_STREAM_STATUS, classify};
use crate::wire::{Decoder, call};
use crate::{Delta, ModelError, Reply};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stead_core::{Block, StopReason, Thinking, Usage};

/// Collects one answer. It is complete once a finish reason was seen and the stream has ended, by
/// `[DONE]` or by itself.
#[derive(Debug, Default)]
pub(super) struct OpenAiDecoder {
    thinking: String,
    text: String,
    refused: bool,
    calls: Vec<OpenChatCall>,
    usage: Option<ChatUsage>,
    finish: Option<String>,
    done: bool,
}

/// A call in progress.
#[derive(Debug, Default)]
struct OpenChatCall {
    /// The server's index for it, if it sends one.
    index: Option<u32>,
    id: String,
    name: String,
    json: String,
}

impl Decoder for OpenAiDecoder {
    fn push(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done || data.trim().is_empty() {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            return self.finish(out);
        }
        let chunk: ChatChunk =
            serde_json::from_str(data).map_err(|error| ModelError::Protocol(error.to_string()))?;
        self.push_chunk(chunk, data.as_bytes(), out)
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        if self.finish.is_none() {
            return Err(ModelError::Cut);
        }
        out.push(Delta::Done(Box::new(std::mem::take(self).reply())));
        self.done = true;
        Ok(())
    }
}

/// Parses a whole answer, as a stream of one chunk.
pub(super) fn parse(body: &[u8]) -> Result<Reply, ModelError> {
    let chunk: ChatChunk =
        serde_json::from_slice(body).map_err(|error| ModelError::Protocol(error.to_string()))?;
    let mut decoder = OpenAiDecoder::default();
    let has_answer = chunk
        .choices
        .as_ref()
        .is_some_and(|choices| !choices.is_empty());
    decoder.push_chunk(chunk, body, &mut Vec::new())?;
    if !has_answer {
        return Err(ModelError::Protocol("the answer has no choices".into()));
    }
    Ok(decoder.reply())
}

impl OpenAiDecoder {
    fn push_chunk(
        &mut self,
        chunk: ChatChunk,
        raw: &[u8],
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        if chunk.error.is_some_and(|error| !error.is_null()) {
            return Err(classify(IN_STREAM_STATUS, None, raw));
        }
        self.usage = chunk.usage.or(self.usage.take());
        // More than one choice is never requested. A server that sends others anyway, in the same
        // chunk or in chunks of their own, is understood by the first.
        let mut choices = chunk.choices.unwrap_or_default().into_iter();
        let Some(choice) = choices.find(|choice| choice.index.unwrap_or_default() == 0) else {
            return Ok(());
        };
        if let Some(said) = choice.said {
            self.push_message(said, out)?;
        }
        match choice.finish_reason {
            Some(reason) if matches!(reason.as_str(), "error" | "insufficient_system_resource") => {
                Err(ModelError::Unavailable {
                    status: IN_STREAM_STATUS,
                    retry_after: None,
                    message: format!("the answer ended with `{reason}`"),
                })
            }
            Some(reason) if !reason.is_empty() => {
                self.finish = Some(reason);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn push_message(
        &mut self,
        said: ChatReplyMessage,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let mut thinking = said
            .reasoning_content
            .or(said.reasoning)
            .unwrap_or_default();
        let mut text = String::new();
        match said.content {
            Some(ChatReplyContent::Text(plain)) => text = plain,
            Some(ChatReplyContent::Parts(parts)) => parts
                .iter()
                .for_each(|part| part.split(&mut thinking, &mut text)),
            None => {}
        }
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            text.push_str(&refusal);
        }
        if !thinking.is_empty() {
            self.thinking.push_str(&thinking);
            out.push(Delta::Thinking(thinking));
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            out.push(Delta::Text(text));
        }
        let legacy = said.function_call.map(|function| ChatCallDelta {
            index: Some(0),
            id: None,
            function: Some(function),
        });
        for piece in said
            .tool_calls
            .unwrap_or_default()
            .into_iter()
            .chain(legacy)
        {
            self.push_call(piece, out)?;
        }
        Ok(())
    }

    fn push_call(&mut self, piece: ChatCallDelta, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let id = piece.id.unwrap_or_default();
        let function = piece.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let at = match self.find_open_call(piece.index, &id, &name) {
            Some(at) => at,
            None => {
                self.calls.push(OpenChatCall {
                    index: piece.index,
                    ..OpenChatCall::default()
                });
                self.calls.len() - 1
            }
        };
        let index = u32::try_from(at).map_err(|_| ModelError::Protocol("too many calls".into()))?;
        let open = &mut self.calls[at];
        if open.id.is_empty() {
            open.id = id;
        }
        if open.name.is_empty() && !name.is_empty() {
            open.name.clone_from(&name);
            out.push(Delta::CallStarted { index, name });
        }
        let json = function
            .arguments
            .as_deref()
            .map(arguments_text)
            .transpose()?
            .unwrap_or_default();
        if !json.is_empty() {
            open.json.push_str(&json);
            out.push(Delta::CallArgs { index, json });
        }
        Ok(())
    }

    /// Returns the open call that a piece belongs to, or `None` if it begins a new one. Some
    /// servers leave out the index, the id or both, and some give every call of an answer the index
    /// 0.
    fn find_open_call(&self, index: Option<u32>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|open| open.index == index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let open = &self.calls[at];
        let begins = match (id.is_empty(), name.is_empty()) {
            (false, _) if !open.id.is_empty() => id != open.id,
            (_, false) => index.is_none() && !open.name.is_empty(),
            (_, true) => false,
        };
        (!begins).then_some(at)
    }

    fn reply(self) -> Reply {
        let stop = match self.finish.as_deref() {
            _ if self.refused => StopReason::Refusal,
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter" | "sensitive") => StopReason::ContentFilter,
            // Several servers send `stop` after calls.
            Some("tool_calls" | "function_call") => StopReason::ToolUse,
            None | Some("stop" | "eos") if !self.calls.is_empty() => StopReason::ToolUse,
            None | Some("stop" | "eos") => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.to_owned()),
        };
        let thinking = Thinking {
            text: self.thinking,
            origin: ORIGIN.to_owned(),
            ..Thinking::default()
        };
        let thinking = (!thinking.text.is_empty()).then_some(Block::Thinking(thinking));
        let text = (!self.text.is_empty()).then_some(Block::Text { text: self.text });
        let calls = self.calls.into_iter().enumerate().map(|(n, open)| {
            let id = if open.id.is_empty() {
                format!("call_{n}")
            } else {
                open.id
            };
            Block::ToolCall(call::finish_call(id, open.name, &open.json, &stop))
        });
        let content = thinking.into_iter().chain(text).chain(calls).collect();
        Reply {
            content,
            usage: self.usage.unwrap_or_default().total(),
            stop,
            model: String::new(),
        }
    }
}

/// Returns arguments as text: the protocol specifies a string, some servers send the object itself.
fn arguments_text(raw: &RawValue) -> Result<String, ModelError> {
    match raw.get() {
        "null" => Ok(String::new()),
        text if text.starts_with('"') => {
            serde_json::from_str(text).map_err(|error| ModelError::Protocol(error.to_string()))
        }
        text => Ok(text.to_owned()),
    }
}

#[derive(Deserialize)]
struct ChatChunk {
    choices: Option<Vec<ChatChoice>>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage: Option<ChatUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChatChoice {
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    index: Option<u64>,
    #[serde(alias = "delta", alias = "message")]
    said: Option<ChatReplyMessage>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChatReplyMessage {
    content: Option<ChatReplyContent>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ChatCallDelta>>,
    function_call: Option<ChatFunctionDelta>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ChatReplyContent {
    Text(String),
    Parts(Vec<ChatReplyPart>),
}

/// A part of an answer of Mistral's thinking models.
#[derive(Deserialize)]
struct ChatReplyPart {
    text: Option<String>,
    thinking: Option<Value>,
}

impl ChatReplyPart {
    fn split(&self, thinking: &mut String, text: &mut String) {
        text.push_str(self.text.as_deref().unwrap_or_default());
        match &self.thinking {
            Some(Value::String(thought)) => thinking.push_str(thought),
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .filter_map(|part| part.get("text")?.as_str())
                    .for_each(|t| thinking.push_str(t));
            }
            Some(_) | None => {}
        }
    }
}

#[derive(Deserialize)]
struct ChatCallDelta {
    index: Option<u32>,
    id: Option<String>,
    function: Option<ChatFunctionDelta>,
}

#[derive(Default, Deserialize)]
struct ChatFunctionDelta {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl ChatUsage {
    fn total(self) -> Usage {
        let prompt = self.prompt_tokens_details.unwrap_or_default();
        let completion = self.completion_tokens_details.unwrap_or_default();
        Usage {
            input_tokens: self.prompt_tokens.unwrap_or_default(),
            cache_read_tokens: prompt
                .cached_tokens
                .or(self.prompt_cache_hit_tokens)
                .unwrap_or_default(),
            cache_write_tokens: prompt.cache_write_tokens.unwrap_or_default(),
            output_tokens: self.completion_tokens.unwrap_or_default(),
            reasoning_tokens: completion.reasoning_tokens.unwrap_or_default(),
        }
    }
}
