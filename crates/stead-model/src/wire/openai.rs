//! OpenAI Chat Completions, and everything compatible with it.

mod decode;

use super::media::{self, Kind};
use super::{Decoder, Mode, Place, Wire, json, names, placeholder};
use crate::{ModelError, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, ToolCall, ToolResult};

const ORIGIN: &str = "openai";

/// What differs between compatible servers, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The name of the dialect.
    pub(crate) name: &'static str,
    /// How the longest answer is called.
    pub(crate) limit: LimitField,
    /// How thinking is asked for.
    pub(crate) effort: EffortField,
    /// The field in which earlier thinking goes back with the calls it led to, where the server
    /// wants it.
    pub(crate) thinking_back: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitField {
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EffortField {
    /// `reasoning_effort`, in three grades.
    Grade,
    /// `reasoning.max_tokens`.
    Budget,
}

/// Speaks Chat Completions for one model.
#[derive(Debug)]
pub(crate) struct OpenAi {
    model: String,
    dialect: Dialect,
}

impl OpenAi {
    pub(crate) fn new(model: impl Into<String>, dialect: Dialect) -> Self {
        Self {
            model: model.into(),
            dialect,
        }
    }
}

impl Wire for OpenAi {
    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn dialect(&self) -> &'static str {
        self.dialect.name
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint(&self, _: Mode) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}")))
            .into_iter()
            .collect()
    }

    fn head(&self, request: &Request, mode: Mode, out: &mut Vec<u8>) {
        let params = &request.params;
        let limit = |field| {
            params
                .max_output_tokens
                .filter(|_| self.dialect.limit == field)
        };
        let effort = |field| {
            params
                .thinking_tokens
                .filter(|_| self.dialect.effort == field)
        };
        let head = Head {
            model: &self.model,
            stream: mode == Mode::Stream,
            stream_options: (mode == Mode::Stream).then_some(StreamOptions {
                include_usage: true,
            }),
            max_tokens: limit(LimitField::MaxTokens),
            max_completion_tokens: limit(LimitField::MaxCompletionTokens),
            temperature: params.temperature,
            reasoning_effort: effort(EffortField::Grade).map(grade),
            reasoning: effort(EffortField::Budget).map(|max_tokens| Reasoning { max_tokens }),
            tool_choice: match params.tool_choice {
                ToolChoice::None if !request.tools.is_empty() => Some("none"),
                ToolChoice::None | ToolChoice::Auto => None,
            },
            tools: tools(request),
        };
        json::open(out, &head, "messages");
        let system: Vec<&str> = request
            .system
            .iter()
            .map(|part| part.text.as_str())
            .filter(|t| !t.is_empty())
            .collect();
        if !system.is_empty() {
            json::put(
                out,
                &Said::new("system", Content::Text(system.join("\n\n").into())),
            );
            if !request.messages.is_empty() {
                out.push(b',');
            }
        }
    }

    fn message(&self, message: &Message, _: Place, out: &mut Vec<u8>) {
        match message {
            Message::User { content } => json::put(out, &Said::new("user", user(content))),
            Message::Assistant { content } => json::put(out, &self.assistant(content)),
            Message::Tool { results } => json::join(out, &tool(results)),
        }
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::OpenAiDecoder>::default()
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError> {
        decode::parse(body)
    }
}

impl OpenAi {
    fn assistant<'a>(&self, content: &'a [Block]) -> Said<'a> {
        let mut texts = Vec::new();
        let mut thoughts = Vec::new();
        let mut calls = Vec::new();
        for block in content {
            match block {
                Block::Text { text } if text.is_empty() => {}
                Block::Text { text } => texts.push(Cow::Borrowed(text.as_str())),
                Block::Media(media) => texts.push(placeholder::for_media(media).into()),
                Block::Thinking(thinking) if thinking.origin == ORIGIN => {
                    thoughts.push(thinking.text.as_str())
                }
                Block::Thinking(_) => {}
                Block::ToolCall(call) => calls.push(Call::new(call)),
            }
        }
        let text = match (texts.is_empty(), calls.is_empty()) {
            (true, true) => Content::Text(placeholder::NO_ANSWER.into()),
            (true, false) => Content::Null,
            (false, _) => Content::Text(texts.join("\n\n").into()),
        };
        let thought = (!calls.is_empty() && !thoughts.is_empty()).then(|| thoughts.concat());
        let back = |field| {
            thought
                .clone()
                .filter(|_| self.dialect.thinking_back == Some(field))
        };
        Said {
            reasoning_content: back("reasoning_content"),
            reasoning: back("reasoning"),
            tool_calls: calls,
            ..Said::new("assistant", text)
        }
    }
}

/// Budgets as the three grades of `reasoning_effort`.
fn grade(thinking_tokens: u32) -> &'static str {
    match thinking_tokens {
        0..=2048 => "low",
        2049..=8192 => "medium",
        8193.. => "high",
    }
}

fn tools(request: &Request) -> Vec<Tool<'_>> {
    let tools = request.tools.iter().map(|tool| Tool {
        kind: "function",
        function: Function {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    tools.collect()
}

fn user(content: &[Block]) -> Content<'_> {
    let parts: Vec<Part<'_>> = content.iter().filter_map(part).collect();
    let texts: Option<Vec<&str>> = parts.iter().map(Part::as_text).collect();
    match texts {
        Some(texts) if texts.is_empty() => Content::Text(placeholder::NO_INPUT.into()),
        // Plain strings are understood by every server, lists of parts are not.
        Some(texts) => Content::Text(texts.join("\n\n").into()),
        None => Content::Parts(parts),
    }
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => Some(Part::Text { text: text.into() }),
        Block::Media(media) => Some(media_part(media)),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}

fn media_part(media: &Media) -> Part<'_> {
    let url = || format!("data:{};base64,{}", media.mime, media.data);
    let audio = |format| Part::InputAudio {
        input_audio: Audio {
            data: &media.data,
            format,
        },
    };
    match media::kind(media) {
        Kind::Image => Part::ImageUrl {
            image_url: ImageUrl { url: url() },
        },
        Kind::Pdf => {
            let filename = media.name.as_deref().unwrap_or("document.pdf");
            Part::File {
                file: File {
                    filename,
                    file_data: url(),
                },
            }
        }
        Kind::Wav => audio("wav"),
        Kind::Mp3 => audio("mp3"),
        Kind::Text(text) => Part::Text {
            text: media::inline(media, &text).into(),
        },
        Kind::Other => Part::Text {
            text: placeholder::for_media(media).into(),
        },
    }
}

/// Tool messages take only text, so media follow in one user message that says whose they are.
fn tool(results: &[ToolResult]) -> Vec<Said<'_>> {
    let mut said = Vec::with_capacity(results.len());
    let mut shown: Vec<Part<'_>> = Vec::new();
    for result in results {
        let mut texts = Vec::new();
        let mut media = Vec::new();
        for part in result.content.iter().filter_map(part) {
            match part {
                Part::Text { text } => texts.push(text),
                part @ (Part::ImageUrl { .. } | Part::File { .. } | Part::InputAudio { .. }) => {
                    media.push(part)
                }
            }
        }
        if !media.is_empty() {
            texts.push("(the attached media follow in the next user message)".into());
            let id = names::safe(&result.id);
            shown.push(Part::Text {
                text: format!("Media returned by {}, call {id}:", result.name).into(),
            });
            shown.append(&mut media);
        }
        let text = if texts.is_empty() {
            placeholder::NO_OUTPUT.to_owned()
        } else {
            texts.join("\n\n")
        };
        // The protocol has no error flag.
        let marked = result.status.is_error() && !text.starts_with("Error");
        let text = if marked {
            format!("Error: {text}")
        } else {
            text
        };
        said.push(Said {
            tool_call_id: Some(names::safe(&result.id)),
            ..Said::new("tool", Content::Text(text.into()))
        });
    }
    if !shown.is_empty() {
        said.push(Said::new("user", Content::Parts(shown)));
    }
    said
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Reasoning {
    max_tokens: u32,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

impl<'a> Said<'a> {
    fn new(role: &'static str, content: Content<'a>) -> Self {
        Self {
            role,
            tool_call_id: None,
            content,
            reasoning_content: None,
            reasoning: None,
            tool_calls: Vec::new(),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CallFunction<'a>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

impl<'a> Call<'a> {
    fn new(call: &'a ToolCall) -> Self {
        let arguments = if call.args.is_object() {
            call.args.to_string()
        } else {
            "{}".to_owned()
        };
        let function = CallFunction {
            name: names::safe(&call.name),
            arguments,
        };
        Self {
            id: names::safe(&call.id),
            kind: "function",
            function,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    File { file: File<'a> },
    InputAudio { input_audio: Audio<'a> },
}

impl Part<'_> {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::ImageUrl { .. } | Self::File { .. } | Self::InputAudio { .. } => None,
        }
    }
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct File<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

#[cfg(test)]
mod tests;
