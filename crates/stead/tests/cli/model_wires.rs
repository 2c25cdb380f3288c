//! The place for tests of whole runs on every model wire, and replay of recordings.

use crate::support::Folder;
use serde_json::{Value, json};
use stead_testkit::{FakeModel, bench_like};

#[test]
fn a_hundred_steps_complete_on_every_wire_and_need_no_server_afterwards() {
    for (name, steps) in [
        ("openai:x", 100),
        ("anthropic:x", 100),
        ("responses:x", 12),
        ("gemini:x", 12),
    ] {
        let folder = Folder::new();
        let server = FakeModel::start_with(bench_like(steps));
        let done = folder
            .run_with(
                &server,
                &["run", "-m", name, "-s", "long", "Write the files"],
            )
            .exits(0);
        assert_eq!(done.out, "done\n", "{name}");
        assert_eq!(
            (server.rejections(), server.requests().len()),
            (Vec::new(), steps + 1),
            "{name}"
        );
        assert!(
            (0..steps).all(|n| folder.read(&format!("f{n}.txt")) == "one\ntwo\nthree\n"),
            "{name}"
        );
        drop(server);

        // session, user; model, call, result of each step; the last answer and the end.
        let entries = 2 + 3 * steps + 2;
        let journal = folder.read("agents/main/sessions/long.log.jsonl");
        let lines: Vec<Value> = journal
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), entries, "{name}");
        assert!(
            lines
                .iter()
                .enumerate()
                .all(|(i, line)| line["seq"] == json!(i + 1)),
            "{name}"
        );

        let index = folder.read("agents/main/sessions/sessions.jsonl");
        let entry: Value = serde_json::from_str(index.lines().last().unwrap()).unwrap();
        assert_eq!(entry["id"], "long");
        let found = (
            &entry["entries"],
            &entry["runs"],
            &entry["outcome"],
            &entry["title"],
            &entry["model"],
        );
        assert_eq!(
            found,
            (
                &json!(entries),
                &json!(1),
                &json!("completed"),
                &json!("Write the files"),
                &json!(name)
            )
        );
        assert_eq!(entry["bytes"], json!(journal.len()), "{name}");

        let snapshot: Value =
            serde_json::from_str(&folder.read("agents/main/context/long/agent_state.json"))
                .unwrap();
        let found = (
            &snapshot["version"],
            &snapshot["session"],
            &snapshot["seq"],
            &snapshot["messages"],
            &snapshot["run"],
        );
        assert_eq!(
            found,
            (
                &json!(1),
                &json!("long"),
                &json!(entries),
                &json!(2 + 2 * steps),
                &Value::Null
            )
        );
        assert_eq!(snapshot["last_run"]["steps"], json!(steps + 1), "{name}");

        let shown = folder.run(&["sessions", "show", "long"]).exits(0);
        assert!(
            shown.out.contains("you: Write the files")
                && shown.out.contains(&format!("f{}.txt", steps - 1))
        );
        let replayed = folder.run(&["sessions", "replay", "long"]).exits(0);
        assert!(
            replayed.out.contains(&format!(
                "replayed {entries} entries, {} answers",
                steps + 1
            )),
            "{replayed:?}"
        );
    }
}

#[test]
fn what_was_recorded_is_replayed_without_a_server() {
    let folder = Folder::new();
    let server = FakeModel::start_with(bench_like(3));
    let tape = folder.path().join("tape.jsonl").display().to_string();
    let first = folder
        .run_with(
            &server,
            &[
                "run",
                "-m",
                &format!("record:{tape}=openai:x"),
                "-s",
                "a",
                "Write",
            ],
        )
        .exits(0);
    drop(server);
    let fresh = Folder::new();
    let again = fresh
        .run(&["run", "-m", &format!("replay:{tape}"), "-s", "a", "Write"])
        .exits(0);
    assert_eq!(
        (again.out.as_str(), first.out.as_str()),
        ("done\n", "done\n")
    );
    assert_eq!(fresh.read("f2.txt"), "one\ntwo\nthree\n");
    let other = Folder::new()
        .run(&["run", "-m", &format!("replay:{tape}"), "Something else"])
        .exits(1);
    assert!(
        other.err.contains("has no answer for this request"),
        "{other:?}"
    );
}
