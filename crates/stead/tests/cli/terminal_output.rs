//! The place for tests that nothing a model, hook, provider, file or flag says can control the
//! terminal it is shown on.

use super::support::{Folder, STEAD, endpoints};
use std::process::Command;
use std::time::Duration;
use stead_testkit::{FakeModel, Pty, fail};

const DEADLINE: Duration = Duration::from_secs(30);

/// A title, a cleared screen, C1, a lone carriage return and reordered text, around a word that
/// shows that the text was printed.
const HOSTILE: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}2J\r\u{202e}fdp.exe\u{2066}";

/// Runs the command on a terminal and returns every byte it wrote.
fn on_terminal(folder: &Folder, args: &[&str], server: Option<&FakeModel>) -> String {
    let mut command = Command::new(STEAD);
    command
        .env_clear()
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.config())
        .env("STEAD_BACKGROUND", "0")
        .envs(server.map(endpoints).into_iter().flatten())
        .current_dir(folder.path())
        .args(folder.flags(args))
        .args(args);
    let mut pty = Pty::spawn(&command, 50, 200);
    pty.wait_exit(DEADLINE);
    pty.raw()
}

/// Panics unless `raw` shows the hostile text, and nothing in it controls the terminal but our own
/// colours and the emptying of a status line.
#[track_caller]
fn assert_harmless(case: &str, raw: &str) {
    assert!(
        raw.contains("PWNED"),
        "{case} did not show the text: {raw:?}"
    );
    assert_uncontrolled(case, raw);
}

#[track_caller]
fn assert_uncontrolled(case: &str, raw: &str) {
    let mut rest = raw.replace("\r\n", "\n").replace("\r\u{1b}[K", "");
    for code in ["0", "1", "2", "31", "32", "33", "36"] {
        rest = rest.replace(&format!("\u{1b}[{code}m"), "");
    }
    let bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!rest.contains(bad), "{case}: {rest:?}");
}

/// The text as a string of YAML, which takes no control characters as they are.
fn yaml_text(text: &str) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => format!("\\u{:04x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[test]
fn text_from_elsewhere_cannot_control_the_terminal() {
    let folder = Folder::new();
    let model = folder.script(&format!("- text: {}\n", yaml_text(HOSTILE)));
    let show = |case: &str, args: &[&str]| assert_harmless(case, &on_terminal(&folder, args, None));
    show("an answer", &["run", "-m", &model, "-s", "a", "go"]);
    show("an input", &["run", "-m", &model, "-s", "b", HOSTILE]);
    show("a transcript", &["sessions", "show", "b"]);
    show("a whole transcript", &["sessions", "show", "b", "--full"]);
    for format in ["markdown", "json"] {
        show(format, &["sessions", "export", "b", "--format", format]);
    }
    show(
        "events",
        &["run", "-m", &model, "-s", "c", "--output", "events", "go"],
    );
    show(
        "a report",
        &["run", "-m", &model, "-s", "d", "--output", "json", "go"],
    );
    let wrong = on_terminal(&folder, &["run", &format!("--{HOSTILE}")], None);
    assert_uncontrolled("an argument", &wrong);
    show("a name", &["sessions", "show", HOSTILE]);
}

#[test]
fn a_hooks_message_cannot_control_the_terminal() {
    let folder = Folder::new();
    let model = folder.script("- text: Done.\n");
    std::fs::create_dir(folder.path().join("hooks")).unwrap();
    let answer = serde_json::json!({"system_message": HOSTILE});
    folder.put("answer.json", &answer.to_string());
    folder.put(
        "hooks/tell.yaml",
        "name: tell\nevents: [run_start]\nhandler: {type: command, command: cat answer.json}\n",
    );
    let raw = on_terminal(&folder, &["run", "-m", &model, "go"], None);
    assert_harmless("a hook", &raw);
}

#[test]
fn a_providers_error_cannot_control_the_terminal() {
    let folder = Folder::new();
    let server = FakeModel::start(vec![fail(400).message(HOSTILE)]);
    let args = ["run", "-m", "openai:x", "go"];
    let raw = on_terminal(&folder, &args, Some(&server));
    assert_harmless("an error", &raw);
}

#[test]
fn broken_files_cannot_control_the_terminal() {
    let folder = Folder::new();
    folder.put("agent.yaml", &format!("{}: 1\n", yaml_text(HOSTILE)));
    for args in [&["run", "go"][..], &["check"], &["prompt"]] {
        assert_harmless(args[0], &on_terminal(&folder, args, None));
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("subagents")).unwrap();
    let definition = format!(
        "---\ndescription: x\n{}: y\n---\nHelp.\n",
        yaml_text(HOSTILE)
    );
    folder.put("subagents/x.md", &definition);
    folder.put("agent.yaml", "name: main\n");
    let raw = on_terminal(&folder, &["check"], None);
    assert_harmless("a subagent", &raw);
}

/// Names in settings, of tools, events, stores and models.
#[test]
fn names_from_elsewhere_cannot_control_the_terminal() {
    let text = yaml_text(HOSTILE);
    let files = [
        ("tools.json", format!("{{\"allow\": [{text}]}}")),
        (
            "tools.json",
            format!("{{\"mcpServers\": {{{text}: {{\"command\": 1}}}}}}"),
        ),
        (
            "hooks/h.yaml",
            format!("name: h\nevents: [{text}]\nhandler: {{type: command, command: 'true'}}\n"),
        ),
        (
            "agent.yaml",
            format!("filesystem: {{mode: store, url: {text}}}\n"),
        ),
        ("agent.yaml", format!("model: {text}\n")),
        ("agent.yaml", format!("approvals: {{{text}: true}}\n")),
        (
            "agent.yaml",
            format!("permissions: [{{operations: [read], paths: [{text}], mode: sometimes}}]\n"),
        ),
    ];
    let mut shown = Vec::new();
    for (name, content) in files {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("hooks")).unwrap();
        folder.put(name, &content);
        for args in [&["check"][..], &["run", "go"], &["list"]] {
            let raw = on_terminal(&folder, args, None);
            assert_uncontrolled(&format!("{name}: {content}: {args:?}"), &raw);
            shown.extend(
                raw.contains("PWNED")
                    .then_some(&*content)
                    .map(str::to_owned),
            );
        }
    }
    shown.dedup();
    assert!(shown.len() >= 4, "{shown:?}");
    let folder = Folder::new();
    let model = folder.script(&format!(
        "- calls: [{{tool: {text}, args: {{{text}: {text}}}}}]\n- text: Done.\n"
    ));
    let raw = on_terminal(&folder, &["run", "-m", &model, "-s", "s", "go"], None);
    assert_uncontrolled("the name of a tool", &raw);
    let journal = on_terminal(&folder, &["sessions", "show", "s", "--full"], None);
    assert_harmless("a call in the journal", &journal);
    for args in [
        &["workspace", "copy", HOSTILE, "."][..],
        &["skills", "add", HOSTILE],
        &["tool", HOSTILE, "{}"],
        &["explain", HOSTILE],
        &["-m", HOSTILE, "run", "go"],
    ] {
        let raw = on_terminal(&folder, args, None);
        assert_uncontrolled(args[0], &raw);
        shown.extend(raw.contains("PWNED").then(|| args[0].to_owned()));
    }
    assert!(shown.len() >= 6, "{shown:?}");
}

#[test]
fn the_name_of_who_answers_cannot_control_the_terminal() {
    let folder = Folder::new();
    folder.put("agent.yaml", "approvals: {write_file: true}\n");
    let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: x}, id: c1}]\n- text: Done.\n";
    let model = folder.script(script);
    folder.run(&["run", "-m", &model, "-s", "s", "go"]).exits(3);
    let args = [
        "approvals",
        "approve",
        "c1",
        "-s",
        "s",
        "--by",
        HOSTILE,
        "--no-resume",
    ];
    assert_uncontrolled("--by", &on_terminal(&folder, &args, None));
    assert_harmless(
        "the journal",
        &on_terminal(&folder, &["sessions", "show", "s", "--full"], None),
    );
}

#[test]
fn json_in_a_pipe_escapes_what_could_control_a_terminal() {
    let folder = Folder::new();
    let model = folder.script(&format!("- text: {}\n", yaml_text(HOSTILE)));
    for output in ["events", "json"] {
        let done = folder.run(&["run", "-m", &model, "--output", output, "go"]);
        let done = done.exits(0);
        assert!(
            done.out.contains("\\u009b2J\\r\\u202efdp.exe\\u2066"),
            "{}",
            done.out
        );
        let text: String = match output {
            "json" => done.json()["text"].as_str().unwrap().to_owned(),
            _ => {
                let deltas = done.lines().into_iter();
                let deltas = deltas.filter(|event| event["type"] == "text_delta");
                deltas
                    .map(|event| event["text"].as_str().unwrap().to_owned())
                    .collect()
            }
        };
        assert_eq!(text, HOSTILE, "{output}");
    }
}
