//! What begins a run: an input, a run that is taken up again, or the end of a task.

use crate::{AgentError, RunOptions, RunReport, Session, Subagents};
use std::sync::Arc;
use stead_core::{Block, Entry, Message, Notice, RunId, RunOutcome, SpendAmount, UserInput};

/// What begins a run.
pub(crate) enum RunTrigger {
    Input(Vec<Block>),
    Resume {
        raise: SpendAmount,
    },
    /// Tasks that were handed over have ended.
    Wake,
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunOrigin {
    Input,
    Resume,
    Wake,
}

impl RunOrigin {
    /// As hooks are told it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Resume => "resume",
            Self::Wake => "wake",
        }
    }
}

/// What the model is told when its answer was cut off by a budget that was raised since.
const CONTINUE_PROMPT: &str =
    "Your last answer was cut off by a limit. Go on exactly where it ended.";

impl Session {
    /// Those who work for it.
    pub fn subagents(&self) -> &Arc<Subagents> {
        &self.subagents
    }

    /// Whether tasks that it handed over have ended and it was not told yet.
    pub fn has_finished_tasks(&self) -> bool {
        self.subagents.finished_since(&self.state.told).is_some()
    }

    /// Tells the model of tasks that have ended since, and works on what comes of it: a run that
    /// nobody gave an input. An error if there is no news ([`Session::has_finished_tasks`]), or a run is
    /// open.
    pub async fn wake(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        self.start_run(RunTrigger::Wake, options).await
    }

    /// The entries that begin the run, and where it comes from.
    pub(crate) fn opening_entries(
        &self,
        begin: RunTrigger,
        fresh: RunId,
    ) -> Result<(Vec<Entry>, RunOrigin), AgentError> {
        match begin {
            RunTrigger::Input(content) => {
                let mut entries = self.state.close(
                    RunOutcome::Cancelled,
                    "a new input came before this run was done",
                );
                let handed = self.parent_subagents.is_some();
                entries.push(Entry::User(UserInput {
                    handed,
                    ..UserInput::new(fresh, content)
                }));
                Ok((entries, RunOrigin::Input))
            }
            RunTrigger::Resume { raise }
                if !self
                    .agent
                    .parts
                    .workspace
                    .config()
                    .budget
                    .accepts_raise(raise) =>
            {
                Err(AgentError::NoBudget)
            }
            RunTrigger::Resume { raise } if self.state.run.is_some() && !raise.is_zero() => {
                Err(AgentError::RunStillOpen(self.id.clone()))
            }
            RunTrigger::Resume { .. } if self.state.run.is_some() => {
                Ok((self.state.repair(), RunOrigin::Resume))
            }
            RunTrigger::Resume { raise } if self.state.is_resumable() => {
                let run = fresh;
                let mut entries = vec![Entry::User(UserInput {
                    raise,
                    ..UserInput::new(run.clone(), Vec::new())
                })];
                // No provider goes on from an answer by itself.
                if matches!(
                    self.state.turns.last().map(|turn| &*turn.message),
                    Some(Message::Assistant { .. })
                ) {
                    entries.push(Entry::Notice(Notice::new(run, CONTINUE_PROMPT)));
                }
                Ok((entries, RunOrigin::Resume))
            }
            // Tasks that ended since the last answer are something to go on with.
            RunTrigger::Resume { raise } if raise.is_zero() && self.has_finished_tasks() => {
                self.opening_entries(RunTrigger::Wake, fresh)
            }
            RunTrigger::Resume { .. } => Err(AgentError::NothingToResume(self.id.clone())),
            RunTrigger::Wake if self.state.run.is_some() => {
                Err(AgentError::RunStillOpen(self.id.clone()))
            }
            RunTrigger::Wake => match self.subagents.finished_since(&self.state.told) {
                Some(news) => {
                    let notice = news.into_notice(fresh.clone());
                    Ok((
                        vec![Entry::User(UserInput::wake(fresh)), Entry::Notice(notice)],
                        RunOrigin::Wake,
                    ))
                }
                None => Err(AgentError::NoFinishedTasks(self.id.clone())),
            },
        }
    }
}
