//! What starts a run: an input, an interrupted run, or the end of delegated tasks.

use crate::{AgentError, Session};
use stead_core::{Block, Entry, Message, Notice, RunId, RunOutcome, SpendAmount, UserInput};

/// What starts a run.
#[derive(Debug)]
pub(crate) enum RunTrigger {
    Input(Vec<Block>),
    /// A run that is continued, with `raise` more to spend.
    Resume {
        raise: SpendAmount,
    },
    /// Delegated tasks have ended.
    Wake,
}

/// What started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOrigin {
    Input,
    Resume,
    Wake,
}

impl RunOrigin {
    /// The name that hooks are told.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Resume => "resume",
            Self::Wake => "wake",
        }
    }
}

/// The message to a model whose answer was cut off by a limit that was raised since.
const CONTINUE_PROMPT: &str =
    "Your last answer was cut off by a limit. Go on exactly where it ended.";

/// The entries with which a run begins or continues.
pub(super) struct RunOpening {
    pub(super) run: RunId,
    pub(super) entries: Vec<Entry>,
    pub(super) origin: RunOrigin,
}

/// Returns the entries that open a run with the id `new_run`, or that repair the open run.
pub(super) fn opening_entries(
    session: &Session,
    trigger: RunTrigger,
    new_run: RunId,
) -> Result<RunOpening, AgentError> {
    let state = session.state();
    let id = || session.id().clone();
    match trigger {
        RunTrigger::Input(content) => {
            let mut entries = state.close(
                RunOutcome::Cancelled,
                "a new input came before this run was done",
            );
            entries.push(Entry::User(UserInput {
                handed: session.is_delegated(),
                ..UserInput::new(new_run.clone(), content)
            }));
            Ok(RunOpening {
                run: new_run,
                entries,
                origin: RunOrigin::Input,
            })
        }
        RunTrigger::Resume { raise } => {
            let budget = session.agent().workspace().config().budget;
            if !budget.accepts_raise(raise) {
                return Err(AgentError::NoBudget);
            }
            if let Some(run) = &state.run {
                return match raise.is_zero() {
                    true => Ok(RunOpening {
                        run: run.id.clone(),
                        entries: state.repair(),
                        origin: RunOrigin::Resume,
                    }),
                    false => Err(AgentError::RunStillOpen(id())),
                };
            }
            if state.is_resumable() {
                return Ok(RunOpening {
                    entries: resuming_entries(session, new_run.clone(), raise),
                    run: new_run,
                    origin: RunOrigin::Resume,
                });
            }
            // Tasks that have ended since the last answer are a reason to go on.
            match raise.is_zero() && session.has_finished_tasks() {
                true => opening_entries(session, RunTrigger::Wake, new_run),
                false => Err(AgentError::NothingToResume(id())),
            }
        }
        RunTrigger::Wake => {
            if state.run.is_some() {
                return Err(AgentError::RunStillOpen(id()));
            }
            let Some(finished) = session.subagents().finished_since(&state.told) else {
                return Err(AgentError::NoFinishedTasks(id()));
            };
            let notice = finished.into_notice(new_run.clone());
            let input = UserInput::wake(new_run.clone());
            Ok(RunOpening {
                run: new_run,
                entries: vec![Entry::User(input), Entry::Notice(notice)],
                origin: RunOrigin::Wake,
            })
        }
    }
}

/// Returns the entries that continue a session whose last run was stopped.
fn resuming_entries(session: &Session, run: RunId, raise: SpendAmount) -> Vec<Entry> {
    let mut entries = vec![Entry::User(UserInput {
        raise,
        ..UserInput::new(run.clone(), Vec::new())
    })];
    // Providers do not continue an answer without a message after it.
    let last = session.state().turns.last().map(|turn| &*turn.message);
    if matches!(last, Some(Message::Assistant { .. })) {
        entries.push(Entry::Notice(Notice::new(run, CONTINUE_PROMPT)));
    }
    entries
}
