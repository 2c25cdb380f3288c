//! The place for tests of nested calls in one run: limits, order and cancellation.

use super::scenario;
use super::{
    agent_of, agent_with, approving, call_lines, model_calling, model_of, read_journal, run, told,
};
use crate::support::{TestTool, block_on, session};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stead_agent::RunOptions;
use stead_core::{Entry, Risk, RunOutcome};
use stead_store::OsDisk;
use stead_tools::{Output, Tool, ToolError};
use tokio_util::sync::CancellationToken;

#[test]
fn a_thousand_calls_at_once_keep_their_order_and_one_denied_call_does_not_affect_the_others() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let read = json!(["read_file", {"file_path": "notes.txt"}]);
        let mut calls = vec![read; 1_000];
        calls[499] = json!(["delete_file", {"file_path": "fixed.txt"}]);
        let one_more = json!(["read_file", {"file_path": "notes.txt"}]);
        let agent = agent_of(dir.path(), model_of(json!([calls, [one_more]]))).await;
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = read_journal(&agent).await;
        let parent = lines
            .iter()
            .find_map(|line| match &line.entry {
                Entry::Result(result) if result.id == "c1" => Some(result),
                _ => None,
            })
            .unwrap();
        assert_eq!(parent.status.as_str(), "ok");
        let results = crate::support::results(&lines);
        let count = |status: &str| {
            let nested = results.iter().filter(|(id, ..)| id.starts_with("c1/"));
            nested.filter(|(_, is, _)| is.as_str() == status).count()
        };
        assert_eq!((count("ok"), count("denied")), (999, 1));
        let denied = results.iter().find(|(id, ..)| id == "c1/500").unwrap();
        assert_eq!(denied.1.as_str(), "denied");
        assert!(
            results.iter().all(|(id, ..)| id != "c1/1001"),
            "one call more than allowed was made"
        );
    });
}

#[test]
fn the_policy_limits_the_nested_calls_of_one_call_at_all_levels() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "policy: {max_nested_calls: 3}\n",
        )
        .unwrap();
        let ls = json!(["ls", {}]);
        let inner = json!(["script", {"steps": [[ls], [ls]]}]);
        let steps = json!([[inner], [ls]]);
        let model = model_calling(&[
            ("script", json!({"steps": steps})),
            ("script", json!({"steps": [[ls]]})),
        ]);
        let agent = agent_of(dir.path(), model).await;
        run(&agent, RunOptions::default()).await;
        let (_, state) = read_journal(&agent).await;
        let said = told(&state);
        let limit = "not made: one call of the model can make 3 nested calls at most \
                     (policy.max_nested_calls)";
        assert!(
            said[0].contains("c1/1/2 ok") && said[0].contains(limit),
            "{said:?}"
        );
        assert!(said[1].contains("c2/1 ok"), "each call has its own limit");
    });
}

#[test]
fn calls_that_cannot_share_run_one_at_a_time_also_when_their_callers_are_nested() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let inside = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let seen = most.clone();
        let alone = TestTool::make("alone", Risk::WRITES, move |_, _| {
            let inside = inside.clone();
            let most = most.clone();
            async move {
                let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(Output::text("ran"))
            }
        });
        // A caller that runs alone must not wait for its own calls, which run alone too.
        let lone_caller = TestTool::make(
            "lone_caller",
            Risk {
                parallel_safe: false,
                ..Risk::READS
            },
            |cx, _| async move {
                let output = cx.calls.call("alone", json!({})).await;
                let output =
                    output.map_err(|error| ToolError::RespondToModel(error.to_string()))?;
                Ok(Output::text(output.text()))
            },
        );
        let calls = json!([
            ["alone", {}],
            ["lone_caller", {}],
            ["alone", {}],
            ["lone_caller", {}],
            ["alone", {}]
        ]);
        let model = model_calling(&[
            ("script", json!({"steps": [calls]})),
            ("script", json!({"steps": [calls]})),
        ]);
        let tools = vec![alone, lone_caller];
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), tools).await;
        let report = run(&agent, approving()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        assert_eq!(seen.load(Ordering::SeqCst), 1);
        let (lines, state) = read_journal(&agent).await;
        let ran = call_lines(&lines);
        let ran = ran.iter().filter(|line| line.starts_with("result"));
        // Two scripts with five calls each, two of which make one more.
        assert_eq!(ran.count(), 2 * (1 + 5 + 2));
        for said in told(&state) {
            assert_eq!(said.matches(" ok ran").count(), 5, "{said}");
        }
    });
}

#[test]
fn calls_nest_three_levels_deep_and_no_deeper() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "deep\n").unwrap();
        let mut call = json!(["read_file", {"file_path": "a.txt"}]);
        for _ in 0..3 {
            call = json!(["script", {"steps": [[call, ["read_file", {"file_path": "a.txt"}]]]}]);
        }
        let agent = agent_of(dir.path(), model_of(json!([[call]]))).await;
        assert_eq!(
            run(&agent, RunOptions::default()).await.outcome,
            RunOutcome::Completed
        );
        let (lines, state) = read_journal(&agent).await;
        let [said] = told(&state).try_into().unwrap();
        assert!(said.contains("c1/1/1/2 ok"), "{said}");
        assert!(
            said.contains("not made: calls can be nested 3 levels deep at most"),
            "{said}"
        );
        let deepest = call_lines(&lines);
        assert!(
            deepest.contains(&"call c1/1/1/1 = script of c1/1/1".to_owned()),
            "{deepest:?}"
        );
        assert!(deepest.iter().all(|line| !line.contains("c1/1/1/1/1")));
    });
}

#[test]
fn a_tool_that_is_not_repeatable_or_that_is_called_outside_a_run_can_call_nothing() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "a\n").unwrap();
        let once = TestTool::make("once", Risk::WRITES, |cx, _| async move {
            let args = json!({"file_path": "a.txt"});
            match cx.calls.call("read_file", args).await {
                Ok(output) => Ok(Output::text(output.text())),
                Err(error) => Err(ToolError::RespondToModel(error.to_string())),
            }
        });
        let model = model_calling(&[("once", json!({}))]);
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![once]).await;
        run(&agent, approving()).await;
        let (_, state) = read_journal(&agent).await;
        assert_eq!(
            told(&state),
            [
                "error: once cannot call other tools: it is not declared repeatable, so it could not be run again if a question or a crash interrupts it"
            ]
        );
        let outside = stead_tools::NestedCalls::default();
        let error = outside.call("read_file", json!({})).await.unwrap_err();
        assert!(error.to_string().contains("outside any run"), "{error}");
    });
}

/// Waits until it is cancelled; with `n`, for `n` milliseconds, and without a look at cancellation.
fn sleeper() -> Arc<dyn Tool> {
    TestTool::make("sleeper", Risk::READS, |cx, args| async move {
        match args["n"].as_u64() {
            Some(ms) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                return Ok(Output::text("slept"));
            }
            None => cx.cancel.cancelled().await,
        }
        Err(ToolError::RespondToModel("stopped in time".to_owned()))
    })
}

#[test]
fn a_cancelled_run_ends_nested_calls_and_their_callers_and_can_be_followed_by_an_input() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = model_of(json!([[["sleeper", {}], ["sleeper", {"n": 60_000}]]]));
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![sleeper()]).await;
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let options = RunOptions {
            cancel,
            ..RunOptions::default()
        };
        let mut session = agent.session(session("s"));
        let running = session.run(crate::support::text("go"), options);
        let cancelled = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stop.cancel();
        };
        let (report, ()) = tokio::join!(running, cancelled);
        assert_eq!(report.unwrap().outcome, RunOutcome::Cancelled);
        drop(session);
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(state.run, None);
        let results = crate::support::results(&lines);
        let statuses: std::collections::BTreeMap<&str, &str> = results
            .iter()
            .map(|(id, status, _)| (id.as_str(), status.as_str()))
            .collect();
        // The first nested call saw the cancellation and says so itself. The caller has a result of
        // its own if it took up what came of its calls in time.
        assert_eq!((statuses["c1/1"], statuses["c1/2"]), ("error", "cancelled"));
        assert!(
            ["ok", "cancelled"].contains(&statuses["c1"]),
            "{statuses:?}"
        );
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
    });
}

#[test]
fn calls_that_a_caller_does_not_wait_for_are_cancelled_before_its_result_is_recorded() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let hasty = TestTool::make("hasty", Risk::READS, |cx, _| async move {
            let slow = cx.calls.call("sleeper", json!({"n": 60_000}));
            let quick = tokio::time::timeout(Duration::from_millis(50), slow);
            Ok(Output::text(format!("waited: {}", quick.await.is_ok())))
        });
        let model = model_calling(&[("hasty", json!({}))]);
        let tools = vec![hasty, sleeper()];
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), tools).await;
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "call c1",
                "call c1/1 = sleeper of c1",
                "result c1/1 cancelled",
                "result c1 ok",
            ]
        );
        assert_eq!(told(&state), ["ok: waited: false"]);
    });
}

#[test]
fn a_caller_whose_time_is_up_ends_with_its_calls() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "policy: {tool_timeout_seconds: 1}\n",
        )
        .unwrap();
        // All have the same limit; the last begins when most of its caller's time has passed.
        let model = model_of(json!([[["sleeper", {"n": 700}]], [["sleeper", {"n": 60_000}]]]));
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![sleeper()]).await;
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = read_journal(&agent).await;
        let results = crate::support::results(&lines);
        let ended: Vec<(&str, &str)> = results
            .iter()
            .map(|(id, status, _)| (id.as_str(), status.as_str()))
            .collect();
        let expected = [("c1/1", "ok"), ("c1/2", "cancelled"), ("c1", "error")];
        assert_eq!(ended, expected);
        assert!(results[2].2.starts_with("timed out after 1 s"));
    });
}

#[test]
fn an_answer_with_too_many_calls_has_the_first_thousand_carried_out() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let quick = TestTool::make("quick", Risk::READS, |_, _| async {
            Ok(Output::text("ran"))
        });
        let calls = vec![("quick", json!({})); 1_200];
        let model = model_calling(&calls);
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![quick]).await;
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (_, state) = read_journal(&agent).await;
        let said = told(&state);
        let ran = said.iter().take_while(|said| *said == "ok: ran").count();
        assert_eq!((said.len(), ran), (1_200, 1_000));
        assert!(
            said[1_000].starts_with("error: not carried out: one answer can have 1000 calls"),
            "{}",
            said[1_000]
        );
    });
}
