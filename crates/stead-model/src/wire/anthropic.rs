//! The wire of Anthropic's Messages API.
//!
//! Effects: none.

mod decode;

use super::media::{self, MediaFormat};
use super::{Decoder, MessagePosition, Wire, WireMode, json, names, placeholder};
use crate::{Caching, ModelError, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, Thinking, ToolCall, ToolResult};

const ORIGIN: &str = "anthropic";
const API_VERSION: &str = "2023-06-01";
/// The longest answer of a model of which that is not known.
const DEFAULT_MAX_TOKENS: u32 = 8192;
/// The longest answer that is asked for as a whole: the API wants longer ones to be streamed.
const MAX_WHOLE_TOKENS: u32 = 21_333;
/// The API refuses smaller thinking budgets.
const MIN_THINKING_TOKENS: u32 = 1024;

/// The Messages API for one model.
#[derive(Debug)]
pub(crate) struct Anthropic {
    model: String,
    /// The longest answer of the model. The API needs a limit in every request.
    longest_answer: u32,
}

impl Anthropic {
    pub(crate) fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            longest_answer: DEFAULT_MAX_TOKENS,
        }
    }

    /// Returns this wire for a model whose longest answer is known.
    pub(crate) fn with_longest_answer(self, tokens: Option<u64>) -> Self {
        let tokens = tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
        Self {
            longest_answer: tokens.unwrap_or(self.longest_answer),
            ..self
        }
    }

    /// Returns the longest answer that fits where no limit is asked for.
    fn answer_limit(&self, request: &Request, mode: WireMode) -> u32 {
        let most = match mode {
            WireMode::Stream => u32::MAX,
            WireMode::Whole => MAX_WHOLE_TOKENS,
        };
        let room = request.params.answer_room.unwrap_or(u32::MAX);
        self.longest_answer.min(most).min(room)
    }
}

impl Wire for Anthropic {
    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint(&self, _: WireMode) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", API_VERSION.to_owned());
        key.map(|key| ("x-api-key", key.to_owned()))
            .into_iter()
            .chain([version])
            .collect()
    }

    fn head(&self, request: &Request, mode: WireMode, out: &mut Vec<u8>) {
        let thinking = thinking_budget(request);
        let answer = request
            .params
            .max_output_tokens
            .unwrap_or_else(|| self.answer_limit(request, mode));
        let max_tokens = match thinking {
            Some(budget) if answer <= budget => budget.saturating_add(answer),
            Some(_) | None => answer,
        };
        let head = AnthropicRequestHead {
            model: &self.model,
            max_tokens,
            stream: mode == WireMode::Stream,
            thinking: thinking.map(|budget_tokens| AnthropicThinkingConfig {
                kind: "enabled",
                budget_tokens,
            }),
            temperature: request.params.temperature.filter(|_| thinking.is_none()),
            tool_choice: match request.params.tool_choice {
                ToolChoice::None if !request.tools.is_empty() => {
                    Some(AnthropicToolChoice { kind: "none" })
                }
                ToolChoice::None | ToolChoice::Auto => None,
            },
            tools: tools(request),
            system: system(request),
        };
        json::append_open(out, &head, "messages");
    }

    fn message(&self, message: &Message, place: MessagePosition, out: &mut Vec<u8>) {
        let (role, nothing, said) = match message {
            Message::User { content } => ("user", placeholder::NO_INPUT, to_contents(content)),
            Message::Assistant { content } => {
                ("assistant", placeholder::NO_ANSWER, to_contents(content))
            }
            Message::Tool { results } => (
                "user",
                placeholder::NO_OUTPUT,
                results.iter().map(tool_result_content).collect(),
            ),
        };
        let mut parts: Vec<AnthropicBlock<'_>> =
            said.into_iter().map(AnthropicBlock::plain).collect();
        if !parts
            .iter()
            .any(|marked| marked.part.can_carry_cache_control())
        {
            parts.push(AnthropicBlock::plain(AnthropicContent::text(nothing)));
        }
        if let MessagePosition::Last(caching) = place
            && let Some(last) = parts
                .iter_mut()
                .rfind(|marked| marked.part.can_carry_cache_control())
        {
            last.cache_control = CacheControl::of(caching);
        }
        json::append(
            out,
            &AnthropicMessage {
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

/// Returns the thinking budget of a request. Within a tool loop that began without thinking of this
/// wire (another model's answer, before a fallback) the API refuses to enable it.
fn thinking_budget(request: &Request) -> Option<u32> {
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
            .filter_map(to_content)
            .next()
            .is_some_and(|p| !p.can_carry_cache_control()),
        Message::User { .. } | Message::Tool { .. } => true,
    };
    in_loop
        .is_none_or(thought)
        .then_some(asked.max(MIN_THINKING_TOKENS))
}

fn tools(request: &Request) -> Vec<AnthropicTool<'_>> {
    let last = request.tools.len().checked_sub(1);
    let tools = request
        .tools
        .iter()
        .enumerate()
        .map(|(i, tool)| AnthropicTool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: CacheControl::of(request.params.caching).filter(|_| Some(i) == last),
        });
    tools.collect()
}

fn system(request: &Request) -> Vec<AnthropicBlock<'_>> {
    let parts: Vec<_> = request
        .system
        .iter()
        .filter(|part| !part.text.trim().is_empty())
        .collect();
    let last_stable = parts.iter().rposition(|part| part.stable);
    let marked = parts.iter().enumerate().map(|(i, part)| AnthropicBlock {
        part: AnthropicContent::text(part.text.as_str()),
        cache_control: CacheControl::of(request.params.caching).filter(|_| Some(i) == last_stable),
    });
    marked.collect()
}

fn to_contents(content: &[Block]) -> Vec<AnthropicContent<'_>> {
    content.iter().filter_map(to_content).collect()
}

/// Converts a block, or returns `None` if it must not be sent.
fn to_content(block: &Block) -> Option<AnthropicContent<'_>> {
    match block {
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(AnthropicContent::text(text.as_str())),
        Block::Media(media) => Some(media_content(media)),
        Block::Thinking(thinking) => thinking_content(thinking),
        Block::ToolCall(ToolCall { id, name, args, .. }) => Some(AnthropicContent::ToolUse {
            id: names::sanitize(id),
            name: names::sanitize(name),
            input: args_object(args),
        }),
    }
}

fn thinking_content(thinking: &Thinking) -> Option<AnthropicContent<'_>> {
    if thinking.origin != ORIGIN {
        return None;
    }
    let signature = thinking
        .signature
        .as_deref()
        .filter(|signature| !signature.is_empty())?;
    Some(match thinking.redacted {
        true => AnthropicContent::RedactedThinking { data: signature },
        false => AnthropicContent::Thinking {
            thinking: &thinking.text,
            signature,
        },
    })
}

fn media_content(media: &Media) -> AnthropicContent<'_> {
    let source = |media_type| AnthropicMediaSource {
        kind: "base64",
        media_type,
        data: &media.data,
    };
    match media::media_format(media) {
        MediaFormat::Image => AnthropicContent::Image {
            source: source(&media.mime),
        },
        MediaFormat::Pdf => AnthropicContent::Document {
            source: source("application/pdf"),
            title: media.name.as_deref(),
        },
        MediaFormat::Text(text) => AnthropicContent::text(media::inline_text(media, &text)),
        MediaFormat::Wav | MediaFormat::Mp3 | MediaFormat::Other => {
            AnthropicContent::text(placeholder::for_media(media))
        }
    }
}

fn tool_result_content(result: &ToolResult) -> AnthropicContent<'_> {
    let mut content = to_contents(&result.content);
    if content.is_empty() {
        content.push(AnthropicContent::text(placeholder::NO_OUTPUT));
    }
    AnthropicContent::ToolResult {
        tool_use_id: names::sanitize(&result.id),
        content,
        is_error: result.status.is_error(),
    }
}

fn args_object(args: &Value) -> Cow<'_, Value> {
    if args.is_object() {
        Cow::Borrowed(args)
    } else {
        Cow::Owned(Value::Object(serde_json::Map::new()))
    }
}

#[derive(Serialize)]
struct AnthropicRequestHead<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<AnthropicThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<AnthropicToolChoice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<AnthropicTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<AnthropicBlock<'a>>,
}

#[derive(Serialize)]
struct AnthropicThinkingConfig {
    #[serde(rename = "type")]
    kind: &'static str,
    budget_tokens: u32,
}

#[derive(Serialize)]
struct AnthropicToolChoice {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct AnthropicMessage<'a> {
    role: &'static str,
    content: Vec<AnthropicBlock<'a>>,
}

/// A part, with or without a cache mark.
#[derive(Serialize)]
struct AnthropicBlock<'a> {
    #[serde(flatten)]
    part: AnthropicContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> AnthropicBlock<'a> {
    fn plain(part: AnthropicContent<'a>) -> Self {
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
            // The default of the API.
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
enum AnthropicContent<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: AnthropicMediaSource<'a>,
    },
    Document {
        source: AnthropicMediaSource<'a>,
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
        content: Vec<AnthropicContent<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

impl<'a> AnthropicContent<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns whether a block can carry a cache mark. Thinking can neither carry one nor be the
    /// only block of a message.
    fn can_carry_cache_control(&self) -> bool {
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
struct AnthropicMediaSource<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[cfg(test)]
mod tests;
