//! The mailbox of an actor: commands of clients, rows of the durable inbox, messages of other
//! processes, and what waits until the session is idle.
//!
//! Effects: in-process state, the clock, randomness, the store (writes).

use crate::actor::{QueuePolicy, SessionOptions};
use crate::approver::{HostApprover, SentAnswers};
use crate::disposition::{Disposition, SessionPhase, disposition};
use crate::feed::{Feed, HELLO_LASTS};
use crate::intake::{self, Intake, TakenRow};
use crate::link::{LinkListener, LinkMessage, Received, SessionLink};
use crate::reply::{ActorCommands, ActorMessage, PendingCommand, ReplyTo, RunReach};
use crate::run_progress::{ReceiptSender, RecordedParts, RunProgress};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use stead_agent::SendOutcome;
use stead_agent::{AgentError, ApprovalPolicy, IncomingMessage, MessageQueue, RunOptions};
use stead_core::{
    AnswerCommand, AnswerPolicy, Command, InputId, InputStatus, Receipt, RunOutcome, SetEntry,
};
use stead_store::InputOutcome;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the inbox is looked at while it may have rows and nobody tells.
const ROWS_POLL: Duration = Duration::from_millis(500);
/// How often a session that another process runs is tried.
pub(crate) const CONTENDED_POLL: Duration = Duration::from_millis(200);
/// How often an idle actor looks at the inbox: the hint of a row may be lost, and its sender dead.
const IDLE_POLL: Duration = Duration::from_secs(5);

/// What reaches an actor, and what of it is reachable while its session runs.
pub(crate) struct Mailbox {
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
    /// Whether messages wait for the next command.
    is_held: bool,
    /// Whether rows are left to other processes until the next command.
    leaves_rows: bool,
    /// The rows that clients of this process made and that may still wait.
    pub(crate) own_inputs: BTreeSet<InputId>,
    /// The rows of cancellations of the run that is going on.
    cancellations: Vec<InputId>,
    /// Whom to tell when the session is finished, and why it is.
    pub(crate) finishing: Option<(&'static str, oneshot::Sender<Result<(), AgentError>>)>,
    pub(crate) has_handles: bool,
    /// Cancelled when the host closes.
    pub(crate) closing: CancellationToken,
}

impl Mailbox {
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
            is_held: options.queue == QueuePolicy::HoldIfStopped,
            leaves_rows: false,
            own_inputs: BTreeSet::new(),
            cancellations: Vec::new(),
            finishing: None,
            has_handles: true,
            closing,
        }
    }

    /// The options of a run that listens to this actor.
    pub(crate) fn run_options(&self, answers: AnswerPolicy, settings: Vec<SetEntry>) -> RunOptions {
        let answers = match answers {
            AnswerPolicy::Ask => self.options.answers,
            AnswerPolicy::ApproveAll | AnswerPolicy::DenyAll => answers,
        };
        RunOptions {
            cancel: CancellationToken::new(),
            approvals: match answers {
                AnswerPolicy::ApproveAll => ApprovalPolicy::ApproveAll,
                AnswerPolicy::DenyAll => ApprovalPolicy::DenyAll,
                AnswerPolicy::Ask => ApprovalPolicy::Ask(self.approver.clone()),
            },
            settings,
            queue: Some(self.queue.clone()),
            background_tasks: self.options.background_tasks,
            ..RunOptions::default()
        }
    }

    /// Whether messages wait that a run may begin with now.
    pub(crate) fn has_input(&self) -> bool {
        !self.queue.is_empty() && !self.is_contended && !self.is_held
    }

    /// Whether nobody holds a handle and nothing is left to do. Rows are durable: a host that closes
    /// does not wait for those of a session that another process runs, nor for those that are held.
    pub(crate) fn is_done(&self) -> bool {
        let is_free = !self.is_contended || self.closing.is_cancelled();
        !self.has_handles && (self.queue.is_empty() || self.is_held) && is_free
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
            Received::Message(LinkMessage::Hello { answers }) => {
                self.feed.hello();
                if answers {
                    self.approver.attach_elsewhere(Instant::now() + HELLO_LASTS);
                }
            }
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
            ActorMessage::Command { command, reply } => {
                self.is_held = false;
                self.leaves_rows = false;
                self.pending.push_back(PendingCommand {
                    command,
                    reply: ReplyTo::Client(reply),
                });
            }
            ActorMessage::Rows => {
                self.leaves_rows = false;
                self.rows_due = Instant::now();
            }
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Whether rows wait in the inbox.
    pub(crate) async fn has_rows(&self) -> bool {
        let waiting = self.link.inbox.waiting(1).await;
        waiting.is_ok_and(|rows| !rows.is_empty())
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
                let receipt = Receipt {
                    run: run.progress.run(),
                    ..Receipt::waiting(InputId::fresh())
                };
                let _ = reply.send(Ok(receipt));
            }
            ActorMessage::Command {
                command: Command::Withdraw { inputs },
                reply,
            } if run.progress.has_begun() => {
                self.withdraw(&inputs).await;
                let _ = reply.send(Ok(Receipt::waiting(InputId::fresh())));
            }
            ActorMessage::Command { command, reply } => self.insert(&command, reply).await,
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Carries out a message while the context is compacted: a cancellation stops that, the rest
    /// waits.
    pub(crate) async fn on_message_during_compaction(
        &mut self,
        message: ActorMessage,
        cancel: &CancellationToken,
    ) {
        match message {
            ActorMessage::Command {
                command: Command::Cancel { .. },
                reply,
            } => {
                cancel.cancel();
                let _ = reply.send(Ok(Receipt::waiting(InputId::fresh())));
            }
            ActorMessage::Command { command, reply } => self.insert(&command, reply).await,
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Puts a command into the inbox, from which it is taken when its time comes.
    pub(crate) async fn insert(&mut self, command: &Command, reply: ReceiptSender) {
        let inserted = intake::insert(&self.link, command, None).await;
        if let Ok((id, _)) = &inserted {
            self.own_inputs.insert(id.clone());
        }
        let _ = reply.send(inserted.map(|(input_id, _)| Receipt::waiting(input_id)));
        self.rows_due = Instant::now();
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

    /// Takes the rows of an idle session, if that is due.
    pub(crate) async fn take_rows_when_idle(&mut self) {
        if self.leaves_rows {
            self.rows_due = Instant::now() + IDLE_POLL;
            return;
        }
        for row in self.take_rows().await {
            self.sort(row, None).await;
        }
    }

    /// Takes rows while the session runs: messages and answers reach the run, the rest waits.
    pub(crate) async fn take_rows_during_run(&mut self, run: &RunReach) {
        for row in self.take_rows().await {
            self.sort(row, Some(run)).await;
        }
    }

    /// Puts the command of a row where it belongs.
    async fn sort(&mut self, TakenRow { id, command }: TakenRow, run: Option<&RunReach>) {
        let phase = match run {
            Some(_) => SessionPhase::Running,
            None => SessionPhase::Idle,
        };
        match disposition(&id, command, phase) {
            Disposition::Enqueue(message) => self.enqueue(id, message).await,
            Disposition::AnswerRun(answer) => self.answer_run(id, answer).await,
            Disposition::CancelRun => {
                if let Some(run) = run {
                    run.cancel.cancel();
                }
                self.cancellations.push(id);
            }
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
            session: asking.unwrap_or_else(|| self.link.session.clone()),
            answer,
            row: row.clone(),
        };
        if let Err(error) = self.approver.reply(sent) {
            let reason = error.to_string();
            let outcome = InputOutcome::Refused { reason };
            self.intake.settle(&[row], outcome).await;
        }
    }

    async fn enqueue(&mut self, id: InputId, message: IncomingMessage) {
        if let Some(seq) = self.queue.recorded_entry(&id) {
            // Another process recorded it and died before it could say so.
            let outcome = InputOutcome::Recorded { seq };
            return self.intake.settle(&[id], outcome).await;
        }
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

    /// Takes back inputs that no run has begun with.
    pub(crate) async fn withdraw(&mut self, inputs: &[InputId]) {
        self.is_held = false;
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
        let mut withdrawn = self.queue.withdraw(inputs);
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

    /// Settles the rows of what a run has recorded or refused.
    pub(crate) async fn settle_recorded(&mut self, progress: &RunProgress) {
        let RecordedParts { rows, decisions } = progress.take_recorded();
        let mut recorded = rows;
        for decided in decisions {
            let rows = self.approver.take_decided(&decided.session, &decided.id);
            recorded.extend(rows.into_iter().map(|id| (id, decided.seq)));
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
    pub(crate) async fn on_run_ended(&mut self, outcome: RunOutcome, end: u64) {
        let cancellations = std::mem::take(&mut self.cancellations);
        let recorded = InputOutcome::Recorded { seq: end };
        self.intake.settle(&cancellations, recorded).await;
        self.return_answers().await;
        match self.options.queue {
            QueuePolicy::Continue => {}
            QueuePolicy::HoldIfStopped => {
                self.is_held = outcome != RunOutcome::Completed && !self.queue.has_interrupt();
            }
            QueuePolicy::Leave => {
                self.forget_taken_inputs().await;
                self.leaves_rows = self.own_inputs.is_empty();
                if self.leaves_rows {
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
            let status = self.link.inbox.status(&id).await;
            if matches!(status, Ok(Some(InputStatus::Waiting)) | Err(_)) {
                self.own_inputs.insert(id);
            }
        }
    }

    /// Answers that no decision came of are checked again now that the session is idle.
    async fn return_answers(&mut self) {
        for SentAnswers {
            mut answer, row, ..
        } in self.approver.take_undecided()
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

    /// Another process runs the session: it is tried again later, and takes the rows meanwhile.
    pub(crate) fn wait_for_holder(&mut self) {
        self.is_contended = true;
        self.rows_due = Instant::now() + CONTENDED_POLL;
        self.release_rows();
    }

    /// Leaves the rows that wait here to other processes.
    fn release_rows(&mut self) {
        let queued = self.queue.take_rows();
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

/// Waits for the next message of another process; forever if there is no bus.
pub(crate) async fn receive(remote: &mut Option<LinkListener>) -> Received {
    match remote {
        Some(listener) => listener.recv().await,
        None => std::future::pending().await,
    }
}
