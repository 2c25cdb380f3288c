use super::*;
use stead_core::ResultStatus;
use stead_vfs::{Expect, StoreVfs};

fn reference(file: &str) -> Media {
    Media {
        file: Some(file.to_owned()),
        tokens: Some(258),
        ..Media::inline("image/png", "", Some("a.png".into()))
    }
}

fn user(blocks: Vec<Block>) -> Arc<Message> {
    Arc::new(Message::User { content: blocks })
}

async fn loader(files: &[(&str, &[u8])]) -> MediaLoader {
    let vfs = StoreVfs::in_memory();
    for (path, data) in files {
        vfs.write(
            &VPath::parse(path).unwrap(),
            data.to_vec().into(),
            Expect::Any,
        )
        .await
        .unwrap();
    }
    MediaLoader::new(Arc::new(vfs), VPath::parse("data").unwrap())
}

#[tokio::test]
async fn media_come_back_and_whatever_cannot_says_so() {
    let at = "data/agents/main/offload/s/media/1.png";
    let mut loader = loader(&[
        (at, b"png"),
        ("secret.png", b"no"),
        ("data/agents/main/x/offload/a", b"no"),
    ])
    .await;
    let inline = Block::Media(Media::inline("image/png", "aW5saW5l", None));
    let cases = [
        (Block::text("text"), Block::text("text")),
        (inline.clone(), inline),
        (
            Block::Media(reference(at)),
            Block::Media(Media::inline("image/png", "cG5n", Some("a.png".into()))),
        ),
        (
            Block::Media(reference("data/agents/main/offload/s/gone.png")),
            Block::text(
                "[image/png a.png: its file data/agents/main/offload/s/gone.png is missing]",
            ),
        ),
        (
            Block::Media(reference("secret.png")),
            Block::text(
                "[image/png a.png: its file cannot be read: permission denied for secret.png]",
            ),
        ),
        (
            Block::Media(reference("data/agents/main/x/offload/a")),
            Block::text(
                "[image/png a.png: its file cannot be read: permission denied for data/agents/main/x/offload/a]",
            ),
        ),
        (
            Block::Media(reference("../x")),
            Block::text(
                "[image/png a.png: its file cannot be read: \"../x\" contains `..`; paths cannot leave the workspace]",
            ),
        ),
    ];
    for (block, want) in cases {
        let result = |block: &Block| {
            let id = "c".to_owned();
            let name = "t".to_owned();
            let status = ResultStatus::Ok;
            Arc::new(Message::Tool {
                results: vec![ToolResult {
                    id,
                    name,
                    status,
                    exit_code: None,
                    content: vec![block.clone()],
                    seq: 0,
                }],
            })
        };
        let loaded = loader
            .load(vec![user(vec![block.clone()]), result(&block)])
            .await;
        assert_eq!(
            loaded,
            [user(vec![want.clone()]), result(&want)],
            "{block:?}"
        );
    }
}

#[tokio::test]
async fn a_message_that_was_sent_is_the_very_same_again() {
    let at = "data/agents/main/offload/s/media/1.png";
    let mut loader = loader(&[(at, b"png")]).await;
    let plain = user(vec![Block::text("plain")]);
    let mut messages = vec![plain.clone(), user(vec![Block::Media(reference(at))])];
    let first = loader.load(messages.clone()).await;
    assert!(
        Arc::ptr_eq(&first[0], &plain),
        "what has no media is not copied"
    );
    messages.push(user(vec![Block::Media(reference(at))]));
    let second = loader.load(messages.clone()).await;
    assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
    // Another beginning, as after a compaction.
    messages.remove(0);
    assert_eq!(loader.load(messages).await, second[1..]);
}

#[tokio::test]
async fn too_many_media_leave_out_the_oldest_half_at_once() {
    let paths: Vec<String> = (0..6)
        .map(|n| format!("data/agents/main/offload/s/media/{n}.png"))
        .collect();
    let files: Vec<(&str, &[u8])> = paths
        .iter()
        .map(|path| (path.as_str(), &[7u8; 30][..]))
        .collect();
    let mut loader = loader(&files).await;
    loader.max_bytes = 160; // four of 40
    let mut messages = Vec::new();
    let mut shown = Vec::new();
    for path in &paths {
        messages.push(user(vec![Block::Media(reference(path))]));
        let loaded = loader.load(messages.clone()).await;
        shown.push(
            loaded
                .iter()
                .filter(|message| message.text().is_empty())
                .count(),
        );
    }
    assert_eq!(shown, [1, 2, 3, 4, 2, 3]);
    let left_out = loader.load(messages).await[0].text();
    let want = format!(
        "[image/png a.png: left out of this request, which would be too large; it is in {}]",
        paths[0]
    );
    assert_eq!(left_out, want);
}
