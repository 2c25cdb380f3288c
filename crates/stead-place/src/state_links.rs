//! The folders of the agent's own state must lie in the workspace: a link that comes with a folder
//! from elsewhere would have journals and indexes written wherever it leads.
//!
//! Effects: the local disk (reads).

use crate::{PlaceError, PlaceSettings};
use std::path::{Path, PathBuf};

/// Refuses a folder of the running state that is a link out of the workspace.
pub(crate) fn refuse_links_out(settings: &PlaceSettings) -> Result<(), PlaceError> {
    let Ok(root) = settings.dir.canonicalize() else {
        // Opening it says why.
        return Ok(());
    };
    match state_folders(settings)
        .iter()
        .find_map(|path| Some((path, link_out(path, &root)?)))
    {
        None => Ok(()),
        Some((path, target)) => Err(PlaceError::Settings(format!(
            "{} is a link to {}, outside of the workspace, and the agent keeps its state in the workspace: put the \
             folder itself there, or mount it",
            path.display(),
            target.display()
        ))),
    }
}

/// Returns the folders that lead to the state, and those in which it lies.
fn state_folders(settings: &PlaceSettings) -> Vec<PathBuf> {
    let mut path = settings.dir.clone();
    let mut all = Vec::new();
    let names = settings.runtime.parts();
    for name in names.chain(["agents", settings.agent.as_str()]) {
        path.push(name);
        all.push(path.clone());
    }
    let below = path.read_dir().into_iter().flatten().flatten();
    all.extend(below.map(|entry| entry.path()));
    all
}

/// Returns where a link leads, if that is outside of `root`.
fn link_out(path: &Path, root: &Path) -> Option<PathBuf> {
    let target = path.read_link().ok()?;
    match path.canonicalize() {
        Ok(real) if real.starts_with(root) => None,
        Ok(real) => Some(real),
        // It leads to nothing yet.
        Err(_) => Some(target),
    }
}
