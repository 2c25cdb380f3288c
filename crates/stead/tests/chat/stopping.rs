//! The place for tests of stopping a run in `stead chat`: what was said before stays.

use super::screens::{screens, scripted};
use super::{CTRL_C, CTRL_D, DEADLINE, leave, opened, stead, workspace};
use insta::assert_snapshot;
use std::path::Path;
use std::process::Command;
use stead_core::Usage;
use stead_testkit::{FakeModel, Pty, RecordedRequest, RequestTurn, reply};

const ESC: &str = "\x1b";
const NOTE: &str = "[Your answer above was cut off: the person stopped the run.]";

/// A long answer, a few words at a time.
fn slow() -> stead_testkit::FakeAnswer {
    let words = "The first idea is to wait. ".repeat(200);
    let usage = Usage {
        input_tokens: 1_234,
        output_tokens: 4_321,
        ..Usage::default()
    };
    reply().text(words).usage(usage).chunks_of(120).pause_ms(30)
}

fn shown(dir: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["sessions", "show", "talk", "-C"])
        .arg(dir)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What the model and the person said, as the model is shown it.
fn said(request: &RecordedRequest) -> Vec<String> {
    let turns = &request.seen.as_ref().unwrap().turns;
    let text = |turn: &RequestTurn| match turn {
        RequestTurn::User(text) | RequestTurn::Assistant { text, .. } => text.clone(),
        RequestTurn::Result { text, .. } => text.clone(),
    };
    turns.iter().map(text).collect()
}

fn chat_at(dir: &Path, model: &str, server: &FakeModel) -> Pty {
    let mut command = stead(dir, model, &["chat", "-s", "talk"]);
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", server.base_url())
        .env("ANTHROPIC_API_KEY", "k");
    opened(&command)
}

#[test]
fn what_was_said_before_a_stop_is_kept_shown_and_sent_marked_as_cut_off() {
    for (model, key) in [("openai:m", ESC), ("anthropic:m", CTRL_C)] {
        let dir = workspace(&[]);
        let server = FakeModel::start(vec![slow(), reply().text("The second idea.")]);
        let pty = chat_at(dir.path(), model, &server);
        pty.send("ideas?\r");
        pty.wait_for("The first idea", DEADLINE);
        pty.send(key);
        pty.wait_for("cancelled; /resume resumes it", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
        // The end is told before the session is released.
        std::thread::sleep(2 * super::READING_TIME);
        assert!(pty.screen().contains("The first idea"), "{}", pty.screen());
        let shown = shown(dir.path());
        assert!(
            shown.contains("The first idea") && shown.contains(NOTE),
            "{shown}"
        );
        pty.send("no, the second\r");
        pty.wait_for("The second idea.", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
        leave(pty, CTRL_D);
        assert_eq!(server.rejections(), Vec::new());
        let said = said(&server.last_request());
        assert_eq!(said[0], "ideas?");
        assert!(
            said[1].starts_with("The first idea") && said[1].len() < 27 * 200,
            "{said:?}"
        );
        let after = said[2..].join("\n");
        let (note, input) = (after.find(NOTE), after.find("no, the second"));
        assert!(note.is_some() && note < input, "{said:?}");
    }
}

#[test]
fn tokens_that_a_provider_counted_before_the_stop_are_in_the_usage() {
    let dir = workspace(&[]);
    let server = FakeModel::start(vec![slow()]);
    let pty = chat_at(dir.path(), "anthropic:m", &server);
    pty.send("ideas?\r");
    pty.wait_for("The first idea", DEADLINE);
    pty.send(ESC);
    pty.wait_for("cancelled; /resume resumes it", DEADLINE);
    pty.wait_for("1234 in, ", DEADLINE);
    leave(pty, CTRL_D);
    let output = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["usage", "--json", "-C"])
        .arg(dir.path())
        .output()
        .unwrap();
    let usage = String::from_utf8(output.stdout).unwrap();
    assert!(usage.contains("\"input_tokens\":1234"), "{usage}");
}

#[test]
fn esc_without_a_run_changes_nothing() {
    let dir = scripted(&[("script.yaml", "- text: Hello.\n")]);
    let pty = opened(&super::screens::chat_command(dir.path()));
    pty.send("half a sen");
    pty.wait_for("› half a sen", DEADLINE);
    pty.send(ESC);
    // A letter right after it would be Alt with this letter.
    std::thread::sleep(super::READING_TIME);
    pty.send("tence\r");
    pty.wait_for("› half a sentence", DEADLINE);
    pty.wait_for("Hello.", DEADLINE);
    leave(pty, CTRL_D);
}

#[test]
fn a_stopped_answer_stays_on_the_screen() {
    let script = "- text: \"One. Two. Three. Four. Five. Six. Seven. Eight.\"\n  chunk: 5\n  delay_ms: 400\n";
    let shown = screens(&[("script.yaml", script)], |pty, _| {
        pty.send("count\r");
        pty.wait_for("One. Two.", DEADLINE);
        pty.send(ESC);
        pty.wait_for("cancelled; /resume resumes it", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › count

    One. Two.

    cancelled; /resume resumes it

    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    talk
    ");
    assert_snapshot!(shown.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › count

    One. Two.

    cancelled; /resume resumes it

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    talk
    ");
}
