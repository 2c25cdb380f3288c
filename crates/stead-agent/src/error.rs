//! Why a session could not do what was asked. How a *run* ended is not an error but an outcome.

use stead_core::{FoldError, SessionId};
use stead_store::StoreError;
use stead_tools::RegistryError;
use stead_vfs::VfsError;
use stead_workspace::WorkspaceError;

/// A request to a session that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The journal.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file of the workspace.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// Tools that do not go together.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// A setting names a tool that nobody has; what it was to keep in check would run free.
    #[error("{setting}: there is no tool {name}; `stead check` names the nearest, `stead tool` lists all")]
    NoSuchTool {
        /// The setting.
        setting: &'static str,
        /// The name.
        name: String,
    },
    /// An entry did not fit; nothing was done with it.
    #[error(transparent)]
    Unfit(#[from] FoldError),
    /// Resume was asked for and nothing is open.
    #[error("session {0} has nothing to resume: its last answer is complete")]
    NothingToResume(SessionId),
    /// Something was asked for that must not happen during a run.
    #[error("session {0} has an open run: let it end, answer its questions, or resume it first")]
    RunOpen(SessionId),
    /// The model, outside any run.
    #[error(transparent)]
    Model(#[from] stead_model::ModelError),
    /// It was stopped before it was done.
    #[error("stopped before it was done: {0}")]
    Stopped(&'static str),
    /// No such turn.
    #[error("session {session} has no turn {turn}; it has {turns}")]
    NoSuchTurn {
        /// The session.
        session: SessionId,
        /// What was asked for.
        turn: usize,
        /// How many there are.
        turns: usize,
    },
}
