//! The wire of OpenAI's Chat Completions, and of everything compatible with it.
//!
//! Effects: none.

mod decode;

use super::answer_schema::NamedSchema;
use super::media::{self, MediaFormat};
use super::{Decoder, MessagePosition, Wire, WireMode, json, names, placeholder};
use crate::{ModelError, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, ToolCall, ToolResult};

const ORIGIN: &str = "openai";

/// The differences between compatible servers, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChatDialect {
    /// The name of the dialect.
    pub(crate) name: &'static str,
    /// The field for the maximum length of an answer.
    pub(crate) limit: LimitField,
    /// The field that requests thinking.
    pub(crate) effort: EffortField,
    /// The field in which earlier thinking is sent back with its calls, if the server wants it.
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

/// Chat Completions for one model.
#[derive(Debug)]
pub(crate) struct OpenAi {
    model: String,
    dialect: ChatDialect,
}

impl OpenAi {
    pub(crate) fn new(model: impl Into<String>, dialect: ChatDialect) -> Self {
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

    fn endpoint(&self, _: WireMode) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}")))
            .into_iter()
            .collect()
    }

    fn head(&self, request: &Request, mode: WireMode, out: &mut Vec<u8>) {
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
        let head = ChatRequestHead {
            model: &self.model,
            stream: mode == WireMode::Stream,
            stream_options: (mode == WireMode::Stream).then_some(StreamOptions {
                include_usage: true,
            }),
            max_tokens: limit(LimitField::MaxTokens),
            max_completion_tokens: limit(LimitField::MaxCompletionTokens),
            temperature: params.temperature,
            reasoning_effort: effort(EffortField::Grade).map(reasoning_effort),
            reasoning: effort(EffortField::Budget).map(|max_tokens| ChatReasoning { max_tokens }),
            tool_choice: match params.tool_choice {
                ToolChoice::None if !request.tools.is_empty() => Some("none"),
                ToolChoice::None | ToolChoice::Auto => None,
            },
            tools: tools(request),
            response_format: params
                .answer_schema
                .as_deref()
                .filter(|_| KNOWS_SCHEMAS.contains(&self.dialect.name))
                .map(|schema| ChatResponseFormat {
                    kind: "json_schema",
                    json_schema: NamedSchema::new(schema),
                }),
        };
        json::append_open(out, &head, "messages");
        let system: Vec<&str> = request
            .system
            .iter()
            .map(|part| part.text.as_str())
            .filter(|t| !t.is_empty())
            .collect();
        if !system.is_empty() {
            json::append(
                out,
                &ChatMessage::new("system", ChatContent::Text(system.join("\n\n").into())),
            );
            if !request.messages.is_empty() {
                out.push(b',');
            }
        }
    }

    fn message(&self, message: &Message, _: MessagePosition, out: &mut Vec<u8>) {
        match message {
            Message::User { content } => {
                json::append(out, &ChatMessage::new("user", user_content(content)))
            }
            Message::Assistant { content } => json::append(out, &self.assistant(content)),
            Message::Tool { results } => json::append_joined(out, &tool_messages(results)),
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
    fn assistant<'a>(&self, content: &'a [Block]) -> ChatMessage<'a> {
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
                Block::ToolCall(call) => calls.push(ChatToolCall::new(call)),
            }
        }
        let text = match (texts.is_empty(), calls.is_empty()) {
            (true, true) => ChatContent::Text(placeholder::NO_ANSWER.into()),
            (true, false) => ChatContent::Null,
            (false, _) => ChatContent::Text(texts.join("\n\n").into()),
        };
        let thought = (!calls.is_empty() && !thoughts.is_empty()).then(|| thoughts.concat());
        let back = |field| {
            thought
                .clone()
                .filter(|_| self.dialect.thinking_back == Some(field))
        };
        ChatMessage {
            reasoning_content: back("reasoning_content"),
            reasoning: back("reasoning"),
            tool_calls: calls,
            ..ChatMessage::new("assistant", text)
        }
    }
}

/// Converts a budget to the three grades of `reasoning_effort`.
fn reasoning_effort(thinking_tokens: u32) -> &'static str {
    match thinking_tokens {
        0..=2048 => "low",
        2049..=8192 => "medium",
        8193.. => "high",
    }
}

fn tools(request: &Request) -> Vec<ChatTool<'_>> {
    let tools = request.tools.iter().map(|tool| ChatTool {
        kind: "function",
        function: ChatFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    tools.collect()
}

fn user_content(content: &[Block]) -> ChatContent<'_> {
    let parts: Vec<ChatContentPart<'_>> = content.iter().filter_map(content_part).collect();
    let texts: Option<Vec<&str>> = parts.iter().map(ChatContentPart::as_text).collect();
    match texts {
        Some(texts) if texts.is_empty() => ChatContent::Text(placeholder::NO_INPUT.into()),
        // Every server accepts plain strings, but not lists of parts.
        Some(texts) => ChatContent::Text(texts.join("\n\n").into()),
        None => ChatContent::Parts(parts),
    }
}

fn content_part(block: &Block) -> Option<ChatContentPart<'_>> {
    match block {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => Some(ChatContentPart::Text { text: text.into() }),
        Block::Media(media) => Some(media_part(media)),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}

fn media_part(media: &Media) -> ChatContentPart<'_> {
    let url = || format!("data:{};base64,{}", media.mime, media.data);
    let audio = |format| ChatContentPart::InputAudio {
        input_audio: ChatAudio {
            data: &media.data,
            format,
        },
    };
    match media::media_format(media) {
        MediaFormat::Image => ChatContentPart::ImageUrl {
            image_url: ChatImageUrl { url: url() },
        },
        MediaFormat::Pdf => {
            let filename = media.name.as_deref().unwrap_or("document.pdf");
            ChatContentPart::File {
                file: ChatFile {
                    filename,
                    file_data: url(),
                },
            }
        }
        MediaFormat::Wav => audio("wav"),
        MediaFormat::Mp3 => audio("mp3"),
        MediaFormat::Text(text) => ChatContentPart::Text {
            text: media::inline_text(media, &text).into(),
        },
        MediaFormat::Other => ChatContentPart::Text {
            text: placeholder::for_media(media).into(),
        },
    }
}

/// Converts tool results. Tool messages take only text, so media follow in one user message that
/// names their calls.
fn tool_messages(results: &[ToolResult]) -> Vec<ChatMessage<'_>> {
    let mut said = Vec::with_capacity(results.len());
    let mut shown: Vec<ChatContentPart<'_>> = Vec::new();
    for result in results {
        let mut texts = Vec::new();
        let mut media = Vec::new();
        for part in result.content.iter().filter_map(content_part) {
            match part {
                ChatContentPart::Text { text } => texts.push(text),
                part @ (ChatContentPart::ImageUrl { .. }
                | ChatContentPart::File { .. }
                | ChatContentPart::InputAudio { .. }) => media.push(part),
            }
        }
        if !media.is_empty() {
            texts.push("(the attached media follow in the next user message)".into());
            let id = names::sanitize(&result.id);
            shown.push(ChatContentPart::Text {
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
        said.push(ChatMessage {
            tool_call_id: Some(names::sanitize(&result.id)),
            ..ChatMessage::new("tool", ChatContent::Text(text.into()))
        });
    }
    if !shown.is_empty() {
        said.push(ChatMessage::new("user", ChatContent::Parts(shown)));
    }
    said
}

#[derive(Serialize)]
struct ChatRequestHead<'a> {
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
    reasoning: Option<ChatReasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ChatResponseFormat<'a>>,
}

/// The dialects whose endpoints take the schema of an answer.
const KNOWS_SCHEMAS: [&str; 5] = ["openai", "ollama", "vllm", "llamacpp", "lmstudio"];

#[derive(Serialize)]
struct ChatResponseFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ChatReasoning {
    max_tokens: u32,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: ChatContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
}

impl<'a> ChatMessage<'a> {
    fn new(role: &'static str, content: ChatContent<'a>) -> Self {
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
enum ChatContent<'a> {
    Null,
    Text(Cow<'a, str>),
    Parts(Vec<ChatContentPart<'a>>),
}

#[derive(Serialize)]
struct ChatToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: ChatCallFunction<'a>,
}

#[derive(Serialize)]
struct ChatCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

impl<'a> ChatToolCall<'a> {
    fn new(call: &'a ToolCall) -> Self {
        let arguments = if call.args.is_object() {
            call.args.to_string()
        } else {
            "{}".to_owned()
        };
        let function = ChatCallFunction {
            name: names::sanitize(&call.name),
            arguments,
        };
        Self {
            id: names::sanitize(&call.id),
            kind: "function",
            function,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ChatImageUrl },
    File { file: ChatFile<'a> },
    InputAudio { input_audio: ChatAudio<'a> },
}

impl ChatContentPart<'_> {
    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::ImageUrl { .. } | Self::File { .. } | Self::InputAudio { .. } => None,
        }
    }
}

#[derive(Serialize)]
struct ChatImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ChatFile<'a> {
    filename: &'a str,
    file_data: String,
}

#[derive(Serialize)]
struct ChatAudio<'a> {
    data: &'a str,
    format: &'static str,
}

#[cfg(test)]
mod tests;
