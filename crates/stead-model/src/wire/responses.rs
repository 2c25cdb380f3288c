//! The wire of OpenAI's Responses API.
//!
//! Nothing is stored at the provider (`store: false`): reasoning travels as encrypted content,
//! which is sent back with its id so that the model continues its thought from step to step.

mod answer;
#[cfg(test)]
mod tests;

use super::{Decoder, Mode, Place, Wire, json, media, names, placeholder};
use crate::{ModelError, Params, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, Thinking, ToolCall, ToolResult, ToolSpec};

const ORIGIN: &str = "responses";

/// Speaks the Responses API for one model.
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

    fn endpoint(&self, _mode: Mode) -> String {
        "/responses".into()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}")))
            .into_iter()
            .collect()
    }

    fn head(&self, request: &Request, mode: Mode, out: &mut Vec<u8>) {
        let head = Head {
            model: &self.model,
            store: false,
            stream: mode == Mode::Stream,
            include: if reasons(&self.model) {
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
            instructions: request
                .system
                .iter()
                .map(|part| part.text.as_str())
                .collect::<Vec<_>>()
                .join("\n\n"),
        };
        json::open(out, &head, "input");
    }

    fn message(&self, message: &Message, _place: Place, out: &mut Vec<u8>) {
        json::join(out, &items(message));
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<answer::ResponsesDecoder>::default()
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError> {
        answer::parse(body)
    }
}

/// Whether the model reasons. The others refuse to be asked for reasoning content.
fn reasons(model: &str) -> bool {
    !["gpt-3.5", "gpt-4", "chatgpt-4"]
        .iter()
        .any(|family| model.starts_with(family))
}

/// The API knows efforts, not budgets. `minimal` and `none` are not known to every model, `low` is.
fn reasoning(params: &Params) -> Option<Reasoning> {
    let effort = match params.thinking_tokens? {
        0..4_096 => "low",
        4_096..16_384 => "medium",
        16_384.. => "high",
    };
    Some(Reasoning {
        effort,
        summary: "auto",
    })
}

#[derive(Serialize)]
struct Head<'a> {
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
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    instructions: String,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Left out, it would mean `true`, and schemas with optional fields would be refused.
    strict: bool,
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
        aliases: _,
        risk: _,
    } = spec;
    Tool {
        kind: "function",
        name,
        description,
        parameters,
        strict: false,
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Part<'a>>,
    },
    Reasoning {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        summary: Vec<Part<'a>>,
        encrypted_content: &'a str,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: String,
    },
    InputFile {
        filename: &'a str,
        file_data: String,
    },
    OutputText {
        text: &'a str,
    },
    SummaryText {
        text: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

fn items(message: &Message) -> Vec<Item<'_>> {
    match message {
        Message::User { content } => vec![user(inputs(content))],
        Message::Assistant { content } => {
            let mut items = assistant(content);
            if items.is_empty() {
                items.push(said(placeholder::NO_ANSWER));
            }
            items
        }
        Message::Tool { results } if results.is_empty() => vec![user(inputs(&[]))],
        Message::Tool { results } => results.iter().map(result).collect(),
    }
}

fn user(content: Vec<Part<'_>>) -> Item<'_> {
    Item::Message {
        role: "user",
        content,
    }
}

fn said(text: &str) -> Item<'_> {
    Item::Message {
        role: "assistant",
        content: vec![Part::OutputText { text }],
    }
}

fn assistant(content: &[Block]) -> Vec<Item<'_>> {
    // A reasoning item must be followed by what came of it; one that led to nothing is refused.
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

fn item(block: &Block) -> Option<Item<'_>> {
    match block {
        Block::Text { text } => (!text.is_empty()).then(|| said(text)),
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
                vec![Part::SummaryText { text }]
            };
            Some(Item::Reasoning {
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
        }) => Some(Item::FunctionCall {
            call_id: names::safe(id),
            name: names::safe(name),
            arguments: args.to_string(),
        }),
    }
}

fn result(result: &ToolResult) -> Item<'_> {
    let output = match result.content.as_slice() {
        [] => Output::Text(placeholder::NO_OUTPUT.into()),
        [Block::Text { text }] if text.is_empty() => Output::Text(placeholder::NO_OUTPUT.into()),
        [Block::Text { text }] => Output::Text(text.into()),
        content => Output::Parts(inputs(content)),
    };
    Item::FunctionCallOutput {
        call_id: names::safe(&result.id),
        output,
    }
}

fn inputs(content: &[Block]) -> Vec<Part<'_>> {
    let mut parts: Vec<_> = content.iter().filter_map(input).collect();
    if parts.is_empty() {
        parts.push(Part::InputText {
            text: placeholder::NO_INPUT.into(),
        });
    }
    parts
}

fn input(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text { text } => (!text.is_empty()).then(|| Part::InputText { text: text.into() }),
        Block::Media(media) => Some(input_media(media)),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}

fn input_media(file: &Media) -> Part<'_> {
    let Media {
        mime, data, name, ..
    } = file;
    let data_url = || format!("data:{mime};base64,{data}");
    match media::kind(file) {
        media::Kind::Image => Part::InputImage {
            image_url: data_url(),
        },
        media::Kind::Pdf => Part::InputFile {
            filename: name.as_deref().unwrap_or("document.pdf"),
            file_data: data_url(),
        },
        media::Kind::Text(text) => Part::InputText {
            text: media::inline(file, &text).into(),
        },
        media::Kind::Wav | media::Kind::Mp3 | media::Kind::Other => Part::InputText {
            text: placeholder::for_media(file).into(),
        },
    }
}
