//! The `ls` and `file_info` tools: list a directory, and describe a file.
//!
//! Effects: workspace files (reads).

use super::{FILE_PATH, GLOB_FILES, explain_error, here, media, parse_path};
use crate::title;
use crate::{CallPlan, Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use stead_core::{ArgumentAliases, Exposure, Risk, ToolKind, counted};
use stead_vfs::{DirEntry, FileKind, LineRange};

/// `ls`: lists a directory.
pub const LS: ToolIdentity = ToolIdentity::new("ls", ToolKind::FileRead)
    .aliases(&["LS", "list_files", "list_dir"])
    .title("LS")
    .subject(&["path"]);
/// `file_info`: describes a file.
pub const FILE_INFO: ToolIdentity = ToolIdentity::new("file_info", ToolKind::FileRead)
    .aliases(&["stat"])
    .subject(&["file_path"])
    .exposed(Exposure::OnDemand);

/// The most entries that are listed; others are only counted.
const MAX_ENTRIES: usize = 1000;
/// The size from which the lines of a file are not counted.
const MAX_COUNTED_BYTES: u64 = 50 * 1024 * 1024;

pub(super) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFilesArgs {
    #[serde(default = "here")]
    path: String,
}

impl TypedTool for ListFiles {
    type Args = ListFilesArgs;
    const DEF: ToolDef = ToolDef::new(
        LS,
        Risk::READS,
        "Lists a directory with hidden files, sizes and times of change.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[
        ("file_path", "path"),
        ("directory", "path"),
    ]))
    .title_form::<title::LsForm>();

    fn plan(&self, args: &ListFilesArgs) -> CallPlan {
        CallPlan::reads(&args.path)
    }

    async fn call(&self, cx: &ToolCx, args: ListFilesArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.path)?;
        let entries = match cx.vfs.list(&path).await {
            Ok(entries) => entries,
            Err(error) => return Err(explain_error(cx, error).await),
        };
        if entries.is_empty() {
            return Ok(Output::text(format!("[{path} is empty]")));
        }
        let mut rows: Vec<String> = entries.iter().take(MAX_ENTRIES).map(render_entry).collect();
        if entries.len() > MAX_ENTRIES {
            rows.push(format!(
                "[{} more; use {} to narrow]",
                entries.len() - MAX_ENTRIES,
                cx.surface.name(&GLOB_FILES)
            ));
        }
        Ok(Output::text(rows.join("\n")))
    }
}

fn render_entry(entry: &DirEntry) -> String {
    match entry.kind {
        FileKind::Directory => format!("{}/", entry.name),
        FileKind::File => {
            let size = counted(entry.size as usize, "byte");
            let modified = jiff::Timestamp::from_millisecond(entry.modified_ms);
            let modified =
                modified.map_or(String::new(), |at| at.strftime(", %F %H:%MZ").to_string());
            format!("{}  ({size}{modified})", entry.name)
        }
        FileKind::Other => format!("{}  (special, or leads out of the workspace)", entry.name),
    }
}

pub(super) struct FileInfo;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InfoArgs {
    /// Path of the file or directory, relative to the workspace.
    file_path: String,
}

impl TypedTool for FileInfo {
    type Args = InfoArgs;
    const DEF: ToolDef = ToolDef::new(
        FILE_INFO,
        Risk::READS,
        "Tells kind, size, number of lines, time of change, mode and type of a file.",
    )
    .bounded()
    .argument_aliases(FILE_PATH);

    fn plan(&self, args: &InfoArgs) -> CallPlan {
        CallPlan::reads(&args.file_path)
    }

    async fn call(&self, cx: &ToolCx, args: InfoArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        let stat = match cx.vfs.stat(&path).await {
            Ok(stat) => stat,
            Err(error) => return Err(explain_error(cx, error).await),
        };
        let mut text = format!("path: {path}\n");
        let kind = match stat.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Other => "special file",
        };
        let _ = writeln!(text, "kind: {kind}");
        if stat.kind == FileKind::File {
            let _ = writeln!(text, "size: {}", counted(stat.size as usize, "byte"));
            let (mime, _) = media::file_type(path.name());
            let mut is_text = None;
            if stat.size < MAX_COUNTED_BYTES {
                // Skipping every line counts them all.
                let all = LineRange {
                    skip: u64::MAX,
                    take: 1,
                    max_line_bytes: 0,
                    max_bytes: 0,
                };
                let lines = cx.vfs.read_lines(&path, all).await.ok();
                is_text = lines.as_ref().map(|lines| !lines.binary);
                if let Some(total) = lines.and_then(|lines| lines.total) {
                    let _ = writeln!(text, "lines: {total}");
                }
            }
            let guess = if is_text == Some(true) {
                "text/plain"
            } else {
                "application/octet-stream"
            };
            let _ = writeln!(text, "type: {}", mime.unwrap_or(guess));
        }
        if let Ok(modified) = jiff::Timestamp::from_millisecond(stat.modified_ms) {
            let _ = writeln!(text, "modified: {modified}");
        }
        if let Some(mode) = stat.mode {
            let _ = writeln!(text, "mode: {mode:04o}");
        }
        text.pop();
        Ok(Output::text(text))
    }
}
