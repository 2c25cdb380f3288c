//! The place for tests of what nested calls are bound by and leave behind: plan mode, taint, hooks,
//! secrets and undo.

use super::scenario::{self, file};
use super::{
    agent_of, agent_with, approving, call_lines, model_calling, model_of, read_journal, run, told,
};
use crate::support::{TestTool, block_on, session};
use serde_json::{Value, json};
use std::sync::Arc;
use stead_agent::RunOptions;
use stead_core::{Entry, PlanStage, Risk, RunOutcome, SessionChange, SetEntry, ToolEffect};
use stead_store::OsDisk;
use stead_tools::{Output, ToolError};

#[test]
fn plan_mode_holds_inside_and_also_when_a_nested_call_begins_it() {
    block_on(async {
        let write = json!(["write_file", {"file_path": "a.txt", "content": "x"}]);
        let planning = SetEntry {
            change: SessionChange::Plan {
                plan: Some(PlanStage::Making {
                    file: "plans/PLAN.md".into(),
                }),
            },
            by: "ann".into(),
        };
        let table: [(Value, Vec<SetEntry>, &str); 2] = [
            (json!([[write]]), vec![planning], "c1/1 denied"),
            (
                json!([[["plan_enter", {}]], [write]]),
                Vec::new(),
                "c1/2 denied",
            ),
        ];
        for (steps, settings, denied) in table {
            let dir = tempfile::tempdir().unwrap();
            let agent = agent_of(dir.path(), model_of(steps)).await;
            let options = RunOptions {
                settings,
                ..approving()
            };
            run(&agent, options).await;
            let (_, state) = read_journal(&agent).await;
            let said = told(&state).join("\n");
            assert!(said.contains(denied), "{said}");
            assert!(!dir.path().join("a.txt").exists());
        }
    });
}

#[test]
fn untrusted_nested_results_taint_the_caller_and_the_session_at_once() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let risk = Risk {
            effect: ToolEffect::Network,
            ..Risk::READS
        };
        let fetch = TestTool::make("fetch_page", risk, |_, _| async {
            Ok(Output::text("a page"))
        });
        std::fs::write(dir.path().join("agent.yaml"), "permission_mode: bypass\n").unwrap();
        let write = json!(["write_file", {"file_path": "AGENTS.md", "content": "x"}]);
        let steps = json!([[write], [["fetch_page", {}]], [write]]);
        let agent = agent_with(dir.path(), model_of(steps), Arc::new(OsDisk), vec![fetch]).await;
        let mut outcome = run(&agent, RunOptions::default()).await.outcome;
        let mut session = agent.session(session("s"));
        session.load().await.unwrap();
        let mut asked = Vec::new();
        while outcome == RunOutcome::Parked {
            let question = session.open_questions().remove(0);
            asked.push(format!("{} {}", question.id, question.rule));
            outcome = session.resume(approving()).await.unwrap().outcome;
        }
        let tainted: Vec<&String> = asked
            .iter()
            .filter(|question| question.contains("tainted: "))
            .collect();
        assert!(
            tainted.len() == 1 && tainted[0].starts_with("c1/3 "),
            "{asked:?}"
        );
        let (lines, _) = read_journal(&agent).await;
        let untrusted: Vec<&str> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::Result(result) if result.untrusted => Some(result.id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(untrusted, ["c1/2", "c1"]);
    });
}

#[test]
fn hooks_are_asked_about_nested_calls_and_can_change_and_deny_them() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("hooks")).unwrap();
        let answer = json!({"patch": {"tool_args": {"file_path": "b.txt", "content": "other"}}});
        std::fs::write(dir.path().join("hooks/a.json"), answer.to_string()).unwrap();
        std::fs::write(
            dir.path().join("hooks/a.yaml"),
            "name: a\nevents: [before_tool_call]\nmatcher: write_file\n\
             handler: {type: command, command: \"cat hooks/a.json\"}\n\
             capabilities: [rewrite_tool_request]\n",
        )
        .unwrap();
        std::fs::write(
            dir.path().join("agent.yaml"),
            "approvals: {write_file: true}\n",
        )
        .unwrap();
        let write = json!(["write_file", {"file_path": "a.txt", "content": "x"}]);
        let agent = agent_of(dir.path(), model_of(json!([[write]]))).await;
        assert_eq!(
            run(&agent, RunOptions::default()).await.outcome,
            RunOutcome::Parked
        );
        let mut session = agent.session(session("s"));
        session.load().await.unwrap();
        let report = session.resume(approving()).await.unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = read_journal(&agent).await;
        assert_eq!(
            call_lines(&lines),
            [
                "call c1",
                "hook Some(\"c1/1\") = write_file of c1",
                "ask c1/1",
                "decision c1/1 approve",
                "call c1/1",
                "result c1/1 ok",
                "result c1 ok",
            ]
        );
        assert_eq!(file(dir.path(), "b.txt"), "other");
        assert!(!dir.path().join("a.txt").exists());
    });
}

#[test]
fn undo_takes_back_what_nested_calls_changed() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        scenario::lay_out(dir.path());
        let agent = scenario::agent(dir.path()).await;
        let before = crate::crash_scenario::contents(dir.path());
        let report = run(&agent, approving()).await;
        assert_eq!(report.outcome, RunOutcome::Completed);
        assert_eq!(file(dir.path(), "log.txt"), "x\ny\n");
        crate::crash_scenario::assert_undoable(&agent, dir.path(), &before, "nested").await;
    });
}

#[test]
fn arguments_with_a_secret_are_refused_and_not_recorded() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let redactor = stead_core::Redactor::new(["topsecret-token".to_owned()]);
        let place = crate::support::local_place(dir.path(), Arc::new(OsDisk), redactor).await;
        // The model does not know the secret; the tool does.
        let leaky = TestTool::make("leaky", Risk::READS, |cx, _| async move {
            let args = json!({"file_path": "a.txt", "content": "topsecret-token"});
            let output = cx.calls.call("write_file", args).await;
            let output = output.map_err(|error| ToolError::RespondToModel(error.to_string()))?;
            Ok(Output::text(format!(
                "{} {}",
                output.status.as_str(),
                output.text()
            )))
        });
        let model = model_calling(&[("leaky", json!({}))]);
        let agent = crate::support::builder(dir.path(), model)
            .place(place)
            .tool(leaky)
            .build()
            .await
            .unwrap();
        run(&agent, approving()).await;
        let (lines, state) = read_journal(&agent).await;
        let said = told(&state).join("\n");
        assert!(
            said.contains("they hold a secret of this machine"),
            "{said}"
        );
        assert!(!dir.path().join("a.txt").exists());
        let text = format!("{lines:?}");
        assert!(!text.contains("topsecret-token") && text.contains("[redacted]"));
    });
}
