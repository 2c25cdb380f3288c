//! The contract of a place: what it gives each owner.
//!
//! Effects: none.

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, SessionId, TenantId};
use stead_search::LazyIndex;
use stead_store::{FencingToken, LineLog, SessionInbox, Sessions, Space, StateStore, UndoLog};
use stead_vfs::{VPath, Vfs, VfsError};

/// The folder of the tree in which an attached project appears.
pub const PROJECT: &str = "project";

/// The place of a workspace's tree. The behaviour is the same on a local disk and in a store that
/// many machines share.
pub trait Place: Debug + Send + Sync {
    /// Returns the sessions of `owner`.
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions>;

    /// Returns the tree as a session of `owner` sees it. A place with
    /// fencing refuses changes once `fence` is stale.
    fn files(
        &self,
        owner: &Owner,
        session: &SessionId,
        fence: Option<&FencingToken>,
    ) -> Arc<dyn Vfs>;

    /// Returns the local directory behind `path` for a session of `owner`, with links followed, or
    /// `None` if no single directory holds that tree: commands cannot run there.
    fn local_dir(&self, owner: &Owner, session: &SessionId, path: &VPath) -> Option<PathBuf>;

    /// Returns the log of file changes from which runs of `owner` are undone.
    fn changes(&self, owner: &Owner) -> Arc<dyn UndoLog>;

    /// Returns the durable state of `owner` beside files and sessions: queues, marks, budgets.
    fn state(&self, owner: &Owner) -> OwnerState;

    /// Returns the durable state of the agent that all users of `tenant` share: the queue of jobs
    /// ([`TenantJobs`](stead_store::TenantJobs)).
    fn tenant_state(&self, tenant: &TenantId) -> OwnerState;

    /// Returns the inbox of a session: commands that wait for the process that holds it. The
    /// fencing token of the session's writer is valid for it.
    fn inbox(&self, owner: &Owner, session: &SessionId) -> SessionInbox;

    /// Returns the search index over the memory and the sessions of `owner`. It is derived data
    /// and may be deleted at any time.
    fn index(&self, owner: &Owner) -> Arc<LazyIndex>;

    /// Returns the usage log of the owner's tenant.
    fn usage(&self, owner: &Owner) -> Arc<dyn LineLog>;

    /// Removes what crashed processes left behind longer ago than `age`, and returns how many
    /// items were removed.
    fn sweep<'a>(
        &'a self,
        owner: &'a Owner,
        age: Duration,
    ) -> BoxFuture<'a, Result<usize, VfsError>>;

    /// Returns what may be done to the attached project, or none if there is no project.
    fn project_access(&self) -> Option<ProjectAccess>;

    /// Returns the kind of place.
    fn kind(&self) -> PlaceKind;

    /// Returns what a person should be told about opening the place, such as state that was moved.
    fn notices(&self) -> &[String] {
        &[]
    }

    /// Describes the place for people: its kind and its address.
    fn describe(&self) -> String;
}

/// The durable state of one owner and agent: a space of a store.
#[derive(Debug, Clone)]
pub struct OwnerState {
    /// The store.
    pub store: Arc<dyn StateStore>,
    /// The space in it.
    pub space: Space,
}

/// The kinds of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A folder of this machine.
    Local,
    /// A store that other machines may share.
    Store,
}

/// What may be done to an attached project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectAccess {
    /// It can be read.
    ReadOnly,
    /// It can be changed; a person is asked each time.
    Writable,
}
