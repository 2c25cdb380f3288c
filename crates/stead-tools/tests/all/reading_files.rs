//! The place for tests of read_file, ls and file_info.

use super::Session;
use serde_json::json;
use std::time::{Duration, UNIX_EPOCH};
use stead_core::{Block, Media};

#[tokio::test]
async fn text_is_shown_with_line_numbers_and_how_to_go_on() {
    let s = Session::with(&[
        ("lf", "one\ntwo\nthree\n"),
        ("crlf", "one\r\ntwo\r\n"),
        ("bom", "\u{feff}one\n\ntwo"),
        ("empty", ""),
        ("cjk", "日本\nñ"),
    ]);
    s.put("latin1", b"caf\xe9\n");
    let read = |file: &str, offset: u64, limit: u64| json!({"file_path": file, "offset": offset, "limit": limit});
    for (args, expected) in [
        (read("lf", 0, 10), "     1  one\n     2  two\n     3  three"),
        (
            read("lf", 1, 1),
            "     2  two\n[1 more line; continue with offset=2]",
        ),
        (
            read("lf", 0, 1),
            "     1  one\n[2 more lines; continue with offset=1]",
        ),
        (read("crlf", 0, 10), "     1  one\n     2  two"),
        (read("bom", 0, 10), "     1  one\n     2  \n     3  two"),
        (read("/cjk", 0, 10), "     1  日本\n     2  ñ"),
        (read("empty", 0, 10), "[empty is empty]"),
        (
            read("latin1", 0, 10),
            "     1  caf\u{fffd}\n[some bytes are not UTF-8 and are shown as \u{fffd}]",
        ),
    ] {
        assert_eq!(
            s.call("read_file", args.clone()).await.as_deref(),
            Ok(expected),
            "{args}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_read_says_why_and_what_to_do() {
    let s = Session::with(&[("main.rs", "x\n"), ("dir/x", "")]);
    s.put("data.bin", b"ab\0cd");
    std::os::unix::fs::symlink("/etc/passwd", s.os("out")).unwrap();
    for (args, expected) in [
        (
            json!({"file_path": "mian.rs"}),
            "mian.rs does not exist; did you mean main.rs?",
        ),
        (
            json!({"file_path": "zzz"}),
            "zzz does not exist; use glob_files or ls to find it",
        ),
        (
            json!({"file_path": "dir"}),
            "dir is a directory; use ls to see what is in it",
        ),
        (
            json!({"file_path": "../x"}),
            "\"../x\" contains `..`; paths cannot leave the workspace",
        ),
        (
            json!({"file_path": "out"}),
            "out leads out of the workspace, and only files inside it can be used",
        ),
        (
            json!({"file_path": "main.rs", "offset": 5}),
            "offset 5 is past the end of main.rs, which has 1 line",
        ),
        (
            json!({"file_path": "data.bin"}),
            "data.bin is a binary file (application/octet-stream, 5 bytes) and cannot be shown as text",
        ),
    ] {
        assert_eq!(
            s.call("read_file", args.clone()).await,
            Err(expected.to_owned()),
            "{args}"
        );
    }
}

#[tokio::test]
async fn long_lines_are_clipped_and_long_files_are_cut_at_a_line() {
    let s = Session::new();
    s.put(
        "wide",
        format!("{}\n{}é\nend\n", "日".repeat(2001), "x".repeat(100_000)),
    );
    let text = s
        .call("read_file", json!({"file_path": "wide"}))
        .await
        .unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows[0],
        format!("     1  {} […3 more bytes clipped]", "日".repeat(2000))
    );
    assert_eq!(
        rows[1],
        format!("     2  {} […98002 more bytes clipped]", "x".repeat(2000))
    );
    assert_eq!(rows[2], "     3  end");

    s.put(
        "long",
        (0..2000)
            .map(|i| format!("{i} {}\n", "y".repeat(90)))
            .collect::<String>(),
    );
    let text = s
        .call("read_file", json!({"file_path": "long"}))
        .await
        .unwrap();
    assert!(text.chars().count() <= 80_100);
    let notice = text.lines().last().unwrap();
    let next: usize = notice
        .rsplit('=')
        .next()
        .unwrap()
        .trim_end_matches(']')
        .parse()
        .unwrap();
    assert_eq!(
        notice,
        format!("[{} more lines; continue with offset={next}]", 2000 - next)
    );
    let rest = s
        .call("read_file", json!({"file_path": "long", "offset": next}))
        .await
        .unwrap();
    assert!(rest.starts_with(&format!("{:>6}  {next} y", next + 1)));
}

#[tokio::test]
async fn pictures_and_documents_come_as_media_up_to_a_size() {
    let s = Session::new();
    s.put("a.PNG", b"\x89PNG");
    s.put("doc.pdf", b"%PDF");
    let output = s
        .output("read_file", json!({"file_path": "a.PNG"}))
        .await
        .unwrap();
    let media = Media::inline("image/png", "iVBORw==", Some("a.PNG".into()));
    assert_eq!(
        output.content,
        [
            Block::text("[a.PNG: image/png, 4 bytes]"),
            Block::Media(media)
        ]
    );
    let output = s
        .output("read_file", json!({"file_path": "doc.pdf"}))
        .await
        .unwrap();
    assert!(
        matches!(&output.content[1], Block::Media(Media { mime, .. }) if mime == "application/pdf")
    );
    std::fs::File::create(s.os("big.jpg"))
        .unwrap()
        .set_len(5 * 1024 * 1024 + 1)
        .unwrap();
    let told = s
        .call("read_file", json!({"file_path": "big.jpg"}))
        .await
        .unwrap_err();
    assert_eq!(
        told,
        "big.jpg is too large to be shown: image/jpeg may have at most 5242880 bytes"
    );
}

#[tokio::test]
async fn a_listing_shows_directories_sizes_and_what_is_special() {
    let s = Session::with(&[("b.txt", "12345"), (".hidden", ""), ("dir/x", "")]);
    std::os::unix::fs::symlink("/etc", s.os("out")).unwrap();
    std::fs::create_dir(s.os("none")).unwrap();
    for (file, minutes) in [("b.txt", 0), (".hidden", 61)] {
        let file = std::fs::File::options()
            .write(true)
            .open(s.os(file))
            .unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(minutes * 60))
            .unwrap();
    }
    let expected = ".hidden  (0 bytes, 1970-01-01 01:01Z)\nb.txt  (5 bytes, 1970-01-01 00:00Z)\ndir/\nnone/\n\
                    out  (special, or leads out of the workspace)";
    assert_eq!(s.call("ls", json!({})).await.as_deref(), Ok(expected));
    assert_eq!(
        s.call("ls", json!({"path": "none"})).await.as_deref(),
        Ok("[none is empty]")
    );
    assert_eq!(
        s.call("ls", json!({"path": "b.txt"})).await.unwrap_err(),
        "b.txt is not a directory"
    );
}

#[tokio::test]
async fn info_tells_what_a_file_is() {
    let s = Session::with(&[("a.md", "1\n2\n3")]);
    s.put("blob", b"\0\x01");
    let file = std::fs::File::open(s.os("a.md")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(86_400))
        .unwrap();
    std::fs::set_permissions(
        s.os("a.md"),
        std::os::unix::fs::PermissionsExt::from_mode(0o640),
    )
    .unwrap();
    let expected = "path: a.md\nkind: file\nsize: 5 bytes\nlines: 3\ntype: text/markdown\nmodified: 1970-01-02T00:00:00Z\nmode: 0640";
    assert_eq!(
        s.call("file_info", json!({"file_path": "a.md"}))
            .await
            .as_deref(),
        Ok(expected)
    );
    let blob = s
        .call("file_info", json!({"file_path": "blob"}))
        .await
        .unwrap();
    assert!(
        blob.contains("type: application/octet-stream") && !blob.contains("lines"),
        "{blob}"
    );
    assert!(
        s.call("file_info", json!({"file_path": "."}))
            .await
            .unwrap()
            .contains("kind: directory")
    );
}

#[tokio::test]
async fn a_long_line_can_be_read_to_its_end() {
    let line = format!("{}LAST", "ä".repeat(4500));
    let s = Session::with(&[("one.json", line.as_str()), ("two.txt", "x\ny\n")]);
    let mut read = String::new();
    let mut column = 0;
    loop {
        let args = json!({"file_path": "one.json", "column": column});
        let shown = s.call("read_file", args).await.unwrap();
        let (row, notice) = shown.split_once('\n').unwrap_or((shown.as_str(), ""));
        let text = row.strip_prefix("     1  ").unwrap();
        read.push_str(text.split(" […").next().unwrap());
        if notice.is_empty() {
            break;
        }
        column += 2000;
        let told = format!("[the clipped line goes on with offset=0, column={column}]");
        assert_eq!(notice, told);
    }
    assert_eq!(read, line);
    let args = json!({"file_path": "two.txt", "column": 1});
    let shown = s.call("read_file", args).await.unwrap();
    assert_eq!(shown, "     1  \n[1 more line; continue with offset=1]");
}

#[tokio::test]
async fn a_match_in_a_long_line_is_shown() {
    let line = format!("{{{}LASTKEY{}}}", "a".repeat(25_000), "b".repeat(4_000));
    let s = Session::with(&[("one.json", line.as_str())]);
    let shown = s
        .call("grep_files", json!({"pattern": "LASTKEY"}))
        .await
        .unwrap();
    assert!(
        shown.starts_with("one.json:1: […24501 bytes before] aaa"),
        "{shown}"
    );
    assert!(
        shown.contains("aLASTKEYb") && shown.ends_with("b […2508 more bytes]"),
        "{shown}"
    );
    assert!(shown.len() < 2200, "{}", shown.len());
    let shown = s
        .call("grep_files", json!({"pattern": "^.a"}))
        .await
        .unwrap();
    assert!(shown.starts_with("one.json:1: {aaa"), "{shown}");
}
