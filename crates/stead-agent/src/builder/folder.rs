//! Opening the folder of a workspace.

use super::BuildError;
use std::path::Path;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::LocalVfs;
use stead_workspace::{Layout, OpenOptions, Workspace};

/// Opens the workspace in the folder `dir` as [`AgentBuilder`](crate::AgentBuilder) does.
///
/// The name of the folder, and the layout where the path of the folder implies one, are added to
/// `options`. `variables` looks up what settings refer to as `${NAME}`.
pub async fn open_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let (files, options) = prepare(dir, options)?;
    Ok(Workspace::open(files, &options, variables).await?)
}

/// Opens the workspace in `dir` even if its settings have errors, to look at it. Its findings tell
/// the errors.
pub async fn inspect_folder(
    dir: &Path,
    options: OpenOptions,
    variables: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Workspace, BuildError> {
    let (files, options) = prepare(dir, options)?;
    Ok(Workspace::inspect(files, &options, variables).await)
}

/// Returns the files of a folder, and `options` with what its path tells.
fn prepare(dir: &Path, options: OpenOptions) -> Result<(Arc<LocalVfs>, OpenOptions), BuildError> {
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
    Ok((files, options))
}
