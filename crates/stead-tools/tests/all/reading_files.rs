//! The place for tests of read_file, ls and file_info.

use super::Session;
use serde_json::json;
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
    let expected = ".hidden  (0 bytes)\nb.txt  (5 bytes)\ndir/\nnone/\nout  (special, or leads out of the workspace)";
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
