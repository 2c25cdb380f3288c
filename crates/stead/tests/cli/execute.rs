//! The place for tests of commands in the real binary: approval, environment, explain, cleanup
//! after kills, hooks.

use crate::support::Folder;
use std::time::{Duration, Instant};

const KEY: &str = "sk-of-the-process-0123456789";
const DEADLINE: Duration = Duration::from_secs(20);

/// A script that runs `command` and is done.
fn runs(folder: &Folder, command: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    folder.script(&format!(
        "- calls: [{{tool: execute, args: {{command: {command}}}, id: c1}}]\n- text: Done.\n"
    ))
}

/// Processes whose command line has `words`.
pub(crate) fn alive(words: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines =
        lines.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .map(|line| line.replace('\0', " "))
        .filter(|line| line.contains(words))
        .collect()
}

// 6: execute
#[test]
fn a_command_waits_for_a_yes_and_sees_no_key() {
    let folder = Folder::new();
    folder.put("agent.yaml", "execute: {env: {CI: 'yes'}, pass: [TOKEN]}\n");
    let model = runs(&folder, "env > seen; echo token $TOKEN");
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["run", "-m", &model, "-s", "s"]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        let mut command = folder.command(&args);
        command
            .env("OPENAI_API_KEY", KEY)
            .env("ANTHROPIC_API_KEY", KEY)
            .env("OTHER", KEY);
        crate::support::done(command.env("TOKEN", "hush-hush-token"))
    };
    run(&["go"]).exits(3);
    assert!(!folder.has("seen"));
    run(&["--resume", "--approve", "all"]).exits(0);
    let seen = folder.read("seen");
    let names: Vec<&str> = seen
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    for name in &names {
        let known = ["CI", "HOME", "PATH", "STEAD_EXEC_ID", "TERM", "TOKEN"];
        let of_shell = ["OLDPWD", "PWD", "SHLVL", "_"];
        let is_fixed = known.contains(name) || of_shell.contains(name) || name.starts_with("GIT_");
        assert!(is_fixed, "{name} in {seen}");
    }
    assert!(
        seen.contains("CI=yes\n")
            && seen.contains("TOKEN=hush-hush-token\n")
            && !seen.contains(KEY),
        "{seen}"
    );
    let shown = folder.run(&["sessions", "show", "s"]).exits(0).out;
    assert!(
        shown.contains("token [redacted]") && !shown.contains("hush-hush"),
        "{shown}"
    );
}

// 6: execute
#[test]
fn one_command_can_be_called_and_explained_and_switched_off() {
    let folder = Folder::new();
    let explained = folder
        .run(&["tool", "Bash", "{\"command\": \"true\"}", "--explain"])
        .exits(0)
        .out;
    assert!(
        explained.starts_with("ask: ")
            && explained.contains("commands outside a sandbox need approval"),
        "{explained}"
    );
    folder
        .run(&["tool", "execute", "{\"command\": \"touch ran\"}"])
        .exits(1);
    assert!(!folder.has("ran"));
    let ran = folder
        .run(&[
            "tool",
            "execute",
            "--approve",
            "all",
            "{\"command\": \"touch ran; exit 9\"}",
        ])
        .exits(9);
    assert_eq!(ran.out, "[exit code 9; no output]\n");
    assert!(folder.has("ran"));
    folder.put("agent.yaml", "disable: [shell]\n");
    let gone = folder
        .run(&[
            "tool",
            "execute",
            "--approve",
            "all",
            "{\"command\": \"true\"}",
        ])
        .exits(1);
    assert!(gone.err.contains("there is no tool `execute`"), "{gone:?}");
    let checked = folder.run(&["check"]).exits(0).out;
    assert!(!checked.contains("later version"), "{checked}");
}

// 6: execute
#[test]
fn nothing_is_left_of_a_command_when_the_harness_is_killed() {
    let folder = Folder::new();
    let number = format!("654{}", std::process::id());
    let command = format!(
        "trap '' TERM HUP; sleep {number} & setsid sleep {number} & (setsid sleep {number} >/dev/null 2>&1 &); touch up; wait"
    );
    let model = runs(&folder, &command);
    let mut child = folder
        .process(&["run", "-m", &model, "-s", "s", "--approve", "all", "go"])
        .spawn()
        .unwrap();
    let sleeping = format!("sleep {number}");
    let begun = || {
        folder.has("up")
            && alive(&sleeping)
                .iter()
                .filter(|line| line.starts_with("sleep"))
                .count()
                == 3
    };
    let end = Instant::now() + DEADLINE;
    while !begun() {
        assert!(
            Instant::now() < end && child.try_wait().unwrap().is_none(),
            "it did not begin"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while !alive(&number).is_empty() {
        assert!(Instant::now() < end, "{:?}", alive(&number));
        std::thread::sleep(Duration::from_millis(5));
    }
    let shown = folder
        .run(&["run", "-m", &model, "-s", "s", "--resume"])
        .exits(0);
    assert_eq!(shown.out, "Done.\n");
    let shown = folder.run(&["sessions", "show", "s"]).exits(0).out;
    assert!(
        shown.contains("interrupted: may have run"),
        "a command is never run twice: {shown}"
    );
}

#[test]
fn one_tool_that_is_called_goes_past_no_hook() {
    let folder = Folder::new();
    folder.put("agent.yaml", "model: scripted:judge.yaml\n");
    folder.put(
        "judge.yaml",
        "- text: '{\"decision\": \"block\", \"reason\": \"the model says no\"}'\n",
    );
    std::fs::create_dir(folder.path().join("hooks")).unwrap();
    let write = [
        "tool",
        "write_file",
        "{\"file_path\": \"a.txt\", \"content\": \"x\"}",
    ];
    let hook = |handler: &str| {
        folder.put(
            "hooks/guard.yaml",
            &format!("name: guard\nevents: [before_tool_call]\nhandler: {handler}\n"),
        )
    };
    let rows = [
        (
            "{type: command, command: \"echo no >&2; exit 2\"}",
            "denied: hook guard: no",
        ),
        (
            "{type: command, command: exit 9}",
            "denied: hook guard: the hook failed: it ended with exit status: 9",
        ),
        (
            "{type: prompt, prompt: Judge it.}",
            "denied: hook guard: the model says no",
        ),
    ];
    for (handler, said) in rows {
        hook(handler);
        let done = folder.run(&write).exits(1);
        assert!(done.err.contains(said), "{handler}: {done:?}");
        assert!(!folder.has("a.txt"));
        // The gate says what it would; nobody else is asked.
        assert!(
            folder
                .run(&[&write[..], &["--explain"]].concat())
                .exits(0)
                .out
                .starts_with("allow: ")
        );
    }
    hook("{type: command, command: exit 9}\non_failure: open");
    let done = folder
        .run(&[&write[..], &["--json"]].concat())
        .exits(0)
        .json();
    assert!(
        done["told"][0]["text"]
            .as_str()
            .unwrap()
            .contains("on_failure: open"),
        "{done}"
    );
    assert!(folder.has("a.txt"));
}

#[test]
fn a_failed_command_is_marked_in_text_events_sessions_and_exit_codes() {
    let folder = Folder::new();
    let model = runs(&folder, "echo bad; exit 3");
    let run = |args: &[&str]| {
        let flags = ["run", "-m", &model, "--approve", "all", "go"];
        folder.run(&[&flags, args].concat()).exits(0)
    };
    let events = run(&["-s", "sess", "--output", "events"]);
    let ended: Vec<serde_json::Value> = events
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["type"] == "tool_ended")
        .collect();
    assert_eq!(
        (&ended[0]["status"], &ended[0]["exit_code"]),
        (&"ok".into(), &3.into())
    );
    let text = run(&["-s", "text"]);
    assert!(
        text.err
            .contains("✗ execute echo bad; exit 3 exit code 3 ("),
        "{}",
        text.err
    );
    let shown = folder.run(&["sessions", "show", "sess"]).exits(0).out;
    assert!(shown.contains("✗ [exit code 3]"), "{shown}");

    let calls = [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -9 $$", 137),
    ];
    for (command, code) in calls {
        let args = serde_json::json!({ "command": command }).to_string();
        folder
            .run(&["tool", "execute", &args, "--approve", "all"])
            .exits(code);
    }
    let args = serde_json::json!({ "command": "exit 3" }).to_string();
    let json = folder
        .run(&["tool", "execute", &args, "--approve", "all", "--json"])
        .exits(3);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["exit_code"], 3);
}
