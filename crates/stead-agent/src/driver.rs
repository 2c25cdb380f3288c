//! The loop. It decides nothing: the Run machine says what is next, the loop does it and records
//! what came of it.

use crate::AgentError;
use crate::halt::Halted;
use crate::live::{Live, Stop};
use crate::steering::INTERRUPTED;
use stead_core::{Entry, Next, Notice, Outcome, RunEnd};
use stead_store::StoreError;

/// How the loop came to its end.
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) reason: Option<String>,
}

impl Live<'_> {
    /// Drives the run until it ends or parks.
    pub(crate) async fn drive(&mut self) -> Result<Ending, Stop> {
        loop {
            let next = self
                .session
                .state
                .next(&self.session.agent.policy().limits());
            match self.halt.check() {
                // What came once the answer was there does not take it back: it is the next input.
                Err(Halted::Interrupted) if matches!(next, Next::Done(..)) => {}
                checked => checked?,
            }
            self.notify().await?;
            match next {
                Next::CallModel => {
                    self.steer().await?;
                    self.take_stock().await?;
                    self.make_room().await?;
                    self.answer().await?;
                }
                Next::RunTools(calls) => self.run_tools(calls).await?,
                Next::Nudge(text) => {
                    self.record(vec![Entry::Notice(Notice::new(self.run.clone(), text))])
                        .await?;
                }
                Next::AwaitDecision(calls) => {
                    if !self.decide(calls).await? {
                        let reason = Some("a call waits for a decision".to_owned());
                        return Ok(Ending {
                            outcome: Outcome::Parked,
                            reason,
                        });
                    }
                }
                Next::Done(outcome, _) if self.goes_on(outcome).await? => {}
                Next::Done(outcome, reason) => {
                    let (outcome, reason) = self.cut_off().unwrap_or((outcome, reason));
                    let end = RunEnd {
                        run: self.run.clone(),
                        outcome,
                        reason: reason.clone(),
                    };
                    self.record(vec![Entry::End(end)]).await?;
                    return Ok(Ending { outcome, reason });
                }
                Next::Idle => {
                    return Ok(Ending {
                        outcome: Outcome::Completed,
                        reason: None,
                    });
                }
            }
        }
    }

    /// Ends a run that could not go on: every open call gets a result, and the end is recorded.
    /// Only a journal that cannot be written leaves the run open, to be taken up when it can.
    pub(crate) async fn wind_up(&mut self, stop: Stop) -> Result<Ending, AgentError> {
        let (outcome, reason) = match stop {
            // Nothing more may be recorded: the session is another's.
            Stop::Halted(Halted::TakenOver) => {
                let lease = format!("session {}", self.session.id);
                return Err(StoreError::Fenced { lease }.into());
            }
            Stop::Halted(Halted::Cancelled) => (Outcome::Cancelled, "cancelled".to_owned()),
            Stop::Halted(Halted::Interrupted) => (Outcome::Cancelled, INTERRUPTED.to_owned()),
            Stop::Halted(Halted::TimedOut) => {
                let seconds = self.session.agent.policy().run_timeout_seconds;
                (
                    Outcome::TimedOut,
                    format!("stopped after {seconds} seconds (policy.run_timeout_seconds)"),
                )
            }
            Stop::Model(error) => (Outcome::Failed, error.to_string()),
            Stop::Tool(reason) | Stop::Hook(reason) => (Outcome::Failed, reason),
            Stop::Budget(exhausted) => (Outcome::Budget, exhausted.to_string()),
            Stop::Journal(error) => return Err(error),
        };
        let entries = self.session.state.close(outcome, &reason);
        self.record(entries).await?;
        Ok(Ending {
            outcome,
            reason: Some(reason),
        })
    }
}
