//! Shared support for the tests of all wires: a sample conversation.

use super::{Encoding, Wire, WireMode, encode};
use crate::model::NewestHead;
use crate::{Params, Request, SystemPart, ToolChoice};
use serde_json::{Value, json};
use std::sync::Arc;
use stead_core::{
    Block, Media, Message, ResultStatus, Risk, Thinking, ToolCall, ToolResult, ToolSpec,
};

/// Encodes a request whose beginning no other session shares.
pub(crate) fn encode_alone(wire: &dyn Wire, request: &Request, mode: WireMode) -> Vec<u8> {
    encode(
        wire,
        request,
        Encoding::new(mode, None, &NewestHead::default()),
    )
}

pub(crate) fn body(wire: &dyn Wire, request: &Request, mode: WireMode) -> Value {
    serde_json::from_slice(&encode_alone(wire, request, mode)).unwrap()
}

pub(crate) fn request(messages: Vec<Message>) -> Request {
    Request {
        system: vec![
            SystemPart {
                text: "You are a gardener.".into(),
                stable: true,
            },
            SystemPart {
                text: "Today is Monday.".into(),
                stable: false,
            },
        ]
        .into(),
        tools: Arc::new([ToolSpec::new("ls", "Lists a folder", Risk::READS)
            .with_aliases(["list"])
            .with_parameters(
                json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            )]),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..Request::default()
    }
}

/// Returns the body of a request with parameters, byte for byte.
pub(crate) fn sample_body(wire: &dyn Wire) -> String {
    let mut request = request(vec![Message::user("hi")]);
    request.params = Params {
        max_output_tokens: Some(512),
        temperature: Some(0.5),
        thinking_tokens: Some(8_000),
        tool_choice: ToolChoice::None,
        ..Params::default()
    };
    String::from_utf8(encode_alone(wire, &request, WireMode::Stream)).unwrap()
}

pub(crate) fn media(mime: &str) -> Block {
    Block::Media(Media::inline(mime, "QUJD", None))
}

pub(crate) fn named(mime: &str, name: &str) -> Block {
    Block::Media(Media::inline(mime, "QUJD", Some(name.into())))
}

pub(crate) fn thought(origin: &str, text: &str, signature: Option<&str>) -> Block {
    Block::Thinking(Thinking {
        text: text.into(),
        signature: signature.map(Into::into),
        redacted: text.is_empty(),
        origin: origin.into(),
        ..Thinking::default()
    })
}

pub(crate) fn call(id: &str, path: &str) -> Block {
    let args = json!({ "path": path });
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: "ls".into(),
        args,
        invalid: None,
        signature: None,
    })
}

pub(crate) fn result(id: &str, status: ResultStatus, content: Vec<Block>) -> ToolResult {
    ToolResult {
        id: id.into(),
        name: "ls".into(),
        status,
        exit_code: None,
        content,
        seq: 0,
    }
}
