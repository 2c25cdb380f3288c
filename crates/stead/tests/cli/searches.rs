//! The place for tests of what searches of an agent find of its own running state: nothing, in every
//! layout and place, unless it is named.

use crate::support::{Done, Folder, done};
use serde_json::Value;
use stead::workspace::Layout;

/// One session searches in every way for a word that is nowhere else.
const SEARCHES: &str = r#"
- calls: [{tool: grep_files, args: {pattern: zebra}}]
- calls: [{tool: grep_files, args: {pattern: zebra, glob: "**/.*/**"}}]
- calls: [{tool: grep_files, args: {pattern: zebra, glob: "**/*.json*"}}]
- calls: [{tool: glob_files, args: {pattern: "**/*.json*"}}]
- calls: [{tool: glob_files, args: {pattern: "**/.*/**"}}]
- calls: [{tool: ls, args: {path: .}}]
- calls: [{tool: tree, args: {depth: 9}}]
- text: done
"#;

/// What the file tools showed in a run.
fn shown(run: Done) -> Vec<String> {
    let ended = |event: &Value| event["type"] == "tool_ended";
    let preview = |event: Value| {
        // The tool lists of a layout may leave a tool out.
        let is_search = event["name"] == "grep_files" || event["name"] == "glob_files";
        assert!(!is_search || event["status"] == "ok", "{event}");
        event["preview"].as_str().unwrap().to_owned()
    };
    let run = run.exits(0);
    run.lines().into_iter().filter(ended).map(preview).collect()
}

/// Runs five sessions in a workspace and returns what the first of them was shown.
#[track_caller]
fn shown_five_times(folder: &Folder, args: &[&str], what: &str) -> Vec<String> {
    let home = folder.path().join("home");
    let script = home.join("script.yaml");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(&script, SEARCHES).unwrap();
    let model = format!("scripted:{}", script.display());
    let run = |session: &str| {
        let base = ["run", "-m", &model, "--output", "events", "-s", session];
        let mut command = folder.command(&[&base, args, &["find the zebra"]].concat());
        shown(done(command.env("HOME", &home)))
    };
    let first = run("s1");
    for session in ["s2", "s3", "s4", "s5"] {
        assert_eq!(run(session), first, "{what} {session}");
    }
    for text in &first {
        assert!(
            !text.contains("jsonl") && !text.contains("sessions"),
            "{what}: {text}"
        );
    }
    assert_eq!(first.len(), 7, "{what}");
    first
}

#[test]
fn five_searches_for_a_word_that_is_nowhere_show_the_same_in_every_layout() {
    for layout in Layout::ALL {
        for user in [None, Some("alice")] {
            let folder = Folder::without_mark();
            let name = layout.as_str();
            let at = layout.def().nested_dir.unwrap_or("work");
            folder.run(&["init", at, "--layout", name]).exits(0);
            let _ = std::fs::remove_file(folder.path().join(at).join(".gitignore"));
            let args = match user {
                None => vec!["-C", at],
                Some(user) => vec!["-C", at, "-u", user],
            };
            shown_five_times(&folder, &args, &format!("{name} {user:?}"));
        }
    }
}

#[test]
fn five_searches_show_the_same_where_files_lie_in_a_store() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("w/agents")).unwrap();
    folder.put("w/AGENTS.md", "You keep notes.");
    folder.put(
        "w/agent.yaml",
        "filesystem: {mode: store, url: 'sqlite:agents/s.db'}\n",
    );
    let found = shown_five_times(&folder, &["-C", "w"], "store");
    assert!(found[5].contains("AGENTS.md"), "{found:?}");
}

#[test]
fn running_state_is_found_where_it_is_named() {
    let folder = Folder::new();
    folder.run(&["init", "w"]).exits(0);
    std::fs::remove_file(folder.path().join("w/.gitignore")).unwrap();
    let model = folder.script("- text: done\n- loop: true\n");
    folder
        .run(&["run", "-C", "w", "-m", &model, "-s", "s1", "the zebra"])
        .exits(0);
    let tool = |name: &str, args: &str| {
        let run = folder.run(&["tool", "-C", "w", name, args]).exits(0);
        assert!(run.out.contains("s1.log.jsonl"), "{name} {args}: {run:?}");
    };
    tool("grep_files", r#"{"pattern": "zebra", "path": "agents"}"#);
    tool("grep_files", r#"{"pattern": "zebra", "glob": "agents/**"}"#);
    tool("glob_files", r#"{"pattern": "agents/main/sessions/*"}"#);
    tool("ls", r#"{"path": "agents/main/sessions"}"#);
}
