//! `delete_file` and `move_file`.

use super::diff::{CurrentContent, preview_removal};
use super::{FILE_PATH, access, explain_error, parse_path};
use crate::{ArgumentAliases, Output, Surface, ToolCx, ToolError, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{AccessKind, PathAccess, PathScope, Risk};
use stead_vfs::{FileKind, VPath, Vfs, VfsError};

pub(super) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArgs {
    /// Path of the file or directory, relative to the workspace.
    file_path: String,
}

impl TypedTool for DeleteFile {
    type Args = DeleteArgs;
    const NAME: &'static str = "delete_file";
    const ALIASES: &'static [&'static str] = &["delete", "Delete"];
    const DESCRIPTION: &'static str =
        "Deletes a file, or a directory with everything in it. A link is deleted, not its target.";
    const RISK: Risk = Risk::WRITES;
    const ARGUMENT_ALIASES: ArgumentAliases = FILE_PATH;

    fn accesses(&self, args: &DeleteArgs) -> Vec<PathAccess> {
        vec![access(&args.file_path, AccessKind::Write, PathScope::Tree)]
    }

    async fn preview(&self, files: &dyn Vfs, args: DeleteArgs) -> Option<String> {
        Some(preview_removal(files, &VPath::parse(&args.file_path).ok()?).await)
    }

    async fn call(&self, cx: &ToolCx, args: DeleteArgs) -> Result<Output, ToolError> {
        let path = parse_path(&args.file_path)?;
        if path.is_root() {
            return Err(ToolError::RespondToModel(
                "the workspace itself cannot be deleted; name a file or directory in it".to_owned(),
            ));
        }
        match cx.vfs.remove(&path).await {
            Ok(()) => Ok(Output::text(format!("Deleted {path}"))),
            Err(error) => Err(explain_error(cx, Surface::Snake, error).await),
        }
    }
}

pub(super) struct MoveFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArgs {
    /// The file or directory to move, relative to the workspace.
    from: String,
    /// Its new path; nothing may be there. Missing directories are made.
    to: String,
}

impl TypedTool for MoveFile {
    type Args = MoveArgs;
    const NAME: &'static str = "move_file";
    const ALIASES: &'static [&'static str] = &["move", "rename_file"];
    const DESCRIPTION: &'static str = "Moves or renames a file or directory. Never overwrites.";
    const RISK: Risk = Risk::WRITES;
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases {
        names: &[
            ("source", "from"),
            ("destination", "to"),
            ("old_path", "from"),
            ("new_path", "to"),
        ],
        values: &[],
    };

    fn accesses(&self, args: &MoveArgs) -> Vec<PathAccess> {
        vec![
            // What arrives may be readable where it could not be read before.
            access(&args.from, AccessKind::Read, PathScope::Tree),
            access(&args.from, AccessKind::Write, PathScope::Tree),
            access(
                &args.to,
                AccessKind::Write,
                PathScope::Arrival {
                    from: args.from.clone(),
                },
            ),
        ]
    }

    async fn preview(&self, files: &dyn Vfs, args: MoveArgs) -> Option<String> {
        let from = VPath::parse(&args.from).ok()?;
        let to = VPath::parse(&args.to).ok()?;
        let line = format!("rename from {from}\nrename to {to}\n");
        Some(
            match (
                CurrentContent::load(files, &from).await,
                CurrentContent::load(files, &to).await,
            ) {
                (CurrentContent::Absent, _) => format!("would fail: {from} does not exist\n"),
                (_, CurrentContent::Text(_) | CurrentContent::Other(_)) => {
                    format!("would fail: {to} exists already\n")
                }
                (CurrentContent::Text(_) | CurrentContent::Other(_), CurrentContent::Absent) => {
                    line
                }
            },
        )
    }

    async fn call(&self, cx: &ToolCx, args: MoveArgs) -> Result<Output, ToolError> {
        let from = parse_path(&args.from)?;
        let to = parse_path(&args.to)?;
        match cx.vfs.rename(&from, &to).await {
            Ok(()) => {}
            Err(VfsError::Exists(path)) => {
                return Err(ToolError::RespondToModel(format!(
                    "{path} exists already; delete it first or choose another path"
                )));
            }
            Err(error) => return Err(explain_error(cx, Surface::Snake, error).await),
        }
        let moved = Output::text(format!("Moved {from} to {to}"));
        Ok(match cx.vfs.stat(&to).await {
            Ok(stat) if stat.kind == FileKind::File && has_seen(cx, &from) => {
                moved.with_file_version(&to, &stat.version)
            }
            Ok(_) | Err(_) => moved,
        })
    }
}

/// Whether the session has seen the file before it moved, and so knows what is in it.
fn has_seen(cx: &ToolCx, path: &VPath) -> bool {
    cx.file_versions.get(path).is_some()
}
