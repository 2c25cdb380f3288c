//! The place for tests of hooks and process lifetime: cancelled runs and processes killed during a
//! hook.

use super::{Scene, hook_runs, writes};
use crate::support::{block_on, journal, results, session, text};
use std::path::Path;
use std::time::Duration;
use stead_agent::{Agent, RunOptions};
use stead_core::{HookOutcome, ResultStatus, RunOutcome};
use stead_model::{ModelSettings, connect};
use stead_testkit::{Child, Death, child_role};
use tokio_util::sync::CancellationToken;

/// Waits until a file has something in it.
async fn content(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Whether a process is there and no mere remainder.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next())
        .is_some_and(|state| state != 'Z')
}

async fn gone(pid: &str) {
    while lives(pid) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_cancelled_run_takes_its_hook_with_it() {
    let scene = Scene::new(writes());
    scene.hook(
        "h",
        "before_tool_call",
        "sleep 300 & echo $! > pid; wait",
        "timeout_seconds: 600",
    );
    scene.hook("end", "run_end", "cat > end.json", "");
    block_on(async {
        let agent = scene.agent().await;
        let cancel = CancellationToken::new();
        let options = RunOptions {
            cancel: cancel.clone(),
            ..RunOptions::default()
        };
        let stop = async {
            let pid = content(&scene.path("pid")).await;
            cancel.cancel();
            pid
        };
        let (ran, pid) = futures_util::future::join(scene.run_with(&agent, options), stop).await;
        assert_eq!(ran.report.as_ref().unwrap().outcome, RunOutcome::Cancelled);
        gone(&pid).await;
        assert_eq!(results(&ran.lines)[0].1, ResultStatus::Skipped);
        assert_eq!(
            ran.outcomes(),
            [HookOutcome::Failed, HookOutcome::Passed],
            "{:?}",
            ran.hooks()
        );
        // Who wants to know how it ended is told all the same.
        assert!(
            scene
                .read("end.json")
                .unwrap()
                .contains("\"outcome\":\"cancelled\"")
        );
    });
}

async fn agent_of(dir: &Path, url: &str) -> std::sync::Arc<Agent> {
    let settings = ModelSettings {
        name: "anthropic:x".to_owned(),
        base_url: Some(url.to_owned()),
        max_retries: Some(0),
        ..ModelSettings::default()
    };
    let model = connect(&settings, &|_| None).unwrap();
    Agent::builder()
        .layout(stead_workspace::Layout::Stead)
        .workspace(dir)
        .model_arc(model)
        .build()
        .await
        .unwrap()
}

const KILLED: &str =
    "hooks::process_lifetime::a_process_killed_during_a_hook_leaves_a_session_that_goes_on";

#[test]
fn a_process_killed_during_a_hook_leaves_a_session_that_goes_on() {
    if let Some(role) = child_role() {
        let dir = Path::new(role.get("dir"));
        return block_on(async {
            let agent = agent_of(dir, role.get("url")).await;
            let mut chat = agent.session(session("s"));
            let kill = async {
                content(&dir.join("asked")).await;
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )
                .unwrap();
            };
            let _ =
                futures_util::future::join(chat.run(text("go"), RunOptions::default()), kill).await;
        });
    }
    for event in ["before_tool_call", "after_tool_call"] {
        let scene = Scene::new(writes());
        // The first time it waits to be killed with its process: it ends when that no longer
        // listens.
        let script = "if [ -e asked ]; then exit 0; fi; echo $$ > asked; while [ -e wait ]; do sleep 0.05; done";
        scene.hook("h", event, script, "timeout_seconds: 600");
        scene.put("wait", "");
        let dir = scene.dir.path().to_str().unwrap().to_owned();
        let child = Child::spawn(
            KILLED,
            [("dir", dir.as_str()), ("url", &scene.server.base_url())],
        );
        let ended = child.wait(Duration::from_secs(20));
        assert_eq!(ended.death, Death::Signal(9), "{ended}");
        std::fs::remove_file(scene.path("wait")).unwrap();
        block_on(async {
            let agent = agent_of(scene.dir.path(), &scene.server.base_url()).await;
            let mut chat = agent.session(session("s"));
            let report = chat.resume(RunOptions::default()).await.unwrap();
            assert_eq!(
                (report.outcome, report.text.as_str()),
                (RunOutcome::Completed, "done"),
                "{event}"
            );
            let (lines, _) = journal(&agent, &session("s")).await;
            let statuses: Vec<ResultStatus> =
                results(&lines).iter().map(|result| result.1).collect();
            match event {
                // The call had not begun: the hook is asked again, and it runs.
                "before_tool_call" => {
                    assert_eq!(statuses, [ResultStatus::Ok]);
                    assert_eq!(hook_runs(&lines).len(), 1);
                }
                // It had: nobody runs it twice.
                _ => assert_eq!(statuses, [ResultStatus::Interrupted]),
            }
            assert_eq!(scene.read("a.txt").as_deref(), Some("hello"), "{event}");
        });
    }
}
