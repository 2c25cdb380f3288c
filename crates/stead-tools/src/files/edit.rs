//! `edit_file`.

use super::near;
use super::{MAX_EDIT_BYTES, count, explain, path, writes};
use crate::{Output, Spellings, ToolCx, ToolError, TypedTool};
use memchr::{memchr_iter, memmem};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use stead_core::{Access, Risk};
use stead_vfs::{Expect, ReadRange, VfsError};

/// Places of an ambiguous text that are named.
const MAX_NAMED_LINES: usize = 20;

pub(super) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace.
    file_path: String,
    /// The exact text to replace, without line numbers; it must occur exactly once unless replace_all is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

/// How many occurrences are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    TheOnly,
    Every,
}

impl TypedTool for EditFile {
    type Args = Args;
    const NAME: &'static str = "edit_file";
    const ALIASES: &'static [&'static str] = &["Edit"];
    const DESCRIPTION: &'static str = "Replaces exact text in a file. Refused if the file changed since you last read it, or \
        if the text is not found or not unique.";
    const RISK: Risk = Risk::WRITES;
    const SPELLINGS: Spellings = Spellings {
        names: &[
            ("path", "file_path"),
            ("filename", "file_path"),
            ("old_text", "old_string"),
            ("new_text", "new_string"),
            ("old_str", "old_string"),
            ("new_str", "new_string"),
        ],
        values: &[],
    };

    fn accesses(&self, args: &Args) -> Vec<Access> {
        writes(&args.file_path)
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<Output, ToolError> {
        let path = path(&args.file_path)?;
        let (content, version) = match cx.vfs.read(&path, ReadRange { offset: 0, len: MAX_EDIT_BYTES + 1 }).await {
            Ok(read) => read,
            Err(error) => return Err(explain(cx, error).await),
        };
        if content.len() as u64 > MAX_EDIT_BYTES {
            return Err(ToolError::Tell(format!("{path} is too large to edit: more than {MAX_EDIT_BYTES} bytes")));
        }
        if cx.seen.get(&path).is_some_and(|seen| seen != version.to_string()) {
            return Err(explain(cx, VfsError::Changed(path)).await);
        }
        let which = if args.replace_all { Which::Every } else { Which::TheOnly };
        let edited = edit(&content, &args.old_string, &args.new_string, which).map_err(|refusal| {
            ToolError::Tell(format!("{path} was not changed: {}", refusal.told(&content, &args.old_string)))
        })?;
        match cx.vfs.write(&path, edited.content.into(), Expect::Version(version)).await {
            Ok(version) => {
                let done = count(edited.count, "replacement");
                Ok(Output::text(format!("Edited {path}: {done}, the first at line {}", edited.line))
                    .saw(&path, &version))
            }
            Err(error) => Err(explain(cx, error).await),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Edited {
    content: Vec<u8>,
    count: usize,
    /// Of the first replacement, counted from 1.
    line: usize,
}

/// Why a text is not edited.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Empty,
    Same,
    Missing,
    Ambiguous { lines: Vec<usize> },
}

impl Refusal {
    fn told(&self, content: &[u8], old: &str) -> String {
        match self {
            Self::Empty => "old_string is empty; give the text to replace, or use write_file".to_owned(),
            Self::Same => "old_string and new_string are the same".to_owned(),
            Self::Missing => near::hint(content, old),
            Self::Ambiguous { lines } => {
                let named: Vec<String> = lines.iter().take(MAX_NAMED_LINES).map(usize::to_string).collect();
                let dots = if lines.len() > MAX_NAMED_LINES { " …" } else { "" };
                format!(
                    "old_string occurs {} times (lines {}{dots}); add the lines around the one you mean, or set replace_all",
                    lines.len(),
                    named.join(", ")
                )
            }
        }
    }
}

/// Replaces `old` by `new`, byte for byte.
///
/// The file's line ends stay as they are: in a file whose lines all end with CRLF a bare `\n` in either text
/// stands for CRLF, and in one whose lines all end with `\n` a CRLF stands for that. Otherwise the texts are
/// tried as given first.
fn edit(content: &[u8], old: &str, new: &str, which: Which) -> Result<Edited, Refusal> {
    if old.is_empty() {
        return Err(Refusal::Empty);
    }
    if old == new {
        return Err(Refusal::Same);
    }
    for ends in LineEnds::of(content).to_try() {
        let (old, new) = (ends.apply(old), ends.apply(new));
        let places: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
        match (places.as_slice(), which) {
            ([], _) => {}
            ([_, _, ..], Which::TheOnly) => {
                return Err(Refusal::Ambiguous { lines: line_numbers(content, &places) });
            }
            ([first, ..], Which::TheOnly | Which::Every) => {
                let line = memchr_iter(b'\n', &content[..*first]).count() + 1;
                let content = replace(content, &places, old.len(), new.as_bytes());
                return Ok(Edited { content, count: places.len(), line });
            }
        }
    }
    Err(Refusal::Missing)
}

fn replace(content: &[u8], places: &[usize], old_len: usize, new: &[u8]) -> Vec<u8> {
    let mut edited = Vec::with_capacity(content.len() - places.len() * old_len + places.len() * new.len());
    let mut from = 0;
    for &place in places {
        edited.extend_from_slice(&content[from..place]);
        edited.extend_from_slice(new);
        from = place + old_len;
    }
    edited.extend_from_slice(&content[from..]);
    edited
}

/// The lines, from 1, of ascending places.
fn line_numbers(content: &[u8], places: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut from = 0;
    let numbers = places.iter().map(|&place| {
        line += memchr_iter(b'\n', &content[from..place]).count();
        from = place;
        line
    });
    numbers.collect()
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    Lf,
    Crlf,
    /// Both ways, or there is only one line.
    Unclear,
}

/// What to do with the line ends of a text.
#[derive(Debug, Clone, Copy)]
enum Translation {
    None,
    ToLf,
    ToCrlf,
}

impl LineEnds {
    fn of(content: &[u8]) -> Self {
        let is_crlf = |end: usize| end > 0 && content[end - 1] == b'\r';
        let mut ends = memchr_iter(b'\n', content).map(is_crlf);
        let Some(first) = ends.next() else { return Self::Unclear };
        match (ends.all(|is_crlf| is_crlf == first), first) {
            (true, true) => Self::Crlf,
            (true, false) => Self::Lf,
            (false, _) => Self::Unclear,
        }
    }

    fn to_try(self) -> &'static [Translation] {
        match self {
            Self::Lf => &[Translation::ToLf],
            Self::Crlf => &[Translation::ToCrlf],
            Self::Unclear => &[Translation::None, Translation::ToCrlf, Translation::ToLf],
        }
    }
}

impl Translation {
    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::None => text.into(),
            Self::ToLf if text.contains("\r\n") => text.replace("\r\n", "\n").into(),
            Self::ToCrlf if text.contains('\n') => text.replace("\r\n", "\n").replace('\n', "\r\n").into(),
            Self::ToLf | Self::ToCrlf => text.into(),
        }
    }
}

#[cfg(test)]
mod tests;
