//! The place for tests of calls that park a run: run once when approved, never when denied, skipped
//! when a new input arrives.

use crate::support::{agent, block_on, journal, model, results, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{Entry, ResultStatus, RunOutcome};
use stead_testkit::{FakeModel, FakeWire, reply};

fn asking(dir: &Path) {
    std::fs::write(dir.join("agent.yaml"), "approvals: {write_file: true}\n").unwrap();
    std::fs::write(dir.join("log.txt"), "x\n").unwrap();
}

fn server() -> FakeModel {
    FakeModel::start_with(|request| match request.result_count() {
        0 => reply()
            .call("ls", json!({}))
            .call(
                "write_file",
                json!({"file_path": "log.txt", "content": "y\n", "mode": "append"}),
            )
            .call(
                "write_file",
                json!({"file_path": "log.txt", "content": "z\n", "mode": "append"}),
            ),
        _ => reply().text("done"),
    })
}

async fn parked(dir: &Path, server: &FakeModel) -> Arc<Agent> {
    asking(dir);
    let agent = agent(dir, model(server, FakeWire::Messages)).await;
    let mut session = agent.session(session("s"));
    let report = session
        .run(text("go"), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Parked);
    let asked: Vec<String> = session
        .open_questions()
        .into_iter()
        .map(|q| format!("{} {}", q.tool, q.rule))
        .collect();
    assert_eq!(asked, ["write_file approvals: write_file: true"; 2]);
    assert_eq!(std::fs::read_to_string(dir.join("log.txt")).unwrap(), "x\n");
    agent
}

// Approvals
#[test]
fn a_parked_call_is_run_once_when_approved_and_never_when_denied() {
    for (approvals, content, statuses) in [
        (
            ApprovalPolicy::ApproveAll,
            "x\ny\nz\n",
            [ResultStatus::Ok, ResultStatus::Ok, ResultStatus::Ok],
        ),
        (
            ApprovalPolicy::DenyAll,
            "x\n",
            [ResultStatus::Ok, ResultStatus::Denied, ResultStatus::Denied],
        ),
    ] {
        let server = server();
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            parked(dir.path(), &server).await;
            // Another process takes it up, twice: parking again changes nothing.
            let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
            let mut session_here = agent.session(session("s"));
            assert_eq!(
                session_here
                    .resume(RunOptions::default())
                    .await
                    .unwrap()
                    .outcome,
                RunOutcome::Parked
            );
            let options = RunOptions {
                approvals: approvals.clone(),
                ..RunOptions::default()
            };
            let report = session_here.resume(options).await.unwrap();
            assert_eq!(
                (report.outcome, report.text.as_str()),
                (RunOutcome::Completed, "done"),
                "{approvals:?}"
            );
            let (lines, _) = journal(&agent, &session("s")).await;
            let found: Vec<ResultStatus> = results(&lines)
                .into_iter()
                .map(|(_, status, _)| status)
                .collect();
            assert_eq!(found, statuses, "{approvals:?}");
            let asks = lines
                .iter()
                .filter(|line| matches!(line.entry, Entry::Ask(_)))
                .count();
            assert_eq!(asks, 2, "each call is asked about once");
            let hashes = |wanted: fn(&Entry) -> Option<&String>| {
                lines
                    .iter()
                    .filter_map(|line| wanted(&line.entry))
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let asked = hashes(|entry| {
                if let Entry::Ask(ask) = entry {
                    Some(&ask.args_hash)
                } else {
                    None
                }
            });
            let decided = hashes(|entry| {
                if let Entry::Decision(d) = entry {
                    Some(&d.args_hash)
                } else {
                    None
                }
            });
            assert_eq!(
                asked, decided,
                "an answer is bound to the arguments that were shown"
            );
        });
        assert_eq!(
            std::fs::read_to_string(dir.path().join("log.txt")).unwrap(),
            content
        );
        assert_eq!(server.rejections(), Vec::new());
    }
}

// A new input on a parked session
#[test]
fn a_new_input_on_a_parked_session_skips_what_waited_and_keeps_the_history_valid() {
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = parked(dir.path(), &server).await;
        let report = agent
            .session(session("s"))
            .run(text("never mind"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done")
        );
        let (lines, _) = journal(&agent, &session("s")).await;
        let found: Vec<ResultStatus> = results(&lines)
            .into_iter()
            .map(|(_, status, _)| status)
            .collect();
        assert_eq!(
            found,
            [
                ResultStatus::Ok,
                ResultStatus::Skipped,
                ResultStatus::Skipped
            ]
        );
    });
    assert_eq!(
        std::fs::read_to_string(dir.path().join("log.txt")).unwrap(),
        "x\n"
    );
    assert_eq!(server.rejections(), Vec::new());
    let last = server.last_request();
    let texts: Vec<&str> = last.seen.as_ref().unwrap().user_texts().collect();
    assert_eq!(texts, ["go", "never mind"]);
}
