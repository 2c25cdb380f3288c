//! The actor of a session: it alone uses the session in this process. It takes commands from the
//! mailbox and starts runs; the commands that need no run are in `changes.rs` and `answers.rs`.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use crate::error::is_locked;
use crate::link::{LinkMessage, receive};
use crate::mailbox::{Availability, Mailbox};
use crate::reply::{PendingCommand, ReplyTo, RunReach};
use crate::run_progress::RunProgress;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{
    AgentError, BackgroundTaskPolicy, IncomingMessage, RunOptions, RunTrigger, Session, run_session,
};
use stead_core::{
    AnswerPolicy, Command, Event, InputCommand, JournalLine, RunReport, SetEntry, SpendAmount,
};
use stead_store::LockWait;
use tokio::time::{Instant, sleep_until};

/// The longest that another host holds the session while it checks whether it is free.
const MAX_PROBE_TIME: Duration = Duration::from_millis(250);

/// The actor of one session.
pub(crate) struct SessionActor {
    pub(crate) session: Session,
    pub(crate) mailbox: Mailbox,
}

/// A run that the actor is to carry out.
pub(crate) struct RunOrder {
    pub(crate) trigger: RunTrigger,
    pub(crate) options: RunOptions,
    /// The command to put into the inbox if another process turns out to hold the session.
    pub(crate) command: Option<Command>,
    pub(crate) reply: ReplyTo,
}

impl SessionActor {
    /// Returns the actor of `session`, which nothing has used yet.
    pub(crate) fn new(session: Session, mailbox: Mailbox) -> Self {
        Self { session, mailbox }
    }

    /// Carries out commands until nobody holds a handle and nothing is left to do.
    pub(crate) async fn work(mut self) {
        self.mailbox.remote = self.mailbox.shared.link.listen().await.ok();
        self.mailbox.shared.link.publish(&LinkMessage::WhoListens);
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
            let mailbox = &mut self.mailbox;
            let has_clients = mailbox.has_clients();
            let has_input = mailbox.has_input();
            let may_end = !has_clients && mailbox.shared.queue.is_empty();
            let look_due = mailbox.look_due();
            tokio::select! {
                biased;
                message = mailbox.channel.receiver.recv(), if has_clients => {
                    // None: the last handle was dropped.
                    let command = message.and_then(|message| mailbox.on_idle_message(message));
                    mailbox.pending.extend(command);
                }
                Some(message) = mailbox.shared.queue.next_input(), if has_input => {
                    self.run_message(message).await;
                    self.wake_if_due();
                }
                received = receive(&mut mailbox.remote) => mailbox.on_received(received),
                Ok(()) = task_ends.changed() => self.wake_if_due(),
                () = sleep_until(look_due) => {}
                () = mailbox.channel.closing.cancelled(), if may_end => {}
            }
        }
        self.session.flush().await;
    }

    /// Carries out a command while the session is idle.
    async fn carry_out(&mut self, PendingCommand { command, reply }: PendingCommand) {
        match command {
            Command::Input(input) => self.run(self.input_order(input, reply)).await,
            Command::Steer { content, origin } => {
                let input = InputCommand {
                    content,
                    origin,
                    ..InputCommand::default()
                };
                self.run(self.input_order(input, reply)).await;
            }
            Command::Resume {
                raise,
                answers,
                changes,
            } => {
                let order = RunOrder {
                    trigger: RunTrigger::Resume { raise },
                    options: self.mailbox.run_options(answers, changes.clone()),
                    command: Some(Command::Resume {
                        raise,
                        answers,
                        changes,
                    }),
                    reply,
                };
                self.run(order).await;
            }
            Command::Wake => {
                let order = RunOrder {
                    trigger: RunTrigger::Wake,
                    options: self.mailbox.run_options(AnswerPolicy::Ask, Vec::new()),
                    command: None,
                    reply,
                };
                self.run(order).await;
            }
            Command::Answer(answer) => self.answer(answer, reply).await,
            Command::Cancel { run, by } => self.cancel(run, by, reply).await,
            Command::Withdraw { inputs } => self.withdraw(inputs, reply).await,
            other @ (Command::Set { .. }
            | Command::Pin { .. }
            | Command::Compact { .. }
            | Command::Rewind { .. }
            | Command::Fork { .. }
            | Command::Undo { .. }) => self.change(other, reply).await,
        }
    }

    /// Runs the session to its end. Commands that arrive meanwhile reach the run.
    pub(crate) async fn run(&mut self, order: RunOrder) {
        let Self { session, mailbox } = self;
        let RunOrder {
            trigger,
            options,
            command,
            reply,
        } = order;
        let resumed_run = match trigger {
            RunTrigger::Resume { .. } => session.state().run.as_ref().map(|run| run.id.clone()),
            RunTrigger::Input(_) | RunTrigger::Wake => None,
        };
        // Whoever opens the session during the run reaches this actor.
        let _reachable = mailbox.channel.own.upgrade();
        let rows = options.inbox_rows.clone();
        let (reply, receipt) = match reply {
            ReplyTo::Client(sender) => (ReplyTo::Nobody, Some(sender)),
            other @ (ReplyTo::Row(_) | ReplyTo::Nobody) => (other, None),
        };
        let feed = mailbox.shared.feed.clone();
        let progress = RunProgress::new(session.id().clone(), feed, receipt);
        let on_event = progress.clone();
        let on_entries = progress.clone();
        let reach = RunReach {
            cancel: options.cancel.clone(),
            progress: progress.clone(),
        };
        let options = RunOptions {
            listener: Arc::new(move |event: &Event| on_event.on_event(event)),
            entries: Some(Arc::new(move |epoch, lines: &[JournalLine]| {
                on_entries.on_entries(epoch, lines);
            })),
            // Another host holds the session for a moment when it looks whether it is free.
            wait: LockWait::AtMost(MAX_PROBE_TIME),
            ..options
        };
        let running = run_session(session, trigger, options);
        let ended = mailbox.attend_run(running, &reach).await;
        mailbox.settle_recorded(&progress).await;
        mailbox.availability = Availability::Free;
        match ended {
            Ok(report) => {
                let end = session.state().seq;
                mailbox.on_run_ended(report.outcome, end, reply).await;
            }
            Err(error) => {
                mailbox.take_back_commands().await;
                if !progress.has_begun() && !is_locked(&error) {
                    // Whoever answered its last question follows it.
                    mailbox.tell_failed_run(&error, resumed_run);
                }
                let given = (rows, command);
                mailbox.on_failed_run(error, given, reply, &progress).await;
            }
        }
        mailbox.shared.feed.run_settled();
    }

    /// Returns the run of an input.
    fn input_order(&self, input: InputCommand, reply: ReplyTo) -> RunOrder {
        let options = self
            .mailbox
            .run_options(input.answers, input.changes.clone());
        RunOrder {
            trigger: RunTrigger::Input(input.content.clone()),
            options: RunOptions {
                origin: input.origin.clone(),
                inbox_rows: reply.row().into_iter().collect(),
                pin: input.pinned,
                output_schema: input.output_schema.clone(),
                ..options
            },
            command: Some(Command::Input(input)),
            reply,
        }
    }

    /// Takes the rows that are due, unless they are those of a process that runs the session.
    async fn take_rows(&mut self) {
        if Instant::now() < self.mailbox.rows_due {
            return;
        }
        let is_blocked = self.mailbox.availability == Availability::Blocked;
        let may_be_busy = is_blocked || self.mailbox.has_rows().await;
        if may_be_busy && self.session.is_busy().await {
            return self.mailbox.retry_later();
        }
        self.mailbox.take_rows_when_idle().await;
    }

    /// Runs the session with a message that waited. A run that a dead process left open is worked
    /// to its end first: it was given before the message.
    async fn run_message(&mut self, message: IncomingMessage) {
        if self.is_interrupted().await {
            let before = self.session.state().seq;
            self.run(self.resumption(AnswerPolicy::Ask, Vec::new()))
                .await;
            let went_on = self.session.state().seq != before;
            if went_on || self.mailbox.availability == Availability::Blocked {
                self.mailbox.shared.queue.return_input(message);
                return;
            }
            // The run cannot go on; the message closes it.
        }
        let input = InputCommand {
            content: message.content,
            origin: message.origin.unwrap_or_default(),
            ..InputCommand::default()
        };
        let mut order = self.input_order(input, ReplyTo::Nobody);
        order.options.inbox_rows = message.rows;
        self.run(order).await;
    }

    /// Returns the continuation of the open run, which nobody waits for.
    pub(crate) fn resumption(&self, answers: AnswerPolicy, settings: Vec<SetEntry>) -> RunOrder {
        RunOrder {
            trigger: RunTrigger::Resume {
                raise: SpendAmount::default(),
            },
            options: self.mailbox.run_options(answers, settings),
            command: None,
            reply: ReplyTo::Nobody,
        }
    }

    /// Whether the session has an open run that waits for nobody.
    pub(crate) async fn is_interrupted(&mut self) -> bool {
        let link = &self.mailbox.shared.link;
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
            && self.mailbox.shared.queue.is_empty();
        if is_due {
            self.mailbox.pending.push_back(PendingCommand {
                command: Command::Wake,
                reply: ReplyTo::Nobody,
            });
        }
    }
}

impl Mailbox {
    /// Waits for the end of a run. Commands that arrive meanwhile reach the run or wait.
    async fn attend_run(
        &mut self,
        mut running: BoxFuture<'_, Result<RunReport, AgentError>>,
        run: &RunReach,
    ) -> Result<RunReport, AgentError> {
        let mut ended = None;
        loop {
            if let Some(ended) = ended {
                return ended;
            }
            let has_clients = self.has_clients();
            // The run goes on while the inbox is read and written: it may hold what that needs.
            tokio::select! {
                biased;
                end = &mut running => ended = Some(end),
                () = run.progress.changed.notified() => {
                    let settling = self.settle_recorded(&run.progress);
                    ended = work_beside(&mut running, settling).await;
                    self.rows_due = Instant::now();
                }
                message = self.channel.receiver.recv(), if has_clients => {
                    // None: the last handle was dropped.
                    if let Some(message) = message {
                        let handling = self.on_message_during_run(message, run);
                        ended = work_beside(&mut running, handling).await;
                    }
                }
                received = receive(&mut self.remote) => self.on_received(received),
                () = sleep_until(self.rows_due), if run.progress.has_begun() => {
                    let taking = self.take_rows_during_run(run);
                    ended = work_beside(&mut running, taking).await;
                }
            }
        }
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
