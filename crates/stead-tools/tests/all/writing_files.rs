//! The place for tests of the tools that change files: write_file, overwrite_file, edit_file,
//! delete_file, move_file.

use super::Session;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn writing_creates_and_says_how_to_do_otherwise() {
    let s = Session::new();
    let write = |content: &str, mode: &str| json!({"file_path": "d/a.txt", "content": content, "mode": mode});
    assert_eq!(
        s.call(
            "write_file",
            json!({"file_path": "d/a.txt", "content": "1\n"})
        )
        .await
        .unwrap(),
        "Created d/a.txt (1 line, 2 bytes)"
    );
    let told = s
        .call("write_file", write("2", "create"))
        .await
        .unwrap_err();
    assert_eq!(
        told,
        "d/a.txt exists already; use edit_file to change a part of it, or mode \"append\" or \"overwrite\""
    );
    s.call("write_file", write("2\n", "append")).await.unwrap();
    assert_eq!(s.content("d/a.txt"), "1\n2\n");
    s.call("write_file", write("3", "overwrite")).await.unwrap();
    assert_eq!(s.content("d/a.txt"), "3");
    s.call(
        "overwrite_file",
        json!({"file_path": "d/a.txt", "content": "4"}),
    )
    .await
    .unwrap();
    assert_eq!(s.content("d/a.txt"), "4");
    s.call(
        "write_file",
        json!({"file_path": "new", "content": "n", "mode": "append"}),
    )
    .await
    .unwrap();
    assert_eq!(s.content("new"), "n");
    assert_eq!(
        s.call("write_file", json!({"file_path": "d", "content": ""}))
            .await
            .unwrap_err()
            .split(';')
            .next(),
        Some("d exists already")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_at_the_same_time_all_arrive() {
    let s = Session::new();
    let appends = (0..6).map(|i| {
        s.call(
            "write_file",
            json!({"file_path": "log", "content": format!("{i}\n"), "mode": "append"}),
        )
    });
    let told = futures_util::future::join_all(appends).await;
    let mut lines: Vec<String> = s.content("log").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        (told.iter().filter(|t| t.is_ok()).count(), lines.len()),
        (6, 6)
    );
}

#[tokio::test]
async fn an_edit_replaces_exactly_what_is_named() {
    let s = Session::with(&[
        ("a.rs", "fn a() {}\nfn b() {}\n"),
        ("win", "\u{feff}a\r\nb\r\n"),
        ("many", "x\ny\nx\n"),
    ]);
    std::fs::set_permissions(s.os("a.rs"), PermissionsExt::from_mode(0o755)).unwrap();
    let edit = |file: &str, old: &str, new: &str| json!({"file_path": file, "old_string": old, "new_string": new});
    assert_eq!(
        s.call("edit_file", edit("a.rs", "fn b() {}", "fn c() {}"))
            .await
            .unwrap(),
        "Edited a.rs: 1 replacement, the first at line 2"
    );
    assert_eq!(s.content("a.rs"), "fn a() {}\nfn c() {}\n");
    assert_eq!(
        std::fs::metadata(s.os("a.rs"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o755
    );
    s.call("edit_file", edit("win", "a\nb", "c\nd"))
        .await
        .unwrap();
    assert_eq!(s.content("win"), "\u{feff}c\r\nd\r\n");
    s.call(
        "Edit",
        json!({"path": "many", "old_text": "x", "new_text": "z", "replace_all": true}),
    )
    .await
    .unwrap();
    assert_eq!(s.content("many"), "z\ny\nz\n");
    s.call("edit_file", edit("many", "y\n", "")).await.unwrap();
    assert_eq!(s.content("many"), "z\nz\n");
}

#[tokio::test]
async fn a_refused_edit_changes_nothing_and_shows_what_is_there() {
    let code =
        "fn main() {\n    let total = compute(a, b);\n    print(total);\n}\nprint(x);\nprint(x);\n";
    let s = Session::with(&[("m.rs", code)]);
    #[rustfmt::skip]
    let cases = [
        ("", "x", vec!["old_string is empty"]),
        ("x", "x", vec!["are the same"]),
        ("print(x);", "p", vec!["occurs 2 times (lines 5, 6)", "replace_all"]),
        ("let total = compute(a,b);", "p", vec!["closest lines", "     2      let total = compute(a, b);"]),
        ("fn main() {\n  let total = compute(a, b);", "p", vec!["white space only", "     1  fn main() {\n     2      let total"]),
        ("     2      let total = compute(a, b);", "p", vec!["at line 2 without line numbers"]),
        ("}\nprint(x);\nprint(x);\n\n", "p", vec!["was not found"]),
        ("nothing like this at all", "p", vec!["nothing in the file is like it"]),
    ];
    for (old, new, expected) in cases {
        let told = s
            .call(
                "edit_file",
                json!({"file_path": "m.rs", "old_string": old, "new_string": new}),
            )
            .await
            .unwrap_err();
        for part in expected {
            assert!(
                told.starts_with("m.rs was not changed: ") && told.contains(part),
                "{old:?} told {told}"
            );
        }
    }
    assert_eq!(s.content("m.rs"), code);
}

#[tokio::test]
async fn an_edit_of_a_file_changed_since_it_was_read_is_refused() {
    let s = Session::with(&[("f", "one two\n")]);
    let edit =
        |old: &str, new: &str| json!({"file_path": "f", "old_string": old, "new_string": new});
    s.call("read_file", json!({"file_path": "f"}))
        .await
        .unwrap();
    s.put("f", "one 2\n");
    let told = s.call("edit_file", edit("one", "1")).await.unwrap_err();
    assert_eq!(
        told,
        "f was changed by someone else in the meantime; read it again and repeat the change"
    );
    s.call("read_file", json!({"file_path": "f"}))
        .await
        .unwrap();
    s.call("edit_file", edit("one", "1")).await.unwrap();
    s.call("edit_file", edit("2", "two")).await.unwrap();
    assert_eq!(s.content("f"), "1 two\n");
}

#[tokio::test]
async fn a_hint_for_a_large_file_comes_soon() {
    let s = Session::new();
    s.put(
        "large",
        (0..200_000)
            .map(|i| format!("let value_{i} = compute({i}, other);\n"))
            .collect::<String>(),
    );
    let start = std::time::Instant::now();
    let old = "let value_77 = compute(77, another);\nmissing line";
    let told = s
        .call(
            "edit_file",
            json!({"file_path": "large", "old_string": old, "new_string": ""}),
        )
        .await
        .unwrap_err();
    assert!(
        told.contains("let value_77 = compute(77, other);"),
        "{told}"
    );
    // Under a second alone; on a busy machine more, but never the minutes that comparing all lines
    // would take.
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[tokio::test]
async fn deleting_takes_trees_but_not_the_workspace() {
    let s = Session::with(&[("d/a/b", ""), ("d/c", ""), ("f", "")]);
    assert_eq!(
        s.call("delete_file", json!({"file_path": "d"}))
            .await
            .as_deref(),
        Ok("Deleted d")
    );
    assert_eq!(
        s.call("delete", json!({"path": "f"})).await.as_deref(),
        Ok("Deleted f")
    );
    assert!(!s.os("d").exists() && !s.os("f").exists());
    assert!(
        s.call("delete_file", json!({"file_path": "f"}))
            .await
            .unwrap_err()
            .starts_with("f does not exist")
    );
    for root in ["", ".", "/"] {
        let told = s
            .call("delete_file", json!({"file_path": root}))
            .await
            .unwrap_err();
        assert!(
            told.starts_with("the workspace itself cannot be deleted"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn moving_never_overwrites_and_the_file_can_be_edited_after_it() {
    let s = Session::with(&[("a", "text"), ("b", "")]);
    s.call("read_file", json!({"file_path": "a"}))
        .await
        .unwrap();
    let told = s
        .call("move_file", json!({"from": "a", "to": "b"}))
        .await
        .unwrap_err();
    assert_eq!(
        told,
        "b exists already; delete it first or choose another path"
    );
    assert_eq!(
        s.call("move_file", json!({"from": "a", "to": "d/c"}))
            .await
            .as_deref(),
        Ok("Moved a to d/c")
    );
    s.call(
        "edit_file",
        json!({"file_path": "d/c", "old_string": "text", "new_string": "new"}),
    )
    .await
    .unwrap();
    assert_eq!(s.content("d/c"), "new");
}
