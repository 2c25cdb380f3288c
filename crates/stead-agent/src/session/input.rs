//! The input of a run as blocks: `@path` attaches that file of the session.
//!
//! Effects: workspace files (reads), the journal (reads).

use crate::Session;
use crate::admission::CallGate;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use stead_core::{Block, Entry, Media, SessionStart, fenced};
use stead_vfs::{FileKind, ReadRange, VPath, Vfs};
use stead_workspace::FeatureSwitch;

/// How much of a text file is attached.
const MAX_TEXT_BYTES: u64 = 64 * 1024;
/// Largest image that is attached: what providers take.
const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024;

const IMAGES: [(&str, &str); 5] = [
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".gif", "image/gif"),
    (".webp", "image/webp"),
];

impl Session {
    /// Returns an input as blocks, with the files it names as `@path`, unless the workspace switches
    /// that off.
    pub async fn input(&self, text: &str) -> Vec<Block> {
        let agent = self.agent();
        let disabled = &agent.workspace().config().disable;
        if !text.contains('@') || disabled.contains(FeatureSwitch::AtPaths) {
            return vec![Block::text(text)];
        }
        // The rules hold for attached files as they do for files that tools read.
        let files = CallGate::new(agent).guarded_files(self.recorded_files().await);
        attach(&*files, text).await
    }

    /// The session's files, also if this process has not read the journal yet: its first entry says
    /// whose tree a subagent works on.
    async fn recorded_files(&self) -> Arc<dyn Vfs> {
        if self.state().seq > 0 {
            return self.files(None);
        }
        let lines = self.journals.read(&self.id).await.unwrap_or_default();
        match lines.into_iter().next().map(|line| line.entry) {
            Some(Entry::Session(SessionStart {
                spawned: Some(spawned),
                ..
            })) => self.files_of(Some(&spawned), None),
            Some(_) | None => self.files(None),
        }
    }
}

/// The input as blocks: first the text as it was written, then each file it names with `@path`.
/// What is not a file of the workspace stays plain text.
async fn attach(files: &dyn Vfs, input: &str) -> Vec<Block> {
    let mut blocks = vec![Block::text(input)];
    let mut attached: Vec<VPath> = Vec::new();
    for word in input
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('@'))
    {
        let Some((path, size)) = find_attachment(files, word).await else {
            continue;
        };
        if !attached.contains(&path) {
            blocks.push(attachment_block(files, &path, size).await);
            attached.push(path);
        }
    }
    blocks
}

/// The file a word names, also with punctuation after it, and its size.
async fn find_attachment(files: &dyn Vfs, word: &str) -> Option<(VPath, u64)> {
    let bare = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'']);
    for text in [word, bare] {
        let Ok(path) = VPath::parse(text) else {
            continue;
        };
        match files.stat(&path).await {
            Ok(stat) if stat.kind == FileKind::File => return Some((path, stat.size)),
            Ok(_) | Err(_) => {}
        }
    }
    None
}

async fn attachment_block(files: &dyn Vfs, path: &VPath, size: u64) -> Block {
    let lower = path.name().to_lowercase();
    let image = IMAGES.iter().find(|(ending, _)| lower.ends_with(ending));
    let limit = if image.is_some() {
        MAX_IMAGE_BYTES
    } else {
        MAX_TEXT_BYTES
    };
    let data = match files
        .read(
            path,
            ReadRange {
                offset: 0,
                len: limit,
            },
        )
        .await
    {
        Ok((data, _)) => data,
        Err(error) => {
            return Block::text(format!("Attached file {path} could not be read: {error}"));
        }
    };
    match image {
        Some(_) if size > MAX_IMAGE_BYTES => Block::text(format!(
            "Attached file {path} was left out: {size} bytes, at most {MAX_IMAGE_BYTES} for images"
        )),
        Some((_, mime)) => Block::Media(Media::inline(
            *mime,
            BASE64_STANDARD.encode(&data),
            Some(path.to_string()),
        )),
        None => match complete_utf8(&data, size) {
            Some(text) => Block::text(with_header(path, text, size)),
            None => Block::text(format!(
                "Attached file {path} was left out: {size} bytes that are not text"
            )),
        },
    }
}

/// The data as text, up to a character that the limit cut in two.
fn complete_utf8(data: &[u8], size: u64) -> Option<&str> {
    if data.contains(&0) {
        return None;
    }
    match std::str::from_utf8(data) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() && size > data.len() as u64 => {
            std::str::from_utf8(&data[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    }
}

/// The text behind a header that says how much of the file it is.
fn with_header(path: &VPath, text: &str, size: u64) -> String {
    let cut = match size > text.len() as u64 {
        true => format!(
            " (its first {} of {size} bytes; read_file has the rest)",
            text.len()
        ),
        false => String::new(),
    };
    format!(
        "Attached file {path}{cut}:\n{}",
        fenced("", text.strip_suffix('\n').unwrap_or(text))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_store::OsDisk;
    use stead_vfs::LocalVfs;

    #[tokio::test]
    async fn files_named_in_the_input_follow_it_and_all_else_stays_text() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, data: &[u8]| std::fs::write(dir.path().join(name), data).unwrap();
        write("a.md", b"hello ```x\n````\n");
        write("b.PNG", b"\x89PNG");
        write("c.bin", b"a\0b");
        write("e.txt", b"end");
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        let files = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        let text = |text: &str| Block::text(text);
        let image = Block::Media(Media::inline(
            "image/png",
            BASE64_STANDARD.encode(b"\x89PNG"),
            Some("b.PNG".into()),
        ));
        let cases = [
            ("no file, x@a.md", vec![]),
            (
                "@a.md",
                vec![text("Attached file a.md:\n`````\nhello ```x\n````\n`````")],
            ),
            (
                "see @e.txt, and @./e.txt.",
                vec![text("Attached file e.txt:\n```\nend\n```")],
            ),
            ("@b.PNG", vec![image]),
            (
                "@c.bin",
                vec![text(
                    "Attached file c.bin was left out: 3 bytes that are not text",
                )],
            ),
            ("@missing @../x @dir @ @~/x", vec![]),
        ];
        for (input, mut want) in cases {
            want.insert(0, text(input));
            assert_eq!(attach(&files, input).await, want, "{input:?}");
        }
    }

    #[tokio::test]
    async fn a_long_text_is_cut_between_characters_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("long"), format!("x{}", "é".repeat(40_000))).unwrap();
        let files = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        let blocks = attach(&files, "@long").await;
        let Some(Block::Text { text }) = blocks.get(1) else {
            panic!("{blocks:?}")
        };
        let start =
            "Attached file long (its first 65535 of 80001 bytes; read_file has the rest):\n```\nxé";
        assert!(text.starts_with(start), "{}", &text[..100]);
    }
}
