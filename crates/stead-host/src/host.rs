//! The host: the agents of this process, and the actors of their sessions.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the store (writes), the journal (writes), hooks, tools, the model, the network.

use crate::actor::SessionActor;
use crate::handle::{SessionHandle, SharedSession};
use crate::link::HostId;
use crate::mailbox::{ActorChannel, Mailbox};
use crate::options::SessionOptions;
use crate::registry::AgentRegistry;
use crate::reply::ActorMessage;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_agent::{Agent, AgentBuilder, AgentError};
use stead_core::{
    Client, ClientError, ClientFuture, Command, Cursor, InputId, InputStatus, Presence, Receipt,
    SessionAddress, SessionId, Subscription,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The commands that wait for an actor; senders wait for room.
const COMMANDS_CAPACITY: usize = 64;

/// Sessions that can be addressed.
#[derive(Debug)]
pub struct Host {
    id: HostId,
    agents: AgentRegistry,
    sessions: Mutex<ActiveSessions>,
    tasks: TaskTracker,
    closing: CancellationToken,
}

/// The sessions with an actor.
type ActiveSessions = HashMap<SessionAddress, ActiveSession>;

/// A session with an actor, while that exists.
#[derive(Debug, Clone)]
struct ActiveSession {
    commands: mpsc::WeakSender<ActorMessage>,
    shared: Arc<SharedSession>,
}

impl ActiveSession {
    fn handle(&self) -> Option<SessionHandle> {
        Some(SessionHandle {
            commands: self.commands.upgrade()?,
            shared: self.shared.clone(),
        })
    }
}

impl Host {
    /// Returns a host without agents.
    pub fn new() -> Arc<Self> {
        let now = unix_nanos();
        Arc::new(Self {
            id: HostId(now ^ (u64::from(std::process::id()) << 40)),
            agents: AgentRegistry::default(),
            sessions: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// Adds an agent under a name, or replaces it. Sessions that are active keep the agent they
    /// have.
    pub fn add_agent(&self, name: impl Into<String>, agent: Arc<Agent>) {
        self.agents.add(name.into(), agent);
    }

    /// Adds an agent that is built at its first use, and built again when its files have changed.
    /// Sessions that are active keep the agent they have.
    pub fn add_source(
        &self,
        name: impl Into<String>,
        source: impl Fn() -> AgentBuilder + Send + Sync + 'static,
    ) {
        self.agents.add_source(name.into(), source);
    }

    /// Returns an agent as its files define it now.
    pub async fn agent(&self, name: &str) -> Result<Arc<Agent>, ClientError> {
        self.agents.get(name).await
    }

    /// Returns the address of a session of the agent's default owner.
    pub async fn address(
        &self,
        agent: &str,
        session: SessionId,
    ) -> Result<SessionAddress, ClientError> {
        let owner = self.agents.get(agent).await?.owner().clone();
        Ok(SessionAddress {
            owner,
            agent: agent.to_owned(),
            session,
        })
    }

    /// Returns a handle to a session. Nothing of the session is read or written until it is used.
    ///
    /// A session has one actor in a host. If it is active already, also with a run that is going
    /// on, the handle is one more to the same actor, and `options` are not used: they remain those
    /// of whoever opened the session first.
    pub async fn open(
        &self,
        address: &SessionAddress,
        options: SessionOptions,
    ) -> Result<SessionHandle, ClientError> {
        let active = |sessions: &ActiveSessions| sessions.get(address)?.handle();
        if let Some(handle) = active(&lock(&self.sessions)) {
            return Ok(handle);
        }
        let agent = self.agents.get(&address.agent).await?;
        let mut sessions = lock(&self.sessions);
        // Another caller may have opened it meanwhile.
        if let Some(handle) = active(&sessions) {
            return Ok(handle);
        }
        sessions.retain(|_, active| active.commands.strong_count() > 0);
        let session = agent.session_of(address.owner.clone(), address.session.clone());
        let shared = SharedSession::new(address.clone(), agent, &session, self.id);
        let shared = Arc::new(shared);
        let (commands, receiver) = mpsc::channel(COMMANDS_CAPACITY);
        let channel = ActorChannel {
            receiver,
            own: commands.downgrade(),
            closing: self.closing.clone(),
        };
        let mailbox = Mailbox::new(shared.clone(), options, channel);
        self.tasks.spawn(SessionActor::new(session, mailbox).work());
        let active = ActiveSession {
            commands: commands.downgrade(),
            shared: shared.clone(),
        };
        sessions.insert(address.clone(), active);
        Ok(SessionHandle { commands, shared })
    }

    /// Finishes the use of the host's only session ([`SessionHandle::finish`]) and closes the host.
    pub async fn finish(
        &self,
        session: SessionHandle,
        reason: &'static str,
    ) -> Result<(), AgentError> {
        let finished = session.finish(reason).await;
        drop(session);
        self.close().await;
        finished
    }

    /// Waits until all actors have ended. They end when nobody holds a handle to them and their runs
    /// have ended. Commands for sessions that other processes run stay in their inboxes.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Client for Host {
    fn send<'a>(
        &'a self,
        to: &'a SessionAddress,
        command: Command,
        key: Option<&'a str>,
    ) -> ClientFuture<'a, Receipt> {
        Box::pin(async move {
            let handle = self.open(to, SessionOptions::default()).await?;
            match key {
                Some(key) => handle.send_once(command, key).await,
                None => handle.send(command).await,
            }
        })
    }

    fn subscribe<'a>(
        &'a self,
        to: &'a SessionAddress,
        cursor: Cursor,
        presence: Presence,
    ) -> ClientFuture<'a, Box<dyn Subscription>> {
        Box::pin(async move {
            let handle = self.open(to, SessionOptions::default()).await?;
            let subscription = handle.subscribe(cursor, presence).await?;
            let subscription: Box<dyn Subscription> = Box::new(subscription);
            Ok(subscription)
        })
    }

    fn holder<'a>(&'a self, to: &'a SessionAddress) -> ClientFuture<'a, Option<String>> {
        Box::pin(async move {
            let agent = self.agents.get(&to.agent).await?;
            let session = agent.session_of(to.owner.clone(), to.session.clone());
            let holder = session.holder().await;
            Ok(holder.map(|holder| holder.to_string()))
        })
    }

    fn status<'a>(
        &'a self,
        to: &'a SessionAddress,
        input: &'a InputId,
    ) -> ClientFuture<'a, Option<InputStatus>> {
        Box::pin(async move {
            let handle = self.open(to, SessionOptions::default()).await?;
            handle.status(&Receipt::waiting(input.clone())).await
        })
    }
}

fn unix_nanos() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_nanos() as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
