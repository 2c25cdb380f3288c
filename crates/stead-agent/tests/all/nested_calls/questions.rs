//! The place for tests of questions about nested calls: what is on record, how answers from another
//! process take effect, and what an approver who is there sees.

use super::scenario::{self, UNTIL_THE_QUESTION, file};
use super::{agent_of, call_lines, model_calling, model_of, read_journal, run, told};
use crate::support::{block_on, listening, session};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::{Arc, Mutex};
use stead_agent::{
    Agent, ApprovalAnswer, ApprovalOutcome, ApprovalPolicy, ApprovalQuestion, ApprovalReply,
    Approver, RunOptions, RunReport,
};
use stead_core::{EventKind, RunOutcome};
use stead_store::LockWait;

/// Answers every open question like this, from an agent that has not seen the run.
async fn answer(agent: &Arc<Agent>, answer: ApprovalAnswer) -> ApprovalOutcome {
    let asked = agent.open_questions(agent.owner()).list().await.unwrap();
    let replies: Vec<ApprovalReply> = asked
        .into_iter()
        .map(|question| ApprovalReply {
            id: question.id,
            args_hash: question.args_hash,
            answer: answer.clone(),
        })
        .collect();
    let mut session = agent.session(session("s"));
    session
        .answer(
            &replies,
            "ann",
            stead_agent::AfterAnswer::Leave,
            LockWait::No,
        )
        .await
        .unwrap()
}

async fn resume(agent: &Arc<Agent>) -> RunReport {
    let mut session = agent.session(session("s"));
    session.resume(RunOptions::default()).await.unwrap()
}

#[test]
fn every_kind_of_answer_from_another_process_takes_effect_and_nothing_runs_twice() {
    let read = "buy milk";
    let denied = "c1/2 denied denied: permissions[0]: deny write fixed.txt";
    let edited_args = json!({"file_path": "log.txt", "content": "e\n", "mode": "append"});
    let table = [
        (
            ApprovalAnswer::Yes,
            "x\ny\n",
            "c1/3 ok",
            vec!["decision c1/3 approve", "call c1/3", "result c1/3 ok"],
            "",
        ),
        (
            ApprovalAnswer::Edit(edited_args),
            "x\ne\n",
            "c1/3 ok",
            vec!["decision c1/3 edit", "call c1/3", "result c1/3 ok"],
            "[ann changed the arguments of the nested call c1/3 (write_file); it is about: ",
        ),
        (
            ApprovalAnswer::No {
                reason: Some("not there".to_owned()),
            },
            "x\n",
            "c1/3 denied denied: ann said no to this call: not there",
            vec!["decision c1/3 reject", "result c1/3 denied"],
            "",
        ),
        (
            ApprovalAnswer::Respond("it is written".to_owned()),
            "x\n",
            "c1/3 ok it is written",
            vec!["decision c1/3 respond", "result c1/3 ok"],
            "",
        ),
    ];
    for (given, log, third, entries, note) in table {
        block_on(async {
            let dir = tempfile::tempdir().unwrap();
            scenario::lay_out(dir.path());
            let parked = run(&scenario::agent(dir.path()).await, RunOptions::default()).await;
            assert_eq!(parked.outcome, RunOutcome::Parked);
            assert_eq!(file(dir.path(), "count.txt"), "one two three\n");
            let agent = scenario::agent(dir.path()).await;
            let (lines, _) = read_journal(&agent).await;
            assert_eq!(call_lines(&lines), UNTIL_THE_QUESTION);

            let [question] = agent
                .open_questions(agent.owner())
                .list()
                .await
                .unwrap()
                .try_into()
                .unwrap();
            assert_eq!(
                (question.id.as_str(), question.tool.as_str()),
                ("c1/3", "write_file")
            );
            assert_eq!(question.called_by.as_deref(), Some("script"));
            let preview = question.terms.preview.unwrap_or_default();
            assert!(preview.contains("+y"), "{preview}");

            let answered = answer(&agent, given.clone()).await;
            assert_eq!(answered.still_open, []);
            let agent = scenario::agent(dir.path()).await;
            assert_eq!(resume(&agent).await.outcome, RunOutcome::Completed);
            let (lines, state) = read_journal(&agent).await;
            let ending = [
                "call c1/4 = edit_file of c1",
                "result c1/4 ok",
                "result c1 ok",
            ];
            let expected: Vec<&str> = UNTIL_THE_QUESTION
                .into_iter()
                .chain(entries)
                .chain(ending)
                .collect();
            assert_eq!(call_lines(&lines), expected, "{given:?}");
            assert_eq!(file(dir.path(), "log.txt"), log);
            assert_eq!(file(dir.path(), "count.txt"), "one 2 three\n");
            assert_eq!(file(dir.path(), "fixed.txt"), "stays\n");
            let [said] = told(&state).try_into().unwrap();
            for part in [read, denied, third, "c1/4 ok", note] {
                assert!(said.contains(part), "{part:?} is missing in {said}");
            }
        });
    }
}

/// Says this, and keeps the questions.
struct Says(ApprovalAnswer, Mutex<Vec<ApprovalQuestion>>);

impl Approver for Says {
    fn name(&self) -> String {
        "ann".to_owned()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        self.1.lock().unwrap().push(question.clone());
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[test]
fn an_approver_who_is_there_is_asked_during_the_run_and_always_makes_a_grant() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {write_file: true}\n",
        )
        .unwrap();
        let write =
            |n: u32| json!(["write_file", {"file_path": format!("d/{n}.txt"), "content": "x"}]);
        let agent = agent_of(dir.path(), model_of(json!([[write(1)], [write(2)]]))).await;
        let says = Arc::new(Says(ApprovalAnswer::Always, Mutex::default()));
        let (listening, heard) = listening();
        let options = RunOptions {
            approvals: ApprovalPolicy::Ask(says.clone()),
            ..listening
        };
        assert_eq!(run(&agent, options).await.outcome, RunOutcome::Completed);
        let asked = says.1.lock().unwrap();
        let asked: Vec<(&str, Option<&str>)> = asked
            .iter()
            .map(|question| (question.id.as_str(), question.called_by.as_deref()))
            .collect();
        // The grant answers for the second call.
        assert_eq!(asked, [("c1/1", Some("script"))]);
        let events = heard.lock().unwrap();
        let parents: Vec<(String, Option<String>)> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolStarted { id, parent, .. }
                | EventKind::ToolEnded { id, parent, .. }
                | EventKind::Ask { id, parent, .. } => Some((id.clone(), parent.clone())),
                _ => None,
            })
            .collect();
        let of = |id: &str, parent: Option<&str>| (id.to_owned(), parent.map(str::to_owned));
        assert_eq!(
            parents,
            [
                of("c1", None),
                of("c1/1", Some("c1")),
                // It is run again.
                of("c1", None),
                of("c1/1", Some("c1")),
                of("c1/1", Some("c1")),
                of("c1/2", Some("c1")),
                of("c1/2", Some("c1")),
                of("c1", None),
            ]
        );
    });
}

#[test]
fn all_questions_of_calls_that_were_made_together_are_asked_together() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {write_file: true, edit_file: true}\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("a.txt"), "a\n").unwrap();
        let write =
            |n: u32| json!(["write_file", {"file_path": format!("{n}.txt"), "content": "x"}]);
        let read = json!(["read_file", {"file_path": "a.txt"}]);
        let delete = json!(["delete_file", {"file_path": "a.txt"}]);
        let steps = json!([[read, write(1), delete, write(2)]]);
        // The second call of the model changes something, so it waits too.
        let model = model_calling(&[
            ("script", json!({"steps": steps})),
            ("write_file", json!({"file_path": "3.txt", "content": "x"})),
        ]);
        let agent = agent_of(dir.path(), model).await;
        assert_eq!(
            run(&agent, RunOptions::default()).await.outcome,
            RunOutcome::Parked
        );
        let asked = agent.open_questions(agent.owner()).list().await.unwrap();
        let ids: Vec<&str> = asked.iter().map(|question| question.id.as_str()).collect();
        assert!(ids.starts_with(&["c1/2", "c1/4"]), "{ids:?}");
        assert!(
            dir.path().join("a.txt").exists(),
            "nothing changes between a question and its answer"
        );
        answer(&agent, ApprovalAnswer::Yes).await;
        let report = resume(&agent).await;
        if report.outcome == RunOutcome::Parked {
            answer(&agent, ApprovalAnswer::Yes).await;
            assert_eq!(resume(&agent).await.outcome, RunOutcome::Completed);
        }
        for name in ["1.txt", "2.txt", "3.txt"] {
            assert!(dir.path().join(name).exists(), "{name}");
        }
        assert!(!dir.path().join("a.txt").exists());
        let (lines, _) = read_journal(&agent).await;
        let begun: Vec<String> = call_lines(&lines)
            .into_iter()
            .filter(|line| line.starts_with("call c1/"))
            .collect();
        assert_eq!(begun.len(), 4, "{begun:?}");
    });
}

#[test]
fn a_question_two_levels_down_stops_both_callers_and_both_are_run_again() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let inner =
            json!([[["write_file", {"file_path": "log.txt", "content": "y\n", "mode": "append"}]]]);
        let edit = json!(["edit_file", {"file_path": "count.txt", "old_string": "two", "new_string": "2"}]);
        let model = model_of(json!([[edit], [["script", {"steps": inner}]]]));
        let agent = agent_of(dir.path(), model.clone()).await;
        assert_eq!(
            run(&agent, RunOptions::default()).await.outcome,
            RunOutcome::Parked
        );
        let agent = agent_of(dir.path(), model).await;
        let edited = json!({"file_path": "log.txt", "content": "e\n", "mode": "append"});
        answer(&agent, ApprovalAnswer::Edit(edited)).await;
        assert_eq!(resume(&agent).await.outcome, RunOutcome::Completed);
        let (lines, state) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "call c1",
                "call c1/1 = edit_file of c1",
                "result c1/1 ok",
                "call c1/2 = script of c1",
                "ask c1/2/1 = write_file of c1/2",
                "decision c1/2/1 edit",
                "call c1/2/1",
                "result c1/2/1 ok",
                "result c1/2 ok",
                "result c1 ok",
            ]
        );
        assert_eq!(file(dir.path(), "log.txt"), "x\ne\n");
        assert_eq!(file(dir.path(), "count.txt"), "one 2 three\n");
        let [said] = told(&state).try_into().unwrap();
        assert!(
            said.contains("[ann changed the arguments of the nested call c1/2/1]"),
            "{said}"
        );
    });
}

#[test]
fn a_caller_that_asked_itself_is_not_asked_about_again_when_it_continues() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {write_file: true, script: true}\n",
        )
        .unwrap();
        let write = json!(["write_file", {"file_path": "a.txt", "content": "x"}]);
        let agent = agent_of(dir.path(), model_of(json!([[write]]))).await;
        run(&agent, RunOptions::default()).await;
        answer(&agent, ApprovalAnswer::Yes).await;
        assert_eq!(resume(&agent).await.outcome, RunOutcome::Parked);
        answer(&agent, ApprovalAnswer::Yes).await;
        assert_eq!(resume(&agent).await.outcome, RunOutcome::Completed);
        let (lines, _) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "ask c1",
                "decision c1 approve",
                "call c1",
                "ask c1/1 = write_file of c1",
                "decision c1/1 approve",
                "call c1/1",
                "result c1/1 ok",
                "result c1 ok",
            ]
        );
    });
}

#[test]
fn a_call_outside_any_session_can_make_calls_and_an_unanswered_question_denies_it() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let agent = scenario::agent(dir.path()).await;
        let write =
            json!(["write_file", {"file_path": "log.txt", "content": "y\n", "mode": "append"}]);
        let args = json!({"steps": [[["read_file", {"file_path": "notes.txt"}]], [write]]});
        let call = async |approvals: ApprovalPolicy| {
            let sessionless = agent.sessionless();
            let called =
                sessionless.call_tool("script", args.clone(), &approvals, Default::default());
            let result = called.await;
            (
                result.status.as_str(),
                crate::support::blocks(&result.content),
            )
        };
        let (status, said) = call(ApprovalPolicy::Park).await;
        assert_eq!(status, "denied", "{said}");
        assert_eq!(file(dir.path(), "log.txt"), "x\n");
        let (status, said) = call(ApprovalPolicy::ApproveAll).await;
        assert_eq!(status, "ok", "{said}");
        assert!(
            said.contains("call_1/1 ok") && said.contains("call_1/2 ok"),
            "{said}"
        );
        assert_eq!(file(dir.path(), "log.txt"), "x\ny\n");
    });
}
