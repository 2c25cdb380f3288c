//! The place for tests of crashes and changes between the runs of a call that makes calls: no call
//! runs twice, and a caller that does something else is stopped.

use super::scenario::{self, file};
use super::{agent_with, call_lines, model_calling, read_journal, run, told};
use crate::kill_points::{KillPoints, doomed_child};
use crate::support::{TestTool, block_on, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stead_agent::{Agent, AgentError, ApprovalAnswer, ApprovalReply, RunOptions};
use stead_core::{ResultStatus, Risk, RunOutcome};
use stead_store::{Disk, LockWait, OsDisk, StoreError};
use stead_testkit::FaultDisk;
use stead_tools::{Output, Tool, ToolError};

/// Works the scenario to its end from wherever it is: the input, the answer and the resumed run.
async fn work_to_the_end(agent: &Arc<Agent>) {
    let mut session = agent.session(session("s"));
    let has_input = match session.load().await {
        Ok(()) => session.state().runs > 0,
        Err(AgentError::Store(StoreError::NotFound(_))) => false,
        Err(error) => panic!("{error}"),
    };
    let mut outcome = RunOutcome::Parked;
    if !has_input {
        let report = session
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        outcome = report.outcome;
    }
    while outcome == RunOutcome::Parked {
        let replies: Vec<ApprovalReply> = session
            .open_questions()
            .into_iter()
            .map(|question| ApprovalReply {
                id: question.id,
                args_hash: question.args_hash,
                answer: ApprovalAnswer::Yes,
            })
            .collect();
        if !replies.is_empty() {
            session
                .answer(
                    &replies,
                    "ann",
                    stead_agent::AfterAnswer::Leave,
                    LockWait::No,
                )
                .await
                .unwrap();
        }
        outcome = match session.resume(RunOptions::default()).await {
            Ok(report) => report.outcome,
            // It was killed after the end was recorded.
            Err(AgentError::NothingToResume(_)) => RunOutcome::Completed,
            Err(error) => panic!("{error}"),
        };
    }
    assert_eq!(outcome, RunOutcome::Completed);
    agent.sessions().flush().await;
}

async fn agent_on(dir: &Path, disk: Arc<dyn Disk>) -> Arc<Agent> {
    agent_with(dir, scenario::model(), disk, Vec::new()).await
}

/// What must hold after the scenario, wherever it was interrupted.
async fn assert_sound(dir: &Path, undisturbed: &[String], place: &str) {
    let agent = scenario::agent(dir).await;
    let (lines, state) = read_journal(&agent).await;
    assert_eq!(state.final_text(), "done", "{place}");
    let entries = call_lines(&lines);
    let count = |line: &str| {
        entries
            .iter()
            .filter(|known| known.starts_with(line))
            .count()
    };
    for id in ["c1/1", "c1/2", "c1/3", "c1/4", "c1 "] {
        assert_eq!(count(&format!("result {id}")), 1, "{place}: {entries:?}");
    }
    // Intents of the calls that change something.
    assert_eq!(count("call c1/3"), 1, "{place}: {entries:?}");
    assert_eq!(count("call c1/4"), 1, "{place}: {entries:?}");
    assert_eq!(count("ask "), 1, "{place}: {entries:?}");
    let status = |id: &str| {
        let results = crate::support::results(&lines);
        results
            .into_iter()
            .find(|(known, ..)| known == id)
            .unwrap()
            .1
    };
    let log = file(dir, "log.txt");
    match status("c1/3") {
        ResultStatus::Ok => assert_eq!(log, "x\ny\n", "{place}"),
        ResultStatus::Interrupted => assert!(log == "x\n" || log == "x\ny\n", "{place}: {log}"),
        other => panic!("{place}: {other:?}"),
    }
    let counted = file(dir, "count.txt");
    match status("c1/4") {
        ResultStatus::Ok => assert_eq!(counted, "one 2 three\n", "{place}"),
        ResultStatus::Interrupted => assert!(
            ["one two three\n", "one 2 three\n"].contains(&counted.as_str()),
            "{place}: {counted}"
        ),
        other => panic!("{place}: {other:?}"),
    }
    assert_eq!(file(dir, "fixed.txt"), "stays\n", "{place}");
    let interrupted = entries.iter().any(|line| line.contains("interrupted"));
    if !interrupted {
        assert_eq!(told(&state), undisturbed, "{place}");
    }
}

#[test]
fn a_kill_anywhere_never_runs_a_nested_call_twice_and_the_conversation_is_the_same() {
    const NAME: &str = "nested_calls::crashes::a_kill_anywhere_never_runs_a_nested_call_twice_and_the_conversation_is_the_same";
    if let Some((role, disk)) = doomed_child() {
        return block_on(async {
            let agent = agent_on(Path::new(role.get("dir")), Arc::new(disk)).await;
            work_to_the_end(&agent).await;
        });
    }
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    scenario::lay_out(dir.path());
    let undisturbed = block_on(async {
        work_to_the_end(&agent_on(dir.path(), counting.clone()).await).await;
        let agent = scenario::agent(dir.path()).await;
        told(&read_journal(&agent).await.1)
    });
    block_on(assert_sound(dir.path(), &undisturbed, "undisturbed"));
    let points = KillPoints::new(NAME, &counting).only_between_operations();
    points.for_each(20, |kill| {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        points.run_child(kill, dir.path(), &[]);
        block_on(async {
            work_to_the_end(&scenario::agent(dir.path()).await).await;
            assert_sound(dir.path(), &undisturbed, &kill.place).await;
        });
    });
}

/// Calls `write_file`, but `first` on its first run and `second` later.
fn fickle(first: &'static str, second: &'static str) -> Arc<dyn Tool> {
    let again = AtomicBool::new(false);
    TestTool::make("fickle", Risk::READS, move |cx, _| {
        let name = match again.swap(true, Ordering::SeqCst) {
            false => first,
            true => second,
        };
        async move {
            let args = json!({"file_path": name});
            let read = cx.calls.call("read_file", args).await;
            let args = json!({"file_path": "log.txt", "content": "y\n", "mode": "append"});
            let wrote = cx.calls.call("write_file", args).await;
            match (read, wrote) {
                (Ok(_), Ok(wrote)) => Ok(Output::text(wrote.text())),
                (Err(error), _) | (_, Err(error)) => {
                    Err(ToolError::RespondToModel(error.to_string()))
                }
            }
        }
    })
}

#[test]
fn a_caller_that_makes_another_call_than_before_is_stopped_and_says_so() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let model = model_calling(&[("fickle", json!({}))]);
        let tool = fickle("notes.txt", "count.txt");
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![tool]).await;
        let parked = run(&agent, RunOptions::default()).await;
        assert_eq!(parked.outcome, RunOutcome::Parked);
        work_to_the_end(&agent).await;
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "call c1",
                "call c1/1 = read_file of c1",
                "result c1/1 ok",
                "ask c1/2 = write_file of c1",
                "decision c1/2 approve",
                "result c1/2 skipped",
                "result c1 error",
            ]
        );
        let [said] = told(&state).try_into().unwrap();
        assert!(
            said.starts_with("error: diverged: ")
                && said.contains("c1/1 was read_file with other arguments before"),
            "{said}"
        );
        assert_eq!(file(dir.path(), "log.txt"), "x\n");
    });
}

/// Calls that run together, at two levels, with questions among them. All of them append, so one that
/// ran twice shows.
mod together {
    use super::*;
    use serde_json::Value;
    use stead_model::Model;

    const FILES: [&str; 5] = ["a", "b", "c", "d", "e"];

    pub(super) fn lay_out(dir: &Path) {
        let settings = "approvals: {write_file: {when: {file_path: asks/*}}}\n";
        std::fs::write(dir.join("agent.yaml"), settings).unwrap();
    }

    fn append(path: &str) -> Value {
        json!(["write_file", {"file_path": path, "content": "x\n", "mode": "append"}])
    }

    pub(super) fn model() -> Arc<dyn Model> {
        let inner = json!([[append("b"), append("asks/c")], [append("d")]]);
        let steps = json!([
            [append("a"), ["script", {"steps": inner}], append("asks/e")],
            [["ls", {}]],
        ]);
        model_calling(&[("script", json!({"steps": steps}))])
    }

    pub(super) async fn agent(dir: &Path, disk: Arc<dyn Disk>) -> Arc<Agent> {
        agent_with(dir, model(), disk, Vec::new()).await
    }

    /// Every file has what its call says, once.
    pub(super) async fn assert_sound(dir: &Path, place: &str) {
        let agent = agent(dir, Arc::new(OsDisk)).await;
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(state.final_text(), "done", "{place}");
        let entries = call_lines(&lines);
        for (id, name) in ["c1/1", "c1/2/1", "c1/2/2", "c1/2/3", "c1/3"]
            .iter()
            .zip(FILES)
        {
            let path = [format!("asks/{name}"), name.to_owned()]
                .into_iter()
                .find(|path| dir.join(path).exists());
            let content = path.map_or(String::new(), |path| file(dir, &path));
            let intents = format!("call {id}");
            let intents = entries
                .iter()
                .filter(|line| **line == intents || line.starts_with(&format!("{intents} ")))
                .count();
            assert_eq!(intents, 1, "{place}: {id} in {entries:?}");
            let result = |status: &str| entries.contains(&format!("result {id} {status}"));
            match (result("ok"), result("interrupted")) {
                (true, false) => assert_eq!(content, "x\n", "{place}: {id}"),
                (false, true) => assert!(content.len() <= 2, "{place}: {id} ran twice"),
                other => panic!("{place}: {id}: {other:?} {entries:?}"),
            }
        }
    }
}

#[test]
fn a_kill_anywhere_among_calls_that_run_together_at_two_levels_runs_none_twice() {
    const NAME: &str = "nested_calls::crashes::a_kill_anywhere_among_calls_that_run_together_at_two_levels_runs_none_twice";
    if let Some((role, disk)) = doomed_child() {
        return block_on(async {
            let agent = together::agent(Path::new(role.get("dir")), Arc::new(disk)).await;
            work_to_the_end(&agent).await;
        });
    }
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    together::lay_out(dir.path());
    block_on(async {
        work_to_the_end(&together::agent(dir.path(), counting.clone()).await).await;
        together::assert_sound(dir.path(), "undisturbed").await;
    });
    let points = KillPoints::new(NAME, &counting).only_between_operations();
    points.for_each(20, |kill| {
        let dir = tempfile::tempdir().unwrap();
        together::lay_out(dir.path());
        points.run_child(kill, dir.path(), &[]);
        block_on(async {
            work_to_the_end(&together::agent(dir.path(), Arc::new(OsDisk)).await).await;
            together::assert_sound(dir.path(), &kill.place).await;
        });
    });
}
