use super::*;
use crate::wire::testing::{body, call, media, named, request, result, sample_body, thought};
use crate::wire::tests::{assert_splits_and_cuts, events, read};
use crate::{Delta, SystemPart};
use proptest::prelude::*;
use serde_json::json;
use stead_core::{ResultStatus, StopReason, Usage};

fn wire() -> Responses {
    Responses::new("gpt-5")
}

fn reasoning(id: &str, text: &str, signature: &str) -> Block {
    Block::Thinking(Thinking {
        text: text.into(),
        signature: Some(signature.into()),
        id: Some(id.into()),
        redacted: text.is_empty(),
        origin: ORIGIN.into(),
    })
}

fn input(message: Message) -> Value {
    body(&wire(), &request(vec![message]), WireMode::Stream)["input"].take()
}

#[test]
fn a_body_has_the_documented_shape() {
    let text = sample_body(&wire());
    let golden = concat!(
        r#"{"model":"gpt-5","store":false,"stream":true,"include":["reasoning.encrypted_content"],"#,
        r#""max_output_tokens":512,"temperature":0.5,"reasoning":{"effort":"medium","summary":"auto"},"#,
        r#""tool_choice":"none","tools":[{"type":"function","name":"ls","description":"Lists a folder","#,
        r#""parameters":{"properties":{"path":{"type":"string"}},"type":"object"},"strict":false}],"#,
        r#""instructions":"You are a gardener.\n\nToday is Monday.","#,
        r#""input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]}"#,
    );
    assert_eq!(text, golden);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let request = Request {
        messages: vec![Message::user("hi").into()],
        ..Request::default()
    };
    let expected = json!({"model": "gpt-4o", "store": false, "stream": false,
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]});
    assert_eq!(
        body(&Responses::new("gpt-4o"), &request, WireMode::Whole),
        expected
    );
}

#[test]
fn a_key_goes_into_the_bearer_header() {
    assert_eq!(
        wire().headers(Some("k")),
        [("authorization", "Bearer k".to_owned())]
    );
    assert_eq!(wire().headers(None), []);
    assert_eq!(wire().endpoint(WireMode::Stream), "/responses");
}

#[test]
fn every_block_becomes_its_item() {
    let assistant = Message::Assistant {
        content: vec![
            reasoning("rs_1", "look first", "enc1"),
            thought("anthropic", "foreign", Some("sig")),
            thought(ORIGIN, "without encrypted content", None),
            Block::text("I look."),
            reasoning("rs_2", "", "enc2"),
            call("c1", "."),
            reasoning("rs_3", "led to nothing", "enc3"),
        ],
    };
    assert_eq!(
        input(assistant),
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "look first"}],
             "encrypted_content": "enc1"},
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "enc2"},
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{\"path\":\".\"}"},
        ])
    );
    let tool = Message::Tool {
        results: vec![
            result("c1", ResultStatus::Ok, vec![Block::text("a b")]),
            result("c2", ResultStatus::Error, vec![]),
            result("c4", ResultStatus::Error, vec![Block::text("no such file")]),
            result(
                "c5",
                ResultStatus::Denied,
                vec![Block::text("no"), media("image/png")],
            ),
            result(
                "c3",
                ResultStatus::Ok,
                vec![
                    Block::text("see"),
                    media("image/png"),
                    named("application/pdf", "x.pdf"),
                ],
            ),
        ],
    };
    assert_eq!(
        input(tool),
        json!([
            {"type": "function_call_output", "call_id": "c1", "output": "a b"},
            {"type": "function_call_output", "call_id": "c2", "output": "(no output)"},
            {"type": "function_call_output", "call_id": "c4", "output": "Error: no such file"},
            {"type": "function_call_output", "call_id": "c5", "output": [
                {"type": "input_text", "text": "Error:"},
                {"type": "input_text", "text": "no"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
            ]},
            {"type": "function_call_output", "call_id": "c3", "output": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"},
                {"type": "input_file", "filename": "x.pdf", "file_data": "data:application/pdf;base64,QUJD"},
            ]},
        ])
    );
}

#[test]
fn what_cannot_be_sent_is_named_in_words() {
    let cases = [
        (
            Message::User {
                content: vec![named("audio/mpeg", "song.mp3")],
            },
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text",
                "text": "[song.mp3 (audio/mpeg) is not shown: this model cannot read such files]"}]}]),
        ),
        (
            Message::User { content: vec![] },
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "(no content)"}]}]),
        ),
        (
            Message::Assistant {
                content: vec![thought("gemini", "x", Some("s"))],
            },
            json!([{"type": "message", "role": "assistant",
                "content": "(no visible answer)"}]),
        ),
        (
            Message::Tool { results: vec![] },
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "(no content)"}]}]),
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(input(message), expected);
    }
}

/// An answer with thinking, text and two interleaved calls.
fn answer() -> (Value, Vec<Value>) {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "enc",
         "summary": [{"type": "summary_text", "text": "look"}, {"type": "summary_text", "text": "twice"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Grüße!", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": "{\"path\":\"a\"}",
         "status": "completed"},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "ls", "arguments": "{\"path\":\"b\"}",
         "status": "completed"},
    ]);
    let response = json!({
        "id": "resp_1", "status": "completed", "model": "gpt-5-2025-08-07", "error": null, "incomplete_details": null,
        "output": output,
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 20,
                  "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 120},
    });
    let events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1",
               "summary": []}}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "look"}),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "twice"}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": output[0]}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "Grü"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "delta": "ße!"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": output[1]}),
        json!({"type": "response.output_item.added", "output_index": 2, "item": {"type": "function_call",
               "call_id": "c1", "name": "ls", "arguments": ""}}),
        json!({"type": "response.output_item.added", "output_index": 3, "item": {"type": "function_call",
               "call_id": "c2", "name": "ls", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": "{\"path\""}),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"path\":\"a\"}"}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 3, "delta": ":\"b\"}"}),
        json!({"type": "response.function_call_arguments.done", "output_index": 3, "arguments": "{\"path\":\"b\"}"}),
        json!({"type": "response.output_item.done", "output_index": 3, "item": output[3]}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": output[2]}),
        json!({"type": "response.some_future_event", "delta": {"an": "object"}}),
        json!({"type": "response.completed", "response": response}),
    ];
    (response, events)
}

fn expected() -> Reply {
    Reply {
        content: vec![
            reasoning("rs_1", "look\n\ntwice", "enc"),
            Block::text("Grüße!"),
            call("c1", "a"),
            call("c2", "b"),
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
fn a_stream_gives_its_pieces_and_then_the_whole() {
    let (deltas, end) = read(&wire(), &[events(&answer().1).as_bytes()]);
    let args = |index, json: &str| Delta::CallArgs {
        index,
        json: json.into(),
    };
    let started = |index| Delta::CallStarted {
        index,
        name: "ls".into(),
    };
    assert_eq!(
        deltas,
        [
            Delta::Thinking("look".into()),
            Delta::Thinking("\n\n".into()),
            Delta::Thinking("twice".into()),
            Delta::Text("Grü".into()),
            Delta::Text("ße!".into()),
            started(0),
            started(1),
            args(1, "{\"path\""),
            args(0, "{\"path\":\"a\"}"),
            args(1, ":\"b\"}"),
            Delta::Done(Box::new(expected())),
        ]
    );
    assert_eq!(end, Ok(()));
}

#[test]
fn whole_answers_and_terminal_events_without_output_give_the_same_reply() {
    let (response, mut list) = answer();
    assert_eq!(
        wire().parse(response.to_string().as_bytes()),
        Ok(expected())
    );
    let last = list.last_mut().unwrap();
    last["response"]["output"] = json!([]);
    let (deltas, _) = read(&wire(), &[events(&list).as_bytes()]);
    assert_eq!(deltas.last(), Some(&Delta::Done(Box::new(expected()))));
}

#[test]
fn a_stream_means_the_same_however_it_is_split_and_nothing_when_cut() {
    let stream = events(&answer().1);
    let whole_from = stream.len()
        - "

"
        .len();
    assert_splits_and_cuts(
        &wire(),
        &(stream
            + "data: [DONE]

"),
        whole_from,
    );
}

#[test]
fn stop_reasons_are_told_apart() {
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "x"}]});
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]});
    let cases = [
        (
            json!({"status": "completed", "output": [text]}),
            StopReason::EndTurn,
        ),
        (
            json!({"status": "completed", "output": [refusal]}),
            StopReason::Refusal,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
            StopReason::MaxTokens,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}),
            StopReason::ContentFilter,
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "moon"}}),
            StopReason::Other("moon".into()),
        ),
    ];
    for (response, stop) in cases {
        assert_eq!(
            wire().parse(response.to_string().as_bytes()).unwrap().stop,
            stop
        );
    }
}

#[test]
fn a_call_cut_by_the_limit_is_never_taken_for_one_without_arguments() {
    let response = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [
        {"type": "function_call", "call_id": "c1", "name": "rm", "arguments": "", "status": "incomplete"}]});
    let reply = wire().parse(response.to_string().as_bytes()).unwrap();
    let calls: Vec<_> = reply
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall(call) => Some((call.name.as_str(), call.invalid.is_some())),
            Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => None,
        })
        .collect();
    assert_eq!(calls, [("rm", true)]);
}

#[test]
fn errors_inside_an_answer_keep_their_meaning() {
    let unavailable = |status, message: &str| ModelError::Unavailable {
        status,
        retry_after: None,
        message: message.into(),
    };
    let cases = [
        (
            json!({"type": "error", "code": "context_length_exceeded", "message": "m"}),
            ModelError::ContextOverflow("m".into()),
        ),
        (
            json!({"type": "error", "error": {"code": "insufficient_quota", "message": "m"}}),
            ModelError::Quota("m".into()),
        ),
        (
            json!({"type": "error", "code": 503, "message": "m"}),
            unavailable(503, "m"),
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "m"}}}),
            ModelError::RateLimited {
                retry_after: None,
                message: "m".into(),
            },
        ),
        (
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "m"}}}),
            unavailable(200, "m"),
        ),
    ];
    for (event, error) in cases {
        let text =
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "so far"});
        let (deltas, end) = read(&wire(), &[events(&[text, event]).as_bytes()]);
        assert_eq!(
            (deltas, end),
            (vec![Delta::Text("so far".into())], Err(error))
        );
    }
}

#[test]
fn volatile_parts_of_the_system_prompt_come_after_the_stable_ones() {
    let mut request = request(vec![]);
    let tail = SystemPart {
        text: "tail".into(),
        stable: false,
    };
    request.system = request.system.iter().cloned().chain([tail]).collect();
    let instructions = body(&wire(), &request, WireMode::Stream)["instructions"].take();
    assert_eq!(
        instructions,
        "You are a gardener.\n\nToday is Monday.\n\ntail"
    );
}

proptest! {
    #[test]
    fn no_event_makes_the_decoder_panic(
        events in proptest::collection::vec((0..9usize, "\\PC*"), 0..12),
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        const KINDS: [&str; 9] = [
            "response.output_text.delta", "response.output_item.added", "response.output_item.done",
            "response.function_call_arguments.delta", "response.function_call_arguments.done",
            "response.completed", "response.failed", "error", "",
        ];
        let mut decoder = wire().decoder();
        let mut out = Vec::new();
        for (kind, text) in events {
            let _ = decoder.push(KINDS[kind], &text, &mut out);
            let shaped = json!({"type": KINDS[kind], "output_index": text.len() % 3, "delta": text, "arguments": text,
                "item": {"type": "function_call", "name": text, "arguments": text},
                "response": {"status": "completed", "output": [{"type": "function_call", "name": text}]}});
            let _ = decoder.push("", &shaped.to_string(), &mut out);
        }
        let _ = decoder.finish(&mut out);
        let _ = wire().parse(&body);
        prop_assert!(out.iter().filter(|delta| matches!(delta, Delta::Done(_))).count() <= 1);
    }
}
