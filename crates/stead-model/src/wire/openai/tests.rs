use super::*;
use crate::wire::testing::{body, call, media, named, request, result, thought};
use crate::wire::tests::{DEEPSEEK, assert_splits_and_cuts, events, read};
use crate::{Delta, Params};
use serde_json::json;
use stead_core::{ResultStatus, StopReason, Usage};

const OPENAI: ChatDialect = ChatDialect {
    name: "openai",
    limit: LimitField::MaxCompletionTokens,
    effort: EffortField::Grade,
    thinking_back: None,
};

fn wire() -> OpenAi {
    OpenAi::new("gpt", DEEPSEEK)
}

#[test]
fn a_request_puts_the_system_first_and_media_of_tools_into_one_user_message() {
    let asked = request(vec![
        Message::user("look"),
        Message::Assistant {
            content: vec![
                thought("openai", "hm", None),
                call("c1", "."),
                call("c2", "a"),
            ],
        },
        Message::Tool {
            results: vec![
                result(
                    "c1",
                    ResultStatus::Ok,
                    vec![Block::text("a b"), media("image/png")],
                ),
                result(
                    "c2",
                    ResultStatus::Error,
                    vec![Block::text("no such folder")],
                ),
            ],
        },
        Message::Assistant {
            content: vec![thought("openai", "hm", None), Block::text("One picture.")],
        },
    ]);
    let function = |arguments: &str| json!({"name": "ls", "arguments": arguments});
    let want = json!({
        "model": "gpt",
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {
            "name": "ls",
            "description": "Lists a folder",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        }}],
        "messages": [
            {"role": "system", "content": "You are a gardener.\n\nToday is Monday."},
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": function("{\"path\":\".\"}")},
                {"id": "c2", "type": "function", "function": function("{\"path\":\"a\"}")},
            ]},
            {"role": "tool", "tool_call_id": "c1",
                "content": "a b\n\n(the attached media follow in the next user message)"},
            {"role": "tool", "tool_call_id": "c2", "content": "Error: no such folder"},
            {"role": "user", "content": [
                {"type": "text", "text": "Media returned by ls, call c1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            ]},
            {"role": "assistant", "content": "One picture."},
        ],
    });
    assert_eq!(body(&wire(), &asked, WireMode::Stream), want);
}

#[test]
fn user_content_is_a_string_unless_it_has_media() {
    let cases: Vec<(Vec<Block>, Value)> = vec![
        (vec![], json!("(no content)")),
        (vec![Block::text("a"), Block::text("b")], json!("a\n\nb")),
        (
            vec![named("text/plain", "a.txt")],
            json!("a.txt (text/plain):\nABC"),
        ),
        (
            vec![named("video/mp4", "a.mp4")],
            json!("[a.mp4 (video/mp4) is not shown: this model cannot read such files]"),
        ),
        (
            vec![named("application/pdf", "a.pdf"), Block::text("read")],
            json!([
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
                {"type": "text", "text": "read"},
            ]),
        ),
        (
            vec![media("audio/wav"), media("audio/mpeg")],
            json!([
                {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "mp3"}},
            ]),
        ),
    ];
    for (content, want) in cases {
        let body = body(
            &wire(),
            &request(vec![Message::User { content }]),
            WireMode::Stream,
        );
        assert_eq!(body["messages"][1]["content"], want);
    }
    let foreign = Message::Assistant {
        content: vec![thought("anthropic", "hm", Some("s"))],
    };
    let sent = body(&wire(), &request(vec![foreign]), WireMode::Stream);
    assert_eq!(
        sent["messages"][1],
        json!({"role": "assistant", "content": "(no visible answer)"})
    );
}

#[test]
fn settings_take_the_names_of_the_dialect() {
    let params = Params {
        max_output_tokens: Some(7),
        temperature: Some(0.5),
        thinking_tokens: Some(4000),
        tool_choice: ToolChoice::None,
        ..Params::default()
    };
    let keys = [
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "reasoning_effort",
        "reasoning",
        "tool_choice",
        "stream",
    ];
    let head = |dialect| {
        let asked = Request {
            params: params.clone(),
            ..request(vec![Message::user("hi")])
        };
        let body = body(&OpenAi::new("m", dialect), &asked, WireMode::Whole);
        keys.map(|key| body[key].clone())
    };
    let none = Value::Null;
    let temperature = json!(0.5);
    let medium = json!("medium");
    let choice = json!("none");
    let want = [
        none.clone(),
        json!(7),
        temperature.clone(),
        medium,
        none.clone(),
        choice.clone(),
        json!(false),
    ];
    assert_eq!(head(OPENAI), want);
    let router = ChatDialect {
        limit: LimitField::MaxTokens,
        effort: EffortField::Budget,
        ..OPENAI
    };
    let budget = json!({"max_tokens": 4000});
    assert_eq!(
        head(router),
        [
            json!(7),
            none.clone(),
            temperature,
            none,
            budget,
            choice,
            json!(false)
        ]
    );
}

fn chunk(delta: Value, finish: Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": null})
}

fn said(delta: Value) -> Value {
    chunk(delta, Value::Null)
}

fn usage() -> Value {
    json!({"choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens_details": {"reasoning_tokens": 5},
    }})
}

fn reply(content: Vec<Block>, stop: StopReason) -> Reply {
    Reply {
        content,
        usage: Usage::default(),
        stop,
        model: String::new(),
    }
}

fn done(stream: &str) -> Reply {
    match read(&wire(), &[stream.as_bytes()]) {
        (mut deltas, Ok(())) => match deltas.pop() {
            Some(Delta::Done(reply)) => *reply,
            other => panic!("{other:?} at the end"),
        },
        (_, Err(error)) => panic!("{error} in {stream}"),
    }
}

#[test]
fn a_stream_means_the_same_however_it_is_split_and_nothing_when_cut() {
    let body = events(&[
        said(json!({"role": "assistant", "content": ""})),
        said(json!({"reasoning_content": "hm é"})),
        said(json!({"content": "I "})),
        said(json!({"content": "look."})),
        said(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "ls", "arguments": ""}}]}),
        ),
        said(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\":"}}]})),
        said(
            json!({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "ls", "arguments": "{\"path\""}}]}),
        ),
        said(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\".\"}"}}]})),
        said(json!({"tool_calls": [{"index": 1, "function": {"arguments": ":\"a\"}"}}]})),
    ]);
    let finish = events(&[chunk(json!({}), json!("tool_calls"))]);
    let rest = format!("{}data: [DONE]\n\n", events(&[usage()]));
    let content = vec![
        thought_of("hm é"),
        Block::text("I look."),
        call("c1", "."),
        call("c2", "a"),
    ];
    let tokens = Usage {
        input_tokens: 100,
        cache_read_tokens: 80,
        cache_write_tokens: 0,
        output_tokens: 20,
        reasoning_tokens: 5,
    };
    let whole = Reply {
        content,
        usage: tokens,
        stop: StopReason::ToolUse,
        model: String::new(),
    };
    let want = vec![
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
            index: 1,
            json: "{\"path\"".into(),
        },
        Delta::CallArgs {
            index: 0,
            json: "\".\"}".into(),
        },
        Delta::CallArgs {
            index: 1,
            json: ":\"a\"}".into(),
        },
        Delta::Done(Box::new(whole.clone())),
    ];

    // Without the usage event, a stream is complete after its finish reason.
    let short = format!("{body}{finish}");
    let deltas = assert_splits_and_cuts(&wire(), &short, short.len() - 2);
    assert_eq!(deltas[..9], want[..9]);

    // With it, a cut after the finish reason can lose the token counts, and nothing else.
    let stream = format!("{short}{rest}");
    assert_eq!(read(&wire(), &[stream.as_bytes()]), (want, Ok(())));
    for cut in short.len()..stream.len() {
        let (deltas, _) = read(&wire(), &[&stream.as_bytes()[..cut]]);
        if let Some(Delta::Done(reply)) = deltas.last() {
            assert!([Usage::default(), tokens].contains(&reply.usage));
            assert_eq!(
                Reply {
                    usage: tokens,
                    ..(**reply).clone()
                },
                whole,
                "cut at byte {cut}"
            );
        }
    }
}

fn thought_of(text: &str) -> Block {
    thought(ORIGIN, text, None)
}

#[test]
fn servers_that_leave_out_index_or_id_are_understood() {
    let entire = |id: Value, path: &str| json!({"id": id, "function": {"name": "ls", "arguments": format!("{{\"path\":\"{path}\"}}")}});
    let indexed = |index: u32, id: &str, path: &str| {
        let mut call = entire(json!(id), path);
        call["index"] = json!(index);
        call
    };
    let finish = || chunk(json!({}), json!("stop"));
    let both = |a: &str, b: &str| reply(vec![call(a, "1"), call(b, "2")], StopReason::ToolUse);
    let cases: Vec<(&str, Vec<Value>, Reply)> = vec![
        (
            "whole calls in one chunk, no index",
            vec![said(
                json!({"tool_calls": [entire(json!("a"), "1"), entire(json!("b"), "2")]}),
            )],
            both("a", "b"),
        ),
        (
            "neither index nor id",
            vec![
                said(json!({"tool_calls": [entire(json!(null), "1")]})),
                said(json!({"tool_calls": [entire(json!(""), "2")]})),
            ],
            both("call_0", "call_1"),
        ),
        (
            "every call has index 0",
            vec![
                said(json!({"tool_calls": [indexed(0, "a", "1")]})),
                said(json!({"tool_calls": [indexed(0, "b", "2")]})),
            ],
            both("a", "b"),
        ),
        (
            "pieces with neither",
            vec![
                said(
                    json!({"tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{\"path\""}}]}),
                ),
                said(json!({"tool_calls": [{"function": {"arguments": ":\"1\"}"}}]})),
                said(json!({"tool_calls": [entire(json!("b"), "2")]})),
            ],
            both("a", "b"),
        ),
        (
            "id and name repeated in each piece",
            vec![
                said(
                    json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "{\"pa"}}]}),
                ),
                said(
                    json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "ls", "arguments": "th\":\"1\"}"}}]}),
                ),
                said(json!({"tool_calls": [indexed(1, "b", "2")]})),
            ],
            both("a", "b"),
        ),
        (
            "arguments as an object",
            vec![said(json!({"tool_calls": [
                {"index": 0, "id": "a", "function": {"name": "ls", "arguments": {"path": "1"}}}, indexed(1, "b", "2")]}))],
            both("a", "b"),
        ),
        (
            "the legacy function call",
            vec![
                said(json!({"function_call": {"name": "ls", "arguments": "{\"path\":"}})),
                said(json!({"function_call": {"arguments": "\"1\"}"}})),
            ],
            reply(vec![call("call_0", "1")], StopReason::ToolUse),
        ),
    ];
    for (case, mut chunks, want) in cases {
        chunks.push(finish());
        assert_eq!(done(&events(&chunks)), want, "{case}");
    }
}

#[test]
fn answers_in_other_shapes_are_understood() {
    let stop = json!("stop");
    let cases = [
        (
            chunk(json!({"reasoning": "hm", "content": "a"}), stop.clone()),
            {
                reply(
                    vec![thought_of("hm"), Block::text("a")],
                    StopReason::EndTurn,
                )
            },
        ),
        (
            chunk(
                json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "a"}]}),
                stop.clone(),
            ),
            reply(
                vec![thought_of("hm"), Block::text("a")],
                StopReason::EndTurn,
            ),
        ),
        (
            chunk(json!({"refusal": "no"}), stop),
            reply(vec![Block::text("no")], StopReason::Refusal),
        ),
        (
            chunk(json!({"content": "a"}), json!("length")),
            reply(vec![Block::text("a")], StopReason::MaxTokens),
        ),
        (
            chunk(json!({}), json!("content_filter")),
            reply(vec![], StopReason::ContentFilter),
        ),
        (
            chunk(json!({}), json!("odd")),
            reply(vec![], StopReason::Other("odd".into())),
        ),
    ];
    for (chunk, want) in cases {
        assert_eq!(done(&events(&[chunk])), want);
    }
}

#[test]
fn errors_within_a_stream_keep_their_meaning() {
    let begun = said(json!({"content": "a"}));
    let text = || vec![Delta::Text("a".into())];
    let cases = [
        (json!({"error": {"code": 429, "message": "m"}}), {
            ModelError::RateLimited {
                retry_after: None,
                message: "m".into(),
            }
        }),
        (
            json!({"error": {"message": "m", "type": "server_error"}}),
            {
                ModelError::Unavailable {
                    status: 200,
                    retry_after: None,
                    message: "m".into(),
                }
            },
        ),
        (chunk(json!({}), json!("error")), {
            ModelError::Unavailable {
                status: 200,
                retry_after: None,
                message: "the answer ended with `error`".into(),
            }
        }),
        (
            json!({"choices": [], "error": {"message": "m", "code": "context_length_exceeded"}}),
            { ModelError::ContextOverflow("m".into()) },
        ),
    ];
    for (event, want) in cases {
        assert_eq!(
            read(&wire(), &[events(&[begun.clone(), event]).as_bytes()]),
            (text(), Err(want))
        );
    }
    let unfinished = format!("{}data: [DONE]\n\n", events(std::slice::from_ref(&begun)));
    assert_eq!(
        read(&wire(), &[unfinished.as_bytes()]),
        (text(), Err(ModelError::Cut))
    );
}

#[test]
fn of_several_choices_the_first_counts() {
    let chunk = |index: u64, text: &str, finish: Value| json!({"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}]});
    let stream = [
        chunk(0, "yes", Value::Null),
        chunk(1, "no", Value::Null),
        chunk(1, "", json!("stop")),
        chunk(0, "", json!("stop")),
    ];
    let text = format!("{}data: [DONE]\n\n", events(&stream));
    let (deltas, end) = read(&wire(), &[text.as_bytes()]);
    assert_eq!(
        (&deltas[..1], end),
        (&[Delta::Text("yes".into())][..], Ok(()))
    );
    let whole = reply(vec![Block::text("yes")], StopReason::EndTurn);
    assert_eq!(deltas[1..], [Delta::Done(Box::new(whole))]);
}

#[test]
fn a_whole_answer_is_the_same_as_a_streamed_one() {
    let whole = json!({
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I look.", "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\".\"}"}}],
        }}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_cache_hit_tokens": 2},
    });
    let usage = Usage {
        input_tokens: 3,
        output_tokens: 4,
        cache_read_tokens: 2,
        ..Usage::default()
    };
    let content = vec![thought_of("hm"), Block::text("I look."), call("c1", ".")];
    let want = Reply {
        usage,
        ..reply(content, StopReason::ToolUse)
    };
    assert_eq!(wire().parse(whole.to_string().as_bytes()), Ok(want));
    assert!(matches!(
        wire().parse(br#"{"choices":[]}"#),
        Err(ModelError::Protocol(_))
    ));
    assert!(matches!(
        wire().parse(br#"{"error":{"code":503,"message":"m"}}"#),
        Err(ModelError::Unavailable { .. })
    ));
}
