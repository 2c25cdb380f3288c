//! The place for tests of glob_files, grep_files and tree.

use super::Session;
use serde_json::json;
use std::time::{Duration, Instant};

fn tree() -> Session {
    Session::with(&[
        ("src/a.rs", "fn one() {}\nfn two() {}\n// end\n"),
        ("src/b.py", "def one(): pass\n"),
        ("doc/x.md", "one (1)\n\n\n\none again\n"),
        (".env", "one=1\n"),
        (".gitignore", "target/\n"),
        ("target/out.rs", "fn one() {}\n"),
    ])
}

#[tokio::test]
async fn glob_gives_sorted_paths() {
    let s = tree();
    for (args, expected) in [
        (json!({"pattern": "*"}), "doc/x.md\nsrc/a.rs\nsrc/b.py"),
        (json!({"pattern": "**/*.{rs,md}"}), "doc/x.md\nsrc/a.rs"),
        (json!({"pattern": "*.rs", "path": "/src"}), "src/a.rs"),
        (json!({"pattern": ".env"}), ".env"),
        (json!({"pattern": "*.zip"}), "No files match \"*.zip\" in ."),
    ] {
        assert_eq!(
            s.call("glob_files", args.clone()).await.as_deref(),
            Ok(expected),
            "{args}"
        );
    }
    assert!(
        s.call("glob_files", json!({"pattern": "a[", "path": "."}))
            .await
            .unwrap_err()
            .contains("not a valid glob")
    );
    assert_eq!(
        s.call("glob_files", json!({"pattern": "*", "path": "scr"}))
            .await
            .unwrap_err(),
        "scr does not exist; did you mean src?"
    );
}

#[tokio::test]
async fn glob_says_when_there_is_more() {
    let s = Session::new();
    (0..1001).for_each(|i| s.put(&format!("f{i:04}"), ""));
    let text = s
        .call("glob_files", json!({"pattern": "f*"}))
        .await
        .unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!((rows.len(), rows[999]), (1001, "f0999"));
    assert_eq!(
        rows[1000],
        "[more than 1000 files match; narrow the pattern or the path]"
    );
}

#[tokio::test]
async fn grep_shows_lines_files_or_counts() {
    let s = tree();
    #[rustfmt::skip]
    let cases = [
        (json!({"pattern": "(fn|def) one"}), "src/a.rs:1: fn one() {}\nsrc/b.py:1: def one(): pass"),
        (json!({"pattern": "ONE", "ignore_case": true, "output_mode": "files"}), "doc/x.md\nsrc/a.rs\nsrc/b.py"),
        (json!({"pattern": "one", "output_mode": "count"}), "doc/x.md: 2\nsrc/a.rs: 1\nsrc/b.py: 1"),
        (json!({"pattern": "one (1)", "literal": true}), "doc/x.md:1: one (1)"),
        (json!({"pattern": "one", "type": "py"}), "src/b.py:1: def one(): pass"),
        (json!({"pattern": "one", "glob": "src/*.rs"}), "src/a.rs:1: fn one() {}"),
        (json!({"pattern": "one", "glob": ".env"}), ".env:1: one=1"),
        (json!({"pattern": "two", "path": "src/a.rs", "context": 1}), "src/a.rs-1- fn one() {}\nsrc/a.rs:2: fn two() {}\nsrc/a.rs-3- // end\n--"),
        (json!({"pattern": "one", "path": "doc", "context": 1}), "doc/x.md:1: one (1)\ndoc/x.md-2- \n--\ndoc/x.md-4- \ndoc/x.md:5: one again\n--"),
        (json!({"pattern": "one", "max_matches": 1}), "doc/x.md:1: one (1)\n[there are more than max_matches=1; narrow the pattern, the path or the glob]"),
        (json!({"pattern": "absent"}), "No matches for \"absent\" in ."),
        (json!({"pattern": "two", "path": "src", "before": 1}), "src/a.rs-1- fn one() {}\nsrc/a.rs:2: fn two() {}\n--"),
        (json!({"pattern": "two", "path": "src", "context": 1, "before": 0}), "src/a.rs:2: fn two() {}\nsrc/a.rs-3- // end\n--"),
        (json!({"pattern": "two", "path": "src", "-A": 1, "-n": false}), "src/a.rs: fn two() {}\nsrc/a.rs- // end\n--"),
        (json!({"pattern": "one.*two", "multiline": true}), "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() {}"),
        (json!({"pattern": "one", "offset": 1, "max_matches": 1}), "doc/x.md:5: one again\n[there are more than max_matches=1; narrow the pattern, the path or the glob]"),
        (json!({"pattern": "one", "offset": 2}), "src/a.rs:1: fn one() {}\nsrc/b.py:1: def one(): pass"),
        (json!({"pattern": "one", "offset": 1, "output_mode": "files"}), "src/a.rs\nsrc/b.py"),
        (json!({"pattern": "one", "offset": 9}), "No matches for \"one\" in . after the first 9"),
    ];
    for (args, expected) in cases {
        assert_eq!(
            s.call("grep_files", args.clone()).await.as_deref(),
            Ok(expected),
            "{args}"
        );
    }
}

#[tokio::test]
async fn grep_says_what_is_wrong_with_the_question() {
    let s = tree();
    for (args, expected) in [
        (
            json!({"pattern": "f(x"}),
            "Set literal to search for plain text",
        ),
        (
            json!({"pattern": "x", "type": "klingon"}),
            "\"klingon\" is not a known file type",
        ),
        (
            json!({"pattern": "x", "path": "none"}),
            "none does not exist",
        ),
        (
            json!({"pattern": "x", "literal": true, "multiline": true}),
            "literal and multiline do not go together",
        ),
    ] {
        let told = s.call("grep_files", args.clone()).await.unwrap_err();
        assert!(told.contains(expected), "{args}: {told}");
    }
}

#[tokio::test]
async fn a_long_result_is_cut_with_a_notice() {
    let s = Session::new();
    s.put("f", format!("{}\n", "x".repeat(1500)).repeat(900));
    let text = s.call("grep_files", json!({"pattern": "x"})).await.unwrap();
    assert!(text.chars().count() < 80_200 && text.ends_with("or use output_mode \"files\"]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_search_returns_within_a_second() {
    let s = Session::new();
    (0..500).for_each(|i| {
        s.put(
            &format!("d{}/f{i}", i % 30),
            "some words in a line\n".repeat(2000),
        )
    });
    let cancel = s.cx.cancel.clone();
    let start = Instant::now();
    let (told, ()) = tokio::join!(
        s.call("grep_files", json!({"pattern": r"(?-u)([a-z]+ +){9}zzz"})),
        async {
            tokio::time::sleep(Duration::from_millis(30)).await;
            cancel.cancel();
        }
    );
    assert_eq!(told.unwrap_err(), "the search was cancelled");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_tree_shows_what_glob_finds_to_the_depth_asked_for() {
    let s = tree();
    s.put("src/deep/er/c.rs", "");
    s.put("src/deep/er/d.rs", "");
    s.put("src-old/z", "");
    s.put("README", "");
    std::fs::create_dir(s.os("empty")).unwrap();
    for (args, expected) in [
        (
            json!({"depth": 1}),
            "README\ndoc/  (1 file)\nsrc-old/  (1 file)\nsrc/  (4 files)",
        ),
        (
            json!({}),
            "README\ndoc/\n  x.md\nsrc-old/\n  z\nsrc/\n  a.rs\n  b.py\n  deep/  (2 files)",
        ),
        (
            json!({"directory": "/src", "max_depth": 9}),
            "a.rs\nb.py\ndeep/\n  er/\n    c.rs\n    d.rs",
        ),
        // A directory that is named is shown, even if it is ignored.
        (json!({"path": "target"}), "out.rs"),
        (json!({"path": "empty"}), "[there are no files in empty]"),
    ] {
        assert_eq!(
            s.call("tree", args.clone()).await.as_deref(),
            Ok(expected),
            "{args}"
        );
    }
    for (args, expected) in [
        (
            json!({"path": "scr"}),
            "scr does not exist; did you mean src?",
        ),
        (
            json!({"path": "../x"}),
            "\"../x\" contains `..`; paths cannot leave the workspace",
        ),
        (json!({"depth": 0}), "depth"),
    ] {
        let told = s.call("tree", args.clone()).await.unwrap_err();
        assert!(told.contains(expected), "{args} told {told}");
    }
}

#[tokio::test]
async fn a_tree_is_cut_at_a_thousand_rows() {
    let s = Session::new();
    for number in 0..1200 {
        s.put(&format!("d/{number:04}"), "");
    }
    let told = s.call("tree", json!({})).await.unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[999]), (1001, "d/", "  0998"));
    assert_eq!(
        lines[1000],
        "[201 rows left out; set a smaller depth or name a directory as path]"
    );
}
