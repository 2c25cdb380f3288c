//! The actor of a session: it owns the session and carries out commands one after another.
//!
//! Effects: the clock, the store (writes), the journal (appends), hooks, tools, the model.

use crate::approver::HostApprover;
use crate::error::is_locked;
use crate::feed::Feed;
use crate::link::{LinkMessage, SessionLink};
use crate::mailbox::{Mailbox, receive};
use crate::reply::{ActorCommands, PendingCommand, ReplyTo, RunReach};
use crate::run_progress::RunProgress;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{
    Agent, AgentError, BackgroundTaskPolicy, IncomingMessage, MessageQueue, RunOptions, Session,
};
use stead_core::{
    AfterAnswer, AnswerCommand, AnswerPolicy, Command, InputCommand, Owner, RunReport, SetEntry,
    SpendAmount,
};
use stead_store::LockWait;
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
    /// What happens to messages that wait when a run has ended.
    pub queue: QueuePolicy,
    /// How questions are answered in runs whose command does not say it.
    pub answers: AnswerPolicy,
}

/// What happens to messages that wait when a run has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// The next run begins with them.
    #[default]
    Continue,
    /// The next run begins with them if the model was done. Otherwise, and when the session is
    /// opened, they wait for the next command, so that whoever sent them can take them back
    /// ([`Command::Withdraw`]).
    HoldIfStopped,
    /// They are left to other processes.
    Leave,
}

/// The actor of one session.
pub(crate) struct SessionActor {
    session: Session,
    /// The agent and the owner, for sessions of subagents.
    agent: Arc<Agent>,
    owner: Owner,
    mailbox: Mailbox,
}

/// What a run begins with.
enum RunStart {
    Input(Vec<stead_core::Block>),
    Resume(SpendAmount),
    Wake,
}

impl SessionActor {
    pub(crate) fn new(
        (agent, owner): (Arc<Agent>, Owner),
        (link, feed): (Arc<SessionLink>, Arc<Feed>),
        (queue, approver): (Arc<MessageQueue>, Arc<HostApprover>),
        options: SessionOptions,
        (commands, closing): (ActorCommands, CancellationToken),
    ) -> Self {
        let session = agent.session_of(owner.clone(), link.session.clone());
        let mailbox = Mailbox::new((link, feed), (queue, approver), options, commands, closing);
        Self {
            session,
            agent,
            owner,
            mailbox,
        }
    }

    /// The session, which nothing has used yet.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Carries out commands until nobody holds a handle and nothing is left to do.
    pub(crate) async fn work(mut self) {
        self.mailbox.remote = self.mailbox.link.listen().await.ok();
        self.mailbox.link.publish(&LinkMessage::WhoListens);
        let mut task_ends = self.session.subagents().watch_finished();
        loop {
            self.take_rows().await;
            if let Some(next) = self.mailbox.pending.pop_front() {
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
            if let Some((reason, reply)) = self.mailbox.finishing.take() {
                let finished = self.session.finish(reason).await;
                self.session.flush().await;
                let _ = reply.send(finished);
                continue;
            }
            if self.mailbox.is_done() {
                break;
            }
            self.wait_for_work(&mut task_ends).await;
        }
        self.session.flush().await;
    }

    /// Takes the rows that are due, unless they are those of a process that runs the session.
    async fn take_rows(&mut self) {
        if Instant::now() < self.mailbox.rows_due {
            return;
        }
        let may_be_busy = self.mailbox.is_contended || self.mailbox.has_rows().await;
        if may_be_busy && self.session.is_busy().await {
            return self.mailbox.wait_for_holder();
        }
        self.mailbox.take_rows_when_idle().await;
    }

    /// Waits until there may be something to do.
    async fn wait_for_work(&mut self, task_ends: &mut watch::Receiver<u64>) {
        let mailbox = &mut self.mailbox;
        let has_input = mailbox.has_input();
        let may_end = !mailbox.has_handles && mailbox.queue.is_empty();
        let look_due = mailbox.look_due();
        tokio::select! {
            biased;
            message = mailbox.commands.recv(), if mailbox.has_handles => match message {
                Some(message) => mailbox.on_idle_message(message),
                None => mailbox.has_handles = false,
            },
            Some(message) = mailbox.queue.next_input(), if has_input => {
                self.run_message(message).await;
                self.wake_if_due();
            }
            received = receive(&mut mailbox.remote) => mailbox.on_received(received),
            Ok(()) = task_ends.changed() => self.wake_if_due(),
            () = sleep_until(look_due) => {}
            () = mailbox.closing.cancelled(), if may_end => {}
        }
    }

    /// Runs the session with a message that waited. A run that a dead process left open is worked
    /// to its end first: it was given before the message.
    async fn run_message(&mut self, message: IncomingMessage) {
        if self.is_interrupted().await {
            let before = self.session.state().seq;
            self.resume(ReplyTo::Nobody).await;
            let went_on = self.session.state().seq != before;
            if went_on || self.mailbox.is_contended {
                self.mailbox.queue.return_input(message);
                return;
            }
            // The run cannot go on; the message closes it.
        }
        self.run_input(InputCommand::default(), message, ReplyTo::Nobody)
            .await;
    }

    /// Whether the session has an open run that waits for nobody.
    async fn is_interrupted(&mut self) -> bool {
        let link = &self.mailbox.link;
        let end = link.journals.tail(&link.session).await;
        let is_known = matches!(end, Ok(Some(end)) if end.seq == self.session.state().seq);
        // The run itself finds what is wrong with a journal that cannot be read.
        let is_loaded = is_known || self.session.load().await.is_ok();
        is_loaded && self.session.state().run.is_some() && self.session.open_questions().is_empty()
    }

    /// Begins a run if tasks have ended that the model was not told of.
    fn wake_if_due(&mut self) {
        let is_due = self.mailbox.options.background_tasks == BackgroundTaskPolicy::Detach
            && self.session.has_finished_tasks()
            && self.session.state().run.is_none()
            && self.mailbox.pending.is_empty()
            && self.mailbox.queue.is_empty();
        if is_due {
            self.mailbox.pending.push_back(PendingCommand {
                command: Command::Wake,
                reply: ReplyTo::Nobody,
            });
        }
    }

    /// Carries out a command while the session is idle.
    async fn carry_out(&mut self, PendingCommand { command, reply }: PendingCommand) {
        match command {
            Command::Input(mut input) => {
                let message = IncomingMessage {
                    content: std::mem::take(&mut input.content),
                    rows: reply.row().into_iter().collect(),
                    ..IncomingMessage::default()
                };
                self.run_input(input, message, reply).await;
            }
            Command::Steer { content, origin } => {
                let message = IncomingMessage {
                    content,
                    rows: reply.row().into_iter().collect(),
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
                let options = self.mailbox.run_options(answers, changes.clone());
                let command = Command::Resume {
                    raise,
                    answers,
                    changes,
                };
                self.run(RunStart::Resume(raise), options, Some(command), reply)
                    .await;
            }
            Command::Wake => {
                let options = self.mailbox.run_options(AnswerPolicy::Ask, Vec::new());
                self.run(RunStart::Wake, options, None, reply).await;
            }
            Command::Answer(answer) => self.answer(answer, reply).await,
            Command::Cancel { by } => self.cancel(by, reply).await,
            Command::Withdraw { inputs } => self.withdraw(inputs, reply).await,
            other @ (Command::Set { .. }
            | Command::Pin { .. }
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
                let set = changes.into_iter().map(|change| SetEntry {
                    change,
                    by: by.clone(),
                });
                self.session.set_all(set.collect(), wait).await.map(drop)
            }
            Command::Pin { turn, pinned } => self.session.pin(turn, pinned, wait).await,
            Command::Compact { focus } => self.compact(focus).await,
            Command::Rewind { turn } => self.session.rewind(turn, wait).await.map(drop),
            Command::Fork { to, turn } => self.session.fork(to, turn).await.map(drop),
            Command::Undo { run } => self.session.undo(&run).await.map(drop),
            Command::Input(_)
            | Command::Steer { .. }
            | Command::Answer(_)
            | Command::Withdraw { .. }
            | Command::Cancel { .. }
            | Command::Resume { .. }
            | Command::Wake => Ok(()),
        }
    }

    /// Compacts the context. Commands that arrive meanwhile wait; a cancellation stops it.
    async fn compact(&mut self, focus: Option<String>) -> Result<(), AgentError> {
        let Self {
            session, mailbox, ..
        } = self;
        let progress = RunProgress::new(session.id().clone(), None);
        let options = RunOptions {
            listener: mailbox.feed.listener(),
            entries: Some(progress.entry_listener(&mailbox.feed)),
            ..mailbox.run_options(AnswerPolicy::Ask, Vec::new())
        };
        let cancel = options.cancel.clone();
        let mut compacting = Box::pin(session.compact(focus, options));
        loop {
            tokio::select! {
                biased;
                compacted = &mut compacting => return compacted.map(drop),
                message = mailbox.commands.recv(), if mailbox.has_handles => match message {
                    Some(message) => {
                        mailbox.on_message_during_compaction(message, &cancel).await;
                    }
                    None => mailbox.has_handles = false,
                },
            }
        }
    }

    /// Takes back inputs that wait, here or in the process that runs the session.
    async fn withdraw(&mut self, inputs: Vec<stead_core::InputId>, reply: ReplyTo) {
        if self.session.is_busy().await {
            let command = Command::Withdraw { inputs };
            return self.mailbox.queue_for_holder(command, reply).await;
        }
        self.mailbox.withdraw(&inputs).await;
        self.mailbox.acknowledge_done(reply).await;
    }

    /// Cancels the run of another process, or one that a dead process left open.
    async fn cancel(&mut self, by: String, reply: ReplyTo) {
        if self.session.is_busy().await {
            let command = Command::Cancel { by };
            return self.mailbox.queue_for_holder(command, reply).await;
        }
        if self.is_interrupted().await {
            let options = self.mailbox.run_options(AnswerPolicy::Ask, Vec::new());
            options.cancel.cancel();
            let start = RunStart::Resume(SpendAmount::default());
            return self
                .run(start, options, Some(Command::Cancel { by }), reply)
                .await;
        }
        let reason = "no run is going on in this session";
        self.mailbox.refuse(reply, reason).await;
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
                self.mailbox.feed.journal_changed(seq);
                self.mailbox.acknowledge(reply, seq).await;
            }
            Err(error) if is_locked(&error) => {
                self.mailbox.queue_for_holder(command, reply).await;
            }
            Err(error) => self.mailbox.fail(reply, error).await,
        }
    }

    /// Answers questions of a parked run, and resumes it once none is left.
    async fn answer(&mut self, answer: AnswerCommand, reply: ReplyTo) {
        let mut of_subagent = answer
            .subagent
            .clone()
            .map(|child| self.agent.session_of(self.owner.clone(), child));
        let is_own = of_subagent.is_none();
        let asking = of_subagent.as_mut().unwrap_or(&mut self.session);
        let answered = asking
            .answer(&answer.replies, &answer.by, answer.then, LockWait::No)
            .await;
        let seq = asking.state().seq;
        match answered {
            Ok(answered) => {
                if is_own {
                    self.mailbox.feed.journal_changed(seq);
                }
                self.mailbox.acknowledge(reply, seq).await;
                let resumes = answered.still_open.is_empty() && answer.then == AfterAnswer::Resume;
                let has_run = is_own || self.is_interrupted().await;
                if resumes && has_run {
                    let options = self.mailbox.run_options(answer.answers, answer.changes);
                    let start = RunStart::Resume(SpendAmount::default());
                    self.run(start, options, None, ReplyTo::Nobody).await;
                }
            }
            Err(error) if is_locked(&error) => self.answer_holder(answer, reply).await,
            Err(error) => self.mailbox.fail(reply, error).await,
        }
    }

    /// Leaves answers to the process that runs the session. A subagent runs in the process of the
    /// session that it works for.
    async fn answer_holder(&mut self, answer: AnswerCommand, reply: ReplyTo) {
        let is_loaded = self.session.load().await.is_ok();
        let spawned = self.session.state().spawned.as_ref();
        let root = spawned
            .filter(|_| is_loaded)
            .map(|spawned| spawned.tree.clone());
        let Some(root) = root else {
            let command = Command::Answer(answer);
            return self.mailbox.queue_for_holder(command, reply).await;
        };
        let place = self.agent.place();
        let link = self
            .mailbox
            .link
            .of_session(&**place, &self.owner, root.clone());
        let asks = self.session.id().clone();
        let answer = AnswerCommand {
            subagent: Some(answer.subagent.unwrap_or(asks)),
            ..answer
        };
        self.mailbox
            .queue_for_root((root, &link), Command::Answer(answer), reply)
            .await;
    }

    async fn resume(&mut self, reply: ReplyTo) {
        let options = self.mailbox.run_options(AnswerPolicy::Ask, Vec::new());
        let raise = SpendAmount::default();
        self.run(RunStart::Resume(raise), options, None, reply)
            .await;
    }

    async fn run_input(&mut self, input: InputCommand, message: IncomingMessage, reply: ReplyTo) {
        let options = RunOptions {
            origin: message.origin.unwrap_or_else(|| input.origin.clone()),
            inputs: message.rows,
            pin: input.pinned,
            ..self
                .mailbox
                .run_options(input.answers, input.changes.clone())
        };
        let command = Command::Input(InputCommand {
            content: message.content.clone(),
            ..input
        });
        let start = RunStart::Input(message.content);
        self.run(start, options, Some(command), reply).await;
    }

    /// Runs the session to its end. Commands that arrive meanwhile reach the run. If another process
    /// runs the session, `command` waits for it in the inbox.
    async fn run(
        &mut self,
        start: RunStart,
        options: RunOptions,
        command: Option<Command>,
        reply: ReplyTo,
    ) {
        let Self {
            session, mailbox, ..
        } = self;
        let resumed_run = match start {
            RunStart::Resume(_) => session.state().run.as_ref().map(|run| run.id.clone()),
            RunStart::Input(_) | RunStart::Wake => None,
        };
        // Whoever opens the session during the run reaches this actor.
        let _reachable = mailbox.own_commands.upgrade();
        let rows = options.inputs.clone();
        let (reply, receipt) = match reply {
            ReplyTo::Client(sender) => (ReplyTo::Nobody, Some(sender)),
            other @ (ReplyTo::Row(_) | ReplyTo::Nobody) => (other, None),
        };
        let progress = RunProgress::new(session.id().clone(), receipt);
        let options = RunOptions {
            listener: progress.listener(&mailbox.feed),
            entries: Some(progress.entry_listener(&mailbox.feed)),
            // Another host holds the session for a moment when it looks whether it is free.
            wait: LockWait::AtMost(PROBE_LASTS),
            ..options
        };
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
            let mut ended = None;
            loop {
                if let Some(report) = ended {
                    break report;
                }
                // The run goes on while the inbox is read and written: it may hold what that needs.
                tokio::select! {
                    biased;
                    report = &mut running => ended = Some(report),
                    () = progress.changed.notified() => {
                        let settling = mailbox.settle_recorded(&progress);
                        ended = work_beside(&mut running, settling).await;
                        mailbox.rows_due = Instant::now();
                    }
                    message = mailbox.commands.recv(), if mailbox.has_handles => match message {
                        Some(message) => {
                            let handling = mailbox.on_message_during_run(message, &reach);
                            ended = work_beside(&mut running, handling).await;
                        }
                        None => mailbox.has_handles = false,
                    },
                    received = receive(&mut mailbox.remote) => mailbox.on_received(received),
                    () = sleep_until(mailbox.rows_due), if progress.has_begun() => {
                        let taking = mailbox.take_rows_during_run(&reach);
                        ended = work_beside(&mut running, taking).await;
                    }
                }
            }
        };
        mailbox.settle_recorded(&progress).await;
        mailbox.is_contended = false;
        match report {
            Ok(report) => {
                let end = session.state().seq;
                mailbox.on_run_ended(report.outcome, end).await;
                mailbox.settle_run(reply, end).await;
            }
            Err(error) => {
                mailbox.take_back_commands().await;
                if !progress.has_begun() && !is_locked(&error) {
                    // Whoever answered its last question follows it.
                    mailbox.tell_failed_run(&error, resumed_run);
                }
                mailbox
                    .on_failed_run(error, (rows, command), reply, &progress)
                    .await
            }
        }
        mailbox.feed.run_settled();
    }
}

/// Does `work` while a run goes on. Returns the report of the run if it ended meanwhile.
async fn work_beside<T>(
    running: &mut BoxFuture<'_, T>,
    work: impl Future<Output = ()>,
) -> Option<T> {
    tokio::pin!(work);
    tokio::select! {
        () = &mut work => None,
        ended = running => {
            work.await;
            Some(ended)
        }
    }
}
