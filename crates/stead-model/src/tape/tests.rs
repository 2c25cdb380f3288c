use super::*;
use crate::{ScriptedModel, SystemPart};
use std::borrow::Cow;
use stead_core::{Message, ResultStatus, ToolCall, ToolResult};

const SCRIPT: &str = "
- {thinking: hm, text: hello there, calls: [{tool: ls, args: {path: .}, id: c1}], chunk: 5}
- {text: goodbye}
";

fn scripted(text: &str) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::parse("s.yaml", text).unwrap())
}

fn request(said: &[&str]) -> Request {
    let messages = said.iter().enumerate().map(|(index, text)| {
        let content = vec![Block::text(*text)];
        Arc::new(if index % 2 == 0 {
            Message::User { content }
        } else {
            Message::Assistant { content }
        })
    });
    Request {
        messages: messages.collect(),
        ..Request::default()
    }
}

async fn heard(model: &dyn Model, request: &Request) -> Vec<Result<Delta, ModelError>> {
    model.stream(request).collect().await
}

async fn complaint(model: &dyn Model, request: &Request) -> String {
    match model.complete(request).await {
        Err(ModelError::Config(message)) => message,
        other => panic!("{other:?}"),
    }
}

async fn record(path: &Path, requests: &[Request]) -> Vec<Vec<Result<Delta, ModelError>>> {
    let recorder = Recorder::new(scripted(SCRIPT), path, Redactor::default()).unwrap();
    let mut all = Vec::new();
    for request in requests {
        all.push(heard(&recorder, request).await);
    }
    all
}

#[tokio::test]
async fn a_replay_repeats_the_recorded_answers_piece_by_piece() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let requests = [request(&["hi"]), request(&["hi", "hello there", "bye"])];
    let recorded = record(&path, &requests).await;
    let replay = Replay::load(&path).unwrap();
    // In any order: answers are found by the request.
    for (request, expected) in requests.iter().zip(&recorded).rev() {
        assert_eq!(&heard(&replay, request).await, expected);
    }
    assert_eq!(replay.name(), format!("replay:{}", path.display()));
}

#[tokio::test]
async fn another_system_prompt_does_not_matter_and_the_exact_request_wins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let with = |text: &str| {
        let system = vec![SystemPart {
            text: text.into(),
            stable: true,
        }];
        Request {
            system: system.into(),
            ..request(&["hi"])
        }
    };
    let script = "[{when: {system_contains: mon}, text: monday, else: {text: tuesday}}]";
    let recorder = Recorder::new(scripted(script), &path, Redactor::default()).unwrap();
    for day in ["mon", "tue"] {
        recorder.complete(&with(day)).await.unwrap();
    }
    let replay = Replay::load(&path).unwrap();
    for (day, answer) in [("tue", "tuesday"), ("mon", "monday"), ("wed", "monday")] {
        let reply = replay.complete(&with(day)).await.unwrap();
        assert_eq!(reply.content, [Block::text(answer)], "{day}");
    }
}

#[tokio::test]
async fn a_conversation_that_differs_is_named_by_its_first_difference() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    record(
        &path,
        &[request(&["hi"]), request(&["hi", "hello there", "bye"])],
    )
    .await;
    let replay = Replay::load(&path).unwrap();
    let why = |text: &str| format!("{} has no answer for this request: {text}", path.display());
    let cases = [
        (
            request(&["hi", "hello there", "see you"]),
            "message 3 (user) is not the recorded one",
        ),
        (request(&["ho"]), "message 1 (user) is not the recorded one"),
        (
            request(&["hi", "hello there"]),
            "the conversation ends after message 2, the nearest recorded one goes on",
        ),
        (
            request(&["hi", "hello there", "bye", "goodbye", "?"]),
            "the nearest recorded conversation ends after message 3",
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(complaint(&replay, &request).await, why(expected));
    }
    let empty = Replay::parse("t", "").unwrap();
    assert_eq!(
        complaint(&empty, &request(&["hi"])).await,
        "t has no answer for this request: the tape is empty"
    );
}

#[tokio::test]
async fn ids_that_a_session_made_up_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let with_id = |id: &str, args: &str| {
        let mut request = request(&["hi"]);
        let call = ToolCall {
            id: id.into(),
            name: "ls".into(),
            args: serde_json::json!({ "path": args }),
            invalid: None,
            signature: None,
        };
        let content = vec![Block::text("out")];
        let result = ToolResult {
            id: id.into(),
            name: "ls".into(),
            status: ResultStatus::Ok,
            exit_code: None,
            content,
            seq: 0,
        };
        request.messages.push(Arc::new(Message::Assistant {
            content: vec![Block::ToolCall(call)],
        }));
        request.messages.push(Arc::new(Message::Tool {
            results: vec![result],
        }));
        request
    };
    record(&path, &[with_id("call_1", ".")]).await;
    let replay = Replay::load(&path).unwrap();
    assert!(replay.complete(&with_id("call_2", ".")).await.is_ok());
    let complaint = complaint(&replay, &with_id("call_1", "/")).await;
    assert!(
        complaint.ends_with("message 2 (assistant) is not the recorded one"),
        "{complaint}"
    );
}

#[tokio::test]
async fn a_tape_holds_answers_but_not_what_was_asked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    record(&path, &[request(&["my password is hunter2"])]).await;
    let text = files::read(&path).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains("hello") && !text.contains("hunter2"));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_torn_last_line_is_passed_over_and_damage_elsewhere_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    record(&path, &[request(&["hi"])]).await;
    let whole = files::read(&path).unwrap();
    std::fs::write(&path, format!("{whole}{}", &whole[..20])).unwrap();
    assert!(
        Replay::load(&path)
            .unwrap()
            .complete(&request(&["hi"]))
            .await
            .is_ok()
    );
    // Recording continues after the last complete line.
    record(&path, &[request(&["ho"])]).await;
    assert_eq!(files::read(&path).unwrap().lines().count(), 2);
    assert!(
        Replay::load(&path)
            .unwrap()
            .complete(&request(&["ho"]))
            .await
            .is_ok()
    );

    let damaged = Replay::parse("t", &format!("{whole}{{\n{whole}")).unwrap_err();
    assert!(
        damaged
            .to_string()
            .starts_with("t:2: not a line of a tape: "),
        "{damaged}"
    );
}

#[tokio::test]
async fn failed_and_repeated_attempts_leave_no_pieces_on_the_tape() {
    #[derive(Debug)]
    struct Stumbling;
    impl Model for Stumbling {
        fn facts(&self) -> &ModelFacts {
            static FACTS: ModelFacts = ModelFacts::unknown(Cow::Borrowed("stumbling"));
            &FACTS
        }
        fn stream<'a>(&'a self, _: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
            let reply = Reply {
                content: vec![Block::text("b")],
                usage: Usage::default(),
                stop: StopReason::EndTurn,
                model: "m".into(),
            };
            let retry = Delta::Retry {
                attempt: 2,
                wait_ms: 0,
                reason: "r".into(),
            };
            let deltas = [
                Delta::Text("a".into()),
                retry,
                Delta::Text("b".into()),
                Delta::Done(Box::new(reply)),
            ];
            stream::iter(deltas.map(Ok)).boxed()
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let recorder = Recorder::new(Arc::new(Stumbling), &path, Redactor::default()).unwrap();
    assert_eq!(heard(&recorder, &request(&["hi"])).await.len(), 4);
    let replayed = heard(&Replay::load(&path).unwrap(), &request(&["hi"])).await;
    assert_eq!(replayed[0], Ok(Delta::Text("b".into())));
    assert_eq!(replayed.len(), 2);
}

#[tokio::test]
async fn given_replies_come_one_after_the_other() {
    let reply = |text: &str| Reply {
        content: vec![Block::text(text)],
        usage: Usage::default(),
        stop: StopReason::EndTurn,
        model: "anthropic:x".into(),
    };
    let replay = Replay::from_replies(vec![reply("one"), reply("two")]);
    let asked = request(&["hi"]);
    assert_eq!(
        heard(&replay, &asked).await,
        [
            Ok(Delta::Text("one".into())),
            Ok(Delta::Done(Box::new(reply("one"))))
        ]
    );
    assert_eq!(replay.complete(&asked).await, Ok(reply("two")));
    assert_eq!(
        complaint(&replay, &asked).await,
        "there is no answer for model call 3: the record has 2"
    );
}

#[tokio::test]
async fn a_tape_holds_no_secret_in_any_field_even_if_it_arrived_in_pieces() {
    let secret = "sk-canary-0123456789";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tape.jsonl");
    let script = format!(
        "- {{thinking: 'a {secret}', text: 'b {secret}', chunk: 3, calls: [{{tool: 'c_{secret}', \
         id: 'd-{secret}', args: {{'e {secret}': ['f {secret}']}}}}]}}"
    );
    let redactor = Redactor::new([secret.to_owned()]);
    let recorder = Recorder::new(scripted(&script), &path, redactor).unwrap();
    let request = request(&["hi"]);
    let live = recorder.complete(&request).await.unwrap();
    assert!(
        live.content
            .iter()
            .all(|block| format!("{block:?}").contains(secret))
    );
    let tape = std::fs::read_to_string(&path).unwrap();
    assert!(!tape.contains("canary"), "{tape}");
    let replayed = heard(&Replay::load(&path).unwrap(), &request).await;
    let said: String = replayed.iter().map(|delta| format!("{delta:?}")).collect();
    for part in ["a [", "b [", "c_[", "d-[", "e [", "f ["] {
        assert!(said.contains(&format!("{part}redacted]")), "{part}: {said}");
    }
}
