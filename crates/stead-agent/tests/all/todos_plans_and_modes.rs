//! The place for tests of todos, plans and permission modes in the journal: compaction, rewind,
//! listener events, undo, and where tasks are stored.

use crate::support::{agent, block_on, journal, listening, model, results, session, text};
use serde_json::{Value, json};
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{
    Entry, EventKind, PermissionMode, ResultStatus, SessionChange, SetEntry, Todo, TodoStatus,
};
use stead_store::LockWait;
use stead_testkit::{FakeModel, FakeWire, reply};
use tokio_util::sync::CancellationToken;

const PLAN: &str = "1. Read all of it.\n2. Then <b>write</b> \"it\" down.";

/// Paths and what lies there.
type Files = &'static [(&'static str, &'static str)];

fn todos(list: &[(&str, &str)]) -> Value {
    json!({"todos": list.iter().map(|(content, status)| json!({"content": content, "status": status})).collect::<Vec<_>>()})
}

fn todo(content: &str, status: TodoStatus) -> Todo {
    Todo {
        content: content.to_owned(),
        status,
    }
}

#[test]
fn a_plan_and_open_todos_survive_a_compaction_word_for_word_and_a_rewind_gives_earlier_ones_back() {
    let dir = tempfile::tempdir().unwrap();
    let words = "many words that take some room in the conversation ".repeat(200);
    let server = FakeModel::start(vec![
        reply().call("write_todos", todos(&[("first list", "pending")])),
        reply().text(words.clone()),
        reply().call("plan_enter", json!({})),
        reply().call("plan_write", json!({"content": PLAN})),
        reply().call("plan_exit", json!({})),
        reply().call(
            "write_todos",
            todos(&[
                ("read", "completed"),
                ("write", "in_progress"),
                ("check", "pending"),
            ]),
        ),
        reply().text("begun"),
        reply().text(words),
        reply().text("## Intent\nWork."),
        reply().text("after"),
    ]);
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let mut chat = agent.session(session("s"));
        chat.run(text("one"), RunOptions::default()).await.unwrap();
        let approving = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        chat.run(text("two"), approving).await.unwrap();
        chat.run(text("three"), RunOptions::default())
            .await
            .unwrap();
        let made = chat
            .compact(None, RunOptions::default())
            .await
            .unwrap()
            .unwrap();
        assert!(made.view.covers > 0 && made.fallback.is_none(), "{made:?}");
        chat.run(text("four"), RunOptions::default()).await.unwrap();
        let last = server.last_request();
        let shown = last
            .seen
            .as_ref()
            .unwrap()
            .user_texts()
            .next()
            .unwrap()
            .to_owned();
        assert!(
            shown.contains(&format!("<active_plan>\n{PLAN}\n</active_plan>")),
            "{shown}"
        );
        assert!(
            shown.contains("<open_todos>\n[>] write\n[ ] check\n</open_todos>"),
            "{shown}"
        );
        chat.rewind(2, LockWait::No).await.unwrap();
        let (_, state) = journal(&agent, &session("s")).await;
        for state in [&state, chat.state()] {
            assert_eq!(
                (&state.todos[..], &state.plan),
                (&[todo("first list", TodoStatus::Pending)][..], &None)
            );
        }
    });
    assert_eq!(server.rejections(), Vec::new());
}

#[test]
fn a_compaction_during_plan_mode_says_that_it_is_on() {
    let dir = tempfile::tempdir().unwrap();
    let words = "many words that take some room in the conversation ".repeat(200);
    let server = FakeModel::start(vec![
        reply().call("plan_enter", json!({})),
        reply().text(words.clone()),
        reply().text(words),
        reply().text("## Intent\nWork."),
        reply().text("after"),
    ]);
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let mut chat = agent.session(session("s"));
        for input in ["one", "two"] {
            chat.run(text(input), RunOptions::default()).await.unwrap();
        }
        chat.compact(None, RunOptions::default())
            .await
            .unwrap()
            .unwrap();
        chat.run(text("three"), RunOptions::default())
            .await
            .unwrap();
        let last = server.last_request();
        let shown = last
            .seen
            .as_ref()
            .unwrap()
            .user_texts()
            .next()
            .unwrap()
            .to_owned();
        assert!(
            shown.contains("<plan_mode>\nPlan mode is on: until the person agrees"),
            "{shown}"
        );
    });
}

#[test]
fn changes_are_told_to_listeners_after_what_made_them_and_a_mode_is_on_record_once() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str| reply().call("write_file", json!({"file_path": path, "content": "x"}));
    let server = FakeModel::start(vec![
        reply().call("write_todos", todos(&[("a", "in_progress")])),
        write("a.txt"),
        reply().text("done"),
        write("b.txt"),
        reply().text("done"),
        write("c.txt"),
        reply().text("done"),
    ]);
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let mut chat = agent.session(session("s"));
        let mode = |to| {
            vec![SetEntry {
                change: SessionChange::mode(to),
                by: "ann".to_owned(),
            }]
        };
        let (options, heard) = listening();
        chat.run(
            text("one"),
            RunOptions {
                settings: mode(PermissionMode::Explore),
                ..options
            },
        )
        .await
        .unwrap();
        let heard = heard
            .lock()
            .unwrap()
            .iter()
            .map(|event| event.kind.clone())
            .collect::<Vec<_>>();
        let at = |wanted: &EventKind| heard.iter().position(|kind| kind == wanted);
        assert_eq!(
            at(&EventKind::Mode {
                to: PermissionMode::Explore
            }),
            Some(1)
        );
        let told = at(&EventKind::Todos {
            todos: vec![todo("a", TodoStatus::InProgress)],
        })
        .unwrap();
        assert!(
            matches!(&heard[told - 1], EventKind::ToolEnded { name, .. } if name == "write_todos")
        );
        chat.run(
            text("two"),
            RunOptions {
                settings: mode(PermissionMode::Explore),
                ..RunOptions::default()
            },
        )
        .await
        .unwrap();
        chat.run(
            text("three"),
            RunOptions {
                settings: mode(PermissionMode::Default),
                ..RunOptions::default()
            },
        )
        .await
        .unwrap();
        let (lines, state) = journal(&agent, &session("s")).await;
        let statuses: Vec<ResultStatus> = results(&lines)
            .into_iter()
            .map(|(_, status, _)| status)
            .collect();
        assert_eq!(
            statuses,
            [
                ResultStatus::Ok,
                ResultStatus::Denied,
                ResultStatus::Denied,
                ResultStatus::Ok
            ]
        );
        let set: Vec<&SessionChange> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::Set(set) => Some(&set.change),
                _ => None,
            })
            .collect();
        let mode = |to| SessionChange::mode(to);
        assert_eq!(
            set,
            [
                &mode(PermissionMode::Explore),
                &mode(PermissionMode::Default)
            ]
        );
        assert_eq!(
            (state.mode, chat.permission_mode()),
            (Some(PermissionMode::Default), PermissionMode::Default)
        );
    });
}

#[test]
fn what_a_plan_wrote_is_undone_like_every_write() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("plans")).unwrap();
    std::fs::write(dir.path().join("plans/PLAN.md"), "an older plan").unwrap();
    let server = FakeModel::start(vec![
        reply().call("plan_enter", json!({})),
        reply().call("plan_write", json!({"content": PLAN})),
        reply().text("done"),
    ]);
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let mut chat = agent.session(session("s"));
        let report = chat.run(text("one"), RunOptions::default()).await.unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join("plans/PLAN.md")).unwrap(),
            PLAN
        );
        let plan = agent
            .undo(agent.owner(), &session("s"))
            .undo_runs(&[report.run])
            .await
            .unwrap();
        assert_eq!(plan.obstacles, []);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("plans/PLAN.md")).unwrap(),
            "an older plan"
        );
    });
}

#[test]
fn tasks_lie_where_the_layout_keeps_them_and_the_rules_let_them_be_written() {
    let layouts: [(Files, Option<&str>); 4] = [
        (&[("AGENTS.md", "x")], Some("tasks/TASKS.yaml")),
        (
            &[
                ("agent/AGENT.md", "x"),
                ("agent/USER.md", "x"),
                ("agent/SOUL.md", "x"),
            ],
            Some("data/TASKS.yaml"),
        ),
        (
            &[
                ("AGENT.md", "x"),
                ("USER.md", "x"),
                ("SOUL.md", "x"),
                ("TASKS.yaml", "tasks: []\n"),
            ],
            Some("TASKS.yaml"),
        ),
        (&[(".deepagents/AGENTS.md", "x")], None),
    ];
    for (files, place) in layouts {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(dir.path().join(path), content).unwrap();
        }
        let server = FakeModel::start(Vec::new());
        block_on(async {
            let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
            let args = json!({"description": "water the plants", "type": "custom"});
            let called = agent
                .sessionless()
                .call_tool(
                    "create_task",
                    args,
                    &ApprovalPolicy::DenyAll,
                    CancellationToken::new(),
                )
                .await;
            match place {
                Some(place) => {
                    assert_eq!(called.status, ResultStatus::Ok, "{called:?}");
                    let file = std::fs::read_to_string(dir.path().join(place)).unwrap();
                    assert!(file.contains("description: water the plants\n"), "{file}");
                    // Where the folder is protected, only these tools change the list.
                    for (tool, args) in [
                        (
                            "overwrite_file",
                            json!({"file_path": place, "content": "x: ["}),
                        ),
                        (
                            "edit_file",
                            json!({"file_path": place, "old_string": "water", "new_string": "drown"}),
                        ),
                        ("delete_file", json!({"file_path": place})),
                        ("move_file", json!({"from": place, "to": "t.yaml"})),
                    ] {
                        let called = agent
                            .sessionless()
                            .call_tool(
                                tool,
                                args,
                                &ApprovalPolicy::DenyAll,
                                CancellationToken::new(),
                            )
                            .await;
                        let denied = called.status == ResultStatus::Denied;
                        assert_eq!(
                            denied,
                            place != "tasks/TASKS.yaml",
                            "{tool} {place}: {called:?}"
                        );
                        std::fs::write(dir.path().join(place), &file).unwrap();
                    }
                }
                None => assert_eq!(called.status, ResultStatus::Error, "{called:?}"),
            }
        });
    }
}
