//! The place for tests of broken model streams: cut or silent streams, malformed calls, duplicate
//! ids and retries.

use crate::support::{
    agent, assert_well_formed, block_on, in_parallel, journal, listening, model, patient_model,
    results, session, text,
};
use serde_json::json;
use std::time::{Duration, Instant};
use stead_agent::RunOptions;
use stead_core::{EventKind, ResultStatus, RunOutcome};
use stead_testkit::{
    FakeAnswer, FakeModel, FakeWire, RecordedRequest, ResponseMode, fail, hang, render, reply,
    reset,
};

/// Between two places where a stream is cut through the whole driver. The decoders are cut at every
/// byte in stead-model.
const STRIDE_BYTES: usize = 31;

fn last_words(request: &RecordedRequest) -> String {
    request
        .seen
        .as_ref()
        .unwrap()
        .user_texts()
        .last()
        .unwrap_or_default()
        .to_owned()
}

fn wish(offset: usize) -> FakeAnswer {
    let args = json!({"file_path": format!("f{offset}.txt"), "content": "all of it, ä\n"});
    reply()
        .thinking("hm")
        .text("I will write.")
        .call("write_file", args)
        .call("ls", json!({}))
}

#[test]
fn a_stream_cut_anywhere_runs_no_call_and_leaves_a_history_that_goes_on() {
    in_parallel(&FakeWire::ALL, |&wire| {
        let server = FakeModel::start_with(|request| {
            let words = last_words(request);
            let mut words = words.split(' ');
            let answered = request.seen.as_ref().unwrap().results().count() > 0;
            match (
                words.next(),
                words.next().and_then(|n| n.parse::<usize>().ok()),
            ) {
                (Some("cut" | "end"), _) if answered => reply().text("done"),
                (Some("cut"), Some(at)) => wish(at).cut_at(at),
                (Some("end"), Some(at)) => wish(at).end_at(at),
                _ => reply().text("all is well"),
            }
        });
        let length = render(&wish(1000), wire, ResponseMode::StreamWithUsage, 0, 0).len();
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent(dir.path(), model(&server, wire)).await;
            for (way, offset) in (0..length)
                .step_by(STRIDE_BYTES)
                .flat_map(|at| [("cut", at), ("end", at)])
            {
                let place = format!("{wire:?} {way} at {offset} of {length}");
                let file = dir.path().join(format!("f{offset}.txt"));
                let mut session = agent.session(session(&format!("{way}-{offset}")));
                let (options, events) = listening();
                let report = session
                    .run(text(&format!("{way} {offset}")), options)
                    .await
                    .unwrap();
                assert_well_formed(&events.lock().unwrap());
                match report.outcome {
                    RunOutcome::Failed => {
                        assert!(!file.exists(), "{place}: a call of half an answer was run")
                    }
                    RunOutcome::Completed => {
                        assert_eq!(
                            std::fs::read_to_string(&file).unwrap(),
                            "all of it, ä\n",
                            "{place}"
                        )
                    }
                    other => panic!("{place}: {other:?}"),
                }
                let _ = std::fs::remove_file(&file);
                let report = session
                    .run(text("How are you?"), RunOptions::default())
                    .await
                    .unwrap();
                assert_eq!(
                    (report.outcome, report.text.as_str()),
                    (RunOutcome::Completed, "all is well"),
                    "{place}"
                );
            }
        });
        assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
    });
}

#[test]
fn calls_that_make_no_sense_become_results_the_model_can_act_on() {
    let huge = "x".repeat(2 * 1024 * 1024);
    let huge = json!({"file_path": "huge.txt", "content": huge}).to_string();
    // Gemini carries arguments as an object, so text that is no JSON reaches it as no arguments.
    let cases: [(&str, FakeAnswer, &[&str]); 7] = [
        (
            "cut arguments",
            reply().call_raw("write_file", "{\"file_path\": \"x.txt\", \"cont"),
            &["not valid JSON", "write_file: "],
        ),
        (
            "no object",
            reply().call_raw("write_file", "[1, 2]"),
            &["must be a JSON object"],
        ),
        (
            "no arguments",
            reply().call_raw("write_file", ""),
            &["write_file: "],
        ),
        (
            "wrong types",
            reply().call("write_file", json!({"file_path": 7, "content": ["x"]})),
            &["write_file: "],
        ),
        (
            "huge",
            reply().call_raw("write_file", &huge),
            &["at most 1048576"],
        ),
        (
            "unknown tool",
            reply().call("rite_file", json!({"file_path": "x.txt"})),
            &["did you mean `write_file`?"],
        ),
        (
            "hostile name",
            reply().call("../../bin/sh -c \u{7}", json!({})),
            &["there is no tool"],
        ),
    ];
    in_parallel(&FakeWire::ALL, |&wire| {
        for (case, answer, said) in &cases {
            let place = format!("{wire:?} {case}");
            let server = FakeModel::start(vec![answer.clone(), reply().text("I see")]);
            let dir = tempfile::tempdir().unwrap();
            block_on(async {
                let agent = agent(dir.path(), model(&server, wire)).await;
                let report = agent
                    .session(session("s"))
                    .run(text("go"), RunOptions::default())
                    .await
                    .unwrap();
                assert_eq!(
                    (report.outcome, report.text.as_str()),
                    (RunOutcome::Completed, "I see"),
                    "{place}: {report:?}"
                );
                let (lines, _) = journal(&agent, &session("s")).await;
                let results = results(&lines);
                assert_eq!(results.len(), 1, "{place}");
                let (_, status, told) = &results[0];
                assert!(
                    *status == ResultStatus::Error && said.iter().any(|words| told.contains(words)),
                    "{place}: {results:?}"
                );
            });
            assert_eq!(server.rejections(), Vec::new(), "{place}");
            assert!(!dir.path().join("x.txt").exists(), "{place}");
        }
    });
}

#[test]
fn ids_that_a_model_gives_twice_are_told_apart() {
    for wire in [FakeWire::Chat, FakeWire::Messages, FakeWire::Responses] {
        let write = |n: usize| json!({"file_path": format!("{n}.txt"), "content": "x"});
        let server = FakeModel::start(vec![
            reply()
                .call_with_id("same", "write_file", write(1))
                .call_with_id("same", "write_file", write(2)),
            reply().call_with_id("same", "write_file", write(3)),
            reply().text("done"),
        ]);
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent(dir.path(), model(&server, wire)).await;
            let report = agent
                .session(session("s"))
                .run(text("go"), RunOptions::default())
                .await
                .unwrap();
            assert_eq!(
                report.outcome,
                RunOutcome::Completed,
                "{wire:?}: {report:?}"
            );
        });
        assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
        assert!(
            (1..=3).all(|n| dir.path().join(format!("{n}.txt")).exists()),
            "{wire:?}"
        );
    }
}

#[test]
fn a_failure_that_passes_is_retried_and_one_that_stays_is_told() {
    let passing = [
        fail(429),
        fail(500),
        fail(529),
        fail(503),
        reset(),
        reply().text("cut").cut_at(20),
    ];
    in_parallel(&FakeWire::ALL, |&wire| {
        let server = FakeModel::start(
            passing
                .iter()
                .cloned()
                .flat_map(|bad| [bad, reply().text("fine")])
                .collect(),
        );
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent(
                dir.path(),
                patient_model(&server, wire, 1, Duration::from_secs(5)),
            )
            .await;
            let mut session = agent.session(session("s"));
            for bad in &passing {
                let (options, events) = listening();
                let report = session.run(text("go"), options).await.unwrap();
                assert_eq!(
                    (report.outcome, report.text.as_str()),
                    (RunOutcome::Completed, "fine"),
                    "{wire:?} {bad:?}"
                );
                let events = events.lock().unwrap();
                let retries = events
                    .iter()
                    .filter(|e| matches!(e.kind, EventKind::ModelRetry { attempt: 2, .. }))
                    .count();
                assert_eq!(retries, 1, "{wire:?} {bad:?}");
                assert_well_formed(&events);
            }
        });
        assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
    });
    let lasting = [
        (fail(401), "scripted failure 401"),
        (fail(400).message("no such thing"), "no such thing"),
        (fail(500), "500"),
    ];
    for (bad, said) in lasting {
        let server = FakeModel::start(vec![bad, reply().text("fine")]);
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent(dir.path(), model(&server, FakeWire::Chat)).await;
            let mut session = agent.session(session("s"));
            let report = session
                .run(text("go"), RunOptions::default())
                .await
                .unwrap();
            assert!(
                report.outcome == RunOutcome::Failed
                    && report.reason.as_deref().unwrap().contains(said),
                "{report:?}"
            );
            let report = session.resume(RunOptions::default()).await.unwrap();
            assert_eq!(
                (report.outcome, report.text.as_str()),
                (RunOutcome::Completed, "fine")
            );
        });
        assert_eq!(server.rejections(), Vec::new());
    }
}

#[test]
fn a_model_that_falls_silent_is_given_up_after_the_idle_time() {
    in_parallel(&FakeWire::ALL, |&wire| {
        let half = reply()
            .text("half of")
            .call("write_file", json!({"file_path": "x", "content": "x"}))
            .stall_at(120);
        let server = FakeModel::start(vec![hang(), half, reply().text("fine")]);
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent(
                dir.path(),
                patient_model(&server, wire, 0, Duration::from_millis(200)),
            )
            .await;
            let mut session = agent.session(session("s"));
            for _ in 0..2 {
                let started = Instant::now();
                let report = session
                    .run(text("go"), RunOptions::default())
                    .await
                    .unwrap();
                assert_eq!(report.outcome, RunOutcome::Failed, "{wire:?}");
                assert!(
                    report
                        .reason
                        .as_deref()
                        .unwrap()
                        .contains("sent nothing for"),
                    "{wire:?}: {report:?}"
                );
                assert!(
                    started.elapsed() < Duration::from_secs(2),
                    "{wire:?}: {:?}",
                    started.elapsed()
                );
            }
            let report = session.resume(RunOptions::default()).await.unwrap();
            assert_eq!(
                (report.outcome, report.text.as_str()),
                (RunOutcome::Completed, "fine"),
                "{wire:?}"
            );
        });
        assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
        assert!(!dir.path().join("x").exists(), "{wire:?}");
    });
}
