//! The file tools: one implementation each, for every place and every surface.

mod change;
mod diff;
mod edit;
mod find;
mod look;
mod media;
mod near;
mod read;
mod write;

use crate::{Spellings, Surface, Tool, ToolCx, ToolError, typed};
use std::sync::Arc;
use stead_core::{Access, AccessKind, Reach};
use stead_vfs::{VPath, VfsError};

/// Characters of text one call gives back at most; about 20,000 tokens.
const MAX_OUTPUT_CHARS: usize = 80_000;
/// A larger file is not loaded to change a part of it.
const MAX_EDIT_BYTES: u64 = 100 * 1024 * 1024;
/// Names of a directory that are compared with a missing one.
const MAX_COMPARED_NAMES: usize = 2000;

/// For tools with a `file_path`.
const FILE_PATH: Spellings = Spellings {
    names: &[("path", "file_path"), ("filename", "file_path")],
    values: &[],
};

/// Every file tool.
pub fn file_tools() -> Vec<Arc<dyn Tool>> {
    let surface = Surface::Snake;
    vec![
        typed(look::Ls { surface }),
        typed(look::FileInfo),
        typed(read::ReadFile { surface }),
        typed(write::WriteFile { surface }),
        typed(write::OverwriteFile),
        typed(edit::EditFile { surface }),
        typed(change::DeleteFile),
        typed(change::MoveFile),
        typed(find::GlobFiles { surface }),
        typed(find::GrepFiles { surface }),
    ]
}

pub(crate) fn here() -> String {
    ".".to_owned()
}

pub(crate) fn path(text: &str) -> Result<VPath, ToolError> {
    VPath::parse(text).map_err(|error| ToolError::Tell(error.to_string()))
}

pub(crate) fn reads(path: &str) -> Vec<Access> {
    vec![access(path, AccessKind::Read, Reach::Content)]
}

fn writes(path: &str) -> Vec<Access> {
    vec![access(path, AccessKind::Write, Reach::Content)]
}

fn access(path: &str, kind: AccessKind, reach: Reach) -> Access {
    Access {
        path: path.to_owned(),
        kind,
        reach,
    }
}

/// The error with a hint what to do about it, in the words of a surface.
pub(crate) async fn explain(cx: &ToolCx, surface: Surface, error: VfsError) -> ToolError {
    // The model can do nothing about these.
    if matches!(error, VfsError::Fenced(_) | VfsError::Unavailable { .. }) {
        return ToolError::Stop(error.to_string());
    }
    ToolError::Tell(match &error {
        VfsError::NotFound(path) => match alike(cx, path).await {
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
async fn alike(cx: &ToolCx, missing: &VPath) -> Option<VPath> {
    let parent = missing.parent()?;
    let entries = cx.vfs.list(&parent).await.ok()?;
    let names: Vec<&str> = entries
        .iter()
        .take(MAX_COMPARED_NAMES)
        .map(|entry| entry.name.as_str())
        .collect();
    parent.join(crate::nearest(missing.name(), &names)?).ok()
}

/// `1 line`, `2 lines`.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
