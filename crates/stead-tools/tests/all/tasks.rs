//! The place for tests of the TASKS.yaml tools: compatibility with OpenPaw, damaged files,
//! concurrent writers and limits.

use super::Session;
use serde_json::{Value, json};
use std::sync::Arc;

const OPENPAW: &str = include_str!("../fixtures/openpaw-TASKS.yaml");
const FILE: &str = "data/TASKS.yaml";

fn read(session: &Session) -> Value {
    serde_saphyr::from_str(&session.content(FILE)).unwrap()
}

/// The file without when it was changed.
fn timeless(mut file: Value) -> Value {
    file["last_updated"] = Value::Null;
    file
}

#[tokio::test]
async fn a_file_of_openpaw_is_used_as_it_is_and_keeps_all_it_has() {
    let session = Session::planning();
    session.put(FILE, OPENPAW);
    let listed = session.call("list_tasks", json!({})).await.unwrap();
    assert_eq!(
        listed,
        "2 of 2 tasks:\n\
         - 5f0c3f0e-8f6b-4a56-9d0c-0b6f6f9a7f11 [in_progress, high] research: Marktanalyse für Q1: \"wer\" & was? \
         Zweite Zeile\n\
         - tool-7 [completed] deployment: Deploy"
    );
    session
        .call(
            "update_task",
            json!({"task_id": "tool-7", "notes": "looked at: fine"}),
        )
        .await
        .unwrap();
    let mut expected: Value = serde_saphyr::from_str(OPENPAW).unwrap();
    let after = read(&session);
    let task = &after["tasks"][1];
    assert_eq!(task["check_count"], 3);
    let notes = task["notes"].as_str().unwrap();
    assert!(
        notes.starts_with("- [20") && notes.ends_with(" UTC] looked at: fine"),
        "{notes}"
    );
    for key in ["notes", "check_count", "last_checked_at"] {
        expected["tasks"][1][key] = task[key].clone();
    }
    // All else is as it was, keys that nobody knows included.
    assert_eq!(timeless(after), timeless(expected));
    // Python takes what is not in quotes for a date, and OpenPaw wants a text.
    for line in session
        .content(FILE)
        .lines()
        .filter(|line| line.contains("_at: ") || line.contains("last_updated"))
    {
        assert!(
            line.ends_with("null") || line.ends_with("+00:00\""),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_task_is_made_shown_brought_on_and_deleted() {
    let session = Session::planning();
    assert_eq!(
        session.call("list_tasks", json!({})).await.unwrap(),
        "There are no tasks."
    );
    let args = json!({
        "description": "Watch the build", "type": "monitoring", "priority": "urgent",
        "expected_duration_minutes": 30, "metadata": {"url": "http://x", "tries": 2},
    });
    let made = session.call("create_task", args).await.unwrap();
    let id = made.split(' ').nth(2).unwrap().to_owned();
    assert_eq!(
        made,
        format!("Created task {id} (pending). Use update_task to report progress.")
    );
    let file = read(&session);
    let task = &file["tasks"][0];
    let created = task["created_at"].clone();
    assert_eq!(
        timeless(file.clone()),
        json!({"version": 1, "last_updated": null, "tasks": [{
            "id": id, "type": "monitoring", "status": "pending", "description": "Watch the build",
            "priority": "urgent", "created_at": created, "started_at": null, "completed_at": null,
            "expected_duration_minutes": 30, "deadline": null, "last_checked_at": null, "check_count": 0,
            "check_interval_minutes": null, "notes": null, "metadata": {"url": "http://x", "tries": 2},
            "result_summary": null, "result_path": null, "error_message": null,
        }]})
    );
    let active = session
        .call("delete_task", json!({"task_id": id}))
        .await
        .unwrap_err();
    assert_eq!(
        active,
        "the task is pending; complete or cancel it with update_task first"
    );
    let begun = session
        .call(
            "update_task",
            json!({"task_id": id, "status": "in_progress"}),
        )
        .await
        .unwrap();
    assert_eq!(begun, format!("Updated task {id} (in_progress)."));
    session
        .call(
            "TaskUpdate",
            json!({"task_id": id, "status": "completed", "result_summary": "green"}),
        )
        .await
        .unwrap();
    let task = read(&session)["tasks"][0].clone();
    assert_eq!(
        (&task["status"], &task["result_summary"]),
        (&json!("completed"), &json!("green"))
    );
    assert!(task["started_at"].is_string() && task["completed_at"].is_string());
    let shown = session
        .call("get_task", json!({"task_id": id}))
        .await
        .unwrap();
    assert!(
        shown.contains("result_summary: green") && !shown.contains("deadline"),
        "{shown}"
    );
    let filtered = session
        .call("list_tasks", json!({"status": "pending"}))
        .await
        .unwrap();
    assert_eq!(filtered, "There are no such tasks.");
    session
        .call("delete_task", json!({"task_id": id}))
        .await
        .unwrap();
    assert_eq!(read(&session)["tasks"], json!([]));
    let gone = session
        .call("get_task", json!({"task_id": id}))
        .await
        .unwrap_err();
    assert_eq!(
        gone,
        format!("there is no task {id:?}; list_tasks lists them")
    );
}

#[tokio::test]
async fn a_damaged_file_is_told_and_never_written() {
    let one = |more: &str| {
        format!(
            "version: 1\ntasks:\n- id: a\n  type: t\n  status: pending\n  description: d\n{more}"
        )
    };
    #[rustfmt::skip]
    let table = [
        ("tasks: [".to_owned(), "line "),
        ("- a\n".to_owned(), "it is no map"),
        ("version: 2\ntasks: []\n".to_owned(), "its `version` is not 1"),
        ("tasks: none\n".to_owned(), "its `tasks` are no list"),
        ("tasks: [x]\n".to_owned(), "task 1 is no map"),
        (one("- type: t\n  status: pending\n  description: d\n"), "task 2 has no `id`"),
        (one("- id: a\n  type: t\n  status: pending\n  description: d\n"), "two tasks have the id a"),
        (one("- id: b\n  type: t\n  status: half\n  description: d\n"), "task 2 has the status \"half\", which is none"),
    ];
    for (text, what) in table {
        let session = Session::planning();
        session.put(FILE, &text);
        let calls = [
            ("list_tasks", json!({})),
            ("create_task", json!({"description": "x", "type": "y"})),
            ("update_task", json!({"task_id": "a"})),
            ("delete_task", json!({"task_id": "a"})),
        ];
        for (tool, args) in calls {
            let told = session.call(tool, args).await.unwrap_err();
            assert!(
                told.starts_with(&format!("{FILE} is damaged: {what}")),
                "{tool}: {told}"
            );
            assert!(
                told.ends_with("Nothing was changed; a person must repair it"),
                "{told}"
            );
        }
        assert_eq!(session.content(FILE), text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_at_the_same_time_lose_nothing() {
    const WRITERS: usize = 12;
    let session = Arc::new(Session::planning());
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let session = session.clone();
        writers.spawn(async move {
            let args = json!({"description": format!("task {number}"), "type": "t"});
            session.call("create_task", args).await.unwrap()
        });
    }
    writers.join_all().await;
    let file = read(&session);
    let mut descriptions: Vec<&str> = file["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["description"].as_str().unwrap())
        .collect();
    descriptions.sort_unstable();
    let mut expected: Vec<String> = (0..WRITERS)
        .map(|number| format!("task {number}"))
        .collect();
    expected.sort_unstable();
    assert_eq!(descriptions, expected);
}

#[tokio::test]
async fn there_are_a_thousand_tasks_at_most_and_a_list_stays_short() {
    let session = Session::planning();
    let mut text = "tasks:\n".to_owned();
    for number in 0..1000 {
        text.push_str(&format!(
            "- {{id: t{number}, type: t, status: pending, description: d}}\n"
        ));
    }
    session.put(FILE, &text);
    let full = session
        .call("create_task", json!({"description": "x", "type": "y"}))
        .await
        .unwrap_err();
    assert_eq!(
        full,
        "there are 1000 tasks already; delete some that are done"
    );
    let listed = session.call("list_tasks", json!({})).await.unwrap();
    assert_eq!(listed.lines().count(), 202);
    assert!(listed.ends_with("[800 more; ask for a status or type]"));
    let long = "x".repeat(2001);
    let told = session
        .call("create_task", json!({"description": long, "type": "y"}))
        .await
        .unwrap_err();
    assert_eq!(told, "`description` has 2001 characters; the limit is 2000");
}
