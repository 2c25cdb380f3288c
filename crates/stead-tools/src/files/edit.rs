//! `edit_file`.

use super::diff::{Now, bounded, diff};
use super::near;
use super::{MAX_EDIT_BYTES, count, explain, path, reads, writes};
use crate::title;
use crate::{Output, Spellings, Surface, TitleForm, ToolCx, ToolError, TypedTool, typed};
use memchr::{memchr_iter, memmem};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use stead_core::{Access, Risk};
use stead_vfs::{Expect, ReadRange, VPath, Vfs, VfsError};

/// Places of an ambiguous text that are named.
const MAX_NAMED_LINES: usize = 20;

pub(super) struct EditFile {
    /// In whose words it answers.
    pub(super) surface: Surface,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Path of the file, relative to the workspace.
    file_path: String,
    /// The exact text to replace, without line numbers; it must occur exactly once unless
    /// replace_all is set.
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
        // What is told of a text that was not found comes from the file.
        [reads(&args.file_path), writes(&args.file_path)].concat()
    }

    fn titled(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<title::Edit>(typed(Self {
            surface: Surface::Title,
        })))
    }

    async fn preview(&self, files: &dyn Vfs, args: Args) -> Option<String> {
        let path = VPath::parse(&args.file_path).ok()?;
        let content = match Now::at(files, &path).await {
            Now::Text(content) => content,
            Now::Absent => return Some(format!("would fail: {path} does not exist\n")),
            Now::Other(why) => {
                return Some(bounded(&format!(
                    "({why})\n- {}\n+ {}\n",
                    args.old_string, args.new_string
                )));
            }
        };
        let which = if args.replace_all {
            Which::Every
        } else {
            Which::TheOnly
        };
        Some(
            match Edit::plan(
                content.as_bytes(),
                &args.old_string,
                &args.new_string,
                which,
            ) {
                Ok(edit) => {
                    let edited = edit.apply(content.clone().into_bytes());
                    diff(
                        &path,
                        Some(&content),
                        Some(&String::from_utf8_lossy(&edited)),
                    )
                }
                Err(refusal) => {
                    let why = refusal.told(self.surface, content.as_bytes(), &args.old_string);
                    bounded(&format!("would fail: {why}\n"))
                }
            },
        )
    }

    async fn call(&self, cx: &ToolCx, args: Args) -> Result<Output, ToolError> {
        let path = path(&args.file_path)?;
        let (content, version) = match cx
            .vfs
            .read(
                &path,
                ReadRange {
                    offset: 0,
                    len: MAX_EDIT_BYTES + 1,
                },
            )
            .await
        {
            Ok(read) => read,
            Err(error) => return Err(explain(cx, self.surface, error).await),
        };
        if content.len() as u64 > MAX_EDIT_BYTES {
            return Err(ToolError::Tell(format!(
                "{path} is too large to edit: more than {MAX_EDIT_BYTES} bytes"
            )));
        }
        if cx
            .seen
            .get(&path)
            .is_some_and(|seen| seen != version.to_string())
        {
            return Err(explain(cx, self.surface, VfsError::Changed(path)).await);
        }
        let which = if args.replace_all {
            Which::Every
        } else {
            Which::TheOnly
        };
        let edit =
            Edit::plan(&content, &args.old_string, &args.new_string, which).map_err(|refusal| {
                let why = refusal.told(self.surface, &content, &args.old_string);
                ToolError::Tell(format!("{path} was not changed: {why}"))
            })?;
        let done = format!(
            "{}, the first at line {}",
            count(edit.places.len(), "replacement"),
            edit.line
        );
        let content = edit.apply(content.into());
        match cx
            .vfs
            .write(&path, content.into(), Expect::Version(version))
            .await
        {
            Ok(version) => Ok(Output::text(format!("Edited {path}: {done}")).saw(&path, &version)),
            Err(error) => Err(explain(cx, self.surface, error).await),
        }
    }
}

/// What to replace where.
///
/// Byte for byte, and the file's line ends stay as they are: in a file whose lines all end with
/// CRLF a bare `\n` in either text stands for CRLF, and in one whose lines all end with `\n` a CRLF
/// stands for that. Otherwise the texts are tried as given first.
#[derive(Debug, PartialEq, Eq)]
struct Edit<'a> {
    /// Ascending, at least one.
    places: Vec<usize>,
    old_len: usize,
    new: Cow<'a, str>,
    /// Of the first place, counted from 1.
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
    fn told(&self, surface: Surface, content: &[u8], old: &str) -> String {
        match self {
            Self::Empty => {
                format!(
                    "old_string is empty; give the text to replace, or use {}",
                    surface.name("write_file")
                )
            }
            Self::Same => "old_string and new_string are the same".to_owned(),
            Self::Missing => near::hint(content, old),
            Self::Ambiguous { lines } => {
                let named: Vec<String> = lines
                    .iter()
                    .take(MAX_NAMED_LINES)
                    .map(usize::to_string)
                    .collect();
                let dots = if lines.len() > MAX_NAMED_LINES {
                    " …"
                } else {
                    ""
                };
                format!(
                    "old_string occurs {} times (lines {}{dots}); add the lines around the one you mean, or set replace_all",
                    lines.len(),
                    named.join(", ")
                )
            }
        }
    }
}

impl<'a> Edit<'a> {
    fn plan(content: &[u8], old: &str, new: &'a str, which: Which) -> Result<Self, Refusal> {
        if old.is_empty() {
            return Err(Refusal::Empty);
        }
        if old == new {
            return Err(Refusal::Same);
        }
        for translation in translations(content, old, new) {
            let old = translation.apply(old);
            let new = translation.apply(new);
            let places: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
            match (places.as_slice(), which) {
                ([], _) => {}
                ([_, _, ..], Which::TheOnly) => {
                    return Err(Refusal::Ambiguous {
                        lines: line_numbers(content, &places),
                    });
                }
                ([first, ..], Which::TheOnly | Which::Every) => {
                    let line = memchr_iter(b'\n', &content[..*first]).count() + 1;
                    return Ok(Self {
                        places,
                        old_len: old.len(),
                        new,
                        line,
                    });
                }
            }
        }
        Err(Refusal::Missing)
    }

    fn apply(&self, mut content: Vec<u8>) -> Vec<u8> {
        let new = self.new.as_bytes();
        // In place: a second copy of a large file costs more than moving its tail.
        if let [place] = *self.places {
            content.splice(place..place + self.old_len, new.iter().copied());
            return content;
        }
        let mut edited = Vec::with_capacity(content.len() + self.places.len() * new.len());
        let mut from = 0;
        for &place in &self.places {
            edited.extend_from_slice(&content[from..place]);
            edited.extend_from_slice(new);
            from = place + self.old_len;
        }
        edited.extend_from_slice(&content[from..]);
        edited
    }
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

/// What to do with the line ends of a text.
#[derive(Debug, Clone, Copy)]
enum Translation {
    None,
    ToLf,
    ToCrlf,
}

/// What to try, in this order, for texts in a file.
fn translations(content: &[u8], old: &str, new: &str) -> &'static [Translation] {
    let unclear = &[Translation::None, Translation::ToCrlf, Translation::ToLf];
    if !old.contains('\n') && !new.contains('\n') {
        return &[Translation::None];
    }
    let is_crlf = |end: usize| end > 0 && content[end - 1] == b'\r';
    let mut ends = memchr_iter(b'\n', content).map(is_crlf);
    let Some(first) = ends.next() else {
        return unclear;
    };
    match (ends.all(|is_crlf| is_crlf == first), first) {
        (true, true) => &[Translation::ToCrlf],
        (true, false) => &[Translation::ToLf],
        (false, _) => unclear,
    }
}

impl Translation {
    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::None => text.into(),
            Self::ToLf if text.contains("\r\n") => text.replace("\r\n", "\n").into(),
            Self::ToCrlf if text.contains('\n') => {
                text.replace("\r\n", "\n").replace('\n', "\r\n").into()
            }
            Self::ToLf | Self::ToCrlf => text.into(),
        }
    }
}

#[cfg(test)]
mod tests;
