//! Opening the folder of a workspace.

use super::BuildError;
use std::path::Path;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::LocalVfs;
use stead_workspace::{Layout, OpenOptions, Workspace};

/// The folder in which AgentScope keeps a workspace, below the project it belongs to.
pub const AGENTSCOPE_FOLDER: &str = ".agentscope/workspace";

/// Opens the workspace in the folder `dir` as [`AgentBuilder`](crate::AgentBuilder) does.
///
/// The name of the folder, and the layout where the path of the folder implies one, are added to
/// `options`. `variables` looks up what settings refer to as `${NAME}`.
pub async fn open_folder(
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
    let by_path = real
        .filter(|real| real.ends_with(AGENTSCOPE_FOLDER))
        .map(|_| Layout::Agentscope);
    let options = OpenOptions {
        layout: options.layout.or(by_path),
        folder: name,
        ..options
    };
    Ok(Workspace::open(files, &options, variables).await?)
}
