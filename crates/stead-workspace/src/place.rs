//! Where the tree of a workspace physically lies.

use std::fmt::Debug;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_store::{ChangeLog, Fence, Sessions};
use stead_vfs::Vfs;

/// Where the tree of a workspace lies: the same tree and the same answers, on a local disk or in a store
/// that many machines share.
pub trait Place: Debug + Send + Sync {
    /// Where the sessions of `owner` are kept.
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions>;

    /// The tree as a session of `owner` sees it. Where the place can, it refuses changes once `fence` no
    /// longer holds.
    fn files(&self, owner: &Owner, session: &SessionId, fence: Option<&Fence>) -> Arc<dyn Vfs>;

    /// Where it is kept what runs of `owner` changed.
    fn changes(&self, owner: &Owner) -> Arc<dyn ChangeLog>;
}

/// One tree and its sessions, for one person: a folder of the local disk.
#[derive(Debug)]
pub struct LocalPlace {
    files: Arc<dyn Vfs>,
    sessions: Arc<dyn Sessions>,
    changes: Arc<dyn ChangeLog>,
}

impl LocalPlace {
    /// The tree `files`, with `sessions` and what they changed beside it.
    pub fn new(files: Arc<dyn Vfs>, sessions: Arc<dyn Sessions>, changes: Arc<dyn ChangeLog>) -> Self {
        Self { files, sessions, changes }
    }
}

impl Place for LocalPlace {
    fn sessions(&self, _: &Owner) -> Arc<dyn Sessions> {
        self.sessions.clone()
    }

    fn files(&self, _: &Owner, _: &SessionId, _: Option<&Fence>) -> Arc<dyn Vfs> {
        self.files.clone()
    }

    fn changes(&self, _: &Owner) -> Arc<dyn ChangeLog> {
        self.changes.clone()
    }
}
