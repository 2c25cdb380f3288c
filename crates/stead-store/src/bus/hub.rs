//! The subscribers of one process to a bus, and the bus that reaches only them.
//!
//! Effects: none.

use super::{Bus, BusSubscription, Channel, Topic};
use crate::StoreError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::broadcast;

/// The number of messages that a slow subscriber may be behind.
const BACKLOG: usize = 256;
/// The number of topics at which those without subscribers are removed.
const CLEAN_UP_TOPICS: usize = 64;

/// What the hub passes to subscribers.
#[derive(Debug, Clone)]
pub(super) enum HubEvent {
    Message(Bytes),
    Lagged,
}

/// The topics of one process with their subscribers.
#[derive(Debug, Default)]
pub(super) struct Hub {
    topics: Mutex<HashMap<Channel, broadcast::Sender<HubEvent>>>,
}

impl Hub {
    pub(super) fn subscribe(&self, channel: &Channel) -> broadcast::Receiver<HubEvent> {
        let mut topics = self.lock();
        if topics.len() >= CLEAN_UP_TOPICS && topics.len() == topics.capacity() {
            topics.retain(|_, sender| sender.receiver_count() > 0);
        }
        topics
            .entry(channel.clone())
            .or_insert_with(|| broadcast::channel(BACKLOG).0)
            .subscribe()
    }

    pub(super) fn send(&self, channel: &str, event: HubEvent) {
        let mut topics = self.lock();
        let Some(sender) = topics.get(channel) else {
            return;
        };
        // It fails only if nobody listens any more.
        if sender.send(event).is_err() {
            topics.remove(channel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Channel, broadcast::Sender<HubEvent>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a bus over a server needs besides.
#[cfg(any(feature = "postgres", feature = "redis"))]
impl Hub {
    pub(super) fn send_to_all(&self, event: &HubEvent) {
        self.lock()
            .retain(|_, sender| sender.send(event.clone()).is_ok());
    }

    /// Returns the topics that have subscribers.
    pub(super) fn channels(&self) -> Vec<Channel> {
        let topics = self.lock();
        let heard = topics.iter().filter(|(_, to)| to.receiver_count() > 0);
        heard.map(|(channel, _)| channel.clone()).collect()
    }

    pub(super) fn is_heard(&self, channel: &str) -> bool {
        self.lock()
            .get(channel)
            .is_some_and(|sender| sender.receiver_count() > 0)
    }
}

/// A bus within one process.
#[derive(Debug, Default)]
pub(crate) struct MemoryBus {
    hub: Hub,
}

impl Bus for MemoryBus {
    fn publish(&self, topic: &Topic, message: Bytes) {
        self.hub.send(topic.channel(), HubEvent::Message(message));
    }

    fn subscribe<'a>(
        &'a self,
        topic: &'a Topic,
    ) -> BoxFuture<'a, Result<BusSubscription, StoreError>> {
        let subscription = BusSubscription {
            receiver: self.hub.subscribe(topic.channel()),
            _listening: None,
        };
        Box::pin(std::future::ready(Ok(subscription)))
    }
}
