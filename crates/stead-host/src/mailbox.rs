//! The mailbox of an actor: the messages of clients and of other processes, and what waits until the
//! session is idle. The rows of the inbox are in `rows.rs`.
//!
//! Effects: the clock, randomness, the store (writes).

use crate::feed::HELLO_LASTS;
use crate::handle::SharedSession;
use crate::intake::{self, Intake};
use crate::link::{LinkListener, LinkMessage, Received};
use crate::options::{QueuePolicy, SessionOptions};
use crate::reply::{ActorMessage, PendingCommand, ReplyTo, RunReach};
use crate::run_progress::ReceiptSender;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use stead_agent::{AgentError, ApprovalPolicy, RunOptions};
use stead_core::{AnswerPolicy, ClientError, Command, InputId, Receipt, RunId, SetEntry};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often an idle actor looks at the inbox: the hint of a row may be lost, and its sender dead.
pub(crate) const IDLE_POLL: Duration = Duration::from_secs(5);

/// What reaches an actor, and what of it is reachable while its session runs.
pub(crate) struct Mailbox {
    pub(crate) shared: Arc<SharedSession>,
    pub(crate) options: SessionOptions,
    pub(crate) channel: ActorChannel,
    /// The messages of other processes; none if the bus does not work.
    pub(crate) remote: Option<LinkListener>,
    /// The commands that wait for the session to be idle.
    pub(crate) pending: VecDeque<PendingCommand>,
    /// The rows of the inbox that were taken.
    pub(crate) intake: Intake,
    /// When the inbox is looked at next.
    pub(crate) rows_due: Instant,
    pub(crate) availability: Availability,
    pub(crate) waiting: WaitingInput,
    /// The rows that clients of this process made and that may still wait.
    pub(crate) own_inputs: BTreeSet<InputId>,
    /// The rows of cancellations of the run that is going on.
    pub(crate) cancellations: Vec<InputId>,
    /// Whom to tell when the session is finished, and why it is.
    pub(crate) finishing: Option<(&'static str, oneshot::Sender<Result<(), AgentError>>)>,
}

/// The channel to an actor, as the actor holds it.
pub(crate) struct ActorChannel {
    pub(crate) receiver: mpsc::Receiver<ActorMessage>,
    /// The sending end, while somebody holds a handle.
    pub(crate) own: mpsc::WeakSender<ActorMessage>,
    /// Cancelled when the host closes.
    pub(crate) closing: CancellationToken,
}

/// Whether this process can run the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Free,
    /// Another process runs it, or its store or model cannot be used now. It is tried again.
    Blocked,
}

/// What becomes of the inputs that wait while the session is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitingInput {
    /// The next run begins with them.
    BeginsRun,
    /// They wait for the next command of a client ([`QueuePolicy::HoldIfStopped`]).
    Held,
    /// Their rows are left to other processes until the next command ([`QueuePolicy::Leave`]).
    LeftToOthers,
}

impl Mailbox {
    pub(crate) fn new(
        shared: Arc<SharedSession>,
        options: SessionOptions,
        channel: ActorChannel,
    ) -> Self {
        Self {
            intake: Intake::new(shared.link.clone()),
            shared,
            options,
            channel,
            remote: None,
            pending: VecDeque::new(),
            rows_due: Instant::now(),
            availability: Availability::Free,
            waiting: match options.queue {
                QueuePolicy::HoldIfStopped => WaitingInput::Held,
                QueuePolicy::Continue | QueuePolicy::Leave => WaitingInput::BeginsRun,
            },
            own_inputs: BTreeSet::new(),
            cancellations: Vec::new(),
            finishing: None,
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
                AnswerPolicy::Ask => ApprovalPolicy::Ask(self.shared.approver.clone()),
            },
            settings,
            queue: Some(self.shared.queue.clone()),
            background_tasks: self.options.background_tasks,
            ..RunOptions::default()
        }
    }

    /// Whether somebody holds a handle, or did so and sent something that was not taken yet.
    pub(crate) fn has_clients(&self) -> bool {
        let receiver = &self.channel.receiver;
        !(receiver.is_closed() && receiver.is_empty())
    }

    /// Whether messages wait that a run may begin with now.
    pub(crate) fn has_input(&self) -> bool {
        !self.shared.queue.is_empty()
            && self.availability == Availability::Free
            && self.waiting != WaitingInput::Held
    }

    /// Whether nobody holds a handle and nothing is left to do. Rows are durable: a host that closes
    /// does not wait for those of a session that another process runs, nor for those that are held.
    pub(crate) fn is_done(&self) -> bool {
        let is_free = match self.availability {
            Availability::Free => true,
            Availability::Blocked => self.channel.closing.is_cancelled(),
        };
        let is_empty = self.shared.queue.is_empty() || self.waiting == WaitingInput::Held;
        !self.has_clients() && is_empty && is_free
    }

    /// When an idle actor looks at the inbox next.
    pub(crate) fn look_due(&self) -> Instant {
        match self.availability == Availability::Blocked || self.intake.has_unsettled() {
            true => self.rows_due,
            false => self.rows_due + IDLE_POLL,
        }
    }

    /// Takes a message of another process.
    pub(crate) fn on_received(&mut self, received: Received) {
        match received {
            Received::Message(LinkMessage::Hello { answers }) => {
                self.shared.feed.hello();
                if answers {
                    let until = Instant::now() + HELLO_LASTS;
                    self.shared.approver.attach_elsewhere(until);
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

    /// Takes a message of a client while the session is idle. Returns the command, if it is one.
    pub(crate) fn on_idle_message(&mut self, message: ActorMessage) -> Option<PendingCommand> {
        match message {
            ActorMessage::Command { command, reply } => {
                self.waiting = WaitingInput::BeginsRun;
                let reply = ReplyTo::Client(reply);
                return Some(PendingCommand { command, reply });
            }
            ActorMessage::Rows => {
                if self.waiting == WaitingInput::LeftToOthers {
                    self.waiting = WaitingInput::BeginsRun;
                }
                self.rows_due = Instant::now();
            }
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
        None
    }

    /// Carries out a message of a client while a run goes on, or waits for the session. Until the
    /// run has begun, another process may hold the session, and rows are left to it.
    pub(crate) async fn on_message_during_run(&mut self, message: ActorMessage, run: &RunReach) {
        let has_begun = run.progress.has_begun();
        match message {
            ActorMessage::Command {
                command: Command::Cancel { run: named, .. },
                reply,
            } if has_begun => {
                let _ = reply.send(match run.cancel(named.as_ref()) {
                    Ok(()) => Ok(Receipt {
                        run: run.progress.run(),
                        ..Receipt::done()
                    }),
                    Err(reason) => Err(ClientError::refused(reason)),
                });
            }
            ActorMessage::Command {
                command: Command::Withdraw { inputs },
                reply,
            } if has_begun => {
                self.withdraw(&inputs).await;
                let _ = reply.send(Ok(Receipt::done()));
            }
            ActorMessage::Command { command, reply } => self.insert(&command, reply).await,
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Carries out a message of a client while the context is compacted: a cancellation stops that,
    /// the rest waits.
    pub(crate) async fn on_message_during_compaction(
        &mut self,
        message: ActorMessage,
        cancel: &CancellationToken,
    ) {
        match message {
            ActorMessage::Command {
                command: Command::Cancel { run, .. },
                reply,
            } => {
                let _ = reply.send(match run {
                    None => {
                        cancel.cancel();
                        Ok(Receipt::done())
                    }
                    Some(run) => Err(ClientError::refused(not_this_run(&run, None))),
                });
            }
            ActorMessage::Command { command, reply } => self.insert(&command, reply).await,
            ActorMessage::Rows => self.rows_due = Instant::now(),
            ActorMessage::Finish { reason, reply } => self.finishing = Some((reason, reply)),
        }
    }

    /// Puts a command into the inbox, from which it is taken when its time comes.
    pub(crate) async fn insert(&mut self, command: &Command, reply: ReceiptSender) {
        let inserted = intake::insert(&self.shared.link, command, None).await;
        if let Ok((id, _)) = &inserted {
            self.own_inputs.insert(id.clone());
        }
        let _ = reply.send(inserted.map(|(input_id, _)| Receipt::waiting(input_id)));
        self.rows_due = Instant::now();
    }
}

/// Returns why a cancellation of the run `named` is refused; `current` is the run that is going on.
pub(crate) fn not_this_run(named: &RunId, current: Option<&RunId>) -> String {
    match current {
        Some(current) => format!("run {named} is not going on in this session; run {current} is"),
        None => format!("run {named} is not going on in this session; no run is"),
    }
}
