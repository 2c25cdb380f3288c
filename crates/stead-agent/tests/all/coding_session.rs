//! The place for the test of how often a person is asked in an ordinary coding session.

use crate::support::{agent_with_host, block_on, journal, session, text};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{Entry, ResultStatus, RunOutcome};
use stead_model::ScriptedModel;

/// The most questions that such a session may ask.
const MAX_QUESTIONS: usize = 5;

fn put(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A small project with a git repository and tests, whose person allowed its test command.
fn project(dir: &Path) {
    put(
        dir,
        "agent.yaml",
        "commands: {allow: ['sh run-tests.sh']}\n",
    );
    put(dir, "AGENTS.md", "Run the tests with `sh run-tests.sh`.\n");
    put(dir, "run-tests.sh", "grep -c 'fn ' src/*.rs\n");
    put(dir, ".gitignore", "agents/\n");
    for module in ["lexer", "parser", "printer", "main"] {
        let body = format!("//! The {module}.\n\nfn {module}() -> u32 {{\n    1\n}}\n");
        put(dir, &format!("src/{module}.rs"), &body);
    }
    for line in [
        "init -q -b main .",
        "add .",
        "-c user.name=a -c user.email=a@b commit -q -m first",
    ] {
        let ran = Command::new("git")
            .args(line.split(' '))
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(ran.status.success(), "git {line}: {ran:?}");
    }
}

/// The calls of fifty steps: looking around, changing code, testing, looking at what changed.
fn calls() -> Vec<(&'static str, Value)> {
    let run = |command: &str| ("execute", json!({"command": command}));
    let read = |path: &str| ("read_file", json!({"file_path": path}));
    let test = || run("sh run-tests.sh");
    let mut calls = vec![
        ("ls", json!({})),
        read("AGENTS.md"),
        ("glob_files", json!({"pattern": "src/**/*.rs"})),
        run("git status --short"),
        test(),
    ];
    for module in ["lexer", "parser", "printer"] {
        let path = format!("src/{module}.rs");
        let edit = |old: &str, new: &str| {
            let args = json!({"file_path": path, "old_string": old, "new_string": new});
            ("edit_file", args)
        };
        let helper = format!("src/{module}_helper.rs");
        calls.extend([
            read(&path),
            ("grep_files", json!({"pattern": module, "path": "src"})),
            edit("    1\n", "    2\n"),
            test(),
            edit("    2\n", "    helper() + 2\n"),
            (
                "write_file",
                json!({"file_path": helper, "content": "fn helper() -> u32 {\n    0\n}\n"}),
            ),
            test(),
            (
                "grep_files",
                json!({"pattern": "helper", "path": "src", "output_mode": "files"}),
            ),
            read(&helper),
            edit("-> u32", "-> u64"),
            test(),
            ("file_info", json!({"file_path": path})),
        ]);
    }
    calls.extend([
        run("git diff --stat"),
        (
            "move_file",
            json!({"from": "src/lexer_helper.rs", "to": "src/helper.rs"}),
        ),
        ("delete_file", json!({"file_path": "src/parser_helper.rs"})),
        ("delete_file", json!({"file_path": "src/printer_helper.rs"})),
        test(),
        (
            "write_file",
            json!({"file_path": "CHANGES.md", "content": "Numbers grew.\n"}),
        ),
        run("git add -A"),
        run("git -c user.name=a -c user.email=a@b commit -q -m grow"),
        run("git log --oneline"),
    ]);
    calls
}

#[test]
fn a_coding_session_of_fifty_steps_asks_at_most_five_questions() {
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let calls = calls();
    assert_eq!(calls.len(), 50);
    let steps: Vec<Value> = calls
        .iter()
        .map(|(tool, args)| json!({"calls": [{"tool": tool, "args": args}]}))
        .chain([json!({"text": "Done."})])
        .collect();
    // JSON is YAML.
    let script = serde_json::to_string(&steps).unwrap();
    block_on(async {
        let model = Arc::new(ScriptedModel::parse("coding", &script).unwrap());
        let agent = agent_with_host(dir.path(), model).await;
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = agent
            .session(session("s"))
            .run(text("Make the numbers grow."), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
        let (lines, _) = journal(&agent, &session("s")).await;
        let failed: Vec<_> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::Result(result) if result.status != ResultStatus::Ok => Some(result),
                _ => None,
            })
            .collect();
        assert!(failed.is_empty(), "{failed:#?}");
        let asked: Vec<_> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::Ask(ask) => Some(ask),
                _ => None,
            })
            .collect();
        assert!(
            !asked.is_empty() && asked.len() <= MAX_QUESTIONS,
            "{} questions: {asked:#?}",
            asked.len()
        );
    });
}
