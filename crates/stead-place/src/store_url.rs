//! Connecting to a store by its URL.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes), the network.

use crate::PlaceError;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use stead_store::{Store, connect};
use stead_vfs::VPath;

/// The folder from which the path of a file store is resolved, if it is relative.
#[derive(Debug, Clone, Copy)]
pub enum StorePathBase<'a> {
    /// The current folder.
    CurrentDir,
    /// A workspace. A store inside it must lie where the agent cannot change it.
    Workspace {
        /// The folder of the workspace.
        dir: &'a Path,
        /// The folder below it in which everything of the agent lies.
        home: &'a VPath,
    },
}

impl StorePathBase<'_> {
    /// Returns the file that `url` names, if it names one.
    pub fn file(self, url: &str) -> Option<PathBuf> {
        let (_, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| *scheme == "sqlite")?;
        let path = Path::new(rest.strip_prefix("//").unwrap_or(rest));
        let is_file = !path.as_os_str().is_empty() && rest != ":memory:";
        is_file.then(|| match self {
            Self::CurrentDir => path.to_owned(),
            Self::Workspace { dir, .. } => dir.join(path),
        })
    }
}

/// Connects to the store at `url`. A file store inside the workspace must lie under `agents/` in the
/// folder of the agent, where the agent cannot change it.
pub async fn connect_store(
    base: StorePathBase<'_>,
    url: &str,
) -> Result<Arc<dyn Store>, PlaceError> {
    let Some(file) = base.file(url) else {
        return Ok(connect(url).await?);
    };
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if let StorePathBase::Workspace { dir, home } = base
        && let Some(below) = relative_to(dir, &file)
        && let Some(wrong) = outside_state(&below, home)
    {
        let hint = format!(
            "{scheme}:{wrong}/{}",
            file.file_name().unwrap_or_default().display()
        );
        return Err(PlaceError::Settings(format!(
            "{url}: a store inside the workspace must lie under {wrong}/, where the agent cannot change it; use {hint}"
        )));
    }
    Ok(connect(&format!("{scheme}:{}", file.display())).await?)
}

/// Returns the folder of the state, if a file at `below` in the workspace does not lie in it.
fn outside_state(below: &Path, home: &VPath) -> Option<String> {
    let state = match home.is_root() {
        true => "agents".to_owned(),
        false => format!("{home}/agents"),
    };
    let inside = below.starts_with(&state) && below != Path::new(&state);
    (!inside).then_some(state)
}

/// Returns the path of `file` relative to `dir` if it lies in it, with links and dots resolved.
fn relative_to(dir: &Path, file: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir.canonicalize().ok()?).ok()?;
    let mut plain = PathBuf::new();
    for part in std::path::absolute(file).ok()?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    // The file may not exist yet: resolve the part of the path that does.
    let there = plain.ancestors().find(|above| above.exists())?;
    let real = there
        .canonicalize()
        .ok()?
        .join(plain.strip_prefix(there).ok()?);
    real.strip_prefix(dir).ok().map(Path::to_owned)
}
