//! The desk of an actor: what reaches the actor while its session runs, and what waits for it.

use crate::actor::SessionOptions;
use crate::approver::{HostApprover, SentAnswers};
use crate::error::{self, is_locked, is_passing};
use crate::feed::Feed;
use crate::intake::{self, Intake, TakenRow};
use crate::link::{LinkListener, LinkMessage, Received, SessionLink};
use crate::reply::{ActorCommands, ActorMessage, PendingCommand, ReplyTo, RunReach};
use crate::run_progress::{RecordedParts, RunProgress};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{
    AgentError, ApprovalPolicy, IncomingMessage, MessageQueue, RunOptions, RunReport, SendOutcome,
};
use stead_core::{
    AnswerPolicy, ClientError, Command, InputCommand, InputId, QueueMode, Receipt, SessionChange,
    SetEntry,
};
use stead_store::InputOutcome;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the inbox is looked at while it may have rows and nobody tells.
const ROWS_POLL: Duration = Duration::from_millis(500);
/// How often a session that another process runs is tried.
const CONTENDED_POLL: Duration = Duration::from_millis(200);
/// How often an idle actor looks at the inbox: the hint of a row may be lost, and its sender dead.
const IDLE_POLL: Duration = Duration::from_secs(5);
/// How often a command is tried whose store or model is unavailable.
const UNAVAILABLE_POLL: Duration = Duration::from_secs(2);

/// What of an actor is reachable while its session runs.
pub(crate) struct Desk {
    pub(crate) link: Arc<SessionLink>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) queue: Arc<MessageQueue>,
    pub(crate) approver: Arc<HostApprover>,
    pub(crate) intake: Intake,
    pub(crate) options: SessionOptions,
    pub(crate) commands: mpsc::Receiver<ActorMessage>,
    /// The sending end of `commands`, while somebody holds a handle.
    pub(crate) own_commands: mpsc::WeakSender<ActorMessage>,
    /// The messages of other processes; none if the bus does not work.
    pub(crate) remote: Option<LinkListener>,
    pub(crate) pending: VecDeque<PendingCommand>,
    /// When the inbox is looked at next.
    pub(crate) rows_due: Instant,
    /// Whether another process runs the session, or it cannot run now, while rows wait.
    pub(crate) is_contended: bool,
    /// The rows of cancellations of the run that is going on.
    cancellations: Vec<InputId>,
    /// Whom to tell when the session is finished, and why it is.
    pub(crate) finishing: Option<(&'static str, oneshot::Sender<Result<(), AgentError>>)>,
    pub(crate) has_handles: bool,
    /// Cancelled when the host closes.
    pub(crate) closing: CancellationToken,
}

impl Desk {
    pub(crate) fn new(
        (link, feed): (Arc<SessionLink>, Arc<Feed>),
        (queue, approver): (Arc<MessageQueue>, Arc<HostApprover>),
        options: SessionOptions,
        commands: ActorCommands,
        closing: CancellationToken,
    ) -> Self {
        Self {
            intake: Intake::new(link.clone()),
            link,
            feed,
            queue,
            approver,
            options,
            commands: commands.receiver,
            own_commands: commands.own,
            remote: None,
            pending: VecDeque::new(),
            rows_due: Instant::now(),
            is_contended: false,
            cancellations: Vec::new(),
            finishing: None,
            has_handles: true,
            closing,
        }
    }

    /// The options of a run that listens to this actor.
    pub(crate) fn run_options(
        &self,
        answers: AnswerPolicy,
        changes: &[SessionChange],
    ) -> RunOptions {
        let settings = changes.iter().map(|change| SetEntry {
            change: change.clone(),
            by: "client".to_owned(),
        });
        RunOptions {
            listener: self.feed.listener(),
            cancel: CancellationToken::new(),
            approvals: match answers {
                AnswerPolicy::ApproveAll => ApprovalPolicy::ApproveAll,
                AnswerPolicy::DenyAll => ApprovalPolicy::DenyAll,
                AnswerPolicy::Ask if self.approver.has_people() => {
                    ApprovalPolicy::Ask(self.approver.clone())
                }
                AnswerPolicy::Ask => ApprovalPolicy::Park,
            },
            settings: settings.collect(),
            inbox: Some(self.queue.clone()),
            background_tasks: self.options.background_tasks,
            ..RunOptions::default()
        }
    }

    /// Whether nobody holds a handle and nothing is left to do. Rows of a session that another
    /// process runs are durable, so a host that closes does not wait for them.
    pub(crate) fn is_done(&self) -> bool {
        let is_free = !self.is_contended || self.closing.is_cancelled();
        !self.has_handles && self.queue.is_empty() && is_free
    }

    /// When an idle actor looks at the inbox next.
    pub(crate) fn look_due(&self) -> Instant {
        match self.is_contended || self.intake.has_unsettled() {
            true => self.rows_due,
            false => self.rows_due + IDLE_POLL,
        }
    }

    pub(crate) fn on_received(&mut self, received: Received) {
        match received {
            Received::Message(LinkMessage::Hello) => self.feed.hello(),
            Received::Message(LinkMessage::Inbox) | Received::Lost => {
                self.rows_due = Instant::now();
            }
            Received::Message(
                LinkMessage::WhoListens | LinkMessage::Entries { .. } | LinkMessage::Live { .. },
            ) => {}
        }
    }

    pub(crate) fn on_idle_message(&mut self, message: ActorMessage) {
        match message {
            ActorMessage::Command { command, reply } => self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Client(reply),
            }),
            ActorMessage::Run { command, reply } => self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Caller(reply),
            }),
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Carries out a message while a run goes on, or waits for the session. Until the run has
    /// begun, another process may hold the session, and rows are left to it.
    pub(crate) async fn on_message_during_run(&mut self, message: ActorMessage, run: &RunReach) {
        match message {
            ActorMessage::Command {
                command: Command::Cancel { .. },
                reply,
            } if run.progress.has_begun() => {
                run.cancel.cancel();
                let input_id = InputId::fresh();
                let _ = reply.send(Ok(Receipt {
                    input_id,
                    seq: None,
                }));
            }
            ActorMessage::Command { command, reply } => {
                let inserted = intake::insert(&self.link, &command, None).await;
                let receipt = inserted.map(|(input_id, _)| Receipt {
                    input_id,
                    seq: None,
                });
                let _ = reply.send(receipt);
                self.rows_due = Instant::now();
            }
            ActorMessage::Run { command, reply } => self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Caller(reply),
            }),
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Takes the rows that wait, and reschedules the next look.
    async fn take_rows(&mut self) -> Vec<TakenRow> {
        let pause = match self.is_contended {
            true => CONTENDED_POLL,
            false => ROWS_POLL,
        };
        self.rows_due = Instant::now() + pause;
        match self.intake.take().await {
            Ok(rows) => {
                self.is_contended = false;
                rows
            }
            Err(error) => {
                tracing::warn!(session = %self.link.session, %error, "the inbox cannot be read now");
                self.is_contended = true;
                Vec::new()
            }
        }
    }

    pub(crate) async fn take_rows_when_idle(&mut self) {
        if Instant::now() < self.rows_due {
            return;
        }
        let rows = self.take_rows().await;
        for TakenRow { id, command } in rows {
            match command {
                Command::Input(input) if is_plain(&input) => {
                    self.enqueue(id, input.content, input.origin, input.mode)
                        .await;
                }
                Command::Steer { content, origin } => {
                    self.enqueue(id, content, origin, Some(QueueMode::Steer))
                        .await;
                }
                other @ (Command::Input(_)
                | Command::Answer { .. }
                | Command::Cancel { .. }
                | Command::Set { .. }
                | Command::Compact { .. }
                | Command::Rewind { .. }
                | Command::Fork { .. }
                | Command::Undo { .. }
                | Command::Resume { .. }
                | Command::Wake) => self.pending.push_back(PendingCommand {
                    command: other,
                    reply: ReplyTo::Row(id),
                }),
            }
        }
    }

    /// Takes rows while the session runs: messages and answers reach the run, the rest waits.
    pub(crate) async fn take_rows_during_run(&mut self, run: &RunReach) {
        for TakenRow { id, command } in self.take_rows().await {
            match command {
                Command::Input(input) if is_plain(&input) => {
                    self.enqueue(id, input.content, input.origin, input.mode)
                        .await;
                }
                Command::Steer { content, origin } => {
                    self.enqueue(id, content, origin, Some(QueueMode::Steer))
                        .await;
                }
                Command::Answer { replies, by } => {
                    let row = id.clone();
                    let sent = SentAnswers { replies, by, row };
                    if let Err(error) = self.approver.reply(sent) {
                        let reason = error.to_string();
                        let outcome = InputOutcome::Refused { reason };
                        self.intake.settle(&[id], outcome).await;
                    }
                }
                Command::Cancel { .. } => {
                    run.cancel.cancel();
                    self.cancellations.push(id);
                }
                other @ (Command::Input(_)
                | Command::Set { .. }
                | Command::Compact { .. }
                | Command::Rewind { .. }
                | Command::Fork { .. }
                | Command::Undo { .. }
                | Command::Resume { .. }
                | Command::Wake) => self.pending.push_back(PendingCommand {
                    command: other,
                    reply: ReplyTo::Row(id),
                }),
            }
        }
    }

    async fn enqueue(
        &mut self,
        id: InputId,
        content: Vec<stead_core::Block>,
        origin: stead_core::Origin,
        mode: Option<QueueMode>,
    ) {
        if let Some(seq) = self.queue.recorded_entry(&id) {
            // Another process recorded it and died before it could say so.
            let outcome = InputOutcome::Recorded { seq };
            return self.intake.settle(&[id], outcome).await;
        }
        let message = IncomingMessage {
            content,
            origin: Some(origin),
            rows: vec![id.clone()],
            mode,
        };
        match self.queue.send(message) {
            SendOutcome::Queued | SendOutcome::ReplacedOldest => {}
            SendOutcome::Refused => {
                let reason = "the queue of the session is full, or the message is empty".to_owned();
                self.intake
                    .settle(&[id], InputOutcome::Refused { reason })
                    .await;
            }
        }
    }

    /// Settles the rows of what a run has recorded or refused.
    pub(crate) async fn settle_recorded(&mut self, progress: &RunProgress) {
        let RecordedParts { rows, decisions } = progress.take_recorded();
        let mut recorded = rows;
        for (call, seq) in decisions {
            let rows = self.approver.take_decided(&call);
            recorded.extend(rows.into_iter().map(|id| (id, seq)));
        }
        let refused = self.queue.take_refused_rows();
        if !refused.is_empty() {
            let reason = "a hook refused the message".to_owned();
            let outcome = InputOutcome::Refused { reason };
            self.intake.settle(&refused, outcome).await;
        }
        for id in self.queue.take_removed_rows() {
            match self.queue.recorded_entry(&id) {
                Some(seq) => recorded.push((id, seq)),
                None => self.intake.give_back(&[id]),
            }
        }
        let outcomes = recorded
            .into_iter()
            .map(|(id, seq)| (id, InputOutcome::Recorded { seq }));
        self.intake.settle_each(outcomes).await;
    }

    /// Settles the commands that reached a run which has ended; `end` is the last entry.
    pub(crate) async fn on_run_ended(&mut self, end: u64) {
        let cancellations = std::mem::take(&mut self.cancellations);
        let outcome = InputOutcome::Recorded { seq: end };
        self.intake.settle(&cancellations, outcome).await;
        self.return_answers();
    }

    /// Takes back what reached a run that did not end: it is tried again.
    pub(crate) fn on_run_failed(&mut self) {
        let cancellations = std::mem::take(&mut self.cancellations);
        self.intake.give_back(&cancellations);
        self.return_answers();
    }

    /// Answers that no decision came of are checked again now that the session is idle.
    fn return_answers(&mut self) {
        for SentAnswers { replies, by, row } in self.approver.take_undecided() {
            self.pending.push_back(PendingCommand {
                command: Command::Answer { replies, by },
                reply: ReplyTo::Row(row),
            });
        }
    }

    /// Leaves the rows that wait here to the process that runs the session.
    fn release_rows(&mut self) {
        let queued = self.queue.take_rows();
        self.intake.give_back(&queued);
        let (rows, rest): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|pending| matches!(pending.reply, ReplyTo::Row(_)));
        self.pending = rest;
        let released: Vec<InputId> = rows.iter().filter_map(|row| row.reply.row()).collect();
        self.intake.give_back(&released);
    }

    pub(crate) async fn acknowledge(&mut self, reply: ReplyTo, seq: u64) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Ok(Receipt {
                    input_id: InputId::fresh(),
                    seq: Some(seq),
                }));
            }
            ReplyTo::Row(id) => {
                self.intake
                    .settle(&[id], InputOutcome::Recorded { seq })
                    .await
            }
            // There is no run to report.
            ReplyTo::Caller(_) | ReplyTo::Nobody => {}
        }
    }

    /// Leaves a command to the process that runs the session. A caller that waits for a report is
    /// told that the session is `locked`.
    pub(crate) async fn queue_for_holder(
        &mut self,
        command: Command,
        reply: ReplyTo,
        locked: AgentError,
    ) {
        self.wait_for_holder();
        match reply {
            ReplyTo::Client(sender) => {
                let inserted = intake::insert(&self.link, &command, None).await;
                let _ = sender.send(inserted.map(|(input_id, _)| Receipt {
                    input_id,
                    seq: None,
                }));
            }
            ReplyTo::Row(id) => self.intake.give_back(&[id]),
            ReplyTo::Caller(sender) => {
                let _ = sender.send(Err(locked));
            }
            ReplyTo::Nobody => {}
        }
    }

    /// Another process runs the session: it is tried again later, and takes the rows meanwhile.
    pub(crate) fn wait_for_holder(&mut self) {
        self.is_contended = true;
        self.rows_due = Instant::now() + CONTENDED_POLL;
        self.release_rows();
    }

    /// A command cannot be carried out now.
    fn wait_because_of(&mut self, error: &AgentError) {
        self.wait_for_holder();
        if !is_locked(error) {
            self.rows_due = Instant::now() + UNAVAILABLE_POLL;
        }
    }

    /// Refuses a command; `error` is for a caller that waits for a report.
    pub(crate) async fn refuse(&mut self, reply: ReplyTo, reason: &str, error: AgentError) {
        let message = reason.to_owned();
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Err(ClientError::Refused {
                    message,
                    hint: None,
                }));
            }
            ReplyTo::Row(id) => {
                let outcome = InputOutcome::Refused { reason: message };
                self.intake.settle(&[id], outcome).await;
            }
            ReplyTo::Caller(sender) => {
                let _ = sender.send(Err(error));
            }
            ReplyTo::Nobody => {}
        }
    }

    pub(crate) async fn fail(&mut self, reply: ReplyTo, error: AgentError) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Err(error::from_agent(&error)));
            }
            ReplyTo::Caller(sender) => {
                let _ = sender.send(Err(error));
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

    /// Reports a run that ended with the entry `end` to whoever began it.
    pub(crate) async fn report(&mut self, reply: ReplyTo, report: RunReport, end: u64) {
        match reply {
            ReplyTo::Caller(sender) => {
                let _ = sender.send(Ok(report));
            }
            // The row of an input is settled with its entry; one that continued a run is done now.
            ReplyTo::Row(id) => {
                let outcome = InputOutcome::Recorded { seq: end };
                self.intake.settle(&[id], outcome).await;
            }
            ReplyTo::Client(_) | ReplyTo::Nobody => {}
        }
    }

    /// A run could not begin or go on. What it was given is not lost: it waits in the inbox if
    /// another process runs the session.
    pub(crate) async fn on_failed_start(
        &mut self,
        error: AgentError,
        (rows, command): (Vec<InputId>, Option<Command>),
        reply: ReplyTo,
        progress: &RunProgress,
    ) {
        if let AgentError::InputsRecorded(recorded) = &error {
            let recorded = recorded.iter().cloned();
            let outcomes = recorded.map(|(id, seq)| (id, InputOutcome::Recorded { seq }));
            self.intake.settle_each(outcomes).await;
            self.intake.give_back(&rows);
            self.rows_due = Instant::now();
            return;
        }
        match (progress.take_receipt(), command) {
            (Some(receipt), Some(command)) if is_locked(&error) => {
                self.queue_for_holder(command, ReplyTo::Client(receipt), error)
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
}

/// Whether an input has no options of its own and may be joined with others.
fn is_plain(input: &InputCommand) -> bool {
    input.changes.is_empty() && !input.pinned && input.answers == AnswerPolicy::Ask
}

/// Waits for the next message of another process; forever if there is no bus.
pub(crate) async fn receive(remote: &mut Option<LinkListener>) -> Received {
    match remote {
        Some(listener) => listener.recv().await,
        None => std::future::pending().await,
    }
}
