//! Why a session could not do what was asked. How a *run* ended is not an error but an outcome.

use crate::ApprovalError;
use stead_core::{FoldError, Hint, SessionId};
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
    #[error("{setting}: there is no tool {name}")]
    NoSuchTool {
        /// The setting.
        setting: &'static str,
        /// The name.
        name: String,
    },
    /// The agent that acts in a session is no longer in the workspace.
    #[error(
        "there is no agent {0:?} in this workspace any more: bring its definition back, or choose another"
    )]
    AgentRemoved(String),
    /// An agent was chosen that there is not, or that cannot act by itself.
    #[error("there is no agent {name:?} to talk to; there are: {}", .known.join(", "))]
    NoSuchAgent {
        /// The name.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// Nothing to wake a session for.
    #[error("session {0} was told of all its tasks that ended")]
    NoFinishedTasks(SessionId),
    /// What is on record of the tasks of subagents cannot be used.
    #[error("{0}")]
    TaskRecords(String),
    /// A limit in dollars, and a model of which nobody knows what it costs.
    #[error(
        "{setting} is set, but the price of {model} is not known; set `price:` of the model, or \
         `prices: {{\"{model}\": {{input: …, output: …}}}}` (dollars per million tokens), or limit tokens instead"
    )]
    NoPrice {
        /// The setting.
        setting: String,
        /// The model.
        model: String,
    },
    /// Something was to be added to a budget, and there is none.
    #[error(
        "there is nothing to raise: agent.yaml sets no budget in this unit (0.50 is dollars, 50000t tokens)"
    )]
    NoBudget,
    /// Something was to be added to the budget of a run that did not come to its end.
    #[error(
        "the run of session {0} is still open, so its budget is not used up; go on with it as it is"
    )]
    RunStillOpen(SessionId),
    /// An entry did not fit; nothing was done with it.
    #[error(transparent)]
    EntryRejected(#[from] FoldError),
    /// Resume was asked for and nothing is open.
    #[error("session {0} has nothing to resume: its last answer is complete")]
    NothingToResume(SessionId),
    /// Something was asked for that must not happen during a run.
    #[error("session {0} has an open run: let it end, answer its questions, or resume it first")]
    RunOpen(SessionId),
    /// An answer that does not count.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The model, outside any run.
    #[error(transparent)]
    Model(#[from] stead_model::ModelError),
    /// An agent asks for a model that is a file.
    #[error(
        "agent {agent}: its model {model} is a file, which only the workspace's own model may be (agent.yaml, -m): give \
         it a model of a provider"
    )]
    FileAsModel {
        /// The agent.
        agent: String,
        /// The model it wants.
        model: String,
    },
    /// A hook did not let an input through; nothing of it is on record.
    #[error("hook {hook} refused the input: {reason}")]
    InputBlocked {
        /// The hook.
        hook: String,
        /// Why.
        reason: String,
    },
    /// A hook stopped it.
    #[error("{0}")]
    Hook(String),
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

impl AgentError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Workspace(error) => error.hint(),
            Self::Approval(error) => error.hint(),
            Self::NoSuchTool { .. } => Some(Hint::ListTools),
            Self::AgentRemoved(_) => Some(Hint::ChooseAgent),
            Self::Files(_)
            | Self::Tools(_)
            | Self::NoSuchAgent { .. }
            | Self::NoFinishedTasks(_)
            | Self::TaskRecords(_)
            | Self::NoPrice { .. }
            | Self::NoBudget
            | Self::RunStillOpen(_)
            | Self::EntryRejected(_)
            | Self::NothingToResume(_)
            | Self::RunOpen(_)
            | Self::Model(_)
            | Self::FileAsModel { .. }
            | Self::InputBlocked { .. }
            | Self::Hook(_)
            | Self::Stopped(_)
            | Self::NoSuchTurn { .. } => None,
        }
    }
}
