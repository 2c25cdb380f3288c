//! The place for tests of what opens a chat and of its slash commands: the list of sessions, commands
//! that a workspace defines, and what can be looked at.

use super::screens::{chat_command, screens, scripted};
use super::{CTRL_D, DEADLINE, READING_TIME, leave, opened, stead, workspace};
use insta::assert_snapshot;
use std::path::Path;
use std::process::Command;
use stead_testkit::{FakeModel, Pty, reply};

/// `stead` without a command in a folder.
fn bare(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command
        .args(["--trust", "-C"])
        .arg(dir)
        .env(
            "XDG_CONFIG_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/config"),
        )
        .env(
            "XDG_STATE_HOME",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/state"),
        )
        .env("STEAD_BACKGROUND", "0")
        .env_remove("STEAD_WORKSPACE");
    command
}

#[test]
fn bare_stead_opens_the_chat_on_a_terminal_and_shows_the_help_elsewhere() {
    let dir = scripted(&[("script.yaml", "- text: Hello.\n")]);
    let pty = opened(&bare(dir.path()));
    pty.send("hi\r");
    pty.wait_for("Hello.", DEADLINE);
    leave(pty, CTRL_D);
    let output = bare(dir.path()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), error.contains("Usage: stead")),
        (Some(2), true),
        "{error}"
    );
}

/// A workspace with two sessions of its own.
fn with_sessions(dir: &Path) {
    for (session, input) in [
        ("plants", "water the plants"),
        ("pipes", "call the plumber"),
    ] {
        let output = bare(dir)
            .args(["run", "-s", session, input])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn a_session_is_picked_with_arrow_keys_or_by_typing() {
    let script = [("script.yaml", "- text: Hello.\n- loop: true\n")];
    let shown = screens(&script, |pty, dir| {
        with_sessions(dir);
        pty.send("/sessions\r");
        pty.wait_for("2 sessions; type to filter", DEADLINE);
        pty.send("PLANTS");
        pty.wait_for("1 session with “PLANTS”", DEADLINE);
        pty.send("\r");
        pty.wait_for("plants · scripted", DEADLINE);
        pty.wait_for("› water the plants", DEADLINE);
        pty.send("/sessions\r");
        pty.wait_for("2 sessions; type to filter", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    2 sessions; type to filter
    Up, Down choose · Enter opens · Esc back
    › call the plumber  1 run
      water the plants  1 run

    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    plants
    ");
    assert_snapshot!(shown.large, @r"
    2 sessions; type to filter
    Up, Down choose · Enter opens · Esc back
    › call the plumber  1 run
      water the plants  1 run

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    plants
    ");

    let dir = scripted(&script);
    with_sessions(dir.path());
    let mut command = bare(dir.path());
    command.args(["chat", "--pick"]);
    let pty = Pty::spawn(&command, 24, 80);
    pty.wait_for("2 sessions; type to filter", DEADLINE);
    // The newest is first.
    pty.wait_for("› call the plumber", DEADLINE);
    pty.send("\x1b[B");
    pty.wait_for("› water the plants", DEADLINE);
    pty.send("\r");
    pty.wait_for("plants · scripted", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn commands_of_the_workspace_are_completed_filled_in_and_sent() {
    let dir = workspace(&[
        (
            "commands/review.md",
            "---\ndescription: Review a file\nargument-hint: PATH\n---\nReview $1 with care for $2.\n",
        ),
        (".claude/commands/git/log.md", "Explain the log.\n"),
    ]);
    let server = FakeModel::start_with(|_| reply().text("Done."));
    let mut command = stead(dir.path(), "openai:m", &["chat", "-s", "talk"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    let pty = opened(&command);
    pty.send("/rev");
    pty.wait_for("Review a file", DEADLINE);
    pty.send("\t");
    pty.wait_for("› /review", DEADLINE);
    pty.send("a.rs \"the tests\"\r");
    pty.wait_for("› Review a.rs with care for the tests.", DEADLINE);
    pty.wait_for("Done.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    std::thread::sleep(READING_TIME);
    pty.send("/git:log now\r");
    pty.wait_for("ARGUMENTS: now", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    pty.wait_until("two answers", DEADLINE, |screen| {
        screen.matches("Done.").count() == 2
    });
    pty.send("/help\r");
    pty.wait_for("(.claude/commands/git/log.md)", DEADLINE);
    leave(pty, CTRL_D);
    let said = server.last_request();
    let said: Vec<&str> = said.seen.as_ref().unwrap().user_texts().collect();
    assert_eq!(
        said,
        [
            "Review a.rs with care for the tests.",
            "Explain the log.\n\nARGUMENTS: now"
        ]
    );
}

#[test]
fn changes_are_looked_at_and_undone_and_other_things_are_listed() {
    let script = "- calls: [{tool: edit_file, args: {file_path: notes.md, old_string: milk, new_string: tea}}]\n\
                  - text: Changed.\n";
    let servers = r#"{"mcpServers": {"search": {"command": "search-server"}}}"#;
    let dir = scripted(&[
        ("notes.md", "buy milk\n"),
        ("tools.json", servers),
        ("script.yaml", script),
    ]);
    let pty = Pty::spawn(&chat_command(dir.path()), 50, 100);
    pty.wait_for("›", DEADLINE);
    pty.send("change\r");
    pty.wait_for("Changed.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    pty.send("/diff\r");
    pty.wait_for("  +buy tea", DEADLINE);
    pty.send("/undo\r");
    pty.wait_for("`/undo yes` does it", DEADLINE);
    let read = || std::fs::read_to_string(dir.path().join("notes.md")).unwrap();
    assert_eq!(read(), "buy tea\n");
    pty.send("/undo yes\r");
    pty.wait_for("undone:", DEADLINE);
    assert_eq!(read(), "buy milk\n");
    for (command, shown) in [
        ("/usage\r", "this session  "),
        ("/memory\r", "not merged yet   0 facts"),
        ("/skills\r", "there are no skills"),
        ("/approvals\r", "no question waits"),
        ("/mcp\r", "tool servers are not connected in this version"),
    ] {
        pty.send(command);
        pty.wait_for(shown, DEADLINE);
    }
    assert!(pty.screen().contains("search"), "{}", pty.screen());
    pty.send("/clear\r");
    pty.wait_for("new session s", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn usage_on_a_terminal_has_colours_without_raw_escapes_and_fits_the_width() {
    let dir = scripted(&[("script.yaml", "- text: Hello.\n- loop: true\n")]);
    let output = bare(dir.path()).args(["run", "hi"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    for (columns, no_color) in [(80, false), (80, true), (120, false), (60, false)] {
        for by in ["day", "session", "model"] {
            let mut command = bare(dir.path());
            command.args(["usage", "--by", by]);
            match no_color {
                true => command.env("NO_COLOR", "1"),
                false => command.env_remove("NO_COLOR"),
            };
            let mut pty = Pty::spawn(&command, 24, columns);
            assert_eq!(pty.wait_exit(DEADLINE).code(), Some(0));
            let screen = pty.screen();
            assert!(
                !screen.contains("[36m") && !screen.contains("[0m"),
                "{screen}"
            );
            // Head, one row, total, and what is said of the price; a wrapped line would be one more.
            let lines = screen
                .lines()
                .filter(|line| !line.trim().is_empty())
                .count();
            let most = if columns == 60 { 8 } else { 4 };
            assert!((3..=most).contains(&lines), "{by} {columns}:\n{screen}");
            assert!(!(pty.is_coloured() && no_color), "{screen}");
        }
    }
}

#[test]
fn a_question_that_nobody_looks_at_rings_the_bell_unless_that_is_off() {
    let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: hello}}]\n\
                  - text: Written.\n";
    let files = [
        (
            "agent.yaml",
            "model: scripted:script.yaml\napprovals: {write_file: true}\n",
        ),
        ("script.yaml", script),
    ];
    for (setting, want) in [("on", 1), ("off", 0)] {
        let dir = scripted(&files);
        let mut command = chat_command(dir.path());
        command.env("STEAD_NOTIFICATIONS", setting);
        let pty = opened(&command);
        // The terminal says that its window is no longer looked at.
        pty.send("\x1b[O");
        pty.send("write\r");
        pty.wait_for("y yes · n no", DEADLINE);
        std::thread::sleep(READING_TIME);
        let told = pty
            .raw()
            .matches("\x1b]9;Stead waits for your answer\x07")
            .count();
        assert_eq!(told, want, "{setting}");
        pty.send("\x03");
        pty.wait_gone("y yes · n no", DEADLINE);
    }
}
