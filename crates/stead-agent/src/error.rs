//! Errors of agents and sessions. How a *run* ended is not an error but an outcome.
//!
//! Effects: none.

use crate::{ApprovalError, NoModelReason, TaskRecordError};
use std::fmt;
use stead_core::{BudgetExhausted, FoldError, Hint, InputId, SessionId};
use stead_store::StoreError;
use stead_tools::RegistryError;
use stead_vfs::VfsError;
use stead_workspace::{HookEvent, WorkspaceError};

/// Why a request was stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopCause {
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A message arrived that interrupts it.
    #[error("a new message came")]
    Interrupted,
    /// Its time limit was reached.
    #[error("the time was up")]
    TimedOut,
    /// Another process took over the session.
    #[error("another process took the session over")]
    TakenOver,
    /// A tool stopped it.
    #[error("a tool stopped it: {reason}")]
    Tool {
        /// The message of the tool.
        reason: String,
    },
    /// Too little of the budget is left.
    #[error("the budget is used up")]
    Budget(BudgetExhausted),
}

/// A request that a hook stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hook {hook} {action}: {reason}")]
pub struct HookStop {
    /// The hook.
    pub hook: String,
    /// What the hook did.
    pub action: HookAction,
    /// The reason that the hook gave.
    pub reason: String,
}

/// How a hook stopped a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookAction {
    /// It refused the beginning of the run.
    RefusedStart,
    /// It refused at this event.
    Refused(HookEvent),
    /// It dropped the answer of the model.
    DroppedAnswer,
    /// It asked for the end of the run.
    EndedRun,
}

impl fmt::Display for HookAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefusedStart => f.write_str("refused to begin"),
            Self::Refused(event) => write!(f, "said no at {}", event.as_str()),
            Self::DroppedAnswer => f.write_str("dropped the model's answer"),
            Self::EndedRun => f.write_str("ended the run"),
        }
    }
}

/// Why a request to an agent or a session failed.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The schema of the answer is not a JSON schema.
    #[error("the output schema is not a JSON schema: {0}")]
    OutputSchema(String),
    /// The journal or another store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file of the workspace cannot be read or written.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// Two tools have the same name.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// A setting names an unknown tool, so the rule would have no effect.
    #[error("{setting}: there is no tool {name}")]
    NoSuchTool {
        /// The setting.
        setting: &'static str,
        /// The name.
        name: String,
    },
    /// The acting agent of a session is no longer in the workspace.
    #[error(
        "there is no agent {0:?} in this workspace any more: bring its definition back, or choose another"
    )]
    AgentRemoved(String),
    /// The chosen agent does not exist, or only works as a subagent.
    #[error("there is no agent {name:?} to talk to; there are: {}", .known.join(", "))]
    NoSuchAgent {
        /// The name.
        name: String,
        /// The agents that can be chosen.
        known: Vec<String>,
    },
    /// A session was to be woken, but has no finished task that it was not told about.
    #[error("session {0} was told of all its tasks that ended")]
    NoFinishedTasks(SessionId),
    /// The records of the tasks of subagents cannot be used.
    #[error(transparent)]
    TaskRecords(#[from] TaskRecordError),
    /// There is a limit in dollars, but the price of the model is not known.
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
    /// A budget was to be raised, but none is set.
    #[error("there is nothing to raise: agent.yaml sets no budget in this unit")]
    NoBudget,
    /// The budget of a run was to be raised, but the run has not ended.
    #[error(
        "the run of session {0} is still open, so its budget is not used up; resume it without raising the budget"
    )]
    RunStillOpen(SessionId),
    /// An entry does not fit the state of the session; it was not recorded.
    #[error(transparent)]
    EntryRejected(#[from] FoldError),
    /// There is no open run to resume.
    #[error("session {0} has nothing to resume: its last answer is complete")]
    NothingToResume(SessionId),
    /// The request is not possible during a run.
    #[error("session {0} has an open run: let it end, answer its questions, or resume it first")]
    RunOpen(SessionId),
    /// An answer to a question was not accepted.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// The model failed outside any run.
    #[error(transparent)]
    Model(#[from] stead_model::ModelError),
    /// The changes of a run cannot be taken back. Nothing was changed.
    #[error("the run cannot be undone: {0}")]
    UndoBlocked(String),
    /// Inbox rows that an input is made of are part of the journal already, with these entries.
    /// Nothing was recorded.
    #[error("the input was recorded before")]
    InputsRecorded(Vec<(InputId, u64)>),
    /// There is no model to call. Nothing was recorded.
    #[error("{0}")]
    NoModel(NoModelReason),
    /// The model that a session runs with cannot be used. Nothing was recorded.
    #[error("the session runs with {model}, which cannot be used here: {reason}")]
    SessionModel {
        /// The recorded model.
        model: String,
        /// The reason.
        reason: stead_model::ModelError,
    },
    /// An agent of the workspace names a model that is a file.
    #[error(
        "agent {agent}: its model {model} is a file, which only the workspace's own model may be: give it \
         a model of a provider"
    )]
    FileAsModel {
        /// The agent.
        agent: String,
        /// The model.
        model: String,
    },
    /// A hook refused an input; nothing was recorded.
    #[error("hook {hook} refused the input: {reason}")]
    InputBlocked {
        /// The hook.
        hook: String,
        /// The reason.
        reason: String,
    },
    /// A hook stopped the request.
    #[error(transparent)]
    Hook(#[from] HookStop),
    /// The request was stopped before it was done.
    #[error("stopped before it was done: {0}")]
    Stopped(StopCause),
    /// The session has no such turn.
    #[error("session {session} has no turn {turn}; it has {turns}")]
    NoSuchTurn {
        /// The session.
        session: SessionId,
        /// The turn that was asked for.
        turn: usize,
        /// The number of turns.
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
            Self::NoBudget => Some(Hint::OtherUnit),
            Self::FileAsModel { .. } => Some(Hint::SetWorkspaceModel),
            Self::SessionModel { .. } => Some(Hint::ChooseModel),
            Self::Stopped(StopCause::Budget(_)) => Some(Hint::RaiseBudget),
            Self::Files(_)
            | Self::Tools(_)
            | Self::NoSuchAgent { .. }
            | Self::NoFinishedTasks(_)
            | Self::TaskRecords(_)
            | Self::NoPrice { .. }
            | Self::RunStillOpen(_)
            | Self::EntryRejected(_)
            | Self::NothingToResume(_)
            | Self::RunOpen(_)
            | Self::OutputSchema(_)
            | Self::Model(_)
            | Self::NoModel(_)
            | Self::InputsRecorded(_)
            | Self::UndoBlocked(_)
            | Self::InputBlocked { .. }
            | Self::Hook(_)
            | Self::Stopped(
                StopCause::Cancelled
                | StopCause::Interrupted
                | StopCause::TimedOut
                | StopCause::TakenOver
                | StopCause::Tool { .. },
            )
            | Self::NoSuchTurn { .. } => None,
        }
    }

    /// Whether the request was right and something failed. Otherwise the request itself, a setting
    /// or a name is wrong, and repeating it is of no use.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Store(error) => !matches!(error, StoreError::NotFound(_) | StoreError::Exists(_)),
            Self::Model(error) => !matches!(error, stead_model::ModelError::Config(_)),
            Self::Files(_)
            | Self::EntryRejected(_)
            | Self::Stopped(_)
            | Self::InputBlocked { .. }
            | Self::Hook(_)
            | Self::TaskRecords(_) => true,
            Self::Workspace(_)
            | Self::Tools(_)
            | Self::NoSuchTool { .. }
            | Self::AgentRemoved(_)
            | Self::NoSuchAgent { .. }
            | Self::NoFinishedTasks(_)
            | Self::NoPrice { .. }
            | Self::NoBudget
            | Self::RunStillOpen(_)
            | Self::NothingToResume(_)
            | Self::RunOpen(_)
            | Self::OutputSchema(_)
            | Self::Approval(_)
            | Self::UndoBlocked(_)
            | Self::InputsRecorded(_)
            | Self::NoModel(_)
            | Self::SessionModel { .. }
            | Self::FileAsModel { .. }
            | Self::NoSuchTurn { .. } => false,
        }
    }
}
