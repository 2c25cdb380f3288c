//! The place for tests of whole runs on every model wire, and replay of recordings.

use crate::support::Folder;
use serde_json::{Value, json};
use stead::core::StopReason;
use stead_testkit::{FakeModel, bench_like, reply};

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

#[test]
fn an_answer_on_the_anthropic_wire_may_be_as_long_as_the_model_and_the_window_allow() {
    let table = [
        ("anthropic:claude-sonnet-4-5", "", 64_000),
        ("anthropic:claude-opus-5-5", "", 128_000),
        ("anthropic:unknown", "", 8_192),
        ("anthropic:claude-sonnet-4-5", "max_output_tokens: 500", 500),
    ];
    for (model, more, want) in table {
        let folder = Folder::new();
        folder.put(
            "agent.yaml",
            &format!("model: {{name: '{model}', {more}}}\n"),
        );
        let server = FakeModel::start(vec![reply().text("hello")]);
        folder.run_with(&server, &["run", "hi"]).exits(0);
        assert_eq!(
            server.requests()[0].json["max_tokens"],
            want,
            "{model} {more}"
        );
    }
    // A window that is nearly full leaves less.
    let folder = Folder::new();
    let settings = "model: {name: 'anthropic:claude-sonnet-4-5', context_window: 32000}\n";
    folder.put("agent.yaml", settings);
    let server = FakeModel::start(vec![reply().text("hello")]);
    folder.run_with(&server, &["run", "hi"]).exits(0);
    let asked = server.requests()[0].json["max_tokens"].as_u64().unwrap();
    assert!((4_096..32_000).contains(&asked), "{asked}");
}

#[test]
fn an_empty_or_withheld_answer_fails_and_says_why() {
    let table = [
        (reply().text(""), 1, "the model gave an empty answer"),
        (
            reply().text("").stop(StopReason::ContentFilter),
            1,
            "the provider's content filter stopped the answer",
        ),
        (reply().text("I am done."), 0, ""),
    ];
    for (answer, code, said) in table {
        let folder = Folder::new();
        let server = FakeModel::start(vec![answer]);
        let done = folder
            .run_with(&server, &["run", "-m", "openai:x", "hi"])
            .exits(code);
        assert!(done.err.contains(said), "{said}: {}", done.err);
    }
    // What was done before stays done.
    let folder = Folder::new();
    let write = json!({"file_path": "a.txt", "content": "y"});
    let server = FakeModel::start(vec![reply().call("write_file", write), reply().text("")]);
    let done = folder
        .run_with(&server, &["run", "-m", "openai:x", "hi"])
        .exits(0);
    let said = "the model ended without saying anything";
    assert!(
        done.err.contains(said) && folder.has("a.txt"),
        "{}",
        done.err
    );
}

#[test]
fn a_call_that_was_cut_is_told_to_be_made_in_pieces_on_every_wire() {
    for model in ["openai:x", "anthropic:x", "responses:x"] {
        let folder = Folder::new();
        let cut = reply()
            .call_raw(
                "write_file",
                "{\"file_path\": \"a.txt\", \"content\": \"abc",
            )
            .stop(StopReason::MaxTokens);
        let server = FakeModel::start(vec![cut, reply().text("I will.")]);
        folder
            .run_with(&server, &["run", "-m", model, "hi"])
            .exits(0);
        let told = server.last_request().json.to_string();
        assert!(told.contains("reached its output limit"), "{model}: {told}");
        assert!(
            told.contains("write a long text in several calls"),
            "{model}"
        );
        assert!(!folder.has("a.txt"), "{model}");
    }
}
