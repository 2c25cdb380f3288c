//! Tests of every wire: request bodies extend each other, the cache changes no body, and a stream
//! has the same meaning however its bytes are split.

use super::anthropic::Anthropic;
use super::gemini::Gemini;
use super::openai::{ChatDialect, EffortField, LimitField, OpenAi};
use super::responses::Responses;
use super::testing::{call, encode_alone, media, named, request, result, thought};
use super::{Encoding, Wire, WireMode, encode};
use crate::model::NewestHead;
use crate::sse::SseParser;
use crate::{Delta, Encoded, ModelError, Request};
use proptest::prelude::*;
use std::sync::Arc;
use stead_core::{Block, Message, ResultStatus, Risk, ToolSpec};

pub(super) const DEEPSEEK: ChatDialect = ChatDialect {
    name: "deepseek",
    limit: LimitField::MaxTokens,
    effort: EffortField::Grade,
    thinking_back: Some("reasoning_content"),
};

fn wires() -> [Box<dyn Wire>; 4] {
    [
        Box::new(Anthropic::new("m")),
        Box::new(OpenAi::new("m", DEEPSEEK)),
        Box::new(Responses::new("m")),
        Box::new(Gemini::new("m")),
    ]
}

/// Reads a stream that arrives in `pieces`. Returns the deltas and how it ended.
pub(super) fn read(wire: &dyn Wire, pieces: &[&[u8]]) -> (Vec<Delta>, Result<(), ModelError>) {
    let mut parser = SseParser::default();
    let mut decoder = wire.decoder();
    let mut deltas = Vec::new();
    let mut sink = |event: &str, data: &str| decoder.push(event, data, &mut deltas);
    let pushed = pieces
        .iter()
        .try_for_each(|piece| parser.push(piece, &mut sink))
        .and_then(|()| parser.finish(&mut sink));
    let ended = pushed.and_then(|()| decoder.finish(&mut deltas));
    (deltas, ended)
}

/// Splits a stream at every byte, then cuts it at every byte. A cut stream is an error; from
/// `whole_from` on, where the terminal event is complete, it is the same answer.
pub(super) fn assert_splits_and_cuts(
    wire: &dyn Wire,
    stream: &str,
    whole_from: usize,
) -> Vec<Delta> {
    let bytes = stream.as_bytes();
    let whole = read(wire, &[bytes]);
    assert_eq!(whole.1, Ok(()));
    let Some(Delta::Done(_)) = whole.0.last() else {
        panic!("no end: {whole:?}")
    };
    assert_eq!(read(wire, &bytes.chunks(1).collect::<Vec<_>>()), whole);
    for at in 0..bytes.len() {
        assert_eq!(
            read(wire, &[&bytes[..at], &bytes[at..]]),
            whole,
            "split at byte {at}"
        );
        let (deltas, ended) = read(wire, &[&bytes[..at]]);
        if at >= whole_from {
            assert_eq!((deltas, ended), whole, "cut at byte {at}");
        } else {
            assert!(
                matches!(ended, Err(ModelError::Cut | ModelError::Protocol(_))),
                "cut at byte {at}: {ended:?}"
            );
            assert!(
                !deltas.iter().any(|delta| matches!(delta, Delta::Done(_))),
                "cut at byte {at}"
            );
            assert_eq!(deltas, whole.0[..deltas.len()], "cut at byte {at}");
        }
    }
    assert_damage_is_survived(wire, bytes);
    whole.0
}

/// Corrupts one byte at a time. The result is an end without a panic, and at most one answer.
fn assert_damage_is_survived(wire: &dyn Wire, stream: &[u8]) {
    for at in (0..stream.len()).step_by(3) {
        for byte in *b"\"}[0\n\xff" {
            let broken = [&stream[..at], &[byte], &stream[at + 1..]].concat();
            let (deltas, _) = read(wire, &[&broken]);
            assert!(
                deltas
                    .iter()
                    .filter(|delta| matches!(delta, Delta::Done(_)))
                    .count()
                    <= 1
            );
        }
    }
}

/// Joins events into a stream, each with its name taken from its `type`.
pub(super) fn events(list: &[serde_json::Value]) -> String {
    list.iter().fold(String::new(), |stream, event| {
        match event.get("type").and_then(|kind| kind.as_str()) {
            Some(kind) => format!("{stream}event: {kind}\ndata: {event}\n\n"),
            None => format!("{stream}data: {event}\n\n"),
        }
    })
}

fn turn(origin: &str, n: usize) -> Vec<Message> {
    let id = format!("c{n}");
    let said = vec![
        thought(origin, "hm", Some("sig")),
        Block::text(format!("step {n}")),
        call(&id, "a\"b"),
    ];
    let found = vec![Block::text("ünï\u{1F600}\n"), media("image/png")];
    vec![
        Message::user(format!("question {n}")),
        Message::Assistant { content: said },
        Message::Tool {
            results: vec![result(&id, ResultStatus::Ok, found)],
        },
    ]
}

#[test]
fn each_turns_body_extends_the_one_before() {
    // The cache mark of a message moves on with the conversation; nothing else may change.
    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
    for wire in wires() {
        let mut asked = request(vec![Message::user("begin")]);
        let mut before = String::new();
        for n in 0..20 {
            let mut tail = Vec::new();
            wire.tail(&mut tail);
            let body =
                String::from_utf8(encode_alone(wire.as_ref(), &asked, WireMode::Stream)).unwrap();
            let open = body
                .strip_suffix(std::str::from_utf8(&tail).unwrap())
                .unwrap()
                .to_owned();
            let (head, messages) = open.split_once(r#""messages":["#).unwrap_or((&open, ""));
            let unmarked = format!("{head}{}", messages.replace(MARK, ""));
            assert!(unmarked.starts_with(&before), "turn {n} of {wire:?}");
            assert!(messages.matches(MARK).count() <= 1);
            before = unmarked;
            asked
                .messages
                .extend(turn(wire.origin(), n).into_iter().map(Arc::new));
        }
    }
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = prop_oneof![Just(String::new()), Just(" \n".to_owned()), ".{0,12}"];
    let block = prop_oneof![
        text.prop_map(Block::text),
        Just(media("image/png")),
        Just(media("video/mp4")),
        Just(named("application/pdf", "a.pdf")),
        Just(named("text/plain", "a.txt")),
        Just(thought("openai", "hm", None)),
        Just(thought("anthropic", "hm", Some("sig"))),
        Just(thought("anthropic", "", Some("data"))),
        Just(call("c1", ".")),
    ];
    let content = prop::collection::vec(block, 0..4);
    let tool = |content| Message::Tool {
        results: vec![result("c1", ResultStatus::Error, content)],
    };
    prop_oneof![
        content
            .clone()
            .prop_map(|content| Message::User { content }),
        content
            .clone()
            .prop_map(|content| Message::Assistant { content }),
        content.prop_map(tool),
    ]
}

#[test]
fn sessions_share_the_beginning_of_their_requests_where_it_is_the_same() {
    for wire in wires() {
        let newest_head = NewestHead::default();
        let head_of = |request: &Request| {
            let encoding = Encoding::new(WireMode::Stream, None, &newest_head);
            let body = encode(wire.as_ref(), request, encoding);
            assert_eq!(
                body,
                encode_alone(wire.as_ref(), request, WireMode::Stream),
                "{wire:?}"
            );
            let prefix = request.encoded.0.lock().unwrap();
            prefix.head.as_ref().unwrap().bytes.clone()
        };
        // Each session has composed its prompt and tools by itself.
        let first = request(vec![Message::user("one")]);
        let second = Request {
            encoded: Arc::default(),
            ..request(vec![Message::user("two")])
        };
        assert!(!Arc::ptr_eq(&first.tools, &second.tools));
        assert!(Arc::ptr_eq(&head_of(&first), &head_of(&second)), "{wire:?}");
        let other_prompt = Request {
            system: first.system[..1].into(),
            ..request(vec![Message::user("three")])
        };
        let other_tools = Request {
            tools: Arc::new([ToolSpec::new("ls", "Lists it all", Risk::READS)]),
            ..request(vec![Message::user("four")])
        };
        for other in [other_prompt, other_tools] {
            assert!(!Arc::ptr_eq(&head_of(&first), &head_of(&other)), "{wire:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    /// Appends, cuts back and changes messages in the middle, and switches wires.
    #[test]
    fn the_cache_never_changes_a_body(
        steps in prop::collection::vec((0usize..4, 0usize..8, prop::collection::vec(any_message(), 0..4)), 1..8)
    ) {
        let mut asked = request(Vec::new());
        let wires = wires();
        let newest_heads = wires.each_ref().map(|_| NewestHead::default());
        for (wire, keep, new) in steps {
            let messages = asked.messages.iter().take(keep).cloned().chain(new.into_iter().map(Arc::new));
            asked = Request { messages: messages.collect(), ..asked };
            let fresh = Request { encoded: Arc::new(Encoded::default()), ..asked.clone() };
            let encoding = Encoding::new(WireMode::Stream, None, &newest_heads[wire]);
            let cached = encode(wires[wire].as_ref(), &asked, encoding);
            prop_assert_eq!(&cached, &encode_alone(wires[wire].as_ref(), &fresh, WireMode::Stream));
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&cached).is_ok());
        }
    }
}
