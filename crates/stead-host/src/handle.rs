//! A handle to the actor of a session.

use crate::approver::{AttachedPerson, HostApprover};
use crate::error;
use crate::feed::Feed;
use crate::intake;
use crate::link::SessionLink;
use crate::reply::ActorMessage;
use crate::subscription::SessionSubscription;
use std::sync::Arc;
use stead_agent::{AgentError, MessageQueue, RunReport};
use stead_core::{ClientError, Command, Cursor, InputId, InputStatus, Receipt};
use tokio::sync::{mpsc, oneshot};

/// A handle to a session of this host. The session's actor exists while there are handles to it.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<ActorMessage>,
    pub(crate) link: Arc<SessionLink>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) queue: Arc<MessageQueue>,
    pub(crate) approver: Arc<HostApprover>,
}

/// Somebody listens who can be asked, as long as this exists.
#[derive(Debug)]
pub struct Attachment {
    _person: AttachedPerson,
}

impl SessionHandle {
    /// Sends a command. On return it is durable. If another process runs the session, the command
    /// waits in the session's inbox.
    pub async fn send(&self, command: Command, key: Option<&str>) -> Result<Receipt, ClientError> {
        if key.is_some() {
            let (input_id, status) = intake::insert(&self.link, &command, key).await?;
            // The actor takes the row, or finds that another process has.
            let _ = self.commands.send(ActorMessage::Rows).await;
            return match status {
                InputStatus::Waiting => Ok(Receipt {
                    input_id,
                    seq: None,
                }),
                InputStatus::Recorded { seq } => Ok(Receipt {
                    input_id,
                    seq: Some(seq),
                }),
                InputStatus::Refused { reason } => Err(ClientError::Refused {
                    message: reason,
                    hint: None,
                }),
            };
        }
        let (reply, receipt) = oneshot::channel();
        let message = ActorMessage::Command { command, reply };
        self.commands.send(message).await.map_err(|_| ended())?;
        receipt.await.map_err(|_| ended())?
    }

    /// Sends a command that begins a run, and returns the report of the run. Refused if another
    /// process runs the session.
    pub async fn run(&self, command: Command) -> Result<RunReport, AgentError> {
        let (reply, report) = oneshot::channel();
        let message = ActorMessage::Run { command, reply };
        let lost = || AgentError::Stopped(stead_agent::StopCause::Cancelled);
        self.commands.send(message).await.map_err(|_| lost())?;
        report.await.map_err(|_| lost())?
    }

    /// Returns what happens in the session after `cursor`.
    pub(crate) async fn subscribe(
        &self,
        cursor: Cursor,
    ) -> Result<SessionSubscription, ClientError> {
        SessionSubscription::open(self.clone(), cursor).await
    }

    /// Returns what became of a command.
    pub async fn status(&self, input: &InputId) -> Result<Option<InputStatus>, ClientError> {
        let status = self.link.inbox.status(input).await;
        status.map_err(|error| error::from_inbox(&self.link.session, error))
    }

    /// Somebody who can be asked listens: questions wait for an answer instead of parking the run.
    pub fn attach(&self) -> Attachment {
        Attachment {
            _person: self.approver.attach(),
        }
    }

    /// The messages that wait for the run in this process.
    pub fn queue(&self) -> &Arc<MessageQueue> {
        &self.queue
    }

    /// Runs the hooks for the end of the session and writes derived data.
    pub async fn finish(&self, reason: &'static str) -> Result<(), AgentError> {
        let (reply, done) = oneshot::channel();
        let message = ActorMessage::Finish { reason, reply };
        match self.commands.send(message).await {
            Ok(()) => done.await.unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }
}

fn ended() -> ClientError {
    ClientError::Failed("the host of this session has ended".to_owned())
}
