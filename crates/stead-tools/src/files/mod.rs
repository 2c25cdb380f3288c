//! The file tools. Each has one implementation for every place and every surface.
//!
//! Effects: workspace files (reads).

mod diff;
mod edit;
mod edit_hint;
mod find;
mod list;
mod media;
mod move_delete;
mod read;
mod tree;
mod write;

pub use edit::EDIT_FILE;
pub use find::{GLOB_FILES, GREP_FILES};
pub use list::{FILE_INFO, LS};
pub use move_delete::{DELETE_FILE, MOVE_FILE};
pub use read::READ_FILE;
pub use write::{OVERWRITE_FILE, WRITE_FILE};

use crate::typed::tool_family;
use crate::{ToolCx, ToolError};
use stead_core::ArgumentAliases;
use stead_vfs::{VPath, VfsError};

/// The most characters that one call returns; about 20,000 tokens.
const MAX_OUTPUT_CHARS: usize = 80_000;
/// The largest file that is loaded to change a part of it.
const MAX_EDIT_BYTES: u64 = 100 * 1024 * 1024;
/// The most names of a directory that are compared with a missing one.
const MAX_COMPARED_NAMES: usize = 2000;

/// Other names of `file_path`.
const FILE_PATH: ArgumentAliases =
    ArgumentAliases::of_names(&[("path", "file_path"), ("filename", "file_path")]);

tool_family! {
    /// Every file tool.
    pub fn file_tools() {
        list::ListFiles => list::ListFiles,
        list::FileInfo => list::FileInfo,
        read::ReadFile => read::ReadFile,
        write::WriteFile => write::WriteFile,
        write::OverwriteFile => write::OverwriteFile,
        edit::EditFile => edit::EditFile,
        move_delete::DeleteFile => move_delete::DeleteFile,
        move_delete::MoveFile => move_delete::MoveFile,
        find::GlobFiles => find::GlobFiles,
        find::GrepFiles => find::GrepFiles,
        tree::ShowTree => tree::ShowTree,
    }
}

pub(crate) fn here() -> String {
    ".".to_owned()
}

pub(crate) fn parse_path(text: &str) -> Result<VPath, ToolError> {
    VPath::parse(text).map_err(|error| ToolError::RespondToModel(error.to_string()))
}

/// Returns the error with a hint what to do about it, which names tools as the model knows them.
pub(crate) async fn explain_error(cx: &ToolCx, error: VfsError) -> ToolError {
    // The model cannot do anything about these.
    if matches!(error, VfsError::Fenced(_) | VfsError::Unavailable { .. }) {
        return ToolError::Fatal(error.to_string());
    }
    ToolError::RespondToModel(match &error {
        VfsError::NotFound(path) => match similar_path(cx, path).await {
            Some(other) => format!("{error}; did you mean {other}?"),
            None => format!(
                "{error}; use {} or {} to find it",
                cx.surface.name(&GLOB_FILES),
                cx.surface.name(&LS)
            ),
        },
        VfsError::IsDirectory(_) => {
            format!("{error}; use {} to see what is in it", cx.surface.name(&LS))
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

/// Returns a path in the same directory whose name is similar to `missing`.
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
