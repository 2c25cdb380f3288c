//! The place for the test that draws the picture of a chat in the README, and checks that it is what
//! the chat shows.

use super::screens::{chat_command, scripted};
use super::{CTRL_D, DEADLINE, leave};
use std::fmt::Write;
use std::path::PathBuf;
use stead_testkit::{Pty, StyledText};

const ROWS: u16 = 27;
const COLUMNS: u16 = 88;
const LINE_PX: usize = 19;
const CHAR_PX: f64 = 8.4;
const MARGIN_PX: usize = 18;
/// Set to write the picture instead of comparing it.
const UPDATE: &str = "STEAD_UPDATE_PICTURES";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/chat.svg")
}

/// A row without what differs in every run: times, and the footer from the model on.
fn stable(row: &[StyledText]) -> Vec<StyledText> {
    let mut out: Vec<StyledText> = Vec::new();
    for part in row {
        let text = match part.text.find(" · scripted:") {
            Some(end) => format!("{} · anthropic:claude-sonnet-4-5", &part.text[..end]),
            None => part.text.clone(),
        };
        let words: Vec<&str> = text.split(' ').collect();
        let stable: Vec<&str> = words
            .iter()
            .enumerate()
            .map(|(at, word)| match words.get(at + 1) {
                Some(&"ms") => "2",
                Some(&"ms)") => "(2",
                Some(_) | None => word,
            })
            .collect();
        out.push(StyledText {
            text: stable.join(" "),
            ..part.clone()
        });
    }
    out
}

fn style(part: &StyledText) -> String {
    let colour = match part.foreground {
        Some(1) => "fill:#e06c75",
        Some(2) => "fill:#98c379",
        Some(3) => "fill:#e5c07b",
        Some(6) => "fill:#56b6c2",
        Some(8) => "fill:#7f848e",
        Some(_) | None => "",
    };
    let weight = if part.is_bold {
        ";font-weight:bold"
    } else {
        ""
    };
    format!("{colour}{weight}")
        .trim_start_matches(';')
        .to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn picture(rows: &[Vec<StyledText>]) -> String {
    let width = (f64::from(COLUMNS) * CHAR_PX) as usize + 2 * MARGIN_PX;
    let height = rows.len() * LINE_PX + 2 * MARGIN_PX;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2127\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"14\" fill=\"#d7dae0\" xml:space=\"preserve\">\n"
    );
    for (at, row) in rows.iter().enumerate() {
        let y = MARGIN_PX + (at + 1) * LINE_PX - 5;
        let mut spans = String::new();
        for part in row {
            let text = escaped(&part.text);
            match style(part).as_str() {
                "" => write!(spans, "<tspan>{text}</tspan>").unwrap(),
                style => write!(spans, "<tspan style=\"{style}\">{text}</tspan>").unwrap(),
            }
        }
        if !spans.is_empty() {
            writeln!(out, "<text x=\"{MARGIN_PX}\" y=\"{y}\">{spans}</text>").unwrap();
        }
    }
    out + "</g>\n</svg>\n"
}

#[test]
fn the_picture_of_the_chat_is_what_the_chat_shows() {
    let script = "- text: I look at the list first.\n  calls: [{tool: read_file, args: {file_path: notes.md}}]\n\
                  - calls: [{tool: edit_file, args: {file_path: notes.md, old_string: \"- buy milk\", new_string: \"- buy oat milk\\n- buy bread\"}}]\n\
                  - calls: [{tool: execute, args: {command: \"grep -c tofu notes.md\"}}]\n\
                  - text: \"Milk is now **oat milk**, and bread is on the list. There is no tofu in it:\\n\\n```sh\\ngrep -c tofu notes.md   # prints 0\\n```\"\n";
    let dir = scripted(&[
        (
            "agent.yaml",
            "model: scripted:script.yaml\npermission_mode: bypass\n",
        ),
        (
            "notes.md",
            "# Saturday\n\n- buy milk\n- call Ann\n- water the plants\n",
        ),
        ("script.yaml", script),
    ]);
    let pty = Pty::spawn(&chat_command(dir.path()), ROWS, COLUMNS);
    pty.wait_for("›", DEADLINE);
    pty.send("Oat milk, please. And bread. Is tofu on the list?\r");
    pty.wait_for("# prints 0", DEADLINE);
    pty.wait_gone("· step ", DEADLINE);
    let rows: Vec<Vec<StyledText>> = pty.styled_rows().iter().map(|row| stable(row)).collect();
    let drawn = picture(&rows);
    leave(pty, CTRL_D);
    // A person sets it for this test alone.
    #[allow(clippy::disallowed_methods)]
    let redraws = std::env::var_os(UPDATE).is_some();
    if redraws {
        std::fs::write(file(), &drawn).unwrap();
    }
    let kept = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        kept == drawn,
        "docs/chat.svg is not what the chat shows; {UPDATE}=1 draws it again:\n{drawn}"
    );
}
