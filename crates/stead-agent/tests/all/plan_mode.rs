//! The place for tests of plan mode of one agent: writes are refused by the gate and by the files,
//! a person ends it, and it survives restarts.

use crate::support::{
    TestTool, agent, agent_on, block_on, journal, listening, model, results, session, text,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{
    Entry, Event, EventKind, JournalLine, PermissionMode, PlanStage, ResultStatus, Risk,
    RunOutcome, SessionChange, SetEntry, ToolEffect,
};
use stead_store::{LockWait, OsDisk};
use stead_testkit::{FakeAnswer, FakeModel, FakeWire, reply};
use stead_tools::{Output, Tool, ToolError};
use stead_vfs::{Expect, VPath};

const PLAN: &str = "plans/PLAN.md";

/// A model that gives these answers, then says that it is done.
fn server(answers: Vec<FakeAnswer>) -> FakeModel {
    FakeModel::start(
        answers
            .into_iter()
            .chain((0..8).map(|_| reply().text("done")))
            .collect(),
    )
}

/// Says that it reads, and writes.
pub(crate) fn liar() -> Arc<dyn Tool> {
    TestTool::make(
        "liar",
        Risk {
            parallel_safe: false,
            ..Risk::READS
        },
        |cx, _| async move {
            let path = VPath::parse("lie.txt").unwrap();
            match cx.vfs.write(&path, "x".into(), Expect::Any).await {
                Ok(_) => Ok(Output::text("written")),
                Err(error) => Err(ToolError::RespondToModel(error.to_string())),
            }
        },
    )
}

fn effectful(name: &str, effect: ToolEffect) -> Arc<dyn Tool> {
    let risk = Risk {
        effect,
        parallel_safe: false,
        repeatable: false,
    };
    TestTool::make(name, risk, |_, _| async { Ok(Output::text("it ran")) })
}

async fn agent_with(dir: &Path, server: &FakeModel, tools: Vec<Arc<dyn Tool>>) -> Arc<Agent> {
    agent_on(
        dir,
        model(server, FakeWire::Messages),
        Arc::new(OsDisk),
        tools,
    )
    .await
}

fn approving() -> RunOptions {
    RunOptions {
        approvals: ApprovalPolicy::ApproveAll,
        ..RunOptions::default()
    }
}

fn set(change: SessionChange) -> Vec<SetEntry> {
    vec![SetEntry {
        change,
        by: "ann".to_owned(),
    }]
}

fn making() -> SessionChange {
    SessionChange::Plan {
        plan: Some(PlanStage::Making {
            file: PLAN.to_owned(),
        }),
    }
}

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "x"})
}

fn statuses(lines: &[JournalLine]) -> Vec<ResultStatus> {
    results(lines)
        .into_iter()
        .map(|(_, status, _)| status)
        .collect()
}

fn is_change(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::Todos { .. } | EventKind::Plan { .. } | EventKind::Mode { .. }
    )
}

#[test]
fn every_tool_that_can_change_anything_is_refused_and_a_mixed_batch_runs_its_reads() {
    let calls = [
        ("create_task", json!({"description": "d", "type": "t"})),
        ("delete_file", json!({"file_path": "a.txt"})),
        ("delete_task", json!({"task_id": "x"})),
        (
            "edit_file",
            json!({"file_path": "a.txt", "old_string": "a", "new_string": "b"}),
        ),
        ("memory_forget", json!({"query": "the sky is green"})),
        ("memory_save", json!({"content": "the sky is green"})),
        ("move_file", json!({"from": "a.txt", "to": "b.txt"})),
        ("overwrite_file", write(PLAN)),
        ("reach_out", json!({})),
        ("run_command", json!({})),
        ("update_task", json!({"task_id": "x"})),
        ("write_file", write("new.txt")),
    ];
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "a").unwrap();
    let mut batch = reply().call("read_file", json!({"file_path": "a.txt"}));
    for (name, args) in &calls {
        batch = batch.call(name, args.clone());
    }
    let batch = batch
        .call("ls", json!({}))
        .call("write_todos", json!({"todos": []}));
    let server = server(vec![reply().call("plan_enter", json!({})), batch]);
    block_on(async {
        let more = vec![
            effectful("reach_out", ToolEffect::Network),
            effectful("run_command", ToolEffect::Executes),
        ];
        let agent = agent_with(dir.path(), &server, more).await;
        // All there are, so that a tool that comes later is thought of here.
        let turn = agent.sessionless().turn().await.unwrap();
        let changing = turn
            .tools
            .all_specs()
            .iter()
            .filter(|spec| spec.risk.effect != ToolEffect::Reads)
            .cloned()
            .collect::<Vec<_>>();
        let changing: Vec<&str> = changing
            .iter()
            .map(|spec| spec.name.as_str())
            .filter(|name| *name != "plan_write")
            .collect();
        assert_eq!(
            changing,
            calls.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        );
        // Whatever else would let them run.
        let options = RunOptions {
            settings: set(SessionChange::mode(PermissionMode::Bypass)),
            ..approving()
        };
        let report = agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, state) = journal(&agent, &session("s")).await;
        assert_eq!(
            state.plan,
            Some(PlanStage::Making {
                file: PLAN.to_owned()
            })
        );
        let all = results(&lines);
        let by_status = |wanted: ResultStatus| {
            all.iter()
                .filter(|(_, status, _)| *status == wanted)
                .count()
        };
        assert_eq!(
            (
                by_status(ResultStatus::Denied),
                by_status(ResultStatus::Ok),
                all.len()
            ),
            (calls.len(), 4, calls.len() + 4)
        );
        for (_, _, told) in all
            .iter()
            .filter(|(_, status, _)| *status == ResultStatus::Denied)
        {
            assert!(
                told.starts_with(
                    "denied: plan mode: until a person agrees to the plan in plans/PLAN.md"
                ),
                "{told}"
            );
        }
    });
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a.txt", "agents"]);
    assert_eq!(server.rejections(), Vec::new());
}

// A tool that says it reads gets past the gate, and not past the files; both follow
// within one run.
#[test]
fn the_files_refuse_what_the_gate_lets_through_until_the_plan_is_agreed_to() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(vec![
        reply()
            .call("plan_enter", json!({}))
            .call("liar", json!({})),
        reply()
            .call("plan_write", json!({"content": "1. look\n2. lie"}))
            .call("plan_enter", json!({})),
        reply()
            .call("plan_exit", json!({"summary": "a lie"}))
            .call("write_file", write("early.txt")),
        reply()
            .call("liar", json!({}))
            .call("plan_write", json!({"content": "x"})),
    ]);
    block_on(async {
        let agent = agent_with(dir.path(), &server, vec![liar()]).await;
        let (listening, heard) = listening();
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..listening
        };
        agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        let (lines, state) = journal(&agent, &session("s")).await;
        use ResultStatus::{Denied, Error, Ok};
        assert_eq!(
            statuses(&lines),
            [Ok, Error, Ok, Error, Denied, Ok, Ok, Error]
        );
        let told: Vec<String> = results(&lines)
            .into_iter()
            .map(|(_, _, told)| told)
            .collect();
        assert_eq!(told[1], "lie.txt is read-only here");
        assert!(
            told[3].starts_with("plan mode is on already"),
            "{}",
            told[3]
        );
        assert!(
            told[5].contains("<plan file=\"plans/PLAN.md\">\n1. look\n2. lie\n</plan>"),
            "{}",
            told[5]
        );
        assert_eq!(told[7], "plan mode is not on; plan_enter begins it");
        let agreed = PlanStage::Agreed {
            file: PLAN.to_owned(),
            text: "1. look\n2. lie".to_owned(),
        };
        assert_eq!(state.plan.as_ref(), Some(&agreed));
        let heard = heard.lock().unwrap();
        let kinds: Vec<EventKind> = heard
            .iter()
            .filter(|event| is_change(event))
            .map(|event| event.kind.clone())
            .collect();
        let stage = |stage: PlanStage| EventKind::Plan { stage: Some(stage) };
        assert_eq!(
            kinds,
            [
                stage(PlanStage::Making {
                    file: PLAN.to_owned()
                }),
                stage(agreed)
            ]
        );
        let asks = lines.iter().filter_map(|line| match &line.entry {
            Entry::Ask(ask) => Some(ask.rule.clone()),
            _ => None,
        });
        assert_eq!(
            asks.collect::<Vec<_>>(),
            ["plan_exit: a person must agree to the plan in plans/PLAN.md"]
        );
    });
    assert_eq!(server.rejections(), Vec::new());
}

#[test]
fn a_no_keeps_plan_mode_on_and_an_exit_without_a_plan_asks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(vec![
        reply().call("plan_exit", json!({})),
        reply().call("plan_enter", json!({})),
        reply().call("plan_exit", json!({})),
        reply().call("plan_write", json!({"content": "1. look"})),
        reply().call("plan_exit", json!({})),
        reply().call("write_file", write("x.txt")),
    ]);
    block_on(async {
        let agent = agent_with(dir.path(), &server, Vec::new()).await;
        let options = RunOptions {
            approvals: ApprovalPolicy::DenyAll,
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        let (lines, state) = journal(&agent, &session("s")).await;
        use ResultStatus::{Denied, Error, Ok};
        assert_eq!(statuses(&lines), [Error, Ok, Error, Ok, Denied, Denied]);
        assert_eq!(
            results(&lines)[4].2,
            "denied: --approve none said no to this call"
        );
        assert_eq!(
            lines
                .iter()
                .filter(|line| matches!(line.entry, Entry::Ask(_)))
                .count(),
            1
        );
        assert!(state.plan.is_some_and(|plan| plan.draft_file().is_some()));
    });
}

#[test]
fn plan_mode_outlives_the_process_parked_or_not_and_the_model_is_told_once_of_what_a_person_changed()
 {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str| reply().call("write_file", write(path));
    let server = server(vec![
        write("one.txt"),
        reply()
            .call("plan_write", json!({"content": "1. look"}))
            .call("plan_exit", json!({})),
        // Another process says no, a third one tries to write.
        write("two.txt"),
        reply().text("told"),
        write("three.txt"),
        reply().text("told"),
        write("four.txt"),
    ]);
    block_on(async {
        let fresh = || async {
            agent(dir.path(), model(&server, FakeWire::Messages))
                .await
                .session(session("s"))
        };
        let options = RunOptions {
            settings: set(making()),
            ..RunOptions::default()
        };
        let parked = fresh().await.run(text("first"), options).await.unwrap();
        assert_eq!(parked.outcome, RunOutcome::Parked);
        let options = RunOptions {
            approvals: ApprovalPolicy::DenyAll,
            ..RunOptions::default()
        };
        assert_eq!(
            fresh().await.resume(options).await.unwrap().outcome,
            RunOutcome::Completed
        );
        fresh()
            .await
            .run(text("second"), RunOptions::default())
            .await
            .unwrap();
        let mut chat = fresh().await;
        assert!(
            chat.set(SessionChange::Plan { plan: None }, "ann", LockWait::No)
                .await
                .unwrap()
        );
        assert!(
            !chat
                .set(SessionChange::Plan { plan: None }, "ann", LockWait::No)
                .await
                .unwrap(),
            "it is so already"
        );
        chat.run(text("third"), RunOptions::default())
            .await
            .unwrap();
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let (lines, state) = journal(&agent, &session("s")).await;
        use ResultStatus::{Denied, Ok};
        assert_eq!(statuses(&lines), [Denied, Ok, Denied, Denied, Denied, Ok]);
        assert_eq!(state.plan, None);
    });
    let last = server.last_request();
    let said: Vec<&str> = last.seen.as_ref().unwrap().user_texts().collect();
    let on = "<system_reminder>\nPlan mode is on: until the person agrees to a plan, nothing but reading is allowed. \
              Write the plan to plans/PLAN.md with plan_write, then call plan_exit.\n</system_reminder>";
    let off = "<system_reminder>\nThe person ended plan mode: changes are allowed again.\n</system_reminder>";
    assert_eq!(
        said.join("\n"),
        ["first", on, "second", "third", off].join("\n")
    );
    assert_eq!(server.rejections(), Vec::new());
}
