//! A handle to the actor of a session.
//!
//! Effects: in-process state, the clock, randomness, the store (writes), the journal (reads).

use crate::approver::HostApprover;
use crate::error;
use crate::feed::Feed;
use crate::intake;
use crate::link::SessionLink;
use crate::reply::ActorMessage;
use crate::subscription::SessionSubscription;
use std::sync::Arc;
use stead_agent::{AgentError, MessageQueue, Subagents};
use stead_core::{ClientError, Command, Cursor, InputId, InputStatus, Presence, Receipt};
use tokio::sync::{mpsc, oneshot};

/// A handle to a session of this host. The session's actor exists while there are handles to it.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<ActorMessage>,
    pub(crate) shared: Arc<SharedSession>,
}

/// What an actor and the handles to it share.
#[derive(Debug)]
pub(crate) struct SharedSession {
    pub(crate) link: Arc<SessionLink>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) queue: Arc<MessageQueue>,
    pub(crate) approver: Arc<HostApprover>,
    pub(crate) subagents: Arc<Subagents>,
}

impl SessionHandle {
    /// Sends a command. On return it is durable. If another process runs the session, the command
    /// waits in the session's inbox.
    pub async fn send(&self, command: Command, key: Option<&str>) -> Result<Receipt, ClientError> {
        if key.is_some() {
            let (input_id, status) = intake::insert(&self.shared.link, &command, key).await?;
            // The actor takes the row, or finds that another process has.
            let _ = self.commands.send(ActorMessage::Rows).await;
            return match status {
                InputStatus::Waiting | InputStatus::Done => Ok(Receipt::waiting(input_id)),
                InputStatus::Recorded { seq } => Ok(Receipt::recorded(input_id, seq)),
                InputStatus::Refused { reason } => Err(ClientError::refused(reason)),
            };
        }
        let (reply, receipt) = oneshot::channel();
        let message = ActorMessage::Command { command, reply };
        self.commands.send(message).await.map_err(|_| ended())?;
        receipt.await.map_err(|_| ended())?
    }

    /// Returns what happens in the session after `cursor`.
    pub(crate) async fn subscribe(
        &self,
        cursor: Cursor,
        presence: Presence,
    ) -> Result<SessionSubscription, ClientError> {
        SessionSubscription::open(self.clone(), cursor, presence).await
    }

    /// Returns what became of a command.
    pub async fn status(&self, input: &InputId) -> Result<Option<InputStatus>, ClientError> {
        let link = &self.shared.link;
        let status = link.inbox.status(input).await;
        status.map_err(|error| error::from_inbox(&link.session, error))
    }

    /// The messages that wait for the run in this process.
    pub fn queue(&self) -> &Arc<MessageQueue> {
        &self.shared.queue
    }

    /// The tasks of subagents that this process runs for the session.
    pub fn subagents(&self) -> &Arc<Subagents> {
        &self.shared.subagents
    }

    /// Whether this process runs the session at this moment.
    pub fn is_running(&self) -> bool {
        self.shared.feed.is_running()
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
    ClientError::failed("the host of this session has ended")
}
