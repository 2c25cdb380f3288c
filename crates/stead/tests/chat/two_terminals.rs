//! The place for tests of one session in two terminals: a chat sees what happens elsewhere, its
//! questions are answered elsewhere, and what is typed survives the process.

use super::{CTRL_C, CTRL_D, DEADLINE, leave, opened, stead, workspace};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Output};
use stead_testkit::{FakeModel, Pty, RecordedRequest, latch, reply};

fn pointed(mut command: Command, server: &FakeModel) -> Command {
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    command
}

fn chat(dir: &Path, server: &FakeModel) -> Pty {
    opened(&pointed(
        stead(dir, "openai:m", &["chat", "-s", "talk"]),
        server,
    ))
}

/// Runs a command in another terminal to its end.
fn elsewhere(dir: &Path, server: &FakeModel, args: &[&str]) -> Output {
    let output = pointed(stead(dir, "openai:m", args), server)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    output
}

/// The first request is answered with a call, later ones with a text.
fn asks_to_write(request: &RecordedRequest) -> stead_testkit::FakeAnswer {
    match request.result_count() {
        0 => reply().call("write_file", json!({"file_path": "a.txt", "content": "y"})),
        _ => reply().text("Written."),
    }
}

#[test]
fn a_question_shown_in_a_chat_is_answered_from_another_terminal() {
    let dir = workspace(&[("agent.yaml", "approvals: {write_file: true}\n")]);
    let server = FakeModel::start_with(asks_to_write);
    let pty = chat(dir.path(), &server);
    pty.send("go\r");
    pty.wait_for("allow write_file a.txt?", DEADLINE);
    let approve = ["approvals", "approve", "--all", "-s", "talk", "--by", "ann"];
    let told = elsewhere(dir.path(), &server, &approve);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(
        told.contains("approve by ann") && told.contains("continues in the process"),
        "{told}"
    );
    pty.wait_for("Written.", DEADLINE);
    assert!(
        !pty.screen().contains("allow write_file"),
        "{}",
        pty.screen()
    );
    assert!(dir.path().join("a.txt").exists());
    leave(pty, CTRL_D);
}

#[test]
fn the_question_of_a_subagent_is_answered_from_another_terminal() {
    let dir = workspace(&[
        ("agent.yaml", "approvals: {write_file: true}\n"),
        (
            "subagents/writer.md",
            "---\ndescription: writes\n---\nYou write.\n",
        ),
    ]);
    let server = FakeModel::start_with(|request: &RecordedRequest| {
        let is_child = String::from_utf8_lossy(&request.body).contains("You write.");
        match (is_child, request.result_count()) {
            (true, _) => asks_to_write(request),
            (false, 0) => reply().call("task", json!({"agent": "writer", "prompt": "write it"})),
            (false, _) => reply().text("All done."),
        }
    });
    let pty = chat(dir.path(), &server);
    pty.send("go\r");
    pty.wait_for("allow write_file a.txt?", DEADLINE);
    let listed = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["approvals", "list", "--json", "-C"])
        .arg(dir.path())
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let asking = listed[0]["session"].as_str().unwrap().to_owned();
    assert_ne!(asking, "talk");
    let approve = ["approvals", "approve", "--all", "-s", &asking];
    elsewhere(dir.path(), &server, &approve);
    pty.wait_for("All done.", DEADLINE);
    let child = dir
        .path()
        .join(format!("agents/main/sessions/{asking}.log.jsonl"));
    let journal = std::fs::read_to_string(child).unwrap();
    assert!(journal.contains("\"approved\":true"), "{journal}");
    leave(pty, CTRL_D);
}

#[test]
fn a_chat_sees_the_run_of_another_process_as_it_happens() {
    let dir = workspace(&[]);
    let held = latch();
    let held_there = held.clone();
    let server = FakeModel::start_with(move |request: &RecordedRequest| match request.index {
        0 => reply().text("Good morning."),
        1 => reply().call("ls", json!({})),
        _ => reply().text("Seen elsewhere.").held_by(&held_there),
    });
    let pty = chat(dir.path(), &server);
    pty.send("hello\r");
    pty.wait_for("Good morning.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    let args = ["run", "-s", "talk", "look around"];
    let other = pointed(stead(dir.path(), "openai:m", &args), &server)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    pty.wait_for("› look around", DEADLINE);
    pty.wait_for("✓ ls", DEADLINE);
    held.wait_arrived(1, DEADLINE);
    held.release();
    pty.wait_for("Seen elsewhere.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    assert!(other.wait_with_output().unwrap().status.success());
    leave(pty, CTRL_D);
}

#[test]
fn what_was_typed_in_a_chat_that_was_killed_is_there_when_the_session_is_opened_again() {
    let dir = workspace(&[]);
    let held = latch();
    let held_there = held.clone();
    let server = FakeModel::start_with(move |request: &RecordedRequest| match request.index {
        0 => reply().text("never").held_by(&held_there),
        _ => reply().text("Answered."),
    });
    let mut first = chat(dir.path(), &server);
    first.send("one\r");
    held.wait_arrived(1, DEADLINE);
    first.send("two, typed during the run\r");
    first.wait_for("queued (collect): two, typed", DEADLINE);
    let killed = Command::new("kill")
        .args(["-KILL", &first.pid().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    first.wait_exit(DEADLINE);
    held.release();
    let again = chat(dir.path(), &server);
    again.wait_for("the last run did not end; /resume resumes it", DEADLINE);
    again.wait_for("queued (collect): two, typed", DEADLINE);
    again.send("/resume\r");
    again.wait_until("both are answered", DEADLINE, |screen| {
        screen.matches("Answered.").count() == 2
    });
    let last = server.requests().last().unwrap().clone();
    let texts: Vec<String> = last.seen.unwrap().user_texts().map(str::to_owned).collect();
    assert_eq!(texts, ["one", "two, typed during the run"]);
    leave(again, CTRL_C);
}
