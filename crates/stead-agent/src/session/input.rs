//! The input of a run as blocks: `@path` attaches that file of the session.
//!
//! Effects: the clock, workspace files (reads), the journal (reads).

use crate::Session;
use crate::admission::CallGate;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use stead_core::{Block, Entry, Media, SessionStart, fenced};
use stead_vfs::{FileKind, ReadRange, VPath, Vfs, VfsError};
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

/// An input as the model gets it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PreparedInput {
    /// The text as it was written, then the files that it names.
    pub blocks: Vec<Block>,
    /// Why files that the text seems to name were not attached, one sentence each.
    pub not_attached: Vec<String>,
}

impl Session {
    /// Returns an input with the files it names as `@path`, `@"path with spaces"` or
    /// `@path\ with\ spaces`, unless the workspace switches that off.
    pub async fn input(&self, text: &str) -> PreparedInput {
        let agent = self.agent();
        let disabled = &agent.workspace().config().disable;
        if !text.contains('@') || disabled.contains(FeatureSwitch::AtPaths) {
            return PreparedInput {
                blocks: vec![Block::text(text)],
                not_attached: Vec::new(),
            };
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
            })) => self.subagent_files(&spawned, None),
            Some(_) | None => self.files(None),
        }
    }
}

/// Returns the text as it was written, then each file it names. What is not a file of the workspace
/// stays plain text; if it was quoted or looks like a path, a sentence says so.
async fn attach(files: &dyn Vfs, input: &str) -> PreparedInput {
    let mut blocks = vec![Block::text(input)];
    let mut not_attached = Vec::new();
    let mut attached: Vec<VPath> = Vec::new();
    for mention in mentions(input) {
        match find_attachment(files, &mention).await {
            Ok((path, size)) => {
                if !attached.contains(&path) {
                    blocks.push(attachment_block(files, &path, size).await);
                    attached.push(path);
                }
            }
            Err(reason) if mention.is_meant_as_path() => {
                let name = mention.without_punctuation();
                not_attached.push(format!("@{name} was not attached: {reason}"));
            }
            Err(_) => {}
        }
    }
    PreparedInput {
        blocks,
        not_attached,
    }
}

/// A word of the input that begins with `@`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    /// The name after `@`, without quotes and escapes.
    name: String,
    /// Whether the name was quoted or had escaped characters, so that its end is certain.
    delimited: bool,
}

impl Mention {
    /// Whether the person surely meant a file: `@ann` may be a name, `@notes.md` and `@"a b"` are
    /// not.
    fn is_meant_as_path(&self) -> bool {
        let name = self.without_punctuation();
        let has_ending = name.trim_start_matches('.').contains('.') || name.starts_with('.');
        self.delimited || (name.len() > 1 && (name.contains('/') || has_ending))
    }

    /// Returns the name without punctuation that may follow it in a sentence.
    fn without_punctuation(&self) -> &str {
        self.name
            .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\''])
    }
}

/// Returns the words of a text that begin with `@`: up to white space, up to the closing quote after
/// `@"` or `@'`, and beyond spaces after a backslash.
fn mentions(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut before = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        let begins_word = before.is_none_or(|c: char| c.is_whitespace() || "([{<".contains(c));
        before = Some(c);
        if c != '@' || !begins_word {
            continue;
        }
        let rest = &text[at + 1..];
        let (mention, length) = quoted_mention(rest).unwrap_or_else(|| bare_mention(rest));
        if !mention.name.is_empty() {
            found.push(mention);
        }
        let next = at + 1 + length;
        while chars.offset() < next {
            before = chars.next().map(|(_, c)| c);
        }
    }
    found
}

/// Returns the mention in quotes at the beginning of `text`, and its length.
fn quoted_mention(text: &str) -> Option<(Mention, usize)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let name = text[1..].split(quote).next()?;
    let is_closed = text[1 + name.len()..].starts_with(quote) && !name.contains('\n');
    let mention = Mention {
        name: name.to_owned(),
        delimited: true,
    };
    is_closed.then_some((mention, name.len() + 2))
}

/// Returns the mention up to the first white space that no backslash precedes, and its length.
fn bare_mention(text: &str) -> (Mention, usize) {
    let mut name = String::new();
    let mut delimited = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let escaped = chars.peek().copied().filter(|(_, next)| *next == ' ');
        match (c, escaped) {
            ('\\', Some((_, space))) => {
                name.push(space);
                delimited = true;
                chars.next();
            }
            _ if c.is_whitespace() => return (Mention { name, delimited }, at),
            _ => name.push(c),
        }
    }
    (Mention { name, delimited }, text.len())
}

/// Returns the file that a mention names, also with punctuation after it, and its size.
async fn find_attachment(files: &dyn Vfs, mention: &Mention) -> Result<(VPath, u64), String> {
    let mut reason = "there is no such file".to_owned();
    for text in [mention.name.as_str(), mention.without_punctuation()] {
        let path = match VPath::parse(text) {
            Ok(path) => path,
            Err(error) => {
                reason = error.to_string();
                continue;
            }
        };
        match files.stat(&path).await {
            Ok(stat) if stat.kind == FileKind::File => return Ok((path, stat.size)),
            Ok(stat) if stat.kind == FileKind::Directory => {
                reason = "it is a folder; name a file in it".to_owned();
            }
            Ok(_) => reason = "it is no regular file of the workspace".to_owned(),
            Err(VfsError::NotFound(_)) => {}
            Err(error) => reason = error.to_string(),
        }
    }
    Err(reason)
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
            assert_eq!(attach(&files, input).await.blocks, want, "{input:?}");
        }
    }

    #[tokio::test]
    async fn names_with_spaces_are_attached_and_what_is_missing_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("my docs")).unwrap();
        std::fs::write(dir.path().join("my docs/a b.md"), "x").unwrap();
        let files = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        let attached = [
            r#"see @"my docs/a b.md"."#,
            "see (@'my docs/a b.md')",
            r"see @my\ docs/a\ b.md, please",
        ];
        for input in attached {
            let prepared = attach(&files, input).await;
            let want = Block::text("Attached file my docs/a b.md:\n```\nx\n```");
            assert_eq!(prepared.blocks.get(1), Some(&want), "{input}");
            assert_eq!(prepared.not_attached, Vec::<String>::new(), "{input}");
        }
        let told = [
            (
                "@nope.md, ok?",
                "@nope.md was not attached: there is no such file",
            ),
            (
                r#"@"my docs""#,
                "@my docs was not attached: it is a folder; name a file in it",
            ),
            (
                "@../x.md",
                "@../x.md was not attached: \"../x.md\" contains `..`; paths cannot leave the workspace",
            ),
        ];
        for (input, note) in told {
            let prepared = attach(&files, input).await;
            assert_eq!(prepared.blocks, [Block::text(input)], "{input}");
            assert_eq!(prepared.not_attached, [note], "{input}");
        }
        for silent in ["ask @ann or a@b.md", "@", "@~ @... @\"open", "@ann."] {
            let prepared = attach(&files, silent).await;
            assert_eq!(prepared.not_attached, Vec::<String>::new(), "{silent}");
        }
    }

    #[tokio::test]
    async fn a_long_text_is_cut_between_characters_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("long"), format!("x{}", "é".repeat(40_000))).unwrap();
        let files = LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap();
        let blocks = attach(&files, "@long").await.blocks;
        let Some(Block::Text { text }) = blocks.get(1) else {
            panic!("{blocks:?}")
        };
        let start =
            "Attached file long (its first 65535 of 80001 bytes; read_file has the rest):\n```\nxé";
        assert!(text.starts_with(start), "{}", &text[..100]);
    }
}
