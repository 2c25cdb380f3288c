//! What begins a run: an input, a run that is taken up again, or the end of a task.

use crate::{AgentError, Crew, RunOptions, RunReport, Session};
use std::sync::Arc;
use stead_core::{Allowance, Block, Entry, Message, Notice, Outcome, RunId, UserInput};

/// What begins a run.
pub(crate) enum Begin {
    Input(Vec<Block>),
    Resume {
        raise: Allowance,
    },
    /// Tasks that were handed over have ended.
    Wake,
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Input,
    Resume,
    Wake,
}

impl Origin {
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
const GO_ON: &str = "Your last answer was cut off by a limit. Go on exactly where it ended.";

impl Session {
    /// Those who work for it.
    pub fn crew(&self) -> &Arc<Crew> {
        &self.crew
    }

    /// Whether tasks that it handed over have ended and it was not told yet.
    pub fn has_news(&self) -> bool {
        self.crew.news(&self.state.told).is_some()
    }

    /// Tells the model of tasks that have ended since, and works on what comes of it: a run that
    /// nobody gave an input. An error if there is no news ([`Session::has_news`]), or a run is
    /// open.
    pub async fn wake(&mut self, options: RunOptions) -> Result<RunReport, AgentError> {
        self.go(Begin::Wake, options).await
    }

    /// The entries that begin the run, and where it comes from.
    pub(crate) fn opening(
        &self,
        begin: Begin,
        fresh: RunId,
    ) -> Result<(Vec<Entry>, Origin), AgentError> {
        match begin {
            Begin::Input(content) => {
                let mut entries = self.state.close(
                    Outcome::Cancelled,
                    "a new input came before this run was done",
                );
                let handed = self.above.is_some();
                entries.push(Entry::User(UserInput {
                    handed,
                    ..UserInput::new(fresh, content)
                }));
                Ok((entries, Origin::Input))
            }
            Begin::Resume { raise }
                if !self.agent.parts.workspace.config().budget.can_take(raise) =>
            {
                Err(AgentError::NoBudget)
            }
            Begin::Resume { raise } if self.state.run.is_some() && !raise.is_zero() => {
                Err(AgentError::StillOpen(self.id.clone()))
            }
            Begin::Resume { .. } if self.state.run.is_some() => {
                Ok((self.state.repair(), Origin::Resume))
            }
            Begin::Resume { raise } if self.state.is_resumable() => {
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
                    entries.push(Entry::Notice(Notice::new(run, GO_ON)));
                }
                Ok((entries, Origin::Resume))
            }
            // Tasks that ended since the last answer are something to go on with.
            Begin::Resume { raise } if raise.is_zero() && self.has_news() => {
                self.opening(Begin::Wake, fresh)
            }
            Begin::Resume { .. } => Err(AgentError::NothingToResume(self.id.clone())),
            Begin::Wake if self.state.run.is_some() => Err(AgentError::StillOpen(self.id.clone())),
            Begin::Wake => match self.crew.news(&self.state.told) {
                Some(news) => {
                    let notice = news.notice(fresh.clone());
                    Ok((
                        vec![Entry::User(UserInput::wake(fresh)), Entry::Notice(notice)],
                        Origin::Wake,
                    ))
                }
                None => Err(AgentError::NoNews(self.id.clone())),
            },
        }
    }
}
