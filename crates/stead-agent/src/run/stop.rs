//! Why a run ends early, and how it ended.
//!
//! Effects: none.

use super::signals::HaltReason;
use crate::{AgentError, BudgetError, HookStop, StopCause};
use stead_core::{BudgetExhausted, RunOutcome};
use stead_model::ModelError;

/// How the loop ended.
#[derive(Debug)]
pub(crate) struct RunEnding {
    pub(crate) outcome: RunOutcome,
    pub(crate) reason: Option<String>,
}

/// Why a run ends early.
#[derive(Debug)]
pub(crate) enum RunStop {
    /// A signal from outside.
    Halted(HaltReason),
    /// The call of the model failed.
    Model(ModelError),
    /// A tool failed with [`ToolError::Fatal`](stead_tools::ToolError::Fatal).
    Tool(String),
    /// A hook stopped it.
    Hook(HookStop),
    /// Too little of the budget is left to call the model.
    Budget(BudgetExhausted),
    /// The run cannot go on, and its end cannot be recorded.
    Fatal(AgentError),
}

impl From<HaltReason> for RunStop {
    fn from(halted: HaltReason) -> Self {
        Self::Halted(halted)
    }
}

impl From<ModelError> for RunStop {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<BudgetError> for RunStop {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::Exhausted(exhausted) => Self::Budget(exhausted),
            BudgetError::Store(error) => Self::Fatal(error.into()),
        }
    }
}

impl From<AgentError> for RunStop {
    fn from(error: AgentError) -> Self {
        Self::Fatal(error)
    }
}

impl From<RunStop> for AgentError {
    fn from(stop: RunStop) -> Self {
        match stop {
            RunStop::Halted(HaltReason::Cancelled) => Self::Stopped(StopCause::Cancelled),
            RunStop::Halted(HaltReason::Interrupted) => Self::Stopped(StopCause::Interrupted),
            RunStop::Halted(HaltReason::TimedOut) => Self::Stopped(StopCause::TimedOut),
            RunStop::Halted(HaltReason::TakenOver) => Self::Stopped(StopCause::TakenOver),
            RunStop::Model(error) => Self::Model(error),
            RunStop::Tool(reason) => Self::Stopped(StopCause::Tool { reason }),
            RunStop::Hook(stop) => Self::Hook(stop),
            RunStop::Budget(exhausted) => Self::Stopped(StopCause::Budget(exhausted)),
            RunStop::Fatal(error) => error,
        }
    }
}
