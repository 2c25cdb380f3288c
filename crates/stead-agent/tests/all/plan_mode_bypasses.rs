//! The place for tests of plan mode against every indirect way to write: commands, subagents, hook
//! agents, running tasks and restarts.

use crate::plan_mode::liar;
use crate::subagents::{Says, answers};
use crate::support::{
    TestTool, agent_with_host_and, block_on, blocks, journal, results, session, text,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{PlanStage, ResultStatus, Risk, RunOutcome, SessionChange, SessionId, SetEntry};
use stead_tools::Output;
use tokio_util::sync::CancellationToken;

/// What each tries: two reads that run, three ways of writing that do not.
fn attempts(by: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("read_file", json!({"file_path": "a.txt"})),
        (
            "write_file",
            json!({"file_path": format!("{by}.tool"), "content": "x"}),
        ),
        ("execute", json!({"command": format!("touch {by}.shell")})),
        ("liar", json!({})),
        ("execute", json!({"command": "cat a.txt"})),
    ]
}

fn hand_over(agent: &str, task: &str) -> (&'static str, Value) {
    (
        "task",
        json!({"agent": agent, "prompt": task, "label": task}),
    )
}

fn model() -> Arc<dyn stead_model::Model> {
    answers(|task, said, request| {
        let newest = request
            .messages
            .iter()
            .rev()
            .find_map(|message| match &**message {
                stead_core::Message::User { .. } => Some(message.text()),
                stead_core::Message::Assistant { .. } | stead_core::Message::Tool { .. } => None,
            });
        let just_asked = matches!(
            &**request.messages.last().unwrap(),
            stead_core::Message::User { .. }
        );
        let newest = newest.unwrap_or_default();
        match (
            task.lines().next().unwrap_or_default(),
            newest.lines().next().unwrap_or_default(),
        ) {
            _ if !just_asked => Says::Text("{}".into()),
            ("before", "before") => Says::Calls(vec![hand_over("helper", "early")]),
            ("before", "plan") => {
                let late = [
                    hand_over("helper", "child"),
                    ("agent_send", json!({"to": "early", "message": "more"})),
                ];
                Says::Calls(attempts("lead").into_iter().chain(late).collect())
            }
            ("before", _) => {
                let again = ("agent_send", json!({"to": "child", "message": "more"}));
                Says::Calls(attempts("again").into_iter().chain([again]).collect())
            }
            ("early", "early") => Says::Text("here".into()),
            ("early", _) => Says::Calls(attempts("early")),
            ("child", "child") => Says::Calls(
                attempts("child")
                    .into_iter()
                    .chain([hand_over("helper", "grandchild")])
                    .collect(),
            ),
            ("child", _) => Says::Calls(attempts("later")),
            ("grandchild", _) => Says::Calls(attempts("grandchild")),
            ("hooked", _) => Says::Calls(attempts(&format!("hook{said}"))),
            (task, _) => Says::Text(format!("nothing to do: {task}")),
        }
    })
}

fn lay_out(dir: &Path) {
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // Whatever else would let them run.
    put(
        "agent.yaml",
        "permission_mode: bypass\ncommands: {reads: allow, allow: ['touch *']}\nmemory: {flush: false}\n",
    );
    put("a.txt", "x");
    put(
        "subagents/helper.md",
        "---\ndescription: Helps.\nworkspace: {mode: shared}\n---\nHelp.\n",
    );
    let hook = |name: &str, events: &str, handler: &str| {
        let text =
            format!("name: {name}\nevents: [{events}]\non_failure: open\nhandler: {handler}\n");
        put(&format!("hooks/{name}.yaml"), &text);
    };
    // The matcher leaves the children out.
    let asked = "{type: agent, agent: helper, task: hooked}\nmatcher: '^plan$'";
    hook("agent", "prompt_submit", asked);
    hook(
        "command",
        "run_start",
        "{type: command, command: touch owner.hook}",
    );
}

async fn open(dir: &Path) -> Arc<Agent> {
    agent_with_host_and(dir, model(), vec![liar()]).await
}

/// What came of every call of a session, but for those that hand work over.
async fn came(agent: &Arc<Agent>, id: &SessionId) -> Vec<(ResultStatus, String)> {
    let (lines, _) = journal(agent, id).await;
    let short = |text: String| {
        text.split([':', '\n'])
            .nth(usize::from(text.starts_with("denied")))
            .unwrap()
            .trim()
            .to_owned()
    };
    let all = results(&lines)
        .into_iter()
        .filter(|(_, _, text)| !text.starts_with("task_id"));
    all.map(|(_, status, text)| (status, short(text))).collect()
}

#[test]
fn whatever_way_it_comes_nothing_is_changed_before_a_person_agrees() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let run = |agent: &Arc<Agent>, input: &'static str, set: Vec<SetEntry>| {
        let agent = agent.clone();
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            settings: set,
            ..RunOptions::default()
        };
        async move {
            let report = agent
                .session(session("s"))
                .run(text(input), options)
                .await
                .unwrap();
            assert_eq!(report.outcome, RunOutcome::Completed, "{:?}", report.reason);
        }
    };
    let stage = PlanStage::Making {
        file: "plans/PLAN.md".to_owned(),
    };
    let set = vec![SetEntry {
        change: SessionChange::Plan { plan: Some(stage) },
        by: "ann".to_owned(),
    }];
    block_on(async {
        let first = open(dir.path()).await;
        run(&first, "before", Vec::new()).await;
        run(&first, "plan", set).await;
        // Another process: the session and its children are still bound.
        let second = open(dir.path()).await;
        run(&second, "again", Vec::new()).await;
        use ResultStatus::{Denied, Error, Ok};
        // What may run beside others has its result after those that are refused at once.
        let refused = [
            (Denied, "plan mode"),
            (Denied, "plan mode"),
            (Ok, "1 x"),
            (Error, "lie.txt is read-only here"),
            (Ok, "[exit code 0]"),
        ];
        let refused = refused
            .map(|(status, text)| (status, text.to_owned()))
            .to_vec();
        let twice: Vec<_> = refused.iter().chain(&refused).cloned().collect();
        let mut seen = BTreeMap::new();
        for summary in second.sessions().list_all().await.unwrap() {
            let (_, state) = journal(&second, &summary.id).await;
            let name = match state.spawned {
                Some(spawned) => spawned.label.unwrap_or(spawned.task),
                None => "lead".to_owned(),
            };
            let came: Vec<_> = came(&second, &summary.id)
                .await
                .into_iter()
                .map(|(status, text)| (status, cut(text)))
                .collect();
            seen.insert(name, came);
        }
        let want = [
            ("child", &twice),
            ("early", &refused),
            ("grandchild", &refused),
            ("hook", &refused),
            ("lead", &twice),
        ];
        assert_eq!(
            seen,
            want.map(|(name, came)| (name.to_owned(), came.clone()))
                .into()
        );
        // Whoever calls one tool acts for the person, in no session, and so does a command of a
        // hook.
        let mine = json!({"file_path": "mine.txt", "content": "x"});
        let called = second
            .sessionless()
            .call_tool(
                "write_file",
                mine,
                &ApprovalPolicy::DenyAll,
                CancellationToken::new(),
            )
            .await;
        assert_eq!(called.status, Ok, "{}", blocks(&called.content));
    });
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "a.txt",
            "agent.yaml",
            "agents",
            "hooks",
            "mine.txt",
            "owner.hook",
            "subagents"
        ]
    );
}

/// The beginning of what a file holds, without the numbers of its lines.
fn cut(text: String) -> String {
    text.split_whitespace()
        .take(5)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn one_that_is_at_work_when_planning_begins_is_bound_from_its_next_call_on() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "permission_mode: bypass\nmemory: {flush: false}\n",
    )
    .unwrap();
    let begun = Arc::new(tokio::sync::Notify::new());
    let tell = begun.clone();
    let hear = begun;
    let go = TestTool::make("go", Risk::READS, move |_, _| {
        tell.notify_one();
        async { Ok(Output::text("gone")) }
    });
    let wait = TestTool::make("wait", Risk::READS, move |_, _| {
        let hear = hear.clone();
        async move {
            hear.notified().await;
            Ok(Output::text("waited"))
        }
    });
    let slow =
        json!({"agent": "general-purpose", "prompt": "slow", "label": "slow", "background": true});
    let model = answers(move |task, said, _| match (task, said) {
        ("lead", 0) => Says::Calls(vec![("task", slow.clone())]),
        ("lead", 1) => Says::Calls(vec![("plan_enter", json!({}))]),
        ("lead", 2) => Says::Calls(vec![("go", json!({}))]),
        ("slow", 0) => Says::Calls(vec![("wait", json!({}))]),
        ("slow", 1) => Says::Calls(vec![
            (
                "write_file",
                json!({"file_path": "slow.txt", "content": "x"}),
            ),
            ("liar", json!({})),
        ]),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent_with_host_and(dir.path(), model, vec![go, wait, liar()]).await;
        agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        let child = agent
            .sessions()
            .list_all()
            .await
            .unwrap()
            .into_iter()
            .find(|summary| summary.parent.is_some())
            .unwrap();
        let came = came(&agent, &child.id).await;
        let want = [
            (ResultStatus::Ok, "waited"),
            (ResultStatus::Denied, "plan mode"),
            (ResultStatus::Error, "lie.txt is read-only here"),
        ];
        assert_eq!(came, want.map(|(status, text)| (status, text.to_owned())));
    });
}
