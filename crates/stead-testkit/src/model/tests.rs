//! Tests of the server over a raw socket, so that no HTTP library can hide a framing mistake.
//!
//! Effects: test support.

use super::*;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream as Socket;
use std::time::{Duration, Instant};
use stead_core::{StopReason, Usage};

const DEADLINE: Duration = Duration::from_secs(10);

fn connect(server: &FakeModel) -> Socket {
    let socket = Socket::connect(server.base_url().trim_start_matches("http://")).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    socket
}

fn post(socket: &mut Socket, path: &str, body: &str) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nAnthropic-Version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .unwrap();
}

/// Reads to the end of the connection. Returns the text, and whether the connection was reset.
fn read_to_end(socket: &mut Socket) -> (String, bool) {
    let mut all = Vec::new();
    let reset = socket
        .read_to_end(&mut all)
        .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset);
    (String::from_utf8(all).unwrap(), reset)
}

/// Sends a request on a connection that is closed after it. Returns the status and the unframed
/// body.
fn ask(server: &FakeModel, path: &str, body: &str) -> (u16, String) {
    let mut socket = connect(server);
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .unwrap();
    let (answer, _) = read_to_end(&mut socket);
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (
        status,
        if head.contains("transfer-encoding: chunked") {
            unchunk(body)
        } else {
            body.to_owned()
        },
    )
}

fn unchunk(mut framed: &str) -> String {
    let mut out = String::new();
    while let Some((len, rest)) = framed.split_once("\r\n") {
        let len = usize::from_str_radix(len, 16).unwrap();
        out.push_str(&rest[..len]);
        framed = &rest[len + 2..];
    }
    out
}

/// Returns a correct conversation on a wire: a question, two calls, their results.
fn conversation(wire: FakeWire) -> (&'static str, Value) {
    match wire {
        FakeWire::Chat => (
            "/v1/chat/completions",
            json!({
                "model": "m",
                "tools": [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "look"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\".\"}"}},
                        {"id": "b", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
                    ]},
                    {"role": "tool", "tool_call_id": "a", "content": "one"},
                    {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
                ],
            }),
        ),
        FakeWire::Messages => (
            "/v1/messages",
            json!({
                "model": "m",
                "max_tokens": 100,
                "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
                "tools": [{"name": "ls", "input_schema": {"type": "object"}}],
                "messages": [
                    {"role": "user", "content": "look"},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "", "signature": "s"},
                        {"type": "tool_use", "id": "a", "name": "ls", "input": {"path": "."}},
                        {"type": "tool_use", "id": "b", "name": "ls", "input": {}},
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                        {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "two"}]},
                    ]},
                ],
            }),
        ),
        FakeWire::Responses => (
            "/v1/responses",
            json!({
                "model": "m",
                "instructions": "be brief",
                "tools": [{"type": "function", "name": "ls", "parameters": {"type": "object"}}],
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
                    {"type": "reasoning", "id": "rs", "summary": []},
                    {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{\"path\":\".\"}"},
                    {"type": "function_call", "call_id": "b", "name": "ls", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "a", "output": "one"},
                    {"type": "function_call_output", "call_id": "b", "output": "two"},
                ],
            }),
        ),
        FakeWire::Gemini => (
            "/v1beta/models/m:generateContent",
            json!({
                "systemInstruction": {"parts": [{"text": "be brief"}]},
                "tools": [{"functionDeclarations": [{"name": "ls", "parameters": {"type": "object"}}]}],
                "contents": [
                    {"role": "user", "parts": [{"text": "look"}]},
                    {"role": "model", "parts": [
                        {"functionCall": {"id": "a", "name": "ls", "args": {"path": "."}}},
                        {"functionCall": {"id": "b", "name": "ls", "args": {}}},
                    ]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"id": "a", "name": "ls", "response": {"result": "one"}}},
                        {"functionResponse": {"id": "b", "name": "ls", "response": {"result": "two"}}},
                    ]},
                ],
            }),
        ),
    }
}

#[test]
fn a_correct_conversation_says_the_same_on_every_wire() {
    let call = |id: &str, args| RequestCall {
        id: id.into(),
        name: "ls".into(),
        args,
    };
    let result = |id: &str, text: &str| RequestTurn::Result {
        id: id.into(),
        text: text.into(),
    };
    let expected = ParsedRequest {
        system: "be brief".into(),
        tools: vec!["ls".into()],
        turns: vec![
            RequestTurn::User("look".into()),
            RequestTurn::Assistant {
                text: String::new(),
                calls: vec![call("a", json!({"path": "."})), call("b", json!({}))],
            },
            result("a", "one"),
            result("b", "two"),
        ],
    };
    for wire in FakeWire::ALL {
        let server = FakeModel::start(vec![reply().text("fine")]);
        let (path, body) = conversation(wire);
        let (status, _) = ask(&server, path, &body.to_string());
        assert_eq!(
            (status, server.last_request().seen),
            (200, Ok(expected.clone())),
            "{wire:?}"
        );
    }
}

/// A change to a correct conversation, and a part of the expected error.
type Case = (&'static str, fn(&mut Value), &'static str);

/// Checks that each case, a correct conversation with one mistake, is refused.
fn refused(wire: FakeWire, cases: &[Case]) {
    for (name, spoil, words) in cases {
        let server = FakeModel::start(vec![reply().text("must not be sent")]);
        let (path, mut body) = conversation(wire);
        spoil(&mut body);
        let (status, answer) = ask(&server, path, &body.to_string());
        let refusals = server.rejections();
        assert_eq!((status, refusals.len()), (400, 1), "{name}: {answer}");
        assert!(
            refusals[0].1.contains(words),
            "{name}: '{}' does not say '{words}'",
            refusals[0].1
        );
        let error: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            error["error"]["message"],
            json!(refusals[0].1),
            "{name}: the answer has the provider's shape"
        );
    }
}

fn remove(list: &mut Value, at: usize) {
    list.as_array_mut().unwrap().remove(at);
}

#[test]
fn chat_completions_refuses_what_openai_refuses() {
    refused(
        FakeWire::Chat,
        &[
            (
                "no model",
                |b| drop(b.as_object_mut().unwrap().remove("model")),
                "model",
            ),
            (
                "unknown argument",
                |b| b["thinking"] = json!({}),
                "Unrecognized request argument",
            ),
            ("no messages", |b| b["messages"] = json!([]), "messages"),
            (
                "unknown role",
                |b| b["messages"][1]["role"] = json!("human"),
                "'human'",
            ),
            (
                "empty user content",
                |b| b["messages"][1]["content"] = json!(""),
                "must not be empty",
            ),
            (
                "no parts",
                |b| b["messages"][1]["content"] = json!([]),
                "empty array",
            ),
            (
                "empty text part",
                |b| b["messages"][1]["content"] = json!([{"type": "text", "text": ""}]),
                "must not be empty",
            ),
            (
                "assistant without content",
                |b| b["messages"][2] = json!({"role": "assistant", "content": null}),
                "expected a string",
            ),
            (
                "empty tool_calls",
                |b| b["messages"][2]["tool_calls"] = json!([]),
                "empty array",
            ),
            (
                "arguments as object",
                |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}),
                "expected a string",
            ),
            (
                "arguments not JSON",
                |b| b["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{"),
                "not valid JSON",
            ),
            (
                "bad tool name",
                |b| b["messages"][2]["tool_calls"][0]["function"]["name"] = json!("a b"),
                "pattern",
            ),
            (
                "duplicate id",
                |b| b["messages"][2]["tool_calls"][1]["id"] = json!("a"),
                "duplicate tool call id 'a'",
            ),
            (
                "orphan result",
                |b| b["messages"][3]["tool_call_id"] = json!("z"),
                "no such call is open: 'z'",
            ),
            (
                "missing result at the end",
                |b| remove(&mut b["messages"], 4),
                "did not have response messages: b",
            ),
            (
                "user between call and result",
                |b| {
                    b["messages"]
                        .as_array_mut()
                        .unwrap()
                        .insert(4, json!({"role": "user", "content": "x"}))
                },
                "did not have response messages: b",
            ),
            (
                "first not from user",
                |b| remove(&mut b["messages"], 1),
                "the first message must use the user role",
            ),
            ("empty tools", |b| b["tools"] = json!([]), "tools"),
            (
                "schema not an object",
                |b| b["tools"][0]["function"]["parameters"] = json!({"type": "string"}),
                "must be of type 'object'",
            ),
            (
                "tool_choice without tools",
                |b| {
                    b.as_object_mut().unwrap().remove("tools");
                    b["tool_choice"] = json!("none")
                },
                "only allowed when 'tools'",
            ),
            (
                "stream_options without stream",
                |b| b["stream_options"] = json!({"include_usage": true}),
                "only allowed when 'stream'",
            ),
        ],
    );
}

#[test]
fn messages_refuses_what_anthropic_refuses() {
    refused(
        FakeWire::Messages,
        &[
            (
                "no max_tokens",
                |b| drop(b.as_object_mut().unwrap().remove("max_tokens")),
                "max_tokens: Field required",
            ),
            (
                "unknown key",
                |b| b["stream_options"] = json!({}),
                "Extra inputs are not permitted",
            ),
            (
                "system role",
                |b| b["messages"][0]["role"] = json!("system"),
                "Unexpected role",
            ),
            (
                "empty content",
                |b| b["messages"][0]["content"] = json!(""),
                "must not be empty",
            ),
            (
                "no blocks",
                |b| b["messages"][0]["content"] = json!([]),
                "empty array",
            ),
            (
                "empty text block",
                |b| b["messages"][0]["content"] = json!([{"type": "text", "text": ""}]),
                "must be non-empty",
            ),
            (
                "blank text block",
                |b| b["messages"][0]["content"] = json!([{"type": "text", "text": " \n"}]),
                "non-whitespace",
            ),
            (
                "empty system block",
                |b| b["system"][0]["text"] = json!(""),
                "must be non-empty",
            ),
            (
                "first from assistant",
                |b| remove(&mut b["messages"], 0),
                "the first message must use the user role",
            ),
            (
                "thinking without signature",
                |b| b["messages"][1]["content"][0] = json!({"type": "thinking", "thinking": "x"}),
                "signature",
            ),
            (
                "input as string",
                |b| b["messages"][1]["content"][1]["input"] = json!("{}"),
                "expected an object",
            ),
            (
                "duplicate id",
                |b| b["messages"][1]["content"][2]["id"] = json!("a"),
                "duplicate tool call id",
            ),
            (
                "bad id",
                |b| b["messages"][1]["content"][2]["id"] = json!("a.b"),
                "pattern",
            ),
            (
                "orphan result",
                |b| b["messages"][2]["content"][1]["tool_use_id"] = json!("z"),
                "unexpected `tool_use_id`",
            ),
            (
                "missing result",
                |b| remove(&mut b["messages"][2]["content"], 1),
                "without `tool_result` blocks immediately after: b",
            ),
            (
                "no result at all",
                |b| remove(&mut b["messages"], 2),
                "without `tool_result` blocks immediately after: a, b",
            ),
            (
                "results one message late",
                |b| {
                    b["messages"]
                        .as_array_mut()
                        .unwrap()
                        .insert(2, json!({"role": "user", "content": "x"}))
                },
                "immediately after: a, b",
            ),
            (
                "text before results",
                |b| {
                    b["messages"][2]["content"]
                        .as_array_mut()
                        .unwrap()
                        .insert(0, json!({"type": "text", "text": "x"}))
                },
                "must come before",
            ),
            (
                "empty error",
                |b| {
                    b["messages"][2]["content"][0] =
                        json!({"type": "tool_result", "tool_use_id": "a", "is_error": true})
                },
                "is_error",
            ),
            (
                "five cache marks",
                |b| {
                    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
                    b["messages"][0]["content"] = json!([marked, marked, marked, marked]);
                },
                "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            ),
            (
                "cache mark on thinking",
                |b| b["messages"][1]["content"][0]["cache_control"] = json!({"type": "ephemeral"}),
                "cannot be set on `thinking`",
            ),
            (
                "tool blocks without tools",
                |b| drop(b.as_object_mut().unwrap().remove("tools")),
                "must define tools",
            ),
            (
                "small thinking budget",
                |b| b["thinking"] = json!({"type": "enabled", "budget_tokens": 10}),
                "greater than or equal to 1024",
            ),
            (
                "budget over max_tokens",
                |b| b["thinking"] = json!({"type": "enabled", "budget_tokens": 2048}),
                "`max_tokens` must be greater",
            ),
        ],
    );
}

#[test]
fn responses_refuses_what_openai_refuses() {
    refused(
        FakeWire::Responses,
        &[
            (
                "unknown parameter",
                |b| b["messages"] = json!([]),
                "Unknown parameter: 'messages'",
            ),
            (
                "no input",
                |b| drop(b.as_object_mut().unwrap().remove("input")),
                "input",
            ),
            (
                "tool role",
                |b| b["input"][0]["role"] = json!("tool"),
                "'input_text'",
            ),
            (
                "chat part",
                |b| b["input"][0]["content"][0]["type"] = json!("text"),
                "'text'",
            ),
            (
                "empty text",
                |b| b["input"][0]["content"][0]["text"] = json!(""),
                "must not be empty",
            ),
            (
                "arguments as object",
                |b| b["input"][2]["arguments"] = json!({}),
                "expected a string",
            ),
            (
                "duplicate id",
                |b| b["input"][3]["call_id"] = json!("a"),
                "duplicate tool call id",
            ),
            (
                "orphan output",
                |b| b["input"][5]["call_id"] = json!("z"),
                "No tool call found for function call output with call_id z.",
            ),
            (
                "missing output",
                |b| remove(&mut b["input"], 5),
                "No tool output found for function call b.",
            ),
            (
                "reasoning at the end",
                |b| {
                    let r = b["input"][1].clone();
                    b["input"].as_array_mut().unwrap().push(r)
                },
                "without its required following item",
            ),
            (
                "first not from user",
                |b| remove(&mut b["input"], 0),
                "the first message must use the user role",
            ),
            (
                "few output tokens",
                |b| b["max_output_tokens"] = json!(5),
                "at least 16",
            ),
        ],
    );
}

#[test]
fn gemini_refuses_what_google_refuses() {
    refused(
        FakeWire::Gemini,
        &[
            (
                "unknown name",
                |b| b["messages"] = json!([]),
                "Unknown name \"messages\"",
            ),
            ("no contents", |b| b["contents"] = json!([]), "contents"),
            (
                "assistant role",
                |b| b["contents"][1]["role"] = json!("assistant"),
                "Please use a valid role: user, model.",
            ),
            (
                "no parts",
                |b| b["contents"][0]["parts"] = json!([]),
                "empty array",
            ),
            (
                "empty text",
                |b| b["contents"][0]["parts"][0]["text"] = json!(""),
                "must not be empty",
            ),
            (
                "args as text",
                |b| b["contents"][1]["parts"][0]["functionCall"]["args"] = json!("{}"),
                "expected an object",
            ),
            (
                "missing response",
                |b| remove(&mut b["contents"][2]["parts"], 1),
                "number of function response parts is equal",
            ),
            (
                "no response at all",
                |b| remove(&mut b["contents"], 2),
                "number of function response parts is equal",
            ),
            (
                "orphan response",
                |b| b["contents"][2]["parts"][1]["functionResponse"]["name"] = json!("z"),
                "number of function response parts is equal",
            ),
            (
                "response as text",
                |b| b["contents"][2]["parts"][0]["functionResponse"]["response"] = json!("one"),
                "expected an object",
            ),
            (
                "first from model",
                |b| remove(&mut b["contents"], 0),
                "function call turn comes immediately after a user turn",
            ),
        ],
    );
}

#[test]
fn a_body_that_is_not_json_is_refused_on_every_wire() {
    for wire in FakeWire::ALL {
        let server = FakeModel::start(vec![]);
        let (status, _) = ask(&server, conversation(wire).0, "{\"model\":");
        assert_eq!(
            (
                status,
                server.rejections().len(),
                server.last_request().body.len()
            ),
            (400, 1, 9),
            "{wire:?}"
        );
    }
}

#[test]
fn a_refused_request_does_not_use_up_the_script() {
    let server = FakeModel::start(vec![reply().text("first")]);
    assert_eq!(ask(&server, "/v1/messages", "{}").0, 400);
    let (path, body) = conversation(FakeWire::Messages);
    let (status, answer) = ask(&server, path, &body.to_string());
    assert_eq!((status, answer.contains("first")), (200, true));
    assert!(
        ask(&server, path, &body.to_string())
            .1
            .contains("the script has no answer for request 2")
    );
}

fn streamed(wire: FakeWire) -> (String, String) {
    let (path, mut body) = conversation(wire);
    match wire {
        FakeWire::Gemini => {
            return (
                path.replace(":generate", ":streamGenerate") + "?alt=sse",
                body.to_string(),
            );
        }
        FakeWire::Chat | FakeWire::Messages | FakeWire::Responses => body["stream"] = json!(true),
    }
    (path.into(), body.to_string())
}

#[test]
fn streams_carry_every_piece_and_end_with_the_terminal_event() {
    let cases = [
        (
            FakeWire::Chat,
            "data: [DONE]\n\n",
            "\"reasoning_content\":\"hm\"",
        ),
        (
            FakeWire::Messages,
            "data: {\"type\":\"message_stop\"}\n\n",
            "\"thinking_delta\"",
        ),
        (
            FakeWire::Responses,
            "",
            "response.reasoning_summary_text.delta",
        ),
        (FakeWire::Gemini, "", "\"thought\":true"),
    ];
    for (wire, end, thinking) in cases {
        let answer = reply()
            .thinking("hm")
            .text("two words")
            .call("ls", json!({"path": "src"}));
        let server = FakeModel::start(vec![answer.usage(Usage {
            input_tokens: 77,
            output_tokens: 5,
            ..Usage::default()
        })]);
        let (path, body) = streamed(wire);
        let (status, events) = ask(&server, &path, &body);
        assert_eq!(status, 200);
        assert!(events.ends_with(end), "{wire:?}: {events}");
        for part in [thinking, "\"two \"", "\"words\"", "\"ls\""] {
            assert!(events.contains(part), "{wire:?} has no {part}: {events}");
        }
        // Chat Completions reports usage only if it is requested.
        assert_eq!(
            events.contains("77"),
            wire != FakeWire::Chat,
            "{wire:?}: {events}"
        );
    }
}

#[test]
fn whole_answers_carry_stop_reason_and_usage() {
    let cases = [
        (
            FakeWire::Chat,
            "/choices/0/finish_reason",
            "length",
            "/usage/prompt_tokens",
        ),
        (
            FakeWire::Messages,
            "/stop_reason",
            "max_tokens",
            "/usage/input_tokens",
        ),
        (
            FakeWire::Responses,
            "/incomplete_details/reason",
            "max_output_tokens",
            "/usage/input_tokens",
        ),
        (
            FakeWire::Gemini,
            "/candidates/0/finishReason",
            "MAX_TOKENS",
            "/usageMetadata/promptTokenCount",
        ),
    ];
    for (wire, stop_at, stop, usage_at) in cases {
        let usage = Usage {
            input_tokens: 9,
            output_tokens: 3,
            ..Usage::default()
        };
        let server = FakeModel::start(vec![
            reply()
                .text("half")
                .stop(StopReason::MaxTokens)
                .usage(usage),
        ]);
        let (path, body) = conversation(wire);
        let answer: Value = serde_json::from_str(&ask(&server, path, &body.to_string()).1).unwrap();
        assert_eq!(
            (
                &answer.pointer(stop_at).unwrap(),
                &answer.pointer(usage_at).unwrap()
            ),
            (&&json!(stop), &&json!(9)),
            "{wire:?}"
        );
    }
}

#[test]
fn a_cut_body_has_exactly_the_bytes_before_the_cut() {
    let (path, body) = streamed(FakeWire::Chat);
    let whole = ask(
        &FakeModel::start(vec![reply().text("some words")]),
        &path,
        &body,
    )
    .1;
    for at in [0, 1, 37, whole.len() - 1] {
        let server = FakeModel::start(vec![reply().text("some words").cut_at(at)]);
        let mut socket = connect(&server);
        post(&mut socket, &path, &body);
        let (answer, _) = read_to_end(&mut socket);
        let framed = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(unchunk(framed), whole[..at], "cut at {at}");
        assert!(
            !framed.ends_with("0\r\n\r\n"),
            "a cut body is not ended in good order"
        );
    }
}

#[test]
fn an_early_end_is_in_good_order_and_keeps_the_connection() {
    let server = FakeModel::start(vec![
        reply().text("some words").end_at(20),
        reply().text("again"),
    ]);
    let (path, body) = streamed(FakeWire::Chat);
    let mut socket = connect(&server);
    post(&mut socket, &path, &body);
    post(&mut socket, &path, &body);
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    let (answers, _) = read_to_end(&mut socket);
    assert_eq!(
        (
            answers.matches("HTTP/1.1 200").count(),
            answers.contains("again")
        ),
        (2, true),
        "{answers}"
    );
}

#[test]
fn chunks_and_pauses_shape_the_stream_but_not_its_content() {
    let (path, body) = streamed(FakeWire::Messages);
    let whole = ask(
        &FakeModel::start(vec![reply().text("some words")]),
        &path,
        &body,
    )
    .1;
    let begun = Instant::now();
    let server = FakeModel::start(vec![reply().text("some words").chunks_of(97).pause_ms(5)]);
    let chunked = ask(&server, &path, &body).1;
    assert_eq!(chunked, whole);
    assert!(begun.elapsed() >= Duration::from_millis(5 * (whole.len() as u64 / 97)));
}

#[test]
fn a_latch_holds_an_answer_until_it_is_released() {
    let held = latch();
    let server = FakeModel::start(vec![reply().text("late").held_by(&held)]);
    let (path, body) = conversation(FakeWire::Chat);
    let mut socket = connect(&server);
    post(&mut socket, path, &body.to_string());
    held.wait_arrived(1, DEADLINE);
    socket
        .set_read_timeout(Some(Duration::from_millis(30)))
        .unwrap();
    assert!(
        socket.read(&mut [0; 1]).is_err(),
        "nothing comes through a closed latch"
    );
    held.release();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 1);
}

#[test]
fn a_reset_is_a_reset_and_a_hang_is_ended_by_dropping_the_server() {
    let server = FakeModel::start(vec![reset(), hang()]);
    let (path, body) = conversation(FakeWire::Chat);
    let mut first = connect(&server);
    post(&mut first, path, &body.to_string());
    assert_eq!(read_to_end(&mut first), (String::new(), true));
    let mut second = connect(&server);
    post(&mut second, path, &body.to_string());
    while server.requests().len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(server);
    assert_eq!(read_to_end(&mut second).0, "");
}

#[test]
fn failures_have_the_shape_of_each_provider_and_may_ask_to_wait() {
    let cases = [
        (
            FakeWire::Chat,
            json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": null}}),
        ),
        (
            FakeWire::Messages,
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}),
        ),
        (
            FakeWire::Responses,
            json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": null}}),
        ),
        (
            FakeWire::Gemini,
            json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}),
        ),
    ];
    for (wire, expected) in cases {
        let server = FakeModel::start(vec![fail(429).message("slow down").retry_after(7)]);
        let (path, body) = conversation(wire);
        let mut socket = connect(&server);
        post(&mut socket, path, &body.to_string());
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let (answer, _) = read_to_end(&mut socket);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 429 ") && head.contains("retry-after: 7"),
            "{head}"
        );
        assert_eq!(
            serde_json::from_str::<Value>(body).unwrap(),
            expected,
            "{wire:?}"
        );
    }
}

#[test]
fn a_bench_like_run_makes_its_steps_and_ends() {
    let server = FakeModel::start_with(bench_like(1));
    let first =
        json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "go"}]});
    assert!(
        ask(&server, "/v1/messages", &first.to_string())
            .1
            .contains("f0.txt")
    );
    let (path, body) = conversation(FakeWire::Messages);
    assert!(ask(&server, path, &body.to_string()).1.contains("\"done\""));
}
