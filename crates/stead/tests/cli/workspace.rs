//! The place for tests of workspace commands: init, check, prompt, tool and explain, discovery and
//! path escapes.

use crate::support::{Folder, done};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_workspace_is_made_checked_and_shown() {
    let folder = Folder::new();
    let made = folder.run(&["init", "agent"]).exits(0);
    assert!(
        made.out.contains("made AGENTS.md") && folder.has("agent/AGENTS.md"),
        "{made:?}"
    );
    folder.put("agent/AGENTS.md", "You are a careful librarian.");
    assert!(
        folder
            .run(&["init", "agent"])
            .exits(0)
            .out
            .contains("kept AGENTS.md")
    );
    assert_eq!(
        folder.read("agent/AGENTS.md"),
        "You are a careful librarian."
    );

    let findings = folder
        .run(&["-C", "agent", "check", "--json"])
        .exits(0)
        .json();
    assert!(
        findings
            .as_array()
            .unwrap()
            .iter()
            .all(|finding| finding["grade"] == "ok"),
        "{findings}"
    );
    let prompt = folder.run(&["-C", "agent", "prompt"]).exits(0).out;
    assert!(
        prompt.contains("You are a careful librarian.") && prompt.contains("persona"),
        "{prompt}"
    );
    let sections = folder
        .run(&["-C", "agent", "prompt", "--json"])
        .exits(0)
        .json();
    assert!(
        sections
            .as_array()
            .unwrap()
            .iter()
            .any(|section| section["sources"][0] == "AGENTS.md")
    );
    assert!(
        folder
            .run(&["completions", "bash"])
            .exits(0)
            .out
            .contains("_stead")
    );
}

#[test]
fn a_mistake_in_the_settings_is_refused_with_its_place() {
    for (yaml, place, said) in [
        (
            "policy:\n  max_step: 3\n",
            "agent.yaml:2:",
            "did you mean `max_steps`",
        ),
        (
            "name: main\nmodl: x\n",
            "agent.yaml:2:",
            "did you mean `model`",
        ),
        ("name: [\n", "agent.yaml:", ""),
        (
            "model: {name: 'openai:x', api_key: '${NOT_SET}'}\n",
            "agent.yaml",
            "NOT_SET",
        ),
        (
            "approvals: {no_such_tool: true}\n",
            "agent.yaml",
            "no_such_tool",
        ),
    ] {
        let folder = Folder::new();
        folder.put("agent.yaml", yaml);
        let checked = folder.run(&["check"]).exits(2);
        assert!(
            checked.out.contains(place) && checked.out.contains(said),
            "{yaml}: {checked:?}"
        );
        if !yaml.starts_with("approvals") {
            let refused = folder.run(&["run", "-m", "openai:x", "go"]).exits(2);
            assert!(
                refused.err.contains(place) && refused.err.contains(said),
                "{yaml}: {refused:?}"
            );
        }
    }
}

#[test]
fn one_tool_is_called_through_the_gate_and_its_verdict_explained() {
    let folder = Folder::new();
    folder.put("a.txt", "hello\n");
    let tools = folder.run(&["tool", "--json"]).exits(0).lines();
    assert!(
        tools
            .iter()
            .any(|tool| tool["name"] == "edit_file" && tool["effect"] == "writes")
    );
    assert!(
        folder
            .run(&["tool", "read_file", r#"{"file_path": "a.txt"}"#])
            .exits(0)
            .out
            .contains("hello")
    );
    let called = folder
        .run(&["tool", "Read", r#"{"path": "a.txt"}"#, "--json"])
        .exits(0)
        .json();
    assert_eq!(called["status"], "ok");
    folder
        .run(&["tool", "read_file", r#"{"file_path": "b.txt"}"#])
        .exits(1);
    folder.run(&["tool", "read_file", "{"]).exits(2);
    folder.run(&["tool", "no_such_tool"]).exits(1);

    let explain = |args: &str| {
        folder
            .run(&["tool", "delete_file", args, "--explain", "--json"])
            .exits(0)
            .json()
    };
    assert_eq!(explain(r#"{"file_path": "a.txt"}"#)["verdict"], "allow");
    let verdict = explain(r#"{"file_path": "agent.yaml"}"#);
    assert!(
        verdict["verdict"] == "deny" && verdict["rule"].as_str().unwrap().contains("protected"),
        "{verdict}"
    );
    folder.put("agent.yaml", "approvals: {delete: true}\n");
    assert_eq!(explain(r#"{"file_path": "a.txt"}"#)["verdict"], "ask");
    folder
        .run(&["tool", "delete_file", r#"{"file_path": "a.txt"}"#])
        .exits(1);
    assert!(folder.has("a.txt"), "nobody approved it");
    folder
        .run(&[
            "tool",
            "delete_file",
            r#"{"file_path": "a.txt"}"#,
            "--approve",
            "all",
        ])
        .exits(0);
    assert!(!folder.has("a.txt"));
}

#[test]
fn file_rules_are_checked_listed_and_explained() {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        "permissions:\n\
         - {operations: [read, write], paths: [secrets/public], mode: allow}\n\
         - {operations: [read, write], paths: ['secrets/**', '**/*.{key,pem}'], mode: deny}\n\
         - {operations: [write], paths: [docs], mode: ask}\n\
         - {operations: [write], paths: [docs/a.md, agents], mode: allow}\n\
         - {operations: [read], paths: [latest], mode: deny}\n",
    );
    for name in [
        "secrets/x",
        "secrets/public/y",
        "docs/a.md",
        "a.key",
        "v1/notes",
    ] {
        std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        folder.put(name, "content\n");
    }
    std::os::unix::fs::symlink("v1", folder.path().join("latest")).unwrap();

    let findings = folder.run(&["check", "--json"]).exits(0).json();
    let about = |grade: &str| -> Vec<String> {
        let list = findings.as_array().unwrap().iter();
        let of_rules = list.filter(|f| {
            f["grade"] == grade && f["message"].as_str().unwrap().starts_with("permissions[")
        });
        of_rules
            .map(|f| f["message"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(about("ok").len(), 5, "{findings}");
    assert_eq!(
        about("ok")[1],
        "permissions[1]: deny read, write secrets/**, **/*.{key,pem}"
    );
    let warnings = about("warning");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert_eq!(
        warnings[0],
        "permissions[3]: write docs/a.md never decides: permissions[2] covers it"
    );
    assert!(
        warnings[1].contains("write agents never decides: protected")
            && warnings[2].contains("link to v1")
    );

    let explain = |tool: &str, args: &str| {
        let told = folder
            .run(&["tool", tool, args, "--explain", "--json"])
            .exits(0)
            .json();
        (
            told["verdict"].as_str().unwrap().to_owned(),
            told["rule"].as_str().unwrap().to_owned(),
        )
    };
    for (tool, args, verdict, rule) in [
        (
            "read_file",
            r#"{"file_path": "secrets/x"}"#,
            "deny",
            "permissions[1]: deny read secrets/**",
        ),
        (
            "read_file",
            r#"{"file_path": "secrets/public/y"}"#,
            "allow",
            "permissions[0]: allow read secrets/public; mode",
        ),
        (
            "read_file",
            r#"{"file_path": "docs/a.md"}"#,
            "allow",
            "no rule matches; mode default",
        ),
        (
            "edit_file",
            r#"{"file_path": "docs/a.md", "old_string": "a", "new_string": "b"}"#,
            "ask",
            "permissions[2]: ask write docs",
        ),
        (
            "read_file",
            r#"{"file_path": "latest/notes"}"#,
            "deny",
            "permissions[4]: deny read latest",
        ),
        (
            "delete_file",
            r#"{"file_path": "secrets"}"#,
            "deny",
            "permissions[1]: deny write secrets/**",
        ),
    ] {
        let (said, why) = explain(tool, args);
        assert!(
            said == verdict && why.starts_with(rule),
            "{tool} {args}: {said}: {why}"
        );
    }
    assert!(
        folder
            .run(&[
                "tool",
                "read_file",
                r#"{"file_path": "a.key"}"#,
                "--explain"
            ])
            .exits(0)
            .out
            .starts_with("deny: ")
    );
    let listed = folder.run(&["tool", "ls", "{}"]).exits(0).out;
    assert!(
        listed.contains("docs/") && !listed.contains("secrets") && !listed.contains("a.key"),
        "{listed}"
    );

    folder.put(
        "agent.yaml",
        "permissions:\n- {operations: [read], paths: ['{a'], mode: deny}\n",
    );
    let refused = folder.run(&["check"]).exits(2);
    assert!(
        refused.out.contains("agent.yaml:2:") && refused.out.contains("permissions[0]"),
        "{refused:?}"
    );
}

fn calls(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("ls", json!({"path": path})),
        ("file_info", json!({"file_path": path})),
        ("read_file", json!({"file_path": path})),
        ("write_file", json!({"file_path": path, "content": "evil"})),
        (
            "overwrite_file",
            json!({"file_path": path, "content": "evil"}),
        ),
        (
            "edit_file",
            json!({"file_path": path, "old_string": "secret", "new_string": "evil"}),
        ),
        ("delete_file", json!({"file_path": path})),
        ("move_file", json!({"from": path, "to": "stolen"})),
        ("glob_files", json!({"pattern": "**", "path": path})),
        ("tree", json!({"path": path})),
        ("grep_files", json!({"pattern": "secret", "path": path})),
    ]
}

#[test]
fn no_tool_leaves_the_workspace_or_hangs_on_a_pipe() {
    let temp = Folder::new();
    std::fs::create_dir(temp.path().join("outside")).unwrap();
    temp.put("outside/secret.txt", "secret content");
    for (path, must_fail) in [
        ("../outside/secret.txt", true),
        ("out/secret.txt", true),
        ("nul\0byte", true),
        (&*"n".repeat(4096), true),
        ("zero", false),
        ("fifo", false),
    ] {
        for (tool, args) in calls(path) {
            let root = temp.path().join("root");
            std::fs::create_dir(&root).unwrap();
            std::os::unix::fs::symlink("../outside", root.join("out")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", root.join("zero")).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(
                rustix::fs::CWD,
                root.join("fifo"),
                rustix::fs::FileType::Fifo,
                mode,
                0,
            )
            .unwrap();
            let args = args.to_string();
            let mut command = temp.command(&["-C", "root", "tool", tool, &args]);
            let called = done(command.timeout(Duration::from_secs(10)));
            let place = format!("{tool} {}", &args[..args.len().min(80)]);
            assert!(
                called.code == 1 || (called.code == 0 && !must_fail),
                "{place}: {called:?}"
            );
            assert!(
                !(called.out + &called.err).contains("secret content"),
                "{place}"
            );
            assert_eq!(temp.read("outside/secret.txt"), "secret content", "{place}");
            assert_eq!(
                std::fs::read_dir(temp.path().join("outside"))
                    .unwrap()
                    .count(),
                1,
                "{place}"
            );
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
}

#[test]
fn a_description_reaches_the_prompt_and_a_flag_without_meaning_is_refused() {
    let folder = Folder::new();
    folder.put("agent.yaml", "description: Keeps the notes\n");
    assert!(
        folder
            .run(&["prompt"])
            .exits(0)
            .out
            .contains("What you are for: Keeps the notes")
    );
    for command in [
        &["models"][..],
        &["demo", "--fast"],
        &["completions", "bash"],
    ] {
        let done = folder.run(&[command, &["-C", "."]].concat()).exits(2);
        assert!(done.err.contains("-C has no meaning"), "{done:?}");
    }
}

#[test]
fn a_workspace_is_found_upward_and_one_within_another_must_be_named() {
    let folder = Folder::without_mark();
    let make = |dir: &str| std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    let prompt = |dir: &str, args: &[&str]| {
        let mut command = folder.command(&[&["prompt"], args].concat());
        crate::support::done(
            command
                .current_dir(folder.path().join(dir))
                .env("HOME", "/nonexistent"),
        )
    };
    make("outer/src/deep");
    make("outer/alone/.agentscope/workspace");
    folder.put("outer/agent.yaml", "name: outer\n");
    folder.put("outer/AGENTS.md", "Outer rules.");
    folder.put("outer/src/AGENTS.md", "Rules of src.");
    let found = prompt("outer/src/deep", &[]).exits(0).out;
    assert!(
        found.contains("Outer rules.")
            && found.contains("Rules of src.")
            && found.contains("Agent: outer"),
        "{found}"
    );
    // An agent of the outer one could have made it.
    for planted in ["outer/src/agent.yaml", "outer/src/.openharness"] {
        folder.put(planted, "name: inner\n");
        let refused = prompt("outer/src/deep", &[]).exits(2).err;
        assert!(
            refused.contains("inside another one") && refused.contains("-C"),
            "{refused}"
        );
        std::fs::remove_file(folder.path().join(planted)).unwrap();
    }
    prompt("outer/alone", &[]).exits(2);
    prompt("outer/alone", &["-C", "."]).exits(0);
}

#[test]
fn what_may_not_be_read_is_not_in_the_prompt_either() {
    let folder = Folder::new();
    for dir in ["skills/t", "knowledge/secret"] {
        std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    folder.put(
        "skills/t/SKILL.md",
        "---\nname: t\ndescription: Told to nobody.\n---\nBody.\n",
    );
    folder.put("skills/t/.env", "X=1");
    folder.put("knowledge/secret/hidden-name.md", "x");
    folder.put("knowledge/open.md", "x");
    folder.put(".env", "SECRET_KEY=hunter2hunter2\n");
    std::os::unix::fs::symlink(".env", folder.path().join("MEMORY.md")).unwrap();
    folder.put(
        "agent.yaml",
        "context_files: [.env]\npermissions:\n- {operations: [read], paths: [knowledge/secret], mode: deny}\n\
         - {operations: [read], paths: [skills/t], mode: ask}\n",
    );
    let prompt = folder.run(&["prompt"]).exits(0).out;
    for hidden in ["hunter2", "hidden-name", "Told to nobody"] {
        assert!(!prompt.contains(hidden), "{hidden}: {prompt}");
    }
    assert!(prompt.contains("knowledge/open.md"), "{prompt}");
}

#[test]
fn without_persistence_a_run_leaves_no_session_behind() {
    for (settings, sessions) in [("", 1), ("disable: [session_persistence]", 0)] {
        let folder = Folder::new();
        folder.put("agent.yaml", settings);
        let model = folder.script(
            "- calls: [{tool: write_file, args: {file_path: a.txt, content: x}}]\n- text: Done.",
        );
        assert_eq!(
            folder.run(&["run", "-m", &model, "Go."]).exits(0).out,
            "Done.\n"
        );
        assert_eq!(folder.read("a.txt"), "x");
        let journals = folder
            .files()
            .iter()
            .filter(|path| path.to_string_lossy().ends_with(".log.jsonl"))
            .count();
        assert_eq!(
            (journals, folder.has("agents")),
            (sessions, sessions > 0),
            "{settings}"
        );
    }
}

#[test]
fn a_workspace_is_made_where_a_variable_says() {
    let folder = Folder::new();
    for (variable, dir) in [("STEAD_WORKSPACE", "a"), ("AGENTSCOPE_WORKSPACE", "b")] {
        done(folder.command(&["init"]).env(variable, dir)).exits(0);
        assert!(folder.has(&format!("{dir}/AGENTS.md")), "{variable}");
    }
}

#[test]
fn flags_that_mean_nothing_to_a_command_are_refused() {
    let folder = Folder::new();
    for args in [
        &["models", "--layout", "stead"][..],
        &["schema", "--context-file", "a.md"],
        &["tool", "--explain"],
        &["tool", "ls", "--explain", "--approve", "all"],
        &["workspace", "copy", ".", "y", "--agent", "a"],
        &["workspace", "copy", ".", "y", "--namespace", "n"],
        &["demo", "--skills", "s"],
        &["init", "x", "--memory", "a.md"],
        &["prompt", "--context-file", "not-there.md"],
        &["prompt", "--skills", "not-there"],
    ] {
        folder.run(args).exits(2);
    }
    assert!(!folder.has("x"));
    folder
        .run(&["init", "my-paw", "--layout", "openpaw"])
        .exits(0);
    let refused = folder
        .run(&["workspace", "push", "-C", "my-paw", "sqlite:s.db"])
        .exits(2)
        .err;
    assert!(refused.contains("openpaw"), "{refused}");
}
