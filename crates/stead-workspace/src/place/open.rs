//! From settings to the place they name.

use super::{
    EphemeralPlace, LocalPlace, PROJECT, Place, PlaceError, ProjectAccess, StorePlace, hide_paths,
};
use crate::{FeatureSwitch, FilesystemMode, Layout, Project, Workspace, offload_folder};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use stead_core::Redactor;
use stead_store::{OsDisk, Store, connect};
use stead_vfs::{LocalVfs, Protected};

/// Where AgentScope keeps a workspace, below the project it is for.
const AGENTSCOPE: &str = ".agentscope/workspace";

/// Opens the place where the tree and the sessions of the workspace in `dir` lie.
pub async fn open_place(
    dir: &Path,
    workspace: &Workspace,
    redactor: Redactor,
) -> Result<Arc<dyn Place>, PlaceError> {
    let config = workspace.config();
    let place: Arc<dyn Place> = match config.filesystem.mode {
        FilesystemMode::Local => Arc::new(open_local_place(dir, workspace, redactor.clone())?),
        FilesystemMode::Store => {
            Arc::new(open_store_place(dir, workspace, redactor.clone()).await?)
        }
    };
    if config.disable.contains(FeatureSwitch::SessionPersistence) {
        let ephemeral = EphemeralPlace::new(place, config.agent_id(), redactor);
        return Ok(
            match offload_folder(&workspace.definition.paths.runtime, &config.agent_id()) {
                Ok(offload) => Arc::new(ephemeral.with_offload(offload)),
                Err(_) => Arc::new(ephemeral),
            },
        );
    }
    Ok(place)
}

/// The folder itself, with the project that is attached to it.
fn open_local_place(
    dir: &Path,
    workspace: &Workspace,
    redactor: Redactor,
) -> Result<LocalPlace, PlaceError> {
    let settings = &workspace.config().filesystem;
    let tree = &workspace.definition.paths;
    let place = LocalPlace::open(
        dir,
        workspace.config().agent_id(),
        Arc::new(OsDisk),
        redactor,
    )?;
    let place = place.with_scope(settings.scope).with_runtime(&tree.runtime);
    let place = match &tree.default_dir {
        Some(home) => {
            place.with_default_dir(home.clone(), workspace.definition.layout.top_level_names())
        }
        None => place,
    };
    let place = match &tree.usage {
        Some(usage) => place.with_usage(usage),
        None => place,
    };
    let Some(project) = settings.project.as_ref().map(Project::settings) else {
        return Ok(
            match surrounding_project(dir, workspace.definition.layout) {
                Some((project, dir)) => place
                    .with_project_files(project, ProjectAccess::ReadOnly)
                    .with_project_dir(dir),
                None => place,
            },
        );
    };
    let attached = if project.writable {
        ProjectAccess::Writable
    } else {
        ProjectAccess::ReadOnly
    };
    let folder = dir.join(&project.path);
    refuse_overlap(dir, &folder)?;
    place.with_project(&folder, attached).map_err(|error| {
        PlaceError::Settings(format!(
            "filesystem.project: {} cannot be opened: {error}",
            folder.display()
        ))
    })
}

/// The project that an AgentScope workspace lies in, without the workspace itself.
fn surrounding_project(dir: &Path, layout: Layout) -> Option<(Arc<dyn stead_vfs::Vfs>, PathBuf)> {
    let real = dir.canonicalize().ok()?;
    if layout != Layout::Agentscope || !real.ends_with(AGENTSCOPE) || dir.join(PROJECT).exists() {
        return None;
    }
    let project = real.parent()?.parent()?;
    let files = LocalVfs::open(project, Arc::new(OsDisk)).ok()?;
    Some((
        hide_paths(Arc::new(files), &[".agentscope"], Protected::NONE),
        project.to_owned(),
    ))
}

/// A project that holds the workspace, or lies in it, would open by another name what the rules
/// protect.
fn refuse_overlap(dir: &Path, project: &Path) -> Result<(), PlaceError> {
    let refused = |text: String| Err(PlaceError::Settings(text));
    if dir.join(PROJECT).exists() {
        return refused(format!(
            "filesystem.project would hide the folder {PROJECT}/ of the workspace; rename that folder"
        ));
    }
    let (Ok(dir), Ok(real)) = (dir.canonicalize(), project.canonicalize()) else {
        return refused(format!(
            "filesystem.project: there is no folder {}",
            project.display()
        ));
    };
    if real.starts_with(&dir) || dir.starts_with(&real) {
        return refused(format!(
            "filesystem.project: {} overlaps the workspace; attach a folder beside it",
            project.display()
        ));
    }
    Ok(())
}

/// The store that the workspace's settings name.
pub async fn open_store_place(
    dir: &Path,
    workspace: &Workspace,
    redactor: Redactor,
) -> Result<StorePlace, PlaceError> {
    let settings = &workspace.config().filesystem;
    let store = connect_store(
        StorePathBase::Workspace(dir),
        settings.url.as_deref().unwrap_or_default(),
    )
    .await?;
    let sessions = match &workspace.config().sessions.url {
        Some(url) => connect_store(StorePathBase::Workspace(dir), url).await?,
        None => store.clone(),
    };
    let files = workspace.files.clone();
    let agent = workspace.config().agent_id();
    let place = StorePlace::new(store, sessions, files, agent, settings, redactor)?;
    Ok(place.with_cache(workspace.cache.clone()))
}

/// Where a store that is a file begins, if its path is relative.
#[derive(Debug, Clone, Copy)]
pub enum StorePathBase<'a> {
    /// In the current folder.
    CurrentDir,
    /// In the workspace, out of the agent's reach.
    Workspace(&'a Path),
}

impl StorePathBase<'_> {
    /// The file that `url` names, if it names one.
    pub fn file(self, url: &str) -> Option<PathBuf> {
        let (_, rest) = url
            .split_once(':')
            .filter(|(scheme, _)| *scheme == "sqlite")?;
        let path = Path::new(rest.strip_prefix("//").unwrap_or(rest));
        let is_file = !path.as_os_str().is_empty() && rest != ":memory:";
        is_file.then(|| match self {
            Self::CurrentDir => path.to_owned(),
            Self::Workspace(dir) => dir.join(path),
        })
    }
}

/// Connects to a store. One that is a file inside the workspace must lie where the agent cannot
/// change it.
pub async fn connect_store(
    base: StorePathBase<'_>,
    url: &str,
) -> Result<Arc<dyn Store>, PlaceError> {
    let Some(file) = base.file(url) else {
        return Ok(connect(url).await?);
    };
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    if let StorePathBase::Workspace(dir) = base
        && let Some(below) = relative_to(dir, &file)
        && (!below.starts_with("agents") || below.components().count() < 2)
    {
        let hint = format!(
            "{scheme}:agents/{}",
            file.file_name().unwrap_or_default().display()
        );
        return Err(PlaceError::Settings(format!(
            "{url}: a store inside the workspace must lie under agents/, where the agent cannot change it; use {hint}"
        )));
    }
    Ok(connect(&format!("{scheme}:{}", file.display())).await?)
}

/// The path of `file` from `dir`, if it lies in it, whatever links and dots are on the way.
fn relative_to(dir: &Path, file: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir.canonicalize().ok()?).ok()?;
    let mut plain = PathBuf::new();
    for part in std::path::absolute(file).ok()?.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    // The part that exists tells where the rest will be.
    let there = plain.ancestors().find(|above| above.exists())?;
    let real = there
        .canonicalize()
        .ok()?
        .join(plain.strip_prefix(there).ok()?);
    real.strip_prefix(dir).ok().map(Path::to_owned)
}
