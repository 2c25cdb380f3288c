//! The place for tests of `stead sessions compact` and pins, and kills during a summary.

use crate::support::{Folder, endpoints};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stead_testkit::{FakeModel, RequestTurn, latch, reply};

const DEADLINE: Duration = Duration::from_secs(30);
const SUMMARY: &str = "## Intent\nRead the pages.\n## State\nSome were read.";

/// A folder with pages to read, and a model whose window they fill.
fn pages() -> Folder {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "model: {name: 'anthropic:x', context_window: 12000}\n",
    );
    for n in 0..40 {
        folder.put(
            &format!("page{n}.txt"),
            &format!("page {n} says {}\n", "words ".repeat(300)),
        );
    }
    folder
}

fn wants_summary(seen: &stead_testkit::ParsedRequest) -> bool {
    matches!(seen.turns.last(), Some(RequestTurn::User(text)) if text.contains("exactly these sections"))
}

#[test]
fn a_process_killed_while_it_waits_for_a_summary_loses_nothing() {
    let folder = pages();
    let held = latch();
    let steps = AtomicUsize::new(0);
    let closed = held.clone();
    let server = FakeModel::start_with(move |request| {
        if wants_summary(request.seen.as_ref().unwrap()) {
            return reply().text(SUMMARY).held_by(&closed);
        }
        match steps.fetch_add(1, Ordering::SeqCst) {
            step if step < 40 => {
                reply().call("read_file", json!({"file_path": format!("page{step}.txt")}))
            }
            _ => reply().text("all read"),
        }
    });
    let mut child = folder
        .process(&["run", "-s", "s", "read the pages"])
        .envs(endpoints(&server))
        .spawn()
        .unwrap();
    let end = Instant::now() + DEADLINE;
    while held.arrivals() == 0 {
        assert!(
            Instant::now() < end && child.try_wait().unwrap().is_none(),
            "no summary was asked for"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = folder.read("agents/main/sessions/s.log.jsonl");
    held.release();
    let resumed = folder
        .run_with(&server, &["run", "-s", "s", "--resume"])
        .exits(0);
    assert_eq!(resumed.out, "all read\n");
    assert!(
        resumed.err.contains("context") && resumed.err.contains("tokens"),
        "{}",
        resumed.err
    );
    let after = folder.read("agents/main/sessions/s.log.jsonl");
    assert!(after.starts_with(&before), "what was written was changed");
    // Everything is still there, and shown in full.
    let full = folder
        .run(&["sessions", "show", "s", "--full"])
        .exits(0)
        .out;
    assert!(
        (0..40).all(|n| full.contains(&format!("page {n} says"))),
        "{full}"
    );
    assert!(
        full.contains("context compacted") && full.contains("Read the pages."),
        "{full}"
    );
    folder.run(&["sessions", "replay", "s"]).exits(0);
    assert_eq!(server.rejections(), Vec::new());
}

#[test]
fn a_session_is_compacted_and_an_input_pinned_from_the_command_line() {
    let folder = pages();
    let server = FakeModel::start_with(move |request| {
        if wants_summary(request.seen.as_ref().unwrap()) {
            return reply().text(SUMMARY);
        }
        reply().text(format!("answer {}", request.index))
    });
    let run = |args: &[&str]| folder.run_with(&server, args).exits(0);
    run(&["run", "-s", "s", "--pin", "THE RULE"]);
    for n in 0..5 {
        run(&[
            "run",
            "-s",
            "s",
            &format!("question {n} {}", "and so on ".repeat(40)),
        ]);
    }
    run(&["sessions", "pin", "s", "--turn", "2"]);
    let made = run(&["sessions", "compact", "s", "--focus", "the rule", "--json"]);
    let made: Value = serde_json::from_str(made.out.trim()).unwrap();
    assert_eq!(
        (&made["cause"], &made["focus"]),
        (&json!("manual"), &json!("the rule"))
    );
    run(&["run", "-s", "s", "and now?"]);
    let seen = server.last_request().seen.unwrap();
    let RequestTurn::User(first) = &seen.turns[0] else {
        panic!("{:?}", seen.turns)
    };
    assert!(
        first.contains("<pinned_message>\nTHE RULE\n</pinned_message>"),
        "{first}"
    );
    assert!(
        first.contains("<pinned_message>\nquestion 0 and so on"),
        "{first}"
    );
    assert!(!first.contains("question 1"), "{first}");
    run(&["sessions", "pin", "s", "--turn", "2", "--off"]);
    run(&["run", "-s", "s", "and now?"]);
    let seen = server.last_request().seen.unwrap();
    assert!(
        matches!(&seen.turns[0], RequestTurn::User(text) if !text.contains("question 0")),
        "{:?}",
        seen.turns[0]
    );
    let wrong = folder
        .run(&["sessions", "pin", "s", "--turn", "99"])
        .exits(2);
    assert!(wrong.err.contains("has no turn 99"), "{}", wrong.err);
    assert_eq!(server.rejections(), Vec::new());
}
