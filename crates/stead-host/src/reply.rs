//! Messages to an actor, and whom to tell what became of a command.

use crate::run_progress::RunProgress;
use std::sync::Arc;
use stead_agent::{AgentError, RunReport};
use stead_core::{ClientError, Command, InputId, Receipt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

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

/// Both ends of the channel to an actor, as the actor holds them.
#[derive(Debug)]
pub(crate) struct ActorCommands {
    pub(crate) receiver: mpsc::Receiver<ActorMessage>,
    pub(crate) own: mpsc::WeakSender<ActorMessage>,
}

/// Whom to tell what became of a command.
#[derive(Debug)]
pub(crate) enum ReplyTo {
    Client(oneshot::Sender<Result<Receipt, ClientError>>),
    Caller(oneshot::Sender<Result<RunReport, AgentError>>),
    /// The command is a row of the inbox.
    Row(InputId),
    Nobody,
}

/// A command that waits for the session to be idle.
#[derive(Debug)]
pub(crate) struct PendingCommand {
    pub(crate) command: Command,
    pub(crate) reply: ReplyTo,
}

/// The run that is going on, for commands that reach it.
#[derive(Debug, Clone)]
pub(crate) struct RunReach {
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Arc<RunProgress>,
}

impl ReplyTo {
    pub(crate) fn row(&self) -> Option<InputId> {
        match self {
            Self::Row(id) => Some(id.clone()),
            Self::Client(_) | Self::Caller(_) | Self::Nobody => None,
        }
    }
}
