//! The place for tests of glob and grep: visibility, order, limits, ignore files and cancellation.

use super::{World, bounds, grep_for, p};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_vfs::{
    Bounds, Case, FileMatches, FileSearchError, GlobQuery, GrepLine, GrepMode, GrepQuery, LineKind,
    Search, Syntax, Visible,
};

fn tree() -> World {
    let world = World::new();
    world.put("a.rs", "fn alpha() {}\n");
    world.put("src/b.rs", "fn beta() {}\nfn gamma() {}\n");
    world.put("src/deep/c.py", "def alpha(): pass\r\n");
    world.put(".github/ci.yml", "alpha: 1\n");
    world.put(".git/config.rs", "alpha");
    world.put("out/made.rs", "alpha");
    world.put("out/keep.rs", "alpha");
    world.put("sub/.ignore", "*.log\n!kept.log\n");
    world.put("sub/x.log", "alpha");
    world.put("sub/kept.log", "alpha");
    world.put("sub/y.txt", "alpha");
    world.put(".gitignore", "/out/*\n!/out/keep.rs\n");
    world.put("binary.bin", b"alpha\0\n");
    world.link("linked.rs", "a.rs");
    world.link("linkdir", "src");
    world
}

async fn glob(world: &World, pattern: &str, root: &str) -> Vec<String> {
    let query = GlobQuery {
        pattern: pattern.into(),
        root: p(root),
    };
    let found = world.vfs.glob(query, bounds()).await.unwrap();
    assert!(!found.truncated && !found.timed_out);
    found.paths.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn glob_finds_what_the_contract_says() {
    let world = tree();
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str])] = &[
        ("*.rs", ".", &["a.rs", "out/keep.rs", "src/b.rs"]),
        ("/*.rs", ".", &["a.rs"]),
        ("src/**/*.{rs,py}", ".", &["src/b.rs", "src/deep/c.py"]),
        ("deep/*", "src", &["src/deep/c.py"]),
        ("*.py", "linkdir", &["src/deep/c.py"]),
        ("*.yml", ".", &[]),
        (".github/*", ".", &[".github/ci.yml"]),
        ("*.yml", ".github", &[".github/ci.yml"]),
        (".git/*", ".", &[]),
        ("*.log", ".", &["sub/kept.log"]),
        ("*.log", "sub", &["sub/kept.log"]),
        ("made.rs", "out", &[]),
        ("none", ".", &[]),
    ];
    for (pattern, root, expected) in cases {
        assert_eq!(
            glob(&world, pattern, root).await,
            *expected,
            "{pattern} in {root}"
        );
    }
}

#[tokio::test]
async fn a_repository_inside_does_not_inherit_git_rules_from_above() {
    let world = World::new();
    world.put(".gitignore", "*.log");
    world.put("a.log", "");
    world.put("vendored/.git/HEAD", "");
    world.put("vendored/a.log", "");
    assert_eq!(glob(&world, "*.log", ".").await, ["vendored/a.log"]);
    assert_eq!(glob(&world, "*.log", "vendored").await, ["vendored/a.log"]);
}

#[tokio::test]
async fn a_fifo_in_place_of_an_ignore_file_is_passed_over() {
    let world = World::new();
    world.put("a", "");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        world.root().join(".gitignore"),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    let found = tokio::time::timeout(Duration::from_secs(5), glob(&world, "*", "."))
        .await
        .unwrap();
    assert_eq!(found, ["a"]);
}

#[tokio::test]
async fn the_first_results_are_kept_and_truncation_is_exact() {
    let world = World::new();
    (0..300).for_each(|i| world.put(&format!("d{}/f{i:03}", i % 7), "hit\n"));
    let mut all: Vec<String> = (0..300).map(|i| format!("d{}/f{i:03}", i % 7)).collect();
    all.sort();
    for (limit, truncated) in [
        (1, true),
        (50, true),
        (299, true),
        (300, false),
        (301, false),
    ] {
        let query = GlobQuery {
            pattern: "f*".into(),
            root: p("."),
        };
        let found = world
            .vfs
            .glob(query, Bounds { limit, ..bounds() })
            .await
            .unwrap();
        let paths: Vec<_> = found.paths.iter().map(ToString::to_string).collect();
        assert_eq!(
            (paths.as_slice(), found.truncated),
            (&all[..limit.min(300)], truncated),
            "glob {limit}"
        );
        let found = world
            .vfs
            .grep(grep_for("hit", "."), Bounds { limit, ..bounds() })
            .await
            .unwrap();
        let paths: Vec<_> = found
            .files
            .iter()
            .map(|file| file.path.to_string())
            .collect();
        assert_eq!(
            (paths.as_slice(), found.truncated),
            (&all[..limit.min(300)], truncated),
            "grep {limit}"
        );
    }
}

async fn grep(world: &World, query: GrepQuery) -> Vec<String> {
    let found = world.vfs.grep(query, bounds()).await.unwrap();
    assert!(!found.truncated && !found.timed_out);
    let show = |file: &FileMatches, line: &GrepLine| {
        let mark = if line.kind == LineKind::Match {
            ':'
        } else {
            '-'
        };
        format!("{}{mark}{}{mark}{}", file.path, line.number, line.text)
    };
    let lines = |file: &FileMatches| match file.lines.is_empty() {
        true => vec![format!("{} {}", file.path, file.count)],
        false => file
            .lines
            .iter()
            .map(|line| show(file, line))
            .collect::<Vec<_>>(),
    };
    found.files.iter().flat_map(lines).collect()
}

#[tokio::test]
async fn grep_finds_lines_as_asked() {
    let world = tree();
    world.put("ctx.txt", "one\ntwo\nNEEDLE (x)\nfour\nfive\n");
    let content = |context| GrepMode::Content {
        before: context,
        after: context,
    };
    let q = grep_for;
    #[rustfmt::skip]
    let cases: Vec<(&str, GrepQuery, &[&str])> = vec![
        ("regex", q(r"fn (alpha|gamma)\b", "."), &["a.rs:1:fn alpha() {}", "src/b.rs:2:fn gamma() {}"]),
        ("crlf is not shown", q("alpha", "src"), &["src/deep/c.py:1:def alpha(): pass"]),
        ("the end of a crlf line", q(r"^def.*pass$", "src"), &["src/deep/c.py:1:def alpha(): pass"]),
        ("one file", q("beta", "src/b.rs"), &["src/b.rs:1:fn beta() {}"]),
        ("one file through a link", q("alpha", "linked.rs"), &["a.rs:1:fn alpha() {}"]),
        ("literal", GrepQuery { syntax: Syntax::Literal, ..q("(x)", ".") }, &["ctx.txt:3:NEEDLE (x)"]),
        ("case", GrepQuery { case: Case::Insensitive, ..q("needle", ".") }, &["ctx.txt:3:NEEDLE (x)"]),
        ("glob", GrepQuery { glob: Some("src/**".into()), ..q("alpha", ".") }, &["src/deep/c.py:1:def alpha(): pass"]),
        ("hidden by glob", GrepQuery { glob: Some(".github/*".into()), ..q("alpha", ".") }, &[".github/ci.yml:1:alpha: 1"]),
        ("type", GrepQuery { file_type: Some("py".into()), ..q("alpha", ".") }, &["src/deep/c.py:1:def alpha(): pass"]),
        ("context", GrepQuery { mode: content(1), ..q("NEEDLE", ".") }, &["ctx.txt-2-two", "ctx.txt:3:NEEDLE (x)", "ctx.txt-4-four"]),
        ("files", GrepQuery { mode: GrepMode::Files, ..q("fn", ".") }, &["a.rs 1", "src/b.rs 1"]),
        ("count", GrepQuery { mode: GrepMode::Count, ..q("fn", ".") }, &["a.rs 1", "src/b.rs 2"]),
        ("binary", q("alpha", "binary.bin"), &[]),
    ];
    for (name, query, expected) in cases {
        assert_eq!(grep(&world, query).await, expected, "{name}");
    }
}

#[tokio::test]
async fn a_file_with_too_many_matches_is_cut_at_the_limit() {
    let world = World::new();
    world.put("a", "x\ny\nx\nx\n");
    let found = world
        .vfs
        .grep(
            grep_for("x", "."),
            Bounds {
                limit: 2,
                ..bounds()
            },
        )
        .await
        .unwrap();
    let numbers: Vec<_> = found.files[0]
        .lines
        .iter()
        .map(|line| line.number)
        .collect();
    assert_eq!((numbers, found.truncated), (vec![1, 3], true));
}

#[tokio::test]
async fn invisible_files_are_left_out_before_the_limit() {
    let world = World::new();
    (0..20).for_each(|i| world.put(&format!("f{i:02}"), "hit"));
    let visible = Visible::If(Arc::new(|path: &str| path >= "f15"));
    let bounds = Bounds {
        limit: 5,
        visible,
        ..bounds()
    };
    let found = world
        .vfs
        .grep(grep_for("hit", "."), bounds.clone())
        .await
        .unwrap();
    assert_eq!((found.files.len(), found.truncated), (5, false));
    let found = world
        .vfs
        .glob(
            GlobQuery {
                pattern: "**".into(),
                root: p("."),
            },
            bounds,
        )
        .await
        .unwrap();
    assert_eq!((found.paths.len(), found.truncated), (5, false));
}

#[tokio::test]
async fn wrong_queries_say_what_is_wrong() {
    let world = tree();
    let error = async |query| {
        world
            .vfs
            .grep(query, bounds())
            .await
            .unwrap_err()
            .to_string()
    };
    assert!(error(grep_for("a(b", ".")).await.contains("unclosed group"));
    assert!(error(grep_for("a\nb", ".")).await.contains("\\n"));
    assert!(
        error(GrepQuery {
            file_type: Some("rusty".into()),
            ..grep_for("a", ".")
        })
        .await
        .contains("\"rusty\"")
    );
    assert!(
        error(GrepQuery {
            glob: Some("{".into()),
            ..grep_for("a", ".")
        })
        .await
        .contains("glob")
    );
    assert_eq!(error(grep_for("a", "none")).await, "none does not exist");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_soon_when_cancelled_late_or_dropped() {
    let world = World::new();
    (0..500).for_each(|i| world.put(&format!("d{}/f{i}", i % 40), "some text\n".repeat(3000)));
    let query = || GrepQuery {
        case: Case::Insensitive,
        ..grep_for(r"(?-u)([a-z]+ +){9}zzz", ".")
    };

    let cancelled = bounds();
    cancelled.cancel.cancel();
    let start = Instant::now();
    assert!(matches!(
        world.vfs.grep(query(), cancelled).await,
        Err(FileSearchError::Cancelled)
    ));
    let late = Bounds {
        deadline: Instant::now() + Duration::from_millis(20),
        ..bounds()
    };
    assert!(world.vfs.grep(query(), late).await.unwrap().timed_out);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );

    let bounds = bounds();
    let cancel = bounds.cancel.clone();
    let start = Instant::now();
    let (found, ()) = tokio::join!(world.vfs.grep(query(), bounds), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancel.cancel();
    });
    assert!(matches!(found, Err(FileSearchError::Cancelled)));
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn names_that_cannot_be_shown_and_paths_that_are_too_long_are_told() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new();
    world.put("a/good.txt", "needle\n");
    for name in [&b"tab\there.txt"[..], b"bad\xff.txt", b"line\nbreak.txt"] {
        let path = world
            .root()
            .join("a")
            .join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, "needle\n").unwrap();
    }
    // Deeper than any path may be, which only works step by step.
    let part = "d".repeat(200);
    let mut dir = std::fs::File::open(world.root()).unwrap();
    for _ in 0..25 {
        rustix::fs::mkdirat(&dir, &part, rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        let mode = rustix::fs::Mode::empty();
        dir = rustix::fs::openat(&dir, &part, flags, mode).unwrap().into();
    }
    let query = GlobQuery {
        pattern: "*.txt".to_owned(),
        root: p(""),
    };
    let globbed = world.vfs.glob(query, bounds()).await.unwrap();
    let searched = world
        .vfs
        .grep(grep_for("needle", ""), bounds())
        .await
        .unwrap();
    let paths: Vec<String> = globbed.paths.iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["a/good.txt"]);
    assert_eq!(searched.files.len(), 1);
    for failed in [globbed.failed, searched.failed] {
        let told: Vec<String> = failed
            .iter()
            .map(|part| match part.path.as_str().len() {
                ..10 => part.to_string(),
                _ => part.reason.clone(),
            })
            .collect();
        assert_eq!(
            told,
            [
                "a: left out 3 names with control characters or bytes that are no text",
                "left out 1 path of more than 4096 bytes",
            ]
        );
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_for_memory_is_not_searched_and_told() {
    let world = World::new();
    world.put("good.txt", "needle\n");
    let long = std::fs::File::create(world.root().join("long.txt")).unwrap();
    let piece = "x".repeat(1024 * 1024);
    for _ in 0..40 {
        std::io::Write::write_all(&mut &long, piece.as_bytes()).unwrap();
    }
    std::io::Write::write_all(&mut &long, b"needle\n").unwrap();
    let found = world
        .vfs
        .grep(grep_for("needle", ""), bounds())
        .await
        .unwrap();
    let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((paths, found.unreadable), (vec!["good.txt"], 1));
}
