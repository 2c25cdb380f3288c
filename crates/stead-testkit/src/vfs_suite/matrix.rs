//! Patterns and trees with the expected search results.
//!
//! Effects: test support.

use super::op::{bounds, p};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_vfs::{
    Bounds, Case, Expect, FileSearchError, GlobQuery, GrepMode, GrepQuery, LineKind, Syntax, Vfs,
    VfsError, Visible,
};

/// Runs all tests of this module on an empty place, which is empty again afterwards.
pub async fn matrix(vfs: Arc<dyn Vfs>) {
    let vfs = &*vfs;
    names(vfs).await;
    ignores(vfs).await;
    lines(vfs).await;
    limits(vfs).await;
    ends(vfs).await;
    assert_eq!(super::tree(vfs).await, Vec::<String>::new());
}

async fn plant(vfs: &dyn Vfs, files: &[(&str, &str)]) {
    for (path, content) in files {
        vfs.write(&p(path), content.to_string().into(), Expect::Absent)
            .await
            .unwrap();
    }
}

async fn clear(vfs: &dyn Vfs) {
    for entry in vfs.list(&p("")).await.unwrap() {
        vfs.remove(&p(&entry.name)).await.unwrap();
    }
}

async fn glob(vfs: &dyn Vfs, pattern: &str, root: &str) -> Vec<String> {
    let query = GlobQuery {
        pattern: pattern.into(),
        root: p(root),
    };
    let found = vfs
        .search()
        .glob(query, bounds(1000))
        .await
        .unwrap_or_else(|e| panic!("{pattern} in {root}: {e}"));
    assert!(
        !found.truncated && !found.timed_out && found.failed.is_empty(),
        "{found:?}"
    );
    found.paths.iter().map(ToString::to_string).collect()
}

async fn expect_globs(vfs: &dyn Vfs, cases: &[(&str, &str, &[&str])]) {
    for (pattern, root, expected) in cases {
        assert_eq!(
            glob(vfs, pattern, root).await,
            *expected,
            "{pattern} in {root:?}"
        );
    }
}

async fn names(vfs: &dyn Vfs) {
    let files = [
        "a.rs",
        "b.RS",
        "a b.rs",
        "src/lib.rs",
        "src/lib/mod.rs",
        "src/lib-x.rs",
        "src/main.py",
        "src/deep/er/x.ts",
        "test/a.js",
        "x/test/b.ts",
        ".env",
        ".github/ci.yml",
        ".github/.deep/x.yml",
        ".git/config",
        "x/.git/HEAD.rs",
        "ünï/日本.rs",
        "dot.d/.x",
        "-dash.rs",
        "(p).rs",
    ];
    plant(vfs, &files.map(|file| (file, "text\n"))).await;
    #[rustfmt::skip]
    expect_globs(vfs, &[
        ("*.rs", "", &["(p).rs", "-dash.rs", "a b.rs", "a.rs", "src/lib-x.rs", "src/lib.rs", "src/lib/mod.rs", "ünï/日本.rs"]),
        ("/*.rs", "", &["(p).rs", "-dash.rs", "a b.rs", "a.rs"]),
        ("./?.rs", "", &["a.rs"]),
        ("?.*", "", &["a.rs", "b.RS", "src/deep/er/x.ts", "test/a.js", "x/test/b.ts"]),
        ("src/*", "", &["src/lib-x.rs", "src/lib.rs", "src/main.py"]),
        ("src/**", "", &["src/deep/er/x.ts", "src/lib-x.rs", "src/lib.rs", "src/lib/mod.rs", "src/main.py"]),
        ("src/**/*.rs", "", &["src/lib-x.rs", "src/lib.rs", "src/lib/mod.rs"]),
        ("src/*/*", "", &["src/lib/mod.rs"]),
        ("**/test/*.{js,ts}", "", &["test/a.js", "x/test/b.ts"]),
        ("{src,test}/*.{rs,js}", "", &["src/lib-x.rs", "src/lib.rs", "test/a.js"]),
        ("[!a-z]*.rs", "", &["(p).rs", "-dash.rs", "ünï/日本.rs"]),
        ("[ab]*", "", &["a b.rs", "a.rs", "b.RS", "test/a.js", "x/test/b.ts"]),
        ("日*", "", &["ünï/日本.rs"]),
        ("*.yml", "", &[]),
        (".*", "", &[".env", "dot.d/.x"]),
        ("**/.*", "", &[".env", "dot.d/.x"]),
        (".github/**", "", &[".github/.deep/x.yml", ".github/ci.yml"]),
        ("*.yml", ".github", &[".github/ci.yml"]),
        ("**/.deep/*", ".github", &[".github/.deep/x.yml"]),
        ("{.env,a.rs}", "", &[".env", "a.rs"]),
        (".git/*", "", &[]),
        ("**/.git/*", "", &[]),
        ("config", ".git", &[".git/config"]),
        ("*.rs", "src", &["src/lib-x.rs", "src/lib.rs", "src/lib/mod.rs"]),
        ("lib/*", "src", &["src/lib/mod.rs"]),
        ("src/*", "src", &[]),
        ("none", "", &[]),
    ]).await;
    clear(vfs).await;
}

async fn ignores(vfs: &dyn Vfs) {
    plant(
        vfs,
        &[
            (".gitignore", "*.log\n!keep.log\n/out\n/gen/*\n!/gen/kept\nbuild/\ndocs/**/tmp\n# comment\n\\#hash\n"),
            ("x.log", ""),
            ("keep.log", ""),
            ("out", ""),
            ("sub/out", ""),
            ("gen/a", ""),
            ("gen/kept", ""),
            ("build/b", ""),
            ("sub/build/b", ""),
            ("sub/build.txt", ""),
            ("docs/a/tmp", ""),
            ("docs/tmp", ""),
            ("docs/a/real", ""),
            ("#hash", ""),
            ("sub/.gitignore", "!x.log\nkeep.log\n/only-here\n"),
            ("sub/x.log", ""),
            ("sub/keep.log", ""),
            ("sub/only-here", ""),
            ("sub/d/only-here", ""),
            ("own/.ignore", "!*.log\nsecret\n"),
            ("own/y.log", ""),
            ("own/secret", ""),
            ("own/d/secret", ""),
            ("own/.gitignore", "y.log\n"),
            ("repo/.git/HEAD", ""),
            ("repo/z.log", ""),
            ("repo/out", ""),
            ("-early/x.log", ""),
            ("-early/(first)", ""),
            ("-early/.gitignore", "(first)\n"),
            ("crlf/.gitignore", "a\r\nb\r\n"),
            ("crlf/a", ""),
            ("crlf/c", ""),
        ],
    )
    .await;
    #[rustfmt::skip]
    expect_globs(vfs, &[
        ("**", "", &["crlf/c", "docs/a/real", "gen/kept", "keep.log", "own/y.log", "repo/out", "repo/z.log",
            "sub/build.txt", "sub/d/only-here", "sub/out", "sub/x.log"]),
        ("*", "sub", &["sub/build.txt", "sub/d/only-here", "sub/out", "sub/x.log"]),
        ("*", "gen", &["gen/kept"]),
        ("*", "own", &["own/y.log"]),
        ("*", "repo", &["repo/out", "repo/z.log"]),
        ("*", "build", &["build/b"]),
        ("*", "crlf", &["crlf/c"]),
        ("*.log", "-early", &[]),
    ]).await;
    clear(vfs).await;
}

fn grep_for(pattern: &str, root: &str) -> GrepQuery {
    GrepQuery::new(pattern, p(root))
}

async fn grep(vfs: &dyn Vfs, query: GrepQuery, limits: Bounds) -> (Vec<String>, bool) {
    let found = vfs
        .search()
        .grep(query.clone(), limits)
        .await
        .unwrap_or_else(|e| panic!("{query:?}: {e}"));
    assert!(
        !found.timed_out && found.failed.is_empty() && found.unreadable == 0,
        "{found:?}"
    );
    let mut shown = Vec::new();
    for file in &found.files {
        if file.lines.is_empty() {
            shown.push(format!("{} {}", file.path, file.count));
        }
        for line in &file.lines {
            let mark = if line.kind == LineKind::Match {
                ':'
            } else {
                '-'
            };
            shown.push(format!(
                "{}{mark}{}{mark}{}",
                file.path, line.number, line.text
            ));
        }
    }
    (shown, found.truncated)
}

async fn lines(vfs: &dyn Vfs) {
    let long = format!("{}needle\n", "ü".repeat(1500));
    let big = format!("{}big needle\n", "some filler line\n".repeat(20_000));
    // Longer than any place reads at once, with a match across a possible block boundary.
    let huge = format!(
        "huge one\n{}huge two\n{}huge three",
        "0123456\n".repeat(65_535),
        "filler line\n".repeat(250_000)
    );
    plant(
        vfs,
        &[
            ("z/huge", &huge),
            ("z/huge.bin", &format!("{huge}\0")),
            ("a.rs", "fn alpha() {}\nlet x = 1;\nfn beta() {}\n"),
            ("crlf.txt", "one\r\ntwo alpha\r\nthree\r\n"),
            ("uni.txt", "straße\nГРАД alpha\nlast line"),
            ("bin", "alpha\0\n"),
            ("late", "alpha\nalpha\nx\0y\n"),
            (".hidden", "alpha\n"),
            ("d/.ignore", "skip\n"),
            ("d/skip", "alpha\n"),
            ("d/p.py", "def alpha(): pass\n"),
            ("empty", ""),
            ("long", &long),
            ("z/big", &big),
            ("m", "l1\nl2\nhit\nl4\nhit\nl6\nl7\nl8\nhit\n"),
        ],
    )
    .await;
    let q = grep_for;
    // A line that is too long is shown around its match.
    let clipped = format!("long:1:[…2500 bytes before] {}needle", "ü".repeat(250));
    let clipped = [clipped.as_str()];
    #[rustfmt::skip]
    let cases: Vec<(GrepQuery, &[&str])> = vec![
        (q("alpha", ""), &["a.rs:1:fn alpha() {}", "crlf.txt:2:two alpha", "d/p.py:1:def alpha(): pass", "uni.txt:2:ГРАД alpha"]),
        (q(r"^fn \w+\(", ""), &["a.rs:1:fn alpha() {}", "a.rs:3:fn beta() {}"]),
        (q("alpha$", ""), &["crlf.txt:2:two alpha", "uni.txt:2:ГРАД alpha"]),
        (q("^three$", ""), &["crlf.txt:3:three"]),
        (q("last line$", ""), &["uni.txt:3:last line"]),
        (GrepQuery { case: Case::Insensitive, ..q("град", "") }, &["uni.txt:2:ГРАД alpha"]),
        (GrepQuery { syntax: Syntax::Literal, ..q("a() {", "") }, &["a.rs:1:fn alpha() {}", "a.rs:3:fn beta() {}"]),
        (GrepQuery { mode: GrepMode::Files, ..q("fn|hit", "") }, &["a.rs 1", "m 1"]),
        (GrepQuery { mode: GrepMode::Count, ..q("fn|hit", "") }, &["a.rs 2", "m 3"]),
        (GrepQuery { mode: GrepMode::Content { before: 1, after: 1 }, ..q("hit", "") },
            &["m-2-l2", "m:3:hit", "m-4-l4", "m:5:hit", "m-6-l6", "m-8-l8", "m:9:hit"]),
        (GrepQuery { glob: Some("*.{rs,py}".into()), ..q("alpha", "") }, &["a.rs:1:fn alpha() {}", "d/p.py:1:def alpha(): pass"]),
        (GrepQuery { glob: Some("d/**".into()), ..q("alpha", "") }, &["d/p.py:1:def alpha(): pass"]),
        (GrepQuery { glob: Some(".*".into()), ..q("alpha", "") }, &[".hidden:1:alpha"]),
        (GrepQuery { file_type: Some("py".into()), ..q("alpha", "") }, &["d/p.py:1:def alpha(): pass"]),
        (GrepQuery { glob: Some("p.*".into()), ..q("alpha", "d") }, &["d/p.py:1:def alpha(): pass"]),
        (q("alpha", "d/skip"), &["d/skip:1:alpha"]),
        (q("alpha", ".hidden"), &[".hidden:1:alpha"]),
        (GrepQuery { glob: Some("*.rs".into()), ..q("alpha", "d/skip") }, &[]),
        (q("alpha", "bin"), &[]),
        (q("alpha", "late"), &[]),
        (q("alpha", "empty"), &[]),
        (q("^huge", ""), &["z/huge:1:huge one", "z/huge:65537:huge two", "z/huge:315538:huge three"]),
        (GrepQuery { mode: GrepMode::Content { before: 1, after: 1 }, ..q("three$", "z/huge") }, &["z/huge-315537-filler line", "z/huge:315538:huge three"]),
        (GrepQuery { mode: GrepMode::Count, ..q("huge", "z") }, &["z/huge 3"]),
        (q("big needle", ""), &["z/big:20001:big needle"]),
        (GrepQuery { syntax: Syntax::Literal, ..q("needle", "long") }, &clipped),
        (GrepQuery { mode: GrepMode::Content { before: 2, after: 0 }, ..q("l6|l8", "m") }, &["m-4-l4", "m-5-hit", "m:6:l6", "m-7-l7", "m:8:l8"]),
        (GrepQuery { mode: GrepMode::Content { before: 0, after: 1 }, ..q("l2|l6", "m") }, &["m:2:l2", "m-3-hit", "m:6:l6", "m-7-l7"]),
        (GrepQuery { syntax: Syntax::Multiline, ..q("hit.l4$", "") }, &["m:3:hit", "m:4:l4"]),
        (GrepQuery { syntax: Syntax::Multiline, mode: GrepMode::Content { before: 1, after: 1 }, ..q(r"alpha$\s+three$", "") },
            &["crlf.txt-1-one", "crlf.txt:2:two alpha", "crlf.txt:3:three"]),
        (GrepQuery { syntax: Syntax::Multiline, mode: GrepMode::Count, ..q(r"\bl\d\n", "m") }, &["m 6"]),
        (GrepQuery { syntax: Syntax::Multiline, mode: GrepMode::Files, ..q("huge two.*huge three", "z") }, &["z/huge 1"]),
        (GrepQuery { syntax: Syntax::Multiline, ..q("alpha", "late") }, &[]),
    ];
    for (query, expected) in cases {
        let told = format!("{query:?}");
        assert_eq!(
            grep(vfs, query, bounds(1000)).await,
            (expected.iter().map(ToString::to_string).collect(), false),
            "{told}"
        );
    }
    clear(vfs).await;
}

async fn limits(vfs: &dyn Vfs) {
    let paths: Vec<String> = (0..60).map(|i| format!("d{}/f{i:02}", i % 7)).collect();
    for path in &paths {
        vfs.write(&p(path), "hit\nmiss\nhit\n".into(), Expect::Absent)
            .await
            .unwrap();
    }
    let mut all = paths.clone();
    all.sort();
    for limit in [0, 1, 2, 30, 59, 60, 61] {
        let query = GlobQuery {
            pattern: "f*".into(),
            root: p(""),
        };
        let found = vfs.search().glob(query, bounds(limit)).await.unwrap();
        let shown: Vec<_> = found.paths.iter().map(ToString::to_string).collect();
        assert_eq!(
            (shown.as_slice(), found.truncated),
            (&all[..limit.min(60)], limit < 60),
            "glob {limit}"
        );
        let lines: Vec<String> = all
            .iter()
            .flat_map(|path| [format!("{path}:1:hit"), format!("{path}:3:hit")])
            .collect();
        for limit in [limit, 2 * limit, 2 * limit + 1] {
            let found = grep(vfs, grep_for("hit", ""), bounds(limit)).await;
            assert_eq!(
                found,
                (lines[..limit.min(120)].to_vec(), limit < 120),
                "grep {limit}"
            );
        }
        let files = GrepQuery {
            mode: GrepMode::Count,
            ..grep_for("hit", "")
        };
        let counts: Vec<String> = all.iter().map(|path| format!("{path} 2")).collect();
        assert_eq!(
            grep(vfs, files, bounds(limit)).await,
            (counts[..limit.min(60)].to_vec(), limit < 60),
            "{limit}"
        );
    }
    let visible = Visible::If(Arc::new(|path: &str| path.ends_with('7')));
    let some: Vec<String> = all
        .iter()
        .filter(|path| path.ends_with('7'))
        .cloned()
        .collect();
    for limit in [5, 6, 7] {
        let limits = Bounds {
            visible: visible.clone(),
            ..bounds(limit)
        };
        let query = GlobQuery {
            pattern: "**".into(),
            root: p(""),
        };
        let found = vfs.search().glob(query, limits.clone()).await.unwrap();
        let shown: Vec<_> = found.paths.iter().map(ToString::to_string).collect();
        assert_eq!(
            (shown.as_slice(), found.truncated),
            (&some[..limit.min(6)], limit < 6)
        );
        let query = GrepQuery {
            mode: GrepMode::Files,
            ..grep_for("hit", "")
        };
        let expected: Vec<_> = some
            .iter()
            .take(limit)
            .map(|path| format!("{path} 1"))
            .collect();
        assert_eq!(grep(vfs, query, limits).await, (expected, limit < 6));
    }
    clear(vfs).await;
}

/// Tests searches that end early or with an error.
async fn ends(vfs: &dyn Vfs) {
    plant(vfs, &[("f", "x\n"), ("d/g", "x\n")]).await;
    let search = vfs.search();
    let glob = |pattern: &str, root: &str| GlobQuery {
        pattern: pattern.into(),
        root: p(root),
    };
    let error = async |query| {
        search
            .grep(query, bounds(10))
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(error(grep_for("a(b", "")).await.contains("unclosed group"));
    assert!(error(grep_for("a\nb", "")).await.contains("\\n"));
    assert!(
        error(GrepQuery {
            file_type: Some("rusty".into()),
            ..grep_for("a", "")
        })
        .await
        .contains("\"rusty\"")
    );
    assert!(
        error(GrepQuery {
            glob: Some("{".into()),
            ..grep_for("a", "")
        })
        .await
        .contains("glob")
    );
    assert_eq!(error(grep_for("a", "none")).await, "none does not exist");
    assert_eq!(error(grep_for("a", "f/x")).await, "f/x is not a directory");
    let globbed = search.glob(glob("*", "f"), bounds(1)).await;
    assert!(
        matches!(
            globbed,
            Err(FileSearchError::Vfs(VfsError::NotDirectory(_)))
        ),
        "{globbed:?}"
    );
    let globbed = search.glob(glob("*", "none"), bounds(1)).await;
    assert!(
        matches!(globbed, Err(FileSearchError::Vfs(VfsError::NotFound(_)))),
        "{globbed:?}"
    );
    for pattern in ["", "../x", "[a"] {
        let globbed = search.glob(glob(pattern, ""), bounds(1)).await;
        assert!(
            matches!(globbed, Err(FileSearchError::Glob { .. })),
            "{pattern}: {globbed:?}"
        );
    }

    let cancelled = bounds(10);
    cancelled.cancel.cancel();
    assert!(matches!(
        search.glob(glob("**", ""), cancelled.clone()).await,
        Err(FileSearchError::Cancelled)
    ));
    assert!(matches!(
        search.grep(grep_for("x", ""), cancelled).await,
        Err(FileSearchError::Cancelled)
    ));
    let late = Bounds {
        deadline: Instant::now() - Duration::from_millis(1),
        ..bounds(10)
    };
    let found = search.glob(glob("**", ""), late.clone()).await.unwrap();
    assert_eq!(
        (found.paths.len(), found.truncated, found.timed_out),
        (0, false, true)
    );
    let found = search.grep(grep_for("x", ""), late).await.unwrap();
    assert_eq!(
        (found.files.len(), found.truncated, found.timed_out),
        (0, false, true)
    );
    clear(vfs).await;
}
