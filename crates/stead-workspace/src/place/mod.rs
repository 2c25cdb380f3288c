//! Where the tree of a workspace physically lies.

mod ephemeral;
mod local;
mod open;
mod store;

pub use ephemeral::EphemeralPlace;
pub use local::{LocalPlace, ProjectAccess};
pub use open::{StorePathBase, connect_store, open_place, open_store_place};
pub use store::StorePlace;

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, SessionId};
use stead_search::LazyIndex;
use stead_store::{FencingToken, LineLog, Sessions, Space, StateStore, StoreError, UndoLog};
use stead_vfs::{Protected, Rule, Rules, VPath, Vfs, VfsError};

/// Where an attached project appears in the tree.
pub const PROJECT: &str = "project";

/// Where the tree of a workspace lies: the same tree and the same answers, on a local disk or in a
/// store that many machines share.
pub trait Place: Debug + Send + Sync {
    /// Where the sessions of `owner` are kept.
    fn sessions(&self, owner: &Owner) -> Arc<dyn Sessions>;

    /// The tree as a session of `owner` sees it. Where the place can, it refuses changes once
    /// `fence` no longer holds.
    fn files(
        &self,
        owner: &Owner,
        session: &SessionId,
        fence: Option<&FencingToken>,
    ) -> Arc<dyn Vfs>;

    /// The folder of this machine in which `path` lies as a session of `owner` sees it, links on
    /// the way followed already. None where no folder holds that tree as it is: commands cannot run
    /// there.
    fn local_dir(&self, owner: &Owner, session: &SessionId, path: &VPath) -> Option<PathBuf>;

    /// Where it is kept what runs of `owner` changed.
    fn changes(&self, owner: &Owner) -> Arc<dyn UndoLog>;

    /// Where durable state of `owner` beside files and sessions is kept: queues, marks, budgets.
    fn state(&self, owner: &Owner) -> OwnerState;

    /// What finds words in the memory and the sessions of `owner`. Derived: it may be deleted at
    /// any time.
    fn index(&self, owner: &Owner) -> Arc<LazyIndex>;

    /// Where it is kept how much the users of the owner's tenant used.
    fn usage(&self, owner: &Owner) -> Arc<dyn LineLog>;

    /// Removes what crashed processes left behind longer ago than `age`. Gives the number of things
    /// removed.
    fn sweep<'a>(
        &'a self,
        owner: &'a Owner,
        age: Duration,
    ) -> BoxFuture<'a, Result<usize, VfsError>>;

    /// Whether a project is attached, and may be changed.
    fn project_access(&self) -> Option<ProjectAccess>;

    /// What kind of place it is.
    fn kind(&self) -> PlaceKind;

    /// What kind of place it is and what tells it from others, for people.
    fn describe(&self) -> String;
}

/// Durable state of one owner and agent: a space of a store.
#[derive(Debug, Clone)]
pub struct OwnerState {
    /// The store.
    pub store: Arc<dyn StateStore>,
    /// The space in it.
    pub space: Space,
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The files are shared and the sessions are not.
    #[error(
        "the files are in {files}, which other machines share, but sessions would be kept in {sessions}, which \
         only this machine sees: set sessions.url to a shared store, or leave it out to use that of filesystem"
    )]
    LocalSessions {
        /// Where the files are.
        files: String,
        /// Where sessions would be.
        sessions: String,
    },
    /// What the settings ask for cannot be.
    #[error("{0}")]
    Settings(String),
    /// The folder cannot be opened.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The store cannot be reached.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The kinds of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A folder of this machine.
    Local,
    /// A store that other machines may share.
    Store,
}

/// What belongs to one owner alone: runtime state and conversations, wherever a layout keeps them,
/// and the folders of users.
const OWNER_PATHS: [&str; 7] = [
    "agents",
    "@@*",
    "data/agents",
    "data/token_usage.jsonl",
    "memory/conversations",
    ".openharness/data",
    ".stead/agents",
];

/// A template without what belongs to one owner alone.
fn without_owned(template: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
    hide_paths(template, &OWNER_PATHS, Protected::TEMPLATE)
}

/// `files` without what the patterns cover and what is protected.
fn hide_paths(files: Arc<dyn Vfs>, patterns: &[&str], protected: Protected) -> Arc<dyn Vfs> {
    use stead_core::{AccessKind, VerdictKind};
    let rule = Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: patterns.iter().map(|&name| name.to_owned()).collect(),
        mode: VerdictKind::Deny,
    };
    match Rules::new(&[rule], protected) {
        Ok(rules) => Arc::new(stead_vfs::Guarded::hiding_denied(files, Arc::new(rules))),
        // The patterns are our own; should they ever be wrong, nothing is shown.
        Err(_) => Arc::new(stead_vfs::StoreVfs::in_memory()),
    }
}

fn project_path() -> VPath {
    VPath::parse(PROJECT).unwrap_or(VPath::root())
}
