//! Errors by exit code.

use super::open_agent::no_model_message;
use std::process::ExitCode;
use stead::agent::{AgentError, BuildError, MemoryError};
use stead::model::ModelError;
use stead::store::StoreError;
use stead::workspace::{PlaceError, WorkspaceError};

/// The error of a command, which decides its exit code.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The command, the settings or a name is wrong: exit code 2.
    Usage(String),
    /// The command was valid and failed: exit code 1.
    Failed(anyhow::Error),
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
        }
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Failed(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::NoModel => Self::Usage(no_model_message()),
            BuildError::Workspace(error) => error.into(),
            BuildError::Place(error) => error.into(),
            BuildError::Model(error) => error.into(),
            BuildError::Agent(error) => error.into(),
            BuildError::NoWorkspace | BuildError::Name(_) | BuildError::Files(_) => {
                Self::Usage(error.to_string())
            }
        }
    }
}

impl From<WorkspaceError> for CliError {
    fn from(error: WorkspaceError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Store(error) => error.into(),
            PlaceError::Settings(_) | PlaceError::Files(_) | PlaceError::LocalSessions { .. } => {
                Self::Usage(error.to_string())
            }
        }
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Config(message) => Self::Usage(message),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(_) | StoreError::Exists(_) => Self::Usage(error.to_string()),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::Workspace(error) => error.into(),
            AgentError::NothingToResume(_)
            | AgentError::NoSuchTurn { .. }
            | AgentError::RunOpen(_)
            | AgentError::NoPrice { .. }
            | AgentError::NoBudget
            | AgentError::Approval(_)
            | AgentError::RunStillOpen(_) => Self::Usage(error.to_string()),
            AgentError::Files(error) => Self::Failed(error.into()),
            AgentError::EntryRejected(error) => Self::Failed(error.into()),
            AgentError::Model(error) => Self::Failed(error.into()),
            AgentError::Stopped(_)
            | AgentError::InputBlocked { .. }
            | AgentError::Hook(_)
            | AgentError::TaskRecords(_) => Self::Failed(error.into()),
            AgentError::Tools(_)
            | AgentError::NoSuchTool { .. }
            | AgentError::NoSuchAgent { .. }
            | AgentError::FileAsModel { .. }
            | AgentError::AgentRemoved(_)
            | AgentError::NoFinishedTasks(_) => Self::Usage(error.to_string()),
        }
    }
}

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Store(error) => error.into(),
            MemoryError::Model(error) => error.into(),
            MemoryError::NoMemory(_) | MemoryError::NoModel | MemoryError::NoSuchFact(_) => {
                Self::Usage(error.to_string())
            }
            MemoryError::Files(_)
            | MemoryError::Budget(_)
            | MemoryError::Answer(_)
            | MemoryError::Slow(_)
            | MemoryError::NotText { .. }
            | MemoryError::Contended(_)
            | MemoryError::Unreadable { .. } => Self::Failed(error.into()),
        }
    }
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<anyhow::Error> for CliError {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}
