use super::*;
use crate::SystemPart;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{Block, Message, ResultStatus, StopReason, Thinking, ToolCall, ToolResult};

fn script(text: &str) -> ScriptedModel {
    ScriptedModel::parse("s.yaml", text).unwrap()
}

fn mistake(text: &str) -> String {
    match ScriptedModel::parse("s.yaml", text) {
        Err(ModelError::Config(message)) => message,
        other => panic!("{other:?}"),
    }
}

/// A conversation that grows by the model's answers.
#[derive(Default)]
struct Talk(Request);

impl Talk {
    fn system(text: &str) -> Self {
        let system = vec![SystemPart {
            text: text.into(),
            stable: true,
        }];
        Self(Request {
            system: system.into(),
            ..Request::default()
        })
    }

    fn say(&mut self, text: &str) -> &mut Self {
        self.0.messages.push(Arc::new(Message::user(text)));
        self
    }

    fn result(&mut self, text: &str) -> &mut Self {
        let content = vec![Block::text(text)];
        let result = ToolResult {
            id: String::new(),
            name: "ls".into(),
            status: ResultStatus::Ok,
            exit_code: None,
            content,
            seq: 0,
        };
        self.0.messages.push(Arc::new(Message::Tool {
            results: vec![result],
        }));
        self
    }

    async fn ask(&mut self, model: &ScriptedModel) -> Result<String, ModelError> {
        let reply = model.complete(&self.0).await?;
        let message = Message::Assistant {
            content: reply.content,
        };
        let text = message.text();
        self.0.messages.push(Arc::new(message));
        Ok(text)
    }
}

async fn deltas(model: &ScriptedModel, request: &Request) -> Vec<Result<Delta, ModelError>> {
    model.stream(request).collect().await
}

#[tokio::test]
async fn an_item_is_a_whole_answer_in_pieces() {
    let model = script(
        "
- thinking: hm
  text: grüße!
  calls:
    - {tool: ls, args: {path: .}}
    - {tool: rm, args: '{broken', id: mine}
  chunk: 4
  usage: {input_tokens: 7, reasoning_tokens: 1}
",
    );
    let mut talk = Talk::default();
    let got = deltas(&model, &talk.say("hi").0).await;
    let args = |index, json: &str| {
        Ok(Delta::CallArgs {
            index,
            json: json.into(),
        })
    };
    let call = |id: &str, name: &str, args, invalid: Option<&str>| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            args,
            invalid: invalid.map(Into::into),
            signature: None,
        })
    };
    let invalid = "the arguments are not valid JSON: key must be a string at line 1 column 2";
    let content = vec![
        Block::Thinking(Thinking {
            text: "hm".into(),
            origin: "scripted".into(),
            ..Thinking::default()
        }),
        Block::text("grüße!"),
        call("", "ls", json!({"path": "."}), None),
        call("mine", "rm", json!({}), Some(invalid)),
    ];
    let output_tokens = serde_json::to_string(&content).unwrap().len().div_ceil(4) as u64;
    let usage = Usage {
        input_tokens: 7,
        output_tokens,
        reasoning_tokens: 1,
        ..Usage::default()
    };
    let reply = Reply {
        content,
        usage,
        stop: StopReason::ToolUse,
        model: "scripted:s.yaml".into(),
    };
    assert_eq!(
        got,
        [
            Ok(Delta::Thinking("hm".into())),
            Ok(Delta::Text("grüß".into())),
            Ok(Delta::Text("e!".into())),
            Ok(Delta::CallStarted {
                index: 0,
                name: "ls".into()
            }),
            args(0, "{\"pa"),
            args(0, "th\":"),
            args(0, "\".\"}"),
            Ok(Delta::CallStarted {
                index: 1,
                name: "rm".into()
            }),
            args(1, "{bro"),
            args(1, "ken"),
            Ok(Delta::Done(Box::new(reply))),
        ]
    );
}

#[tokio::test]
async fn the_place_in_the_script_follows_from_the_conversation_alone() {
    const SCRIPT: &str = "
- {text: one, calls: [{tool: ls}]}
- {when: {tool_result_contains: notes}, text: two}
- {text: three}
";
    let mut talk = Talk::default();
    // A new model for every call, so that nothing can have been remembered.
    assert_eq!(talk.say("a").ask(&script(SCRIPT)).await, Ok("one".into()));
    assert_eq!(
        talk.result("notes.md").ask(&script(SCRIPT)).await,
        Ok("two".into())
    );
    assert_eq!(talk.say("b").ask(&script(SCRIPT)).await, Ok("three".into()));
    let end = "script s.yaml has no answer for model call 4: it ends before that";
    assert_eq!(
        talk.say("c").ask(&script(SCRIPT)).await,
        Err(ModelError::Config(end.into()))
    );

    let mut other = Talk::default();
    assert_eq!(other.say("a").ask(&script(SCRIPT)).await, Ok("one".into()));
    assert_eq!(
        other.result("empty").ask(&script(SCRIPT)).await,
        Ok("three".into())
    );
}

#[tokio::test]
async fn a_loop_starts_again() {
    let model = script("[{text: a}, {text: b}, {loop: true}]");
    let mut talk = Talk::default();
    for expected in ["a", "b", "a", "b", "a"] {
        assert_eq!(talk.say("go").ask(&model).await, Ok(expected.into()));
    }
    let never = script("[{when: {last_contains: x}, text: a}, {loop: true}]");
    let error = "script s.yaml has no answer for model call 1: no remaining item's `when` holds";
    assert_eq!(
        Talk::default().say("y").ask(&never).await,
        Err(ModelError::Config(error.into()))
    );
}

#[tokio::test]
async fn else_answers_where_the_condition_does_not_hold() {
    let model = script(
        "
- when: {user_contains: red}
  text: red
  else: {when: {user_contains: [dark, blue]}, text: dark blue, else: {text: some colour}}
- text: next
",
    );
    for (said, answer) in [
        ("red", "red"),
        ("dark blue", "dark blue"),
        ("blue", "some colour"),
    ] {
        let mut talk = Talk::default();
        assert_eq!(talk.say(said).ask(&model).await, Ok(answer.into()));
        assert_eq!(talk.say("and?").ask(&model).await, Ok("next".into()));
    }
}

#[tokio::test]
async fn conditions_look_where_they_say() {
    let cases = [
        ("last_contains: beta", true),
        ("last_contains: [beta, gamma]", true),
        ("last_contains: alpha", false),
        ("any_contains: alpha", true),
        ("any_contains: first", true),
        ("tool_result_contains: beta", true),
        ("tool_result_contains: gamma", false),
        ("user_contains: alpha", true),
        ("user_contains: beta", false),
        ("system_contains: gardener", true),
        ("system_contains: alpha", false),
        ("any_contains: alpha, system_contains: alpha", false),
    ];
    for (condition, holds) in cases {
        let model = script(&format!(
            "[{{text: first}}, {{when: {{{condition}}}, text: \"yes\", else: {{text: \"no\"}}}}]"
        ));
        let mut talk = Talk::system("You are a gardener.");
        talk.say("alpha").ask(&model).await.unwrap();
        let answer = if holds { "yes" } else { "no" };
        assert_eq!(
            talk.result("beta").say("gamma").ask(&model).await,
            Ok(answer.into()),
            "{condition}"
        );
    }
}

#[tokio::test]
async fn errors_happen_as_often_as_told_and_take_no_turn() {
    let model = script(
        "
- text: one
- {error: {kind: rate_limited, retry_after_ms: 10, times: 2}}
- {text: so far, error: {kind: cut}}
- text: two
",
    );
    let limited = ModelError::RateLimited {
        retry_after: Some(Duration::from_millis(10)),
        message: "scripted".into(),
    };
    let mut talk = Talk::default();
    assert_eq!(talk.say("a").ask(&model).await, Ok("one".into()));
    talk.say("b");
    assert_eq!(talk.ask(&model).await, Err(limited.clone()));
    assert_eq!(talk.ask(&model).await, Err(limited));
    assert_eq!(
        deltas(&model, &talk.0).await,
        [Ok(Delta::Text("so far".into())), Err(ModelError::Cut)]
    );
    assert_eq!(talk.ask(&model).await, Ok("two".into()));
}

#[tokio::test]
async fn an_expectation_that_fails_says_what_was_missing() {
    let model = script("- text: one\n- expect: {last_contains: please}\n  text: two\n");
    let mut talk = Talk::default();
    talk.say("a").ask(&model).await.unwrap();
    let error = "s.yaml:2: the script expects last_contains: \"please\", which was not sent";
    assert_eq!(
        talk.say("now!").ask(&model).await,
        Err(ModelError::Config(error.into()))
    );
    assert_eq!(talk.say("please").ask(&model).await, Ok("two".into()));
}

#[tokio::test]
async fn pieces_wait_for_their_delay() {
    let model = script("[{text: abc, chunk: 1, delay_ms: 5}]");
    let started = Instant::now();
    assert_eq!(Talk::default().say("x").ask(&model).await, Ok("abc".into()));
    assert!(started.elapsed() >= Duration::from_millis(15));
}

#[tokio::test]
async fn usage_is_estimated_from_what_is_sent_and_said() {
    let model = script("[{text: '12345678', stop: max_tokens}]");
    let mut talk = Talk::default();
    let reply = model.complete(&talk.say("hi").0).await.unwrap();
    let sent = serde_json::to_string(&talk.0.messages[0])
        .unwrap()
        .len()
        .div_ceil(4) as u64;
    let said = serde_json::to_string(&reply.content)
        .unwrap()
        .len()
        .div_ceil(4) as u64;
    assert_eq!(
        reply.usage,
        Usage {
            input_tokens: sent,
            output_tokens: said,
            ..Usage::default()
        }
    );
    assert_eq!(reply.stop, StopReason::MaxTokens);
}

#[test]
fn mistakes_are_reported_where_they_are() {
    let cases = [
        ("- text: a\n- txt: b\n", "s.yaml:2:3: unknown field `txt`"),
        (
            "- text: a\n- when: {last: b}\n  text: c\n",
            "s.yaml:2:10: unknown field `last`",
        ),
        ("- text: [a]\n", "s.yaml:1:9: expected string scalar"),
        ("- text: \"open\n", "s.yaml:2:1: invalid indentation"),
        ("[]", "s.yaml: the script has no answers"),
        ("[{loop: true}]", "s.yaml: the script has no answers"),
        (
            "- delay_ms: 4\n",
            "s.yaml:1:3: an item needs `text`, `thinking`, `calls` or `error`",
        ),
        (
            "- text: a\n- loop: true\n- text: b\n",
            "s.yaml:2:3: `loop: true` must be an item of its own, and the last",
        ),
        (
            "- text: a\n- {loop: true, text: b}\n",
            "s.yaml:2:3: `loop: true` must be an item of its own",
        ),
        (
            "- {text: a, else: {text: b}}\n",
            "s.yaml:1:3: `else` needs a `when`",
        ),
        (
            "- error: {kind: auth, status: 9}\n",
            "s.yaml:1:3: only `unavailable` has a `status`",
        ),
        (
            "- error: {kind: sunspots}\n",
            "s.yaml:1:17: unknown variant `sunspots`",
        ),
        (
            "- {error: {kind: cut}, usage: {}}\n",
            "s.yaml:1:3: an item with `error` has no",
        ),
    ];
    for (text, expected) in cases {
        let message = mistake(text);
        assert!(
            message.starts_with(expected),
            "{message:?} instead of {expected:?}"
        );
        assert!(
            !message.contains('\n') && !message.contains(" at line "),
            "{message:?}"
        );
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = ScriptedModel::load(Path::new("/nowhere/s.yaml")).unwrap_err();
    let message = "cannot read /nowhere/s.yaml: there is no such file or folder";
    assert_eq!(error, ModelError::Config(message.into()));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[-a-z:{}\\[\\]\"' \n&*!|>0-9]{0,80}", key in "(text|when|else|calls|error|loop): ") {
        let _ = ScriptedModel::parse("s.yaml", &text);
        let _ = ScriptedModel::parse("s.yaml", &format!("- {key}{text}"));
    }
}
