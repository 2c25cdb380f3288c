//! The file tools: one implementation each, for every place and every surface.

mod diff;
mod edit;
mod edit_hint;
mod find;
mod list;
mod media;
mod move_delete;
mod read;
mod write;

use crate::{ArgumentAliases, Surface, Tool, ToolCx, ToolError, typed_tool};
use std::sync::Arc;
use stead_core::{AccessKind, PathAccess, PathScope};
use stead_vfs::{VPath, VfsError};

/// Characters of text one call gives back at most; about 20,000 tokens.
const MAX_OUTPUT_CHARS: usize = 80_000;
/// A larger file is not loaded to change a part of it.
const MAX_EDIT_BYTES: u64 = 100 * 1024 * 1024;
/// Names of a directory that are compared with a missing one.
const MAX_COMPARED_NAMES: usize = 2000;

/// For tools with a `file_path`.
const FILE_PATH: ArgumentAliases = ArgumentAliases {
    names: &[("path", "file_path"), ("filename", "file_path")],
    values: &[],
};

/// Every file tool.
pub fn file_tools() -> Vec<Arc<dyn Tool>> {
    let surface = Surface::Snake;
    vec![
        typed_tool(list::ListFiles { surface }),
        typed_tool(list::FileInfo),
        typed_tool(read::ReadFile { surface }),
        typed_tool(write::WriteFile { surface }),
        typed_tool(write::OverwriteFile),
        typed_tool(edit::EditFile { surface }),
        typed_tool(move_delete::DeleteFile),
        typed_tool(move_delete::MoveFile),
        typed_tool(find::GlobFiles { surface }),
        typed_tool(find::GrepFiles { surface }),
    ]
}

pub(crate) fn here() -> String {
    ".".to_owned()
}

pub(crate) fn parse_path(text: &str) -> Result<VPath, ToolError> {
    VPath::parse(text).map_err(|error| ToolError::RespondToModel(error.to_string()))
}

pub(crate) fn read_access(path: &str) -> Vec<PathAccess> {
    vec![access(path, AccessKind::Read, PathScope::Content)]
}

fn write_access(path: &str) -> Vec<PathAccess> {
    vec![access(path, AccessKind::Write, PathScope::Content)]
}

fn access(path: &str, kind: AccessKind, reach: PathScope) -> PathAccess {
    PathAccess {
        path: path.to_owned(),
        kind,
        scope: reach,
    }
}

/// The error with a hint what to do about it, in the words of a surface.
pub(crate) async fn explain_error(cx: &ToolCx, surface: Surface, error: VfsError) -> ToolError {
    // The model can do nothing about these.
    if matches!(error, VfsError::Fenced(_) | VfsError::Unavailable { .. }) {
        return ToolError::Fatal(error.to_string());
    }
    ToolError::RespondToModel(match &error {
        VfsError::NotFound(path) => match similar_path(cx, path).await {
            Some(other) => format!("{error}; did you mean {other}?"),
            None => format!(
                "{error}; use {} or {} to find it",
                surface.name("glob_files"),
                surface.name("ls")
            ),
        },
        VfsError::IsDirectory(_) => {
            format!("{error}; use {} to see what is in it", surface.name("ls"))
        }
        VfsError::Escapes(_) => format!("{error}, and only files inside it can be used"),
        VfsError::Changed(_) => format!("{error}; read it again and repeat the change"),
        VfsError::NoSpace(_) => format!("{error}; nothing was changed"),
        VfsError::Path(_)
        | VfsError::Exists(_)
        | VfsError::NotDirectory(_)
        | VfsError::Special(_)
        | VfsError::Denied(_)
        | VfsError::ReadOnly(_)
        | VfsError::Unavailable { .. }
        | VfsError::Fenced(_)
        | VfsError::TooLarge { .. }
        | VfsError::Io { .. } => error.to_string(),
    })
}

/// A path beside `missing` whose name is like it.
async fn similar_path(cx: &ToolCx, missing: &VPath) -> Option<VPath> {
    let parent = missing.parent()?;
    let entries = cx.vfs.list(&parent).await.ok()?;
    let names: Vec<&str> = entries
        .iter()
        .take(MAX_COMPARED_NAMES)
        .map(|entry| entry.name.as_str())
        .collect();
    parent
        .join(crate::closest_name(missing.name(), &names)?)
        .ok()
}

/// `1 line`, `2 lines`.
fn pluralize(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
