//! A place whose sessions end with the process.
//!
//! Effects: the clock, the local disk (writes).

use crate::{OwnerState, Place, PlaceKind, ProjectAccess};
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AgentId, Owner, Redactor, SessionId, TenantId};
use stead_search::{IndexCache, LazyIndex};
use stead_store::{
    FencingToken, LineLog, MemoryStore, SessionInbox, Sessions, Space, Store, StoreLineLog,
    StoreSessions, StoreUndoLog, UndoLog,
};
use stead_vfs::{Routes, StoreVfs, VPath, Vfs, VfsError};

/// The files of another place, with sessions kept in memory.
#[derive(Debug)]
pub struct EphemeralPlace {
    files: Arc<dyn Place>,
    agent: AgentId,
    redactor: Redactor,
    memory: Arc<dyn Store>,
    indexes: IndexCache,
    /// The folder of the tree that belongs to sessions, and so is kept in memory too.
    offload: Option<VPath>,
}

impl EphemeralPlace {
    /// Creates a place with the files of `files` and nothing else of it.
    pub fn new(files: Arc<dyn Place>, agent: AgentId, redactor: Redactor) -> Self {
        let memory = Arc::new(MemoryStore::default());
        let indexes = IndexCache::default();
        Self {
            files,
            agent,
            redactor,
            memory,
            indexes,
            offload: None,
        }
    }

    /// Keeps the folder `offload` of the tree in memory too.
    pub fn with_offload(self, offload: VPath) -> Self {
        Self {
            offload: Some(offload),
            ..self
        }
    }

    fn space(owner: &Owner) -> Space {
        Space::new([owner.tenant.to_string(), owner.user.to_string()])
    }
}

impl Place for EphemeralPlace {
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions> {
        let memory = self.memory.clone();
        let agent = self.agent.clone();
        Arc::new(StoreSessions::new(
            memory,
            Self::space(owner),
            agent,
            self.redactor.clone(),
        ))
    }

    fn files(&self, owner: &Owner, session: &SessionId, _: Option<&FencingToken>) -> Arc<dyn Vfs> {
        // A fencing token of the sessions in memory means nothing to the store of the files.
        let files = self.files.files(owner, session, None);
        let Some(offload) = &self.offload else {
            return files;
        };
        let offloaded = StoreVfs::new(self.memory.clone(), Self::space(owner).within("offload"));
        let mounts: [(VPath, Arc<dyn Vfs>); 1] = [(offload.clone(), Arc::new(offloaded))];
        Arc::new(Routes::new(files, mounts.into()))
    }

    fn local_dir(&self, owner: &Owner, session: &SessionId, path: &VPath) -> Option<PathBuf> {
        self.files.local_dir(owner, session, path)
    }

    fn changes(&self, owner: &Owner) -> Arc<dyn UndoLog> {
        Arc::new(StoreUndoLog::new(
            self.memory.clone(),
            Self::space(owner).within("undo"),
        ))
    }

    fn state(&self, owner: &Owner) -> OwnerState {
        OwnerState {
            store: self.memory.clone(),
            space: Self::space(owner).within("state"),
        }
    }

    fn tenant_state(&self, tenant: &TenantId) -> OwnerState {
        OwnerState {
            store: self.memory.clone(),
            // No user has an empty name.
            space: Space::new([tenant.as_str(), "", "tenant"]),
        }
    }

    fn inbox(&self, owner: &Owner, session: &SessionId) -> SessionInbox {
        SessionInbox::new(self.memory.clone(), &Self::space(owner), session)
    }

    fn index(&self, owner: &Owner) -> Arc<LazyIndex> {
        self.indexes.in_memory(&Self::space(owner).to_string())
    }

    fn usage(&self, owner: &Owner) -> Arc<dyn LineLog> {
        Arc::new(StoreLineLog::new(
            self.memory.clone(),
            Space::new([owner.tenant.as_str()]).within("usage"),
        ))
    }

    fn sweep<'a>(
        &'a self,
        owner: &'a Owner,
        age: Duration,
    ) -> BoxFuture<'a, Result<usize, VfsError>> {
        self.files.sweep(owner, age)
    }

    fn project_access(&self) -> Option<ProjectAccess> {
        self.files.project_access()
    }

    fn kind(&self) -> PlaceKind {
        self.files.kind()
    }

    fn notices(&self) -> &[String] {
        self.files.notices()
    }

    fn describe(&self) -> String {
        format!("{}; sessions end with the process", self.files.describe())
    }
}
