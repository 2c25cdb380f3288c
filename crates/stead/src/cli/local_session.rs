//! A session of an agent that this process opened, as its clients reach it.
//!
//! Effects: in-process state, the store (writes), the journal (appends), hooks, tools, the model.

use super::args::ApproveMode;
use super::env::ProcessEnv;
use std::sync::Arc;
use stead::agent::{Agent, AgentError};
use stead::core::{
    AnswerPolicy, Client, ClientError, Command, Cursor, InputStatus, Presence, Receipt,
    SessionAddress, SessionEvent, SessionId,
};
use stead::host::{Host, SessionHandle, SessionOptions};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The name of the agent in the host of this process.
const AGENT: &str = "workspace";
/// The events that wait for the screen; more wait in the subscription.
const EVENTS_CAPACITY: usize = 256;

/// A session, and the host of this process that it is reached through.
#[derive(Clone)]
pub(crate) struct LocalSession {
    host: Arc<Host>,
    pub(crate) address: SessionAddress,
    handle: SessionHandle,
}

impl LocalSession {
    /// Opens a session of `agent`. Nothing is read or written until it is used.
    pub(crate) async fn open(
        agent: &Arc<Agent>,
        session: SessionId,
        options: SessionOptions,
    ) -> Result<Self, ClientError> {
        let host = Host::new();
        host.add_agent(AGENT, agent.clone());
        let address = host.address(AGENT, session).await?;
        let handle = host.open(&address, options).await?;
        Ok(Self {
            host,
            address,
            handle,
        })
    }

    /// Returns the actor of the session in this process.
    pub(crate) fn handle(&self) -> &SessionHandle {
        &self.handle
    }

    /// Sends a command. On return it is durable.
    pub(crate) async fn send(&self, command: Command) -> Result<Receipt, ClientError> {
        self.host.send(&self.address, command, None).await
    }

    /// Sends a command that has the same effect however many clients send it under `key`.
    pub(crate) async fn send_once(
        &self,
        command: Command,
        key: &str,
    ) -> Result<Receipt, ClientError> {
        self.host.send(&self.address, command, Some(key)).await
    }

    /// Returns which process runs the session, in words.
    pub(crate) async fn holder(&self) -> Result<Option<String>, ClientError> {
        self.host.holder(&self.address).await
    }

    /// Returns what became of a command.
    pub(crate) async fn status(
        &self,
        receipt: &Receipt,
    ) -> Result<Option<InputStatus>, ClientError> {
        let session = receipt.inbox_of.clone();
        let address = SessionAddress {
            session: session.unwrap_or_else(|| self.address.session.clone()),
            ..self.address.clone()
        };
        self.host.status(&address, &receipt.input_id).await
    }

    /// Returns what happens in the session after `cursor`.
    pub(crate) async fn subscribe(
        &self,
        cursor: Cursor,
        presence: Presence,
    ) -> Result<SessionEvents, ClientError> {
        let mut subscription = self.host.subscribe(&self.address, cursor, presence).await?;
        let (sender, receiver) = mpsc::channel(EVENTS_CAPACITY);
        let mut pump = JoinSet::new();
        pump.spawn(async move {
            loop {
                let event = subscription.next().await;
                let is_last = event.is_err();
                if sender.send(event).await.is_err() || is_last {
                    return;
                }
            }
        });
        Ok(SessionEvents {
            receiver,
            _pump: pump,
        })
    }

    /// Runs the hooks for the end of the session, writes derived data and ends the actor. Runs that
    /// this process carries out end first.
    pub(crate) async fn close(self, reason: &'static str) -> Result<(), AgentError> {
        let finished = self.handle.finish(reason).await;
        drop(self.handle);
        self.host.close().await;
        finished
    }
}

/// The events of a session. Dropping it ends the subscription.
pub(crate) struct SessionEvents {
    receiver: mpsc::Receiver<Result<SessionEvent, ClientError>>,
    _pump: JoinSet<()>,
}

impl SessionEvents {
    /// Waits for the next event. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<SessionEvent, ClientError> {
        let ended = || Err(ClientError::failed("the subscription has ended"));
        self.receiver.recv().await.unwrap_or_else(ended)
    }
}

impl ApproveMode {
    /// Returns how the questions of a run are answered.
    pub(crate) fn answers(self) -> AnswerPolicy {
        match self {
            Self::Ask => AnswerPolicy::Ask,
            Self::All => AnswerPolicy::ApproveAll,
            Self::None => AnswerPolicy::DenyAll,
        }
    }

    /// Returns whether somebody at this terminal is there to be asked.
    pub(crate) fn presence(self, env: &ProcessEnv) -> Presence {
        match self {
            Self::Ask if env.stdin_is_terminal && env.stderr_is_terminal => Presence::Answers,
            Self::Ask | Self::All | Self::None => Presence::Watches,
        }
    }
}
