//! Opening the folder of a workspace. It reads files of the local disk and changes none.
//!
//! Effects: the environment, workspace files (reads), the local disk (reads), what it is given.

use super::BuildError;
use std::path::Path;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::LocalVfs;
use stead_workspace::{Layout, OpenOptions, Workspace};

/// Opens the workspace in the folder `dir` as [`AgentBuilder`](crate::AgentBuilder) does: see
/// [`inspect_folder`]. Errors in its settings are refused.
pub async fn open_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let workspace = inspect_folder(dir, options, variables).await?;
    Ok(workspace.refuse_errors()?)
}

/// Opens the workspace in `dir` even if its settings have errors. Its findings tell the errors.
///
/// The name of the folder, and the layout where the path of the folder implies one, are added to
/// `options`. `variables` looks up what settings refer to as `${NAME}`.
pub async fn inspect_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let files = Arc::new(LocalVfs::open(dir, Arc::new(OsDisk))?);
    let real = dir.canonicalize().ok();
    let name = real
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|name| name.to_str())
        .map(str::to_owned);
    let by_path = real.as_deref().and_then(Layout::from_dir);
    let options = OpenOptions {
        layout: options.layout.or(by_path),
        folder: name,
        ..options
    };
    Ok(Workspace::inspect(files, &options, variables).await)
}
