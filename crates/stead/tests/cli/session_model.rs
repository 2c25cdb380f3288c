//! The place for tests of the model that a session keeps: resuming, answering and continuing it
//! without naming the model again.

use crate::support::{Folder, done, endpoints};
use serde_json::{Value, json};
use stead_testkit::{FakeModel, RecordedRequest, reply};

const KEYS: [(&str, &str); 2] = [
    ("OPENAI_API_KEY", "sk-openai"),
    ("ANTHROPIC_API_KEY", "sk-anthropic"),
];

/// A workspace that asks before it writes, and a server that makes it write.
fn asking() -> (Folder, FakeModel) {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You keep notes.\n");
    folder.put("agent.yaml", "approvals: {write_file: true}\n");
    let server = FakeModel::start_with(|request: &RecordedRequest| match request.result_count() {
        0 => reply().call("write_file", json!({"file_path": "a.txt", "content": "y"})),
        _ => reply().text("all done"),
    });
    (folder, server)
}

/// Runs with these variables and the addresses of `server`.
fn run(folder: &Folder, server: &FakeModel, keys: &[(&str, &str)], args: &[&str]) -> (i32, String) {
    let mut command = folder.command(args);
    command.envs(endpoints(server)).envs(keys.iter().copied());
    let done = done(&mut command);
    (done.code, format!("{}{}", done.out, done.err))
}

fn journal(folder: &Folder) -> Vec<Value> {
    let text = folder.read("agents/main/sessions/p.log.jsonl");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn an_approval_from_another_process_goes_on_with_the_same_model() {
    let ways: [&[&str]; 3] = [
        &["approvals", "approve", "--all", "-s", "p"],
        &["run", "-s", "p", "--resume", "--approve", "all"],
        &["run", "-s", "p", "--approve", "all", "again"],
    ];
    for way in ways {
        let (folder, server) = asking();
        let begin = ["run", "-m", "openai:x", "-s", "p", "go"];
        let (code, text) = run(&folder, &server, &KEYS, &begin);
        assert_eq!(code, 3, "{text}");
        let (code, text) = run(&folder, &server, &KEYS, way);
        assert_eq!(code, 0, "{way:?}: {text}");
        let paths: Vec<String> = server.requests().iter().map(|r| r.target.clone()).collect();
        assert!(
            paths.len() >= 2 && paths.iter().all(|path| path.contains("chat/completions")),
            "{way:?}: {paths:?}"
        );
        let first = &journal(&folder)[0]["data"]["model"];
        assert_eq!(
            (&first["name"], &first["scope"], &first["key_variable"]),
            (
                &json!("openai:x"),
                &json!("all_agents"),
                &json!("OPENAI_API_KEY")
            )
        );
    }
}

#[test]
fn without_the_key_nothing_is_recorded_and_the_question_stays_open() {
    let ways: [&[&str]; 4] = [
        &["approvals", "approve", "--all", "-s", "p"],
        &["approvals", "reject", "--all", "-s", "p"],
        &["run", "-s", "p", "--resume", "--approve", "all"],
        &["run", "-s", "p", "something else"],
    ];
    let (folder, server) = asking();
    let begin = ["run", "-m", "openai:x", "-s", "p", "go"];
    assert_eq!(run(&folder, &server, &KEYS, &begin).0, 3);
    let before = journal(&folder);
    for way in ways {
        let other_key = &KEYS[1..];
        let (code, text) = run(&folder, &server, other_key, way);
        assert_eq!(code, 2, "{way:?}: {text}");
        for part in ["openai:x", "OPENAI_API_KEY", "-m "] {
            assert!(text.contains(part), "{way:?}: {part}: {text}");
        }
        assert_eq!(journal(&folder), before, "{way:?}");
    }
    let (_, open) = run(&folder, &server, &[], &["approvals", "list"]);
    assert!(open.contains("write_file a.txt"), "{open}");
    // Without resuming, an answer needs no model.
    let leave = ["approvals", "approve", "--all", "-s", "p", "--no-resume"];
    assert_eq!(run(&folder, &server, &[], &leave).0, 0);
}

#[test]
fn another_model_is_used_only_when_it_is_named_and_that_is_said() {
    let (folder, server) = asking();
    let begin = ["run", "-m", "openai:x", "-s", "p", "go"];
    assert_eq!(run(&folder, &server, &KEYS, &begin).0, 3);
    let other = [
        "approvals",
        "approve",
        "--all",
        "-s",
        "p",
        "-m",
        "anthropic:y",
    ];
    let (code, text) = run(&folder, &server, &KEYS, &other);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("the session ran with openai:x before; it runs with anthropic:y now"),
        "{text}"
    );
    let sets: Vec<Value> = journal(&folder)
        .into_iter()
        .filter(|line| line["kind"] == "set")
        .collect();
    assert_eq!(sets.len(), 1);
    assert_eq!(
        (&sets[0]["data"]["sets"], &sets[0]["data"]["to"]["name"]),
        (&json!("model"), &json!("anthropic:y"))
    );
    // From now on it is the model of the session, whatever the settings say.
    folder.put("agent.yaml", "model: gemini:z\n");
    let (code, text) = run(&folder, &server, &KEYS, &["run", "-s", "p", "more"]);
    assert_eq!(code, 0, "{text}");
    let told = "the session goes on with anthropic:y; the settings name gemini:z";
    assert!(text.contains(told), "{text}");
    assert!(server.last_request().target.contains("messages"));
}

#[test]
fn no_key_is_ever_part_of_a_journal() {
    let (folder, server) = asking();
    folder.put(
        "agent.yaml",
        "model: {name: 'openai:x', api_key: '${OPENAI_API_KEY}', temperature: 0.5}\n",
    );
    assert_eq!(run(&folder, &server, &KEYS, &["run", "-s", "p", "go"]).0, 0);
    let text = folder.read("agents/main/sessions/p.log.jsonl");
    assert!(!text.contains("sk-"), "{text}");
    assert_eq!(
        journal(&folder)[0]["data"]["model"]["settings"],
        json!({"temperature": 0.5})
    );
}

#[test]
fn facts_are_extracted_only_by_a_provider_that_the_session_used() {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You keep notes.\n");
    let server = FakeModel::start_with(|_: &RecordedRequest| reply().text("[]"));
    let private = "my diagnosis is confidential";
    let begin = ["run", "-m", "openai:x", "-s", "private", private];
    assert_eq!(run(&folder, &server, &KEYS, &begin).0, 0);
    let other = ["run", "-m", "anthropic:y", "-s", "public", "hello"];
    assert_eq!(run(&folder, &server, &KEYS, &other).0, 0);
    let before = server.requests().len();
    let (code, text) = run(
        &folder,
        &server,
        &KEYS,
        &["memory", "flush", "-m", "anthropic:y"],
    );
    assert_eq!(code, 0, "{text}");
    let extractions: Vec<RecordedRequest> = server.requests().split_off(before);
    assert!(extractions.len() >= 2, "{}", extractions.len());
    for request in &extractions {
        let told = String::from_utf8_lossy(&request.body).contains(private);
        let is_openai = request.target.contains("chat/completions");
        assert!(!told || is_openai, "{}", request.target);
    }
    let told =
        |request: &&RecordedRequest| String::from_utf8_lossy(&request.body).contains(private);
    assert_eq!(extractions.iter().filter(told).count(), 1);
}
