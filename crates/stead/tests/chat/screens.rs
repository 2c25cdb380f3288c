//! The place for whole screens of `stead chat`: each behaviour in a small and a large terminal, with
//! colours and without.

use super::{DEADLINE, workspace};
use insta::assert_snapshot;
use std::path::Path;
use std::process::Command;
use stead_testkit::Pty;
use tempfile::TempDir;

/// Rows and columns of the terminals.
const SMALL: (u16, u16) = (24, 80);
const LARGE: (u16, u16) = (40, 120);

/// The pictures of the spinner.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The screens of one story.
pub(crate) struct Screens {
    pub(crate) small: String,
    pub(crate) large: String,
}

/// Plays a story in both sizes, each with colours and without: the text must be the same, and the
/// colours must be there and not there.
pub(crate) fn screens(files: &[(&str, &str)], story: impl Fn(&Pty, &Path)) -> Screens {
    Screens {
        small: in_both_colours(files, SMALL, &story),
        large: in_both_colours(files, LARGE, &story),
    }
}

fn in_both_colours(
    files: &[(&str, &str)],
    size: (u16, u16),
    story: &impl Fn(&Pty, &Path),
) -> String {
    let play = |no_color: Option<&str>| {
        let dir = scripted(files);
        let mut command = chat_command(dir.path());
        match no_color {
            Some(value) => command.env("NO_COLOR", value),
            None => command.env_remove("NO_COLOR"),
        };
        let pty = Pty::spawn(&command, size.0, size.1);
        pty.wait_for("›", DEADLINE);
        story(&pty, dir.path());
        (text_of(&pty), pty.is_coloured())
    };
    let (text, coloured) = play(None);
    let (plain_text, plain_coloured) = play(Some("1"));
    assert_eq!((coloured, plain_coloured), (true, false), "{text}");
    assert_eq!(text, plain_text, "NO_COLOR changes the text");
    text
}

/// A workspace whose model plays its `script.yaml`.
pub(crate) fn scripted(files: &[(&str, &str)]) -> TempDir {
    let dir = workspace(files);
    if !files.iter().any(|(path, _)| *path == "agent.yaml") {
        std::fs::write(
            dir.path().join("agent.yaml"),
            "model: scripted:script.yaml\n",
        )
        .unwrap();
    }
    dir
}

pub(crate) fn chat_command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stead"));
    command
        .args(["chat", "-s", "talk", "--trust", "-C"])
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

/// The text of the screen: blank rows in a row are one, times are `N ms`, and the footer ends before
/// the model and the numbers.
fn text_of(pty: &Pty) -> String {
    let screen = pty.screen();
    let mut rows: Vec<String> = Vec::new();
    for row in screen.lines() {
        let row = row.find(" · scripted:").map_or(row, |end| &row[..end]);
        let row = without_times(row.trim_end());
        let row = match row.strip_prefix(SPINNER) {
            Some(rest) => format!("⠋{rest}"),
            None => row,
        };
        if !(row.is_empty() && rows.last().is_none_or(String::is_empty)) {
            rows.push(row);
        }
    }
    rows.join("\n")
}

/// Replaces `12 ms` and `1.2 s` by `N ms`.
fn without_times(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let is_number = |text: &str| {
            let digits = text.trim_start_matches('(');
            !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        let unit = word.trim_end_matches(')');
        if matches!(unit, "ms" | "s")
            && let Some(before) = out.last_mut()
            && is_number(before)
        {
            *before = match before.starts_with('(') {
                true => "(N".to_owned(),
                false => "N".to_owned(),
            };
            out.push(word.replace(unit, "ms"));
            continue;
        }
        out.push(word.to_owned());
    }
    out.join(" ")
}

#[test]
fn a_command_that_fails_is_marked_with_its_exit_code() {
    let script = "- calls: [{tool: execute, args: {command: \"false\"}}]\n\
                  - calls: [{tool: execute, args: {command: \"true\"}}]\n- text: One of two.\n";
    let files = [
        (
            "agent.yaml",
            "model: scripted:script.yaml\ncommands: {allow: [\"false\", \"true\"]}\n",
        ),
        ("script.yaml", script),
    ];
    let shown = screens(&files, |pty, _| {
        pty.send("try both\r");
        pty.wait_for("One of two.", DEADLINE);
        pty.wait_gone("· step ", DEADLINE);
    });
    assert_snapshot!(shown.small, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › try both

    ✗ execute false exit code 1 (N ms)
    ✓ execute true N ms  Ctrl-O

    One of two.

    ────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────
    talk
    ");
    assert_snapshot!(shown.large, @r"
    Say what to do. /help lists commands and keys, @path attaches a file.

    › try both

    ✗ execute false exit code 1 (N ms)
    ✓ execute true N ms  Ctrl-O

    One of two.

    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    ›
    ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    talk
    ");
}
