//! The place for tests of what tool calls show: changes of files, the output of running commands,
//! and the calls of subagents.

use super::screens::{screens, scripted};
use super::{CTRL_O, DEADLINE, stead, workspace};
use insta::assert_snapshot;
use serde_json::json;
use stead_testkit::{FakeModel, Pty, RequestTurn, reply};

const NOTES: &str = "# Notes\n\nbuy milk\nbuy bread\ncall Ann\n";

#[test]
fn an_edit_is_shown_as_a_diff_and_a_long_one_is_folded_until_ctrl_o() {
    let lines: String = (1..=40).map(|line| format!("line {line}\\n")).collect();
    let script = format!(
        "- calls: [{{tool: edit_file, args: {{file_path: notes.md, old_string: buy milk, new_string: buy oat milk}}}}]\n\
         - calls: [{{tool: write_file, args: {{file_path: long.txt, content: \"{lines}\"}}}}]\n\
         - text: Changed.\n"
    );
    let files = [("notes.md", NOTES), ("script.yaml", &*script)];
    let folded = screens(&files, |pty, _| {
        pty.send("change\r");
        pty.wait_for("Changed.", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
    });
    assert_snapshot!(folded.small, @r"
      │ -buy milk
      │ +buy oat milk
      │  buy bread
      │  call Ann
    ✓ write_file long.txt N ms  Ctrl-O
      │ @@ -0,0 +1,40 @@
      │ +line 1
      │ +line 2
      │ +line 3
      │ +line 4
      │ +line 5
      │ +line 6
      │ +line 7
      │ +line 8
      │ +line 9
      │ +line 10
      │ +line 11
      │ … 29 more rows, Ctrl-O

    Changed.
    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    talk
    ");
    assert_snapshot!(folded.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › change

    ✓ edit_file notes.md N ms
      │ @@ -1,5 +1,5 @@
      │  # Notes
      │
      │ -buy milk
      │ +buy oat milk
      │  buy bread
      │  call Ann
    ✓ write_file long.txt N ms  Ctrl-O
      │ @@ -0,0 +1,40 @@
      │ +line 1
      │ +line 2
      │ +line 3
      │ +line 4
      │ +line 5
      │ +line 6
      │ +line 7
      │ +line 8
      │ +line 9
      │ +line 10
      │ +line 11
      │ … 29 more rows, Ctrl-O

    Changed.

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    talk
    ");

    let dir = scripted(&files);
    let pty = Pty::spawn(&super::screens::chat_command(dir.path()), 70, 80);
    pty.wait_for("›", DEADLINE);
    pty.send("change\r");
    pty.wait_for("Changed.", DEADLINE);
    pty.wait_for("… 29 more rows, Ctrl-O", DEADLINE);
    assert!(!pty.screen().contains("line 40"), "{}", pty.screen());
    pty.send(CTRL_O);
    pty.wait_for("+line 40", DEADLINE);
    pty.send(CTRL_O);
    pty.wait_gone("+line 40", DEADLINE);
    super::leave(pty, super::CTRL_D);

    // The conversation is shown again with what the arguments tell.
    let again = Pty::spawn(&super::screens::chat_command(dir.path()), 70, 80);
    again.wait_for("-buy milk", DEADLINE);
    again.wait_for("+buy oat milk", DEADLINE);
    super::leave(again, super::CTRL_D);
}

#[test]
fn details_show_arguments_in_the_order_of_the_tool() {
    let script = "- calls: [{tool: edit_file, args: {new_string: oat milk, old_string: buy milk, file_path: notes.md}}]\n\
                  - text: Changed.\n";
    let dir = scripted(&[("notes.md", NOTES), ("script.yaml", script)]);
    let pty = Pty::spawn(&super::screens::chat_command(dir.path()), 40, 80);
    pty.wait_for("›", DEADLINE);
    pty.send("change\r");
    pty.wait_for("Changed.", DEADLINE);
    pty.send(CTRL_O);
    pty.wait_until("the arguments in order", DEADLINE, |screen| {
        let at = |text: &str| screen.find(text).unwrap_or(usize::MAX);
        at("│ file_path: notes.md") < at("│ old_string: buy milk")
            && at("│ old_string: buy milk") < at("│ new_string: oat milk")
            && at("│ new_string: oat milk") < usize::MAX
    });
    super::leave(pty, super::CTRL_D);
}

/// A workspace whose model runs a command that waits for the file `go`.
fn waiting_command() -> [(&'static str, &'static str); 2] {
    [
        (
            "agent.yaml",
            "model: scripted:script.yaml\npermission_mode: bypass\n",
        ),
        (
            "script.yaml",
            "- calls: [{tool: execute, args: {command: 'for i in 1 2 3 4 5 6 7; do echo row $i; done; while [ ! -e go ]; do sleep 0.05; done; echo last'}}]\n\
             - text: It ran.\n",
        ),
    ]
}

#[test]
fn the_output_of_a_command_is_shown_while_it_runs() {
    let shown = screens(&waiting_command(), |pty, _| {
        pty.send("run\r");
        pty.wait_for("│ row 7", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › run

    … execute for i in 1 2 3 4 5 6 7; do echo row $i; done; while [ ! -e go ]; do s…
      │ row 3
      │ row 4
      │ row 5
      │ row 6
      │ row 7

    ⠋ running tools · step 1 · N ms · Esc stops
    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    bypass · talk
    ");
    assert_snapshot!(shown.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › run

    … execute for i in 1 2 3 4 5 6 7; do echo row $i; done; while [ ! -e go ]; do sleep 0.05; done; echo l…   Ctrl-O
      │ row 3
      │ row 4
      │ row 5
      │ row 6
      │ row 7

    ⠋ running tools · step 1 · N ms · Esc stops
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    bypass · talk
    ");

    let dir = scripted(&waiting_command());
    let pty = Pty::spawn(&super::screens::chat_command(dir.path()), 24, 80);
    pty.wait_for("›", DEADLINE);
    pty.send("run\r");
    pty.wait_for("│ row 7", DEADLINE);
    std::fs::write(dir.path().join("go"), "").unwrap();
    pty.wait_for("It ran.", DEADLINE);
    pty.wait_gone("│ row 7", DEADLINE);
    super::leave(pty, super::CTRL_D);
}

#[test]
fn a_run_on_a_terminal_shows_output_as_it_comes_and_changes_as_diffs() {
    let dir = scripted(&waiting_command());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_stead"));
    command
        .args(["run", "-s", "talk", "--trust", "go", "-C"])
        .arg(dir.path())
        .env("STEAD_BACKGROUND", "0")
        .env_remove("STEAD_WORKSPACE");
    let mut pty = Pty::spawn(&command, 24, 80);
    pty.wait_for("  │ row 7", DEADLINE);
    assert!(!pty.screen().contains("│ last"), "{}", pty.screen());
    std::fs::write(dir.path().join("go"), "").unwrap();
    pty.wait_for("It ran.", DEADLINE);
    assert_eq!(pty.wait_exit(DEADLINE).code(), Some(0));
    assert!(pty.screen().contains("  │ last"), "{}", pty.screen());
}

#[test]
fn lines_of_subagents_say_who_and_what_and_show_their_changes() {
    let dir = workspace(&[
        ("AGENTS.md", "You lead."),
        (
            "subagents/writer.md",
            "---\ndescription: writes\n---\nYou write.\n",
        ),
    ]);
    let server = FakeModel::start_with(|request| {
        let seen = request.seen.as_ref().unwrap();
        let results = seen
            .turns
            .iter()
            .filter(|turn| matches!(turn, RequestTurn::Result { .. }))
            .count();
        match (seen.system.contains("You write."), results) {
            (false, 0) => reply().call(
                "task",
                json!({"agent": "writer", "description": "greet Ann", "prompt": "write it"}),
            ),
            (false, _) => reply().text("All done."),
            (true, 0) => reply().call(
                "write_file",
                json!({"file_path": "hello.txt", "content": "Hello Ann\n"}),
            ),
            (true, _) => reply().text("Written."),
        }
    });
    let mut command = stead(dir.path(), "openai:m", &["chat", "-s", "talk"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    let pty = Pty::spawn(&command, 30, 90);
    pty.wait_for("›", DEADLINE);
    pty.send("go\r");
    pty.wait_for("All done.", DEADLINE);
    let screen = pty.screen();
    for shown in [
        "✓ task writer greet Ann",
        "✓ [writer] write_file hello.txt",
        "│ +Hello Ann",
    ] {
        assert!(screen.contains(shown), "{shown:?} in\n{screen}");
    }
    super::leave(pty, super::CTRL_D);
}
