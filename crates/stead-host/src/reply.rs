//! Messages to the actor of a session, and whom to tell what became of a command.
//!
//! Effects: none.

use crate::mailbox::not_this_run;
use crate::run_progress::{ReceiptSender, RunProgress};
use std::sync::Arc;
use stead_agent::AgentError;
use stead_core::{Command, InputId, RunId};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// A message to an actor.
#[derive(Debug)]
pub(crate) enum ActorMessage {
    /// A command of a client.
    Command {
        command: Command,
        reply: ReceiptSender,
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
pub(crate) enum ReplyTo {
    Client(ReceiptSender),
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

impl RunReach {
    /// Cancels the run if it is the one that is named, or none is. Otherwise returns why not.
    pub(crate) fn cancel(&self, named: Option<&RunId>) -> Result<(), String> {
        let current = self.progress.run();
        match named {
            Some(named) if current.as_ref() != Some(named) => {
                Err(not_this_run(named, current.as_ref()))
            }
            Some(_) | None => {
                self.cancel.cancel();
                Ok(())
            }
        }
    }
}

impl ReplyTo {
    pub(crate) fn row(&self) -> Option<InputId> {
        match self {
            Self::Row(id) => Some(id.clone()),
            Self::Client(_) | Self::Nobody => None,
        }
    }
}
