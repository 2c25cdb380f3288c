//! The link between the processes that use one session: rows of the durable inbox, and messages
//! over the lossy bus.
//!
//! Effects: the store (writes).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stead_agent::{Agent, SessionSeals};
use stead_core::{Event, EventId, Owner, SessionId};
use stead_store::{Bus, BusMessage, BusSubscription, SessionInbox, Sessions, StoreError, Topic};

/// The inbox, the bus and the journals of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionLink {
    pub(crate) session: SessionId,
    pub(crate) inbox: SessionInbox,
    /// Proves which rows of the inbox are of this person.
    pub(crate) seals: SessionSeals,
    pub(crate) journals: Arc<dyn Sessions>,
    bus: Arc<dyn Bus>,
    topic: Topic,
    /// The host that this link belongs to, whose own messages are ignored.
    host: HostId,
}

/// A host among those that use one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostId(pub(crate) u64);

/// A message between hosts. Each may be lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum LinkMessage {
    /// Somebody listens: live events are wanted for a while.
    Hello {
        /// Whether they can be asked.
        #[serde(default)]
        answers: bool,
    },
    /// An actor begins to work and asks who listens: each answers with `Hello`.
    WhoListens,
    /// The inbox has a new row.
    Inbox,
    /// The journal has entries up to this one.
    Entries { seq: u64 },
    /// A live event.
    Live { id: String, event: Box<Event> },
}

#[derive(Serialize, Deserialize)]
struct LinkEnvelope<M> {
    from: HostId,
    #[serde(flatten)]
    message: M,
}

/// What was received from another host.
#[derive(Debug)]
pub(crate) enum Received {
    Message(LinkMessage),
    /// Messages may have been lost.
    Lost,
}

impl SessionLink {
    pub(crate) fn new(agent: &Agent, owner: &Owner, session: SessionId, host: HostId) -> Self {
        let place = agent.place();
        let state = place.state(owner);
        Self {
            seals: agent.seals(owner, &session),
            inbox: place.inbox(owner, &session),
            journals: place.sessions(owner),
            bus: state.store.bus(),
            topic: Topic::new(&state.space, &session),
            session,
            host,
        }
    }

    /// Returns the link of another session of the same owner.
    pub(crate) fn of_session(&self, agent: &Agent, owner: &Owner, session: SessionId) -> Self {
        Self::new(agent, owner, session, self.host)
    }

    /// Tells other hosts.
    pub(crate) fn publish(&self, message: &LinkMessage) {
        let envelope = LinkEnvelope {
            from: self.host,
            message,
        };
        if let Ok(text) = serde_json::to_vec(&envelope) {
            self.bus.publish(&self.topic, Bytes::from(text));
        }
    }

    /// Tells other hosts of a live event.
    pub(crate) fn publish_live(&self, id: EventId, event: &Event) {
        self.publish(&LinkMessage::Live {
            id: id.to_string(),
            event: Box::new(event.clone()),
        });
    }

    /// Listens to other hosts.
    pub(crate) async fn listen(&self) -> Result<LinkListener, StoreError> {
        Ok(LinkListener {
            subscription: self.bus.subscribe(&self.topic).await?,
            host: self.host,
        })
    }
}

/// The messages of other hosts.
#[derive(Debug)]
pub(crate) struct LinkListener {
    subscription: BusSubscription,
    host: HostId,
}

impl LinkListener {
    /// Waits for the next message. Dropping the future loses nothing.
    pub(crate) async fn recv(&mut self) -> Received {
        loop {
            let text = match self.subscription.recv().await {
                BusMessage::Message(text) => text,
                BusMessage::Lagged => return Received::Lost,
                // Polling goes on without the bus.
                BusMessage::Closed => std::future::pending().await,
            };
            // A message that cannot be read is of another version.
            let envelope = serde_json::from_slice::<LinkEnvelope<LinkMessage>>(&text);
            match envelope {
                Ok(envelope) if envelope.from != self.host => {
                    return Received::Message(envelope.message);
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Waits for the next message of another host; forever if there is no bus. Dropping the future
/// loses nothing.
pub(crate) async fn receive(listener: &mut Option<LinkListener>) -> Received {
    match listener {
        Some(listener) => listener.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{EventKind, RunId};

    #[test]
    fn messages_are_read_as_they_were_written() {
        let event = Event {
            seq: 1,
            entry: 0,
            run: RunId::fresh(),
            child: None,
            source: Vec::new(),
            kind: EventKind::TextDelta { text: "a".into() },
        };
        let messages = [
            LinkMessage::Live {
                id: EventId::of_entry(2).to_string(),
                event: Box::new(event),
            },
            LinkMessage::Hello { answers: true },
            LinkMessage::WhoListens,
            LinkMessage::Inbox,
            LinkMessage::Entries { seq: 7 },
        ];
        for message in messages {
            let envelope = LinkEnvelope {
                from: HostId(3),
                message: &message,
            };
            let text = serde_json::to_string(&envelope).unwrap();
            let read: LinkEnvelope<LinkMessage> = serde_json::from_str(&text).unwrap();
            assert_eq!((read.from, read.message), (HostId(3), message));
        }
    }
}
