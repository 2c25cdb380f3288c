//! The bus of a store: hints and live deltas between processes. Messages may be lost, so nothing
//! that must be right depends on it.
//!
//! | Store | Carrier |
//! |---|---|
//! | memory, SQLite in memory | this process |
//! | files, SQLite, MySQL | Unix datagram sockets: the processes of one user on this machine |
//! | PostgreSQL | `NOTIFY` |
//! | Redis | `PUBLISH` |
//!
//! A message that is too long for its carrier ([`MAX_BUS_MESSAGE_BYTES`], for PostgreSQL 7,900 bytes
//! of text) is not carried; subscribers in other processes get [`BusMessage::Lagged`] instead.
//!
//! Effects: none.

mod envelope;
mod hub;
mod local;
mod runtime_dir;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod server;

pub(crate) use envelope::Envelope;
pub(crate) use hub::MemoryBus;
pub(crate) use local::LocalBus;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) use server::{BusFault, BusListener, BusTransport, ServerBus};

use crate::{Space, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use hub::HubEvent;
use sha2::{Digest, Sha256};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use stead_core::SessionId;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The longest message that reaches other processes, in bytes.
pub const MAX_BUS_MESSAGE_BYTES: usize = 64 * 1024;
/// The folder in which sockets of local buses lie unless another one is set.
pub(crate) const DEFAULT_RUNTIME_DIR: &str = "/tmp";

/// A lossy bus between the processes that use one store.
pub trait Bus: fmt::Debug + Send + Sync {
    /// Sends to all current subscribers of the topic, in this and other processes, without waiting.
    /// The message may be lost.
    fn publish(&self, topic: &Topic, message: Bytes);

    /// Subscribes to a topic. Messages that are published after this returned are received, unless
    /// they are lost.
    fn subscribe<'a>(
        &'a self,
        topic: &'a Topic,
    ) -> BoxFuture<'a, Result<BusSubscription, StoreError>>;
}

/// The topic of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Topic {
    channel: Channel,
}

/// The name of a topic as carriers know it: a hash in hexadecimal.
pub(crate) type Channel = Arc<str>;

impl Topic {
    /// Returns the topic of `session` in `space`.
    pub fn new(space: &Space, session: &SessionId) -> Self {
        Self {
            // Neither a space nor an id contains a line end.
            channel: short_hash(&format!("{space}\n{session}")).into(),
        }
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }
}

/// Returns the first 16 bytes of the SHA-256 of `text`, in hexadecimal.
fn short_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .take(16)
        .fold(String::with_capacity(32), |hex, byte| {
            format!("{hex}{byte:02x}")
        })
}

/// What a subscriber receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusMessage {
    /// A message.
    Message(Bytes),
    /// Messages may have been lost before this.
    Lagged,
    /// The bus has ended, and nothing more will come.
    Closed,
}

/// A subscription to a topic. Dropping it ends it.
pub struct BusSubscription {
    receiver: broadcast::Receiver<HubEvent>,
    /// What keeps the topic's messages from other processes coming.
    _listening: Option<Arc<dyn Any + Send + Sync>>,
}

impl BusSubscription {
    /// Waits for the next message. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> BusMessage {
        match self.receiver.recv().await {
            Ok(HubEvent::Message(message)) => BusMessage::Message(message),
            Ok(HubEvent::Lagged) | Err(RecvError::Lagged(_)) => BusMessage::Lagged,
            Err(RecvError::Closed) => BusMessage::Closed,
        }
    }
}

impl fmt::Debug for BusSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSubscription").finish_non_exhaustive()
    }
}
