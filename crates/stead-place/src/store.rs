//! The store place: a store that other machines may share, laid over a local template.
//!
//! Effects: the clock, the local disk (writes).

use crate::template::template_of;
use crate::{
    FilesystemSettings, IsolationScope, OwnerState, Place, PlaceError, PlaceKind, ProjectAccess,
};
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AgentId, Owner, Redactor, SessionId, TenantId};
use stead_search::{IndexCache, LazyIndex};
use stead_store::{
    FencingToken, LineLog, SessionInbox, Sessions, Space, Store, StoreLineLog, StoreSessions,
    StoreUndoLog, UndoLog,
};
use stead_vfs::{ContentHash, Overlay, StoreVfs, VPath, Vfs, VfsError};

/// A store, laid over a local folder as a template.
///
/// The tree has three layers, and the first that has a file wins: the files of the scope (a user's
/// own unless set otherwise), the shared template that was pushed to the store, and the local
/// folder. All changes go to the first layer.
#[derive(Debug)]
pub struct StorePlace {
    store: Arc<dyn Store>,
    sessions: Arc<dyn Store>,
    /// The local folder as it is.
    local: Arc<dyn Vfs>,
    /// The local folder without what belongs to one owner.
    template: Arc<dyn Vfs>,
    agent: AgentId,
    scope: IsolationScope,
    namespace: Option<String>,
    redactor: Redactor,
    /// The folder of this machine for derived data; none = keep it in memory.
    cache: Option<PathBuf>,
    indexes: IndexCache,
}

impl StorePlace {
    /// Creates the place of `agent` in `store`, over the folder `local`. Sessions are kept in
    /// `sessions`.
    pub fn new(
        store: Arc<dyn Store>,
        sessions: Arc<dyn Store>,
        local: Arc<dyn Vfs>,
        agent: AgentId,
        settings: &FilesystemSettings,
        redactor: Redactor,
    ) -> Result<Self, PlaceError> {
        if store.is_shared() && !sessions.is_shared() {
            let files = store.place().to_owned();
            let sessions = sessions.place().to_owned();
            return Err(PlaceError::LocalSessions { files, sessions });
        }
        let scope = settings.scope;
        let namespace = settings.namespace.clone();
        Ok(Self {
            store,
            sessions,
            template: template_of(local.clone(), &VPath::root(), &[]),
            local,
            agent,
            scope,
            namespace,
            redactor,
            cache: None,
            indexes: IndexCache::default(),
        })
    }

    /// Hides the paths of the local folder that belong to one owner: those that `patterns` cover, and
    /// state and users below `home`, the folder in which everything of the agent lies.
    pub fn with_private_paths(self, home: &VPath, patterns: &[&str]) -> Self {
        Self {
            template: template_of(self.local.clone(), home, patterns),
            ..self
        }
    }

    /// Sets the folder of this machine for derived data.
    pub fn with_cache(self, cache: Option<PathBuf>) -> Self {
        Self { cache, ..self }
    }

    /// Returns the template that was pushed to the store.
    pub fn template(&self, owner: &Owner) -> StoreVfs {
        StoreVfs::new(self.store.clone(), self.agent_space(owner, &["template"]))
    }

    /// Returns the files of the scope of `owner`, without the layers below.
    pub fn scope_files(&self, owner: &Owner, session: &SessionId) -> StoreVfs {
        StoreVfs::new(self.store.clone(), self.scope_space(owner, Some(session)))
    }

    fn root(&self, owner: &Owner) -> Vec<String> {
        vec![
            owner.tenant.to_string(),
            self.namespace.clone().unwrap_or_default(),
        ]
    }

    fn agent_space(&self, owner: &Owner, rest: &[&str]) -> Space {
        let mut ids = self.root(owner);
        ids.extend(["agents".to_owned(), self.agent.to_string()]);
        ids.extend(rest.iter().map(|&id| id.to_owned()));
        Space::new(ids)
    }

    /// Returns the space of the scope; without a session, the one that holds the sessions.
    fn scope_space(&self, owner: &Owner, session: Option<&SessionId>) -> Space {
        match (self.scope, session) {
            (IsolationScope::Session, Some(session)) => self.agent_space(
                owner,
                &["users", owner.user.as_str(), "sessions", session.as_str()],
            ),
            (IsolationScope::Session, None) | (IsolationScope::User, _) => {
                self.agent_space(owner, &["users", owner.user.as_str()])
            }
            (IsolationScope::Agent, _) => self.agent_space(owner, &["shared"]),
            (IsolationScope::Global, _) => {
                let mut ids = self.root(owner);
                ids.push("global".to_owned());
                Space::new(ids)
            }
        }
    }

    /// Returns the space of the sessions. They belong to one agent, even where files are shared by
    /// all agents.
    fn session_space(&self, owner: &Owner) -> Space {
        match self.scope {
            IsolationScope::Global => self.agent_space(owner, &["shared"]),
            IsolationScope::Session | IsolationScope::User | IsolationScope::Agent => {
                self.scope_space(owner, None)
            }
        }
    }
}

impl Place for StorePlace {
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions> {
        let store = self.sessions.clone();
        let space = self.session_space(owner);
        Arc::new(StoreSessions::new(
            store,
            space,
            self.agent.clone(),
            self.redactor.clone(),
        ))
    }

    fn files(
        &self,
        owner: &Owner,
        session: &SessionId,
        fence: Option<&FencingToken>,
    ) -> Arc<dyn Vfs> {
        let own = self.scope_files(owner, session);
        // The store can check a lease together with a change only where both lie in the same space.
        let together = Arc::ptr_eq(&self.store, &self.sessions)
            && self.scope_space(owner, Some(session)) == self.session_space(owner);
        let own = match fence.filter(|_| together) {
            Some(fence) => own.fenced(fence.clone()),
            None => own,
        };
        let template = Overlay::new(Arc::new(self.template(owner)), self.template.clone());
        Arc::new(Overlay::new(Arc::new(own), Arc::new(template)))
    }

    fn local_dir(&self, _: &Owner, _: &SessionId, _: &VPath) -> Option<PathBuf> {
        None
    }

    fn changes(&self, owner: &Owner) -> Arc<dyn UndoLog> {
        Arc::new(StoreUndoLog::new(
            self.store.clone(),
            self.session_space(owner).within("undo"),
        ))
    }

    fn state(&self, owner: &Owner) -> OwnerState {
        OwnerState {
            store: self.sessions.clone(),
            space: self.session_space(owner).within("state"),
        }
    }

    fn tenant_state(&self, tenant: &TenantId) -> OwnerState {
        let anyone = Owner {
            tenant: tenant.clone(),
            ..Owner::default()
        };
        OwnerState {
            store: self.sessions.clone(),
            space: self.agent_space(&anyone, &["tenant"]),
        }
    }

    fn inbox(&self, owner: &Owner, session: &SessionId) -> SessionInbox {
        // A fencing token is valid in the space of its lease, which is that of the sessions.
        SessionInbox::new(self.sessions.clone(), &self.session_space(owner), session)
    }

    fn index(&self, owner: &Owner) -> Arc<LazyIndex> {
        let key = format!(
            "{}\n{}\n{}",
            self.store.place(),
            self.sessions.place(),
            self.session_space(owner)
        );
        match &self.cache {
            None => self.indexes.in_memory(&key),
            Some(cache) => {
                let name = ContentHash::of(key.as_bytes()).to_string();
                self.indexes
                    .for_path(&cache.join("search").join(format!("{name}.sqlite")))
            }
        }
    }

    fn usage(&self, owner: &Owner) -> Arc<dyn LineLog> {
        Arc::new(StoreLineLog::new(
            self.sessions.clone(),
            self.agent_space(owner, &["usage"]),
        ))
    }

    fn sweep<'a>(
        &'a self,
        owner: &'a Owner,
        age: Duration,
    ) -> BoxFuture<'a, Result<usize, VfsError>> {
        Box::pin(async move {
            let own = StoreVfs::new(self.store.clone(), self.scope_space(owner, None));
            Ok(own.sweep(age).await? + self.template(owner).sweep(age).await?)
        })
    }

    fn project_access(&self) -> Option<ProjectAccess> {
        None
    }

    fn kind(&self) -> PlaceKind {
        PlaceKind::Store
    }

    fn describe(&self) -> String {
        let place = self.store.place();
        let agent = &self.agent;
        let scope = self.scope;
        let namespace = self
            .namespace
            .as_ref()
            .map_or(String::new(), |name| format!(", namespace {name}"));
        format!("{place}, agent {agent}{namespace}, scope {scope:?}").to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_store::{InputOutcome, Inserted, MemoryStore, TenantJob, TenantJobKind, TenantJobs};

    #[tokio::test]
    async fn the_token_of_a_session_is_valid_for_its_inbox() {
        for scope in [
            IsolationScope::Session,
            IsolationScope::User,
            IsolationScope::Agent,
            IsolationScope::Global,
        ] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let settings = FilesystemSettings {
                scope,
                ..FilesystemSettings::default()
            };
            let place = StorePlace::new(
                store.clone(),
                store,
                Arc::new(StoreVfs::in_memory()),
                AgentId::main(),
                &settings,
                Redactor::default(),
            )
            .unwrap();
            let owner = Owner::default();
            let session = SessionId::new("s").unwrap();
            let opened = place
                .sessions(&owner)
                .create(&session, stead_core::NewSession::default())
                .await
                .unwrap();
            let inbox = place.inbox(&owner, &session);
            let inserted = inbox.insert(None, "a".into()).await.unwrap();
            let Inserted::New(id) = inserted else {
                panic!("{inserted:?}");
            };
            let settled = [(id, InputOutcome::Recorded { seq: 2 })];
            inbox.settle(&settled, opened.writer.fence()).await.unwrap();
            assert_eq!(inbox.waiting(9).await.unwrap(), [], "{scope:?}");
        }
    }

    #[tokio::test]
    async fn tenants_have_queues_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let settings = crate::PlaceSettings::local(dir.path(), AgentId::main());
        let disk = Arc::new(stead_store::OsDisk);
        let local = crate::LocalPlace::open(&settings, disk, Redactor::default()).unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let shared = StorePlace::new(
            store.clone(),
            store,
            Arc::new(StoreVfs::in_memory()),
            AgentId::main(),
            &FilesystemSettings::default(),
            Redactor::default(),
        )
        .unwrap();
        let local: Arc<dyn Place> = Arc::new(local);
        let ephemeral =
            crate::EphemeralPlace::new(local.clone(), AgentId::main(), Redactor::default());
        let places: [Arc<dyn Place>; 3] = [local, Arc::new(shared), Arc::new(ephemeral)];
        for place in places {
            let queue = |tenant: &TenantId| {
                let OwnerState { store, space } = place.tenant_state(tenant);
                TenantJobs::new(store, space)
            };
            let other = TenantId::new("other").unwrap();
            let job = TenantJob {
                user: Owner::default().user,
                kind: TenantJobKind::Wake {
                    session: SessionId::new("s").unwrap(),
                },
            };
            let long = Duration::from_secs(60);
            queue(&other)
                .enqueue(&job, Duration::ZERO, None)
                .await
                .unwrap();
            let none = queue(&TenantId::default()).claim(long).await.unwrap();
            assert_eq!(none, None, "{place:?}");
            let claimed = queue(&other).claim(long).await.unwrap();
            assert_eq!(claimed.unwrap().job, job, "{place:?}");
        }
    }
}
