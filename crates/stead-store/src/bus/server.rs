//! A bus over a server (Redis, PostgreSQL): one task that sends, one that listens.
//!
//! Effects: the clock, randomness, the network.

use super::envelope::{GapDetector, Numbering};
use super::hub::{Hub, HubEvent};
use super::local::deliver;
use super::{Bus, BusSubscription, Channel, Envelope, Topic};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// The number of messages that wait to be sent. More are dropped.
const OUTGOING: usize = 1024;
/// The number of messages sent in one request.
const BATCH: usize = 64;
const LISTEN_REQUESTS: usize = 64;
/// The longest wait for a connection, and for an answer on it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection on which nothing came for this long is checked.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The reason why a connection is unusable.
#[derive(Debug)]
pub(crate) struct BusFault(pub(crate) String);

/// A server that carries messages.
pub(crate) trait BusTransport: fmt::Debug + Send + Sync {
    /// Sends messages, once.
    fn publish<'a>(
        &'a self,
        batch: &'a [(Channel, Envelope)],
    ) -> BoxFuture<'a, Result<(), BusFault>>;

    /// Opens a connection that listens.
    fn connect(&self) -> BoxFuture<'_, Result<Box<dyn BusListener>, BusFault>>;

    /// Returns the server for messages to people.
    fn place(&self) -> &str;
}

/// A connection that listens.
pub(crate) trait BusListener: Send {
    /// Begins to listen to a topic.
    fn listen<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>>;

    /// Stops listening to a topic.
    fn unlisten<'a>(&'a mut self, channel: &'a str) -> BoxFuture<'a, Result<(), BusFault>>;

    /// Checks that the server answers.
    fn ping(&mut self) -> BoxFuture<'_, Result<(), BusFault>>;

    /// Waits for the next message. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Result<(String, Option<Envelope>), BusFault>>;
}

/// A bus over a server. Its tasks start with the first use and end with it.
#[derive(Debug)]
pub(crate) struct ServerBus {
    transport: Arc<dyn BusTransport>,
    hub: Arc<Hub>,
    numbering: Arc<Numbering>,
    workers: Mutex<Option<Workers>>,
}

/// The tasks of a bus.
#[derive(Debug)]
struct Workers {
    links: WorkerLinks,
    _tasks: JoinSet<()>,
}

/// The channels to the tasks of a bus.
#[derive(Debug, Clone)]
struct WorkerLinks {
    outgoing: mpsc::Sender<(Channel, Envelope)>,
    requests: mpsc::Sender<ListenRequest>,
}

/// A request to the listening task.
#[derive(Debug)]
enum ListenRequest {
    Listen {
        channel: Channel,
        done: oneshot::Sender<Result<(), BusFault>>,
    },
    /// A subscriber left; the topic may have others.
    Left(Channel),
}

impl ServerBus {
    pub(crate) fn new(transport: Arc<dyn BusTransport>) -> Self {
        Self {
            transport,
            hub: Arc::default(),
            numbering: Arc::new(Numbering::new()),
            workers: Mutex::default(),
        }
    }

    /// Returns the channels to the tasks, which are started if they do not run. Returns `None`
    /// outside a runtime.
    fn workers(&self) -> Option<WorkerLinks> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        // The tasks end with the runtime that they were started on.
        if let Some(Workers { links, .. }) = &*workers
            && !links.requests.is_closed()
        {
            return Some(links.clone());
        }
        let runtime = Handle::try_current().ok()?;
        let (outgoing, to_send) = mpsc::channel(OUTGOING);
        let (requests, to_listen) = mpsc::channel(LISTEN_REQUESTS);
        let mut tasks = JoinSet::new();
        tasks.spawn_on(send(self.transport.clone(), to_send), &runtime);
        let listening = ListeningTask {
            transport: self.transport.clone(),
            hub: self.hub.clone(),
            numbering: self.numbering.clone(),
            gaps: HashMap::new(),
            listened: HashSet::new(),
        };
        tasks.spawn_on(listening.run(to_listen), &runtime);
        let links = WorkerLinks { outgoing, requests };
        *workers = Some(Workers {
            links: links.clone(),
            _tasks: tasks,
        });
        Some(links)
    }

    fn unavailable(&self, cause: String) -> StoreError {
        StoreError::Unavailable {
            place: self.transport.place().to_owned(),
            cause,
        }
    }
}

impl Bus for ServerBus {
    fn publish(&self, topic: &Topic, message: Bytes) {
        let channel = topic.channel();
        self.hub.send(channel, HubEvent::Message(message.clone()));
        let envelope = self.numbering.envelope(channel, message);
        if let Some(WorkerLinks { outgoing, .. }) = self.workers() {
            // A message that does not fit is lost, and receivers notice the missing number.
            let _ = outgoing.try_send((channel.clone(), envelope));
        }
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a Topic,
    ) -> BoxFuture<'a, Result<BusSubscription, StoreError>> {
        Box::pin(async move {
            let channel = topic.channel();
            let ended = || self.unavailable("the listening task has ended".to_owned());
            let WorkerLinks { requests, .. } = self.workers().ok_or_else(ended)?;
            // Before the request, so that a connection made meanwhile listens to the topic.
            let receiver = self.hub.subscribe(channel);
            let (done, answer) = oneshot::channel();
            let request = ListenRequest::Listen {
                channel: channel.clone(),
                done,
            };
            requests.send(request).await.map_err(|_| ended())?;
            let heard = answer.await.map_err(|_| ended())?;
            heard.map_err(|BusFault(cause)| self.unavailable(cause))?;
            let listening = Listening {
                channel: channel.clone(),
                requests,
            };
            Ok(BusSubscription {
                receiver,
                _listening: Some(Arc::new(listening)),
            })
        })
    }
}

/// Tells the listening task when a subscriber has left.
struct Listening {
    channel: Channel,
    requests: mpsc::Sender<ListenRequest>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        // If it is not told, the server sends messages that nobody reads.
        let left = ListenRequest::Left(self.channel.clone());
        let _ = self.requests.try_send(left);
    }
}

/// Sends messages in batches. What cannot be sent is lost.
async fn send(transport: Arc<dyn BusTransport>, mut outgoing: mpsc::Receiver<(Channel, Envelope)>) {
    let mut batch = Vec::with_capacity(BATCH);
    while outgoing.recv_many(&mut batch, BATCH).await > 0 {
        let sent = timeout(ANSWER_TIMEOUT, transport.publish(&batch)).await;
        if let Ok(Err(BusFault(cause))) = sent {
            tracing::debug!(place = transport.place(), %cause, "messages were not sent");
        }
        batch.clear();
    }
}

/// The task that receives the messages of all topics of a bus.
struct ListeningTask {
    transport: Arc<dyn BusTransport>,
    hub: Arc<Hub>,
    numbering: Arc<Numbering>,
    gaps: HashMap<String, GapDetector>,
    /// The topics that the connection listens to.
    listened: HashSet<Channel>,
}

/// The state of the connection.
enum Connection {
    /// None is needed, for nobody has subscribed since the start.
    NotYet,
    /// It was lost, and is opened again at this time.
    Lost {
        retry_at: Instant,
        pause: Duration,
    },
    Open(Box<dyn BusListener>),
}

/// What happened on an open connection.
enum Happened {
    Request(Option<ListenRequest>),
    Received(String, Option<Envelope>),
    Silence,
    Fault(BusFault),
}

impl ListeningTask {
    async fn run(mut self, mut requests: mpsc::Receiver<ListenRequest>) {
        let mut connection = Connection::NotYet;
        loop {
            connection = match connection {
                Connection::NotYet => match requests.recv().await {
                    None => return,
                    Some(request) => self.answer_unconnected(request, Connection::NotYet).await,
                },
                Connection::Lost { retry_at, pause } => {
                    let lost = Connection::Lost { retry_at, pause };
                    tokio::select! {
                        request = requests.recv() => match request {
                            None => return,
                            Some(request) => self.answer_unconnected(request, lost).await,
                        },
                        () = sleep_until(retry_at) => self.connect_again(pause).await,
                    }
                }
                Connection::Open(listener) => match self.work(listener, &mut requests).await {
                    None => return,
                    Some(next) => next,
                },
            };
        }
    }

    /// Opens a connection that listens to every topic with subscribers.
    async fn connect(&mut self) -> Result<Box<dyn BusListener>, BusFault> {
        let channels = self.hub.channels();
        let opened = async {
            let mut listener = self.transport.connect().await?;
            for channel in &channels {
                listener.listen(channel).await?;
            }
            Ok(listener)
        };
        let listener = with_timeout(opened).await?;
        self.gaps.clear();
        self.listened = channels.into_iter().collect();
        Ok(listener)
    }

    /// Opens the connection because of a request.
    async fn answer_unconnected(&mut self, request: ListenRequest, now: Connection) -> Connection {
        let ListenRequest::Listen { done, .. } = request else {
            return now;
        };
        match self.connect().await {
            Ok(listener) => {
                match now {
                    // Those who subscribed before the loss have missed messages.
                    Connection::Lost { .. } => self.hub.send_to_all(&HubEvent::Lagged),
                    Connection::NotYet | Connection::Open(_) => {}
                }
                let _ = done.send(Ok(()));
                Connection::Open(listener)
            }
            Err(fault) => {
                let _ = done.send(Err(fault));
                now
            }
        }
    }

    async fn connect_again(&mut self, pause: Duration) -> Connection {
        if self.hub.channels().is_empty() {
            return Connection::NotYet;
        }
        match self.connect().await {
            Ok(listener) => {
                // After listening has begun, so that who catches up now misses nothing.
                self.hub.send_to_all(&HubEvent::Lagged);
                Connection::Open(listener)
            }
            Err(BusFault(cause)) => {
                tracing::debug!(place = self.transport.place(), %cause, "the bus is not connected");
                let pause = (pause * 2).min(LONGEST_PAUSE);
                Connection::Lost {
                    retry_at: Instant::now() + pause,
                    pause,
                }
            }
        }
    }

    /// Waits for one thing to happen on an open connection and handles it. Returns `None` when the
    /// bus has ended.
    async fn work(
        &mut self,
        mut listener: Box<dyn BusListener>,
        requests: &mut mpsc::Receiver<ListenRequest>,
    ) -> Option<Connection> {
        let happened = tokio::select! {
            request = requests.recv() => Happened::Request(request),
            received = listener.next() => match received {
                Ok((channel, envelope)) => Happened::Received(channel, envelope),
                Err(fault) => Happened::Fault(fault),
            },
            () = tokio::time::sleep(PING_INTERVAL) => Happened::Silence,
        };
        let handled = match happened {
            Happened::Request(None) => return None,
            Happened::Request(Some(request)) => self.answer(&mut listener, request).await,
            Happened::Silence => with_timeout(listener.ping()).await,
            Happened::Received(channel, envelope) => {
                self.receive(channel, envelope);
                Ok(())
            }
            Happened::Fault(fault) => Err(fault),
        };
        Some(match handled {
            Ok(()) => Connection::Open(listener),
            Err(BusFault(cause)) => {
                tracing::debug!(place = self.transport.place(), %cause, "the bus lost its connection");
                Connection::Lost {
                    retry_at: Instant::now() + FIRST_PAUSE,
                    pause: FIRST_PAUSE,
                }
            }
        })
    }

    async fn answer(
        &mut self,
        listener: &mut Box<dyn BusListener>,
        request: ListenRequest,
    ) -> Result<(), BusFault> {
        match request {
            ListenRequest::Listen { channel, done } => {
                if !self.listened.contains(&channel) {
                    if let Err(BusFault(cause)) = with_timeout(listener.listen(&channel)).await {
                        let _ = done.send(Err(BusFault(cause.clone())));
                        return Err(BusFault(cause));
                    }
                    self.listened.insert(channel.clone());
                }
                match done.send(Ok(())) {
                    Ok(()) => Ok(()),
                    // The subscriber gave up meanwhile.
                    Err(_) => self.leave(listener, &channel).await,
                }
            }
            ListenRequest::Left(channel) => self.leave(listener, &channel).await,
        }
    }

    /// Stops listening to a topic without subscribers.
    async fn leave(
        &mut self,
        listener: &mut Box<dyn BusListener>,
        channel: &Channel,
    ) -> Result<(), BusFault> {
        if self.hub.is_heard(channel) || !self.listened.remove(channel) {
            return Ok(());
        }
        self.gaps.remove(&**channel);
        with_timeout(listener.unlisten(channel)).await
    }

    fn receive(&mut self, channel: String, envelope: Option<Envelope>) {
        let Some(envelope) = envelope else { return };
        if self.numbering.is_own(&envelope) || !self.hub.is_heard(&channel) {
            return;
        }
        let gaps = self.gaps.entry(channel.clone()).or_default();
        deliver(&self.hub, &channel, gaps, envelope);
    }
}

async fn with_timeout<T>(work: impl Future<Output = Result<T, BusFault>>) -> Result<T, BusFault> {
    match timeout(ANSWER_TIMEOUT, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(BusFault(format!(
            "no answer within {} s",
            ANSWER_TIMEOUT.as_secs()
        ))),
    }
}
