//! The place for tests of a malicious model: changing things while a person decides, laundering
//! untrusted content through a subagent, files as models, swapped plans.

use crate::subagents::{Says, answers};
use crate::support::{agent_with_host_and, block_on, journal, results, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{
    AfterAnswer, Agent, ApprovalAnswer, ApprovalPolicy, ApprovalReply, OpenQuestion, RunOptions,
    RunReport,
};
use stead_core::{ResultStatus, RunOutcome};
use stead_store::LockWait;

fn put(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

async fn run(agent: &Arc<Agent>, input: &str, approvals: ApprovalPolicy) -> RunReport {
    let options = RunOptions {
        approvals,
        ..RunOptions::default()
    };
    agent
        .session(session("s"))
        .run(text(input), options)
        .await
        .unwrap()
}

// 6: approvals
#[test]
fn nothing_is_changed_under_those_who_are_asked() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "run.sh", "touch good\n");
    let model = answers(|_, said, _| match said {
        0 => Says::Calls(vec![
            ("execute", json!({"command": "sh run.sh"})),
            ("read_file", json!({"file_path": "run.sh"})),
            (
                "write_file",
                json!({"file_path": "run.sh", "content": "touch evil\n", "mode": "overwrite"}),
            ),
        ]),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host_and(dir.path(), model, Vec::new()).await;
        let report = run(&agent, "go", ApprovalPolicy::Park).await;
        assert_eq!(report.outcome, RunOutcome::Parked);
        let (lines, _) = journal(&agent, &session("s")).await;
        let came: Vec<ResultStatus> = results(&lines)
            .into_iter()
            .map(|(_, status, _)| status)
            .collect();
        assert_eq!(came, [ResultStatus::Ok], "the read runs, the write waits");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("run.sh")).unwrap(),
            "touch good\n"
        );
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = agent.session(session("s")).resume(options).await.unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
    });
    assert!(dir.path().join("good").exists() && !dir.path().join("evil").exists());
    assert_eq!(
        std::fs::read_to_string(dir.path().join("run.sh")).unwrap(),
        "touch evil\n"
    );
}

// 6: subagents
#[test]
fn words_from_outside_are_not_laundered_by_a_child() {
    let dir = tempfile::tempdir().unwrap();
    put(
        dir.path(),
        "agent.yaml",
        "commands: {allow: [mkdir obey]}\nmemory: {flush: false}\n",
    );
    put(
        dir.path(),
        "subagents/kid.md",
        "---\ndescription: Helps.\nworkspace: {mode: shared}\n---\nHelp.\n",
    );
    let model = answers(|task, said, _| match (task, said) {
        ("go", 0) => Says::Calls(vec![("execute", json!({"command": "mkdir obey"}))]),
        ("go", 1) => Says::Calls(vec![("task", json!({"agent": "kid", "prompt": "write"}))]),
        ("write", 0) => Says::Calls(vec![(
            "write_file",
            json!({"file_path": "sub/AGENTS.md", "content": "obey"}),
        )]),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host_and(dir.path(), model, Vec::new()).await;
        run(&agent, "go", ApprovalPolicy::DenyAll).await;
    });
    assert!(!dir.path().join("sub/AGENTS.md").exists());
}

// 6: subagents
#[test]
fn an_agent_that_anybody_may_have_written_gets_no_file_for_a_model() {
    let dir = tempfile::tempdir().unwrap();
    for (name, model) in [
        ("tape", "record:tape=openai:gpt-5"),
        ("play", "scripted:secret.yaml"),
        ("again", "replay:tape"),
    ] {
        let text = format!("---\ndescription: Helps.\nmodel: {model}\n---\nHelp.\n");
        put(dir.path(), &format!("subagents/{name}.md"), &text);
    }
    let model = answers(|_, said, _| match said {
        0 => Says::Calls(
            ["tape", "play", "again"]
                .map(|agent| ("task", json!({"agent": agent, "prompt": "x"})))
                .into(),
        ),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host_and(dir.path(), model, Vec::new()).await;
        run(&agent, "go", ApprovalPolicy::DenyAll).await;
        let (lines, _) = journal(&agent, &session("s")).await;
        let told: Vec<bool> = results(&lines)
            .into_iter()
            .map(|(_, status, text)| {
                status == ResultStatus::Error && text.contains("is a file, which only")
            })
            .collect();
        assert_eq!(told, [true, true, true]);
    });
}

// 6: plan mode
#[test]
fn a_plan_that_became_another_is_agreed_to_anew() {
    let dir = tempfile::tempdir().unwrap();
    let model = answers(|_, said, _| match said {
        0 => Says::Calls(vec![("plan_enter", json!({}))]),
        1 => Says::Calls(vec![("plan_write", json!({"content": "good"}))]),
        2 => Says::Calls(vec![("plan_exit", json!({}))]),
        _ => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host_and(dir.path(), model, Vec::new()).await;
        assert_eq!(
            run(&agent, "go", ApprovalPolicy::Park).await.outcome,
            RunOutcome::Parked
        );
        let yes = || async {
            let mut parked = agent.session(session("s"));
            parked.load().await.unwrap();
            let [question] = parked.open_questions().try_into().unwrap();
            let OpenQuestion {
                id,
                args_hash,
                terms,
                ..
            } = question;
            parked
                .answer(
                    &[ApprovalReply {
                        id,
                        args_hash,
                        answer: ApprovalAnswer::Yes,
                    }],
                    "ann",
                    AfterAnswer::Leave,
                    LockWait::No,
                )
                .await
                .unwrap();
            (
                terms.preview,
                parked.resume(RunOptions::default()).await.unwrap().outcome,
            )
        };
        std::fs::write(dir.path().join("plans/PLAN.md"), "other\n").unwrap();
        assert_eq!(yes().await, (Some("good".to_owned()), RunOutcome::Parked));
        assert_eq!(
            yes().await,
            (Some("other".to_owned()), RunOutcome::Completed)
        );
    });
}
