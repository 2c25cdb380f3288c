//! Part of the mailbox of a session: telling clients and the inbox what became of commands.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::approver::SentAnswers;
use crate::error::{self, is_locked, is_passing};
use crate::intake;
use crate::mailbox::{Mailbox, WaitingInput};
use crate::options::QueuePolicy;
use crate::reply::{PendingCommand, ReplyTo};
use crate::rows::BLOCKED_POLL;
use crate::run_progress::{RecordedParts, RunProgress};
use std::time::Duration;
use stead_agent::AgentError;
use stead_core::{
    ClientError, Command, Event, EventKind, InputId, InputStatus, Receipt, RunId, RunOutcome,
    SessionId, Usage,
};
use stead_store::InputOutcome;
use tokio::time::Instant;

/// How often a command is tried whose store or model is unavailable.
const UNAVAILABLE_POLL: Duration = Duration::from_secs(2);

impl Mailbox {
    /// The command is in the journal.
    pub(crate) async fn acknowledge(&mut self, reply: ReplyTo, seq: u64) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Ok(Receipt::recorded(InputId::fresh(), seq)));
            }
            ReplyTo::Row(id) => {
                self.intake
                    .settle(&[id], InputOutcome::Recorded { seq })
                    .await
            }
            ReplyTo::Nobody => {}
        }
    }

    /// The command was carried out, and the journal says nothing of it.
    pub(crate) async fn acknowledge_done(&mut self, reply: ReplyTo) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Ok(Receipt::done()));
            }
            ReplyTo::Row(id) => self.intake.settle(&[id], InputOutcome::Done).await,
            ReplyTo::Nobody => {}
        }
    }

    /// Leaves a command to the process that runs the session.
    pub(crate) async fn queue_for_holder(&mut self, command: Command, reply: ReplyTo) {
        self.retry_later();
        match reply {
            ReplyTo::Client(sender) => self.insert(&command, sender).await,
            ReplyTo::Row(id) => self.intake.give_back(&[id]),
            ReplyTo::Nobody => {}
        }
        self.rows_due = Instant::now() + BLOCKED_POLL;
    }

    /// Leaves answers to questions of a subagent to the process that runs `root`, the person's
    /// session at the top.
    pub(crate) async fn queue_for_root(
        &mut self,
        root: SessionId,
        command: Command,
        reply: ReplyTo,
    ) {
        let link = self.shared.link_of(root.clone());
        let inserted = intake::insert(&link, &command, None).await;
        match (reply, inserted) {
            (ReplyTo::Client(sender), Ok((input_id, _))) => {
                let _ = sender.send(Ok(Receipt {
                    inbox_of: Some(root),
                    ..Receipt::waiting(input_id)
                }));
            }
            (ReplyTo::Client(sender), Err(error)) => {
                let _ = sender.send(Err(error));
            }
            // The row is done: its command waits in the other inbox.
            (ReplyTo::Row(row), Ok(_)) => {
                self.intake.settle(&[row], InputOutcome::Done).await;
            }
            (ReplyTo::Row(row), Err(_)) => self.intake.give_back(&[row]),
            (ReplyTo::Nobody, _) => {}
        }
    }

    /// A command cannot be carried out now.
    fn wait_because_of(&mut self, error: &AgentError) {
        self.retry_later();
        if !is_locked(error) {
            self.rows_due = Instant::now() + UNAVAILABLE_POLL;
        }
    }

    /// Refuses a command.
    pub(crate) async fn refuse(&mut self, reply: ReplyTo, reason: &str) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Err(ClientError::refused(reason)));
            }
            ReplyTo::Row(id) => {
                let reason = reason.to_owned();
                let outcome = InputOutcome::Refused { reason };
                self.intake.settle(&[id], outcome).await;
            }
            ReplyTo::Nobody => {}
        }
    }

    /// A command failed.
    pub(crate) async fn fail(&mut self, reply: ReplyTo, error: AgentError) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Err(error::from_agent(&error)));
            }
            ReplyTo::Row(id) if is_passing(&error) => {
                self.wait_because_of(&error);
                self.intake.give_back(&[id]);
            }
            ReplyTo::Row(id) => {
                let reason = error.to_string();
                self.intake
                    .settle(&[id], InputOutcome::Refused { reason })
                    .await;
            }
            ReplyTo::Nobody => {}
        }
    }

    /// Settles the rows of what a run has recorded or refused.
    pub(crate) async fn settle_recorded(&mut self, progress: &RunProgress) {
        let RecordedParts { rows, decisions } = progress.take_recorded();
        let mut recorded = rows;
        for decided in decisions {
            let rows = self
                .shared
                .approver
                .take_decided(&decided.session, &decided.id);
            recorded.extend(rows.into_iter().map(|id| (id, decided.seq)));
        }
        let refused = self.shared.queue.take_refused_rows();
        if !refused.is_empty() {
            let reason = "a hook refused the message".to_owned();
            let outcome = InputOutcome::Refused { reason };
            self.intake.settle(&refused, outcome).await;
        }
        for id in self.shared.queue.take_removed_rows() {
            match self.shared.queue.recorded_entry(&id) {
                Some(seq) => recorded.push((id, seq)),
                None => self.intake.give_back(&[id]),
            }
        }
        let outcomes = recorded
            .into_iter()
            .map(|(id, seq)| (id, InputOutcome::Recorded { seq }));
        self.intake.settle_each(outcomes).await;
    }

    /// A run has ended with the entry `end`. Settles the command that continued it, if that is a row,
    /// and the commands that reached it. The row of an input is settled with its own entry.
    pub(crate) async fn on_run_ended(&mut self, outcome: RunOutcome, end: u64, reply: ReplyTo) {
        let mut done = std::mem::take(&mut self.cancellations);
        done.extend(reply.row());
        let recorded = InputOutcome::Recorded { seq: end };
        self.intake.settle(&done, recorded).await;
        self.return_answers().await;
        match self.options.queue {
            QueuePolicy::Continue => {}
            QueuePolicy::HoldIfStopped => {
                let is_stopped = outcome != RunOutcome::Completed;
                self.waiting = match is_stopped && !self.shared.queue.has_interrupt() {
                    true => WaitingInput::Held,
                    false => WaitingInput::BeginsRun,
                };
            }
            QueuePolicy::Leave => {
                self.forget_taken_inputs().await;
                if self.own_inputs.is_empty() {
                    self.waiting = WaitingInput::LeftToOthers;
                    self.release_rows();
                }
            }
        }
    }

    /// Takes back what reached a run that did not end: it is tried again.
    pub(crate) async fn take_back_commands(&mut self) {
        let cancellations = std::mem::take(&mut self.cancellations);
        self.intake.give_back(&cancellations);
        self.return_answers().await;
    }

    /// Forgets the inputs of this process's clients that do not wait any more.
    async fn forget_taken_inputs(&mut self) {
        for id in std::mem::take(&mut self.own_inputs) {
            let status = self.shared.link.inbox.status(&id).await;
            if matches!(status, Ok(Some(InputStatus::Waiting)) | Err(_)) {
                self.own_inputs.insert(id);
            }
        }
    }

    /// Answers that no decision came of are checked again now that the session is idle.
    async fn return_answers(&mut self) {
        for SentAnswers {
            mut answer, row, ..
        } in self.shared.approver.take_undecided()
        {
            answer.replies.retain(|reply| reply.answer.kind().is_some());
            match answer.replies.is_empty() {
                // The person wants the questions to wait.
                true => self.intake.settle(&[row], InputOutcome::Done).await,
                false => self.pending.push_back(PendingCommand {
                    command: Command::Answer(answer),
                    reply: ReplyTo::Row(row),
                }),
            }
        }
    }

    /// A run could not begin or go on. What it was given is not lost: it waits in the inbox if
    /// another process runs the session.
    pub(crate) async fn on_failed_run(
        &mut self,
        error: AgentError,
        (rows, command): (Vec<InputId>, Option<Command>),
        reply: ReplyTo,
        progress: &RunProgress,
    ) {
        let progress_run = progress.unreported_run();
        if let AgentError::InputsRecorded(recorded) = &error {
            let recorded = recorded.iter().cloned();
            let outcomes = recorded.map(|(id, seq)| (id, InputOutcome::Recorded { seq }));
            self.intake.settle_each(outcomes).await;
            self.intake.give_back(&rows);
            self.rows_due = Instant::now();
            return;
        }
        self.tell_failed_run(&error, progress_run);
        match (progress.take_receipt(), command) {
            (Some(receipt), Some(command)) if is_locked(&error) => {
                self.queue_for_holder(command, ReplyTo::Client(receipt))
                    .await;
            }
            (Some(receipt), _) => {
                let _ = receipt.send(Err(error::from_agent(&error)));
            }
            (None, _) if rows.is_empty() => {
                if is_passing(&error) {
                    self.wait_because_of(&error);
                }
                self.fail(reply, error).await;
            }
            (None, _) if is_passing(&error) => {
                self.wait_because_of(&error);
                self.intake.give_back(&rows);
            }
            (None, _) => {
                let reason = error.to_string();
                self.intake
                    .settle(&rows, InputOutcome::Refused { reason })
                    .await;
                self.fail(reply, error).await;
            }
        }
    }

    /// Tells subscribers that a run which had begun failed, if the run itself did not: its client has
    /// its receipt already.
    pub(crate) fn tell_failed_run(&self, error: &AgentError, run: Option<RunId>) {
        let Some(run) = run else {
            return;
        };
        self.shared.feed.on_event(&Event {
            seq: 0,
            entry: 0,
            run,
            child: None,
            source: Vec::new(),
            kind: EventKind::RunEnded {
                outcome: RunOutcome::Failed,
                reason: Some(error.to_string()),
                text: String::new(),
                steps: 0,
                usage: Usage::default(),
                cost: None,
                value: None,
                waiting: Vec::new(),
            },
        });
    }
}
