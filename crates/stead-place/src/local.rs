//! The local place: a folder of the local disk, and the file trees and stores that it gives to each
//! owner. The workspace is touched through `Vfs`, everything else through `Disk`.
//!
//! Effects: the clock, the local disk (writes).

use crate::owner_cache::{OwnerCache, OwnerStores};
use crate::template::template_of;
use crate::{
    DefaultDir, IsolationScope, OwnerState, PROJECT, Place, PlaceKind, PlaceSettings, ProjectAccess,
};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AgentId, Owner, Redactor, SessionId, TenantId};
use stead_search::{IndexCache, LazyIndex};
use stead_store::{
    Disk, FencingToken, FileLineLog, FileSessions, FileStore, FileUndoLog, IgnoredDir, LineLog,
    SessionInbox, Sessions, Space, UndoLog, folder_name,
};
use stead_vfs::{DefaultDirVfs, Frozen, LocalVfs, Overlay, Routes, Scoped, VPath, Vfs, VfsError};

/// A folder of the local disk.
///
/// The default owner works on the folder itself. A named user has a folder `@@name` in it, laid over
/// a read-only view of the rest that shows nothing of other users.
#[derive(Debug)]
pub struct LocalPlace {
    dir: PathBuf,
    root: LocalVfs,
    disk: Arc<dyn Disk>,
    agent: AgentId,
    redactor: Redactor,
    scope: IsolationScope,
    project: Option<(Arc<dyn Vfs>, ProjectAccess)>,
    /// The folder of the project on this machine, if it has one.
    project_dir: Option<PathBuf>,
    /// Patterns of paths that belong to one owner and are hidden from others.
    private_paths: Vec<&'static str>,
    /// The folder for new files outside the known ones.
    default_dir: Option<DefaultDir>,
    /// The folder in which everything of the agent lies, and with it the folders of users.
    home: VPath,
    /// The folder below which the running state of the default owner lies.
    runtime: PathBuf,
    /// The usage log, if it does not lie with the running state.
    usage: Option<PathBuf>,
    owners: OwnerCache,
    indexes: IndexCache,
    notices: Vec<String>,
}

impl LocalPlace {
    /// Opens the folder that `settings` name, without its project. Every change goes through `disk`.
    pub fn open(
        settings: &PlaceSettings,
        disk: Arc<dyn Disk>,
        redactor: Redactor,
    ) -> Result<Self, VfsError> {
        let below = |path: &VPath| {
            path.parts()
                .fold(settings.dir.clone(), |dir, name| dir.join(name))
        };
        let runtime = below(&settings.runtime);
        let disk = home_disk(settings, disk);
        Ok(Self {
            dir: settings.dir.clone(),
            root: LocalVfs::open(&settings.dir, disk.clone())?,
            scope: settings.filesystem.scope,
            project: None,
            project_dir: None,
            private_paths: settings.private_paths.clone(),
            default_dir: settings.default_dir.clone(),
            usage: settings.usage.as_ref().map(below),
            owners: OwnerCache::default(),
            indexes: IndexCache::default(),
            notices: Vec::new(),
            home: settings.home.clone(),
            runtime,
            agent: settings.agent.clone(),
            disk,
            redactor,
        })
    }

    /// Attaches the folder `dir` as `project/`.
    pub fn with_project(self, dir: &Path, attached: ProjectAccess) -> Result<Self, VfsError> {
        let files = LocalVfs::open(dir, self.disk.clone())?;
        let place = self.with_project_files(Arc::new(files), attached);
        Ok(match dir.canonicalize() {
            Ok(dir) => place.with_project_dir(dir),
            Err(_) => place,
        })
    }

    /// Attaches `files` as `project/`.
    pub fn with_project_files(self, files: Arc<dyn Vfs>, attached: ProjectAccess) -> Self {
        let files = match attached {
            ProjectAccess::ReadOnly => Arc::new(Frozen::read_only(files)),
            ProjectAccess::Writable => files,
        };
        Self {
            project: Some((files, attached)),
            ..self
        }
    }

    /// Adds what a person should be told about opening the place.
    pub fn with_notices(self, notices: Vec<String>) -> Self {
        Self { notices, ..self }
    }

    /// Names the folder of this machine in which the attached project lies, so that commands can
    /// run there.
    pub fn with_project_dir(self, dir: PathBuf) -> Self {
        Self {
            project_dir: Some(dir),
            ..self
        }
    }

    /// Returns the whole folder.
    pub fn root(&self) -> &LocalVfs {
        &self.root
    }

    /// Returns the part of the folder that belongs to `owner`.
    pub fn owner_files(&self, owner: &Owner) -> Result<Arc<dyn Vfs>, VfsError> {
        match self.owner_folder(owner) {
            None => Ok(Arc::new(self.root.clone())),
            Some(folder) => Ok(Arc::new(Scoped::new(
                Arc::new(self.root.clone()),
                self.home.join(&folder)?,
            ))),
        }
    }

    /// Returns the name of the owner's folder; none for the workspace itself.
    fn owner_folder(&self, owner: &Owner) -> Option<String> {
        match self.scope {
            IsolationScope::Agent | IsolationScope::Global
                if owner.tenant == TenantId::default() =>
            {
                None
            }
            IsolationScope::Agent | IsolationScope::Global => Some(tenant_folder(&owner.tenant)),
            IsolationScope::Session | IsolationScope::User if *owner == Owner::default() => None,
            IsolationScope::Session | IsolationScope::User
                if owner.tenant == TenantId::default() =>
            {
                Some(folder_name(&[owner.user.as_str()]))
            }
            IsolationScope::Session | IsolationScope::User => {
                Some(folder_name(&[owner.tenant.as_str(), owner.user.as_str()]))
            }
        }
    }

    fn owner_runtime_dir(&self, owner: &Owner) -> PathBuf {
        self.owner_folder(owner)
            .map_or_else(|| self.runtime.clone(), |folder| self.state_dir_in(&folder))
    }

    /// Returns the folder of the running state in the folder of an owner or a tenant.
    fn state_dir_in(&self, folder: &str) -> PathBuf {
        let home = Path::new(self.home.as_str());
        self.dir.join(home).join(folder).join(home)
    }

    /// Returns the sessions and the state below `folder`.
    fn stores_in(&self, folder: &Path) -> OwnerStores {
        self.owners.get(folder, || {
            let state = folder.join("agents").join(self.agent.as_str());
            OwnerStores {
                sessions: Arc::new(FileSessions::new(
                    folder,
                    self.agent.clone(),
                    self.disk.clone(),
                    self.redactor.clone(),
                )),
                state: Arc::new(FileStore::new(&state, self.disk.clone())),
            }
        })
    }

    /// Returns the name of the folder of the owner's files, or of the session's where each session
    /// has its own; none for the workspace itself.
    fn overlay_folder(&self, owner: &Owner, session: &SessionId) -> Option<String> {
        match self.scope {
            IsolationScope::Session => {
                let tenant = owner.tenant.as_str();
                let user = owner.user.as_str();
                Some(folder_name(&[tenant, user, session.as_str()]))
            }
            IsolationScope::User | IsolationScope::Agent | IsolationScope::Global => {
                self.owner_folder(owner)
            }
        }
    }

    /// Returns the tree of an owner, or of one session.
    fn owner_or_session_tree(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<Arc<dyn Vfs>, VfsError> {
        let Some(folder) = self.overlay_folder(owner, session) else {
            return Ok(Arc::new(self.root.clone()));
        };
        let upper = Scoped::new(Arc::new(self.root.clone()), self.home.join(&folder)?);
        Ok(Arc::new(Overlay::new(
            Arc::new(upper),
            template_of(Arc::new(self.root.clone()), &self.home, &self.private_paths),
        )))
    }
}

/// The `.gitignore` of a folder in which everything of an agent lies. It covers the settings too: a run
/// must not change what git shows, and the file itself would show.
pub const HOME_GITIGNORE: &str = "# Everything here belongs to Stead, and runs write conversations and memory: git ignores all of it.\n\
     # To share settings, add them once with `git add -f .stead/agent.yaml`.\n*\n";

/// Returns the disk for a place. Where everything of the agent lies in a folder of its own, git ignores
/// that folder from its creation on.
pub(crate) fn home_disk(settings: &PlaceSettings, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
    if settings.home.is_root() {
        return disk;
    }
    let home = settings.dir.join(settings.home.as_str());
    Arc::new(IgnoredDir::new(disk, home, HOME_GITIGNORE))
}

/// Returns the name of the folder that all users of a tenant share. No user has an empty name, so
/// it is no user's.
fn tenant_folder(tenant: &TenantId) -> String {
    folder_name(&[tenant.as_str(), ""])
}

impl Place for LocalPlace {
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions> {
        self.stores_in(&self.owner_runtime_dir(owner)).sessions
    }

    fn files(&self, owner: &Owner, session: &SessionId, _: Option<&FencingToken>) -> Arc<dyn Vfs> {
        // No fence: sessions on a local disk are held by locks. `owner_or_session_tree` fails only for a folder
        // name that is no valid path, which `folder_name` never makes.
        let tree = self
            .owner_or_session_tree(owner, session)
            .unwrap_or_else(|_| Arc::new(stead_vfs::StoreVfs::in_memory()));
        let tree: Arc<dyn Vfs> = match &self.default_dir {
            None => tree,
            Some(DefaultDir { dir, known_names }) => Arc::new(DefaultDirVfs::new(
                tree,
                dir.clone(),
                known_names.iter().copied(),
            )),
        };
        match &self.project {
            None => tree,
            Some((project, _access)) => Arc::new(Routes::new(
                tree,
                [(project_path(), project.clone())].into(),
            )),
        }
    }

    fn local_dir(&self, owner: &Owner, session: &SessionId, path: &VPath) -> Option<PathBuf> {
        // An overlay of two folders is not a folder of this machine.
        if self.overlay_folder(owner, session).is_some() {
            return None;
        }
        let in_project = self.project.is_some() && path.parts().next() == Some(PROJECT);
        let (base, below) = match in_project {
            true => (self.project_dir.clone()?, 1),
            false => (self.dir.canonicalize().ok()?, 0),
        };
        Some(
            path.parts()
                .skip(below)
                .fold(base, |dir, name| dir.join(name)),
        )
    }

    fn changes(&self, owner: &Owner) -> Arc<dyn UndoLog> {
        Arc::new(FileUndoLog::new(
            &self.owner_runtime_dir(owner),
            &self.agent,
            self.disk.clone(),
        ))
    }

    fn state(&self, owner: &Owner) -> OwnerState {
        OwnerState {
            store: self.stores_in(&self.owner_runtime_dir(owner)).state,
            space: Space::new(["state"]),
        }
    }

    fn tenant_state(&self, tenant: &TenantId) -> OwnerState {
        let folder = if *tenant == TenantId::default() {
            self.runtime.clone()
        } else {
            self.state_dir_in(&tenant_folder(tenant))
        };
        OwnerState {
            store: self.stores_in(&folder).state,
            space: Space::new(["tenant"]),
        }
    }

    fn inbox(&self, owner: &Owner, session: &SessionId) -> SessionInbox {
        let OwnerState { store, space } = self.state(owner);
        // A file store lists a whole space, so each session has one of its own.
        let space = space.within("inbox").within(session.as_str());
        SessionInbox::new(store, &space, session)
    }

    fn index(&self, owner: &Owner) -> Arc<LazyIndex> {
        self.indexes.for_path(
            &self
                .owner_runtime_dir(owner)
                .join("agents")
                .join(self.agent.as_str())
                .join("search.sqlite"),
        )
    }

    fn usage(&self, owner: &Owner) -> Arc<dyn LineLog> {
        let of_agent = |home: &Path| {
            home.join("agents")
                .join(self.agent.as_str())
                .join("token_usage.jsonl")
        };
        let path = match &self.usage {
            _ if owner.tenant != TenantId::default() => {
                of_agent(&self.state_dir_in(&tenant_folder(&owner.tenant)))
            }
            Some(usage) => usage.clone(),
            None => of_agent(&self.runtime),
        };
        Arc::new(FileLineLog::new(path, self.disk.clone()))
    }

    fn sweep<'a>(&'a self, _: &'a Owner, age: Duration) -> BoxFuture<'a, Result<usize, VfsError>> {
        Box::pin(self.root.sweep(age))
    }

    fn project_access(&self) -> Option<ProjectAccess> {
        self.project.as_ref().map(|(_, attached)| *attached)
    }

    fn kind(&self) -> PlaceKind {
        PlaceKind::Local
    }

    fn notices(&self) -> &[String] {
        &self.notices
    }

    fn describe(&self) -> String {
        match &self.project {
            None => "this folder".to_owned(),
            Some((_, ProjectAccess::ReadOnly)) => {
                "this folder, with a project attached as project/, read-only".to_owned()
            }
            Some((_, ProjectAccess::Writable)) => {
                "this folder, with a project attached as project/, writable".to_owned()
            }
        }
    }
}

/// Returns the path of [`PROJECT`].
fn project_path() -> VPath {
    VPath::parse(PROJECT).unwrap_or(VPath::root())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::UserId;
    use stead_store::OsDisk;

    #[test]
    fn commands_have_a_folder_only_where_the_tree_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let other = project.path().canonicalize().unwrap();
        let scoped = |scope: IsolationScope| {
            let mut settings = PlaceSettings::local(dir.path(), AgentId::main());
            settings.filesystem.scope = scope;
            LocalPlace::open(&settings, Arc::new(OsDisk), Redactor::default()).unwrap()
        };
        let open = || scoped(IsolationScope::default());
        let attached = || {
            open()
                .with_project(project.path(), ProjectAccess::Writable)
                .unwrap()
        };
        let nobody = Owner::default();
        let ann = Owner {
            user: UserId::new("ann").unwrap(),
            ..Owner::default()
        };
        let tenant = Owner {
            tenant: TenantId::new("acme").unwrap(),
            ..Owner::default()
        };
        let table = [
            (open(), &nobody, ".", Some(root.clone())),
            (open(), &nobody, "a/b", Some(root.join("a/b"))),
            (open(), &nobody, "project/b", Some(root.join("project/b"))),
            (attached(), &nobody, "a", Some(root.join("a"))),
            (attached(), &nobody, "project", Some(other.clone())),
            (attached(), &nobody, "project/src", Some(other.join("src"))),
            (open(), &ann, ".", None),
            (
                scoped(IsolationScope::Agent),
                &ann,
                "a",
                Some(root.join("a")),
            ),
            (scoped(IsolationScope::Agent), &tenant, "a", None),
            (scoped(IsolationScope::Session), &nobody, ".", None),
        ];
        let session = SessionId::new("s").unwrap();
        for (place, owner, path, expected) in table {
            let found = place.local_dir(owner, &session, &VPath::parse(path).unwrap());
            assert_eq!(found, expected, "{path} of {owner:?} in {place:?}");
        }
    }
}
