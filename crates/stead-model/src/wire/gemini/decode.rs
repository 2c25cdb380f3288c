//! Decoding answers of the Gemini API. A stream is a sequence of partial answers of the same shape
//! as a whole one.
//!
//! Effects: none.

use super::ORIGIN;
use crate::classify::{IN_STREAM_STATUS, classify};
use crate::wire::Decoder;
use crate::wire::args::parse_args;
use crate::{Delta, ModelError, Reply};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use stead_core::{Block, Media, StopReason, Thinking, ToolCall, Usage};

/// Parses a whole answer.
pub(super) fn parse(body: &[u8]) -> Result<Reply, ModelError> {
    let mut decoder = GeminiDecoder::default();
    let chunk =
        serde_json::from_slice(body).map_err(|error| ModelError::Protocol(error.to_string()))?;
    decoder.push_chunk(chunk, &mut Vec::new())?;
    decoder.reply()
}

/// Assembles a streamed answer. It has no terminal event: after a finish reason, the end of the
/// stream is the end of the answer.
#[derive(Debug, Default)]
pub(super) struct GeminiDecoder {
    content: Vec<Block>,
    /// The signature of the text at the end of `content`, which may still grow.
    text_signature: Option<String>,
    calls: u32,
    usage: Usage,
    ending: Option<GeminiEnding>,
}

/// The end of an answer as the provider reports it.
#[derive(Debug)]
enum GeminiEnding {
    Finished { reason: String, message: String },
    PromptBlocked,
}

impl GeminiDecoder {
    fn push_chunk(&mut self, chunk: GeminiChunk, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Some(error) = chunk.error {
            return Err(classify(
                IN_STREAM_STATUS,
                None,
                error.to_string().as_bytes(),
            ));
        }
        if let Some(counts) = chunk.usage_metadata {
            self.usage = usage(&counts);
        }
        if chunk
            .prompt_feedback
            .and_then(|feedback| feedback.block_reason)
            .is_some()
        {
            self.ending = Some(GeminiEnding::PromptBlocked);
        }
        let Some(candidate) = chunk.candidates.into_iter().flatten().next() else {
            return Ok(());
        };
        for part in candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default()
        {
            self.push_part(part, out);
        }
        if let Some(reason) = candidate.finish_reason {
            let message = candidate.finish_message.unwrap_or_default();
            self.ending = Some(GeminiEnding::Finished { reason, message });
        }
        Ok(())
    }

    fn push_part(&mut self, part: GeminiReplyPart, out: &mut Vec<Delta>) {
        let GeminiReplyPart {
            text,
            thought,
            thought_signature: signature,
            function_call,
            inline_data,
        } = part;
        if let Some(call) = function_call {
            self.push_call(call, signature, out);
        } else if let Some(GeminiReplyBlob { mime_type, data }) = inline_data {
            self.end_text();
            self.content
                .push(Block::Media(Media::inline(mime_type, data, None)));
        } else if thought.unwrap_or_default() {
            self.push_thought(text.unwrap_or_default(), signature, out);
        } else {
            self.push_text(text.unwrap_or_default(), signature, out);
        }
    }

    fn push_text(&mut self, text: String, signature: Option<String>, out: &mut Vec<Delta>) {
        self.text_signature = signature.or(self.text_signature.take());
        if text.is_empty() {
            return;
        }
        match self.content.last_mut() {
            Some(Block::Text { text: so_far }) => so_far.push_str(&text),
            Some(Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_)) | None => {
                self.content.push(Block::text(&text));
            }
        }
        out.push(Delta::Text(text));
    }

    /// Ends a text that arrived in pieces: it becomes one block, followed by its signature.
    fn end_text(&mut self) {
        if let Some(signature) = self.text_signature.take() {
            self.content.push(thinking(String::new(), Some(signature)));
        }
    }

    fn push_thought(&mut self, text: String, signature: Option<String>, out: &mut Vec<Delta>) {
        self.end_text();
        match self.content.last_mut() {
            Some(Block::Thinking(last)) if last.signature.is_none() => {
                last.text.push_str(&text);
                last.signature = signature;
            }
            Some(_) | None if text.is_empty() && signature.is_none() => {}
            Some(_) | None => self.content.push(thinking(text.clone(), signature)),
        }
        if !text.is_empty() {
            out.push(Delta::Thinking(text));
        }
    }

    fn push_call(
        &mut self,
        GeminiReplyCall { id, name, args }: GeminiReplyCall,
        signature: Option<String>,
        out: &mut Vec<Delta>,
    ) {
        self.end_text();
        let (args, invalid) = parse_args(args.as_deref().map_or("", RawValue::get));
        let index = self.calls;
        self.calls += 1;
        out.push(Delta::CallStarted {
            index,
            name: name.clone(),
        });
        out.push(Delta::CallArgs {
            index,
            json: args.to_string(),
        });
        self.content.push(Block::ToolCall(ToolCall {
            id: id.unwrap_or_default(),
            name,
            args,
            invalid,
            signature,
        }));
    }

    fn reply(&mut self) -> Result<Reply, ModelError> {
        let stop = match self.ending.take().ok_or(ModelError::Cut)? {
            GeminiEnding::PromptBlocked => StopReason::ContentFilter,
            GeminiEnding::Finished { reason, message } => self.stop_reason(reason, &message)?,
        };
        self.end_text();
        Ok(Reply {
            content: std::mem::take(&mut self.content),
            usage: self.usage,
            stop,
            model: String::new(),
        })
    }

    fn stop_reason(&self, reason: String, message: &str) -> Result<StopReason, ModelError> {
        Ok(match reason.as_str() {
            "STOP" if self.calls > 0 => StopReason::ToolUse,
            "STOP" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "IMAGE_SAFETY" => StopReason::ContentFilter,
            // There is nothing to act on or to answer; a retry usually succeeds.
            "MALFORMED_FUNCTION_CALL" => {
                return Err(ModelError::Protocol(format!(
                    "the model wrote a malformed call {message}"
                )));
            }
            _ => StopReason::Other(reason),
        })
    }
}

impl Decoder for GeminiDecoder {
    fn push(&mut self, _event: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let chunk =
            serde_json::from_str(data).map_err(|error| ModelError::Protocol(error.to_string()))?;
        self.push_chunk(chunk, out)
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let reply = self.reply()?;
        out.push(Delta::Done(Box::new(reply)));
        Ok(())
    }
}

fn thinking(text: String, signature: Option<String>) -> Block {
    let redacted = text.is_empty();
    Block::Thinking(Thinking {
        text,
        signature,
        id: None,
        redacted,
        origin: ORIGIN.into(),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk {
    candidates: Option<Vec<GeminiCandidate>>,
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage_metadata: Option<GeminiUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    content: Option<GeminiReplyContent>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct GeminiReplyContent {
    parts: Option<Vec<GeminiReplyPart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReplyPart {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<GeminiReplyCall>,
    inline_data: Option<GeminiReplyBlob>,
}

#[derive(Deserialize)]
struct GeminiReplyCall {
    id: Option<String>,
    name: String,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReplyBlob {
    mime_type: String,
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiUsage {
    prompt_token_count: u64,
    tool_use_prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
}

fn usage(counts: &GeminiUsage) -> Usage {
    Usage {
        input_tokens: counts
            .prompt_token_count
            .saturating_add(counts.tool_use_prompt_token_count),
        cache_read_tokens: counts.cached_content_token_count,
        cache_write_tokens: 0,
        output_tokens: counts
            .candidates_token_count
            .saturating_add(counts.thoughts_token_count),
        reasoning_tokens: counts.thoughts_token_count,
    }
}
