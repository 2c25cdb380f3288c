//! The actor of a session: it owns the session and carries out commands one after another.

use crate::approver::HostApprover;
use crate::desk::{Desk, receive};
use crate::error::is_locked;
use crate::feed::Feed;
use crate::link::{LinkMessage, SessionLink};
use crate::reply::{ActorCommands, PendingCommand, ReplyTo, RunReach};
use crate::run_progress::RunProgress;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{
    AfterAnswer, AgentError, BackgroundTaskPolicy, IncomingMessage, MessageQueue, Pinned,
    RunOptions, RunReport, Session,
};
use stead_core::{AnswerPolicy, ApprovalReply, Command, InputCommand, SpendAmount};
use stead_store::{Holder, LockWait, StoreError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long it takes at most to look whether a session is free.
const PROBE_LASTS: Duration = Duration::from_millis(250);

/// How the sessions of a host behave.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionOptions {
    /// What happens to background tasks when the model is done.
    pub background_tasks: BackgroundTaskPolicy,
}

/// The actor of one session.
pub(crate) struct SessionActor {
    session: Session,
    desk: Desk,
}

impl SessionActor {
    pub(crate) fn new(
        session: Session,
        (link, feed): (Arc<SessionLink>, Arc<Feed>),
        (queue, approver): (Arc<MessageQueue>, Arc<HostApprover>),
        options: SessionOptions,
        (commands, closing): (ActorCommands, CancellationToken),
    ) -> Self {
        let doors = (queue, approver);
        let desk = Desk::new((link, feed), doors, options, commands, closing);
        Self { session, desk }
    }

    /// Carries out commands until nobody holds a handle and nothing is left to do.
    pub(crate) async fn work(mut self) {
        self.desk.remote = self.desk.link.listen().await.ok();
        self.desk.link.publish(&LinkMessage::WhoListens);
        let mut task_ends = self.session.subagents().watch_finished();
        loop {
            self.take_rows().await;
            if let Some(next) = self.desk.pending.pop_front() {
                let was_wake = matches!(next.command, Command::Wake);
                let before = self.session.state().seq;
                self.carry_out(next).await;
                task_ends.mark_unchanged();
                // A wake that could not begin is tried again when another task ends.
                if !was_wake || self.session.state().seq != before {
                    self.wake_if_due();
                }
                continue;
            }
            if let Some((reason, reply)) = self.desk.finishing.take() {
                let finished = self.session.finish(reason).await;
                self.session.flush().await;
                let _ = reply.send(finished);
                continue;
            }
            if self.desk.is_done() {
                break;
            }
            self.wait_for_work(&mut task_ends).await;
        }
        self.session.flush().await;
    }

    /// Takes the rows that are due, unless they are those of a process that runs the session.
    async fn take_rows(&mut self) {
        if Instant::now() < self.desk.rows_due {
            return;
        }
        if self.desk.is_contended && self.session.is_busy().await {
            return self.desk.wait_for_holder();
        }
        self.desk.take_rows_when_idle().await;
    }

    /// Waits until there may be something to do.
    async fn wait_for_work(&mut self, task_ends: &mut watch::Receiver<u64>) {
        let desk = &mut self.desk;
        // Messages wait with the rows until the session is free.
        let has_messages = !desk.queue.is_empty() && !desk.is_contended;
        let may_end = !desk.has_handles && desk.queue.is_empty();
        let look_due = desk.look_due();
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
            () = sleep_until(look_due) => {}
            () = desk.closing.cancelled(), if may_end => {}
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
        let link = &self.desk.link;
        let end = link.journals.tail(&link.session).await;
        let is_known = matches!(end, Ok(Some(end)) if end.seq == self.session.state().seq);
        // The run itself finds what is wrong with a journal that cannot be read.
        let is_loaded = is_known || self.session.load().await.is_ok();
        is_loaded && self.session.state().run.is_some() && self.session.open_questions().is_empty()
    }

    /// Begins a run if tasks have ended that the model was not told of.
    fn wake_if_due(&mut self) {
        let is_due = self.desk.options.background_tasks == BackgroundTaskPolicy::Detach
            && self.session.has_finished_tasks()
            && self.session.state().run.is_none()
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
            Command::Cancel { by } => self.cancel(by, reply).await,
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

    /// Cancels the run of another process, or one that a dead process left open.
    async fn cancel(&mut self, by: String, reply: ReplyTo) {
        let session = self.session.id().clone();
        if self.session.is_busy().await {
            let locked = AgentError::Store(StoreError::Locked {
                session,
                holder: Holder::default(),
            });
            let command = Command::Cancel { by };
            return self.desk.queue_for_holder(command, reply, locked).await;
        }
        if self.is_interrupted().await {
            let options = self.desk.run_options(AnswerPolicy::Ask, &[]);
            options.cancel.cancel();
            let start = RunStart::Resume(SpendAmount::default());
            return self
                .run(start, options, Some(Command::Cancel { by }), reply)
                .await;
        }
        let reason = "no run is going on in this session";
        let error = AgentError::NothingToResume(session);
        self.desk.refuse(reply, reason, error).await;
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
            Err(error) if is_locked(&error) => {
                self.desk.queue_for_holder(command, reply, error).await;
            }
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
                    (reply @ ReplyTo::Caller(_), false) => {
                        let waits = AgentError::RunOpen(self.session.id().clone());
                        self.desk.fail(reply, waits).await;
                    }
                    (reply, false) => self.desk.acknowledge(reply, seq).await,
                }
            }
            Err(error) if is_locked(&error) => {
                let command = Command::Answer { replies, by };
                self.desk.queue_for_holder(command, reply, error).await;
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
        // Whoever opens the session during the run reaches this actor.
        let _reachable = desk.own_commands.upgrade();
        let rows = options.inputs.clone();
        if matches!(reply, ReplyTo::Caller(_)) {
            // Another host holds the session for a moment when it looks whether it is free.
            options.wait = LockWait::AtMost(PROBE_LASTS);
        }
        let progress = Arc::new(RunProgress::default());
        let (reply, receipt) = match reply {
            ReplyTo::Client(sender) => (ReplyTo::Nobody, Some(sender)),
            other => (other, None),
        };
        progress.set_receipt(receipt);
        options.entries = Some(progress.entry_listener(&desk.feed));
        let reach = RunReach {
            cancel: options.cancel.clone(),
            progress: progress.clone(),
        };
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
                    () = progress.changed.notified() => {
                        desk.settle_recorded(&progress).await;
                        desk.rows_due = Instant::now();
                    }
                    message = desk.commands.recv(), if desk.has_handles => match message {
                        Some(message) => desk.on_message_during_run(message, &reach).await,
                        None => desk.has_handles = false,
                    },
                    received = receive(&mut desk.remote) => desk.on_received(received),
                    () = sleep_until(desk.rows_due), if progress.has_begun() => {
                        desk.take_rows_during_run(&reach).await;
                    }
                }
            }
        };
        desk.settle_recorded(&progress).await;
        desk.is_contended = false;
        match report {
            Ok(report) => {
                let end = session.state().seq;
                desk.on_run_ended(end).await;
                desk.report(reply, report, end).await;
            }
            Err(error) => {
                desk.on_run_failed();
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
