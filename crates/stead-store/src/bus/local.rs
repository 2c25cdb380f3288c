//! A bus between the processes of one user on one machine, over Unix datagram sockets.
//!
//! Each process has one socket for each topic that it subscribes to, in the topic's folder. A
//! publisher sends to every socket in that folder, which it lists at most every 20 ms, and when it
//! hears from a process for the first time: an answer must reach who asked.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes).

use super::envelope::{Continuity, GapDetector, HEADER_BYTES, Numbering};
use super::hub::{Hub, HubEvent};
use super::runtime_dir::{
    FolderState, RuntimeDir, SOCKET_SUFFIX, check_length, remove, remove_topic, sockets,
};
use super::{Bus, BusSubscription, Channel, Envelope, MAX_BUS_MESSAGE_BYTES, Topic, short_hash};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::net::UnixDatagram;
use tokio::task::JoinSet;

/// How long a listing of a topic's sockets is used.
const LISTING_AGE: Duration = Duration::from_millis(20);
/// The number of topics whose listings are kept.
const MAX_LISTINGS: usize = 1024;
/// The attempts to bind a socket while other processes remove the folder or have the name.
const BIND_ATTEMPTS: usize = 16;
const READ_ERROR_PAUSE: Duration = Duration::from_millis(100);

/// A bus between the processes of one machine.
#[derive(Debug)]
pub(crate) struct LocalBus {
    runtime: RuntimeDir,
    /// What separates the topics of this store from those of others.
    realm: String,
    hub: Arc<Hub>,
    numbering: Arc<Numbering>,
    /// How the names of this bus's sockets begin.
    name_prefix: String,
    sockets: Mutex<HashMap<Channel, Weak<TopicSocket>>>,
    listings: Arc<Listings>,
    sender: OnceLock<Option<std::os::unix::net::UnixDatagram>>,
    swept: Once,
}

/// The sockets of other processes by topic.
type Listings = Mutex<HashMap<Channel, Listing>>;

/// The sockets of other processes for one topic.
#[derive(Debug)]
struct Listing {
    sockets: Vec<PathBuf>,
    listed: Instant,
}

impl LocalBus {
    /// Returns the bus of the store that `store` identifies, such as by its path. Sockets lie below
    /// `runtime_dir`.
    pub(crate) fn new(runtime_dir: &Path, store: &str) -> Self {
        Self {
            runtime: RuntimeDir::new(runtime_dir),
            realm: short_hash(store),
            hub: Arc::default(),
            numbering: Arc::new(Numbering::new()),
            name_prefix: format!("{}-{}-", std::process::id(), unique()),
            sockets: Mutex::default(),
            listings: Arc::default(),
            sender: OnceLock::new(),
            swept: Once::new(),
        }
    }

    /// Returns the socket of a topic, and binds it if this process has none.
    fn topic_socket(&self, channel: &Channel) -> Result<Arc<TopicSocket>, StoreError> {
        self.swept.call_once(|| self.runtime.sweep());
        let mut sockets = lock(&self.sockets);
        if let Some(socket) = sockets.get(channel).and_then(Weak::upgrade) {
            return Ok(socket);
        }
        sockets.retain(|_, socket| socket.strong_count() > 0);
        let (path, socket) = self.bind(&self.runtime.topic(channel, &self.realm))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(receive(
            socket,
            channel.clone(),
            (self.hub.clone(), self.numbering.clone()),
            self.listings.clone(),
        ));
        let socket = Arc::new(TopicSocket {
            path,
            _tasks: tasks,
        });
        sockets.insert(channel.clone(), Arc::downgrade(&socket));
        Ok(socket)
    }

    fn bind(&self, topic: &Path) -> Result<(PathBuf, UnixDatagram), StoreError> {
        let mut attempts = 0;
        loop {
            self.runtime.create_topic(topic)?;
            let name = format!("{}{}{SOCKET_SUFFIX}", self.name_prefix, unique());
            let path = topic.join(name);
            check_length(&path)?;
            attempts += 1;
            match UnixDatagram::bind(&path) {
                Ok(socket) => return Ok((path, socket)),
                // The folder was removed by the last subscriber, or a dead process had the name.
                Err(error)
                    if attempts < BIND_ATTEMPTS
                        && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::AddrInUse) => {}
                Err(error) => return Err(StoreError::io(path, error)),
            }
        }
    }

    /// Sends to the sockets of other processes.
    fn send(&self, channel: &Channel, message: Bytes) {
        let mut listings = lock(&self.listings);
        if listings.len() >= MAX_LISTINGS && !listings.contains_key(channel) {
            listings.clear();
        }
        let listing = listings
            .entry(channel.clone())
            .and_modify(|listing| {
                if listing.listed.elapsed() > LISTING_AGE {
                    *listing = self.list(channel);
                }
            })
            .or_insert_with(|| self.list(channel));
        if listing.sockets.is_empty() {
            return;
        }
        let Some(sender) = self.sender.get_or_init(|| sender().ok()) else {
            return;
        };
        let envelope = self.numbering.envelope(channel, message).encode();
        listing.sockets.retain(|path| {
            match sender
                .send_to(&envelope, path)
                .map_err(|error| error.kind())
            {
                Err(ErrorKind::ConnectionRefused) => {
                    remove(path);
                    false
                }
                Err(ErrorKind::NotFound) => false,
                // A full socket loses the message, and its reader notices the missing number.
                Ok(_) | Err(_) => true,
            }
        });
    }

    fn list(&self, channel: &Channel) -> Listing {
        // Into a folder of someone else nothing is sent.
        let mut found = match self.runtime.state() {
            FolderState::Private => sockets(&self.runtime.topic(channel, &self.realm)),
            FolderState::Absent | FolderState::Foreign => Vec::new(),
        };
        let is_own = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&self.name_prefix))
        };
        found.retain(|path| !is_own(path));
        Listing {
            sockets: found,
            listed: Instant::now(),
        }
    }
}

impl Bus for LocalBus {
    fn publish(&self, topic: &Topic, message: Bytes) {
        let channel = topic.channel();
        self.hub.send(channel, HubEvent::Message(message.clone()));
        self.send(channel, message);
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a Topic,
    ) -> BoxFuture<'a, Result<BusSubscription, StoreError>> {
        Box::pin(async move {
            let channel = topic.channel();
            let receiver = self.hub.subscribe(channel);
            let socket = self.topic_socket(channel)?;
            Ok(BusSubscription {
                receiver,
                _listening: Some(socket),
            })
        })
    }
}

/// The socket of one topic. Dropping it removes it.
#[derive(Debug)]
struct TopicSocket {
    path: PathBuf,
    _tasks: JoinSet<()>,
}

impl Drop for TopicSocket {
    fn drop(&mut self) {
        remove(&self.path);
        if let Some(topic) = self.path.parent() {
            remove_topic(topic);
        }
    }
}

/// Passes what arrives at a socket to the subscribers of this process.
async fn receive(
    socket: UnixDatagram,
    channel: Channel,
    (hub, numbering): (Arc<Hub>, Arc<Numbering>),
    listings: Arc<Listings>,
) {
    let mut gaps = GapDetector::default();
    let mut buffer = vec![0; HEADER_BYTES + MAX_BUS_MESSAGE_BYTES];
    loop {
        let received = match socket.recv(&mut buffer).await {
            Ok(length) => &buffer[..length],
            Err(error) => {
                tracing::debug!(%error, "a message of another process was not received");
                tokio::time::sleep(READ_ERROR_PAUSE).await;
                continue;
            }
        };
        let Some(envelope) = Envelope::decode(received) else {
            continue;
        };
        if numbering.is_own(&envelope) {
            continue;
        }
        if !gaps.knows(&envelope) {
            lock(&listings).remove(&channel);
        }
        deliver(&hub, &channel, &mut gaps, envelope);
    }
}

/// Passes an envelope to the subscribers of this process.
pub(super) fn deliver(hub: &Hub, channel: &str, gaps: &mut GapDetector, envelope: Envelope) {
    let continuity = gaps.note(&envelope);
    match (continuity, envelope.message) {
        (Continuity::Complete, Some(message)) => hub.send(channel, HubEvent::Message(message)),
        (Continuity::Gap, Some(message)) => {
            hub.send(channel, HubEvent::Lagged);
            hub.send(channel, HubEvent::Message(message));
        }
        (Continuity::Complete | Continuity::Gap, None) => hub.send(channel, HubEvent::Lagged),
    }
}

fn sender() -> io::Result<std::os::unix::net::UnixDatagram> {
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns a number that no other bus or socket of this process has.
fn unique() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    COUNTER.fetch_add(1, Ordering::Relaxed)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
