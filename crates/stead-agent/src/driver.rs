//! The loop. It decides nothing: the Run machine says what is next, the loop does it and records
//! what came of it.

use crate::AgentError;
use crate::active_run::{ActiveRun, RunStop};
use crate::halt::HaltReason;
use crate::steering::INTERRUPTED;
use stead_core::{Entry, NextAction, Notice, RunEnd, RunOutcome};
use stead_store::StoreError;

/// How the loop came to its end.
pub(crate) struct RunEnding {
    pub(crate) outcome: RunOutcome,
    pub(crate) reason: Option<String>,
}

impl ActiveRun<'_> {
    /// Drives the run until it ends or parks.
    pub(crate) async fn drive(&mut self) -> Result<RunEnding, RunStop> {
        loop {
            let next = self
                .session
                .state
                .next(&self.session.agent.policy().limits());
            match self.halt.check() {
                // What came once the answer was there does not take it back: it is the next input.
                Err(HaltReason::Interrupted) if matches!(next, NextAction::Done(..)) => {}
                checked => checked?,
            }
            self.notify().await?;
            match next {
                NextAction::CallModel => {
                    self.steer().await?;
                    self.refresh_turn().await?;
                    self.compact_if_needed().await?;
                    self.call_model().await?;
                }
                NextAction::RunTools(calls) => self.run_tools(calls).await?,
                NextAction::Nudge(text) => {
                    self.record(vec![Entry::Notice(Notice::repetition(
                        self.run.clone(),
                        text,
                    ))])
                    .await?;
                }
                NextAction::AwaitDecision(calls) => {
                    if !self.ask_open_questions(calls).await? {
                        let reason = Some("a call waits for a decision".to_owned());
                        return Ok(RunEnding {
                            outcome: RunOutcome::Parked,
                            reason,
                        });
                    }
                }
                NextAction::Done(outcome, _) if self.wait_for_more_work(outcome).await? => {}
                NextAction::Done(outcome, reason) => {
                    let (outcome, reason) = self.budget_cut_outcome().unwrap_or((outcome, reason));
                    let end = RunEnd {
                        run: self.run.clone(),
                        outcome,
                        reason: reason.clone(),
                    };
                    self.record(vec![Entry::End(end)]).await?;
                    return Ok(RunEnding { outcome, reason });
                }
                NextAction::Idle => {
                    return Ok(RunEnding {
                        outcome: RunOutcome::Completed,
                        reason: None,
                    });
                }
            }
        }
    }

    /// Ends a run that could not go on: every open call gets a result, and the end is recorded.
    /// Only a journal that cannot be written leaves the run open, to be taken up when it can.
    pub(crate) async fn close_run(&mut self, stop: RunStop) -> Result<RunEnding, AgentError> {
        let (outcome, reason) = match stop {
            // Nothing more may be recorded: the session is another's.
            RunStop::Halted(HaltReason::TakenOver) => {
                let lease = format!("session {}", self.session.id);
                return Err(StoreError::Fenced { lease }.into());
            }
            RunStop::Halted(HaltReason::Cancelled) => {
                (RunOutcome::Cancelled, "cancelled".to_owned())
            }
            RunStop::Halted(HaltReason::Interrupted) => {
                (RunOutcome::Cancelled, INTERRUPTED.to_owned())
            }
            RunStop::Halted(HaltReason::TimedOut) => {
                let seconds = self.session.agent.policy().run_timeout_seconds;
                (
                    RunOutcome::TimedOut,
                    format!("stopped after {seconds} seconds (policy.run_timeout_seconds)"),
                )
            }
            RunStop::Model(error) => (RunOutcome::Failed, error.to_string()),
            RunStop::Tool(reason) | RunStop::Hook(reason) => (RunOutcome::Failed, reason),
            RunStop::Budget(exhausted) => (RunOutcome::Budget, exhausted.to_string()),
            RunStop::Journal(error) => return Err(error),
        };
        let entries = self.session.state.close(outcome, &reason);
        self.record(entries).await?;
        Ok(RunEnding {
            outcome,
            reason: Some(reason),
        })
    }
}
