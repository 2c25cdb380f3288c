//! `read_file`.

use super::media::{self, FileDisplay};
use super::{FILE_PATH, MAX_OUTPUT_CHARS, explain_error, parse_path};
use crate::title;
use crate::{CallPlan, Output, Surface, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use base64::Engine;
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt::Write;
use stead_core::{Block, Media, Risk, ToolKind, counted};
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
    /// Path of the file, relative to the workspace.
    file_path: String,
    /// Lines to skip from the start.
    #[serde(default)]
    offset: u64,
    /// Most lines to read.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1))]
    limit: usize,
}

fn default_limit() -> usize {
    2000
}

impl TypedTool for ReadFile {
    type Args = ReadFileArgs;
    const DEF: ToolDef = ToolDef::new(READ_FILE, Risk::READS, "Reads a file. Text comes with line numbers, which are not part of the file; \
        use offset and limit to page through a long one. Images, PDF, audio and video are shown as such.").bounded().argument_aliases(FILE_PATH).title_form::<title::ReadForm>();

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
            take: args.limit,
            max_line_bytes: MAX_LINE_CHARS * MAX_CHAR_BYTES,
            max_bytes: MAX_OUTPUT_CHARS * MAX_CHAR_BYTES,
        };
        let lines = match cx.vfs.read_lines(&path, range).await {
            Ok(lines) => lines,
            Err(error) => return Err(explain_error(cx, error).await),
        };
        let text =
            render(cx.surface, &path, &lines, args.offset).map_err(ToolError::RespondToModel)?;
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
    let note = Block::text(format!("[{path}: {mime}, {} bytes]", data.len()));
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
    offset: u64,
) -> Result<String, String> {
    if window.binary {
        let mime = media::file_type(path.name())
            .0
            .unwrap_or("application/octet-stream");
        return Err(format!(
            "{path} is a binary file ({mime}, {} bytes) and cannot be shown as text",
            window.size
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
    for line in &window.lines {
        let shown = readable_line(line, next);
        let row = format!("{:>6}  {}\n", next + 1, shown.text);
        chars += row.chars().count();
        if chars > MAX_OUTPUT_CHARS {
            break;
        }
        is_lossy |= shown.is_lossy;
        text.push_str(&row);
        next += 1;
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
}

/// Returns a line as text without byte order mark and CR, cut if it is too long.
fn readable_line(line: &FileLine, number: u64) -> ReadableLine<'_> {
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
    let Some((end, _)) = text.char_indices().nth(MAX_LINE_CHARS) else {
        return ReadableLine { text, is_lossy };
    };
    let clipped = text.len() - end + usize::try_from(line.dropped_bytes).unwrap_or(usize::MAX);
    ReadableLine {
        text: format!("{} […{clipped} more bytes clipped]", &text[..end]).into(),
        is_lossy,
    }
}

/// Returns the bytes without an incomplete character at the end.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Ok(_) | Err(_) => bytes,
    }
}
