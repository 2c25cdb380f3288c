//! A handle to a session, and what it shares with the actor of the session.
//!
//! Effects: the clock, randomness, the store (writes), the journal (writes).

use crate::approver::HostApprover;
use crate::error;
use crate::feed::Feed;
use crate::intake;
use crate::link::{HostId, SessionLink};
use crate::reply::ActorMessage;
use crate::subscription::SessionSubscription;
use std::sync::Arc;
use stead_agent::{Agent, AgentError, MessageQueue, Session, Subagents};
use stead_core::{
    ClientError, Command, Cursor, InputStatus, Presence, Receipt, SessionAddress, SessionId,
};
use tokio::sync::{mpsc, oneshot};

/// A handle to a session of this host. The session's actor exists while there are handles to it.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<ActorMessage>,
    pub(crate) shared: Arc<SharedSession>,
}

/// What the actor of a session and the handles to it share.
#[derive(Debug)]
pub(crate) struct SharedSession {
    pub(crate) address: SessionAddress,
    pub(crate) agent: Arc<Agent>,
    pub(crate) link: Arc<SessionLink>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) queue: Arc<MessageQueue>,
    pub(crate) approver: Arc<HostApprover>,
    pub(crate) subagents: Arc<Subagents>,
}

impl SharedSession {
    /// Returns what is shared about `session` of `agent`, whose address is `address`.
    pub(crate) fn new(
        address: SessionAddress,
        agent: Arc<Agent>,
        session: &Session,
        host: HostId,
    ) -> Self {
        let id = address.session.clone();
        let link = Arc::new(SessionLink::new(&agent, &address.owner, id, host));
        let queue = MessageQueue::new(agent.workspace().config().queue.clone());
        Self {
            feed: Feed::new(link.clone()),
            link,
            queue: Arc::new(queue),
            approver: Arc::new(HostApprover::default()),
            subagents: session.subagents().clone(),
            address,
            agent,
        }
    }

    /// Returns the session `id` of the same owner, such as one of a subagent.
    pub(crate) fn session_of(&self, id: SessionId) -> Session {
        self.agent.session_of(self.address.owner.clone(), id)
    }

    /// Returns the link of the session `id` of the same owner.
    pub(crate) fn link_of(&self, id: SessionId) -> SessionLink {
        self.link.of_session(&self.agent, &self.address.owner, id)
    }
}

impl SessionHandle {
    /// Returns the address of the session.
    pub fn address(&self) -> &SessionAddress {
        &self.shared.address
    }

    /// Sends a command. On return it is durable. If another process runs the session, the command
    /// waits in the session's inbox.
    pub async fn send(&self, command: Command) -> Result<Receipt, ClientError> {
        let (reply, receipt) = oneshot::channel();
        let message = ActorMessage::Command { command, reply };
        self.commands.send(message).await.map_err(|_| ended())?;
        receipt.await.map_err(|_| ended())?
    }

    /// Sends a command that has the same effect however often it is sent under `key`.
    pub async fn send_once(&self, command: Command, key: &str) -> Result<Receipt, ClientError> {
        let inserted = intake::insert(&self.shared.link, &command, Some(key)).await;
        let (input_id, status) = inserted?;
        // The actor takes the row, or finds that another process has.
        let _ = self.commands.send(ActorMessage::Rows).await;
        match status {
            InputStatus::Waiting | InputStatus::Done => Ok(Receipt::waiting(input_id)),
            InputStatus::Recorded { seq } => Ok(Receipt::recorded(input_id, seq)),
            InputStatus::Refused { reason } => Err(ClientError::refused(reason)),
        }
    }

    /// Returns what happens in the session after `cursor`.
    pub async fn subscribe(
        &self,
        cursor: Cursor,
        presence: Presence,
    ) -> Result<SessionSubscription, ClientError> {
        SessionSubscription::open(self.clone(), cursor, presence).await
    }

    /// Returns what became of a command.
    pub async fn status(&self, receipt: &Receipt) -> Result<Option<InputStatus>, ClientError> {
        let status = match receipt.inbox_of.clone() {
            Some(other) => {
                let link = self.shared.link_of(other);
                link.inbox.status(&receipt.input_id).await
            }
            None => self.shared.link.inbox.status(&receipt.input_id).await,
        };
        status.map_err(|error| error::from_inbox(&self.shared.link.session, error))
    }

    /// Returns which process runs the session at this moment, in words, if one does.
    pub async fn holder(&self) -> Option<String> {
        let id = self.shared.address.session.clone();
        let holder = self.shared.session_of(id).holder().await;
        holder.map(|holder| holder.to_string())
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
