//! The place for tests of commands to a session and of subscriptions to it, in one process and
//! between two hosts.

use crate::support::*;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{Agent, GrantKey, GrantKeys};
use stead_core::{
    AnswerCommand, ApprovalAnswer, ApprovalReply, Client, ClientError, Command, Cursor, Entry,
    EventKind, InputCommand, InputStatus, PermissionMode, Presence, QueueMode, Receipt, RunId,
    SessionAddress, SessionChange, SessionEvent, SessionEventBody, SessionId, Subscription,
};
use stead_host::{Host, SessionOptions};
use stead_model::ModelSettings;
use stead_store::Inserted;
use stead_testkit::{FakeModel, RecordedRequest, latch, reply};

const COLLECT: &str = "queue: {mode: collect, debounce_ms: 10}\n";

#[test]
fn a_command_is_acknowledged_with_its_entry_and_followed_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start(vec![reply().text("Hello there.")]);
    block_on(async {
        let (host, address) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&host, &address).await;
        let receipt = host.send(&address, input("hi"), None).await.unwrap();
        assert_eq!(receipt.seq, Some(2));
        let seen = until(&mut *events, is_end).await;
        assert_eq!(kinds(&seen), ["session", "user", "model", "end"]);
        let deltas: String = seen
            .iter()
            .filter_map(|event| match &event.body {
                SessionEventBody::Live(live) => match &live.kind {
                    EventKind::TextDelta { text } => Some(text.clone()),
                    _ => None,
                },
                SessionEventBody::Entry(_) => None,
            })
            .collect();
        assert_eq!(deltas, "Hello there.");
        // Ids only grow, and a later subscription goes on after any of them.
        assert!(seen.is_sorted_by(|a, b| a.id < b.id));
        for (n, event) in seen.iter().enumerate() {
            let mut again = host
                .subscribe(&address, Cursor::After(event.id), Presence::Watches)
                .await
                .unwrap();
            let rest = entries(&seen[n + 1..]);
            for expected in rest {
                let event = again.next().await.unwrap();
                assert_eq!(entries(&[event]), [expected]);
            }
        }
    });
}

/// The key of a person.
#[derive(Debug)]
struct Keys([u8; 32]);

impl GrantKeys for Keys {
    fn key(&self) -> Result<Option<GrantKey>, String> {
        self.key_or_new().map(Some)
    }

    fn key_or_new(&self) -> Result<GrantKey, String> {
        Ok(GrantKey::new(self.0))
    }
}

#[test]
fn a_command_in_an_inbox_counts_only_from_the_person_who_gave_it() {
    let server = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
    // The key of who gave the command, that of who opens the session, and whether it is run.
    let rows = [
        (None, None, true),
        (None, Some(1), false),
        (Some(1), Some(1), true),
        (Some(1), Some(2), false),
    ];
    for (given, opened, runs) in rows {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("agent.yaml"), "").unwrap();
            let of_person = async |key: Option<u8>| {
                let builder = Agent::builder().workspace(dir.path());
                let builder = builder.model_settings(ModelSettings {
                    name: "openai:x".into(),
                    base_url: Some(server.openai_url()),
                    ..ModelSettings::default()
                });
                match key {
                    Some(key) => builder.grant_keys(Arc::new(Keys([key; 32]))).build().await,
                    None => builder.build().await,
                }
                .unwrap()
            };
            // A row as another process of whoever gives the command leaves it.
            let id = SessionId::new("s").unwrap();
            let giver = of_person(given).await;
            let mut row = serde_json::to_value(input("hi")).unwrap();
            let seals = giver.seals(giver.owner(), &id);
            let text = serde_json::to_string(&input("hi")).unwrap();
            row["seal"] = json!(seals.seal_of_row(&text));
            let inbox = giver.place().inbox(giver.owner(), &id);
            let inserted = inbox.insert(None, row.to_string().into()).await.unwrap();
            let Inserted::New(input) = inserted else {
                panic!("{inserted:?}");
            };
            let host = Host::new();
            host.add_agent("main", of_person(opened).await);
            let address = host.address("main", id).await.unwrap();
            let session = host
                .open(&address, SessionOptions::default())
                .await
                .unwrap();
            let receipt = Receipt::waiting(input);
            let mut status = None;
            for _ in 0..200 {
                status = session.status(&receipt).await.unwrap();
                if status != Some(InputStatus::Waiting) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let is_recorded = matches!(status, Some(InputStatus::Recorded { .. }));
            assert_eq!(is_recorded, runs, "{given:?} {opened:?}: {status:?}");
        });
    }
}

#[test]
fn a_key_is_accepted_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
    block_on(async {
        let (host, address) = host(dir.path(), &server, COLLECT).await;
        let handle = host
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        let mut events = subscribe(&host, &address).await;
        let first = handle.send_once(input("one"), "k1").await.unwrap();
        until(&mut *events, is_end).await;
        let again = handle.send_once(input("one"), "k1").await.unwrap();
        assert_eq!(again.input_id, first.input_id);
        assert_eq!(again.seq, Some(2));
        assert_eq!(
            handle.send_once(input("two"), "k1").await,
            Err(ClientError::KeyConflict("k1".into()))
        );
        let status = handle.status(&first).await.unwrap();
        assert_eq!(status, Some(InputStatus::Recorded { seq: 2 }));
        handle.send_once(input("three"), "k2").await.unwrap();
        let more = until(&mut *events, is_end).await;
        assert_eq!(said(&more), ["three"]);
        assert_eq!(server.requests().len(), 2);
    });
}

#[test]
fn commands_to_another_host_reach_the_run_that_is_going_on() {
    let modes = [
        (QueueMode::Steer, vec!["go", "more"]),
        (QueueMode::Collect, vec!["go", "more"]),
        (QueueMode::Followup, vec!["go", "more"]),
        (QueueMode::Interrupt, vec!["go", "more"]),
    ];
    for (mode, expected) in modes {
        let dir = tempfile::tempdir().unwrap();
        let latch = latch();
        let held = latch.clone();
        let server = FakeModel::start_with(move |request: &RecordedRequest| match request.index {
            0 => reply().text("first").held_by(&held),
            _ => reply().text("second"),
        });
        block_on(async {
            let (here, address) = host(dir.path(), &server, COLLECT).await;
            let (there, same) = host(dir.path(), &server, COLLECT).await;
            let mut events = subscribe(&there, &same).await;
            let _holder = here
                .open(&address, SessionOptions::default())
                .await
                .unwrap();
            here.send(&address, input("go"), None).await.unwrap();
            latch.wait_arrived(1, Duration::from_secs(10));
            let more = InputCommand {
                mode: Some(mode),
                ..InputCommand::new(vec![stead_core::Block::text("more")])
            };
            let receipt = there.send(&same, Command::Input(more), None).await.unwrap();
            assert_eq!(receipt.seq, None, "{mode}");
            // The row is durable; the holder takes it now, or when it looks next.
            tokio::time::sleep(Duration::from_millis(800)).await;
            latch.release();
            let mut ends = 0;
            let seen = until(&mut *events, |event| {
                ends += usize::from(is_end(event));
                ends == if mode == QueueMode::Steer { 1 } else { 2 }
            })
            .await;
            assert_eq!(said(&seen), expected, "{mode}");
            let numbers: Vec<u64> = entries(&seen).iter().map(|(seq, _)| *seq).collect();
            let all: Vec<u64> = (1..=numbers.len() as u64).collect();
            assert_eq!(numbers, all, "{mode}");
            let settled = settled(&there, &same, &receipt).await;
            assert!(
                matches!(settled, Some(InputStatus::Recorded { .. })),
                "{mode}: {settled:?}"
            );
        });
    }
}

#[test]
fn a_question_shown_here_is_answered_from_another_host() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|request: &RecordedRequest| match request.result_count() {
        0 => reply().call("write_file", json!({"file_path": "a.txt", "content": "y"})),
        _ => reply().text("done"),
    });
    block_on(async {
        let settings = "approvals: {write_file: true}\n";
        let (here, address) = host(dir.path(), &server, settings).await;
        let (there, same) = host(dir.path(), &server, settings).await;
        let handle = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        let _person = person(&here, &address).await;
        let mut events = subscribe(&here, &address).await;
        handle.send(input("go")).await.unwrap();
        let seen = until(&mut *events, |event| {
            matches!(&event.body, SessionEventBody::Entry(line) if matches!(line.entry, Entry::Ask(_)))
        })
        .await;
        let asked = entries(&seen);
        let Some((_, Entry::Ask(ask))) = asked.last() else {
            panic!("{asked:?}")
        };
        let answer = Command::Answer(AnswerCommand {
            replies: vec![ApprovalReply {
                id: ask.id.clone(),
                args_hash: ask.args_hash.clone(),
                answer: ApprovalAnswer::Yes,
            }],
            by: "ann".into(),
            ..AnswerCommand::default()
        });
        there.send(&same, answer, None).await.unwrap();
        let seen = until(&mut *events, is_end).await;
        let decided = entries(&seen)
            .into_iter()
            .find_map(|(_, entry)| match entry {
                Entry::Decision(decision) => Some((decision.approved, decision.by)),
                _ => None,
            });
        assert_eq!(decided, Some((true, "ann".to_owned())));
        assert_eq!(
            std::fs::read_to_string(dir.path().join("a.txt")).unwrap(),
            "y"
        );
    });
}

#[test]
fn a_parked_run_is_answered_and_goes_on_without_its_first_host() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|request: &RecordedRequest| match request.result_count() {
        0 => reply().call("write_file", json!({"file_path": "a.txt", "content": "y"})),
        _ => reply().text("done"),
    });
    block_on(async {
        let settings = "approvals: {write_file: true}\n";
        let ask = {
            let (here, address) = host(dir.path(), &server, settings).await;
            let mut events = subscribe(&here, &address).await;
            here.send(&address, input("go"), None).await.unwrap();
            let seen = until(&mut *events, |event| {
                matches!(&event.body, SessionEventBody::Live(live)
                    if matches!(live.kind, EventKind::RunEnded { .. }))
            })
            .await;
            let ask = entries(&seen)
                .into_iter()
                .find_map(|(_, entry)| match entry {
                    Entry::Ask(ask) => Some(ask),
                    _ => None,
                });
            ask.unwrap()
        };
        let (there, same) = host(dir.path(), &server, settings).await;
        let mut events = subscribe(&there, &same).await;
        let answer = Command::Answer(AnswerCommand {
            replies: vec![ApprovalReply {
                id: ask.id,
                args_hash: ask.args_hash,
                answer: ApprovalAnswer::Yes,
            }],
            by: "ann".into(),
            ..AnswerCommand::default()
        });
        there.send(&same, answer, None).await.unwrap();
        until(&mut *events, is_end).await;
        assert_eq!(
            std::fs::read_to_string(dir.path().join("a.txt")).unwrap(),
            "y"
        );
    });
}

#[test]
fn a_cancel_from_another_host_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let latch = latch();
    let held = latch.clone();
    let server =
        FakeModel::start_with(move |_: &RecordedRequest| reply().text("never").held_by(&held));
    block_on(async {
        let (here, address) = host(dir.path(), &server, "").await;
        let (there, same) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&there, &same).await;
        let _holder = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        here.send(&address, input("go"), None).await.unwrap();
        latch.wait_arrived(1, Duration::from_secs(10));
        let cancel = Command::Cancel {
            run: None,
            by: "ann".into(),
        };
        there.send(&same, cancel, None).await.unwrap();
        let seen = until(&mut *events, is_end).await;
        let Some((_, Entry::End(end))) = entries(&seen).pop() else {
            panic!("{seen:?}")
        };
        assert_eq!(end.outcome.as_str(), "cancelled");
        latch.release();
    });
}

/// Waits until a command does not wait any more.
async fn settled(
    host: &Host,
    address: &SessionAddress,
    receipt: &stead_core::Receipt,
) -> Option<InputStatus> {
    loop {
        let status = host.status(address, &receipt.input_id).await.unwrap();
        if status != Some(InputStatus::Waiting) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_cancellation_is_recorded_with_the_end_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let latch = latch();
    let held = latch.clone();
    let server =
        FakeModel::start_with(move |_: &RecordedRequest| reply().text("never").held_by(&held));
    block_on(async {
        let (here, address) = host(dir.path(), &server, "").await;
        let (there, same) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&there, &same).await;
        let _holder = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        here.send(&address, input("go"), None).await.unwrap();
        latch.wait_arrived(1, Duration::from_secs(10));
        let cancel = Command::Cancel {
            run: None,
            by: "ann".into(),
        };
        let receipt = there.send(&same, cancel.clone(), None).await.unwrap();
        let seen = until(&mut *events, is_end).await;
        let end = seen.last().unwrap().id.seq;
        let status = settled(&there, &same, &receipt).await;
        assert_eq!(status, Some(InputStatus::Recorded { seq: end }));
        // Nothing is left to cancel.
        let refused = there.send(&same, cancel, None).await;
        assert!(
            matches!(refused, Err(ClientError::Refused { .. })),
            "{refused:?}"
        );
        latch.release();
    });
}

#[test]
fn a_cancellation_of_another_run_is_refused_and_that_of_this_run_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let latch = latch();
    let held = latch.clone();
    let server =
        FakeModel::start_with(move |_: &RecordedRequest| reply().text("never").held_by(&held));
    block_on(async {
        let (here, address) = host(dir.path(), &server, "").await;
        let (there, same) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&there, &same).await;
        let _holder = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        let run = here.send(&address, input("go"), None).await.unwrap().run;
        latch.wait_arrived(1, Duration::from_secs(10));
        let cancel = |run| Command::Cancel {
            run,
            by: "ann".into(),
        };
        // A cancellation of a run that has ended must not stop the next one.
        let late = cancel(Some(RunId::new("before").unwrap()));
        let refusal = format!(
            "run before is not going on in this session; run {} is",
            run.as_ref().unwrap()
        );
        let refused = here.send(&address, late.clone(), None).await;
        assert!(
            matches!(&refused, Err(ClientError::Refused { message, .. }) if *message == refusal),
            "{refused:?}"
        );
        let row = there.send(&same, late.clone(), None).await.unwrap();
        assert_eq!(
            settled(&there, &same, &row).await,
            Some(InputStatus::Refused { reason: refusal })
        );
        let row = there.send(&same, cancel(run), None).await.unwrap();
        let seen = until(&mut *events, is_end).await;
        let end = seen.last().unwrap().id.seq;
        assert_eq!(
            settled(&there, &same, &row).await,
            Some(InputStatus::Recorded { seq: end })
        );
        let Some((_, Entry::End(entry))) = entries(&seen).pop() else {
            panic!("{seen:?}")
        };
        assert_eq!(entry.outcome.as_str(), "cancelled");
        // No run is going on any more.
        let refused = here.send(&address, late, None).await;
        let refusal = "run before is not going on in this session; no run is";
        assert!(
            matches!(&refused, Err(ClientError::Refused { message, .. }) if message == refusal),
            "{refused:?}"
        );
        latch.release();
    });
}

/// The text that a model was shown to write in `events`.
fn live_text(events: &[SessionEvent]) -> String {
    let live = events.iter().filter_map(|event| match &event.body {
        SessionEventBody::Live(event) => Some(&event.kind),
        SessionEventBody::Entry(_) => None,
    });
    live.filter_map(|kind| match kind {
        EventKind::TextDelta { text } => Some(text.as_str()),
        _ => None,
    })
    .collect()
}

#[test]
fn a_subscriber_who_reads_late_gets_the_live_events_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let answers = ["first", "second"].map(|text| reply().text(text));
    let server = FakeModel::start(answers.to_vec());
    block_on(async {
        let (host, address) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&host, &address).await;
        host.send(&address, input("one"), None).await.unwrap();
        until(&mut *events, is_end).await;
        let mut late = host
            .subscribe(&address, Cursor::Now, Presence::Watches)
            .await
            .unwrap();
        let set = Command::Set {
            changes: vec![SessionChange::mode(PermissionMode::Explore)],
            by: "ann".into(),
        };
        host.send(&address, set, None).await.unwrap();
        host.send(&address, input("two"), None).await.unwrap();
        until(&mut *events, is_end).await;
        let seen = until(&mut *late, is_end).await;
        assert_eq!(kinds(&seen), ["set", "user", "model", "end"]);
        assert_eq!(live_text(&seen), "second");
    });
}

#[test]
fn an_event_is_not_lost_when_waiting_for_it_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start(vec![reply().text("one two three")]);
    block_on(async {
        let (host, address) = host(dir.path(), &server, "").await;
        let mut events = subscribe(&host, &address).await;
        host.send(&address, input("go"), None).await.unwrap();
        let mut seen: Vec<SessionEvent> = Vec::new();
        while !seen.last().is_some_and(is_end) {
            // Given up after each step of the waiting.
            tokio::select! {
                biased;
                event = events.next() => seen.push(event.unwrap()),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(kinds(&seen), ["session", "user", "model", "end"]);
        assert_eq!(live_text(&seen), "one two three");
    });
}

/// The questions of a step, as they are recorded.
async fn asked(events: &mut dyn Subscription, count: usize) -> Vec<(String, String)> {
    let mut asks = Vec::new();
    while asks.len() < count {
        let event = events.next().await.unwrap();
        if let Some((_, Entry::Ask(ask))) = entries(&[event]).pop() {
            asks.push((ask.id, ask.args_hash));
        }
    }
    asks
}

fn yes(id: &str, args_hash: &str, by: &str) -> Command {
    Command::Answer(AnswerCommand {
        replies: vec![ApprovalReply {
            id: id.to_owned(),
            args_hash: args_hash.to_owned(),
            answer: ApprovalAnswer::Yes,
        }],
        by: by.to_owned(),
        ..AnswerCommand::default()
    })
}

#[test]
fn each_of_two_people_signs_the_own_answer_and_one_about_other_arguments_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|request: &RecordedRequest| match request.result_count() {
        0 => reply()
            .call("write_file", json!({"file_path": "a.txt", "content": "a"}))
            .call("write_file", json!({"file_path": "b.txt", "content": "b"})),
        _ => reply().text("done"),
    });
    block_on(async {
        let settings = "approvals: {write_file: true}\n";
        let (here, address) = host(dir.path(), &server, settings).await;
        let (there, same) = host(dir.path(), &server, settings).await;
        let handle = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        let _person = person(&here, &address).await;
        let mut events = subscribe(&here, &address).await;
        handle.send(input("go")).await.unwrap();
        let asks = asked(&mut *events, 2).await;
        // Until the questions wait for people.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let other = yes(&asks[0].0, &asks[1].1, "eve");
        let stale = there.send(&same, other, None).await.unwrap();
        let status = settled(&there, &same, &stale).await;
        assert!(
            matches!(&status, Some(InputStatus::Refused { reason }) if reason.contains("other arguments")),
            "{status:?}"
        );
        let first = yes(&asks[0].0, &asks[0].1, "ann");
        let first = there.send(&same, first, None).await.unwrap();
        let second = yes(&asks[1].0, &asks[1].1, "ben");
        let second = handle.send(second).await.unwrap();
        let seen = until(&mut *events, is_end).await;
        let decided: Vec<(String, String, u64)> = entries(&seen)
            .into_iter()
            .filter_map(|(seq, entry)| match entry {
                Entry::Decision(decision) => Some((decision.id, decision.by, seq)),
                _ => None,
            })
            .collect();
        let signed: Vec<(&str, &str)> = decided.iter().map(|(id, by, _)| (&**id, &**by)).collect();
        assert_eq!(signed, [(&*asks[0].0, "ann"), (&*asks[1].0, "ben")]);
        for (receipt, (_, _, seq)) in [first, second].iter().zip(&decided) {
            let status = settled(&there, &same, receipt).await;
            assert_eq!(status, Some(InputStatus::Recorded { seq: *seq }));
        }
    });
}

#[test]
fn an_agent_is_built_again_when_its_files_have_changed() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
    block_on(async {
        agent(dir.path(), &server, "policy: {max_steps: 7}\n").await;
        let host = Host::new();
        let folder = dir.path().to_owned();
        let base_url = server.openai_url();
        host.add_source("main", move || {
            let model = ModelSettings {
                name: "openai:x".into(),
                base_url: Some(base_url.clone()),
                ..ModelSettings::default()
            };
            Agent::builder()
                .workspace(folder.clone())
                .model_settings(model)
        });
        let steps = async |session: &str| {
            let id = SessionId::new(session).unwrap();
            let address = host.address("main", id).await?;
            host.send(&address, input("hi"), None).await?;
            let agent = host.agent("main").await?;
            Ok::<u32, ClientError>(agent.workspace().config().policy.max_steps)
        };
        assert_eq!(steps("one").await, Ok(7));
        let settings = dir.path().join("agent.yaml");
        std::fs::write(&settings, "policy: {max_steps: 9}\n").unwrap();
        assert_eq!(steps("two").await, Ok(9));
        // Settings that are wrong are told with their place, until they are mended.
        std::fs::write(&settings, "polisy: {max_steps: 9}\n").unwrap();
        let refused = steps("three").await.unwrap_err().to_string();
        assert!(refused.contains("agent.yaml:1:1"), "{refused}");
        std::fs::write(&settings, "policy: {max_steps: 11}\n").unwrap();
        assert_eq!(steps("three").await, Ok(11));
    });
}
