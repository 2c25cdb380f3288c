//! Where the tree of a workspace physically lies.

mod ephemeral;
mod local;
mod store;

pub use ephemeral::EphemeralPlace;
pub use local::{Attached, LocalPlace};
pub use store::{PlaceError, StorePlace};

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Owner, SessionId};
use stead_store::{ChangeLog, Fence, Sessions};
use stead_vfs::{Protected, Rule, Rules, VPath, Vfs, VfsError};

/// Where an attached project appears in the tree.
pub const PROJECT: &str = "project";

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

    /// Removes what crashed processes left behind longer ago than `age`. Gives the number of things removed.
    fn sweep<'a>(&'a self, owner: &'a Owner, age: Duration) -> BoxFuture<'a, Result<usize, VfsError>>;

    /// Whether a project is attached, and may be changed.
    fn project(&self) -> Option<Attached>;

    /// What kind of place it is.
    fn kind(&self) -> PlaceKind;

    /// What kind of place it is and what tells it from others, for people.
    fn describe(&self) -> String;
}

/// The kinds of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A folder of this machine.
    Local,
    /// A store that other machines may share.
    Store,
}

/// What belongs to one owner alone: runtime state, wherever a layout keeps it, and the folders of users.
const OWNED: [&str; 5] = ["agents", "@@*", "data/agents", ".openharness/data", ".stead/agents"];

/// A template without what belongs to one owner alone.
fn without_owned(template: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
    use stead_core::{AccessKind, VerdictKind};
    let rule = Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: OWNED.iter().map(|&name| name.to_owned()).collect(),
        mode: VerdictKind::Deny,
    };
    match Rules::new(&[rule], Protected::TEMPLATE) {
        Ok(rules) => Arc::new(stead_vfs::Guarded::hiding(template, Arc::new(rules))),
        // The patterns are our own; should they ever be wrong, nothing is shown.
        Err(_) => Arc::new(stead_vfs::StoreVfs::in_memory()),
    }
}

fn project_path() -> VPath {
    VPath::parse(PROJECT).unwrap_or(VPath::root())
}
