use super::*;
use crate::Delta;
use crate::wire::testing::{body, call, media, named, request, result, sample_body, thought};
use crate::wire::tests::{assert_splits_and_cuts, events, read};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use stead_core::{ResultStatus, StopReason, Usage};

fn wire() -> Gemini {
    Gemini::new("gemini-2.5-pro")
}

fn chunk(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn content(wire: &Gemini, message: Message) -> Value {
    body(wire, &request(vec![message]), WireMode::Stream)["contents"][0].take()
}

fn signed_call(path: &str, signature: Option<&str>) -> Block {
    let Block::ToolCall(call) = call("", path) else {
        panic!("a call")
    };
    Block::ToolCall(ToolCall {
        signature: signature.map(Into::into),
        ..call
    })
}

#[test]
fn a_body_has_the_documented_shape() {
    let text = sample_body(&wire());
    let golden = concat!(
        r#"{"systemInstruction":{"parts":[{"text":"You are a gardener."},{"text":"Today is Monday."}]},"#,
        r#""tools":[{"functionDeclarations":[{"name":"ls","description":"Lists a folder","#,
        r#""parametersJsonSchema":{"properties":{"path":{"type":"string"}},"type":"object"}}]}],"#,
        r#""toolConfig":{"functionCallingConfig":{"mode":"NONE"}},"#,
        r#""generationConfig":{"maxOutputTokens":512,"temperature":0.5,"#,
        r#""thinkingConfig":{"thinkingBudget":8000,"includeThoughts":true}},"#,
        r#""contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
    );
    assert_eq!(text, golden);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let request = Request {
        messages: vec![Message::user("hi").into()],
        ..Request::default()
    };
    let expected = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    assert_eq!(body(&wire(), &request, WireMode::Whole), expected);
}

#[test]
fn the_model_is_in_the_path_and_the_key_in_its_header() {
    assert_eq!(
        wire().endpoint(WireMode::Stream),
        "/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        wire().endpoint(WireMode::Whole),
        "/models/gemini-2.5-pro:generateContent"
    );
    assert_eq!(
        Gemini::new("tunedModels/x").endpoint(WireMode::Whole),
        "/tunedModels/x:generateContent"
    );
    assert_eq!(
        wire().headers(Some("k")),
        [("x-goog-api-key", "k".to_owned())]
    );
}

#[test]
fn every_block_becomes_its_part() {
    let assistant = Message::Assistant {
        content: vec![
            thought(ORIGIN, "look first", None),
            thought("anthropic", "foreign", Some("sig")),
            Block::text("I look."),
            thought(ORIGIN, "", Some("text-sig")),
            signed_call("a", Some("call-sig")),
            signed_call("b", None),
            thought(ORIGIN, "", Some("empty-sig")),
        ],
    };
    assert_eq!(
        content(&wire(), assistant),
        json!({"role": "model", "parts": [
            {"text": "look first", "thought": true},
            {"text": "I look.", "thoughtSignature": "text-sig"},
            {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "call-sig"},
            {"functionCall": {"name": "ls", "args": {"path": "b"}}},
            {"text": "", "thoughtSignature": "empty-sig"},
        ]})
    );
    let tool = Message::Tool {
        results: vec![
            result(
                "call_1",
                ResultStatus::Ok,
                vec![Block::text("see"), media("image/png")],
            ),
            result("call_2", ResultStatus::Denied, vec![Block::text("no")]),
            result("call_3", ResultStatus::Ok, vec![]),
        ],
    };
    assert_eq!(
        content(&wire(), tool),
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "ls", "response": {"output": "see"}}},
            {"functionResponse": {"name": "ls", "response": {"error": "no"}}},
            {"functionResponse": {"name": "ls", "response": {"output": "(no output)"}}},
            {"text": "Files of result 1 (ls):"},
            {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
        ]})
    );
}

#[test]
fn what_cannot_be_sent_is_named_in_words() {
    let text = |role, text| json!({"role": role, "parts": [{"text": text}]});
    let cases = [
        (
            Message::User {
                content: vec![named("image/gif", "a.gif")],
            },
            text(
                "user",
                "[a.gif (image/gif) is not shown: this model cannot read such files]",
            ),
        ),
        (
            Message::User {
                content: vec![Block::text("")],
            },
            text("user", "(no content)"),
        ),
        (
            Message::Assistant {
                content: vec![thought("openai", "x", None)],
            },
            text("model", "(no visible answer)"),
        ),
        (
            Message::Tool { results: vec![] },
            text("user", "(no content)"),
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(content(&wire(), message), expected);
    }
}

#[test]
fn calls_of_other_models_are_marked_where_signatures_are_required() {
    let message = || Message::Assistant {
        content: vec![signed_call("a", None), signed_call("b", None)],
    };
    let part = |path| json!({"functionCall": {"name": "ls", "args": {"path": path}}});
    assert_eq!(
        content(&wire(), message()),
        json!({"role": "model", "parts": [part("a"), part("b")]})
    );
    let mut marked = part("a");
    marked["thoughtSignature"] = json!(FOREIGN_CALL_SIGNATURE);
    let expected = json!({"role": "model", "parts": [marked, part("b")]});
    assert_eq!(
        content(&Gemini::new("gemini-3-pro-preview"), message()),
        expected
    );
}

fn answer() -> Vec<Value> {
    vec![
        chunk(json!([{"text": "look", "thought": true}])),
        chunk(json!([{"text": " twice", "thought": true}])),
        chunk(json!([{"text": "Grü"}])),
        chunk(json!([{"text": "ße!"}, {"text": "", "thoughtSignature": "text-sig"}])),
        chunk(
            json!([{"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "call-sig"},
                     {"functionCall": {"name": "ls", "args": {"path": "b"}, "id": "x"}}]),
        ),
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
               "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 12,
                                 "thoughtsTokenCount": 8, "totalTokenCount": 120}, "modelVersion": "gemini-2.5-pro"}),
    ]
}

fn expected() -> Reply {
    Reply {
        content: vec![
            thought(ORIGIN, "look twice", None),
            Block::text("Grüße!"),
            thought(ORIGIN, "", Some("text-sig")),
            signed_call("a", Some("call-sig")),
            call("x", "b"),
        ],
        usage: Usage {
            input_tokens: 100,
            cache_read_tokens: 60,
            cache_write_tokens: 0,
            output_tokens: 20,
            reasoning_tokens: 8,
        },
        stop: StopReason::ToolUse,
        model: String::new(),
    }
}

#[test]
fn only_an_id_that_a_provider_gave_is_returned() {
    let ids = ["fc-1", "call_7", "call_x", ""];
    let given = [Some("fc-1"), None, Some("call_x"), None];
    assert_eq!(ids.map(super::provider_id), given);
}

#[test]
fn a_stream_gives_its_pieces_and_then_the_whole() {
    let (deltas, end) = read(&wire(), &[events(&answer()).as_bytes()]);
    assert_eq!(
        deltas,
        [
            Delta::Thinking("look".into()),
            Delta::Thinking(" twice".into()),
            Delta::Text("Grü".into()),
            Delta::Text("ße!".into()),
            Delta::CallStarted {
                index: 0,
                name: "ls".into()
            },
            Delta::CallArgs {
                index: 0,
                json: "{\"path\":\"a\"}".into()
            },
            Delta::CallStarted {
                index: 1,
                name: "ls".into()
            },
            Delta::CallArgs {
                index: 1,
                json: "{\"path\":\"b\"}".into()
            },
            Delta::Done(Box::new(expected())),
        ]
    );
    assert_eq!(end, Ok(()));
}

#[test]
fn a_whole_answer_gives_the_same_reply_as_its_stream() {
    let mut whole = answer().pop().unwrap();
    whole["candidates"][0]["content"]["parts"] = json!([
        {"text": "look twice", "thought": true},
        {"text": "Grüße!", "thoughtSignature": "text-sig"},
        {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "call-sig"},
        {"functionCall": {"id": "x", "name": "ls", "args": {"path": "b"}}},
    ]);
    assert_eq!(wire().parse(whole.to_string().as_bytes()), Ok(expected()));
}

#[test]
fn a_stream_means_the_same_however_it_is_split_and_nothing_when_cut() {
    let stream = events(&answer());
    assert_splits_and_cuts(
        &wire(),
        &stream,
        stream.len()
            - "

"
            .len(),
    );
}

#[test]
fn an_answer_goes_back_as_it_came() {
    let sent = content(
        &wire(),
        Message::Assistant {
            content: expected().content,
        },
    );
    assert_eq!(
        sent["parts"],
        json!([
            {"text": "look twice", "thought": true},
            {"text": "Grüße!", "thoughtSignature": "text-sig"},
            {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "call-sig"},
            {"functionCall": {"id": "x", "name": "ls", "args": {"path": "b"}}},
        ])
    );
}

#[test]
fn stop_reasons_are_told_apart() {
    let cases = [
        ("STOP", Ok(StopReason::EndTurn)),
        ("MAX_TOKENS", Ok(StopReason::MaxTokens)),
        ("SAFETY", Ok(StopReason::ContentFilter)),
        ("RECITATION", Ok(StopReason::ContentFilter)),
        ("LANGUAGE", Ok(StopReason::Other("LANGUAGE".into()))),
        (
            "MALFORMED_FUNCTION_CALL",
            Err(ModelError::Protocol(
                "the model wrote a malformed call ls(".into(),
            )),
        ),
    ];
    for (reason, stop) in cases {
        let answer = json!({"candidates": [{"finishReason": reason, "finishMessage": "ls("}]});
        assert_eq!(
            wire()
                .parse(answer.to_string().as_bytes())
                .map(|reply| reply.stop),
            stop
        );
    }
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    assert_eq!(
        wire().parse(blocked.to_string().as_bytes()).unwrap().stop,
        StopReason::ContentFilter
    );
    assert_eq!(wire().parse(b"{}"), Err(ModelError::Cut));
}

#[test]
fn errors_inside_an_answer_keep_their_meaning() {
    let retry = json!([{"@type": "type.googleapis.com/google.rpc.Help"},
                       {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]);
    let cases = [
        (
            json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m", "details": retry}),
            ModelError::RateLimited {
                retry_after: Some(Duration::from_millis(1500)),
                message: "m".into(),
            },
        ),
        (
            json!({"code": 503, "status": "UNAVAILABLE", "message": "m"}),
            ModelError::Unavailable {
                status: 503,
                retry_after: None,
                message: "m".into(),
            },
        ),
        (
            json!({"code": 400, "status": "INVALID_ARGUMENT", "message": "The input token count (12) exceeds the maximum number of tokens allowed (10)."}),
            ModelError::ContextOverflow(
                "The input token count (12) exceeds the maximum number of tokens allowed (10)."
                    .into(),
            ),
        ),
        (
            json!({"code": 403, "status": "PERMISSION_DENIED", "message": "m"}),
            ModelError::Auth("m".into()),
        ),
    ];
    for (error, expected) in cases {
        let stream = events(&[
            chunk(json!([{"text": "so far"}])),
            json!({ "error": error }),
        ]);
        let (deltas, end) = read(&wire(), &[stream.as_bytes()]);
        assert_eq!(
            (deltas, end),
            (vec![Delta::Text("so far".into())], Err(expected))
        );
    }
}

proptest! {
    #[test]
    fn no_event_makes_the_decoder_panic(
        parts in proptest::collection::vec(("\\PC*", any::<bool>(), proptest::option::of("\\PC*")), 0..12),
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut decoder = wire().decoder();
        let mut out = Vec::new();
        for (text, thought, signature) in parts {
            let _ = decoder.push("", &text, &mut out);
            let part = json!([{"text": text, "thought": thought, "thoughtSignature": signature},
                              {"functionCall": {"name": text, "args": text}, "thoughtSignature": signature}]);
            let _ = decoder.push("", &chunk(part).to_string(), &mut out);
        }
        let _ = decoder.finish(&mut out);
        let _ = wire().parse(&body);
        prop_assert!(out.iter().all(|delta| !matches!(delta, Delta::Done(_))));
    }
}
