//! Sending commands of `stead chat` to the session, and following its runs.
//!
//! Effects: the clock, workspace files (reads), the journal (reads).

use super::super::state::{ChatPhase, VIA_CHAT};
use super::super::transcript::Tone;
use super::App;
use super::sessions::session_info;
use crate::cli::error::with_hint;
use std::time::Instant;
use stead::agent::MemoryWorker;
use stead::core::{
    AnswerCommand, ApprovalReply, ClientError, Command, Entry, Event, EventKind, InputCommand,
    Origin, Receipt, RunOutcome, SessionEvent, SessionEventBody, SessionId, SpendAmount,
};
use stead::workspace::{DropPolicy, QueueSettings};
use tokio::task::JoinError;

/// What a command that was sent is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendPurpose {
    /// It begins or continues a run.
    Begin,
    /// It reaches the run that is going on.
    Reach,
    /// It compacts the context.
    Compact,
}

/// A command that was acknowledged or refused.
pub(super) struct SentCommand {
    purpose: SendPurpose,
    receipt: Result<Receipt, ClientError>,
}

impl App<'_> {
    /// Sends a command in the background: hooks may take their time before it is acknowledged.
    pub(super) fn send(&mut self, purpose: SendPurpose, command: Command) {
        let session = self.session.clone();
        self.sends.spawn(async move {
            let receipt = session.send(command).await;
            SentCommand { purpose, receipt }
        });
    }

    /// Begins a run with an input.
    pub(super) async fn send_input(&mut self, text: String) {
        self.started = Instant::now();
        let command = self.input(&text).await;
        self.send(SendPurpose::Begin, command);
    }

    /// Sends a message to the active run, and shows how it is handled.
    pub(super) async fn send_to_run(&mut self, text: String) {
        let QueueSettings { cap, drop, .. } = self.chat.queue.settings();
        if self.chat.queue.len() >= cap as usize {
            let full = |what: &str| format!("the queue is full (queue.cap: {cap}): {what}");
            match drop {
                DropPolicy::New => {
                    self.chat.note(Tone::Warning, full("this one was refused"));
                    return self.chat.restore_input(&text);
                }
                DropPolicy::Summarize => self.chat.note(
                    Tone::Warning,
                    full("the oldest was dropped, and one line of it is kept"),
                ),
                DropPolicy::Old => self
                    .chat
                    .note(Tone::Warning, full("the oldest was dropped")),
            }
        }
        let command = self.input(&text).await;
        self.send(SendPurpose::Reach, command);
    }

    /// Returns the command that gives the session an input. Settings that were changed for the next
    /// run go with it.
    async fn input(&mut self, text: &str) -> Command {
        let changes = match self.chat.phase {
            ChatPhase::Running(_) if self.runs_here() => Vec::new(),
            ChatPhase::Running(_) | ChatPhase::Idle => std::mem::take(&mut self.session_changes),
        };
        let prepared = self.view.input(text).await;
        for reason in prepared.not_attached {
            self.chat.note(Tone::Warning, reason);
        }
        let results = std::mem::take(&mut self.own_results);
        Command::Input(InputCommand {
            origin: Origin {
                via: Some(VIA_CHAT.to_owned()),
                ..Origin::default()
            },
            changes,
            ..InputCommand::new([prepared.blocks, results].concat())
        })
    }

    /// Resumes the last run, with `raise` more to spend.
    pub(super) fn resume(&mut self, raise: SpendAmount) {
        self.started = Instant::now();
        let command = Command::Resume {
            raise,
            answers: self.args.turn.approve.answers(),
            changes: std::mem::take(&mut self.session_changes),
        };
        self.send(SendPurpose::Begin, command);
    }

    /// Answers a question of the session, or of a subagent of it.
    pub(super) fn answer(&mut self, asking: SessionId, reply: ApprovalReply) {
        let is_own = asking == *self.view.id();
        let command = AnswerCommand {
            replies: vec![reply],
            by: self.by(),
            subagent: (!is_own).then_some(asking),
            ..AnswerCommand::default()
        };
        self.send(SendPurpose::Reach, Command::Answer(command));
    }

    /// Cancels the run on the screen; whichever run is going on if it is not known yet which that is.
    pub(super) fn cancel(&mut self) {
        let command = Command::Cancel {
            run: self.run.clone(),
            by: self.by(),
        };
        self.send(SendPurpose::Reach, command);
    }

    /// Whether the run on the screen is one of this process.
    pub(super) fn runs_here(&self) -> bool {
        self.session.is_running()
    }

    pub(super) async fn on_sent(&mut self, sent: Result<SentCommand, JoinError>) {
        let Ok(SentCommand { purpose, receipt }) = sent else {
            return;
        };
        match (purpose, receipt) {
            (SendPurpose::Begin, Ok(receipt)) if receipt.run.is_none() => {
                self.waiting_inputs.push(receipt.input_id);
                self.chat.phase = ChatPhase::Idle;
                self.chat.note(
                    Tone::Info,
                    "another process runs the session; the message waits there for its turn",
                );
            }
            (SendPurpose::Begin, Ok(_)) => {}
            (SendPurpose::Reach, Ok(receipt)) => self.waiting_inputs.push(receipt.input_id),
            (SendPurpose::Compact, Ok(_)) => self.end_run(Some(RunOutcome::Completed)).await,
            // The run ended before it could be reached.
            (SendPurpose::Reach, Err(ClientError::Refused { .. })) => {}
            (purpose, Err(error)) => {
                self.chat.unrecorded.clear();
                self.chat.note(Tone::Error, with_hint(&error, error.hint()));
                match purpose {
                    SendPurpose::Begin | SendPurpose::Compact => self.end_run(None).await,
                    SendPurpose::Reach => {}
                }
            }
        }
    }

    pub(super) async fn on_session_event(&mut self, event: SessionEvent) {
        match &event.body {
            SessionEventBody::Live(event) => self.on_live(event).await,
            SessionEventBody::Entry(line) => {
                // What cannot be folded is reported when the session is opened.
                let _ = self.view.observe(line);
                self.chat.on_entry(line);
                match &line.entry {
                    Entry::Rewind(_) => self.chat.show_session(self.view.state()),
                    Entry::End(end) if !self.runs_here() => {
                        // Live events of another process may be lost.
                        if let ChatPhase::Running(_) = self.chat.phase {
                            self.chat.show_run_end(end.outcome, end.reason.as_deref());
                            self.end_run(Some(end.outcome)).await;
                        }
                    }
                    Entry::Set(_) | Entry::Pin(_) | Entry::Compaction(_) => self.refresh_info(),
                    Entry::Session(_)
                    | Entry::User(_)
                    | Entry::Steer(_)
                    | Entry::Model(_)
                    | Entry::Call(_)
                    | Entry::Result(_)
                    | Entry::Ask(_)
                    | Entry::Decision(_)
                    | Entry::Notice(_)
                    | Entry::Hook(_)
                    | Entry::Sent(_)
                    | Entry::End(_) => {}
                }
            }
        }
    }

    async fn on_live(&mut self, event: &Event) {
        let is_own = event.source.is_empty();
        let ended = match &event.kind {
            EventKind::RunEnded { outcome, .. } if is_own => Some(*outcome),
            _ => None,
        };
        if self.chat.phase == ChatPhase::Idle {
            match (ended, is_own) {
                // The entry of its end was shown before.
                (Some(_), _) => return,
                // A run that is continued has no entry to begin with.
                (None, true) => {
                    self.started = Instant::now();
                    self.chat.enter_running();
                }
                (None, false) => {}
            }
        }
        if is_own && self.run.as_ref() != Some(&event.run) {
            self.run = Some(event.run.clone());
        }
        self.chat.on_event(event);
        if ended.is_some() {
            self.end_run(ended).await;
        }
    }

    /// The run on the screen has ended.
    async fn end_run(&mut self, outcome: Option<RunOutcome>) {
        self.run = None;
        self.memory.iter().for_each(MemoryWorker::wake);
        self.refresh_info();
        let inputs = std::mem::take(&mut self.waiting_inputs);
        if self.chat.on_run_ended(outcome) {
            self.chat.restore_queued_input();
            // Those that were recorded meanwhile stay.
            let _ = self.session.send(Command::Withdraw { inputs }).await;
        }
    }

    /// Shows what the journal says of the session now.
    pub(super) fn refresh_info(&mut self) {
        let model = self.chat.info.model.clone();
        self.chat.info = session_info(&self.agent, &self.view);
        self.chat.info.model = model;
        self.apply_flags();
    }
}
