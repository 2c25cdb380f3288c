//! Answers of the Responses API, streamed or whole.

use super::ORIGIN;
use crate::classify::{IN_STREAM, classify};
use crate::wire::Decoder;
use crate::wire::call;
use crate::{Delta, ModelError, Reply};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::{Block, StopReason, Thinking, Usage};

/// A whole answer.
pub(super) fn parse(body: &[u8]) -> Result<Reply, ModelError> {
    let response = serde_json::from_slice(body).map_err(protocol)?;
    reply(response, BTreeMap::new())
}

/// A streamed answer. The terminal event repeats the whole answer, so the pieces are only passed
/// on.
#[derive(Debug, Default)]
pub(super) struct ResponsesDecoder {
    /// Calls by the place of their item in the answer.
    calls: BTreeMap<u64, Call>,
    /// Finished items, for servers whose terminal event does not repeat them.
    items: BTreeMap<u64, Item>,
    ended: bool,
}

#[derive(Debug)]
struct Call {
    index: u32,
    args_bytes: usize,
}

impl ResponsesDecoder {
    fn call_started(&mut self, Placed { output_index, item }: Placed, out: &mut Vec<Delta>) {
        if let Item::FunctionCall { name, .. } = item
            && !self.calls.contains_key(&output_index)
        {
            let index = self.calls.len() as u32;
            self.calls.insert(
                output_index,
                Call {
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

    /// Some servers give a call's arguments in one piece at their end.
    fn call_args_done(
        &mut self,
        Arguments {
            output_index,
            arguments,
        }: Arguments,
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
        let Kind { kind } = read(data)?;
        match kind.as_deref().unwrap_or(event) {
            "response.output_text.delta" | "response.refusal.delta" => {
                out.push(Delta::Text(read::<Piece>(data)?.delta))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.push(Delta::Thinking(read::<Piece>(data)?.delta));
            }
            "response.reasoning_summary_part.added"
                if read::<SummaryPart>(data)?.summary_index > 0 =>
            {
                out.push(Delta::Thinking(PARAGRAPH.into()));
            }
            "response.output_item.added" => self.call_started(read(data)?, out),
            "response.output_item.done" => {
                let Placed { output_index, item } = read(data)?;
                self.items.insert(output_index, item);
            }
            "response.function_call_arguments.delta" => {
                let Piece {
                    output_index,
                    delta,
                } = read(data)?;
                self.call_args(output_index, delta, out);
            }
            "response.function_call_arguments.done" => self.call_args_done(read(data)?, out),
            kind @ ("response.completed" | "response.incomplete" | "response.failed") => {
                let Terminal { mut response } = read(data)?;
                if response.status.is_empty() {
                    response.status = kind.trim_start_matches("response.").to_owned();
                }
                let reply = reply(response, std::mem::take(&mut self.items))?;
                self.ended = true;
                out.push(Delta::Done(Box::new(reply)));
            }
            "error" => return Err(classify(IN_STREAM, None, data.as_bytes())),
            // The rest says when parts begin and end, or belongs to tools that run at the provider.
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

/// Between the parts of one reasoning summary.
const PARAGRAPH: &str = "\n\n";

fn read<'de, T: Deserialize<'de>>(data: &'de str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(protocol)
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    output_index: u64,
    delta: String,
}

#[derive(Deserialize)]
struct SummaryPart {
    #[serde(default)]
    summary_index: u64,
}

#[derive(Deserialize)]
struct Placed {
    #[serde(default)]
    output_index: u64,
    item: Item,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    output_index: u64,
    arguments: String,
}

#[derive(Deserialize)]
struct Terminal {
    response: Response,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Response {
    status: String,
    output: Vec<Item>,
    #[serde(default, deserialize_with = "crate::wire::json::or_none")]
    usage: Option<Tokens>,
    error: Value,
    incomplete_details: Option<Incomplete>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Incomplete {
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        #[serde(default)]
        content: Vec<Part>,
    },
    Reasoning {
        id: Option<String>,
        #[serde(default)]
        summary: Vec<Part>,
        /// Readable reasoning of open models.
        #[serde(default)]
        content: Option<Vec<Part>>,
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
    /// Items of tools that run at the provider; we never offer any.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
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
struct Tokens {
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

fn reply(response: Response, seen: BTreeMap<u64, Item>) -> Result<Reply, ModelError> {
    let Response {
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
        Item::Message { content } => content
            .iter()
            .any(|part| matches!(part, Part::Refusal { .. })),
        Item::Reasoning { .. } | Item::FunctionCall { .. } | Item::Unknown => false,
    });
    let calls = output
        .iter()
        .any(|item| matches!(item, Item::FunctionCall { .. }));
    let stop = match status.as_str() {
        "completed" if refused => StopReason::Refusal,
        "completed" if calls => StopReason::ToolUse,
        "completed" => StopReason::EndTurn,
        "incomplete" => incomplete(incomplete_details.unwrap_or_default()),
        "failed" => return Err(classify(IN_STREAM, None, error.to_string().as_bytes())),
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
        usage: usage.map(tokens).unwrap_or_default(),
        stop,
        model: String::new(),
    })
}

fn incomplete(details: Incomplete) -> StopReason {
    match details.reason.as_str() {
        "max_output_tokens" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        _ => StopReason::Other(details.reason),
    }
}

fn blocks(item: Item, stop: &StopReason) -> Vec<Block> {
    match item {
        Item::Message { content } => content
            .into_iter()
            .map(text)
            .filter(|text| !text.is_empty())
            .map(Block::text)
            .collect(),
        Item::Reasoning {
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
                .map(text)
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
        Item::FunctionCall {
            call_id: id,
            name,
            arguments,
            status,
        } => {
            // Whatever stopped the answer, an unfinished call is not to be made.
            let stop = if status.as_deref() == Some("incomplete") {
                &StopReason::MaxTokens
            } else {
                stop
            };
            vec![Block::ToolCall(call::finished(id, name, &arguments, stop))]
        }
        Item::Unknown => vec![],
    }
}

fn text(part: Part) -> String {
    match part {
        Part::OutputText { text } | Part::SummaryText { text } | Part::ReasoningText { text } => {
            text
        }
        Part::Refusal { refusal } => refusal,
        Part::Unknown => String::new(),
    }
}

fn tokens(tokens: Tokens) -> Usage {
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

fn protocol(error: serde_json::Error) -> ModelError {
    ModelError::Protocol(error.to_string())
}
