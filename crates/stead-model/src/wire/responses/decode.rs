//! Decoding answers of OpenAI's Responses API, streamed or whole.
//!
//! Effects: none.

use super::ORIGIN;
use crate::classify::{IN_STREAM_STATUS, classify};
use crate::wire::Decoder;
use crate::wire::call;
use crate::{Delta, ModelError, Reply};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{Block, StopReason, Thinking, Usage};

/// Parses a whole answer.
pub(super) fn parse(body: &[u8]) -> Result<Reply, ModelError> {
    let response = serde_json::from_slice(body).map_err(protocol_error)?;
    reply(response, BTreeMap::new())
}

/// A streamed answer. The terminal event repeats the whole answer, so the pieces are only passed
/// on.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    /// Calls by the index of their item in the answer.
    calls: BTreeMap<u64, OpenResponsesCall>,
    /// Finished items, for servers whose terminal event does not repeat them.
    items: BTreeMap<u64, ResponsesOutputItem>,
    ended: bool,
}

#[derive(Debug)]
struct OpenResponsesCall {
    index: u32,
    args_bytes: usize,
}

impl ResponsesDecoder {
    fn call_started(
        &mut self,
        ResponsesItemEvent { output_index, item }: ResponsesItemEvent,
        out: &mut Vec<Delta>,
    ) {
        if let ResponsesOutputItem::FunctionCall { name, .. } = item
            && !self.calls.contains_key(&output_index)
        {
            let index = self.calls.len() as u32;
            self.calls.insert(
                output_index,
                OpenResponsesCall {
                    index,
                    args_bytes: 0,
                },
            );
            out.push(Delta::CallStarted { index, name });
        }
    }

    fn call_args(&mut self, place: u64, json: String, out: &mut Vec<Delta>) {
        if let Some(call) = self.calls.get_mut(&place) {
            call.args_bytes += json.len();
            out.push(Delta::CallArgs {
                index: call.index,
                json,
            });
        }
    }

    /// Handles the end of a call's arguments, where some servers send all of them in one piece.
    fn call_args_done(
        &mut self,
        ResponsesArgumentsDone {
            output_index,
            arguments,
        }: ResponsesArgumentsDone,
        out: &mut Vec<Delta>,
    ) {
        if self
            .calls
            .get(&output_index)
            .is_some_and(|call| call.args_bytes == 0)
            && !arguments.is_empty()
        {
            self.call_args(output_index, arguments, out);
        }
    }
}

impl Decoder for ResponsesDecoder {
    fn push(&mut self, event: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.ended || data == "[DONE]" {
            return Ok(());
        }
        let ResponsesEventType { kind } = parse_event(data)?;
        match kind.as_deref().unwrap_or(event) {
            "response.output_text.delta" | "response.refusal.delta" => {
                out.push(Delta::Text(parse_event::<ResponsesTextDelta>(data)?.delta))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.push(Delta::Thinking(
                    parse_event::<ResponsesTextDelta>(data)?.delta,
                ));
            }
            "response.reasoning_summary_part.added"
                if parse_event::<ResponsesSummaryPart>(data)?.summary_index > 0 =>
            {
                out.push(Delta::Thinking(PARAGRAPH.into()));
            }
            "response.output_item.added" => self.call_started(parse_event(data)?, out),
            "response.output_item.done" => {
                let ResponsesItemEvent { output_index, item } = parse_event(data)?;
                self.items.insert(output_index, item);
            }
            "response.function_call_arguments.delta" => {
                let ResponsesTextDelta {
                    output_index,
                    delta,
                } = parse_event(data)?;
                self.call_args(output_index, delta, out);
            }
            "response.function_call_arguments.done" => self.call_args_done(parse_event(data)?, out),
            kind @ ("response.completed" | "response.incomplete" | "response.failed") => {
                let ResponsesTerminalEvent { mut response } = parse_event(data)?;
                if response.status.is_empty() {
                    response.status = kind.trim_start_matches("response.").to_owned();
                }
                let reply = reply(response, std::mem::take(&mut self.items))?;
                self.ended = true;
                out.push(Delta::Done(Box::new(reply)));
            }
            "error" => return Err(classify(IN_STREAM_STATUS, None, data.as_bytes())),
            // Other events mark the begin and end of parts, or belong to tools that run at the
            // provider.
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.ended {
            Ok(())
        } else {
            Err(ModelError::Cut)
        }
    }
}

/// The separator between the parts of one reasoning summary.
const PARAGRAPH: &str = "\n\n";

fn parse_event<'de, T: Deserialize<'de>>(data: &'de str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(protocol_error)
}

#[derive(Deserialize)]
struct ResponsesEventType {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesTextDelta {
    #[serde(default)]
    output_index: u64,
    delta: String,
}

#[derive(Deserialize)]
struct ResponsesSummaryPart {
    #[serde(default)]
    summary_index: u64,
}

#[derive(Deserialize)]
struct ResponsesItemEvent {
    #[serde(default)]
    output_index: u64,
    item: ResponsesOutputItem,
}

#[derive(Deserialize)]
struct ResponsesArgumentsDone {
    #[serde(default)]
    output_index: u64,
    arguments: String,
}

#[derive(Deserialize)]
struct ResponsesTerminalEvent {
    response: ResponsesReply,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesReply {
    status: String,
    output: Vec<ResponsesOutputItem>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage: Option<ResponsesUsage>,
    error: Value,
    incomplete_details: Option<ResponsesIncomplete>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesIncomplete {
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesOutputItem {
    Message {
        #[serde(default)]
        content: Vec<ResponsesOutputPart>,
    },
    Reasoning {
        id: Option<String>,
        #[serde(default)]
        summary: Vec<ResponsesOutputPart>,
        /// The readable reasoning of open models.
        #[serde(default)]
        content: Option<Vec<ResponsesOutputPart>>,
        encrypted_content: Option<String>,
    },
    FunctionCall {
        #[serde(default)]
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
        #[serde(default)]
        status: Option<String>,
    },
    /// Items of tools that run at the provider, which are never requested.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesOutputPart {
    OutputText {
        text: String,
    },
    SummaryText {
        text: String,
    },
    ReasoningText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    input_tokens: u64,
    output_tokens: u64,
    input_tokens_details: Option<InputTokens>,
    output_tokens_details: Option<OutputTokens>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InputTokens {
    cached_tokens: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OutputTokens {
    reasoning_tokens: u64,
}

fn reply(
    response: ResponsesReply,
    seen: BTreeMap<u64, ResponsesOutputItem>,
) -> Result<Reply, ModelError> {
    let ResponsesReply {
        status,
        output,
        usage,
        error,
        incomplete_details,
    } = response;
    let output = if output.is_empty() {
        seen.into_values().collect()
    } else {
        output
    };
    let refused = output.iter().any(|item| match item {
        ResponsesOutputItem::Message { content } => content
            .iter()
            .any(|part| matches!(part, ResponsesOutputPart::Refusal { .. })),
        ResponsesOutputItem::Reasoning { .. }
        | ResponsesOutputItem::FunctionCall { .. }
        | ResponsesOutputItem::Unknown => false,
    });
    let calls = output
        .iter()
        .any(|item| matches!(item, ResponsesOutputItem::FunctionCall { .. }));
    let stop = match status.as_str() {
        "completed" if refused => StopReason::Refusal,
        "completed" if calls => StopReason::ToolUse,
        "completed" => StopReason::EndTurn,
        "incomplete" => incomplete_stop_reason(incomplete_details.unwrap_or_default()),
        "failed" => {
            return Err(classify(
                IN_STREAM_STATUS,
                None,
                error.to_string().as_bytes(),
            ));
        }
        "cancelled" => return Err(ModelError::Cut),
        other => {
            return Err(ModelError::Protocol(format!(
                "an answer of status {other:?}"
            )));
        }
    };
    let content = output
        .into_iter()
        .flat_map(|item| blocks(item, &stop))
        .collect();
    Ok(Reply {
        content,
        usage: usage.map(to_usage).unwrap_or_default(),
        stop,
        model: String::new(),
    })
}

fn incomplete_stop_reason(details: ResponsesIncomplete) -> StopReason {
    match details.reason.as_str() {
        "max_output_tokens" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        _ => StopReason::Other(details.reason),
    }
}

fn blocks(item: ResponsesOutputItem, stop: &StopReason) -> Vec<Block> {
    match item {
        ResponsesOutputItem::Message { content } => content
            .into_iter()
            .map(part_text)
            .filter(|text| !text.is_empty())
            .map(Block::text)
            .collect(),
        ResponsesOutputItem::Reasoning {
            id,
            summary,
            content,
            encrypted_content: signature,
        } => {
            let parts = if summary.is_empty() {
                content.unwrap_or_default()
            } else {
                summary
            };
            let text = parts
                .into_iter()
                .map(part_text)
                .collect::<Vec<_>>()
                .join(PARAGRAPH);
            if text.is_empty() && signature.is_none() {
                return vec![];
            }
            let redacted = text.is_empty();
            vec![Block::Thinking(Thinking {
                text,
                signature,
                id,
                redacted,
                origin: ORIGIN.into(),
            })]
        }
        ResponsesOutputItem::FunctionCall {
            call_id: id,
            name,
            arguments,
            status,
        } => {
            // Whatever stopped the answer, an unfinished call must not be executed.
            let stop = if status.as_deref() == Some("incomplete") {
                &StopReason::MaxTokens
            } else {
                stop
            };
            vec![Block::ToolCall(call::finish_call(
                id, name, &arguments, stop,
            ))]
        }
        ResponsesOutputItem::Unknown => vec![],
    }
}

fn part_text(part: ResponsesOutputPart) -> String {
    match part {
        ResponsesOutputPart::OutputText { text }
        | ResponsesOutputPart::SummaryText { text }
        | ResponsesOutputPart::ReasoningText { text } => text,
        ResponsesOutputPart::Refusal { refusal } => refusal,
        ResponsesOutputPart::Unknown => String::new(),
    }
}

fn to_usage(tokens: ResponsesUsage) -> Usage {
    Usage {
        input_tokens: tokens.input_tokens,
        cache_read_tokens: tokens
            .input_tokens_details
            .unwrap_or_default()
            .cached_tokens,
        cache_write_tokens: 0,
        output_tokens: tokens.output_tokens,
        reasoning_tokens: tokens
            .output_tokens_details
            .unwrap_or_default()
            .reasoning_tokens,
    }
}

fn protocol_error(error: serde_json::Error) -> ModelError {
    ModelError::Protocol(error.to_string())
}
