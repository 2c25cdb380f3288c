//! Sessions that two hosts use at the same moment, holders that freeze, and inboxes that are full or
//! damaged.

use super::child::{self, Errand};
use super::follower::Follower;
use super::{AGENT, Store, Workspace, agent_at, marking_model};
use crate::support::*;
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;
use stead_core::{
    AnswerPolicy, Client, ClientError, Command, Cursor, EventKind, InputId, InputStatus, Presence,
    SessionAddress, SessionEventBody, SessionId, SpendAmount,
};
use stead_host::{Host, SessionOptions};
use stead_store::{Inserted, MAX_WAITING_INPUTS, SessionInbox};
use stead_testkit::{FakeModel, RecordedRequest, latch, reply};
use tokio::task::JoinSet;

/// The inbox of a session, without a host.
async fn inbox_of(
    workspace: &Workspace,
    model: &FakeModel,
    address: &SessionAddress,
) -> SessionInbox {
    let agent = agent_at(workspace.path(), &model.openai_url()).await;
    agent.place().inbox(&address.owner, &address.session)
}

async fn insert(inbox: &SessionInbox, body: impl Into<Bytes>) -> InputId {
    match inbox.insert(None, body.into()).await.unwrap() {
        Inserted::New(id) => id,
        Inserted::Existing { id, .. } => id,
    }
}

fn body(command: &Command) -> Bytes {
    Bytes::from(serde_json::to_vec(command).unwrap())
}

async fn settled(host: &Host, address: &SessionAddress, id: &InputId) -> Option<InputStatus> {
    loop {
        let status = host.status(address, id).await.unwrap();
        if status != Some(InputStatus::Waiting) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn session(host: &Host) -> SessionAddress {
    host.address(AGENT, SessionId::new("s").unwrap())
        .await
        .unwrap()
}

#[test]
fn two_hosts_that_send_at_the_same_moment_lose_nothing() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let model = marking_model();
        block_on(async {
            let here = workspace.host(&model).await;
            let there = workspace.host(&model).await;
            let address = session(&here).await;
            let follower = Follower::start(&here, "s").await;
            let mut expected = Vec::new();
            for n in 0..5 {
                let one = format!("<here {n}>");
                let two = format!("<there {n}>");
                let sent = tokio::join!(
                    here.send(&address, input(&one), None),
                    there.send(&address, input(&two), Some(&two)),
                );
                sent.0.unwrap();
                sent.1.unwrap();
                expected.extend([one, two]);
                follower.until_quiet(&expected, PATIENCE).await;
            }
            let seen = follower.seen();
            for text in &expected {
                assert_eq!(seen.count(text), 1, "{store:?}: {text}");
            }
            seen.check(&workspace.marks());
        });
        assert_eq!(model.rejections(), []);
    }
}

#[test]
fn two_hosts_that_begin_one_session_lose_nothing() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let model = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
        block_on(async {
            let here = workspace.host(&model).await;
            let there = workspace.host(&model).await;
            let expected = ["<here>".to_owned(), "<there>".to_owned()];
            for n in 0..30 {
                let follower = Follower::start(&here, &format!("s{n}")).await;
                let address = follower.address.clone();
                let (one, two) = (here.clone(), there.clone());
                let to = address.clone();
                let mut sends = JoinSet::new();
                sends.spawn(async move { one.send(&to, input("<here>"), None).await });
                sends.spawn(async move { two.send(&address, input("<there>"), None).await });
                for sent in sends.join_all().await {
                    sent.unwrap();
                }
                let seen = follower.until_quiet(&expected, PATIENCE).await;
                for text in &expected {
                    assert_eq!(seen.count(text), 1, "{store:?}, session {n}: {text}");
                }
                seen.check(&[]);
            }
        });
    }
}

#[test]
fn a_frozen_holder_is_replaced_and_writes_nothing_when_it_wakes() {
    let workspace = Workspace::new(Store::Postgres, "");
    let model = FakeModel::start_with(|request: &RecordedRequest| match request.index {
        0 => reply()
            .text("one two three four five six")
            .chunks_of(100)
            .pause_ms(100),
        _ => reply().text("done"),
    });
    block_on(async {
        let host = workspace.host(&model).await;
        let follower = Follower::start(&host, "s").await;
        let errand = (Errand::RunOnce, 0);
        let process = child::spawn(workspace.path(), &model, errand, &["s".to_owned()]);
        let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
        while follower.seen().live < 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kill_process(pid, Signal::STOP).unwrap();
        let receipt = follower.send(input("<more>"), Some("key")).await.unwrap();
        assert_eq!(receipt.seq, None);
        let expected = ["<more>".to_owned()];
        let before = follower.until_quiet(&expected, PATIENCE).await;
        kill_process(pid, Signal::CONT).unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let seen = follower.seen();
        assert_eq!(seen.lines, before.lines);
        assert_eq!(seen.count("<more>"), 1);
        seen.check(&[]);
        let status = settled(&host, &follower.address, &receipt.input_id).await;
        assert!(
            matches!(status, Some(InputStatus::Recorded { .. })),
            "{status:?}"
        );
    });
}

#[test]
fn a_run_that_a_dead_process_left_is_resumed_and_heard() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let text = "one two three four five six seven eight";
        let model = FakeModel::start_with(move |_: &RecordedRequest| {
            reply().text(text).chunks_of(150).pause_ms(30)
        });
        block_on(async {
            let host = workspace.host(&model).await;
            let address = session(&host).await;
            let mut events = subscribe(&host, &address).await;
            let errand = (Errand::RunOnce, 0);
            let mut process = child::spawn(workspace.path(), &model, errand, &["s".to_owned()]);
            let is_text = |event: &stead_core::SessionEvent| match &event.body {
                SessionEventBody::Live(live) => matches!(live.kind, EventKind::TextDelta { .. }),
                SessionEventBody::Entry(_) => false,
            };
            let before = until(&mut *events, is_text).await;
            process.kill();
            process.wait(PATIENCE);
            let resume = Command::Resume {
                raise: SpendAmount::default(),
                answers: AnswerPolicy::Ask,
                changes: Vec::new(),
            };
            // The answer is there while the run goes on.
            let receipt = host.send(&address, resume, None).await.unwrap();
            assert_eq!(receipt.seq, None, "{store:?}");
            let rest = until(&mut *events, is_end).await;
            let all: Vec<_> = before.into_iter().chain(rest.clone()).collect();
            assert_eq!(
                kinds(&all),
                ["session", "user", "model", "end"],
                "{store:?}"
            );
            assert!(all.is_sorted_by(|a, b| a.id < b.id));
            let heard: String = rest
                .iter()
                .filter_map(|event| match &event.body {
                    SessionEventBody::Live(live) => match &live.kind {
                        EventKind::TextDelta { text } => Some(text.clone()),
                        _ => None,
                    },
                    SessionEventBody::Entry(_) => None,
                })
                .collect();
            assert!(heard.ends_with(text), "{store:?}: {heard}");
        });
    }
}

#[test]
fn a_full_inbox_refuses_more_and_is_emptied_by_the_holder() {
    let workspace = Workspace::new(Store::Postgres, "");
    let latch = latch();
    let held = latch.clone();
    let model = FakeModel::start_with(move |request: &RecordedRequest| match request.index {
        0 => reply().text("first").held_by(&held),
        _ => reply().text("second"),
    });
    block_on(async {
        let here = workspace.host(&model).await;
        let there = workspace.host(&model).await;
        let address = session(&here).await;
        let _holder = here
            .open(&address, SessionOptions::default())
            .await
            .unwrap();
        here.send(&address, input("go"), None).await.unwrap();
        let inbox = inbox_of(&workspace, &model, &address).await;
        let mut rows = Vec::new();
        for n in 0..MAX_WAITING_INPUTS {
            rows.push(insert(&inbox, body(&input(&format!("<{n}>")))).await);
        }
        for key in [None, Some("k")] {
            let refused = there.send(&address, input("more"), key).await;
            let full = ClientError::InboxFull(address.session.clone());
            assert_eq!(refused, Err(full));
        }
        latch.release();
        for id in &rows {
            let status = settled(&there, &address, id).await;
            assert!(
                matches!(status, Some(InputStatus::Recorded { .. })),
                "{status:?}"
            );
        }
        there.send(&address, input("<more>"), None).await.unwrap();
    });
}

#[test]
fn rows_that_cannot_be_read_are_refused_and_block_nothing() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let model = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
        block_on(async {
            let host = workspace.host(&model).await;
            let address = session(&host).await;
            let inbox = inbox_of(&workspace, &model, &address).await;
            let mut damaged = Vec::new();
            for text in [&b"\xff\xfe"[..], b"{\"command\":\"fly\"}", b"", b"[1]"] {
                damaged.push(insert(&inbox, Bytes::copy_from_slice(text)).await);
            }
            let mut events = subscribe(&host, &address).await;
            let receipt = host.send(&address, input("hi"), Some("k")).await.unwrap();
            let seen = until(&mut *events, is_end).await;
            assert_eq!(said(&seen), ["hi"], "{store:?}");
            let status = settled(&host, &address, &receipt.input_id).await;
            assert_eq!(status, Some(InputStatus::Recorded { seq: 2 }), "{store:?}");
            for id in &damaged {
                let status = settled(&host, &address, id).await;
                assert!(
                    matches!(&status, Some(InputStatus::Refused { reason }) if reason.contains("cannot be read")),
                    "{store:?}: {status:?}"
                );
            }
        });
    }
}

#[test]
fn a_session_is_followed_before_it_exists() {
    for store in Store::ALL {
        for cursor in [Cursor::Start, Cursor::Now] {
            let workspace = Workspace::new(store, "");
            let model = FakeModel::start_with(|_: &RecordedRequest| reply().text("ok"));
            block_on(async {
                let here = workspace.host(&model).await;
                let there = workspace.host(&model).await;
                let address = session(&here).await;
                let mut events = there
                    .subscribe(&address, cursor, Presence::Watches)
                    .await
                    .unwrap();
                let none = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
                assert!(none.is_err(), "{store:?}: {none:?}");
                here.send(&address, input("hi"), None).await.unwrap();
                let seen = until(&mut *events, is_end).await;
                assert_eq!(
                    kinds(&seen),
                    ["session", "user", "model", "end"],
                    "{store:?}"
                );
            });
        }
    }
}
