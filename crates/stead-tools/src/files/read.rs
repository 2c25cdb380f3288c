//! The `read_file` tool: shows text with line numbers, and media.
//!
//! Effects: workspace files (reads).

use super::media::{self, FileDisplay};
use super::{FILE_PATH, MAX_OUTPUT_CHARS, explain_error, parse_path};
use crate::title;
use crate::{CallPlan, Output, Surface, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use base64::Engine;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt::Write;
use stead_core::{ArgumentAliases, Block, Media, Risk, ToolKind, counted};
use stead_vfs::{FileLine, LineRange, LineWindow, ReadRange, VPath};

/// `read_file`: reads a file.
pub const READ_FILE: ToolIdentity = ToolIdentity::new("read_file", ToolKind::FileRead)
    .aliases(&["Read"])
    .title("Read")
    .subject(&["file_path"]);

/// The most characters of a line that are shown.
const MAX_LINE_CHARS: usize = 2000;
/// The most bytes of a character.
const MAX_CHAR_BYTES: usize = 4;
/// The byte order mark that some editors put at the start of a text.
const BOM: &[u8] = b"\xef\xbb\xbf";

pub(super) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFileArgs {
    file_path: String,
    /// Lines to skip.
    #[serde(default)]
    offset: u64,
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1))]
    limit: usize,
    /// Characters of the first line to skip.
    #[serde(default)]
    #[schemars(range(max = 5_000_000))]
    column: usize,
}

fn default_limit() -> usize {
    2000
}

impl TypedTool for ReadFile {
    type Args = ReadFileArgs;
    const DEF: ToolDef = ToolDef::new(
        READ_FILE,
        Risk::READS,
        "Reads lines of a file, with numbers that are not part of it. Images, PDF, audio and \
        video are shown as such.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases {
        unset: &[("limit", 0)],
        ..FILE_PATH
    })
    .title_form::<title::ReadForm>();

    fn plan(&self, args: &ReadFileArgs) -> CallPlan {
        CallPlan::reads(&args.file_path)
    }

    async fn call(&self, cx: &ToolCx, args: ReadFileArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        if let (Some(mime), FileDisplay::Media { max_bytes }) = media::file_type(path.name()) {
            return read_media(cx, &path, (mime, max_bytes)).await;
        }
        let range = LineRange {
            skip: args.offset,
            // Only the first line is long enough to be read from its middle.
            take: if args.column > 0 { 1 } else { args.limit },
            max_line_bytes: (MAX_LINE_CHARS + args.column) * MAX_CHAR_BYTES,
            max_bytes: MAX_OUTPUT_CHARS * MAX_CHAR_BYTES,
        };
        let lines = match cx.vfs.read_lines(&path, range).await {
            Ok(lines) => lines,
            Err(error) => return Err(explain_error(cx, error).await),
        };
        let text = render(cx.surface, &path, &lines, &args).map_err(ToolError::RespondToModel)?;
        Ok(Output::text(text).with_file_version(&path, &lines.version))
    }
}

async fn read_media(
    cx: &ToolCx,
    path: &VPath,
    (mime, max_bytes): (&str, u64),
) -> Result<Output, ToolError> {
    // One byte more than allowed shows whether the file is too large.
    let (data, version) = match cx
        .vfs
        .read(
            path,
            ReadRange {
                offset: 0,
                len: max_bytes + 1,
            },
        )
        .await
    {
        Ok(read) => read,
        Err(error) => return Err(explain_error(cx, error).await),
    };
    if data.len() as u64 > max_bytes {
        return Err(ToolError::RespondToModel(format!(
            "{path} is too large to be shown: {mime} may have at most {max_bytes} bytes"
        )));
    }
    let size = counted(data.len(), "byte");
    let note = Block::text(format!("[{path}: {mime}, {size}]"));
    let data = base64::engine::general_purpose::STANDARD.encode(&data);
    let media = Block::Media(Media::inline(mime, data, Some(path.name().to_owned())));
    Ok(Output {
        content: vec![note, media],
        ..Output::default()
    }
    .with_file_version(path, &version))
}

/// Formats the lines for the model, or says why there are none.
fn render(
    surface: Surface,
    path: &VPath,
    window: &LineWindow,
    args: &ReadFileArgs,
) -> Result<String, String> {
    let offset = args.offset;
    if window.binary {
        let mime = media::file_type(path.name())
            .0
            .unwrap_or("application/octet-stream");
        return Err(format!(
            "{path} is a binary file ({mime}, {}) and cannot be shown as text",
            counted(window.size as usize, "byte")
        ));
    }
    if window.size == 0 {
        return Ok(format!("[{path} is empty]"));
    }
    if window.lines.is_empty() {
        let total = window.total.unwrap_or_default();
        let offset = surface.offset(offset);
        let lines = counted(total as usize, "line");
        return Err(format!(
            "offset {offset} is past the end of {path}, which has {lines}"
        ));
    }
    let mut text = String::new();
    let mut chars = 0;
    let mut next = offset;
    let mut is_lossy = false;
    let mut clipped = None;
    for line in &window.lines {
        let column = if next == offset { args.column } else { 0 };
        let shown = readable_line(line, (next, column));
        let row = format!("{:>6}  {}\n", next + 1, shown.text);
        chars += row.chars().count();
        if chars > MAX_OUTPUT_CHARS {
            break;
        }
        is_lossy |= shown.is_lossy;
        clipped = clipped.or(shown.next_column.map(|column| (next, column)));
        text.push_str(&row);
        next += 1;
    }
    if let Some((number, column)) = clipped {
        let line = surface.offset(number);
        let _ = writeln!(
            text,
            "[the clipped line goes on with offset={line}, column={column}]"
        );
    }
    if is_lossy {
        text.push_str("[some bytes are not UTF-8 and are shown as \u{fffd}]\n");
    }
    let resume = surface.offset(next);
    match window.total {
        Some(total) if total <= next => {}
        Some(total) => {
            let _ = writeln!(
                text,
                "[{}; continue with offset={resume}]",
                counted((total - next) as usize, "more line")
            );
        }
        None => {
            let size = window.size;
            let _ = writeln!(
                text,
                "[more lines follow, the file has {size} bytes; continue with offset={resume}]"
            );
        }
    }
    text.pop();
    Ok(text)
}

struct ReadableLine<'a> {
    text: Cow<'a, str>,
    is_lossy: bool,
    /// Where the line goes on, if it is cut.
    next_column: Option<usize>,
}

/// Returns line `number` from `column` on as text, without byte order mark and CR, cut if it is too
/// long.
fn readable_line(line: &FileLine, (number, column): (u64, usize)) -> ReadableLine<'_> {
    let bytes = line
        .text
        .strip_prefix(BOM)
        .filter(|_| number == 0)
        .unwrap_or(&line.text);
    let bytes = bytes
        .strip_suffix(b"\r")
        .filter(|_| line.dropped_bytes == 0)
        .unwrap_or(bytes);
    let bytes = if line.dropped_bytes == 0 {
        bytes
    } else {
        whole_chars(bytes)
    };
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    let text = match text {
        text if column == 0 => text,
        Cow::Borrowed(text) => Cow::Borrowed(after_chars(text, column)),
        Cow::Owned(text) => Cow::Owned(after_chars(&text, column).to_owned()),
    };
    let Some((end, _)) = text.char_indices().nth(MAX_LINE_CHARS) else {
        return ReadableLine {
            text,
            is_lossy,
            next_column: None,
        };
    };
    let clipped = text.len() - end + usize::try_from(line.dropped_bytes).unwrap_or(usize::MAX);
    let clipped = counted(clipped, "more byte");
    ReadableLine {
        text: format!("{} […{clipped} clipped]", &text[..end]).into(),
        is_lossy,
        next_column: Some(column + MAX_LINE_CHARS),
    }
}

/// Returns the text after its first `count` characters.
fn after_chars(text: &str, count: usize) -> &str {
    let start = text.char_indices().nth(count);
    start.map_or("", |(at, _)| &text[at..])
}

/// Returns the bytes without an incomplete character at the end.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}
