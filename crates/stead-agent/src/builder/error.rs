//! Why an agent could not be built.
//!
//! Effects: none.

use crate::AgentError;
use stead_model::ModelError;
use stead_place::PlaceError;
use stead_vfs::VfsError;
use stead_workspace::WorkspaceError;

/// The error of [`AgentBuilder::build`](crate::AgentBuilder::build).
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No folder was given.
    #[error("no workspace was given: call AgentBuilder::workspace")]
    NoWorkspace,
    /// Neither the builder nor the folder names a model, and no provider's key is set.
    #[error("no model was given: call AgentBuilder::model, or set `model:` in agent.yaml")]
    NoModel,
    /// The name is not a valid agent id.
    #[error("name: {0}")]
    Name(#[from] stead_core::IdError),
    /// The folder cannot be opened.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The settings of the folder are invalid.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The place of the workspace cannot be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A model cannot be connected to.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The parts do not fit together.
    #[error(transparent)]
    Agent(#[from] AgentError),
}
