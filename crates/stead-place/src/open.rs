//! Opening the place that settings name.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes), the network.

use crate::earlier_state::adopt_earlier_state;
use crate::state_links::refuse_links_out;
use crate::store_url::{StorePathBase, connect_store};
use crate::template::hide_paths;
use crate::{
    EphemeralPlace, FilesystemMode, FilesystemSettings, LocalPlace, PROJECT, Place, PlaceError,
    Project, ProjectAccess, StorePlace,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_core::{AgentId, Redactor};
use stead_store::OsDisk;
use stead_vfs::{LocalVfs, Protected, StoreVfs, VPath, Vfs};

/// Everything that is needed to open a place.
#[derive(Debug, Clone)]
pub struct PlaceSettings {
    /// The folder of the workspace.
    pub dir: PathBuf,
    /// The agent whose sessions the place holds.
    pub agent: AgentId,
    /// The `filesystem:` settings.
    pub filesystem: FilesystemSettings,
    /// The URL of the store for sessions, if it is not the store of the files.
    pub session_store: Option<String>,
    /// The files of the workspace: the template of a store.
    pub template: Arc<dyn Vfs>,
    /// The folder in which everything of the agent lies; the root if the whole tree is the agent's.
    pub home: VPath,
    /// Patterns of paths that belong to one owner and are not part of the template.
    pub private_paths: Vec<&'static str>,
    /// The folder below which `agents/<id>/` holds runtime state.
    pub runtime: VPath,
    /// The folder for new files outside the known ones, if the workspace has one.
    pub default_dir: Option<DefaultDir>,
    /// The usage log, if it does not lie with the rest of the runtime state.
    pub usage: Option<VPath>,
    /// The folder of offloaded texts, which is a part of the sessions.
    pub offload: Option<VPath>,
    /// Whether sessions outlive the process.
    pub persistence: SessionPersistence,
    /// The project that contains the workspace, attached where the settings name none.
    pub surrounding_project: Option<SurroundingProject>,
    /// The folder for derived data of places that are not folders; none = keep it in memory.
    pub cache: Option<PathBuf>,
}

/// The folder for new files outside the known ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultDir {
    /// The folder.
    pub dir: VPath,
    /// The known names at the root. A path that starts with one of them is not moved.
    pub known_names: &'static [&'static str],
}

/// Whether sessions outlive the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionPersistence {
    /// They are kept.
    #[default]
    Durable,
    /// They end with the process.
    Ephemeral,
}

/// A project that contains a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurroundingProject {
    /// The folder of the project.
    pub dir: PathBuf,
    /// The name in that folder which holds the workspace and is not shown.
    pub hidden: &'static str,
}

impl PlaceSettings {
    /// Returns the settings of the folder `dir` with sessions of `agent` and nothing special.
    pub fn local(dir: &Path, agent: AgentId) -> Self {
        Self {
            dir: dir.to_owned(),
            agent,
            filesystem: FilesystemSettings::default(),
            session_store: None,
            template: Arc::new(StoreVfs::in_memory()),
            home: VPath::root(),
            private_paths: Vec::new(),
            runtime: VPath::root(),
            default_dir: None,
            usage: None,
            offload: None,
            persistence: SessionPersistence::Durable,
            surrounding_project: None,
            cache: None,
        }
    }
}

/// Opens the place that `settings` name. Journals are redacted by `redactor`.
pub async fn open_place(
    settings: &PlaceSettings,
    redactor: Redactor,
) -> Result<Arc<dyn Place>, PlaceError> {
    let place: Arc<dyn Place> = match settings.filesystem.mode {
        FilesystemMode::Local => {
            refuse_links_out(settings)?;
            let disk = Arc::new(OsDisk);
            let notices = adopt_earlier_state(settings, disk.clone())?;
            let place = LocalPlace::open(settings, disk, redactor.clone())?.with_notices(notices);
            Arc::new(attach_project(place, settings)?)
        }
        FilesystemMode::Store => Arc::new(open_store_place(settings, redactor.clone()).await?),
    };
    match settings.persistence {
        SessionPersistence::Durable => Ok(place),
        SessionPersistence::Ephemeral => {
            let place = EphemeralPlace::new(place, settings.agent.clone(), redactor);
            Ok(match &settings.offload {
                Some(offload) => Arc::new(place.with_offload(offload.clone())),
                None => Arc::new(place),
            })
        }
    }
}

/// Opens the store that `settings` name.
pub async fn open_store_place(
    settings: &PlaceSettings,
    redactor: Redactor,
) -> Result<StorePlace, PlaceError> {
    let base = StorePathBase::Workspace {
        dir: &settings.dir,
        home: &settings.home,
    };
    let url = settings.filesystem.url.as_deref().unwrap_or_default();
    let store = connect_store(base, url).await?;
    let sessions = match &settings.session_store {
        Some(url) => connect_store(base, url).await?,
        None => store.clone(),
    };
    let place = StorePlace::new(
        store,
        sessions,
        settings.template.clone(),
        settings.agent.clone(),
        &settings.filesystem,
        redactor,
    )?;
    Ok(place
        .with_private_paths(&settings.home, &settings.private_paths)
        .with_cache(settings.cache.clone()))
}

/// Attaches the project that the settings name, or the one that contains the workspace.
fn attach_project(place: LocalPlace, settings: &PlaceSettings) -> Result<LocalPlace, PlaceError> {
    let dir = &settings.dir;
    let Some(project) = settings.filesystem.project.as_ref().map(Project::settings) else {
        return Ok(match &settings.surrounding_project {
            Some(project) => attach_surrounding(place, dir, project),
            None => place,
        });
    };
    let access = if project.writable {
        ProjectAccess::Writable
    } else {
        ProjectAccess::ReadOnly
    };
    // The path is relative to the workspace.
    let folder = dir.join(&project.path);
    refuse_overlap(dir, &folder)?;
    place.with_project(&folder, access).map_err(|error| {
        PlaceError::Settings(format!(
            "filesystem.project: {} cannot be opened: {error}",
            folder.display()
        ))
    })
}

/// Attaches the project that contains the workspace in `dir`, without the workspace itself.
fn attach_surrounding(place: LocalPlace, dir: &Path, project: &SurroundingProject) -> LocalPlace {
    if dir.join(PROJECT).exists() {
        return place;
    }
    let Ok(files) = LocalVfs::open(&project.dir, Arc::new(OsDisk)) else {
        return place;
    };
    let files = hide_paths(Arc::new(files), &[project.hidden], Protected::NONE);
    place
        .with_project_files(files, ProjectAccess::ReadOnly)
        .with_project_dir(project.dir.clone())
}

/// Refuses a project that contains the workspace or is inside it: files that the rules protect
/// would be reachable under another name.
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
