//! The actor of a session: it owns the session and carries out commands one after another.

use crate::approver::HostApprover;
use crate::error;
use crate::feed::Feed;
use crate::intake::{self, Intake, TakenRow};
use crate::link::{LinkListener, LinkMessage, Received, SessionLink};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stead_agent::{
    AfterAnswer, AgentError, ApprovalPolicy, BackgroundTaskPolicy, IncomingMessage, MessageQueue,
    Pinned, RunOptions, RunReport, SendOutcome, Session,
};
use stead_core::{
    AnswerPolicy, ApprovalReply, ClientError, Command, Entry, InputCommand, InputId, JournalLine,
    QueueMode, Receipt, RunOutcome, SessionChange, SetEntry, SpendAmount,
};
use stead_store::{InputOutcome, LockWait, StoreError};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How often the inbox is looked at while it may have rows and nobody tells.
const ROWS_POLL: Duration = Duration::from_millis(500);
/// How often a session that another process runs is tried.
const CONTENDED_POLL: Duration = Duration::from_millis(200);

/// How the sessions of a host behave.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionOptions {
    /// What happens to background tasks when the model is done.
    pub background_tasks: BackgroundTaskPolicy,
}

/// A message to an actor.
#[derive(Debug)]
pub(crate) enum ActorMessage {
    /// A command of a client.
    Command {
        command: Command,
        reply: oneshot::Sender<Result<Receipt, ClientError>>,
    },
    /// A run that is refused if another process runs the session. Its report is awaited.
    Run {
        command: Command,
        reply: oneshot::Sender<Result<RunReport, AgentError>>,
    },
    /// The inbox has a new row.
    Rows,
    /// The hooks for the end of the session are due, and derived data is written.
    Finish {
        reason: &'static str,
        reply: oneshot::Sender<Result<(), AgentError>>,
    },
}

/// Whom to tell what became of a command.
#[derive(Debug)]
enum ReplyTo {
    Client(oneshot::Sender<Result<Receipt, ClientError>>),
    Caller(oneshot::Sender<Result<RunReport, AgentError>>),
    /// The command is a row of the inbox.
    Row(InputId),
    Nobody,
}

/// A command that waits for the session to be idle.
#[derive(Debug)]
struct PendingCommand {
    command: Command,
    reply: ReplyTo,
}

/// The actor of one session.
pub(crate) struct SessionActor {
    session: Session,
    desk: Desk,
}

/// What of an actor is reachable while its session runs.
struct Desk {
    link: Arc<SessionLink>,
    feed: Arc<Feed>,
    queue: Arc<MessageQueue>,
    approver: Arc<HostApprover>,
    intake: Intake,
    options: SessionOptions,
    commands: mpsc::Receiver<ActorMessage>,
    /// The messages of other processes; none if the bus does not work.
    remote: Option<LinkListener>,
    pending: VecDeque<PendingCommand>,
    /// When the inbox is looked at next.
    rows_due: Instant,
    /// Whether another process runs the session while rows of ours wait.
    is_contended: bool,
    /// Whom to tell when the session is finished, and why it is.
    finishing: Option<(&'static str, oneshot::Sender<Result<(), AgentError>>)>,
    has_handles: bool,
}

impl SessionActor {
    pub(crate) fn new(
        session: Session,
        (link, feed): (Arc<SessionLink>, Arc<Feed>),
        (queue, approver): (Arc<MessageQueue>, Arc<HostApprover>),
        options: SessionOptions,
        commands: mpsc::Receiver<ActorMessage>,
    ) -> Self {
        let desk = Desk {
            intake: Intake::new(link.clone()),
            link,
            feed,
            queue,
            approver,
            options,
            commands,
            remote: None,
            pending: VecDeque::new(),
            rows_due: Instant::now(),
            is_contended: false,
            finishing: None,
            has_handles: true,
        };
        Self { session, desk }
    }

    /// Carries out commands until nobody holds a handle and nothing is left to do.
    pub(crate) async fn work(mut self) {
        self.desk.remote = self.desk.link.listen().await.ok();
        let mut task_ends = self.session.subagents().watch_finished();
        loop {
            self.desk.take_rows_when_idle().await;
            if let Some(next) = self.desk.pending.pop_front() {
                self.carry_out(next).await;
                task_ends.mark_unchanged();
                self.wake_if_due();
                continue;
            }
            if let Some((reason, reply)) = self.desk.finishing.take() {
                let finished = self.session.finish(reason).await;
                self.session.flush().await;
                let _ = reply.send(finished);
                continue;
            }
            if !self.desk.has_handles && self.desk.queue.is_empty() && !self.desk.is_contended {
                break;
            }
            self.wait_for_work(&mut task_ends).await;
        }
        self.session.flush().await;
    }

    /// Waits until there may be something to do.
    async fn wait_for_work(&mut self, task_ends: &mut watch::Receiver<u64>) {
        let desk = &mut self.desk;
        let has_messages = !desk.queue.is_empty();
        tokio::select! {
            biased;
            message = desk.commands.recv(), if desk.has_handles => match message {
                Some(message) => desk.on_idle_message(message),
                None => desk.has_handles = false,
            },
            Some(message) = desk.queue.next_input(), if has_messages => {
                self.run_message(message).await;
                self.wake_if_due();
            }
            received = receive(&mut desk.remote) => desk.on_received(received),
            Ok(()) = task_ends.changed() => self.wake_if_due(),
            () = sleep_until(desk.rows_due), if desk.is_contended => {}
        }
    }

    /// Runs the session with a message that waited. A run that a dead process left open is worked
    /// to its end first: it was given before the message.
    async fn run_message(&mut self, message: IncomingMessage) {
        if self.is_interrupted().await {
            self.desk.queue.return_input(message);
            self.resume(ReplyTo::Nobody).await;
            return;
        }
        self.run_input(InputCommand::default(), message, ReplyTo::Nobody)
            .await;
    }

    /// Whether the session has an open run that waits for nobody.
    async fn is_interrupted(&mut self) -> bool {
        // The run itself finds what is wrong with a journal that cannot be read.
        let loaded = self.session.load().await.is_ok();
        loaded && self.session.state().run.is_some() && self.session.open_questions().is_empty()
    }

    /// Begins a run if tasks have ended that the model was not told of.
    fn wake_if_due(&mut self) {
        let is_due = self.desk.options.background_tasks == BackgroundTaskPolicy::Detach
            && self.session.has_finished_tasks()
            && self.desk.pending.is_empty()
            && self.desk.queue.is_empty();
        if is_due {
            self.desk.pending.push_back(PendingCommand {
                command: Command::Wake,
                reply: ReplyTo::Nobody,
            });
        }
    }

    /// Carries out a command while the session is idle.
    async fn carry_out(&mut self, PendingCommand { command, reply }: PendingCommand) {
        match command {
            Command::Input(mut input) => {
                let rows = reply.row().into_iter().collect();
                let message = IncomingMessage {
                    content: std::mem::take(&mut input.content),
                    rows,
                    ..IncomingMessage::default()
                };
                self.run_input(input, message, reply).await;
            }
            Command::Steer { content, origin } => {
                let rows = reply.row().into_iter().collect();
                let message = IncomingMessage {
                    content,
                    rows,
                    ..IncomingMessage::default()
                };
                let input = InputCommand {
                    origin,
                    ..InputCommand::default()
                };
                self.run_input(input, message, reply).await;
            }
            Command::Resume {
                raise,
                answers,
                changes,
            } => {
                let options = self.desk.run_options(answers, &changes);
                let command = Command::Resume {
                    raise,
                    answers,
                    changes,
                };
                self.run(RunStart::Resume(raise), options, Some(command), reply)
                    .await;
            }
            Command::Wake => {
                let options = self.desk.run_options(AnswerPolicy::Ask, &[]);
                self.run(RunStart::Wake, options, None, reply).await;
            }
            Command::Answer { replies, by } => self.answer(replies, by, reply).await,
            Command::Cancel { by } => match self.session.is_busy().await {
                true => {
                    let busy = Command::Cancel { by };
                    self.desk.queue_for_holder(busy, reply).await;
                }
                false => {
                    let reason = "no run is going on in this session";
                    self.desk.refuse(reply, reason).await;
                }
            },
            other @ (Command::Set { .. }
            | Command::Compact { .. }
            | Command::Rewind { .. }
            | Command::Fork { .. }
            | Command::Undo { .. }) => {
                let done = self.change(other.clone()).await;
                self.settle_change(other, reply, done).await;
            }
        }
    }

    /// Carries out a command that changes the session without a run.
    async fn change(&mut self, command: Command) -> Result<(), AgentError> {
        let wait = LockWait::No;
        match command {
            Command::Set { changes, by } => {
                for change in changes {
                    self.session.set(change, &by, wait).await?;
                }
                Ok(())
            }
            Command::Compact { focus } => {
                let options = self.desk.run_options(AnswerPolicy::Ask, &[]);
                self.session.compact(focus, options).await.map(drop)
            }
            Command::Rewind { turn } => self.session.rewind(turn, wait).await.map(drop),
            Command::Fork { to, turn } => self.session.fork(to, turn).await.map(drop),
            Command::Undo { run } => self.session.undo(&run).await.map(drop),
            Command::Input(_)
            | Command::Steer { .. }
            | Command::Answer { .. }
            | Command::Cancel { .. }
            | Command::Resume { .. }
            | Command::Wake => Ok(()),
        }
    }

    async fn settle_change(
        &mut self,
        command: Command,
        reply: ReplyTo,
        done: Result<(), AgentError>,
    ) {
        let seq = self.session.state().seq;
        match done {
            Ok(()) => {
                self.desk.feed.journal_changed(seq);
                self.desk.acknowledge(reply, seq).await;
            }
            Err(error) if is_locked(&error) => self.desk.queue_for_holder(command, reply).await,
            Err(error) => self.desk.fail(reply, error).await,
        }
    }

    /// Answers questions of a parked run, and resumes it once none is left.
    async fn answer(&mut self, replies: Vec<ApprovalReply>, by: String, reply: ReplyTo) {
        let answered = self
            .session
            .answer(&replies, &by, AfterAnswer::Resume, LockWait::No)
            .await;
        let seq = self.session.state().seq;
        match answered {
            Ok(answered) => {
                self.desk.feed.journal_changed(seq);
                let goes_on = answered.still_open.is_empty();
                match (reply, goes_on) {
                    // The report of the resumed run is awaited.
                    (reply @ ReplyTo::Caller(_), true) => self.resume(reply).await,
                    (reply, true) => {
                        self.desk.acknowledge(reply, seq).await;
                        self.resume(ReplyTo::Nobody).await;
                    }
                    (reply, false) => self.desk.acknowledge(reply, seq).await,
                }
            }
            Err(error) if is_locked(&error) => {
                let command = Command::Answer { replies, by };
                self.desk.queue_for_holder(command, reply).await;
            }
            Err(error) => self.desk.fail(reply, error).await,
        }
    }

    async fn resume(&mut self, reply: ReplyTo) {
        let options = self.desk.run_options(AnswerPolicy::Ask, &[]);
        let raise = SpendAmount::default();
        self.run(RunStart::Resume(raise), options, None, reply)
            .await;
    }

    async fn run_input(&mut self, input: InputCommand, message: IncomingMessage, reply: ReplyTo) {
        let mut options = self.desk.run_options(input.answers, &input.changes);
        options.origin = message.origin.unwrap_or_else(|| input.origin.clone());
        options.inputs = message.rows;
        options.pin = match input.pinned {
            true => Pinned::Yes,
            false => Pinned::No,
        };
        let command = Command::Input(InputCommand {
            content: message.content.clone(),
            ..input
        });
        self.run(
            RunStart::Input(message.content),
            options,
            Some(command),
            reply,
        )
        .await;
    }

    /// Runs the session to its end. Commands that arrive meanwhile reach the run. If another process
    /// runs the session, `command` waits for it in the inbox.
    async fn run(
        &mut self,
        start: RunStart,
        mut options: RunOptions,
        command: Option<Command>,
        reply: ReplyTo,
    ) {
        let Self { session, desk } = self;
        let rows = options.inputs.clone();
        let progress = Arc::new(RunProgress::default());
        let (reply, receipt) = match reply {
            ReplyTo::Client(sender) => (ReplyTo::Nobody, Some(sender)),
            other => (other, None),
        };
        progress.set_receipt(receipt);
        options.entries = Some(progress.entry_listener(&desk.feed));
        let cancel = options.cancel.clone();
        let report = {
            let mut running: BoxFuture<'_, Result<RunReport, AgentError>> = match start {
                RunStart::Input(content) => Box::pin(session.run(content, options)),
                RunStart::Resume(raise) => Box::pin(session.resume_with(raise, options)),
                RunStart::Wake => Box::pin(session.wake(options)),
            };
            loop {
                tokio::select! {
                    biased;
                    report = &mut running => break report,
                    () = progress.changed.notified() => desk.settle_recorded(&progress).await,
                    message = desk.commands.recv(), if desk.has_handles => match message {
                        Some(message) => desk.on_message_during_run(message, &cancel).await,
                        None => desk.has_handles = false,
                    },
                    received = receive(&mut desk.remote) => desk.on_received(received),
                    () = sleep_until(desk.rows_due) => desk.take_rows_during_run(&cancel).await,
                }
            }
        };
        desk.settle_recorded(&progress).await;
        desk.is_contended = false;
        match report {
            Ok(report) => {
                if report.outcome != RunOutcome::Parked {
                    let seq = session.state().seq;
                    let answered = desk.approver.take_rows();
                    desk.intake
                        .settle(&answered, InputOutcome::Recorded { seq })
                        .await;
                }
                desk.report(reply, report);
            }
            Err(error) => {
                desk.on_failed_start(error, (rows, command), reply, &progress)
                    .await
            }
        }
    }
}

/// What a run begins with.
enum RunStart {
    Input(Vec<stead_core::Block>),
    Resume(SpendAmount),
    Wake,
}

/// What a run has recorded that its actor must know.
#[derive(Debug, Default)]
struct RunProgress {
    state: Mutex<ProgressState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ProgressState {
    receipt: Option<oneshot::Sender<Result<Receipt, ClientError>>>,
    /// The rows of the inbox that are in the journal, with their entries.
    recorded: Vec<(InputId, u64)>,
}

impl RunProgress {
    fn set_receipt(&self, receipt: Option<oneshot::Sender<Result<Receipt, ClientError>>>) {
        self.lock().receipt = receipt;
    }

    fn take_receipt(&self) -> Option<oneshot::Sender<Result<Receipt, ClientError>>> {
        self.lock().receipt.take()
    }

    fn take_recorded(&self) -> Vec<(InputId, u64)> {
        std::mem::take(&mut self.lock().recorded)
    }

    /// Returns the listener for the entries of the run.
    fn entry_listener(self: &Arc<Self>, feed: &Arc<Feed>) -> stead_agent::EntryListener {
        let progress = self.clone();
        let feed = feed.entry_listener();
        Arc::new(move |epoch, lines: &[JournalLine]| {
            feed(epoch, lines);
            progress.on_entries(lines);
        })
    }

    fn on_entries(&self, lines: &[JournalLine]) {
        let mut state = self.lock();
        let before = state.recorded.len();
        for line in lines {
            let inputs: &[InputId] = match &line.entry {
                Entry::User(input) => {
                    if let Some(receipt) = state.receipt.take() {
                        let input_id = input.inputs.first().cloned();
                        // The client may not wait any more.
                        let _ = receipt.send(Ok(Receipt {
                            input_id: input_id.unwrap_or_else(InputId::fresh),
                            seq: Some(line.seq),
                        }));
                    }
                    &input.inputs
                }
                Entry::Steer(steer) => &steer.inputs,
                Entry::Session(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Result(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Set(_)
                | Entry::Pin(_)
                | Entry::Compaction(_)
                | Entry::Hook(_)
                | Entry::Rewind(_)
                | Entry::End(_) => &[],
            };
            let rows = inputs.iter().map(|id| (id.clone(), line.seq));
            state.recorded.extend(rows);
        }
        if state.recorded.len() > before {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplyTo {
    fn row(&self) -> Option<InputId> {
        match self {
            Self::Row(id) => Some(id.clone()),
            Self::Client(_) | Self::Caller(_) | Self::Nobody => None,
        }
    }
}

impl Desk {
    /// The options of a run that listens to this actor.
    fn run_options(&self, answers: AnswerPolicy, changes: &[SessionChange]) -> RunOptions {
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

    fn on_received(&mut self, received: Received) {
        match received {
            Received::Message(LinkMessage::Hello) => self.feed.hello(),
            Received::Message(LinkMessage::Inbox) | Received::Lost => {
                self.rows_due = Instant::now();
            }
            Received::Message(LinkMessage::Entries { .. } | LinkMessage::Live { .. }) => {}
        }
    }

    fn on_idle_message(&mut self, message: ActorMessage) {
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

    async fn on_message_during_run(&mut self, message: ActorMessage, cancel: &CancellationToken) {
        match message {
            ActorMessage::Command {
                command: Command::Cancel { .. },
                reply,
            } => {
                cancel.cancel();
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
                self.take_rows_during_run(cancel).await;
            }
            ActorMessage::Run { command, reply } => self.pending.push_back(PendingCommand {
                command,
                reply: ReplyTo::Caller(reply),
            }),
            ActorMessage::Rows => self.take_rows_during_run(cancel).await,
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
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(session = %self.link.session, %error, "the inbox cannot be read now");
                Vec::new()
            }
        }
    }

    async fn take_rows_when_idle(&mut self) {
        if Instant::now() < self.rows_due {
            return;
        }
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
    async fn take_rows_during_run(&mut self, cancel: &CancellationToken) {
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
                    if !self.approver.reply(&replies, &by, Some(id.clone())) {
                        // It may be for a question that the run is about to ask.
                        self.pending.push_back(PendingCommand {
                            command: Command::Answer { replies, by },
                            reply: ReplyTo::Row(id),
                        });
                    }
                }
                Command::Cancel { .. } => {
                    cancel.cancel();
                    self.intake
                        .settle(&[id], InputOutcome::Recorded { seq: 0 })
                        .await;
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

    async fn settle_recorded(&mut self, progress: &RunProgress) {
        for (id, seq) in progress.take_recorded() {
            self.intake
                .settle(&[id], InputOutcome::Recorded { seq })
                .await;
        }
    }

    async fn acknowledge(&mut self, reply: ReplyTo, seq: u64) {
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
            // Its questions are answered in part; there is no run to report.
            ReplyTo::Caller(_) | ReplyTo::Nobody => {}
        }
    }

    /// Leaves a command to the process that runs the session.
    async fn queue_for_holder(&mut self, command: Command, reply: ReplyTo) {
        self.is_contended = true;
        self.rows_due = Instant::now() + CONTENDED_POLL;
        match reply {
            ReplyTo::Client(sender) => {
                let inserted = intake::insert(&self.link, &command, None).await;
                let _ = sender.send(inserted.map(|(input_id, _)| Receipt {
                    input_id,
                    seq: None,
                }));
            }
            ReplyTo::Row(id) => self.intake.give_back(&[id]),
            // A caller that wants a report is told that the session is busy.
            ReplyTo::Caller(_) | ReplyTo::Nobody => {}
        }
    }

    async fn refuse(&mut self, reply: ReplyTo, reason: &str) {
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
            ReplyTo::Caller(_) | ReplyTo::Nobody => {}
        }
    }

    async fn fail(&mut self, reply: ReplyTo, error: AgentError) {
        match reply {
            ReplyTo::Client(sender) => {
                let _ = sender.send(Err(error::from_agent(&error)));
            }
            ReplyTo::Caller(sender) => {
                let _ = sender.send(Err(error));
            }
            ReplyTo::Row(id) if is_passing(&error) => {
                self.is_contended = true;
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

    fn report(&self, reply: ReplyTo, report: RunReport) {
        if let ReplyTo::Caller(sender) = reply {
            let _ = sender.send(Ok(report));
        }
    }

    /// A run could not begin or go on. What it was given is not lost: it waits in the inbox if
    /// another process runs the session.
    async fn on_failed_start(
        &mut self,
        error: AgentError,
        (rows, command): (Vec<InputId>, Option<Command>),
        reply: ReplyTo,
        progress: &RunProgress,
    ) {
        if let AgentError::InputsRecorded(recorded) = &error {
            for (id, seq) in recorded {
                let outcome = InputOutcome::Recorded { seq: *seq };
                self.intake.settle(&[id.clone()], outcome).await;
            }
            self.intake.give_back(&rows);
            self.rows_due = Instant::now();
            return;
        }
        match (progress.take_receipt(), command) {
            (Some(receipt), Some(command)) if is_locked(&error) => {
                self.queue_for_holder(command, ReplyTo::Client(receipt))
                    .await;
            }
            (Some(receipt), _) => {
                let _ = receipt.send(Err(error::from_agent(&error)));
            }
            (None, _) if rows.is_empty() => self.fail(reply, error).await,
            (None, _) if is_passing(&error) => {
                self.is_contended = true;
                self.rows_due = Instant::now() + CONTENDED_POLL;
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

/// Whether another process runs the session.
fn is_locked(error: &AgentError) -> bool {
    matches!(error, AgentError::Store(StoreError::Locked { .. }))
}

/// Whether an error may be gone later: the session is busy, or its store or model is unavailable.
fn is_passing(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::Store(
            StoreError::Locked { .. } | StoreError::Unavailable { .. } | StoreError::Fenced { .. }
        ) | AgentError::NoModel(_)
            | AgentError::SessionModel { .. }
    )
}

/// Waits for the next message of another process; forever if there is no bus.
async fn receive(remote: &mut Option<LinkListener>) -> Received {
    match remote {
        Some(listener) => listener.recv().await,
        None => std::future::pending().await,
    }
}
