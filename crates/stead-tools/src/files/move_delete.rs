//! The `delete_file` and `move_file` tools.
//!
//! Effects: workspace files (writes).

use super::diff::{CurrentContent, preview_removal};
use super::{FILE_PATH, explain_error, parse_path};
use crate::{CallPlan, Output, PlanView, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{ArgumentAliases, Exposure, PathAccess, PathScope, Risk, ToolKind};
use stead_vfs::{FileKind, VPath, VfsError};

/// `delete_file`: deletes a file or directory.
pub const DELETE_FILE: ToolIdentity = ToolIdentity::new("delete_file", ToolKind::FileWrite)
    .aliases(&["delete", "Delete"])
    .subject(&["file_path", "path"])
    .exposed(Exposure::Usually);
/// `move_file`: moves a file or directory.
pub const MOVE_FILE: ToolIdentity = ToolIdentity::new("move_file", ToolKind::FileWrite)
    .aliases(&["move", "rename_file"])
    .subject(&["from", "to"])
    .exposed(Exposure::Usually);

pub(super) struct DeleteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArgs {
    file_path: String,
}

impl TypedTool for DeleteFile {
    type Args = DeleteArgs;
    const DEF: ToolDef = ToolDef::new(
        DELETE_FILE,
        Risk::WRITES,
        "Deletes a file, a directory with all that is in it, or a link (not its target).",
    )
    .argument_aliases(FILE_PATH);

    fn plan(&self, args: &DeleteArgs) -> CallPlan {
        let path = args.file_path.clone();
        CallPlan::default()
            .and_accesses(PathAccess::write(&args.file_path).with_scope(PathScope::Tree))
            .with_preview(move |view| preview_delete(view, path.clone()).boxed())
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
            Err(error) => Err(explain_error(cx, error).await),
        }
    }
}

async fn preview_delete(view: PlanView<'_>, path: String) -> Option<String> {
    Some(preview_removal(view.files, &VPath::parse(&path).ok()?).await)
}

pub(super) struct MoveFile;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArgs {
    from: String,
    to: String,
}

impl TypedTool for MoveFile {
    type Args = MoveArgs;
    const DEF: ToolDef = ToolDef::new(
        MOVE_FILE,
        Risk::WRITES,
        "Moves or renames a file or directory; never overwrites.",
    )
    .argument_aliases(ArgumentAliases::of_names(&[
        ("source", "from"),
        ("destination", "to"),
        ("old_path", "from"),
        ("new_path", "to"),
    ]));

    fn plan(&self, args: &MoveArgs) -> CallPlan {
        let moved = args.clone();
        let from = args.from.clone();
        let arrival = PathScope::Arrival { from };
        CallPlan::default()
            // What arrives may be readable where it could not be read before.
            .and_accesses(PathAccess::read(&args.from).with_scope(PathScope::Tree))
            .and_accesses(PathAccess::write(&args.from).with_scope(PathScope::Tree))
            .and_accesses(PathAccess::write(&args.to).with_scope(arrival))
            .with_preview(move |view| preview_move(view, moved.clone()).boxed())
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
            Err(error) => return Err(explain_error(cx, error).await),
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

async fn preview_move(view: PlanView<'_>, args: MoveArgs) -> Option<String> {
    let from = VPath::parse(&args.from).ok()?;
    let to = VPath::parse(&args.to).ok()?;
    let line = format!("rename from {from}\nrename to {to}\n");
    Some(
        match (
            CurrentContent::load(view.files, &from).await,
            CurrentContent::load(view.files, &to).await,
        ) {
            (CurrentContent::Absent, _) => format!("would fail: {from} does not exist\n"),
            (_, CurrentContent::Text(_) | CurrentContent::Other(_)) => {
                format!("would fail: {to} exists already\n")
            }
            (CurrentContent::Text(_) | CurrentContent::Other(_), CurrentContent::Absent) => line,
        },
    )
}

/// Whether the model has seen the content of the file that is moved (`ToolCx::file_versions`).
fn has_seen(cx: &ToolCx, path: &VPath) -> bool {
    cx.file_versions.get(path).is_some()
}
