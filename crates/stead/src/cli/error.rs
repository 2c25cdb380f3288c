//! The errors of commands, by exit code, and what to do about them.
//!
//! Effects: the network.

use super::open_agent::no_model_message;
use std::fmt::Display;
use std::process::ExitCode;
use stead::agent::{AgentError, BuildError, MemoryError, NoModelReason};
use stead::core::{ClientError, Hint};
use stead::model::ModelError;
use stead::place::PlaceError;
use stead::skills::SourceError;
use stead::store::StoreError;
use stead::workspace::{Finding, FindingSource, OpenOption, WorkspaceError};

/// The error of a command, which decides its exit code.
#[derive(Debug)]
pub(crate) enum CliError {
    /// The command, the settings or a name is wrong: exit code 2.
    Usage(String),
    /// The command was valid and failed: exit code 1.
    Failed(anyhow::Error),
    /// A person or a signal stopped the command: exit code 130.
    Interrupted(String),
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
            Self::Interrupted(_) => ExitCode::from(130),
        }
    }
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Interrupted(message) => f.write_str(message),
            Self::Failed(error) => {
                f.write_str(&with_hint(format_args!("{error:#}"), hint_of(error)))
            }
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

/// Returns the message of an error, followed by the hint as words of the command line.
pub(crate) fn with_hint(message: impl Display, hint: Option<Hint>) -> String {
    let rest = match hint {
        None => String::new(),
        Some(Hint::ListSessions) => "; `stead sessions list` lists the sessions".to_owned(),
        Some(Hint::WaitForSession) => {
            "; wait until it is done (--wait), answer there what it asks, or use another session"
                .to_owned()
        }
        Some(Hint::ListTools) => {
            "; `stead check` names the nearest, `stead tool` lists all".to_owned()
        }
        Some(Hint::ChooseAgent) => {
            " with `stead run --agent NAME` if the session is your own".to_owned()
        }
        Some(Hint::ListQuestions) => "; `stead approvals list` shows what waits".to_owned(),
        Some(Hint::ShowQuestion(id)) => format!(" (`stead approvals show {id}`)"),
        Some(Hint::ListGrants) => "; `stead approvals rules` lists them".to_owned(),
        Some(Hint::RevokeGrant) => " (`stead approvals revoke ID`)".to_owned(),
        Some(Hint::RevokeGrantById(id)) => format!("; `stead approvals revoke {id}` revokes it"),
        Some(Hint::ApproveAll) => "; --approve all would".to_owned(),
        Some(Hint::RaiseBudget) => "; `stead run --resume --raise AMOUNT` adds to it".to_owned(),
        Some(Hint::OtherUnit) => " (0.50 is dollars, 50000t tokens)".to_owned(),
        Some(Hint::RebuildUsage) => "; `stead usage --rebuild` records it".to_owned(),
        Some(Hint::SetWorkspaceModel) => {
            "; a file can be the model of the workspace (agent.yaml, -m)".to_owned()
        }
        Some(Hint::ChooseModel) => "; -m provider:model continues with another model".to_owned(),
        Some(Hint::GiveModel) => {
            "; -m provider:model uses another one, and ~/.stead/platform/models/*.yaml ($STEAD_PLATFORM) can define it"
                .to_owned()
        }
        Some(Hint::ListProviders) => "; `stead models` lists providers".to_owned(),
        Some(Hint::ListWorkspaces) => "; `stead list DIR` lists workspaces".to_owned(),
        Some(Hint::ReviewFacts) => "; `stead memory review` shows them".to_owned(),
        Some(Hint::ListFacts) => {
            "; `stead memory list` and `stead memory review` show their ids".to_owned()
        }
        Some(Hint::UpdateSource(name)) => format!(
            "; `stead skills update {name}` renews it, --name gives the new one another name"
        ),
        Some(Hint::NameSource) => "; give one with --name".to_owned(),
    };
    format!("{message}{rest}")
}

/// Returns the hint of the first error in the chain that has one.
fn hint_of(error: &anyhow::Error) -> Option<Hint> {
    error.chain().find_map(|cause| {
        let agent = || {
            cause
                .downcast_ref::<AgentError>()
                .and_then(AgentError::hint)
        };
        let store = || {
            cause
                .downcast_ref::<StoreError>()
                .and_then(StoreError::hint)
        };
        let memory = || {
            cause
                .downcast_ref::<MemoryError>()
                .and_then(MemoryError::hint)
        };
        let place = || {
            cause
                .downcast_ref::<PlaceError>()
                .and_then(PlaceError::hint)
        };
        let source = || {
            cause
                .downcast_ref::<SourceError>()
                .and_then(SourceError::hint)
        };
        agent()
            .or_else(store)
            .or_else(memory)
            .or_else(place)
            .or_else(source)
    })
}

impl From<WorkspaceError> for CliError {
    fn from(error: WorkspaceError) -> Self {
        match &error {
            WorkspaceError::Invalid(findings) => {
                let lines: Vec<String> = findings.iter().map(finding_line).collect();
                Self::Usage(lines.join("\n"))
            }
            WorkspaceError::Files(_) | WorkspaceError::Skills(_) | WorkspaceError::Untrusted(_) => {
                Self::Usage(with_hint(&error, error.hint()))
            }
        }
    }
}

/// Returns a finding as one line of text, with the option and the hint as on the command line.
pub(crate) fn finding_line(finding: &Finding) -> String {
    let text = match &finding.source {
        FindingSource::File(_) => finding.to_string(),
        FindingSource::Option(option) => {
            let shown = Finding {
                source: FindingSource::File(option_flag(*option).to_owned()),
                ..finding.clone()
            };
            shown.to_string()
        }
    };
    with_hint(text, finding.hint.clone())
}

/// Returns the flag that sets an option of a workspace.
pub(crate) fn option_flag(option: OpenOption) -> &'static str {
    match option {
        OpenOption::Agent => "--agent",
        OpenOption::ContextFiles => "--context-file",
        OpenOption::Skills => "--skills",
    }
}

impl From<PlaceError> for CliError {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Store(error) => error.into(),
            PlaceError::Settings(_) | PlaceError::Files(_) | PlaceError::LocalSessions { .. } => {
                Self::Usage(with_hint(&error, error.hint()))
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
            StoreError::NotFound(_) | StoreError::Exists(_) => {
                Self::Usage(with_hint(&error, error.hint()))
            }
            other => Self::Failed(other.into()),
        }
    }
}

impl From<AgentError> for CliError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Store(error) => error.into(),
            AgentError::Workspace(error) => error.into(),
            AgentError::NoModel(NoModelReason::NotSet) => Self::Usage(no_model_message()),
            AgentError::NoModel(NoModelReason::Model(error)) => error.into(),
            other if other.is_failure() => Self::Failed(other.into()),
            other => Self::Usage(with_hint(&other, other.hint())),
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let message = with_hint(&error, error.hint());
        match error {
            ClientError::NoModel => Self::Usage(no_model_message()),
            ClientError::Failed { .. } => Self::Failed(anyhow::Error::msg(message)),
            ClientError::KeyConflict(_)
            | ClientError::InboxFull(_)
            | ClientError::NoSession(_)
            | ClientError::Refused { .. } => Self::Usage(message),
        }
    }
}

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Store(error) => error.into(),
            MemoryError::Model(error) => error.into(),
            MemoryError::NoMemory(_) | MemoryError::NoModel | MemoryError::NoSuchFact(_) => {
                Self::Usage(with_hint(&error, error.hint()))
            }
            MemoryError::Files(_)
            | MemoryError::Budget(_)
            | MemoryError::Answer(_)
            | MemoryError::TimedOut { .. }
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
