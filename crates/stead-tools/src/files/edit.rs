//! The `edit_file` tool: replaces exact text in a file.
//!
//! Effects: the clock, workspace files (writes).

use super::diff::{CurrentContent, diff, truncate};
use super::edit_hint;
use super::{MAX_EDIT_BYTES, WRITE_FILE, explain_error, parse_path};
use crate::title;
use crate::{
    CallPlan, Output, PlanView, Surface, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool,
};
use futures_util::FutureExt;
use memchr::{memchr_iter, memmem};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use stead_core::{ArgumentAliases, Risk, ToolKind, counted};
use stead_vfs::{Expect, ReadRange, VPath, VfsError};

/// `edit_file`: replaces text in a file.
pub const EDIT_FILE: ToolIdentity = ToolIdentity::new("edit_file", ToolKind::FileWrite)
    .aliases(&["Edit"])
    .title("Edit")
    .subject(&["file_path", "path"]);

/// The most lines that a message about an ambiguous text names.
const MAX_NAMED_LINES: usize = 20;

pub(super) struct EditFile;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFileArgs {
    file_path: String,
    /// Without line numbers; must occur once, unless replace_all is set.
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// How many occurrences are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occurrences {
    Single,
    All,
}

impl TypedTool for EditFile {
    type Args = EditFileArgs;
    const DEF: ToolDef = ToolDef::new(
        EDIT_FILE,
        Risk::WRITES,
        "Replaces exact text in a file. Refused if the file changed since you read it.",
    )
    .argument_aliases(ArgumentAliases::of_names(&[
        ("path", "file_path"),
        ("filename", "file_path"),
        ("old_text", "old_string"),
        ("new_text", "new_string"),
        ("old_str", "old_string"),
        ("new_str", "new_string"),
    ]))
    .title_form::<title::EditForm>();

    fn plan(&self, args: &EditFileArgs) -> CallPlan {
        let edit = args.clone();
        // The message about a text that was not found quotes the file, so it is read too.
        CallPlan::reads(&args.file_path)
            .and_writes(&args.file_path)
            .with_preview(move |view| preview(view, edit.clone()).boxed())
    }

    async fn call(&self, cx: &ToolCx, args: EditFileArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
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
            Err(error) => return Err(explain_error(cx, error).await),
        };
        if content.len() as u64 > MAX_EDIT_BYTES {
            return Err(ToolError::RespondToModel(format!(
                "{path} is too large to edit: more than {MAX_EDIT_BYTES} bytes"
            )));
        }
        if cx
            .file_versions
            .get(&path)
            .is_some_and(|seen| seen != version.to_string())
        {
            return Err(explain_error(cx, VfsError::Changed(path)).await);
        }
        let which = if args.replace_all {
            Occurrences::All
        } else {
            Occurrences::Single
        };
        let edit = TextEdit::plan(&content, &args.old_string, &args.new_string, which).map_err(
            |refusal| {
                let why = refusal.message(cx.surface, &content, &args.old_string);
                ToolError::RespondToModel(format!("{path} was not changed: {why}"))
            },
        )?;
        let done = format!(
            "{}, the first at line {}",
            counted(edit.places.len(), "replacement"),
            edit.line
        );
        let content = edit.apply(content.into());
        match cx
            .vfs
            .write(&path, content.into(), Expect::Version(version))
            .await
        {
            Ok(version) => {
                Ok(Output::text(format!("Edited {path}: {done}"))
                    .with_file_version(&path, &version))
            }
            Err(error) => Err(explain_error(cx, error).await),
        }
    }
}

/// Shows the edit as a diff, or why it would fail.
async fn preview(view: PlanView<'_>, args: EditFileArgs) -> Option<String> {
    let path = VPath::parse(&args.file_path).ok()?;
    let content = match CurrentContent::load(view.files, &path).await {
        CurrentContent::Text(content) => content,
        CurrentContent::Absent => return Some(format!("would fail: {path} does not exist\n")),
        CurrentContent::Other(why) => {
            return Some(truncate(&format!(
                "({why})\n- {}\n+ {}\n",
                args.old_string, args.new_string
            )));
        }
    };
    let which = if args.replace_all {
        Occurrences::All
    } else {
        Occurrences::Single
    };
    Some(
        match TextEdit::plan(
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
                let why = refusal.message(view.surface, content.as_bytes(), &args.old_string);
                truncate(&format!("would fail: {why}\n"))
            }
        },
    )
}

/// A replacement and the places where it is made.
///
/// Texts are compared byte for byte, and the file keeps its line ends: in a file whose lines all end
/// with CRLF, a bare `\n` in either text stands for CRLF, and in a file whose lines all end with
/// `\n`, CRLF stands for `\n`. Otherwise the texts are tried as given first.
#[derive(Debug, PartialEq, Eq)]
struct TextEdit<'a> {
    /// The places in ascending order, at least one.
    places: Vec<usize>,
    old_len: usize,
    new: Cow<'a, str>,
    /// The line of the first place, counted from 1.
    line: usize,
}

/// Why a text cannot be edited.
#[derive(Debug, PartialEq, Eq)]
enum EditRefusal {
    Empty,
    Same,
    Missing,
    Ambiguous { lines: Vec<usize> },
}

impl EditRefusal {
    fn message(&self, surface: Surface, content: &[u8], old: &str) -> String {
        match self {
            Self::Empty => {
                format!(
                    "old_string is empty; give the text to replace, or use {}",
                    surface.name(&WRITE_FILE)
                )
            }
            Self::Same => "old_string and new_string are the same".to_owned(),
            Self::Missing => edit_hint::missing_text_hint(content, old),
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

impl<'a> TextEdit<'a> {
    fn plan(
        content: &[u8],
        old: &str,
        new: &'a str,
        which: Occurrences,
    ) -> Result<Self, EditRefusal> {
        if old.is_empty() {
            return Err(EditRefusal::Empty);
        }
        if old == new {
            return Err(EditRefusal::Same);
        }
        for translation in line_ending_conversions(content, old, new) {
            let old = translation.apply(old);
            let new = translation.apply(new);
            let places: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
            match (places.as_slice(), which) {
                ([], _) => {}
                ([_, _, ..], Occurrences::Single) => {
                    return Err(EditRefusal::Ambiguous {
                        lines: line_numbers(content, &places),
                    });
                }
                ([first, ..], Occurrences::Single | Occurrences::All) => {
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
        Err(EditRefusal::Missing)
    }

    fn apply(&self, mut content: Vec<u8>) -> Vec<u8> {
        let new = self.new.as_bytes();
        // In place, because a second copy of a large file costs more than moving its tail.
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

/// Returns the line numbers, counted from 1, of ascending places.
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

/// How the line ends of a text are converted.
#[derive(Debug, Clone, Copy)]
enum LineEndingConversion {
    None,
    ToLf,
    ToCrlf,
}

/// Returns the conversions to try for a file, in this order.
fn line_ending_conversions(
    content: &[u8],
    old: &str,
    new: &str,
) -> &'static [LineEndingConversion] {
    let unclear = &[
        LineEndingConversion::None,
        LineEndingConversion::ToCrlf,
        LineEndingConversion::ToLf,
    ];
    if !old.contains('\n') && !new.contains('\n') {
        return &[LineEndingConversion::None];
    }
    let is_crlf = |end: usize| end > 0 && content[end - 1] == b'\r';
    let mut ends = memchr_iter(b'\n', content).map(is_crlf);
    let Some(first) = ends.next() else {
        return unclear;
    };
    match (ends.all(|is_crlf| is_crlf == first), first) {
        (true, true) => &[LineEndingConversion::ToCrlf],
        (true, false) => &[LineEndingConversion::ToLf],
        (false, _) => unclear,
    }
}

impl LineEndingConversion {
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
