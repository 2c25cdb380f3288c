//! The place for tests of plan mode and permission modes by command-line flag.

use crate::support::Folder;
use serde_json::json;

const SCRIPT: &str = r#"
- calls:
  - {tool: write_file, args: {file_path: early.txt, content: "x"}}
  - {tool: write_todos, args: {todos: [{content: Look, status: in_progress}, {content: Write, status: pending}]}}
- calls:
  - {tool: plan_write, args: {content: "1. Look\n2. Write"}}
- calls:
  - {tool: plan_exit, args: {summary: Two steps.}}
- calls:
  - {tool: write_file, args: {file_path: late.txt, content: "x"}}
- text: Done.
"#;

#[test]
fn a_run_begins_in_plan_mode_parks_for_the_person_and_goes_on_once_they_agree() {
    let folder = Folder::new();
    let model = folder.script(SCRIPT);
    let parked = folder
        .run(&[
            "run", "-m", &model, "-s", "p", "--plan", "--output", "events", "go",
        ])
        .exits(3);
    let events = parked.lines();
    let changes: Vec<_> = events
        .iter()
        .filter(|event| ["plan", "todos", "mode"].contains(&event["type"].as_str().unwrap()))
        .map(|event| {
            let mut event = event.clone();
            ["seq", "run"]
                .iter()
                .for_each(|key| drop(event.as_object_mut().unwrap().remove(*key)));
            event
        })
        .collect();
    let todos = json!([{"content": "Look", "status": "in_progress"}, {"content": "Write", "status": "pending"}]);
    assert_eq!(
        changes,
        [
            json!({"type": "plan", "stage": "making", "file": "plans/PLAN.md"}),
            json!({"type": "todos", "todos": todos}),
        ]
    );
    assert!(!folder.has("early.txt"));
    assert_eq!(folder.read("plans/PLAN.md"), "1. Look\n2. Write");
    let done = folder
        .run(&[
            "run",
            "-m",
            &model,
            "-s",
            "p",
            "--resume",
            "--approve",
            "all",
        ])
        .exits(0);
    assert!(
        done.err
            .contains("the plan in plans/PLAN.md is agreed to; plan mode is off"),
        "{done:?}"
    );
    assert!(folder.has("late.txt") && !folder.has("early.txt"));
    folder
        .run(&["run", "-m", &model, "-s", "p", "--resume", "--plan"])
        .exits(2);
}

#[test]
fn a_mode_given_once_holds_for_the_session_and_is_told() {
    let folder = Folder::new();
    let model = folder.script(
        "- calls: [{tool: write_file, args: {file_path: a.txt, content: x}}]\n- text: One.\n\
         - calls: [{tool: write_file, args: {file_path: b.txt, content: x}}]\n- text: Two.\n",
    );
    let first = folder
        .run(&["run", "-m", &model, "-s", "m", "--mode", "explore", "go"])
        .exits(0);
    assert!(first.err.contains("mode explore from now on"), "{first:?}");
    let second = folder.run(&["run", "-m", &model, "-s", "m", "go"]).exits(0);
    assert!(!second.err.contains("from now on"), "{second:?}");
    assert!(!folder.has("a.txt") && !folder.has("b.txt"));
    let wrong = folder
        .run(&["run", "-m", &model, "--mode", "wild", "go"])
        .exits(2);
    assert!(
        wrong
            .err
            .contains("they are: default, accept_edits, explore, dont_ask, bypass"),
        "{wrong:?}"
    );
}

#[test]
fn one_tool_is_judged_in_the_mode_that_is_given_and_bypass_is_warned_about() {
    let folder = Folder::new();
    let call = [
        "tool",
        "write_file",
        r#"{"file_path": "a.txt", "content": "x"}"#,
    ];
    let in_mode = |mode: &str, more: &str| {
        let args: Vec<&str> = call
            .into_iter()
            .chain(["--mode", mode, more])
            .filter(|arg| !arg.is_empty())
            .collect();
        folder.run(&args)
    };
    assert_eq!(
        in_mode("explore", "--explain").exits(0).out,
        "deny: mode explore: only reads are allowed\n"
    );
    assert!(
        in_mode("default", "--explain")
            .exits(0)
            .out
            .starts_with("allow: ")
    );
    in_mode("explore", "").exits(1);
    assert!(!folder.has("a.txt"));
    in_mode("accept_edits", "").exits(0);
    assert!(folder.has("a.txt"));
    folder.put("agent.yaml", "permission_mode: bypass\n");
    let checked = folder.run(&["check"]).exits(0);
    assert!(
        checked
            .out
            .contains("warning  agent.yaml: permission_mode: bypass asks about nothing but"),
        "{checked:?}"
    );
}
