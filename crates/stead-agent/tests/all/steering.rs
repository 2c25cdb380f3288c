//! The place for tests of messages that arrive during a run: every queue mode, interrupts, skipped
//! calls, subagents and bounds of the queue.

use crate::support::{TestTool, agent_on, block_on, journal, model, session, text};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_agent::{
    Agent, ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, Approver, MessageQueue, QueuedMessage,
    RunOptions, RunReport, SendOutcome,
};
use stead_core::{Block, Entry, Event, EventKind, Message, Risk, RunOutcome, ToolEffect};
use stead_store::OsDisk;
use stead_testkit::{FakeModel, FakeWire, RecordedRequest, RequestTurn, latch, reply};
use stead_tools::{Output, Tool};
use stead_workspace::{DropPolicy, QueueMode, QueueSettings};
use tokio::sync::Notify;

const STEPS: usize = 20;
const READS_ALONE: Risk = Risk {
    parallel_safe: false,
    ..Risk::READS
};

fn said(content: &[Block]) -> String {
    Message::User {
        content: content.to_vec(),
    }
    .text()
}

fn queue(mode: QueueMode) -> Arc<MessageQueue> {
    Arc::new(MessageQueue::new(QueueSettings {
        mode,
        debounce_ms: 50,
        ..QueueSettings::default()
    }))
}

async fn agent(
    dir: &Path,
    server: &FakeModel,
    wire: FakeWire,
    tools: Vec<Arc<dyn Tool>>,
) -> Arc<Agent> {
    agent_on(dir, model(server, wire), Arc::new(OsDisk), tools).await
}

/// Runs an input, and then whatever waits, as whoever holds the queue does.
async fn converse(
    agent: &Arc<Agent>,
    queue: &Arc<MessageQueue>,
    options: RunOptions,
) -> Vec<RunReport> {
    let mut live = agent.session(session("s"));
    let mut input = Some(text("go"));
    let mut reports = Vec::new();
    while let Some(content) = input {
        let options = RunOptions {
            queue: Some(queue.clone()),
            ..options.clone()
        };
        reports.push(live.run(content, options).await.unwrap());
        input = queue.next_input().await.map(|message| message.content);
    }
    let (_, state) = journal(agent, &session("s")).await;
    assert!(state.run.is_none());
    reports
}

fn outcomes(reports: &[RunReport]) -> Vec<(&str, RunOutcome)> {
    reports
        .iter()
        .map(|report| (report.text.as_str(), report.outcome))
        .collect()
}

/// What each request tells the model since its last answer.
fn news(server: &FakeModel) -> Vec<String> {
    assert_eq!(server.rejections(), Vec::new());
    server.requests().iter().map(since_answer).collect()
}

fn since_answer(request: &RecordedRequest) -> String {
    let turns = &request.seen.as_ref().unwrap().turns;
    let from = turns
        .iter()
        .rposition(|turn| matches!(turn, RequestTurn::Assistant { .. }))
        .map_or(0, |at| at + 1);
    let told = turns[from..].iter().map(|turn| match turn {
        RequestTurn::User(text) => format!("user: {text}"),
        // One wire says before an error that it is one.
        RequestTurn::Result { text, .. } => {
            match text.trim_start_matches("Error: ").split_once(": ") {
                Some((word @ ("skipped" | "cancelled"), _)) => word.to_owned(),
                Some(_) | None => text.clone(),
            }
        }
        RequestTurn::Assistant { .. } => unreachable!("there is none behind the last"),
    });
    told.collect::<Vec<_>>().join(" | ")
}

fn answers(request: &RecordedRequest) -> usize {
    let turns = &request.seen.as_ref().unwrap().turns;
    turns
        .iter()
        .filter(|turn| matches!(turn, RequestTurn::Assistant { .. }))
        .count()
}

/// Hears events, and says something when the first comes that `wants` it.
fn speaking(
    queue: &Arc<MessageQueue>,
    words: &'static str,
    wants: fn(&Event) -> bool,
) -> RunOptions {
    let queue = queue.clone();
    let spoken = Mutex::new(false);
    let listener = move |event: &Event| {
        if wants(event) && !std::mem::replace(&mut *spoken.lock().unwrap(), true) {
            assert_eq!(queue.send(text(words)), SendOutcome::Queued);
        }
    };
    RunOptions {
        listener: Arc::new(listener),
        ..RunOptions::default()
    }
}

fn is_text(event: &Event) -> bool {
    matches!(event.kind, EventKind::TextDelta { .. })
}

/// Twenty steps of two calls; during the first call of the sixth step two messages come.
fn twenty_steps(mode: QueueMode, wire: FakeWire) -> Vec<String> {
    let server = FakeModel::start_with(|request| match answers(request) {
        n if n < STEPS => reply()
            .call("look", json!({"n": n}))
            .call("note", json!({"n": n})),
        _ => reply().text("done"),
    });
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(mode);
    let sender = queue.clone();
    let look = TestTool::make("look", READS_ALONE, move |cx, args| {
        let queue = sender.clone();
        async move {
            if args["n"] == 5 {
                assert_eq!(queue.send(text("left")), SendOutcome::Queued);
                assert_eq!(queue.send(text("right")), SendOutcome::Queued);
                if queue.mode() == QueueMode::Interrupt {
                    cx.cancel.cancelled().await;
                }
            }
            Ok(Output::text(format!("looked {}", args["n"])))
        }
    });
    let note = TestTool::make("note", READS_ALONE, |_, args| async move {
        Ok(Output::text(format!("noted {}", args["n"])))
    });
    block_on(async {
        let agent = agent(dir.path(), &server, wire, vec![look, note]).await;
        converse(&agent, &queue, RunOptions::default()).await;
    });
    news(&server)
}

#[test]
fn each_mode_does_what_it_says_in_order_on_every_wire() {
    let plain = |n: usize| match n {
        0 => "user: go".to_owned(),
        n => format!("looked {0} | noted {0}", n - 1),
    };
    let skipping = |n: usize| match n {
        6 => "looked 5 | skipped | user: left\n\nright".to_owned(),
        n => plain(n),
    };
    let all = |request: &dyn Fn(usize) -> String, after: &[&str]| -> Vec<String> {
        (0..=STEPS)
            .map(request)
            .chain(after.iter().map(|text| format!("user: {text}")))
            .collect()
    };
    let table = [
        (QueueMode::Collect, all(&plain, &["left\n\nright"])),
        (QueueMode::Followup, all(&plain, &["left", "right"])),
        (QueueMode::Steer, all(&skipping, &[])),
        (QueueMode::SteerBacklog, all(&skipping, &["left", "right"])),
        (QueueMode::Interrupt, all(&skipping, &[])),
    ];
    for (mode, expected) in table {
        for wire in FakeWire::ALL {
            assert_eq!(twenty_steps(mode, wire), expected, "{mode} {wire:?}");
        }
    }
}

#[test]
fn a_message_during_the_stream_of_the_last_answer_is_heard() {
    let completed = |text| (text, RunOutcome::Completed);
    #[rustfmt::skip]
    let table = [
        (QueueMode::Collect, vec!["user: go", "user: more"], vec![completed("first"), completed("second")]),
        (QueueMode::Steer, vec!["user: go", "user: more"], vec![completed("second")]),
        (QueueMode::SteerBacklog, vec!["user: go", "user: more", "user: more"], vec![completed("second"), completed("third")]),
        (QueueMode::Interrupt, vec!["user: go", "user: [Your answer above was cut off: a new message came.] | user: more"], vec![("", RunOutcome::Cancelled), completed("second")]),
    ];
    for (mode, requests, runs) in table {
        let words = ["first", "second", "third"];
        let server = FakeModel::start(words.iter().map(|word| reply().text(*word)).collect());
        let dir = tempfile::tempdir().unwrap();
        let queue = queue(mode);
        block_on(async {
            let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
            let reports = converse(&agent, &queue, speaking(&queue, "more", is_text)).await;
            assert_eq!(outcomes(&reports), runs, "{mode}");
        });
        assert_eq!(news(&server), requests, "{mode}");
    }
}

#[test]
fn an_interrupted_stream_that_hangs_is_told_as_cut_off() {
    let half = reply()
        .text("half of an answer")
        .call("ls", json!({}))
        .stall_at(900);
    let server = FakeModel::start(vec![half, reply().text("whole")]);
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(QueueMode::Interrupt);
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
        let reports = converse(&agent, &queue, speaking(&queue, "stop", is_text)).await;
        assert_eq!(
            outcomes(&reports),
            [
                ("", RunOutcome::Cancelled),
                ("whole", RunOutcome::Completed)
            ]
        );
        assert_eq!(
            reports[0].reason.as_deref(),
            Some("interrupted by a new message")
        );
    });
    let cut = "user: [Your answer above was cut off: a new message came.]";
    assert_eq!(news(&server), ["user: go", &format!("{cut} | user: stop")]);
}

#[test]
fn what_the_model_cannot_be_asked_about_any_more_is_the_next_input() {
    let server = FakeModel::start(vec![reply().text("first"), reply().text("second")]);
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(QueueMode::Steer);
    std::fs::write(dir.path().join("agent.yaml"), "policy: {max_steps: 1}\n").unwrap();
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
        let reports = converse(&agent, &queue, speaking(&queue, "more", is_text)).await;
        assert_eq!(
            outcomes(&reports),
            [
                ("first", RunOutcome::Completed),
                ("second", RunOutcome::Completed)
            ]
        );
    });
    assert_eq!(news(&server), ["user: go", "user: more"]);
}

#[test]
fn what_comes_once_the_answer_is_there_does_not_take_it_back() {
    let ended = |event: &Event| matches!(event.kind, EventKind::RunEnded { .. });
    let answered = |event: &Event| matches!(event.kind, EventKind::ModelEnded { .. });
    for (mode, when) in [
        (QueueMode::Steer, ended as fn(&Event) -> bool),
        (QueueMode::Interrupt, ended),
        (QueueMode::Interrupt, answered),
    ] {
        let server = FakeModel::start(vec![reply().text("first"), reply().text("second")]);
        let dir = tempfile::tempdir().unwrap();
        let queue = queue(mode);
        block_on(async {
            let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
            let reports = converse(&agent, &queue, speaking(&queue, "more", when)).await;
            assert_eq!(
                outcomes(&reports),
                [
                    ("first", RunOutcome::Completed),
                    ("second", RunOutcome::Completed)
                ],
                "{mode}"
            );
        });
        assert_eq!(news(&server), ["user: go", "user: more"], "{mode}");
    }
}

#[test]
fn of_calls_side_by_side_those_that_run_come_to_their_end_and_the_others_are_skipped() {
    let server = FakeModel::start_with(|request| match answers(request) {
        0 => (0..5)
            .fold(reply(), |reply, n| reply.call("work", json!({"n": n})))
            .call("note", json!({})),
        _ => reply().text("done"),
    });
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(QueueMode::Steer);
    std::fs::write(
        dir.path().join("agent.yaml"),
        "policy: {parallel_tool_calls: 2}\n",
    )
    .unwrap();
    let sender = queue.clone();
    let spoken = Arc::new(Notify::new());
    // Both that run at first are at work when the message comes; each leaves a trace of its intent.
    let work = TestTool::make(
        "work",
        Risk {
            effect: ToolEffect::Writes,
            ..Risk::READS
        },
        move |_, args| {
            let queue = sender.clone();
            let spoken = spoken.clone();
            async move {
                match args["n"].as_u64() {
                    Some(1) => {
                        queue.send(text("stop"));
                        spoken.notify_one();
                    }
                    _ => spoken.notified().await,
                }
                Ok(Output::text(format!("worked {}", args["n"])))
            }
        },
    );
    let note = TestTool::make("note", READS_ALONE, |_, _| async move {
        Ok(Output::text("noted"))
    });
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, vec![work, note]).await;
        let reports = converse(&agent, &queue, RunOptions::default()).await;
        assert_eq!(outcomes(&reports), [("done", RunOutcome::Completed)]);
    });
    assert_eq!(
        news(&server),
        [
            "user: go",
            "worked 0 | worked 1 | skipped | skipped | skipped | skipped | user: stop"
        ]
    );
}

fn is_child(request: &RecordedRequest) -> bool {
    request.seen.as_ref().unwrap().user_texts().next() == Some("count")
}

#[test]
fn a_message_is_for_the_run_and_not_for_its_child() {
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(QueueMode::Steer);
    let sender = queue.clone();
    let order = json!({"agent": "general-purpose", "description": "count", "prompt": "count"});
    let server =
        FakeModel::start_with(move |request| match (is_child(request), answers(request)) {
            (true, _) => {
                sender.send(text("stop"));
                reply().text("three")
            }
            (false, 0) => reply().call("task", order.clone()).call("note", json!({})),
            (false, _) => reply().text("done"),
        });
    let note = TestTool::make("note", READS_ALONE, |_, _| async move {
        Ok(Output::text("noted"))
    });
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, vec![note]).await;
        let reports = converse(&agent, &queue, RunOptions::default()).await;
        assert_eq!(outcomes(&reports), [("done", RunOutcome::Completed)]);
    });
    let told = news(&server);
    assert_eq!(
        (told.len(), told[0].as_str(), told[1].as_str()),
        (3, "user: go", "user: count")
    );
    assert!(
        told[2].ends_with("three | skipped | user: stop"),
        "{told:?}"
    );
}

#[test]
fn who_waits_for_a_child_in_the_background_hears_what_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let queue = queue(QueueMode::Steer);
    let held = latch();
    let child = held.clone();
    let order = json!({"agent": "general-purpose", "description": "c", "prompt": "count", "background": true});
    let server =
        FakeModel::start_with(move |request| match (is_child(request), answers(request)) {
            (true, _) => reply().text("three").held_by(&child),
            (false, 0) => reply().call("task", order.clone()),
            (false, 1) => reply().text("I wait"),
            (false, 2) => {
                // Only now: whoever does not hear the message waits for ever.
                child.release();
                reply().text("heard")
            }
            (false, _) => reply().text("done"),
        });
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
        let sender = queue.clone();
        let speak = async {
            held.arrived(1).await;
            let waits = || {
                server
                    .requests()
                    .iter()
                    .filter(|request| !is_child(request))
                    .count()
                    == 2
            };
            while !waits() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // By now it waits; earlier, it would be heard as well.
            tokio::time::sleep(Duration::from_millis(100)).await;
            sender.send(text("hurry"));
        };
        let (reports, ()) = tokio::join!(converse(&agent, &queue, RunOptions::default()), speak);
        assert_eq!(outcomes(&reports), [("done", RunOutcome::Completed)]);
    });
    let told = news(&server);
    assert!(told.contains(&"user: hurry".to_owned()), "{told:?}");
    assert!(told.last().unwrap().contains("three"), "{told:?}");
}

/// Says something else instead of an answer.
struct Elsewhere(Arc<MessageQueue>);

impl Approver for Elsewhere {
    fn name(&self) -> String {
        "person".to_owned()
    }

    fn answer<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            self.0.send(text("rather not"));
            std::future::pending().await
        })
    }
}

#[test]
fn a_message_instead_of_an_answer_skips_what_was_asked_about() {
    let table = [
        (
            QueueMode::Steer,
            vec!["user: go", "skipped | skipped | user: rather not"],
        ),
        (
            QueueMode::Interrupt,
            vec!["user: go", "skipped | skipped | user: rather not"],
        ),
    ];
    for (mode, requests) in table {
        let server = FakeModel::start_with(|request| match answers(request) {
            0 => reply()
                .call("delete_file", json!({"file_path": "b.txt"}))
                .call("delete_file", json!({"file_path": "c"})),
            _ => reply().text("as you like"),
        });
        let dir = tempfile::tempdir().unwrap();
        let queue = queue(mode);
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {delete_file: true}\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("b.txt"), "b").unwrap();
        block_on(async {
            let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
            let approvals = ApprovalPolicy::Ask(Arc::new(Elsewhere(queue.clone())));
            let reports = converse(
                &agent,
                &queue,
                RunOptions {
                    approvals,
                    ..RunOptions::default()
                },
            )
            .await;
            assert_eq!(reports.last().unwrap().text, "as you like");
        });
        assert_eq!(news(&server), requests, "{mode}");
        assert!(dir.path().join("b.txt").exists());
    }
}

#[test]
fn what_was_said_is_told_to_listeners_and_guarded_like_an_input() {
    let guard = "name: guard\nevents: [prompt_submit]\nmatcher: forbidden\n\
                 handler: {type: command, command: 'echo not here >&2; exit 2'}\n";
    for (words, heard) in [("fine words", true), ("forbidden words", false)] {
        let server = FakeModel::start(vec![reply().text("first"), reply().text("second")]);
        let dir = tempfile::tempdir().unwrap();
        let queue = queue(QueueMode::Steer);
        std::fs::create_dir(dir.path().join("hooks")).unwrap();
        std::fs::write(dir.path().join("hooks/guard.yaml"), guard).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        let speaker = speaking(&queue, words, is_text);
        let listener = move |event: &Event| {
            (speaker.listener)(event);
            match &event.kind {
                EventKind::Steered { content } => log
                    .lock()
                    .unwrap()
                    .push(format!("steered: {}", said(content))),
                EventKind::Notice { text, .. } => log.lock().unwrap().push(text.clone()),
                _ => {}
            }
        };
        block_on(async {
            let model = model(&server, FakeWire::Messages);
            let agent = Agent::builder()
                .layout(stead_workspace::Layout::Stead)
                .workspace(dir.path())
                .model_arc(model)
                .build()
                .await
                .unwrap();
            converse(
                &agent,
                &queue,
                RunOptions {
                    listener: Arc::new(listener),
                    ..RunOptions::default()
                },
            )
            .await;
            let (lines, state) = journal(&agent, &session("s")).await;
            let steers = lines
                .iter()
                .filter(|line| matches!(line.entry, Entry::Steer(_)))
                .count();
            assert_eq!(
                (
                    steers == 1,
                    state.turns.iter().filter(|turn| turn.is_steering).count()
                ),
                (heard, steers)
            );
        });
        let expected = match heard {
            true => "steered: fine words".to_owned(),
            false => "hook guard refused a message: not here".to_owned(),
        };
        assert_eq!(*told.lock().unwrap(), [expected]);
        assert_eq!(news(&server).len(), 1 + usize::from(heard));
    }
}

#[test]
fn what_a_run_was_told_and_waits_as_an_input_counts_against_the_bound() {
    let settings = QueueSettings {
        mode: QueueMode::SteerBacklog,
        cap: 2,
        ..QueueSettings::default()
    };
    let queue = Arc::new(MessageQueue::new(settings));
    let server = FakeModel::start(vec![
        reply().text("first"),
        reply().text("second"),
        reply().text("third"),
    ]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent(dir.path(), &server, FakeWire::Messages, Vec::new()).await;
        let mut live = agent.session(session("s"));
        let options = speaking(&queue, "one", is_text);
        live.run(
            text("go"),
            RunOptions {
                queue: Some(queue.clone()),
                ..options
            },
        )
        .await
        .unwrap();
    });
    let waits = |word: &str, told| QueuedMessage {
        content: text(word),
        already_shown: told,
    };
    assert_eq!(queue.queued(), [waits("one", true)]);
    assert_eq!(
        [queue.send(text("two")), queue.send(text("three"))],
        [SendOutcome::Queued, SendOutcome::ReplacedOldest]
    );
    assert_eq!(queue.drain(), [waits("two", false), waits("three", false)]);
    assert!(queue.is_empty());
}

#[test]
fn collected_messages_are_one_in_the_form_of_one() {
    let queue = MessageQueue::new(QueueSettings {
        debounce_ms: 0,
        ..QueueSettings::default()
    });
    let with = |word: &str| {
        vec![
            Block::text(format!("see @{word}")),
            Block::text(format!("Attached file {word}:")),
        ]
    };
    assert_eq!(
        (
            queue.send(with("a")),
            queue.send(with("b")),
            queue.send(Vec::new())
        ),
        (
            SendOutcome::Queued,
            SendOutcome::Queued,
            SendOutcome::Refused
        )
    );
    let expected = ["see @a\n\nsee @b", "Attached file a:", "Attached file b:"].map(Block::text);
    assert_eq!(block_on(queue.next_input()).unwrap().content, expected);
}

#[test]
fn no_more_wait_than_may_and_what_is_dropped_is_what_was_said() {
    let words =
        |queue: &MessageQueue| block_on(async { said(&queue.next_input().await.unwrap().content) });
    let queue = |drop| {
        let settings = QueueSettings {
            mode: QueueMode::Collect,
            debounce_ms: 0,
            cap: 2,
            drop,
        };
        let queue = MessageQueue::new(settings);
        let sent: Vec<SendOutcome> = ["one", "two", "three"]
            .iter()
            .map(|word| queue.send(text(word)))
            .collect();
        (words(&queue), sent[2])
    };
    assert_eq!(
        queue(DropPolicy::Old),
        ("two\n\nthree".to_owned(), SendOutcome::ReplacedOldest)
    );
    assert_eq!(
        queue(DropPolicy::New),
        ("one\n\ntwo".to_owned(), SendOutcome::Refused)
    );
    let left_out = "[1 earlier message was left out.]\n- one\n\ntwo\n\nthree".to_owned();
    assert_eq!(
        queue(DropPolicy::Summarize),
        (left_out, SendOutcome::ReplacedOldest)
    );
}
