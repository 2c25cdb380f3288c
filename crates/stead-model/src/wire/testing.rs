//! What the tests of all wires share: a conversation that uses every feature, and a plain reader of
//! event streams.

use super::{Mode, Wire, encode};
use crate::{Delta, Encoded, ModelError, Request, SystemPart};
use serde_json::{Value, json};
use std::sync::Arc;
use stead_core::{Block, Media, Message, ResultStatus, Risk, Thinking, ToolCall, ToolResult, ToolSpec};

pub(crate) fn body(wire: &dyn Wire, request: &Request, mode: Mode) -> Value {
    serde_json::from_slice(&encode(wire, request, mode)).unwrap()
}

pub(crate) fn request(messages: Vec<Message>) -> Request {
    Request {
        system: vec![
            SystemPart { text: "You are a gardener.".into(), stable: true },
            SystemPart { text: "Today is Monday.".into(), stable: false },
        ],
        tools: Arc::new([ToolSpec {
            name: "ls".into(),
            aliases: vec!["list".into()],
            description: "Lists a folder".into(),
            parameters: Arc::new(json!({"type": "object", "properties": {"path": {"type": "string"}}})),
            risk: Risk::READS,
        }]),
        messages: messages.into_iter().map(Arc::new).collect(),
        ..Request::default()
    }
}

pub(crate) fn media(mime: &str) -> Block {
    Block::Media(Media { mime: mime.into(), data: "QUJD".into(), name: None })
}

pub(crate) fn named(mime: &str, name: &str) -> Block {
    Block::Media(Media { mime: mime.into(), data: "QUJD".into(), name: Some(name.into()) })
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
    Block::ToolCall(ToolCall { id: id.into(), name: "ls".into(), args, invalid: None, signature: None })
}

pub(crate) fn result(id: &str, status: ResultStatus, content: Vec<Block>) -> ToolResult {
    ToolResult { id: id.into(), name: "ls".into(), status, content }
}

/// Reads a stream that ends after its first `cut` bytes: what was emitted, and how it ended.
pub(crate) fn decode(wire: &dyn Wire, stream: &[u8]) -> (Vec<Delta>, Result<(), ModelError>) {
    let mut decoder = wire.decoder();
    let mut deltas = Vec::new();
    // Only events that are complete count; the rest of a cut stream is dropped, as the standard says.
    let text = String::from_utf8_lossy(stream);
    let events = text.split_inclusive("\n\n").filter(|event| event.ends_with("\n\n"));
    for event in events {
        let field = |name| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
        if let Err(error) = decoder.push(field("event:").unwrap_or(""), field("data:").unwrap_or(""), &mut deltas) {
            return (deltas, Err(error));
        }
    }
    let end = decoder.finish(&mut deltas);
    (deltas, end)
}

/// An answer cut at any byte before its end must never look like a whole one.
pub(crate) fn assert_every_cut_is_noticed(wire: &dyn Wire, stream: &str, whole_from: usize) {
    let (all, end) = decode(wire, stream.as_bytes());
    assert_eq!(end, Ok(()));
    let done = |deltas: &[Delta]| deltas.iter().filter(|delta| matches!(delta, Delta::Done(_))).count();
    assert_eq!(done(&all), 1);
    for cut in 0..stream.len() {
        let (deltas, end) = decode(wire, &stream.as_bytes()[..cut]);
        if cut < whole_from {
            assert_eq!((done(&deltas), end), (0, Err(ModelError::Cut)), "cut at byte {cut}");
            assert_eq!(deltas, all[..deltas.len()], "cut at byte {cut}");
        } else {
            assert_eq!((deltas, end), (all.clone(), Ok(())), "cut at byte {cut}");
        }
    }
}

/// Twenty turns: each body up to its closing begins with the one before, and the cached encoding
/// gives the same bytes as a fresh one.
pub(crate) fn assert_bodies_extend(wire: &dyn Wire) {
    let mut request = request(vec![Message::user("begin")]);
    let mut earlier: Option<Vec<u8>> = None;
    for turn in 0..20 {
        let body = encode(wire, &request, Mode::Stream);
        let fresh = Request { encoded: Arc::new(Encoded::default()), ..request.clone() };
        assert_eq!(body, encode(wire, &fresh, Mode::Stream), "turn {turn}");
        if let Some(earlier) = earlier {
            let mut tail = Vec::new();
            wire.tail(&mut tail);
            let open = earlier.strip_suffix(tail.as_slice()).unwrap();
            assert!(body.starts_with(open), "turn {turn} does not extend the one before");
        }
        earlier = Some(body);
        let id = format!("c{turn}");
        request.messages.push(Arc::new(Message::Assistant {
            content: vec![
                thought(wire.origin(), "hm", Some("sig")),
                Block::text(format!("step {turn}")),
                call(&id, "a\"b"),
            ],
        }));
        let content = vec![Block::text("ünï\u{1F600}\n"), media("image/png")];
        request.messages.push(Arc::new(Message::Tool { results: vec![result(&id, ResultStatus::Ok, content)] }));
        if turn % 3 == 0 {
            request.messages.push(Arc::new(Message::user(format!("and {turn}?"))));
        }
    }
}
