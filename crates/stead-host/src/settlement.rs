//! Part of the mailbox of a session: telling clients and the inbox what became of commands.
//!
//! Effects: in-process state, the clock, randomness, the store (writes).

use crate::error::{self, is_locked, is_passing};
use crate::intake;
use crate::link::SessionLink;
use crate::mailbox::{CONTENDED_POLL, Mailbox};
use crate::reply::ReplyTo;
use crate::run_progress::RunProgress;
use std::time::Duration;
use stead_agent::AgentError;
use stead_core::{
    ClientError, Command, Event, EventKind, InputId, Receipt, RunId, RunOutcome, SessionId, Usage,
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
                let _ = sender.send(Ok(Receipt::waiting(InputId::fresh())));
            }
            ReplyTo::Row(id) => self.intake.settle(&[id], InputOutcome::Done).await,
            ReplyTo::Nobody => {}
        }
    }

    /// Leaves a command to the process that runs the session.
    pub(crate) async fn queue_for_holder(&mut self, command: Command, reply: ReplyTo) {
        self.wait_for_holder();
        match reply {
            ReplyTo::Client(sender) => self.insert(&command, sender).await,
            ReplyTo::Row(id) => self.intake.give_back(&[id]),
            ReplyTo::Nobody => {}
        }
        self.rows_due = Instant::now() + CONTENDED_POLL;
    }

    /// Leaves answers to questions of a subagent to the process that runs `root`, the session that
    /// the subagent works for.
    pub(crate) async fn queue_for_root(
        &mut self,
        root: (SessionId, &SessionLink),
        command: Command,
        reply: ReplyTo,
    ) {
        let (id, link) = root;
        let inserted = intake::insert(link, &command, None).await;
        match (reply, inserted) {
            (ReplyTo::Client(sender), Ok((input_id, _))) => {
                let _ = sender.send(Ok(Receipt {
                    inbox_of: Some(id),
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
        self.wait_for_holder();
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

    /// A run that a command began or continued has ended with the entry `end`. The row of an input
    /// is settled with its entry; one that continued a run is done now.
    pub(crate) async fn settle_run(&mut self, reply: ReplyTo, end: u64) {
        if let ReplyTo::Row(id) = reply {
            let outcome = InputOutcome::Recorded { seq: end };
            self.intake.settle(&[id], outcome).await;
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
        self.feed.on_event(&Event {
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
                waiting: Vec::new(),
            },
        });
    }
}
