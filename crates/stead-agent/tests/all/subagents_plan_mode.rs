//! The place for tests of subagents combined with approvals, plan mode and tainted sessions.

use crate::subagents::{Says, answers, records};
use crate::support::{agent, agent_with_host, block_on, journal, results, session, text};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{
    AfterAnswer, Agent, ApprovalAnswer, ApprovalReply, RunOptions, TaskStatus, WaitingTask,
};
use stead_core::{ResultStatus, RunOutcome, SessionChange, SessionId, SetEntry};
use stead_store::LockWait;

const PATIENT: LockWait = LockWait::AtMost(Duration::from_secs(20));

fn folder(settings: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
    dir
}

fn write(name: &str) -> (&'static str, Value) {
    ("write_file", json!({"file_path": name, "content": "x"}))
}

fn hand_over(label: &str) -> (&'static str, Value) {
    (
        "task",
        json!({"agent": "general-purpose", "prompt": label, "label": label}),
    )
}

async fn run(agent: &Arc<Agent>, input: &str) -> stead_agent::RunReport {
    agent
        .session(session("s"))
        .run(text(input), RunOptions::default())
        .await
        .unwrap()
}

/// Answers the only question of a session with yes; nothing goes on by that.
async fn approve(agent: &Arc<Agent>, id: &SessionId) {
    let open = agent.open_questions(agent.owner()).list().await.unwrap();
    let [asked] = open.as_slice() else {
        panic!("{open:?}")
    };
    let reply = ApprovalReply {
        id: asked.id.clone(),
        args_hash: asked.args_hash.clone(),
        answer: ApprovalAnswer::Yes,
    };
    agent
        .session(id.clone())
        .answer(&[reply], "ann", AfterAnswer::Leave, PATIENT)
        .await
        .unwrap();
}

async fn said(agent: &Arc<Agent>, id: &SessionId) -> Vec<(ResultStatus, String)> {
    let (lines, _) = journal(agent, id).await;
    results(&lines)
        .into_iter()
        .map(|(_, status, text)| (status, text))
        .collect()
}

fn child(dir: &Path) -> SessionId {
    records(dir, "s")[0].sub_session_id.clone()
}

#[test]
fn plan_mode_binds_whoever_is_given_work_later_in_the_same_step() {
    let dir = folder("permission_mode: bypass\n");
    let model = answers(|task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![("plan_enter", json!({})), hand_over("kid")]),
        ("kid", 0) => Says::Calls(vec![write("kid.txt")]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        run(&agent, "lead").await;
        let came = said(&agent, &child(dir.path())).await;
        assert!(
            matches!(&came[..], [(ResultStatus::Denied, why)] if why.contains("plan mode")),
            "{came:?}"
        );
        assert!(!dir.path().join("kid.txt").exists());
    });
}

#[test]
fn words_from_outside_bind_whoever_is_given_work_later_in_the_same_step() {
    let dir = folder("permission_mode: bypass\n");
    let model = answers(|task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![
            ("execute", json!({"command": "mkdir words"})),
            hand_over("kid"),
        ]),
        ("kid", 0) => Says::Calls(vec![write("AGENTS.md")]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host(dir.path(), model).await;
        assert_eq!(
            run(&agent, "lead").await.waiting.len(),
            1,
            "what prompts are made from is not written unasked"
        );
        assert!(!dir.path().join("AGENTS.md").exists());
    });
}

#[test]
fn who_has_few_tools_can_still_make_a_plan_where_one_is_wanted() {
    let dir = folder("");
    std::fs::write(dir.path().join("tools.json"), r#"{"allow": ["read_file"]}"#).unwrap();
    let model = answers(|_, said, request| {
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        match said {
            0 => Says::Calls(vec![
                ("plan_write", json!({"content": "# Plan"})),
                write("a.txt"),
            ]),
            _ => Says::Text(names.join(" ")),
        }
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let mut begun = agent.session(session("s"));
        let set = vec![SetEntry {
            change: begun.plan_mode_change(),
            by: "--plan".to_owned(),
        }];
        let report = begun
            .run(
                text("go"),
                RunOptions {
                    settings: set,
                    ..RunOptions::default()
                },
            )
            .await
            .unwrap();
        assert_eq!(report.text, "plan_exit plan_write read_file");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("plans/PLAN.md"))
                .unwrap()
                .trim(),
            "# Plan"
        );
        assert_eq!(said(&agent, &session("s")).await[1].0, ResultStatus::Denied);
        // In another process, and when there is nothing to plan any more.
        let elsewhere = crate::support::agent(dir.path(), Arc::new(NamesTools)).await;
        assert_eq!(
            run(&elsewhere, "go on").await.text,
            "plan_exit plan_write read_file"
        );
        let set = vec![SetEntry {
            change: SessionChange::Plan { plan: None },
            by: "ann".to_owned(),
        }];
        let options = RunOptions {
            settings: set,
            ..RunOptions::default()
        };
        let report = elsewhere
            .session(session("s"))
            .run(text("act"), options)
            .await
            .unwrap();
        assert_eq!(report.text, "read_file");
    });
}

/// A model that names the tools it was shown.
#[derive(Debug)]
struct NamesTools;

impl stead_model::Model for NamesTools {
    fn facts(&self) -> &stead_model::ModelFacts {
        static FACTS: stead_model::ModelFacts =
            stead_model::ModelFacts::unknown(std::borrow::Cow::Borrowed("test:names"));
        &FACTS
    }

    fn stream<'a>(
        &'a self,
        request: &'a stead_model::Request,
    ) -> futures_util::stream::BoxStream<'a, Result<stead_model::Delta, stead_model::ModelError>>
    {
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let reply = stead_model::Reply {
            content: vec![stead_core::Block::text(names.join(" "))],
            usage: stead_core::Usage::default(),
            stop: stead_core::StopReason::EndTurn,
            model: self.name().to_owned(),
        };
        Box::pin(futures_util::stream::iter([Ok(stead_model::Delta::Done(
            Box::new(reply),
        ))]))
    }
}

#[test]
fn nothing_is_handed_over_while_an_earlier_call_of_the_step_asks() {
    let dir = folder("permission_mode: bypass\napprovals: {delete_file: true}\n");
    std::fs::write(dir.path().join("old.txt"), "x").unwrap();
    let model = answers(|task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![
            ("delete_file", json!({"file_path": "old.txt"})),
            hand_over("kid"),
        ]),
        ("kid", 0) => Says::Calls(vec![write("kid.txt")]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        assert_eq!(run(&agent, "lead").await.outcome, RunOutcome::Parked);
        assert!(!dir.path().join("kid.txt").exists());
        approve(&agent, &session("s")).await;
        agent
            .session(session("s"))
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert!(dir.path().join("kid.txt").exists() && !dir.path().join("old.txt").exists());
    });
}

/// A lead whose child asks before it writes.
fn asking() -> Arc<dyn stead_model::Model> {
    answers(|task, said, request| {
        let newest = request.messages.last().unwrap().text();
        match (task.lines().next().unwrap_or_default(), said) {
            ("lead", 0) => Says::Calls(vec![hand_over("kid")]),
            (_, _) if newest == "send" => Says::Calls(vec![(
                "agent_send",
                json!({"to": "kid", "message": "go on"}),
            )]),
            ("kid", 0) => Says::Calls(vec![write("kid.txt")]),
            ("kid", _) => Says::Text("kid is done".into()),
            (_, _) => Says::Text("done".into()),
        }
    })
}

#[test]
fn one_whose_question_was_answered_is_not_lost_before_it_goes_on() {
    let dir = folder("approvals: {write_file: true}\n");
    block_on(async {
        let agent = agent(dir.path(), asking()).await;
        let waits = |report: stead_agent::RunReport| report.waiting.len();
        assert_eq!(waits(run(&agent, "lead").await), 1);
        let kid = child(dir.path());
        // Nobody else can go on with it meanwhile.
        run(&agent, "send").await;
        let refused = said(&agent, &session("s")).await.pop().unwrap();
        assert!(
            refused.0 == ResultStatus::Error && refused.1.contains("waits for a person's decision"),
            "{refused:?}"
        );
        approve(&agent, &kid).await;
        let elsewhere = crate::support::agent(dir.path(), asking()).await;
        assert_eq!(
            waits(run(&elsewhere, "and now?").await),
            1,
            "it has not gone on yet"
        );
        assert_eq!(records(dir.path(), "s")[0].status, TaskStatus::Running);
        elsewhere
            .session(kid)
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert_eq!(waits(run(&elsewhere, "and now?").await), 0);
        let [record] = &records(dir.path(), "s")[..] else {
            panic!()
        };
        assert_eq!(
            (record.status, record.result.as_deref()),
            (TaskStatus::Completed, Some("kid is done"))
        );
        let (_, state) = journal(&elsewhere, &session("s")).await;
        assert!(state.told.contains(&record.task_id));
    });
}

#[test]
fn a_result_that_comes_after_a_question_must_fit_its_schema_too() {
    let dir = folder("approvals: {write_file: true}\n");
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    let kid = "---\ndescription: Helps.\nworkspace: {mode: shared}\nresult_schema: {type: object}\n---\nHelp.\n";
    std::fs::write(dir.path().join("subagents/general-purpose.md"), kid).unwrap();
    block_on(async {
        let agent = agent(dir.path(), asking()).await;
        run(&agent, "lead").await;
        let kid = child(dir.path());
        approve(&agent, &kid).await;
        agent
            .session(kid)
            .resume(RunOptions::default())
            .await
            .unwrap();
        run(&agent, "and now?").await;
        let [record] = &records(dir.path(), "s")[..] else {
            panic!()
        };
        let why = record.error_message.as_deref().unwrap();
        assert!(
            record.status == TaskStatus::Failed && why.contains("does not fit its schema"),
            "{why}"
        );
    });
}

#[test]
fn a_question_of_those_further_down_is_told_as_long_as_it_is_open() {
    let dir = folder("approvals: {write_file: true}\n");
    let model = answers(|task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![hand_over("kid")]),
        ("kid", 0) => Says::Calls(vec![hand_over("grandchild")]),
        ("grandchild", 0) => Says::Calls(vec![write("a.txt")]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let report = run(&agent, "lead").await;
        let kid = child(dir.path());
        let below = records(dir.path(), kid.as_str());
        let want = WaitingTask {
            task: below[0].task_id.clone(),
            session: kid,
        };
        assert_eq!(
            (report.outcome, report.waiting),
            (RunOutcome::Completed, vec![want])
        );
        approve(&agent, &below[0].sub_session_id).await;
        agent
            .session(below[0].sub_session_id.clone())
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert_eq!(run(&agent, "and now?").await.waiting, []);
    });
}

#[test]
fn what_the_model_leaves_out_of_a_task_is_found_and_a_label_is_a_name() {
    let dir = folder("");
    let labels = ["", "a\nb", "x] began", "a\"b", &"x".repeat(81)].map(str::to_owned);
    let labelled = labels.clone();
    let model = answers(move |task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![
            (
                "task",
                json!({"description": "say seven", "subagent_type": "general-purpose"}),
            ),
            (
                "spawn_agent",
                json!({"task": "say seven", "label": "seven"}),
            ),
            ("task", json!({})),
        ]),
        ("lead", 1) => Says::Calls(vec![(
            "task",
            json!({"prompt": "again", "task_id": "seven"}),
        )]),
        ("lead", 2) => Says::Calls(
            labelled
                .iter()
                .map(|label| ("task", json!({"prompt": "x", "label": label})))
                .collect(),
        ),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        run(&agent, "lead").await;
        let came = said(&agent, &session("s")).await;
        let failed = came[..4]
            .iter()
            .filter(|(status, _)| *status == ResultStatus::Error)
            .collect::<Vec<_>>();
        assert!(
            matches!(failed[..], [(_, why)] if why.starts_with("prompt is empty")),
            "{came:?}"
        );
        assert!(
            came[4..]
                .iter()
                .all(|(_, text)| text.contains("a label is one line")),
            "{came:?}"
        );
        assert_eq!(came.len(), 4 + labels.len());
        let all = records(dir.path(), "s");
        let of = |label: Option<&str>| {
            all.iter()
                .filter(|task| task.label.as_deref() == label)
                .count()
        };
        assert_eq!((of(None), of(Some("seven"))), (1, 2));
        let sessions: std::collections::BTreeSet<_> =
            all.iter().map(|task| &task.sub_session_id).collect();
        assert_eq!(
            sessions.len(),
            2,
            "the second task of one is in the same session"
        );
    });
}

#[test]
fn nobody_takes_the_place_of_an_agent_that_was_written_wrong() {
    let dir = folder("");
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    std::fs::write(
        dir.path().join("subagents/other.md"),
        "---\ndescription: Helps.\n---\nHelp.\n",
    )
    .unwrap();
    let model = answers(|task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![hand_over("kid")]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        std::fs::write(
            dir.path().join("subagents/general-purpose.md"),
            "---\nnonsense: 1\n---\nHelp.\n",
        )
        .unwrap();
        run(&agent, "lead").await;
        let came = said(&agent, &session("s")).await;
        let want = "there is no agent \"general-purpose\"; there are: other";
        assert_eq!(came, [(ResultStatus::Error, want.to_owned())]);
    });
}
