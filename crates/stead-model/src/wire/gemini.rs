//! The wire of Google's Gemini API.
//!
//! Calls have no ids here: a response belongs to the call of the same name and position, so none
//! are sent. Thought signatures may be attached to thoughts, calls and texts; that of a text is
//! kept as an empty thought right after it.
//!
//! Effects: none.

mod decode;
#[cfg(test)]
mod tests;

use super::{Decoder, MessagePosition, Wire, WireMode, json, media, names, placeholder};
use crate::{ModelError, Reply, Request, ToolChoice};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, Thinking, ToolCall, ToolResult, ToolSpec};

const ORIGIN: &str = "gemini";

/// Replaces the signature of a call that another model made; the API documents it for this case.
const FOREIGN_CALL_SIGNATURE: &str = "skip_thought_signature_validator";

/// The Gemini API for one model.
#[derive(Debug)]
pub(crate) struct Gemini {
    model: String,
}

impl Gemini {
    pub(crate) fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
        }
    }

    /// Returns whether the model refuses calls without a signature, as all do since Gemini 3.
    fn wants_signatures(&self) -> bool {
        let name = self.model.rsplit('/').next().unwrap_or_default();
        name.starts_with("gemini-")
            && !name.starts_with("gemini-1")
            && !name.starts_with("gemini-2")
    }

    fn assistant<'a>(&self, content: &'a [Block]) -> Vec<GeminiPart<'a>> {
        let mut parts = assistant_parts(content);
        let mut calls = parts.iter_mut().filter(|part| part.function_call.is_some());
        // Of parallel calls only the first is signed.
        if let Some(first) = calls.next()
            && self.wants_signatures()
        {
            first
                .thought_signature
                .get_or_insert(FOREIGN_CALL_SIGNATURE);
        }
        parts
    }
}

impl Wire for Gemini {
    fn origin(&self) -> &'static str {
        ORIGIN
    }

    fn dialect(&self) -> &'static str {
        if self.wants_signatures() {
            "gemini-signed"
        } else {
            ORIGIN
        }
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint(&self, mode: WireMode) -> String {
        let model = &self.model;
        let collection = if model.contains('/') { "" } else { "models/" };
        match mode {
            WireMode::Stream => format!("/{collection}{model}:streamGenerateContent?alt=sse"),
            WireMode::Whole => format!("/{collection}{model}:generateContent"),
        }
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned()))
            .into_iter()
            .collect()
    }

    fn head(&self, request: &Request, _mode: WireMode, out: &mut Vec<u8>) {
        let system: Vec<_> = request
            .system
            .iter()
            .map(|part| GeminiPart::text(&part.text))
            .collect();
        let declarations: Vec<_> = request.tools.iter().map(declaration).collect();
        let forbidden = !declarations.is_empty() && request.params.tool_choice == ToolChoice::None;
        let head = GeminiRequestHead {
            system_instruction: (!system.is_empty()).then_some(GeminiSystem { parts: system }),
            tools: (!declarations.is_empty()).then_some([GeminiTools {
                function_declarations: declarations,
            }]),
            tool_config: forbidden.then_some(GeminiToolConfig {
                function_calling_config: FunctionCallingConfig { mode: "NONE" },
            }),
            generation_config: generation_config(request),
        };
        json::append_open(out, &head, "contents");
    }

    fn message(&self, message: &Message, _place: MessagePosition, out: &mut Vec<u8>) {
        let (role, mut parts, empty) = match message {
            Message::User { content } => ("user", user_parts(content), placeholder::NO_INPUT),
            Message::Assistant { content } => {
                ("model", self.assistant(content), placeholder::NO_ANSWER)
            }
            Message::Tool { results } => {
                ("user", tool_result_parts(results), placeholder::NO_INPUT)
            }
        };
        if parts.is_empty() {
            parts.push(GeminiPart::text(empty));
        }
        json::append(out, &GeminiContent { role, parts });
    }

    fn tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"]}");
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::<decode::GeminiDecoder>::default()
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, ModelError> {
        decode::parse(body)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiRequestHead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiSystem<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[GeminiTools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<GeminiToolConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Serialize)]
struct GeminiSystem<'a> {
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTools<'a> {
    function_declarations: Vec<GeminiFunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiFunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

fn declaration(spec: &ToolSpec) -> GeminiFunctionDeclaration<'_> {
    let ToolSpec {
        name,
        description,
        parameters,
        ..
    } = spec;
    GeminiFunctionDeclaration {
        name,
        description,
        parameters_json_schema: parameters,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiToolConfig {
    function_calling_config: FunctionCallingConfig,
}

#[derive(Serialize)]
struct FunctionCallingConfig {
    mode: &'static str,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<GeminiThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

#[derive(PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiThinkingConfig {
    thinking_budget: u32,
    include_thoughts: bool,
}

fn generation_config(request: &Request) -> Option<GenerationConfig<'_>> {
    let params = &request.params;
    // The API refuses a schema beside tools.
    let schema = params.answer_schema.as_deref();
    let schema = schema.filter(|_| request.tools.is_empty());
    let thinking = |tokens| GeminiThinkingConfig {
        thinking_budget: tokens,
        include_thoughts: tokens > 0,
    };
    let config = GenerationConfig {
        max_output_tokens: params.max_output_tokens,
        temperature: params.temperature,
        thinking_config: params.thinking_tokens.map(thinking),
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema,
    };
    (config != GenerationConfig::default()).then_some(config)
}

#[derive(Serialize)]
struct GeminiContent<'a> {
    role: &'static str,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<GeminiBlob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<GeminiFunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<GeminiFunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

impl<'a> GeminiPart<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    fn media(file: &'a Media) -> Self {
        if let media::MediaFormat::Text(text) = media::media_format(file) {
            return Self::text(media::inline_text(file, &text));
        }
        if !accepts_media(&file.mime) {
            return Self::text(placeholder::for_media(file));
        }
        Self {
            inline_data: Some(GeminiBlob {
                mime_type: &file.mime,
                data: &file.data,
            }),
            ..Self::default()
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiBlob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct GeminiFunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct GeminiFunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: GeminiFunctionResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum GeminiFunctionResult<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

/// Returns whether the API documents this type of media.
fn accepts_media(mime: &str) -> bool {
    match mime.split_once('/') {
        Some(("image", kind)) => matches!(kind, "png" | "jpeg" | "webp" | "heic" | "heif"),
        Some(("audio" | "video", _)) => true,
        Some(("application", kind)) => kind == "pdf",
        Some(_) | None => false,
    }
}

fn user_parts<'a>(content: &'a [Block]) -> Vec<GeminiPart<'a>> {
    let part = |block: &'a Block| match block {
        Block::Text { text } => (!text.is_empty()).then(|| GeminiPart::text(text)),
        Block::Media(media) => Some(GeminiPart::media(media)),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    };
    content.iter().filter_map(part).collect()
}

fn assistant_parts(content: &[Block]) -> Vec<GeminiPart<'_>> {
    let mut parts: Vec<GeminiPart<'_>> = Vec::with_capacity(content.len());
    for block in content {
        match block {
            Block::Text { text } if text.is_empty() => {}
            Block::Text { text } => parts.push(GeminiPart::text(text)),
            Block::Media(media) => parts.push(GeminiPart::media(media)),
            Block::Thinking(thinking) if thinking.origin != ORIGIN => {}
            Block::Thinking(Thinking {
                text, signature, ..
            }) if text.is_empty() => {
                attach_signature(&mut parts, signature.as_deref());
            }
            Block::Thinking(Thinking {
                text, signature, ..
            }) => {
                parts.push(GeminiPart {
                    thought: true,
                    thought_signature: signature.as_deref(),
                    ..GeminiPart::text(text)
                });
            }
            Block::ToolCall(ToolCall {
                name,
                args,
                signature,
                id,
                invalid: _,
            }) => parts.push(GeminiPart {
                function_call: Some(GeminiFunctionCall {
                    id: provider_id(id),
                    name: names::sanitize(name),
                    args: args_object(args),
                }),
                thought_signature: signature.as_deref(),
                ..GeminiPart::default()
            }),
        }
    }
    parts
}

/// Attaches a text's signature: to the text before it, or to an empty one, as it also arrives.
fn attach_signature<'a>(parts: &mut Vec<GeminiPart<'a>>, signature: Option<&'a str>) {
    let Some(signature) = signature else { return };
    match parts.last_mut() {
        Some(part) if part.text.is_some() && !part.thought && part.thought_signature.is_none() => {
            part.thought_signature = Some(signature);
        }
        Some(_) | None => parts.push(GeminiPart {
            thought_signature: Some(signature),
            ..GeminiPart::text("")
        }),
    }
}

/// Returns the id of a call if a provider gave it. Calls without one are answered by their order; the
/// harness numbers them for itself.
fn provider_id(id: &str) -> Option<&str> {
    let number = id.strip_prefix("call_").unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (!id.is_empty() && !is_number).then_some(id)
}

fn args_object(args: &Value) -> Cow<'_, Value> {
    if args.is_object() {
        Cow::Borrowed(args)
    } else {
        Cow::Owned(Value::Object(Default::default()))
    }
}

/// Returns the parts of tool results. All responses come first, one for each call; media follow.
fn tool_result_parts(results: &[ToolResult]) -> Vec<GeminiPart<'_>> {
    let mut parts: Vec<_> = results.iter().map(function_response).collect();
    for (index, result) in results.iter().enumerate() {
        let mut media = result.content.iter().filter_map(media_part).peekable();
        if media.peek().is_some() {
            parts.push(GeminiPart::text(format!(
                "Files of result {} ({}):",
                index + 1,
                result.name
            )));
        }
        parts.extend(media);
    }
    parts
}

fn media_part(block: &Block) -> Option<GeminiPart<'_>> {
    match block {
        Block::Media(media) => Some(GeminiPart::media(media)),
        Block::Text { .. } | Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}

fn function_response(result: &ToolResult) -> GeminiPart<'_> {
    let texts: Vec<&str> = result.content.iter().filter_map(text_of).collect();
    let text = match texts.as_slice() {
        [] => Cow::Borrowed(if result.content.is_empty() {
            placeholder::NO_OUTPUT
        } else {
            "(see the files below)"
        }),
        [text] => Cow::Borrowed(*text),
        texts => Cow::Owned(texts.join("\n\n")),
    };
    let response = if result.status.is_error() {
        GeminiFunctionResult::Error(text)
    } else {
        GeminiFunctionResult::Output(text)
    };
    GeminiPart {
        function_response: Some(GeminiFunctionResponse {
            id: provider_id(&result.id),
            name: names::sanitize(&result.name),
            response,
        }),
        ..GeminiPart::default()
    }
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } if !text.is_empty() => Some(text),
        Block::Text { .. } | Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    }
}
