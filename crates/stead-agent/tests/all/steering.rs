//! Messages that come while a run goes on: what each mode makes of them, in which order, and that the history stays valid.

use crate::crew::{Says, answers};
use crate::support::{agent_on, block_on, journal, results, session, text};
use serde_json::json;
use std::sync::{Arc, Mutex};
use stead_agent::{Inbox, RunOptions, Sent};
use stead_core::{Entry, Line, Message, Risk};
use stead_tools::Output;
use stead_workspace::{DropPolicy, QueueMode, QueueSettings};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Step {
    n: usize,
}

const STEPS: usize = 20;

/// What happened, one line each, without what every step repeats.
fn story(lines: &[Line]) -> Vec<String> {
    let mut answers = 0;
    let mut told = Vec::new();
    for line in lines {
        match &line.entry {
            Entry::User(input) => told.push(format!("input: {}", said(&input.content))),
            Entry::Steer(steer) => told.push(format!("steer after {answers} answers: {}", said(&steer.content))),
            Entry::Model(_) => answers += 1,
            Entry::Result(result) if result.status.is_error() => {
                told.push(format!("{} {} after {answers} answers", result.id, result.status.as_str()));
            }
            Entry::End(end) => told.push(format!("{} after {answers} answers", end.outcome.as_str())),
            _ => {}
        }
    }
    told
}

fn said(content: &[stead_core::Block]) -> String {
    Message::User { content: content.to_vec() }.text()
}

/// Twenty steps of two calls; during the first call of the sixth step two messages come.
fn run(settings: QueueSettings) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Arc::new(Inbox::new(settings));
    let model = answers(|_, _, request| {
        // Steps since the newest input.
        let newest = request
            .messages
            .iter()
            .rposition(|message| matches!(&**message, Message::User { .. }) && !message.text().starts_with("steer"));
        let since = request.messages[newest.unwrap_or(0)..].iter();
        let done = since.filter(|message| matches!(&***message, Message::Assistant { .. })).count();
        match request.messages[newest.unwrap_or(0)].text().starts_with("go") && done < STEPS {
            true => Says::Calls(vec![("look", json!({"n": done})), ("note", json!({"n": done}))]),
            false => Says::Text("done".into()),
        }
    });
    let sender = inbox.clone();
    let sent = Arc::new(Mutex::new(false));
    let look = stead_tools::function(
        "look",
        "Looks.",
        Risk { parallel_safe: false, ..Risk::READS },
        move |cx: stead_tools::ToolCx, step: Step| {
            let (inbox, sent) = (sender.clone(), sent.clone());
            async move {
                if step.n == 5 && !std::mem::replace(&mut *sent.lock().unwrap(), true) {
                    assert_eq!(inbox.send(text("steer left")), Sent::Waits);
                    assert_eq!(inbox.send(text("steer right")), Sent::Waits);
                    if inbox.mode() == QueueMode::Interrupt {
                        cx.cancel.cancelled().await;
                    }
                }
                Ok(Output::text(format!("looked {}", step.n)))
            }
        },
    );
    let note = stead_tools::function(
        "note",
        "Notes.",
        Risk { parallel_safe: false, ..Risk::READS },
        |_, step: Step| async move { Ok(Output::text(format!("noted {}", step.n))) },
    );
    block_on(async {
        let agent = agent_on(dir.path(), model, Arc::new(stead_store::OsDisk), vec![look, note]).await;
        let mut live = agent.session(session("s"));
        let mut input = Some(text("go"));
        while let Some(content) = input {
            let options = RunOptions { inbox: Some(inbox.clone()), ..RunOptions::default() };
            live.run(content, options).await.unwrap();
            input = inbox.next_input().await;
        }
        let (lines, state) = journal(&agent, &session("s")).await;
        assert!(state.run.is_none() && !results(&lines).is_empty());
        story(&lines)
    })
}

// Acceptance 6.6
#[test]
fn each_mode_does_what_it_says_in_order() {
    let settings = |mode| QueueSettings { mode, debounce_ms: 50, ..QueueSettings::default() };
    #[rustfmt::skip]
    let table = [
        (QueueMode::Collect, vec!["input: go", "completed after 21 answers", "input: steer left\n\nsteer right", "completed after 22 answers"]),
        (QueueMode::Followup, vec!["input: go", "completed after 21 answers", "input: steer left", "completed after 22 answers", "input: steer right", "completed after 23 answers"]),
        (QueueMode::Steer, vec!["input: go", "c5_1 skipped after 6 answers", "steer after 6 answers: steer left\n\nsteer right", "completed after 21 answers"]),
        (QueueMode::SteerBacklog, vec!["input: go", "c5_1 skipped after 6 answers", "steer after 6 answers: steer left\n\nsteer right", "completed after 21 answers", "input: steer left", "completed after 22 answers", "input: steer right", "completed after 23 answers"]),
        (QueueMode::Interrupt, vec!["input: go", "c5_1 skipped after 6 answers", "cancelled after 6 answers", "input: steer left\n\nsteer right", "completed after 21 answers"]),
    ];
    for (mode, expected) in table {
        assert_eq!(run(settings(mode)), expected, "{mode}");
    }
}

#[test]
fn no_more_wait_than_may_and_what_is_dropped_is_what_was_said() {
    let words = |inbox: &Inbox| block_on(async { said(&inbox.next_input().await.unwrap()) });
    let inbox = |drop| {
        let settings = QueueSettings { mode: QueueMode::Collect, debounce_ms: 0, cap: 2, drop };
        let inbox = Inbox::new(settings);
        let sent: Vec<Sent> = ["one", "two", "three"].iter().map(|word| inbox.send(text(word))).collect();
        (words(&inbox), sent[2])
    };
    assert_eq!(inbox(DropPolicy::Old), ("two\n\nthree".to_owned(), Sent::InPlaceOfTheOldest));
    assert_eq!(inbox(DropPolicy::New), ("one\n\ntwo".to_owned(), Sent::Refused));
    let left_out = "[1 earlier messages were left out:]\n- one\n\ntwo\n\nthree".to_owned();
    assert_eq!(inbox(DropPolicy::Summarize), (left_out, Sent::InPlaceOfTheOldest));
}
