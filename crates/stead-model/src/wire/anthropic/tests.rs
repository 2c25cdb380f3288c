use super::*;
use crate::wire::testing::{body, call, media, named, request, result, thought};
use crate::wire::tests::{assert_splits_and_cuts, events, read};
use crate::{Delta, Params};
use serde_json::json;
use stead_core::{ResultStatus, StopReason, Usage};

fn wire() -> Anthropic {
    Anthropic::new("claude")
}

fn messages(list: Vec<Message>) -> Value {
    body(&wire(), &request(list), WireMode::Stream)["messages"].clone()
}

#[test]
fn a_request_marks_the_tools_the_stable_system_and_the_last_message() {
    let asked = request(vec![
        Message::user("look"),
        Message::Assistant {
            content: vec![
                thought("anthropic", "hm", Some("sig")),
                thought("anthropic", "", Some("data")),
                Block::text("I look."),
                call("c1", "."),
            ],
        },
        Message::Tool {
            results: vec![result(
                "c1",
                ResultStatus::Ok,
                vec![Block::text("a b"), media("image/png")],
            )],
        },
    ]);
    let want = json!({
        "model": "claude",
        "max_tokens": 8192,
        "stream": true,
        "tools": [{
            "name": "ls",
            "description": "Lists a folder",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            "cache_control": {"type": "ephemeral"},
        }],
        "system": [
            {"type": "text", "text": "You are a gardener.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Today is Monday."},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "data"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
            ]},
            {"role": "user", "content": [{
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": [
                    {"type": "text", "text": "a b"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                ],
                "cache_control": {"type": "ephemeral"},
            }]},
        ],
    });
    assert_eq!(body(&wire(), &asked, WireMode::Stream), want);
}

#[test]
fn what_the_api_cannot_take_is_told_or_left_out() {
    let mark = json!({"type": "ephemeral"});
    let cases: Vec<(Message, Value)> = vec![
        (
            Message::User {
                content: vec![named("application/pdf", "a.pdf")],
            },
            json!([{
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "QUJD"},
                "title": "a.pdf",
                "cache_control": mark,
            }]),
        ),
        (
            Message::User {
                content: vec![named("text/plain", "a.txt")],
            },
            json!([{"type": "text", "text": "a.txt (text/plain):\nABC", "cache_control": mark}]),
        ),
        (
            Message::User {
                content: vec![media("audio/wav")],
            },
            json!([{
                "type": "text",
                "text": "[a file of type audio/wav is not shown: this model cannot read it]",
                "cache_control": mark,
            }]),
        ),
        (
            Message::User {
                content: vec![Block::text(" ")],
            },
            json!([{"type": "text", "text": "(no content)", "cache_control": mark}]),
        ),
        (
            Message::Assistant {
                content: vec![
                    thought("openai", "hm", None),
                    thought("anthropic", "hm", None),
                ],
            },
            json!([{"type": "text", "text": "(no visible answer)", "cache_control": mark}]),
        ),
        (
            Message::Assistant {
                content: vec![Block::text("x"), thought("anthropic", "hm", Some("s"))],
            },
            json!([
                {"type": "text", "text": "x", "cache_control": mark},
                {"type": "thinking", "thinking": "hm", "signature": "s"},
            ]),
        ),
        (
            Message::Tool {
                results: vec![result("a.b", ResultStatus::Error, vec![])],
            },
            json!([{
                "type": "tool_result",
                "tool_use_id": "a_2eb",
                "content": [{"type": "text", "text": "(no output)"}],
                "is_error": true,
                "cache_control": mark,
            }]),
        ),
    ];
    for (message, want) in cases {
        assert_eq!(messages(vec![message])[0]["content"], want);
    }
}

#[test]
fn thinking_makes_room_for_itself_and_forbids_temperature() {
    let head = |params: Params, list: Vec<Message>| {
        let body = body(
            &wire(),
            &Request {
                params,
                ..request(list)
            },
            WireMode::Whole,
        );
        [
            "max_tokens",
            "thinking",
            "temperature",
            "tool_choice",
            "stream",
        ]
        .map(|key| body[key].clone())
    };
    let thinking = |tokens| Params {
        thinking_tokens: Some(tokens),
        temperature: Some(0.5),
        ..Params::default()
    };
    let on = |budget: u32| json!({"type": "enabled", "budget_tokens": budget});
    let hi = || vec![Message::user("hi")];
    let foreign = vec![
        Message::user("hi"),
        Message::Assistant {
            content: vec![call("c1", ".")],
        },
        Message::Tool {
            results: vec![result("c1", ResultStatus::Ok, vec![])],
        },
    ];
    let none = Value::Null;
    assert_eq!(
        head(thinking(4000), hi()),
        [
            json!(8192),
            on(4000),
            none.clone(),
            none.clone(),
            json!(false)
        ]
    );
    assert_eq!(
        head(thinking(10), hi()),
        [
            json!(8192),
            on(1024),
            none.clone(),
            none.clone(),
            json!(false)
        ]
    );
    assert_eq!(
        head(thinking(9000), hi()),
        [
            json!(17192),
            on(9000),
            none.clone(),
            none.clone(),
            json!(false)
        ]
    );
    assert_eq!(
        head(thinking(0), hi()),
        [
            json!(8192),
            none.clone(),
            json!(0.5),
            none.clone(),
            json!(false)
        ]
    );
    assert_eq!(
        head(thinking(4000), foreign),
        [
            json!(8192),
            none.clone(),
            json!(0.5),
            none.clone(),
            json!(false)
        ]
    );
    let quiet = Params {
        tool_choice: ToolChoice::None,
        max_output_tokens: Some(5),
        ..Params::default()
    };
    assert_eq!(
        head(quiet, hi()),
        [
            json!(5),
            none.clone(),
            none,
            json!({"type": "none"}),
            json!(false)
        ]
    );
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"type": "message", "content": [], "stop_reason": null, "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1,
    }}})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn full_stream() -> String {
    events(&[
        start(),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm é"})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g"})),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "zz"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}}),
        delta(2, json!({"type": "text_delta", "text": "I "})),
        delta(2, json!({"type": "text_delta", "text": "look."})),
        json!({"type": "content_block_start", "index": 3,
            "content_block": {"type": "tool_use", "id": "t1", "name": "ls", "input": {}}}),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "{\"path\":"}),
        ),
        json!({"type": "content_block_start", "index": 4,
            "content_block": {"type": "tool_use", "id": "t2", "name": "ls", "input": {}}}),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "\".\"}"}),
        ),
        delta(
            4,
            json!({"type": "input_json_delta", "partial_json": "{\"path\""}),
        ),
        json!({"type": "content_block_start", "index": 5, "content_block": {"type": "server_tool_use", "name": "x"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ])
}

fn full_reply() -> Reply {
    let bad = ToolCall {
        id: "t2".into(),
        name: "ls".into(),
        args: json!({}),
        invalid: Some(
            "the arguments are not valid JSON: EOF while parsing an object at line 1 column 7"
                .into(),
        ),
        signature: None,
    };
    Reply {
        content: vec![
            thought(ORIGIN, "hm é", Some("sig")),
            thought(ORIGIN, "", Some("zz")),
            Block::text("I look."),
            call("t1", "."),
            Block::ToolCall(bad),
        ],
        usage: Usage {
            input_tokens: 115,
            cache_read_tokens: 100,
            cache_write_tokens: 5,
            output_tokens: 42,
            reasoning_tokens: 0,
        },
        stop: StopReason::ToolUse,
        model: String::new(),
    }
}

/// What the beginning of a stream says about its tokens.
fn begun() -> Delta {
    Delta::Usage(Usage {
        output_tokens: 1,
        ..full_reply().usage
    })
}

#[test]
fn a_stream_means_the_same_however_it_is_split_and_nothing_when_cut() {
    let stream = full_stream();
    // Only line ends follow the terminal event's last byte.
    let deltas = assert_splits_and_cuts(&wire(), &stream, stream.len() - 2);
    let want = vec![
        begun(),
        Delta::Thinking("hm é".into()),
        Delta::Text("I ".into()),
        Delta::Text("look.".into()),
        Delta::CallStarted {
            index: 0,
            name: "ls".into(),
        },
        Delta::CallArgs {
            index: 0,
            json: "{\"path\":".into(),
        },
        Delta::CallStarted {
            index: 1,
            name: "ls".into(),
        },
        Delta::CallArgs {
            index: 0,
            json: "\".\"}".into(),
        },
        Delta::CallArgs {
            index: 1,
            json: "{\"path\"".into(),
        },
        Delta::Done(Box::new(full_reply())),
    ];
    assert_eq!(deltas, want);
}

#[test]
fn errors_within_a_stream_keep_their_meaning() {
    let error = |kind: &str| {
        events(&[
            start(),
            json!({"type": "error", "error": {"type": kind, "message": "m"}}),
        ])
    };
    let cases = [
        (
            "overloaded_error",
            ModelError::Unavailable {
                status: 200,
                retry_after: None,
                message: "m".into(),
            },
        ),
        (
            "api_error",
            ModelError::Unavailable {
                status: 200,
                retry_after: None,
                message: "m".into(),
            },
        ),
        (
            "rate_limit_error",
            ModelError::RateLimited {
                retry_after: None,
                message: "m".into(),
            },
        ),
        ("authentication_error", ModelError::Auth("m".into())),
        ("invalid_request_error", ModelError::BadRequest("m".into())),
    ];
    for (kind, want) in cases {
        assert_eq!(
            read(&wire(), &[error(kind).as_bytes()]),
            (vec![begun()], Err(want))
        );
    }
    let stray = events(&[delta(7, json!({"type": "text_delta", "text": "x"}))]);
    let want = ModelError::Protocol("a delta for block 7, which was not begun".into());
    assert_eq!(read(&wire(), &[stray.as_bytes()]), (vec![], Err(want)));
}

#[test]
fn a_whole_answer_is_the_same_as_a_streamed_one() {
    let whole = json!({
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "ls", "input": {"path": "."}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    });
    let want = Reply {
        content: vec![
            thought(ORIGIN, "hm", Some("s")),
            Block::text("I look."),
            call("t1", "."),
        ],
        usage: Usage {
            input_tokens: 3,
            output_tokens: 4,
            ..Usage::default()
        },
        stop: StopReason::ToolUse,
        model: String::new(),
    };
    assert_eq!(wire().parse(whole.to_string().as_bytes()), Ok(want));
    assert!(matches!(wire().parse(b"{}"), Err(ModelError::Protocol(_))));
    let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#;
    assert!(matches!(
        wire().parse(error),
        Err(ModelError::Unavailable { .. })
    ));
}

#[test]
fn every_stop_reason_has_its_meaning() {
    let cases = [
        ("end_turn", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
        ("model_context_window_exceeded", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("refusal", StopReason::Refusal),
        ("pause_turn", StopReason::Other("pause_turn".into())),
    ];
    for (reason, want) in cases {
        let body = json!({"content": [], "stop_reason": reason}).to_string();
        assert_eq!(
            wire().parse(body.as_bytes()).map(|reply| reply.stop),
            Ok(want)
        );
    }
}

#[test]
fn the_marks_of_a_request_say_how_long_it_is_kept() {
    let marks = |caching| {
        let params = Params {
            caching,
            ..Params::default()
        };
        let body = body(
            &wire(),
            &Request {
                params,
                ..request(vec![Message::user("hi")])
            },
            WireMode::Whole,
        );
        ["/tools/0", "/system/0", "/messages/0/content/0"].map(|at| {
            body.pointer(at)
                .and_then(|part| part.get("cache_control"))
                .cloned()
        })
    };
    let mark = |mark: Value| [Some(mark.clone()), Some(mark.clone()), Some(mark)];
    assert_eq!(marks(Caching::Minutes5), mark(json!({"type": "ephemeral"})));
    assert_eq!(
        marks(Caching::Hour),
        mark(json!({"type": "ephemeral", "ttl": "1h"}))
    );
    assert_eq!(marks(Caching::Off), [None, None, None]);
}
