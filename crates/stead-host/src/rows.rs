//! The rows of the inbox that an actor takes, and where each is delivered: to the run that is going
//! on, to the message queue, or to the commands that wait until the session is idle.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::approver::SentAnswers;
use crate::disposition::{Disposition, SessionPhase, disposition};
use crate::intake::TakenRow;
use crate::mailbox::{Availability, IDLE_POLL, Mailbox, WaitingInput};
use crate::reply::{PendingCommand, ReplyTo, RunReach};
use std::time::Duration;
use stead_agent::{IncomingMessage, SendOutcome};
use stead_core::{AnswerCommand, InputId};
use stead_store::InputOutcome;
use tokio::time::Instant;

/// How often the inbox is looked at while it may have rows and nobody tells.
const ROWS_POLL: Duration = Duration::from_millis(500);
/// How often a session that cannot be run now is tried.
pub(crate) const BLOCKED_POLL: Duration = Duration::from_millis(200);

impl Mailbox {
    /// Whether rows wait in the inbox.
    pub(crate) async fn has_rows(&self) -> bool {
        let waiting = self.shared.link.inbox.waiting(1).await;
        waiting.is_ok_and(|rows| !rows.is_empty())
    }

    /// Takes the rows that wait, and reschedules the next look.
    async fn take_rows(&mut self) -> Vec<TakenRow> {
        let pause = match self.availability {
            Availability::Blocked => BLOCKED_POLL,
            Availability::Free => ROWS_POLL,
        };
        self.rows_due = Instant::now() + pause;
        match self.intake.take().await {
            Ok(rows) => {
                self.availability = Availability::Free;
                rows
            }
            Err(error) => {
                tracing::warn!(session = %self.shared.link.session, %error, "the inbox cannot be read now");
                self.availability = Availability::Blocked;
                Vec::new()
            }
        }
    }

    /// Takes the rows of an idle session, if that is due.
    pub(crate) async fn take_rows_when_idle(&mut self) {
        if self.waiting == WaitingInput::LeftToOthers {
            self.rows_due = Instant::now() + IDLE_POLL;
            return;
        }
        for row in self.take_rows().await {
            self.deliver(row, None).await;
        }
    }

    /// Takes rows while the session runs: messages and answers reach the run, the rest waits.
    pub(crate) async fn take_rows_during_run(&mut self, run: &RunReach) {
        for row in self.take_rows().await {
            self.deliver(row, Some(run)).await;
        }
    }

    /// Puts the command of a row where it belongs.
    async fn deliver(&mut self, TakenRow { id, command }: TakenRow, run: Option<&RunReach>) {
        let phase = match run {
            Some(_) => SessionPhase::Running,
            None => SessionPhase::Idle,
        };
        match disposition(&id, command, phase) {
            Disposition::Enqueue(message) => self.enqueue(id, message).await,
            Disposition::AnswerRun(answer) => self.answer_run(id, answer).await,
            Disposition::CancelRun(named) => match run.map(|run| run.cancel(named.as_ref())) {
                Some(Err(reason)) => {
                    let outcome = InputOutcome::Refused { reason };
                    self.intake.settle(&[id], outcome).await;
                }
                Some(Ok(())) | None => self.cancellations.push(id),
            },
            Disposition::Withdraw(inputs) => {
                self.withdraw(&inputs).await;
                self.intake.settle(&[id], InputOutcome::Done).await;
            }
            Disposition::WaitForIdle(command) => self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Row(id),
            }),
        }
    }

    /// Gives answers to the run that is going on.
    async fn answer_run(&mut self, row: InputId, answer: AnswerCommand) {
        let asking = answer.subagent.clone();
        let sent = SentAnswers {
            session: asking.unwrap_or_else(|| self.shared.link.session.clone()),
            answer,
            row: row.clone(),
        };
        if let Err(error) = self.shared.approver.reply(sent) {
            let reason = error.to_string();
            let outcome = InputOutcome::Refused { reason };
            self.intake.settle(&[row], outcome).await;
        }
    }

    async fn enqueue(&mut self, id: InputId, message: IncomingMessage) {
        if let Some(seq) = self.shared.queue.recorded_entry(&id) {
            // Another process recorded it and died before it could say so.
            let outcome = InputOutcome::Recorded { seq };
            return self.intake.settle(&[id], outcome).await;
        }
        match self.shared.queue.send(message) {
            SendOutcome::Queued | SendOutcome::ReplacedOldest => {}
            SendOutcome::Refused => {
                let reason = "the queue of the session is full, or the message is empty".to_owned();
                self.intake
                    .settle(&[id], InputOutcome::Refused { reason })
                    .await;
            }
        }
    }

    /// Takes back inputs that no run has begun with.
    pub(crate) async fn withdraw(&mut self, inputs: &[InputId]) {
        if self.waiting == WaitingInput::Held {
            self.waiting = WaitingInput::BeginsRun;
        }
        // Rows that were not looked at yet are among those that wait.
        for row in self.take_rows().await {
            if !inputs.contains(&row.id) {
                self.intake.give_back(&[row.id]);
                self.rows_due = Instant::now();
                continue;
            }
            let command = row.command;
            self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Row(row.id),
            });
        }
        let mut withdrawn = self.shared.queue.withdraw(inputs);
        self.pending.retain(|pending| match pending.reply.row() {
            Some(row) if inputs.contains(&row) => {
                withdrawn.push(row);
                false
            }
            Some(_) | None => true,
        });
        let reason = "taken back by its sender".to_owned();
        let outcome = InputOutcome::Refused { reason };
        self.intake.settle(&withdrawn, outcome).await;
    }

    /// Another process runs the session, or it cannot be run now: it is tried again later, and others
    /// may take the rows meanwhile.
    pub(crate) fn retry_later(&mut self) {
        self.availability = Availability::Blocked;
        self.rows_due = Instant::now() + BLOCKED_POLL;
        self.release_rows();
    }

    /// Leaves the rows that wait here to other processes.
    pub(crate) fn release_rows(&mut self) {
        let queued = self.shared.queue.take_rows();
        self.intake.give_back(&queued);
        let pending = std::mem::take(&mut self.pending);
        for waiting in pending {
            match waiting.reply.row() {
                Some(row) => self.intake.give_back(&[row]),
                None => self.pending.push_back(waiting),
            }
        }
    }
}
