//! The wire of OpenAI's Responses API.
//!
//! Nothing is stored at the provider (`store: false`): reasoning is sent as encrypted content,
//! which is returned with its id so that the model continues its thought from step to step.
//!
//! Effects: none.

mod decode;
#[cfg(test)]
mod tests;

use super::answer_schema::NamedSchema;
use super::{Decoder, MessagePosition, Wire, WireMode, json, media, names, placeholder};
use crate::{ModelError, Params, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, Thinking, ToolCall, ToolResult, ToolSpec};

const ORIGIN: &str = "responses";

/// The Responses API for one model.
#[derive(Debug)]
pub(crate) struct Responses {
    model: String,
}

impl Responses {
    pub(crate) fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
        }
    }
}

impl Wire for Responses {
    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint(&self, _mode: WireMode) -> String {
        "/responses".into()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}")))
            .into_iter()
            .collect()
    }

    fn head(&self, request: &Request, mode: WireMode, out: &mut Vec<u8>) {
        let head = ResponsesRequestHead {
            model: &self.model,
            store: false,
            stream: mode == WireMode::Stream,
            include: if supports_reasoning(&self.model) {
                &["reasoning.encrypted_content"]
            } else {
                &[]
            },
            max_output_tokens: request.params.max_output_tokens,
            temperature: request.params.temperature,
            reasoning: reasoning(&request.params),
            tool_choice: match request.params.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::None if request.tools.is_empty() => None,
                ToolChoice::None => Some("none"),
            },
            tools: request.tools.iter().map(tool).collect(),
            text: request
                .params
                .answer_schema
                .as_deref()
                .map(|schema| ResponsesText {
                    format: ResponsesFormat {
                        kind: "json_schema",
                        schema: NamedSchema::new(schema),
                    },
                }),
            instructions: request
                .system
                .iter()
                .map(|part| part.text.as_str())
                .collect::<Vec<_>>()
                .join("\n\n"),
        };
        json::append_open(out, &head, "input");
    }

    fn message(&self, message: &Message, _place: MessagePosition, out: &mut Vec<u8>) {
        json::append_joined(out, &items(message));
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::ResponsesDecoder>::default()
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError> {
        decode::parse(body)
    }
}

/// Returns whether the model reasons. Other models refuse requests for reasoning content.
fn supports_reasoning(model: &str) -> bool {
    !["gpt-3.5", "gpt-4", "chatgpt-4"]
        .iter()
        .any(|family| model.starts_with(family))
}

/// Returns the reasoning settings. The API has efforts, not budgets. Not every model supports
/// `minimal` and `none`, but all support `low`.
fn reasoning(params: &Params) -> Option<ResponsesReasoning> {
    let effort = match params.thinking_tokens? {
        0..4_096 => "low",
        4_096..16_384 => "medium",
        16_384.. => "high",
    };
    Some(ResponsesReasoning {
        effort,
        summary: "auto",
    })
}

#[derive(Serialize)]
struct ResponsesRequestHead<'a> {
    model: &'a str,
    store: bool,
    stream: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'a [&'a str],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ResponsesReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<ResponsesText<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
}

#[derive(Serialize)]
struct ResponsesText<'a> {
    format: ResponsesFormat<'a>,
}

#[derive(Serialize)]
struct ResponsesFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct ResponsesReasoning {
    effort: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct ResponsesTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// The default would be `true`, and schemas with optional fields would be refused.
    strict: bool,
}

fn tool(spec: &ToolSpec) -> ResponsesTool<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
        ..
    } = spec;
    ResponsesTool {
        kind: "function",
        name,
        description,
        parameters,
        strict: false,
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesInputItem<'a> {
    Message {
        role: &'static str,
        content: ResponsesMessageContent<'a>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: Vec<ResponsesInputPart<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResponsesCallOutput<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesInputPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: String,
        detail: &'static str,
    },
    InputFile {
        filename: &'a str,
        file_data: String,
    },
    SummaryText {
        text: &'a str,
    },
}

/// The content of a message. The text of an answer is sent as such: a part `output_text` would need
/// the id that the provider gave it, which is not kept.
#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesMessageContent<'a> {
    Text(&'a str),
    Parts(Vec<ResponsesInputPart<'a>>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesCallOutput<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ResponsesInputPart<'a>>),
}

fn items(message: &Message) -> Vec<ResponsesInputItem<'_>> {
    match message {
        Message::User { content } => vec![user_message(input_parts(content))],
        Message::Assistant { content } => {
            let mut items = assistant(content);
            if items.is_empty() {
                items.push(assistant_message(placeholder::NO_ANSWER));
            }
            items
        }
        Message::Tool { results } if results.is_empty() => vec![user_message(input_parts(&[]))],
        Message::Tool { results } => results.iter().map(call_output).collect(),
    }
}

fn user_message(content: Vec<ResponsesInputPart<'_>>) -> ResponsesInputItem<'_> {
    ResponsesInputItem::Message {
        role: "user",
        content: ResponsesMessageContent::Parts(content),
    }
}

fn assistant_message(text: &str) -> ResponsesInputItem<'_> {
    ResponsesInputItem::Message {
        role: "assistant",
        content: ResponsesMessageContent::Text(text),
    }
}

fn assistant(content: &[Block]) -> Vec<ResponsesInputItem<'_>> {
    // A reasoning item must be followed by its result; one without is refused.
    let led_to_something = |block: &Block| match block {
        Block::Text { text } => !text.is_empty(),
        Block::ToolCall(_) => true,
        Block::Media(_) | Block::Thinking(_) => false,
    };
    let last = content
        .iter()
        .rposition(led_to_something)
        .map_or(0, |index| index + 1);
    content[..last].iter().filter_map(item).collect()
}

fn item(block: &Block) -> Option<ResponsesInputItem<'_>> {
    match block {
        Block::Text { text } => (!text.is_empty()).then(|| assistant_message(text)),
        Block::Media(_) => None,
        Block::Thinking(Thinking {
            text,
            signature,
            id,
            redacted: _,
            origin,
        }) => {
            // Without its encrypted content the provider would look the id up, and find nothing.
            let encrypted_content = signature.as_deref().filter(|_| origin == ORIGIN)?;
            let summary = if text.is_empty() {
                vec![]
            } else {
                vec![ResponsesInputPart::SummaryText { text }]
            };
            Some(ResponsesInputItem::Reasoning {
                id: id.as_deref(),
                summary,
                encrypted_content,
            })
        }
        Block::ToolCall(ToolCall {
            id,
            name,
            args,
            invalid: _,
            signature: _,
        }) => Some(ResponsesInputItem::FunctionCall {
            call_id: names::sanitize(id),
            name: names::sanitize(name),
            arguments: args.to_string(),
        }),
    }
}

/// What marks the output of a call that failed. The API has no field for it.
const ERROR_MARK: &str = "Error: ";

fn call_output(result: &ToolResult) -> ResponsesInputItem<'_> {
    let output = match result.content.as_slice() {
        [] => ResponsesCallOutput::Text(placeholder::NO_OUTPUT.into()),
        [Block::Text { text }] if text.is_empty() => {
            ResponsesCallOutput::Text(placeholder::NO_OUTPUT.into())
        }
        [Block::Text { text }] if result.status.is_error() => {
            ResponsesCallOutput::Text(format!("{ERROR_MARK}{text}").into())
        }
        [Block::Text { text }] => ResponsesCallOutput::Text(text.into()),
        content => {
            let mut parts = input_parts(content);
            if result.status.is_error() {
                let text = ERROR_MARK.trim_end().into();
                parts.insert(0, ResponsesInputPart::InputText { text });
            }
            ResponsesCallOutput::Parts(parts)
        }
    };
    ResponsesInputItem::FunctionCallOutput {
        call_id: names::sanitize(&result.id),
        output,
    }
}

fn input_parts(content: &[Block]) -> Vec<ResponsesInputPart<'_>> {
    let mut parts: Vec<_> = content.iter().filter_map(input_part).collect();
    if parts.is_empty() {
        parts.push(ResponsesInputPart::InputText {
            text: placeholder::NO_INPUT.into(),
        });
    }
    parts
}

fn input_part(block: &Block) -> Option<ResponsesInputPart<'_>> {
    match block {
        Block::Text { text } => {
            (!text.is_empty()).then(|| ResponsesInputPart::InputText { text: text.into() })
        }
        Block::Media(media) => Some(media_part(media)),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}

fn media_part(file: &Media) -> ResponsesInputPart<'_> {
    let Media {
        mime, data, name, ..
    } = file;
    let data_url = || format!("data:{mime};base64,{data}");
    match media::media_format(file) {
        media::MediaFormat::Image => ResponsesInputPart::InputImage {
            image_url: data_url(),
            detail: "auto",
        },
        media::MediaFormat::Pdf => ResponsesInputPart::InputFile {
            filename: name.as_deref().unwrap_or("document.pdf"),
            file_data: data_url(),
        },
        media::MediaFormat::Text(text) => ResponsesInputPart::InputText {
            text: media::inline_text(file, &text).into(),
        },
        media::MediaFormat::Wav | media::MediaFormat::Mp3 | media::MediaFormat::Other => {
            ResponsesInputPart::InputText {
                text: placeholder::for_media(file).into(),
            }
        }
    }
}
