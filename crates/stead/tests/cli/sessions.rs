//! The place for tests of `stead sessions`: list, show, search, export, fork, rewind, trust, undo and
//! gc.

use crate::support::Folder;
use serde_json::{Value, json};
use stead_testkit::{FakeModel, reply};

/// A session `s` of two turns, `first` and `second`, and its server.
fn two_turns(folder: &Folder) -> FakeModel {
    let server = FakeModel::start_with(|request| {
        let seen = request.seen.as_ref().unwrap();
        let said: Vec<&str> = seen.user_texts().collect();
        match (said.last(), seen.results().count()) {
            (Some(&"first"), 0) => reply().call(
                "write_file",
                json!({"file_path": "a.txt", "content": "needle\n"}),
            ),
            _ => reply().text(format!("heard {}", said.join(", "))),
        }
    });
    for input in ["first", "second"] {
        folder
            .run_with(&server, &["run", "-m", "openai:x", "-s", "s", input])
            .exits(0);
    }
    server
}

#[test]
fn a_long_listing_is_shown_page_by_page() {
    let folder = Folder::new();
    let model = folder.script("- text: hello\n");
    for n in 0..5 {
        let id = format!("s{n}");
        folder.run(&["run", "-m", &model, "-s", &id, "hi"]).exits(0);
    }
    let listed = |args: &[&str]| -> Vec<(String, String)> {
        let page = folder
            .run(&[&["sessions", "list", "--json"], args].concat())
            .exits(0)
            .json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let rows = page.as_array().unwrap().iter();
        rows.map(|row| (text(&row["id"]), text(&row["cursor"])))
            .collect()
    };
    let everything = listed(&["--all"]);
    assert_eq!(everything.len(), 5);
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let after = ["--limit", "2", "--after", &cursor];
        let rows = listed(if cursor.is_empty() {
            &after[..2]
        } else {
            &after
        });
        let Some((_, last)) = rows.last() else { break };
        last.clone_into(&mut cursor);
        found.extend(rows);
    }
    assert_eq!(found, everything);
    let short = folder
        .run(&["sessions", "list", "--limit", "2"])
        .exits(0)
        .out;
    assert!(
        short.ends_with("there are more (--limit, --all)\n"),
        "{short}"
    );
    for wrong in [
        &["--limit", "0"][..],
        &["--after", "x"],
        &["--all", "--limit", "3"],
    ] {
        folder
            .run(&[&["sessions", "list"], wrong].concat())
            .exits(2);
    }
}

#[test]
fn sessions_are_listed_shown_searched_and_exported() {
    let folder = Folder::new();
    assert!(
        folder
            .run(&["sessions", "list"])
            .exits(0)
            .out
            .contains("no sessions yet")
    );
    assert_eq!(
        folder.run(&["sessions", "list", "--json"]).exits(0).json(),
        json!([])
    );
    drop(two_turns(&folder));

    let list = folder.run(&["sessions", "list", "--json"]).exits(0).json();
    assert_eq!(
        (&list[0]["id"], &list[0]["runs"], &list[0]["title"]),
        (&json!("s"), &json!(2), &json!("first"))
    );
    assert!(
        folder
            .run(&["sessions", "list"])
            .exits(0)
            .out
            .contains("completed")
    );

    let shown = folder.run(&["sessions", "show", "s"]).exits(0).out;
    assert!(
        shown.contains("[1] you: first") && shown.contains("[2] you: second"),
        "{shown}"
    );
    let full = folder
        .run(&["sessions", "show", "s", "--full"])
        .exits(0)
        .out;
    assert!(
        full.contains("write_file begins") && full.contains("run ended: completed"),
        "{full}"
    );
    let entries = folder
        .run(&["sessions", "show", "s", "--json"])
        .exits(0)
        .lines();
    let kinds: Vec<&str> = entries
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "session", "user", "model", "call", "result", "model", "end", "user", "model", "end"
        ]
    );

    let hits = folder
        .run(&["sessions", "search", "NEEDLE", "--json"])
        .exits(0)
        .lines();
    assert_eq!(
        (&hits[0]["session"], &hits[0]["seq"]),
        (&json!("s"), &json!(3))
    );
    assert!(
        folder
            .run(&["sessions", "search", "heard first"])
            .exits(0)
            .out
            .starts_with("s:")
    );
    folder.run(&["sessions", "search", "not there"]).exits(1);

    let markdown = folder.run(&["sessions", "export", "s"]).exits(0).out;
    assert!(
        markdown.starts_with("# Session s") && markdown.contains("## You\n\nsecond"),
        "{markdown}"
    );
    folder
        .run(&[
            "sessions", "export", "s", "--format", "json", "-f", "out.json",
        ])
        .exits(0);
    let exported: Vec<serde_json::Value> = serde_json::from_str(&folder.read("out.json")).unwrap();
    assert_eq!(exported, entries);

    assert_eq!(
        folder
            .run(&["sessions", "replay", "s", "--json"])
            .exits(0)
            .lines(),
        entries
    );
    folder.run(&["sessions", "rm", "s"]).exits(0);
    assert!(
        !folder.has("agents/main/sessions/s.log.jsonl") && !folder.has("agents/main/context/s")
    );
    assert_eq!(
        folder.run(&["sessions", "list", "--json"]).exits(0).json(),
        json!([])
    );
    folder.run(&["sessions", "rm", "s"]).exits(2);
}

#[test]
fn a_session_is_forked_and_rewound_without_erasing_anything() {
    let folder = Folder::new();
    let server = two_turns(&folder);
    let before = folder.read("agents/main/sessions/s.log.jsonl");
    assert_eq!(
        folder
            .run(&["sessions", "fork", "s", "--before", "2", "--to", "copy"])
            .exits(0)
            .out,
        "copy\n"
    );
    assert_eq!(folder.read("agents/main/sessions/s.log.jsonl"), before);
    let copied = folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "copy", "third"])
        .exits(0);
    assert_eq!(copied.out, "heard first, third\n");
    folder
        .run(&["sessions", "fork", "s", "--to", "copy"])
        .exits(2);

    folder
        .run(&["sessions", "rewind", "s", "--before", "2"])
        .exits(0);
    assert!(
        folder
            .read("agents/main/sessions/s.log.jsonl")
            .starts_with(&before)
    );
    let other = folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "other"])
        .exits(0);
    assert_eq!(other.out, "heard first, other\n");
    folder
        .run(&["sessions", "rewind", "s", "--before", "7"])
        .exits(2);
    for id in ["s", "copy"] {
        folder.run(&["sessions", "replay", id]).exits(0);
    }
    assert_eq!(server.rejections(), Vec::new());
}

/// A run that makes, edits, deletes and moves.
const CHANGES: &str = r#"
- calls:
  - {tool: write_file, args: {file_path: new/a.md, content: "alpha\n"}}
  - {tool: edit_file, args: {file_path: edit.md, old_string: two, new_string: "2"}}
  - {tool: delete_file, args: {file_path: old.md}}
  - {tool: move_file, args: {from: m.md, to: n.md}}
- text: Done.
"#;

fn changed() -> Folder {
    let folder = Folder::new();
    for (name, content) in [
        ("edit.md", "one two\n"),
        ("old.md", "old\n"),
        ("m.md", "moved\n"),
    ] {
        folder.put(name, content);
    }
    let model = folder.script(CHANGES);
    folder
        .run(&["run", "-m", &model, "-s", "s", "Change things."])
        .exits(0);
    assert!(folder.has("new/a.md") && folder.has("n.md") && !folder.has("old.md"));
    folder
}

#[test]
fn undo_lists_the_commands_that_it_cannot_take_back() {
    let folder = Folder::new();
    folder.put("n.md", "kept\n");
    let model = folder.script(
        "- calls: [{tool: execute, args: {command: rm n.md}}, {tool: write_file, args: {file_path: w.txt, content: w}}]\n\
         - text: done\n",
    );
    let run = |id: &str| {
        folder
            .run(&["run", "-m", &model, "-s", id, "--approve", "all", "go"])
            .exits(0)
    };
    run("both");
    let dry = folder.run(&["sessions", "undo", "--dry-run"]).exits(0).out;
    assert!(
        dry.contains("not taken back is what these commands did:\n  rm n.md"),
        "{dry}"
    );
    let json = folder
        .run(&["sessions", "undo", "--dry-run", "--json"])
        .exits(0)
        .json();
    assert_eq!(json["commands"], json!(["rm n.md"]));
    let done = folder.run(&["sessions", "undo"]).exits(0).out;
    assert!(
        done.contains("of session both:") && done.contains("  rm n.md"),
        "{done}"
    );
    assert!(!folder.has("w.txt") && !folder.has("n.md"));
    let none = folder.run(&["sessions", "undo"]).exits(2).err;
    assert!(
        none.contains("of session both ran commands") && none.contains("rm n.md"),
        "{none}"
    );

    let model = folder
        .script("- calls: [{tool: execute, args: {command: touch made.txt}}]\n- text: done\n");
    folder
        .run(&["run", "-m", &model, "-s", "only", "--approve", "all", "go"])
        .exits(0);
    let none = folder.run(&["sessions", "undo", "-s", "only"]).exits(2).err;
    assert!(none.contains("of session only ran commands"), "{none}");
    assert!(none.contains("  touch made.txt"), "{none}");
}

#[test]
fn undo_shows_a_diff_restores_exactly_and_refuses_where_someone_else_was() {
    let folder = changed();
    let dry = folder.run(&["sessions", "undo", "--dry-run"]).exits(0).out;
    for shown in [
        "bring back old.md",
        "-one 2",
        "+one two",
        "remove new/a.md",
        "remove n.md",
        "bring back m.md",
    ] {
        assert!(dry.contains(shown), "{shown}: {dry}");
    }
    assert!(folder.has("new/a.md"), "a dry run changes nothing");
    folder.put("edit.md", "one 2, and mine\n");
    let refused = folder.run(&["sessions", "undo"]).exits(1);
    assert!(
        refused.err.contains("nothing was undone")
            && refused.err.contains("edit.md was changed since"),
        "{refused:?}"
    );
    assert!(folder.has("new/a.md") && !folder.has("old.md"));
    let json = folder.run(&["sessions", "undo", "--json"]).exits(1).json();
    assert_eq!(json["undone"], false);
    folder.put("edit.md", "one 2\n");
    folder.run(&["sessions", "undo", "-s", "s"]).exits(0);
    assert_eq!(
        (
            folder.read("edit.md"),
            folder.read("old.md"),
            folder.read("m.md")
        ),
        ("one two\n".into(), "old\n".into(), "moved\n".into())
    );
    assert!(!folder.has("new") && !folder.has("n.md"));
    assert!(
        folder
            .run(&["sessions", "undo"])
            .exits(2)
            .err
            .contains("no run that changed a file")
    );
}

#[test]
fn a_rewind_takes_files_along_and_gc_keeps_the_space_bounded() {
    let folder = changed();
    let again = "- calls: [{tool: write_file, args: {file_path: n.md, content: x, mode: overwrite}}]\n- text: ok\n";
    let model = folder.script(&format!("{CHANGES}{again}"));
    folder
        .run(&["run", "-m", &model, "-s", "s", "And again."])
        .exits(0);
    let back = folder
        .run(&["sessions", "rewind", "s", "--before", "1", "--files"])
        .exits(0)
        .out;
    assert!(
        back.contains("undone: old.md") && back.contains("continues before turn 1"),
        "{back}"
    );
    assert_eq!(
        (folder.read("m.md"), folder.read("old.md")),
        ("moved\n".into(), "old\n".into())
    );
    assert!(!folder.has("n.md") && !folder.has("new"));

    let folder = changed();
    folder.put(".stead-00112233aabbccdd.tmp", "half");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    let left = std::fs::File::open(folder.path().join(".stead-00112233aabbccdd.tmp")).unwrap();
    left.set_modified(long_ago).unwrap();
    folder.put("agent.yaml", "undo: {max_mb: 0}\n");
    let dry = folder.run(&["gc", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(
        (&dry["runs"], folder.has(".stead-00112233aabbccdd.tmp")),
        (&json!(1), true)
    );
    let done = folder.run(&["gc", "--json"]).exits(0).json();
    assert_eq!(
        (
            &done["runs"],
            &done["leftovers"],
            folder.has(".stead-00112233aabbccdd.tmp")
        ),
        (&json!(1), &json!(1), false)
    );
    assert!(
        folder
            .run(&["sessions", "undo"])
            .exits(2)
            .err
            .contains("no run")
    );
}

#[test]
fn memory_and_sessions_are_searched_ranked_and_within_dates() {
    let folder = Folder::new();
    folder.put(
        "MEMORY.md",
        "The staging server is called heron\nDeploys happen on Tuesdays\n数据库用 PostgreSQL\n",
    );
    std::fs::create_dir(folder.path().join("memory")).unwrap();
    folder.put(
        "memory/2026-11-02.md",
        "- heron was moved to Frankfurt\n- heron got more memory\n",
    );
    let run = |args: &[&str]| folder.run(args);

    let found = run(&["memory", "search", "where is heron frankfurt"])
        .exits(0)
        .out;
    assert_eq!(
        found,
        "memory/2026-11-02.md:1 (2026-11-02) - heron was moved to Frankfurt\n\
         memory/2026-11-02.md:2 (2026-11-02) - heron got more memory\n\
         MEMORY.md:1 The staging server is called heron\n"
    );
    let hits = run(&["memory", "search", "数据库", "--json"])
        .exits(0)
        .lines();
    assert_eq!(
        (&hits[0]["path"], &hits[0]["line"], &hits[0]["date"]),
        (&json!("MEMORY.md"), &json!(3), &Value::Null)
    );
    let dated = run(&[
        "memory",
        "search",
        "heron",
        "--since",
        "2026-11-02",
        "--until",
        "2026-11-02",
        "--limit",
        "1",
    ])
    .exits(0);
    assert_eq!(
        (dated.out.lines().count(), dated.err.as_str()),
        (1, "more than 1 hits; raise it with --limit\n")
    );
    run(&["memory", "search", "heron", "--until", "2001-01-01"]).exits(1);
    assert!(
        run(&["memory", "search", "heron", "--since", "soon"])
            .exits(2)
            .err
            .contains("this is not a date")
    );
    assert!(
        run(&["memory", "search", " "])
            .exits(2)
            .err
            .contains("the query is empty")
    );
    assert!(
        run(&["memory", "search", "x", "--limit", "0"])
            .exits(2)
            .err
            .contains("1..=300")
    );
    run(&["sessions", "search", "\"((", "--limit", "3"]).exits(1);
    // Nobody looks for it, and nothing breaks without it.
    std::fs::remove_file(folder.path().join("agents/main/search.sqlite")).unwrap();
    assert_eq!(
        run(&["memory", "search", "where is heron frankfurt"])
            .exits(0)
            .out,
        found
    );
}

#[test]
fn a_person_vouches_for_a_session_and_the_question_names_where_its_content_comes_from() {
    let folder = Folder::new();
    let server = FakeModel::start_with(|request| {
        let seen = request.seen.as_ref().unwrap();
        match seen.results().count() {
            0 => reply().call("execute", json!({"command": "mkdir made"})),
            1 => reply().call(
                "write_file",
                json!({"file_path": "AGENTS.md", "content": "x"}),
            ),
            _ => reply().text("done"),
        }
    });
    let run = ["run", "-m", "openai:x", "-s", "s", "--mode", "bypass", "go"];
    folder.run_with(&server, &run).exits(3);
    let asked = folder.run(&["approvals", "list", "--json"]).exits(0).out;
    assert!(
        asked.contains("untrusted content from the command `mkdir made`"),
        "{asked}"
    );
    let trust = ["sessions", "trust", "s", "--json", "--by", "ann"];
    assert_eq!(
        folder.run(&trust).exits(0).json(),
        json!({"session": "s", "trusted": [{"kind": "command", "command": "mkdir made"}], "more": 0})
    );
    assert_eq!(
        folder.run(&trust).exits(0).json(),
        json!({"session": "s", "trusted": null, "more": 0})
    );
    let said = folder.run(&["sessions", "trust", "s"]).exits(0).out;
    assert!(said.contains("s is not tainted"), "{said}");
    let shown = folder
        .run(&["sessions", "show", "s", "--full"])
        .exits(0)
        .out;
    assert!(shown.contains("the session so far as trusted"), "{shown}");
    folder.run(&["sessions", "trust", "none"]).exits(2);
}

#[test]
fn a_session_is_continued_by_the_beginning_of_its_id_its_title_or_as_the_newest() {
    let folder = Folder::new();
    let server = FakeModel::start(vec![reply().text("ok"); 9]);
    let run = |args: &[&str]| {
        let mut all = vec!["run", "-m", "openai:x"];
        all.extend(args);
        folder.run_with(&server, &all)
    };
    let ids = || -> Vec<String> {
        let listed = folder.run(&["sessions", "list", "--json"]).exits(0).json();
        let ids = listed.as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let empty = run(&["-c", "one"]).exits(2);
    assert!(empty.err.contains("no session to continue"), "{empty:?}");
    run(&["one"]).exits(0);
    let first = ids()[0].clone();
    run(&["two"]).exits(0);
    let second = ids()[0].clone();
    assert_eq!(first.len(), 17);

    // The newest one is continued, and the beginning of an id never begins another.
    run(&["-c", "three"]).exits(0);
    assert_eq!(ids(), [second.clone(), first.clone()]);
    let told = run(&["-s", &first[..6], "four"]).exits(0);
    assert!(
        told.err.contains(&format!("session {first} · one")),
        "{told:?}"
    );
    assert_eq!(ids(), [first.clone(), second.clone()]);
    // A name that no session has begins one, and says so.
    let named = run(&["-s", "s", "five"]).exits(0);
    assert!(named.err.contains("new session s\n"), "{named:?}");
    assert_eq!(ids()[0], "s");

    folder
        .run(&["sessions", "name", &second, "Move to PostgreSQL"])
        .exits(0);
    run(&["-s", "Move to PostgreSQL", "six"]).exits(0);
    assert_eq!(ids()[0], second);
    let shown = folder
        .run(&["sessions", "show", "Move to PostgreSQL"])
        .exits(0);
    assert!(shown.out.contains("six"), "{shown:?}");
    folder
        .run(&["sessions", "name", &first, "Move to PostgreSQL"])
        .exits(0);
    let both = run(&["-s", "Move to PostgreSQL", "seven"]).exits(2);
    assert!(
        both.err.contains(&first) && both.err.contains(&second),
        "{both:?}"
    );
}

#[test]
fn an_open_run_is_resumed_without_the_name_of_its_session() {
    let folder = Folder::new();
    folder.put("agent.yaml", "approvals: {write_file: true}\n");
    let server = FakeModel::start(vec![
        reply().call("write_file", json!({"file_path": "a.txt", "content": "a"})),
        reply().text("written"),
    ]);
    folder
        .run_with(&server, &["run", "-m", "openai:x", "go"])
        .exits(3);
    let resumed = folder
        .run_with(&server, &["run", "--resume", "--approve", "all"])
        .exits(0);
    assert_eq!(resumed.out, "written\n");
    assert!(folder.has("a.txt"));
}
