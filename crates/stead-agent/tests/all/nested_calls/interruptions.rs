//! The place for tests of what ends a call that waits for its nested calls: a new input, a message in
//! place of an answer, an answer that comes too late, and a tool that ends the run.

use super::scenario::{self, UNTIL_THE_QUESTION, file};
use super::{agent_with, call_lines, model_of, read_journal, run, told};
use crate::support::{TestTool, block_on, session, text};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stead_agent::{
    ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, Approver, MessageQueue, RunOptions,
};
use stead_core::{Risk, RunOutcome};
use stead_store::OsDisk;
use stead_tools::{Output, ToolError};
use stead_workspace::{QueueMode, QueueSettings};

#[test]
fn calls_that_run_beside_a_question_are_finished_and_not_made_again() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let risk = Risk {
            parallel_safe: true,
            ..Risk::WRITES
        };
        let slow = TestTool::make("slow", risk, move |_, _| {
            let count = counted.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                count.fetch_add(1, Ordering::SeqCst);
                Ok(Output::text("slowly"))
            }
        });
        let write =
            json!(["write_file", {"file_path": "log.txt", "content": "y\n", "mode": "append"}]);
        std::fs::write(
            dir.path().join("agent.yaml"),
            "permission_mode: bypass\napprovals: {write_file: true}\n",
        )
        .unwrap();
        let model = model_of(json!([[["slow", {}], write, ["slow", {}]]]));
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![slow]).await;
        let parked = run(&agent, RunOptions::default()).await;
        assert_eq!(parked.outcome, RunOutcome::Parked);
        // The first was running when the second asked; the third is made after the answer.
        let (lines, _) = read_journal(&agent).await;
        let first = &call_lines(&lines)[..];
        assert!(
            first.contains(&"result c1/1 ok".to_owned()),
            "it was not finished: {first:?}"
        );
        let before = count.load(Ordering::SeqCst);
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let mut session = agent.session(session("s"));
        let report = session.resume(options).await.unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        assert_eq!(count.load(Ordering::SeqCst), 2, "{before} before");
        assert_eq!(file(dir.path(), "log.txt"), "x\ny\n");
        let (_, state) = read_journal(&agent).await;
        let [said] = told(&state).try_into().unwrap();
        assert_eq!(said.matches("ok slowly").count(), 2, "{said}");
    });
}

#[test]
fn a_new_input_closes_a_parked_run_with_all_its_calls() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let agent = scenario::agent(dir.path()).await;
        let parked = run(&agent, RunOptions::default()).await;
        assert_eq!(parked.outcome, RunOutcome::Parked);
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, state) = read_journal(&agent).await;
        let expected: Vec<&str> = UNTIL_THE_QUESTION
            .into_iter()
            .chain(["result c1/3 skipped", "result c1 interrupted"])
            .collect();
        assert_eq!(call_lines(&lines), expected);
        assert_eq!(state.run, None);
        assert_eq!(file(dir.path(), "log.txt"), "x\n");
    });
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
fn a_message_in_place_of_an_answer_skips_the_nested_call_and_ends_its_caller() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let agent = scenario::agent(dir.path()).await;
        let queue = Arc::new(MessageQueue::new(QueueSettings {
            mode: QueueMode::Steer,
            debounce_ms: 50,
            ..QueueSettings::default()
        }));
        let options = RunOptions {
            approvals: ApprovalPolicy::Ask(Arc::new(Elsewhere(queue.clone()))),
            queue: Some(queue),
            ..RunOptions::default()
        };
        let report = run(&agent, options).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = read_journal(&agent).await;
        let expected: Vec<&str> = UNTIL_THE_QUESTION
            .into_iter()
            .chain(["result c1/3 skipped", "result c1 interrupted"])
            .collect();
        assert_eq!(call_lines(&lines), expected);
        assert_eq!(file(dir.path(), "log.txt"), "x\n");
    });
}

#[test]
fn a_nested_tool_that_ends_the_run_ends_it_after_its_caller() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "a\n").unwrap();
        let fatal = TestTool::make("fatal", Risk::READS, |_, _| async {
            Err::<Output, _>(ToolError::Fatal("the disk is gone".to_owned()))
        });
        let read = json!(["read_file", {"file_path": "a.txt"}]);
        let model = model_of(json!([[["fatal", {}]], [read]]));
        let agent = agent_with(dir.path(), model, Arc::new(OsDisk), vec![fatal]).await;
        let report = run(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        assert_eq!(report.reason.as_deref(), Some("the disk is gone"));
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "call c1",
                "call c1/1 = fatal of c1",
                "result c1/1 error",
                "result c1 ok",
            ]
        );
        let [said] = told(&state).try_into().unwrap();
        assert!(
            said.contains("not made: the run or the calling call is ending"),
            "{said}"
        );
    });
}
