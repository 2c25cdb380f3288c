//! The place for tests of reading journals of earlier formats.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_core::{AgentId, Redactor, SessionId, SessionState};
use stead_store::{FileSessions, LockWait, OsDisk, Sessions};

/// Journals with the state they fold to: a conversation; the session of a subagent with questions,
/// steering and changes; nested calls, some of them in an open run; and the origins of untrusted
/// content, with a person's word on them.
const GOLDEN: [(&str, &str); 4] = [
    (
        include_str!("golden/v1.log.jsonl"),
        include_str!("golden/v1.state.json"),
    ),
    (
        include_str!("golden/v1-hands.log.jsonl"),
        include_str!("golden/v1-hands.state.json"),
    ),
    (
        include_str!("golden/v1-nested.log.jsonl"),
        include_str!("golden/v1-nested.state.json"),
    ),
    (
        include_str!("golden/v1-trust.log.jsonl"),
        include_str!("golden/v1-trust.state.json"),
    ),
];
/// Every entry kind of format 1.
const KINDS: [&str; 15] = [
    "ask",
    "call",
    "compaction",
    "decision",
    "end",
    "hook",
    "model",
    "notice",
    "pin",
    "result",
    "rewind",
    "session",
    "set",
    "steer",
    "user",
];

fn folded(state: &SessionState) -> Value {
    json!({"state": state, "messages": state.messages()})
}

/// Panics unless everything that was known before still holds. Derived data beside it may grow.
fn assert_holds(now: &Value, then: &Value, at: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (name, then) in then {
                assert_holds(
                    now.get(name).unwrap_or(&Value::Null),
                    then,
                    &format!("{at}.{name}"),
                );
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{at}");
            now.iter()
                .zip(then)
                .enumerate()
                .for_each(|(i, (now, then))| assert_holds(now, then, &format!("{at}[{i}]")));
        }
        (now, then) => assert_eq!(now, then, "{at}"),
    }
}

#[tokio::test]
async fn journals_of_format_1_fold_to_what_they_always_did() {
    for (journal, expected) in GOLDEN {
        let dir = tempfile::tempdir().unwrap();
        let journals = FileSessions::new(
            dir.path(),
            AgentId::new("main").unwrap(),
            Arc::new(OsDisk),
            Redactor::default(),
        );
        let id = SessionId::new("golden").unwrap();
        let path = journals.path(&id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, journal).unwrap();

        let expected: Value = serde_json::from_str(expected).unwrap();
        let opened = journals.open(&id, None, LockWait::No).await.unwrap();
        assert_eq!(opened.torn, None);
        assert_holds(&folded(&opened.state.unwrap()), &expected, "");

        let mut state = SessionState::default();
        for line in journals.read(&id).await.unwrap() {
            state.apply(line.seq, &line.entry).unwrap();
        }
        assert_holds(&folded(&state), &expected, "");
    }
}

#[test]
fn the_files_show_every_kind() {
    let lines = GOLDEN.iter().flat_map(|(journal, _)| journal.lines());
    let kinds: BTreeSet<String> = lines
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["kind"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), KINDS);
}
