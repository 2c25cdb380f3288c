//! The Anthropic Messages API.

mod decode;

use super::media::{self, Kind};
use super::{Decoder, Mode, Place, Wire, json, names, placeholder};
use crate::{Caching, ModelError, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, Thinking, ToolCall, ToolResult};

const ORIGIN: &str = "anthropic";
const API_VERSION: &str = "2023-06-01";
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The API refuses smaller thinking budgets.
const MIN_THINKING_TOKENS: u32 = 1024;

/// Speaks the Messages API for one model.
#[derive(Debug)]
pub(crate) struct Anthropic {
    model: String,
}

impl Anthropic {
    pub(crate) fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
        }
    }
}

impl Wire for Anthropic {
    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint(&self, _: Mode) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", API_VERSION.to_owned());
        key.map(|key| ("x-api-key", key.to_owned()))
            .into_iter()
            .chain([version])
            .collect()
    }

    fn head(&self, request: &Request, mode: Mode, out: &mut Vec<u8>) {
        let thinking = budget(request);
        let answer = request
            .params
            .max_output_tokens
            .unwrap_or(DEFAULT_MAX_TOKENS);
        let max_tokens = match thinking {
            Some(budget) if answer <= budget => budget.saturating_add(answer),
            Some(_) | None => answer,
        };
        let head = Head {
            model: &self.model,
            max_tokens,
            stream: mode == Mode::Stream,
            thinking: thinking.map(|budget_tokens| ThinkingConfig {
                kind: "enabled",
                budget_tokens,
            }),
            temperature: request.params.temperature.filter(|_| thinking.is_none()),
            tool_choice: match request.params.tool_choice {
                ToolChoice::None if !request.tools.is_empty() => Some(Choice { kind: "none" }),
                ToolChoice::None | ToolChoice::Auto => None,
            },
            tools: tools(request),
            system: system(request),
        };
        json::open(out, &head, "messages");
    }

    fn message(&self, message: &Message, place: Place, out: &mut Vec<u8>) {
        let (role, nothing, said) = match message {
            Message::User { content } => ("user", placeholder::NO_INPUT, parts(content)),
            Message::Assistant { content } => ("assistant", placeholder::NO_ANSWER, parts(content)),
            Message::Tool { results } => (
                "user",
                placeholder::NO_OUTPUT,
                results.iter().map(result).collect(),
            ),
        };
        let mut parts: Vec<Marked<'_>> = said.into_iter().map(Marked::plain).collect();
        if !parts.iter().any(|marked| marked.part.takes_mark()) {
            parts.push(Marked::plain(Part::text(nothing)));
        }
        if let Place::Last(caching) = place
            && let Some(last) = parts.iter_mut().rfind(|marked| marked.part.takes_mark())
        {
            last.cache_control = CacheControl::of(caching);
        }
        json::put(
            out,
            &Said {
                role,
                content: parts,
            },
        );
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::AnthropicDecoder>::default()
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError> {
        decode::parse(body)
    }
}

/// The thinking budget of a request. Within a tool loop that began without thinking of this wire
/// (another model's turn, before a fallback) the API refuses to switch it on.
fn budget(request: &Request) -> Option<u32> {
    let asked = request
        .params
        .thinking_tokens
        .filter(|tokens| *tokens > 0)?;
    let in_loop = match request.messages.as_slice() {
        [.., said, last] if matches!(**last, Message::Tool { .. }) => Some(&**said),
        _ => None,
    };
    let thought = |said: &Message| match said {
        Message::Assistant { content } => content
            .iter()
            .filter_map(part)
            .next()
            .is_some_and(|p| !p.takes_mark()),
        Message::User { .. } | Message::Tool { .. } => true,
    };
    in_loop
        .is_none_or(thought)
        .then_some(asked.max(MIN_THINKING_TOKENS))
}

fn tools(request: &Request) -> Vec<Tool<'_>> {
    let last = request.tools.len().checked_sub(1);
    let tools = request.tools.iter().enumerate().map(|(i, tool)| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.parameters,
        cache_control: CacheControl::of(request.params.caching).filter(|_| Some(i) == last),
    });
    tools.collect()
}

fn system(request: &Request) -> Vec<Marked<'_>> {
    let parts: Vec<_> = request
        .system
        .iter()
        .filter(|part| !part.text.trim().is_empty())
        .collect();
    let last_stable = parts.iter().rposition(|part| part.stable);
    let marked = parts.iter().enumerate().map(|(i, part)| Marked {
        part: Part::text(part.text.as_str()),
        cache_control: CacheControl::of(request.params.caching).filter(|_| Some(i) == last_stable),
    });
    marked.collect()
}

fn parts(content: &[Block]) -> Vec<Part<'_>> {
    content.iter().filter_map(part).collect()
}

/// A block as the API takes it; none where it must not be sent.
fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(Part::text(text.as_str())),
        Block::Media(media) => Some(media_part(media)),
        Block::Thinking(thinking) => thinking_part(thinking),
        Block::ToolCall(ToolCall { id, name, args, .. }) => Some(Part::ToolUse {
            id: names::safe(id),
            name: names::safe(name),
            input: object(args),
        }),
    }
}

fn thinking_part(thinking: &Thinking) -> Option<Part<'_>> {
    if thinking.origin != ORIGIN {
        return None;
    }
    let signature = thinking
        .signature
        .as_deref()
        .filter(|signature| !signature.is_empty())?;
    Some(match thinking.redacted {
        true => Part::RedactedThinking { data: signature },
        false => Part::Thinking {
            thinking: &thinking.text,
            signature,
        },
    })
}

fn media_part(media: &Media) -> Part<'_> {
    let source = |media_type| Source {
        kind: "base64",
        media_type,
        data: &media.data,
    };
    match media::kind(media) {
        Kind::Image => Part::Image {
            source: source(&media.mime),
        },
        Kind::Pdf => Part::Document {
            source: source("application/pdf"),
            title: media.name.as_deref(),
        },
        Kind::Text(text) => Part::text(media::inline(media, &text)),
        Kind::Wav | Kind::Mp3 | Kind::Other => Part::text(placeholder::for_media(media)),
    }
}

fn result(result: &ToolResult) -> Part<'_> {
    let mut content = parts(&result.content);
    if content.is_empty() {
        content.push(Part::text(placeholder::NO_OUTPUT));
    }
    Part::ToolResult {
        tool_use_id: names::safe(&result.id),
        content,
        is_error: result.status.is_error(),
    }
}

fn object(args: &Value) -> Cow<'_, Value> {
    if args.is_object() {
        Cow::Borrowed(args)
    } else {
        Cow::Owned(Value::Object(serde_json::Map::new()))
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<'a>>,
}

#[derive(Serialize)]
struct ThinkingConfig {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}

#[derive(Serialize)]
struct Choice {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: Vec<Marked<'a>>,
}

/// A part, with or without a caching mark.
#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Marked<'a> {
    fn plain(part: Part<'a>) -> Self {
        Self {
            part,
            cache_control: None,
        }
    }
}

#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    fn of(caching: Caching) -> Option<Self> {
        let ttl = match caching {
            Caching::Off => return None,
            // What the API does by itself.
            Caching::Minutes5 => None,
            Caching::Hour => Some("1h"),
        };
        Some(Self {
            kind: "ephemeral",
            ttl,
        })
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Part<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl<'a> Part<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Thinking can neither carry a caching mark nor make up a message on its own.
    fn takes_mark(&self) -> bool {
        match self {
            Self::Thinking { .. } | Self::RedactedThinking { .. } => false,
            Self::Text { .. }
            | Self::Image { .. }
            | Self::Document { .. }
            | Self::ToolUse { .. }
            | Self::ToolResult { .. } => true,
        }
    }
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[cfg(test)]
mod tests;
