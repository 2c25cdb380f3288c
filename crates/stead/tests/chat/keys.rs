//! The place for tests of the keys of `stead chat` beside those of questions: modes, commands of the
//! person, the history, the person's editor, and pasted texts.

use super::screens::{chat_command, screens, scripted};
use super::{CTRL_D, DEADLINE, leave, opened, stead, workspace};
use insta::assert_snapshot;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use stead_testkit::{FakeModel, Pty, reply};

const SHIFT_TAB: &str = "\x1b[Z";
const ESC: &str = "\x1b";
const CTRL_G: &str = "\x07";
const CTRL_R: &str = "\x12";
const UP: &str = "\x1b[A";

fn chat_at(dir: &Path, server: &FakeModel, session: &str) -> Pty {
    let mut command = stead(dir, "openai:m", &["chat", "-s", session]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    opened(&command)
}

fn user_text(server: &FakeModel) -> String {
    let request = server.last_request();
    let seen = request.seen.as_ref().unwrap();
    seen.user_texts().collect::<Vec<_>>().join("\n")
}

#[test]
fn shift_tab_goes_through_the_modes_and_the_footer_shows_them() {
    let script = [("script.yaml", "- text: Hello.\n")];
    let shown = screens(&script, |pty, _| {
        pty.send(SHIFT_TAB);
        pty.wait_for("accept_edits · talk", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    mode accept_edits from now on

    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    accept_edits · talk
    ");
    assert_snapshot!(shown.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    mode accept_edits from now on

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    accept_edits · talk
    ");

    let dir = scripted(&script);
    let pty = opened(&chat_command(dir.path()));
    for mode in ["accept_edits · talk", "explore · talk"] {
        pty.send(SHIFT_TAB);
        pty.wait_for(mode, DEADLINE);
    }
    pty.send(SHIFT_TAB);
    pty.wait_gone("explore · talk", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn a_command_of_the_person_runs_unasked_and_goes_with_the_next_message() {
    let dir = workspace(&[("agent.yaml", "commands: {deny: ['touch *']}\n")]);
    let server = FakeModel::start(vec![reply().text("You said hello.")]);
    let pty = chat_at(dir.path(), &server, "talk");
    pty.send("!echo hello; exit 3\r");
    pty.wait_for("✗ [you] execute echo hello; exit 3 exit code 3", DEADLINE);
    pty.send("!touch made\r");
    pty.wait_for("⊘ [you] execute touch made", DEADLINE);
    assert!(!dir.path().join("made").exists());
    assert_eq!(server.requests().len(), 0, "the model is not asked");
    pty.send("what did I say?\r");
    pty.wait_for("You said hello.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    leave(pty, CTRL_D);
    let said = user_text(&server);
    assert!(
        said.contains("what did I say?")
            && said.contains("Command that the person ran: echo hello; exit 3")
            && said.contains("[exit code 3]\nhello"),
        "{said}"
    );
}

#[test]
fn esc_stops_a_command_of_the_person() {
    let dir = scripted(&[("script.yaml", "- text: Hello.\n")]);
    let pty = opened(&chat_command(dir.path()));
    pty.send("!sleep 60\r");
    pty.wait_for("… [you] execute sleep 60", DEADLINE);
    pty.send(ESC);
    // It may end by itself before the call is given up.
    pty.wait_until("the end of the command", DEADLINE, |screen| {
        ["⊘", "✗"]
            .iter()
            .any(|sign| screen.contains(&format!("{sign} [you] execute sleep 60")))
    });
    leave(pty, CTRL_D);
}

#[test]
fn inputs_of_earlier_chats_are_recalled_and_searched() {
    let dir = workspace(&[]);
    let server = FakeModel::start_with(|request| {
        let about = String::from_utf8_lossy(&request.body);
        let answer = if about.contains("plumber") {
            "Called."
        } else {
            "Watered."
        };
        reply().text(answer)
    });
    let first = chat_at(dir.path(), &server, "one");
    for (text, answer) in [
        ("water the plants\r", "Watered."),
        ("call the plumber\r", "Called."),
    ] {
        first.send(text);
        first.wait_for(answer, DEADLINE);
        first.wait_gone("· step ", DEADLINE);
    }
    first.wait_gone("· step ", DEADLINE);
    leave(first, CTRL_D);

    let second = chat_at(dir.path(), &server, "two");
    second.send(UP);
    second.wait_for("› call the plumber", DEADLINE);
    second.send(UP);
    second.wait_for("› water the plants", DEADLINE);
    second.send("\x15");
    second.send(CTRL_R);
    second.wait_for("search “”: call the plumber", DEADLINE);
    second.send("the");
    second.wait_for("search “the”: call the plumber", DEADLINE);
    second.send(CTRL_R);
    second.wait_for("search “the”: water the plants", DEADLINE);
    second.send("zzz");
    second.wait_for("search “thezzz”: (nothing)", DEADLINE);
    second.send("\x7f\x7f\x7f\r");
    second.wait_gone("search “", DEADLINE);
    second.wait_for("› call the plumber", DEADLINE);
    second.send("\r");
    second.wait_for("Called.", DEADLINE);
    second.wait_gone("· step ", DEADLINE);
    leave(second, CTRL_D);
    assert_eq!(user_text(&server), "call the plumber");
}

#[test]
fn the_history_of_another_folder_is_not_offered() {
    let server = FakeModel::start_with(|_| reply().text("Yes."));
    let here = workspace(&[]);
    let first = chat_at(here.path(), &server, "one");
    first.send("only here\r");
    first.wait_for("Yes.", DEADLINE);
    first.wait_gone("· step ", DEADLINE);
    leave(first, CTRL_D);
    let there = workspace(&[]);
    let second = chat_at(there.path(), &server, "one");
    second.send(UP);
    second.send("typed");
    second.wait_for("› typed", DEADLINE);
    assert!(!second.screen().contains("only here"));
    leave(second, "\x15\x04");
}

#[test]
fn the_input_is_written_in_the_persons_editor() {
    let dir = workspace(&[]);
    let editor = dir.path().join("editor.sh");
    std::fs::write(
        &editor,
        "#!/bin/sh\nread -r key\nprintf ' and %s\\nmore' \"$key\" >> \"$1\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    for (session, keys) in [("one", CTRL_G), ("two", "\x18\x05")] {
        let server = FakeModel::start_with(|_| reply().text("Yes."));
        let mut command = stead(dir.path(), "openai:m", &["chat", "-s", session]);
        command
            .env("OPENAI_BASE_URL", server.openai_url())
            .env("OPENAI_API_KEY", "k")
            .env_remove("VISUAL")
            .env("EDITOR", &editor);
        let pty = opened(&command);
        pty.send("half");
        pty.wait_for("› half", DEADLINE);
        pty.send(keys);
        pty.wait_until("the editor has the terminal", DEADLINE, |screen| {
            !screen.contains("› half")
        });
        // These keys are for the editor.
        pty.send("typed there\r");
        pty.wait_for("› half and typed there", DEADLINE);
        pty.wait_for("  more", DEADLINE);
        pty.send("\r");
        pty.wait_for("Yes.", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
        assert!(user_text(&server).ends_with("half and typed there\nmore"));
        leave(pty, CTRL_D);
    }
}

#[test]
fn a_long_paste_is_a_label_on_the_screen_and_sent_whole() {
    let lines: String = (1..=214).map(|line| format!("log line {line}\n")).collect();
    let paste = format!("\x1b[200~{lines}\x1b[201~");
    let shown = screens(&[("script.yaml", "- text: Long.\n")], |pty, _| {
        pty.send("look: ");
        pty.wait_for("› look:", DEADLINE);
        pty.send(&paste);
        pty.wait_for("› look: [pasted 214 lines]", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    ────────────────────────────────────────────────────────────────────────────────
    › look: [pasted 214 lines]
    ────────────────────────────────────────────────────────────────────────────────
    talk
    ");
    assert_snapshot!(shown.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    › look: [pasted 214 lines]
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    talk
    ");

    let dir = workspace(&[]);
    let server = FakeModel::start_with(|_| reply().text("Long."));
    let pty = chat_at(dir.path(), &server, "talk");
    pty.send("look: ");
    pty.wait_for("› look:", DEADLINE);
    pty.send(&paste);
    pty.wait_for("› look: [pasted 214 lines]", DEADLINE);
    // A label is removed with one key.
    pty.send("\x7f");
    pty.wait_gone("[pasted", DEADLINE);
    pty.send(&paste);
    pty.wait_for("› look: [pasted 214 lines]", DEADLINE);
    pty.send("\r");
    pty.wait_for("Long.", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    pty.wait_for("more rows", DEADLINE);
    leave(pty, CTRL_D);
    let said = user_text(&server);
    assert!(
        said.contains("look: log line 1\n") && said.contains("log line 214"),
        "{} bytes",
        said.len()
    );
}
