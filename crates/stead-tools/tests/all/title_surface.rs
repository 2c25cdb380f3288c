//! The place for tests of the title surface: tool and parameter names of other harnesses for the
//! same tools.

use super::Session;
use serde_json::{Value, json};
use stead_core::{AccessKind, ToolEffect};
use stead_tools::{Registry, Surface, file_tools};

fn session(files: &[(&str, &str)]) -> Session {
    Session::with(files).on(Surface::Title)
}

fn registry() -> Registry {
    Registry::new(file_tools())
        .unwrap()
        .with_surface(Surface::Title)
}

fn names(registry: &Registry) -> Vec<String> {
    registry
        .specs()
        .iter()
        .map(|spec| spec.name.clone())
        .collect()
}

#[test]
fn the_model_sees_titles_and_tools_without_one_keep_their_name() {
    let registry = registry();
    #[rustfmt::skip]
    let expected = ["Edit", "Glob", "Grep", "LS", "Read", "Write", "delete_file", "file_info", "move_file", "overwrite_file", "tree"];
    assert_eq!(names(&registry), expected);
    let snake = names(&Registry::new(file_tools()).unwrap());
    assert_eq!(names(&registry.clone().with_surface(Surface::Snake)), snake);
    for spec in registry.specs().iter() {
        // Everything that speaks of a tool by a name finds the one tool.
        for name in spec.aliases.iter().chain([&spec.name]) {
            let canonical = registry.canonical(name).unwrap();
            assert!(snake.contains(&canonical.to_owned()), "{name}");
            assert_eq!(registry.find(name).unwrap().spec().name, canonical);
        }
        // What goes without saying is not shown.
        assert_eq!(
            spec.parameters["additionalProperties"],
            json!(null),
            "{}",
            spec.name
        );
    }
    let properties = |name: &str| {
        let spec = registry
            .specs()
            .iter()
            .find(|spec| spec.name == name)
            .cloned()
            .unwrap();
        let defaults = spec.parameters["properties"].as_object().unwrap().clone();
        defaults
            .into_iter()
            .map(|(name, schema)| (name, schema["default"].clone()))
            .collect::<Vec<(String, Value)>>()
    };
    let expected = [
        ("column", Value::Null),
        ("file_path", Value::Null),
        ("limit", json!(2000)),
        ("offset", json!(1)),
    ];
    assert_eq!(
        properties("Read"),
        expected.map(|(name, default)| (name.to_owned(), default))
    );
    let expected = [
        ("-A", Value::Null),
        ("-B", Value::Null),
        ("-C", Value::Null),
        ("-i", Value::Null),
        ("-n", json!(true)),
        ("glob", Value::Null),
        ("head_limit", json!(250)),
        ("multiline", Value::Null),
        ("offset", Value::Null),
        ("output_mode", json!("files_with_matches")),
        ("path", Value::Null),
        ("pattern", Value::Null),
        ("type", Value::Null),
    ];
    assert_eq!(
        properties("Grep"),
        expected.map(|(name, default)| (name.to_owned(), default))
    );
}

#[test]
fn a_call_becomes_one_of_the_canonical_tool() {
    let registry = registry();
    #[rustfmt::skip]
    let cases = [
        ("Read", json!({"file_path": "a", "offset": 1}), "read_file", json!({"file_path": "a", "offset": 0, "limit": 2000})),
        ("Read", json!({"path": "/a", "offset": "11", "limit": 5}), "read_file", json!({"file_path": "/a", "offset": 10, "limit": 5})),
        // By its canonical name it has its canonical parameters.
        ("read_file", json!({"file_path": "a", "offset": 1}), "read_file", json!({"file_path": "a", "offset": 1})),
        ("Write", json!({"file_path": "a", "content": "x"}), "write_file", json!({"file_path": "a", "content": "x", "mode": "known"})),
        ("write_file", json!({"file_path": "a", "content": "x"}), "write_file", json!({"file_path": "a", "content": "x"})),
        ("Edit", json!({"file_path": "a", "old_string": "x", "new_string": "y"}), "edit_file",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": false})),
        ("Glob", json!({"pattern": "*"}), "glob_files", json!({"pattern": "*"})),
        ("LS", json!({}), "ls", json!({})),
        ("list_dir", json!({"directory": "d"}), "ls", json!({"path": "d"})),
        ("Grep", json!({"pattern": "x"}), "grep_files", json!({"pattern": "x", "output_mode": "files", "line_numbers": true,
            "ignore_case": false, "multiline": false, "max_matches": 250, "offset": 0})),
        ("Grep", json!({"pattern": "x", "output_mode": "content", "-A": 1, "-B": 2, "context": 3, "-i": true, "-n": false,
                "type": "rust", "glob": "*.rs", "path": "src", "head_limit": 0, "offset": 4, "multiline": true}), "grep_files",
            json!({"pattern": "x", "path": "src", "glob": "*.rs", "type": "rust", "output_mode": "content", "after": 1,
                "before": 2, "context": 3, "line_numbers": false, "ignore_case": true, "multiline": true,
                "max_matches": 100_000, "offset": 4})),
    ];
    for (name, given, tool, args) in cases {
        let call = registry.prepare(name, given.clone()).unwrap();
        assert_eq!(
            (call.spec().name.as_str(), call.args()),
            (tool, &args),
            "{name} {given}"
        );
    }
    // The gate sees what the canonical tool would touch.
    let call = registry
        .prepare("Write", json!({"file_path": "a", "content": ""}))
        .unwrap();
    let accesses: Vec<_> = call
        .plan()
        .accesses()
        .iter()
        .map(|access| (access.path.clone(), access.kind))
        .collect();
    assert_eq!(
        (accesses, call.spec().risk.effect),
        (
            vec![("a".to_owned(), AccessKind::Write)],
            ToolEffect::Writes
        )
    );
}

#[test]
fn refusals_speak_of_titles() {
    let registry = registry();
    for (name, args, expected) in [
        (
            "Reed",
            json!({}),
            "there is no tool `Reed`, did you mean `Read`?",
        ),
        (
            "Read",
            json!({}),
            "Read: the required parameter `file_path` is missing",
        ),
        (
            "Read",
            json!({"file_path": "a", "offset": 0}),
            "Read: `offset`: 0 is less than the minimum of 1",
        ),
        (
            "Read",
            json!({"file_path": "a", "pages": "1-2"}),
            "Read: there is no parameter `pages`",
        ),
        (
            "Write",
            json!({"file_path": "a", "content": "", "mode": "overwrite"}),
            "Write: there is no parameter `mode`",
        ),
        (
            "write_file",
            json!({"file_path": "a", "content": "", "mode": "known"}),
            "write_file: `mode`:",
        ),
        (
            "Grep",
            json!({"pattern": "x", "literal": true}),
            "Grep: there is no parameter `literal`",
        ),
    ] {
        let told = registry
            .prepare(name, args.clone())
            .unwrap_err()
            .to_string();
        assert!(told.starts_with(expected), "{name} {args} told {told}");
    }
}

#[tokio::test]
async fn read_counts_lines_from_one() {
    let s = session(&[("a", "one\ntwo\nthree\n")]);
    assert_eq!(
        s.call("Read", json!({"file_path": "/a", "offset": 2, "limit": 1}))
            .await
            .as_deref(),
        Ok("     2  two\n[1 more line; continue with offset=3]")
    );
    assert_eq!(
        s.call("Read", json!({"file_path": "a", "offset": 3}))
            .await
            .as_deref(),
        Ok("     3  three")
    );
    assert_eq!(
        s.call("Read", json!({"file_path": "a", "offset": 9}))
            .await
            .unwrap_err(),
        "offset 9 is past the end of a, which has 3 lines"
    );
    assert_eq!(
        s.call("Read", json!({"file_path": "zzz"}))
            .await
            .unwrap_err(),
        "zzz does not exist; use Glob or LS to find it"
    );
    assert_eq!(
        s.call(
            "read_file",
            json!({"file_path": "a", "offset": 2, "limit": 1})
        )
        .await
        .as_deref(),
        Ok("     3  three")
    );
}

#[tokio::test]
async fn write_replaces_only_what_the_session_has_read_as_it_still_is() {
    let s = session(&[("old", "1\n")]);
    let write = |path: &str, content: &str| json!({"file_path": path, "content": content});
    assert_eq!(
        s.call("Write", write("d/new", "x\n")).await.as_deref(),
        Ok("Wrote d/new (1 line, 2 bytes)")
    );
    // What it wrote it knows.
    assert_eq!(
        s.call("Write", write("d/new", "y\n")).await.as_deref(),
        Ok("Wrote d/new (1 line, 2 bytes)")
    );
    let unread =
        "old exists already and was not changed; use Read first to see what you would replace";
    assert_eq!(
        s.call("Write", write("old", "2\n")).await.unwrap_err(),
        unread
    );
    s.call("Read", json!({"file_path": "old"})).await.unwrap();
    s.put("old", "changed by another\n");
    let told = s.call("Write", write("old", "2\n")).await.unwrap_err();
    assert!(told.contains("read it again"), "{told}");
    assert_eq!(s.content("old"), "changed by another\n");
    s.call("Read", json!({"file_path": "old"})).await.unwrap();
    assert_eq!(
        s.call("Write", write("old", "2\n")).await.as_deref(),
        Ok("Wrote old (1 line, 2 bytes)")
    );
    // A file that is gone is written anew.
    std::fs::remove_file(s.os("old")).unwrap();
    assert_eq!(
        s.call("Write", write("old", "3\n")).await.as_deref(),
        Ok("Wrote old (1 line, 2 bytes)")
    );
    assert_eq!(
        (s.content("old"), s.content("d/new")),
        ("3\n".to_owned(), "y\n".to_owned())
    );
}

#[tokio::test]
async fn edit_glob_grep_and_ls_work_under_their_titles() {
    let s = session(&[
        ("src/a.rs", "fn one() {}\nfn two() {}\n// end\n"),
        ("src/b.py", "def one(): pass\n"),
    ]);
    #[rustfmt::skip]
    let cases = [
        ("Edit", json!({"file_path": "src/b.py", "old_string": "pass", "new_string": "..."}), "Edited src/b.py: 1 replacement, the first at line 1"),
        ("Glob", json!({"pattern": "**/*.rs"}), "src/a.rs"),
        ("Grep", json!({"pattern": "one"}), "src/a.rs\nsrc/b.py"),
        ("Grep", json!({"pattern": "ONE", "-i": true, "output_mode": "count"}), "src/a.rs: 1\nsrc/b.py: 1"),
        ("Grep", json!({"pattern": "two", "output_mode": "content", "-B": 1}), "src/a.rs-1- fn one() {}\nsrc/a.rs:2: fn two() {}\n--"),
        ("Grep", json!({"pattern": "two", "output_mode": "content", "-A": 1, "-n": false}), "src/a.rs: fn two() {}\nsrc/a.rs- // end\n--"),
        ("Grep", json!({"pattern": "one.*end", "multiline": true, "type": "rust"}), "src/a.rs"),
        ("Grep", json!({"pattern": "fn", "output_mode": "content", "head_limit": 1}),
            "src/a.rs:1: fn one() {}\n[there are more than head_limit=1; narrow the pattern, the path or the glob]"),
        ("Grep", json!({"pattern": "fn", "output_mode": "content", "head_limit": 1, "offset": 1}), "src/a.rs:2: fn two() {}"),
    ];
    let listed = s.call("LS", json!({"path": "src"})).await.unwrap();
    assert!(listed.starts_with("a.rs  (31 bytes, "), "{listed}");
    for (name, args, expected) in cases {
        assert_eq!(
            s.call(name, args.clone()).await.as_deref(),
            Ok(expected),
            "{name} {args}"
        );
    }
    for (name, args, expected) in [
        (
            "Grep",
            json!({"pattern": "f(x"}),
            "Put a backslash before each of .+*?()|[]{}^$\\ to find it as it is",
        ),
        (
            "Edit",
            json!({"file_path": "src/a.rs", "old_string": "", "new_string": "x"}),
            "or use Write",
        ),
        (
            "Read",
            json!({"file_path": "src"}),
            "use LS to see what is in it",
        ),
    ] {
        let told = s.call(name, args.clone()).await.unwrap_err();
        assert!(told.ends_with(expected), "{name} {args}: {told}");
    }
}

#[test]
fn lists_narrow_by_any_name_and_deny_wins() {
    let list = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    for surface in [Surface::Snake, Surface::Title] {
        let all = registry().with_surface(surface);
        let kept = |allow: Option<&[&str]>, deny: &[&str]| {
            let left = all.filter(allow.map(list).as_deref(), &list(deny));
            let mut names: Vec<String> = left
                .specs()
                .iter()
                .map(|spec| left.find(&spec.name).unwrap().spec().name.clone())
                .collect();
            names.sort();
            names
        };
        assert_eq!(
            kept(Some(&["Read", "grep", "glob_files"]), &[]),
            ["glob_files", "grep_files", "read_file"]
        );
        assert_eq!(
            kept(Some(&["Read", "Write"]), &["write_file"]),
            ["read_file"]
        );
        assert_eq!(kept(Some(&[]), &[]), [""; 0]);
        assert_eq!(kept(Some(&["Bash"]), &[]), [""; 0]);
        assert_eq!(kept(None, &["Edit", "delete", "unknown"]).len(), 9);
        let left = all.filter(Some(&list(&["Read"])), &[]);
        assert!(
            left.prepare("Write", json!({}))
                .unwrap_err()
                .to_string()
                .starts_with("there is no tool `Write`")
        );
        assert!(left.prepare("read_file", json!({"file_path": "a"})).is_ok());
    }
}
