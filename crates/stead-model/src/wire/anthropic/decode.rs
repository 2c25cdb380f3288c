//! Decoding answers of Anthropic's Messages API, streamed or whole.
//!
//! Effects: none.

use super::ORIGIN;
use crate::classify::{IN_STREAM_STATUS, classify};
use crate::wire::{Decoder, call};
use crate::{Delta, ModelError, Reply};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use stead_core::{Block, StopReason, Thinking, Usage};

/// Collects the blocks of one answer by their index.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    blocks: BTreeMap<u32, OpenAnthropicBlock>,
    calls: u32,
    usage: AnthropicUsage,
    stop: Option<String>,
    done: bool,
}

/// A block in progress.
#[derive(Debug)]
enum OpenAnthropicBlock {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        index: u32,
        id: String,
        name: String,
        json: String,
    },
    /// A block of an unknown kind, such as a server-side tool's.
    Unknown,
}

impl Decoder for AnthropicDecoder {
    fn push(&mut self, _: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        let event: AnthropicEvent = serde_json::from_str(data).map_err(protocol_error)?;
        match event.kind.as_str() {
            "message_start" => {
                self.usage
                    .update(event.message.and_then(|message| message.usage));
                let usage = self.usage.total();
                if usage != Usage::default() {
                    out.push(Delta::Usage(usage));
                }
            }
            "content_block_start" => {
                let index = event.index.unwrap_or_default();
                let block = event.content_block.unwrap_or_default();
                self.start_block(index, block, out);
            }
            "content_block_delta" => {
                self.extend_block(
                    event.index.unwrap_or_default(),
                    event.delta.unwrap_or_default(),
                    out,
                )?;
            }
            "message_delta" => {
                self.usage.update(event.usage);
                self.stop = event
                    .delta
                    .and_then(|delta| delta.stop_reason)
                    .or(self.stop.take());
            }
            "message_stop" => {
                self.done = true;
                out.push(Delta::Done(Box::new(std::mem::take(self).reply())));
                self.done = true;
            }
            "error" => return Err(classify(IN_STREAM_STATUS, None, data.as_bytes())),
            // `ping`, `content_block_stop`, and additions of later API versions.
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done {
            Ok(())
        } else {
            Err(ModelError::Cut)
        }
    }
}

/// Parses a whole answer.
pub(super) fn parse(body: &[u8]) -> Result<Reply, ModelError> {
    let message: AnthropicReply = serde_json::from_slice(body).map_err(protocol_error)?;
    if message.kind.as_deref() == Some("error") {
        return Err(classify(IN_STREAM_STATUS, None, body));
    }
    let content = message
        .content
        .ok_or_else(|| ModelError::Protocol("the answer has no content".into()))?;
    let mut decoder = AnthropicDecoder {
        stop: message.stop_reason,
        ..AnthropicDecoder::default()
    };
    decoder.usage.update(message.usage);
    for (index, block) in (0..).zip(content) {
        decoder.start_block(index, block, &mut Vec::new());
    }
    Ok(decoder.reply())
}

fn protocol_error(error: serde_json::Error) -> ModelError {
    ModelError::Protocol(error.to_string())
}

impl AnthropicDecoder {
    fn start_block(&mut self, at: u32, block: AnthropicReplyBlock, out: &mut Vec<Delta>) {
        let text = block.text.or(block.thinking).unwrap_or_default();
        let open = match block.kind.as_str() {
            "text" => {
                emit(out, &text, Delta::Text);
                OpenAnthropicBlock::Text(text)
            }
            "thinking" => {
                emit(out, &text, Delta::Thinking);
                OpenAnthropicBlock::Thinking {
                    text,
                    signature: block.signature.unwrap_or_default(),
                }
            }
            "redacted_thinking" => OpenAnthropicBlock::Redacted(block.data.unwrap_or_default()),
            "tool_use" => {
                let index = self.calls;
                let name = block.name.unwrap_or_default();
                self.calls += 1;
                out.push(Delta::CallStarted {
                    index,
                    name: name.clone(),
                });
                // A stream opens with `{}` and sends the arguments after it; a whole answer has
                // them here.
                let input = block
                    .input
                    .map(|input| input.get().to_owned())
                    .filter(|input| input != "{}");
                let json = input.unwrap_or_default();
                emit(out, &json, |json| Delta::CallArgs { index, json });
                OpenAnthropicBlock::Call {
                    index,
                    id: block.id.unwrap_or_default(),
                    name,
                    json,
                }
            }
            _ => OpenAnthropicBlock::Unknown,
        };
        self.blocks.insert(at, open);
    }

    fn extend_block(
        &mut self,
        at: u32,
        piece: AnthropicDelta,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let block = self.blocks.get_mut(&at);
        let block = block.ok_or_else(|| {
            ModelError::Protocol(format!("a delta for block {at}, which was not begun"))
        })?;
        match block {
            OpenAnthropicBlock::Text(text) => {
                let more = piece.text.unwrap_or_default();
                text.push_str(&more);
                emit(out, &more, Delta::Text);
            }
            OpenAnthropicBlock::Thinking { text, signature } => {
                let more = piece.thinking.unwrap_or_default();
                text.push_str(&more);
                signature.push_str(&piece.signature.unwrap_or_default());
                emit(out, &more, Delta::Thinking);
            }
            OpenAnthropicBlock::Call { index, json, .. } => {
                let index = *index;
                let more = piece.partial_json.unwrap_or_default();
                json.push_str(&more);
                emit(out, &more, |json| Delta::CallArgs { index, json });
            }
            OpenAnthropicBlock::Redacted(_) | OpenAnthropicBlock::Unknown => {}
        }
        Ok(())
    }

    fn reply(self) -> Reply {
        let stop = match self.stop.as_deref() {
            Some("end_turn") => StopReason::EndTurn,
            Some("tool_use") => StopReason::ToolUse,
            // The window is full: as with the output limit, the answer is cut.
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::MaxTokens,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("refusal") => StopReason::Refusal,
            Some(other) => StopReason::Other(other.to_owned()),
            None if self.calls > 0 => StopReason::ToolUse,
            None => StopReason::EndTurn,
        };
        let thinking = |text, signature| Thinking {
            text,
            signature,
            origin: ORIGIN.to_owned(),
            ..Thinking::default()
        };
        let content = self.blocks.into_values().filter_map(|open| match open {
            OpenAnthropicBlock::Text(text) if text.is_empty() => None,
            OpenAnthropicBlock::Text(text) => Some(Block::Text { text }),
            OpenAnthropicBlock::Thinking { text, signature } => {
                let signature = Some(signature).filter(|signature| !signature.is_empty());
                Some(Block::Thinking(thinking(text, signature)))
            }
            OpenAnthropicBlock::Redacted(data) => Some(Block::Thinking(Thinking {
                redacted: true,
                ..thinking(String::new(), Some(data))
            })),
            OpenAnthropicBlock::Call { id, name, json, .. } => {
                Some(Block::ToolCall(call::finish_call(id, name, &json, &stop)))
            }
            OpenAnthropicBlock::Unknown => None,
        });
        Reply {
            content: content.collect(),
            usage: self.usage.total(),
            stop,
            model: String::new(),
        }
    }
}

fn emit(out: &mut Vec<Delta>, text: &str, delta: impl FnOnce(String) -> Delta) {
    if !text.is_empty() {
        out.push(delta(text.to_owned()));
    }
}

#[derive(Deserialize)]
struct AnthropicEvent {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u32>,
    message: Option<AnthropicReply>,
    content_block: Option<AnthropicReplyBlock>,
    delta: Option<AnthropicDelta>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicReply {
    #[serde(rename = "type")]
    kind: Option<String>,
    content: Option<Vec<AnthropicReplyBlock>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage: Option<AnthropicUsage>,
}

#[derive(Default, Deserialize)]
struct AnthropicReplyBlock {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct AnthropicDelta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// Token counts as the API reports them: cumulative, and in parts.
#[derive(Debug, Default, Deserialize)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl AnthropicUsage {
    fn update(&mut self, newer: Option<Self>) {
        let Some(newer) = newer else { return };
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = newer
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    fn total(&self) -> Usage {
        let read = self.cache_read_input_tokens.unwrap_or_default();
        let written = self.cache_creation_input_tokens.unwrap_or_default();
        Usage {
            input_tokens: self
                .input_tokens
                .unwrap_or_default()
                .saturating_add(read)
                .saturating_add(written),
            cache_read_tokens: read,
            cache_write_tokens: written,
            output_tokens: self.output_tokens.unwrap_or_default(),
            reasoning_tokens: 0,
        }
    }
}
