//! The place for tests of switching between agents of one workspace: hand-over, reminders and
//! inherited denials.

use crate::subagents::{Says, answers};
use crate::support::{block_on, journal, listening, local_place, results, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};
use stead_agent::{Agent, AgentError, ModelConnector, RunOptions};
use stead_core::{EventKind, Message, Redactor, ResultStatus, RunOutcome, SessionChange, SetEntry};
use stead_model::{Model, Request};
use stead_store::{LockWait, OsDisk};
use stead_workspace::FeatureSwitch;

fn lay_out(dir: &Path) {
    let put = |path: &str, content: &str| {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    put("AGENTS.md", "A small library.");
    put("lib.rs", "pub fn one() -> u8 { 2 }\n");
    put(".openharness/settings.yaml", "default_agent: plan\n");
    let agent = |mode: &str, about: &str, rest: &str, prompt: &str| {
        format!("---\nmode: {mode}\ndescription: {about}\n{rest}---\n{prompt}\n")
    };
    let plan = "temperature: 0.3\ntools: {native: [Read, Glob, Grep]}\nswitch: [build]\n";
    let build = "temperature: 0.2\nsystem_reminder: You may change files now.\ntools: {native: [Bash, Read, Write, Edit, Glob, Grep]}\nswitch: [plan]\nsubagents: [reviewer]\npolicy: {max_steps: 40}\n";
    let review = "temperature: 0.1\ntools: {native: [Read, Glob, Grep]}\n";
    put(
        ".openharness/agents/plan.md",
        &agent(
            "primary",
            "Analyze tasks and create implementation plans",
            plan,
            "# Planner\nAnalyze, plan, then switch.",
        ),
    );
    put(
        ".openharness/agents/build.md",
        &agent(
            "primary",
            "Implement changes in the workspace",
            build,
            "# Builder\nMake the changes, then have them reviewed.",
        ),
    );
    put(
        ".openharness/agents/reviewer.md",
        &agent(
            "subagent",
            "Review code changes",
            review,
            "# Reviewer\nReview and report.",
        ),
    );
}

/// What a request shows of the agent that asks.
fn shown(request: &Request) -> String {
    let system: String = request
        .system
        .iter()
        .map(|part| part.text.clone())
        .collect::<Vec<_>>()
        .join("\n");
    let who = system
        .lines()
        .find(|line| ["# Planner", "# Builder", "# Reviewer"].contains(line))
        .unwrap_or("nobody");
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let said: Vec<String> = request
        .messages
        .iter()
        .map(|message| spoken(message))
        .collect();
    format!(
        "{who}, temperature {:?}\n  tools: {}\n{}",
        request.params.temperature,
        tools.join(" "),
        said.join("\n")
    )
}

fn spoken(message: &Message) -> String {
    let who = match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    };
    let calls: Vec<String> = message
        .calls()
        .map(|call| format!(" {}{}", call.name, call.args))
        .collect();
    // Ids are new each time.
    let mask = |word: &str| match ["task_", "sub-"]
        .iter()
        .find(|kind| word.starts_with(**kind))
    {
        Some(kind) => format!("{kind}…"),
        None => word.to_owned(),
    };
    let text: Vec<String> = message
        .text()
        .lines()
        .map(|line| line.split(' ').map(mask).collect::<Vec<_>>().join(" "))
        .collect();
    format!("  {who}: {}{}", text.join(" / "), calls.join(""))
}

async fn opened(dir: &Path, model: Arc<dyn Model>) -> Arc<Agent> {
    let same = model.clone();
    super::support::builder(dir, model)
        .model("openai:gpt-5-mini")
        .model_connector(ModelConnector::new(move |_| Ok(same.clone())))
        .place(local_place(dir, Arc::new(OsDisk), Redactor::default()).await)
        .disable(FeatureSwitch::Shell)
        .build()
        .await
        .unwrap()
}

#[test]
fn plan_then_build_then_review() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let model = answers(move |task, said, request| {
        log.lock().unwrap().push(shown(request));
        match (task, said) {
            ("fix one()", 0) => Says::Calls(vec![("Read", json!({"file_path": "lib.rs"}))]),
            ("fix one()", 1) => Says::Calls(vec![
                (
                    "Write",
                    json!({"file_path": "x", "content": "not mine to write"}),
                ),
                ("AgentSwitch", json!({"to": "build"})),
            ]),
            ("fix one()", 2) => Says::Calls(vec![(
                "Edit",
                json!({"file_path": "lib.rs", "old_string": "2", "new_string": "1"}),
            )]),
            ("fix one()", 3) => Says::Calls(vec![(
                "SubAgent",
                json!({"description": "review", "prompt": "review lib.rs", "subagent_name": "reviewer"}),
            )]),
            ("fix one()", _) => Says::Text("Done, and reviewed.".into()),
            ("review lib.rs", 0) => Says::Calls(vec![
                ("Read", json!({"file_path": "lib.rs"})),
                (
                    "Edit",
                    json!({"file_path": "lib.rs", "old_string": "1", "new_string": "3"}),
                ),
            ]),
            (_, _) => Says::Text("No findings.".into()),
        }
    });
    block_on(async {
        let agent = opened(dir.path(), model).await;
        let (options, heard) = listening();
        let report = agent
            .session(session("s"))
            .run(text("fix one()"), options)
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "Done, and reviewed.")
        );
        assert_eq!(
            std::fs::read_to_string(dir.path().join("lib.rs")).unwrap(),
            "pub fn one() -> u8 { 1 }\n"
        );
        assert!(!dir.path().join("x").exists());
        let switched = heard.lock().unwrap().iter().any(
            |event| matches!(&event.kind, EventKind::AgentSwitched { from, to, .. } if from == "plan" && to == "build"),
        );
        assert!(switched);
        let (_, state) = journal(&agent, &session("s")).await;
        assert_eq!(state.acting.as_deref(), Some("build"));
        // The session keeps its last agent, which is not reminded again.
        agent
            .session(session("s"))
            .run(text("fix one()"), RunOptions::default())
            .await
            .unwrap();
        let all = asked.lock().unwrap().join("\n\n");
        assert_eq!(
            asked
                .lock()
                .unwrap()
                .last()
                .unwrap()
                .matches("You may change files now.")
                .count(),
            1
        );
        insta::assert_snapshot!("three_agents", all);
    });
}

/// Who asked, and each message of a person with how often it reminds.
fn reminders(request: &Request) -> (String, Vec<(String, usize)>) {
    let who = shown(request)
        .split(',')
        .next()
        .unwrap_or_default()
        .to_owned();
    let of_user = request
        .messages
        .iter()
        .filter(|message| matches!(&***message, Message::User { .. }));
    let said = of_user.map(|message| message.text());
    let count = |text: String| {
        let reminds = text
            .matches("<system_reminder>\nYou may change files now.\n</system_reminder>")
            .count();
        (text.lines().next().unwrap_or_default().to_owned(), reminds)
    };
    (who, said.map(count).collect())
}

fn to(name: &str, by: &str) -> SetEntry {
    SetEntry {
        change: SessionChange::Agent {
            to: name.to_owned(),
        },
        by: by.to_owned(),
    }
}

#[test]
fn an_agent_that_a_person_chose_is_reminded_once_in_the_next_input_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let model = answers(move |_, _, request| {
        log.lock().unwrap().push(reminders(request));
        Says::Text("done".into())
    });
    block_on(async {
        let agent = opened(dir.path(), model.clone()).await;
        let mut live = agent.session(session("s"));
        live.run(text("one"), RunOptions::default()).await.unwrap();
        let set = |name: &str| SessionChange::Agent {
            to: name.to_owned(),
        };
        let known = vec!["build".to_owned(), "plan".to_owned()];
        for name in ["nobody", "reviewer"] {
            match live.set(set(name), "/agent", LockWait::No).await {
                Err(AgentError::NoSuchAgent {
                    name: told,
                    known: all,
                }) => {
                    assert_eq!((told.as_str(), all), (name, known.clone()))
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(
            !live.set(set("plan"), "/agent", LockWait::No).await.unwrap(),
            "it acts already"
        );
        assert!(
            live.set(set("build"), "/agent", LockWait::No)
                .await
                .unwrap()
        );
        assert_eq!(live.active_agent_name(), "build");
        live.run(text("two"), RunOptions::default()).await.unwrap();
        live.run(text("three"), RunOptions::default())
            .await
            .unwrap();
        // Another process goes on with the same agent, and chooses another with the input.
        let again = opened(dir.path(), model).await;
        let mut live = again.session(session("s"));
        live.run(text("four"), RunOptions::default()).await.unwrap();
        let (options, heard) = listening();
        live.run(
            text("five"),
            RunOptions {
                settings: vec![to("plan", "--agent")],
                ..options
            },
        )
        .await
        .unwrap();
        let (options, again) = listening();
        live.run(
            text("six"),
            RunOptions {
                settings: vec![to("build", "--agent")],
                ..options
            },
        )
        .await
        .unwrap();
        for (heard, from_to) in [(heard, ("build", "plan")), (again, ("plan", "build"))] {
            let heard = heard.lock().unwrap();
            let switched = heard.iter().filter_map(|event| match &event.kind {
                EventKind::AgentSwitched { from, to, .. } => Some((from.as_str(), to.as_str())),
                _ => None,
            });
            assert_eq!(switched.collect::<Vec<_>>(), [from_to]);
        }
        let (_, state) = journal(&agent, &session("s")).await;
        assert_eq!(
            (state.acting.as_deref(), state.title.as_str()),
            (Some("build"), "one")
        );
    });
    let said = |words: &[(&str, usize)]| {
        words
            .iter()
            .map(|(word, reminds)| ((*word).to_owned(), *reminds))
            .collect()
    };
    let all: Vec<(&str, usize)> = vec![
        ("one", 0),
        ("two", 1),
        ("three", 0),
        ("four", 0),
        ("five", 0),
        ("six", 1),
    ];
    let who = [
        "# Planner",
        "# Builder",
        "# Builder",
        "# Builder",
        "# Planner",
        "# Builder",
    ];
    let expected: Vec<(String, Vec<(String, usize)>)> = who
        .iter()
        .enumerate()
        .map(|(n, who)| ((*who).to_owned(), said(&all[..=n])))
        .collect();
    assert_eq!(*asked.lock().unwrap(), expected);
}

#[test]
fn an_agent_that_a_session_begins_with_is_not_reminded_and_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let model = answers(move |_, _, request| {
        log.lock().unwrap().push(reminders(request));
        Says::Text("done".into())
    });
    block_on(async {
        let agent = opened(dir.path(), model).await;
        let begun = RunOptions {
            settings: vec![to("build", "--agent")],
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text("one"), begun)
            .await
            .unwrap();
        agent
            .session(session("s"))
            .run(text("two"), RunOptions::default())
            .await
            .unwrap();
        let wrong = RunOptions {
            settings: vec![to("nobody", "--agent")],
            ..RunOptions::default()
        };
        let refused = agent.session(session("new")).run(text("one"), wrong).await;
        assert!(
            matches!(refused, Err(AgentError::NoSuchAgent { .. })),
            "{refused:?}"
        );
        assert!(
            agent
                .sessions()
                .list_all()
                .await
                .unwrap()
                .iter()
                .all(|summary| summary.id != session("new"))
        );
    });
    let one = ("one".to_owned(), 0);
    let two = ("two".to_owned(), 0);
    let builder = || "# Builder".to_owned();
    assert_eq!(
        *asked.lock().unwrap(),
        [(builder(), vec![one.clone()]), (builder(), vec![one, two])]
    );
}

/// A lead to whom writing is denied, and one that it hands work to, who has the tool.
fn lay_out_denied(dir: &Path) {
    let put = |path: &str, content: &str| {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    put(".openharness/settings.yaml", "default_agent: lead\n");
    put(
        ".openharness/agents/lead.md",
        "---\nmode: primary\ndescription: Leads\ntools: {native: [Read]}\ndisallowed: {tools: {native: [Write]}}\n\
         subagents: [writer]\n---\nLead.\n",
    );
    put(
        ".openharness/agents/writer.md",
        "---\nmode: subagent\ndescription: Writes\ntools: {native: [Read, Write, Edit]}\n---\nWrite.\n",
    );
}

#[test]
fn what_is_denied_to_one_is_denied_to_those_it_hands_work_to() {
    let dir = tempfile::tempdir().unwrap();
    lay_out_denied(dir.path());
    let model = answers(|task, said, _| match (task, said) {
        ("go", 0) => Says::Calls(vec![(
            "SubAgent",
            json!({"agent": "writer", "prompt": "write", "description": "w"}),
        )]),
        ("write", 0) => Says::Calls(vec![
            ("Write", json!({"file_path": "a.txt", "content": "x"})),
            (
                "Edit",
                json!({"file_path": "b.txt", "old_string": "1", "new_string": "2"}),
            ),
        ]),
        _ => Says::Text("done".into()),
    });
    std::fs::write(dir.path().join("b.txt"), "1\n").unwrap();
    block_on(async {
        let agent = opened(dir.path(), model).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        let mut came = Vec::new();
        for summary in agent.sessions().list_all().await.unwrap() {
            let (lines, state) = journal(&agent, &summary.id).await;
            if state.spawned.is_some() {
                came.extend(
                    results(&lines)
                        .into_iter()
                        .map(|(_, status, text)| (status, text)),
                );
            }
        }
        assert_eq!(
            came[0],
            (
                ResultStatus::Denied,
                "denied: write_file is denied to the parent agent".to_owned()
            )
        );
        assert_eq!(came[1].0, ResultStatus::Ok, "{came:?}");
    });
    assert!(!dir.path().join("a.txt").exists());
}
