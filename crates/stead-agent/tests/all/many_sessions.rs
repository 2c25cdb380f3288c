//! The place for tests of many concurrent sessions of one process that share nothing.

use crate::support::{agent, journal, model, session, text};
use serde_json::json;
use stead_agent::RunOptions;
use stead_core::RunOutcome;
use stead_testkit::{FakeModel, FakeWire, reply};
use tokio::task::JoinSet;

const SESSIONS: usize = 200;

// A group of sessions
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_at_once_complete_and_share_nothing() {
    let server = FakeModel::start_with(|request| {
        let seen = request.seen.as_ref().unwrap();
        let name = seen.user_texts().next().unwrap().to_owned();
        match seen.results().count() {
            n if n < 3 => {
                let args = json!({"file_path": format!("{name}.txt"), "content": format!("{name} {n}\n"), "mode": "append"});
                reply().call("write_file", args)
            }
            _ => reply().text(format!("{name} is done")),
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let agent = agent(dir.path(), model(&server, FakeWire::Chat)).await;
    let mut tasks = JoinSet::new();
    for n in 0..SESSIONS {
        let agent = agent.clone();
        tasks.spawn(async move {
            let name = format!("s{n}");
            let report = agent
                .session(session(&name))
                .run(text(&name), RunOptions::default())
                .await
                .unwrap();
            assert_eq!(
                (report.outcome, report.text),
                (RunOutcome::Completed, format!("{name} is done"))
            );
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    agent.sessions().flush().await;
    for n in 0..SESSIONS {
        let name = format!("s{n}");
        let (lines, state) = journal(&agent, &session(&name)).await;
        assert_eq!(
            (lines.len(), state.title.as_str(), state.runs),
            (13, name.as_str(), 1)
        );
        let file = std::fs::read_to_string(dir.path().join(format!("{name}.txt"))).unwrap();
        assert_eq!(file, format!("{name} 0\n{name} 1\n{name} 2\n"));
    }
    let index = dir.path().join("agents/main/sessions/sessions.jsonl");
    let index = std::fs::read_to_string(index).unwrap();
    let indexed: std::collections::BTreeSet<String> = index
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].to_string())
        .collect();
    assert_eq!(indexed.len(), SESSIONS);
    assert_eq!(server.rejections(), Vec::new());
}
