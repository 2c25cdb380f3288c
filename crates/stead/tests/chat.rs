//! The place for tests of `stead chat` on a pseudo-terminal: streaming, keys, cancellation,
//! approvals, slash commands and completion.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test by panicking"
)]

#[path = "chat/commands.rs"]
mod commands;
#[path = "chat/edits_and_output.rs"]
mod edits_and_output;
#[path = "chat/keys.rs"]
mod keys;
#[path = "chat/picture.rs"]
mod picture;
#[path = "chat/screens.rs"]
mod screens;
#[path = "chat/steering.rs"]
mod steering;
#[path = "chat/stopping.rs"]
mod stopping;
#[path = "chat/two_terminals.rs"]
mod two_terminals;

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use stead_testkit::{FakeModel, Pty, hang, reply};
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_secs(20);
/// The time after a question has appeared in which keys are text, and a little more.
const READING_TIME: Duration = Duration::from_millis(700);
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_O: &str = "\x0f";
/// What a terminal gets when the alternate screen is left.
const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

/// A folder that is an agent, with these files.
fn workspace(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.yaml"), "{}\n").unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    dir
}

fn stead(dir: &Path, model: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command
        .args(args)
        .arg("--trust")
        .arg("-C")
        .arg(dir)
        .args(["-m", model])
        .env(
            "XDG_CONFIG_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/config"),
        )
        .env(
            "XDG_STATE_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/state"),
        )
        .env("STEAD_BACKGROUND", "0")
        .env_remove("NO_COLOR")
        .env_remove("STEAD_WORKSPACE");
    command
}

/// A chat in the workspace with a scripted model, ready for input.
fn chat(dir: &Path, script: &str) -> Pty {
    std::fs::write(dir.join("script.yaml"), script).unwrap();
    let model = format!("scripted:{}", dir.join("script.yaml").display());
    opened(&stead(dir, &model, &["chat", "-s", "talk"]))
}

fn opened(command: &Command) -> Pty {
    let pty = Pty::spawn(command, 24, 80);
    pty.wait_for("› ", DEADLINE);
    pty
}

/// Leaves an idle prompt and checks that the terminal is as it was.
fn leave(mut pty: Pty, keys: &str) {
    pty.wait_gone("· step ", DEADLINE);
    pty.send(keys);
    assert_eq!(pty.wait_exit(DEADLINE).code(), Some(0), "{}", pty.screen());
    assert!(pty.raw().contains(LEAVE_ALTERNATE_SCREEN));
    assert!(pty.raw().contains("\x1b[?25h"), "the cursor is shown again");
}

#[test]
fn a_message_is_answered_piece_by_piece_and_the_footer_counts() {
    let dir = workspace(&[]);
    let script = "- text: \"Hello **there**, friend of the house.\"\n  chunk: 5\n  delay_ms: 150\n  \
                  usage: {input_tokens: 1200, output_tokens: 34}\n";
    let pty = chat(dir.path(), script);
    pty.send("hi\r");
    pty.wait_for("answering · step 1", DEADLINE);
    pty.wait_until("a part of the answer", DEADLINE, |screen| {
        screen.contains("Hello") && !screen.contains("house")
    });
    pty.wait_for("Hello there, friend of the house.", DEADLINE);
    pty.wait_for("1200 in, 34 out · cost unknown", DEADLINE);
    assert!(
        pty.screen().contains("talk · scripted:"),
        "{}",
        pty.screen()
    );
    pty.wait_gone("step 1", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn ctrl_c_cancels_a_hanging_answer_the_chat_stays_usable_and_the_session_resumable() {
    let dir = workspace(&[]);
    let server = FakeModel::start(vec![hang(), reply().text("Second answer."), hang()]);
    let mut command = stead(dir.path(), "openai:m", &["chat", "-s", "talk"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    let pty = opened(&command);
    pty.send("first\r");
    pty.wait_until("the first request", DEADLINE, |_| {
        server.requests().len() == 1
    });
    pty.wait_for("waiting for the model · step 1", DEADLINE);
    pty.send(CTRL_C);
    pty.wait_for("cancelled; /resume resumes it", DEADLINE);
    pty.wait_gone("step 1", DEADLINE);
    pty.send("/resume\r");
    pty.wait_for("Second answer.", DEADLINE);
    pty.wait_gone("step 1", DEADLINE);
    pty.send("third\r");
    pty.wait_until("the third request", DEADLINE, |_| {
        server.requests().len() == 3
    });
    // The second of them comes while the first is still being carried out, or finds an idle prompt.
    pty.send(CTRL_C);
    pty.wait_for("cancel", DEADLINE);
    pty.send(CTRL_C);
    let mut pty = pty;
    let code = pty.wait_exit(DEADLINE).code();
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
    assert!(pty.raw().contains(LEAVE_ALTERNATE_SCREEN));

    let again = opened(&command);
    again.wait_for("› third", DEADLINE);
    again.wait_for("the last run did not end; /resume resumes it", DEADLINE);
    leave(again, CTRL_C);
}

#[test]
fn termination_cancels_the_run_and_restores_the_terminal() {
    let dir = workspace(&[]);
    let mut pty = chat(
        dir.path(),
        "- text: \"slow slow slow\"\n  chunk: 1\n  delay_ms: 2000\n",
    );
    pty.send("go\r");
    pty.wait_for("waiting for the model", DEADLINE);
    let kill = Command::new("kill")
        .args(["-TERM", &pty.pid().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(pty.wait_exit(DEADLINE).code(), Some(130));
    assert!(pty.raw().contains(LEAVE_ALTERNATE_SCREEN));
    let journal = std::fs::read_to_string(
        dir.path()
            .join("agents")
            .join(agent(dir.path()))
            .join("sessions/talk.log.jsonl"),
    );
    assert!(journal.unwrap().contains("\"cancelled\""));
}

#[test]
fn a_tool_call_is_one_line_that_ctrl_o_expands() {
    let dir = workspace(&[("notes.md", "buy milk\n")]);
    let script =
        "- calls: [{tool: read_file, args: {file_path: notes.md}}]\n- text: Milk is needed.\n";
    let pty = chat(dir.path(), script);
    pty.send("what is to do?\r");
    pty.wait_for("Milk is needed.", DEADLINE);
    pty.wait_for("✓ read_file notes.md", DEADLINE);
    assert!(!pty.screen().contains("buy milk"), "{}", pty.screen());
    pty.send(CTRL_O);
    pty.wait_for("│ file_path: notes.md", DEADLINE);
    pty.wait_for("buy milk", DEADLINE);
    pty.send(CTRL_O);
    pty.wait_gone("buy milk", DEADLINE);
    leave(pty, "/quit\r");
}

#[test]
fn slash_commands_show_and_change_the_session() {
    let dir = workspace(&[]);
    let pty = chat(dir.path(), "- text: Answer.\n- loop: true\n");
    pty.send("one\r");
    pty.wait_for("Answer.", DEADLINE);
    pty.wait_gone("step 1", DEADLINE);
    pty.send("/status\r");
    pty.wait_for("turns    1", DEADLINE);
    pty.wait_for("sessions/talk.log.jsonl", DEADLINE);
    pty.send("/rewind\r");
    pty.wait_for("  1  one", DEADLINE);
    pty.send("/rewind 1\r");
    pty.wait_for("continues before turn 1: one", DEADLINE);
    pty.wait_gone("Answer.", DEADLINE);
    pty.send("/stauts\r");
    pty.wait_for("did you mean /status?", DEADLINE);
    pty.send("/model nowhere:x\r");
    pty.wait_for("nowhere", DEADLINE);
    pty.send("/new\r");
    pty.wait_for("new session s", DEADLINE);
    pty.send("two\r");
    pty.wait_for("Answer.", DEADLINE);
    pty.wait_gone("step 1", DEADLINE);
    pty.send("/sessions\r");
    pty.wait_for("2 sessions; type to filter", DEADLINE);
    pty.send("\x1b");
    pty.wait_gone("2 sessions", DEADLINE);
    pty.send("/sessions nobody\r");
    pty.wait_for("nobody", DEADLINE);
    leave(pty, CTRL_C);
}

#[test]
fn commands_and_paths_are_completed_and_a_path_attaches_its_file() {
    let dir = workspace(&[("docs/plan.md", "the plan\n")]);
    let script = "- expect: {last_contains: the plan}\n  text: A fine plan.\n";
    let pty = chat(dir.path(), script);
    pty.send("/st");
    pty.wait_for("session, model, tokens, cost, journal", DEADLINE);
    pty.send("\t");
    pty.wait_for("› /status", DEADLINE);
    pty.send("\x15see @");
    pty.wait_for("@docs/", DEADLINE);
    pty.send("pla");
    pty.wait_for("@docs/plan.md", DEADLINE);
    pty.send("\t");
    pty.wait_for("› see @docs/plan.md", DEADLINE);
    pty.send("\r");
    pty.wait_for("A fine plan.", DEADLINE);
    pty.wait_for("Attached file docs/plan.md", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn a_key_allows_calls_for_good_and_another_parks_them() {
    let dir = workspace(&[(
        "agent.yaml",
        "approvals: {write_file: true, edit_file: true}\n",
    )]);
    let script = "- calls: [{tool: write_file, args: {file_path: docs/a.txt, content: hello}}]\n\
                  - calls: [{tool: write_file, args: {file_path: docs/b.txt, content: hello}}]\n\
                  - text: Both written.\n\
                  - calls: [{tool: edit_file, args: {file_path: docs/b.txt, old_string: hello, new_string: bye}}]\n\
                  - text: Edited.\n";
    let pty = chat(dir.path(), script);
    pty.send("write\r");
    pty.wait_for("+++ b/docs/a.txt", DEADLINE);
    pty.wait_for("A always (in docs/)", DEADLINE);
    std::thread::sleep(READING_TIME);
    pty.send("A");
    pty.wait_for("allow write_file in docs/ for good?", DEADLINE);
    pty.send("y");
    pty.wait_for("Both written.", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    pty.send("edit\r");
    pty.wait_for("+bye", DEADLINE);
    std::thread::sleep(READING_TIME);
    pty.send("l");
    pty.wait_for("parked", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("docs/b.txt")).unwrap(),
        "hello"
    );
    leave(pty, CTRL_D);
}

#[test]
fn a_call_that_asks_is_answered_with_one_key() {
    let dir = workspace(&[("agent.yaml", "approvals: {write_file: true}\n")]);
    let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: hello}}]\n\
                  - text: Written.\n\
                  - calls: [{tool: write_file, args: {file_path: b.txt, content: hello}}]\n\
                  - expect: {tool_result_contains: not there}\n  text: Not written.\n";
    let pty = chat(dir.path(), script);
    pty.send("write\r");
    pty.wait_for("y yes · n no · A always", DEADLINE);
    assert!(!dir.path().join("a.txt").exists());
    std::thread::sleep(READING_TIME);
    pty.send("y");
    pty.wait_for("Written.", DEADLINE);
    pty.wait_for("✓ write_file a.txt", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    assert_eq!(
        std::fs::read_to_string(dir.path().join("a.txt")).unwrap(),
        "hello"
    );
    pty.send("again\r");
    pty.wait_for("allow write_file b.txt?", DEADLINE);
    std::thread::sleep(READING_TIME);
    pty.send("n");
    pty.wait_for("no: write why", DEADLINE);
    pty.send("not there\r");
    pty.wait_for("no: not there", DEADLINE);
    pty.wait_for("Not written.", DEADLINE);
    pty.wait_for("⊘ write_file b.txt", DEADLINE);
    assert!(!dir.path().join("b.txt").exists());
    pty.wait_gone("step", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn input_during_a_run_is_queued_and_a_tiny_screen_is_survived() {
    let dir = workspace(&[]);
    let script = "- text: \"first answer\"\n  chunk: 6\n  delay_ms: 1500\n- expect: {last_contains: later}\n  text: second answer\n";
    let pty = chat(dir.path(), script);
    pty.send("now\r");
    pty.wait_for("step 1", DEADLINE);
    pty.send("later\x0aline two\r");
    pty.wait_for("queued (collect): later line two", DEADLINE);
    pty.resize(3, 10);
    pty.resize(24, 80);
    pty.wait_for("second answer", DEADLINE);
    pty.wait_for("  line two", DEADLINE);
    pty.wait_gone("queued", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn an_earlier_conversation_is_shown_on_start() {
    let dir = workspace(&[("notes.md", "x\n")]);
    let script = "- calls: [{tool: read_file, args: {file_path: notes.md}}]\n- text: \"# Report\\n\\nAll **well**.\"\n";
    let first = chat(dir.path(), script);
    first.send("report\r");
    first.wait_for("All well.", DEADLINE);
    first.wait_gone("step", DEADLINE);
    leave(first, CTRL_D);
    let second = chat(dir.path(), script);
    for shown in ["› report", "✓ read_file notes.md", "Report", "All well."] {
        second.wait_for(shown, DEADLINE);
    }
    // The history has come with it.
    second.send("\x1b[A");
    second.wait_until("the earlier input", DEADLINE, |screen| {
        screen.matches("› report").count() == 2
    });
    leave(second, "\x03\x03");
}

#[test]
fn without_a_terminal_it_points_to_run() {
    let dir = workspace(&[]);
    let output = stead(dir.path(), "scripted:x", &["chat"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), error.contains("use: stead run")),
        (Some(2), true),
        "{error}"
    );
}

fn agent(dir: &Path) -> String {
    let mut agents = std::fs::read_dir(dir.join("agents")).unwrap();
    agents
        .next()
        .unwrap()
        .unwrap()
        .file_name()
        .into_string()
        .unwrap()
}

#[test]
fn a_sentence_in_which_a_question_appears_allows_nothing() {
    let dir = workspace(&[("agent.yaml", "approvals: {write_file: true}\n")]);
    let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: hello}}]\n\
                  - text: Done.\n";
    let pty = chat(dir.path(), script);
    pty.send("write\r");
    pty.wait_for("allow write_file a.txt?", DEADLINE);
    std::thread::sleep(READING_TIME);
    pty.send("actually do not write that");
    pty.wait_for("› actually do not write that", DEADLINE);
    pty.wait_for("allow write_file a.txt?", DEADLINE);
    assert!(!dir.path().join("a.txt").exists());
    // Ctrl-C cancels the run.
    pty.send(CTRL_C);
    pty.wait_gone("allow write_file", DEADLINE);
    assert!(!dir.path().join("a.txt").exists());
    pty.send("\x15");
    leave(pty, CTRL_D);
}
