//! The place for tests of stable request prefixes: each request begins with the bytes of the one
//! before it, so that provider caches hit.

use crate::support::{agent, block_on, in_parallel, model, session, text};
use serde_json::{Value, json};
use stead_agent::RunOptions;
use stead_core::RunOutcome;
use stead_testkit::{FakeModel, FakeWire, RecordedRequest, RequestTurn, reply};

const RUNS: usize = 4;
const STEPS: usize = 5;

/// The bytes of a request's conversation, without the marks that say where to cache.
fn conversation(request: &RecordedRequest) -> String {
    let mut body = request.json.clone();
    unmark(&mut body);
    let key = match request.wire {
        FakeWire::Chat | FakeWire::Messages => "messages",
        FakeWire::Responses => "input",
        FakeWire::Gemini => "contents",
    };
    body[key].to_string()
}

/// Everything but the conversation.
fn frame(request: &RecordedRequest) -> Value {
    let mut body = request.json.clone();
    unmark(&mut body);
    for key in ["messages", "input", "contents"] {
        body.as_object_mut().unwrap().remove(key);
    }
    body
}

fn unmark(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(unmark);
        }
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_request_begins_with_the_bytes_of_the_one_before_it() {
    in_parallel(&FakeWire::ALL, |&wire| {
        let server = FakeModel::start_with(|request| {
            let turns = &request.seen.as_ref().unwrap().turns;
            let input = turns
                .iter()
                .rposition(|turn| matches!(turn, RequestTurn::User(_)))
                .unwrap();
            let step = turns[input..]
                .iter()
                .filter(|turn| matches!(turn, RequestTurn::Assistant { .. }))
                .count();
            let path = format!("f{input}-{step}.txt");
            match step {
                step if step < STEPS => reply()
                    .thinking("let me see")
                    .text("ä \"quoted\" \\ text")
                    .call(
                        "write_file",
                        json!({"file_path": path, "content": "1\n", "mode": "overwrite"}),
                    )
                    .call("ls", json!({})),
                _ => reply().text("done"),
            }
        });
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("AGENTS.md"), "You are thorough.").unwrap();
        block_on(async {
            let live = agent(dir.path(), model(&server, wire)).await;
            let mut session_here = live.session(session("s"));
            for run in 0..RUNS {
                // The last runs are those of another process, which knows only the journal.
                let input = text(&format!("Run {run}"));
                let report = if run < RUNS / 2 {
                    session_here
                        .run(input, RunOptions::default())
                        .await
                        .unwrap()
                } else {
                    let other = agent(dir.path(), model(&server, wire)).await;
                    other
                        .session(session("s"))
                        .run(input, RunOptions::default())
                        .await
                        .unwrap()
                };
                assert_eq!(
                    report.outcome,
                    RunOutcome::Completed,
                    "{wire:?}: {report:?}"
                );
            }
        });
        assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), RUNS * (STEPS + 1), "{wire:?}");
        for pair in requests.windows(2) {
            let before = &pair[0];
            let after = &pair[1];
            let earlier = conversation(before);
            let later = conversation(after);
            let prefix = earlier.strip_suffix(']').unwrap();
            assert!(
                later.starts_with(prefix),
                "{wire:?} request {}:\n{earlier}\n{later}",
                after.index
            );
            assert_eq!(
                frame(before),
                frame(after),
                "{wire:?} request {}",
                after.index
            );
            assert_bytes_extend(before, after);
        }
    });
}

/// The same on the raw bytes: all that may differ is what follows the conversation, and the moved
/// marks.
fn assert_bytes_extend(before: &RecordedRequest, after: &RecordedRequest) {
    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
    let clean = |request: &RecordedRequest| {
        String::from_utf8(request.body.to_vec())
            .unwrap()
            .replace(MARK, "")
    };
    let earlier = clean(before);
    let later = clean(after);
    let common = earlier
        .bytes()
        .zip(later.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    // What follows the conversation: the closing bracket and settings of the request.
    let tail = earlier.len() - common;
    assert!(
        tail <= 200 && !earlier[common..].contains("\"role\""),
        "{:?}: {tail} bytes differ: {}",
        after.wire,
        &earlier[common..]
    );
}
