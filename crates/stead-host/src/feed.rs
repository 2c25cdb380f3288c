//! The events of a session that this process runs, for subscribers here and elsewhere.

use crate::link::{LinkMessage, SessionLink};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use stead_agent::{EntryListener, Listener};
use stead_core::{Event, EventId, EventKind, JournalLine};
use tokio::sync::broadcast;

/// The events that wait for a slow subscriber; one that lags behind reads the journal.
const FEED_CAPACITY: usize = 1024;
/// How long other processes are sent live events after somebody there said that they listen.
pub(crate) const HELLO_LASTS: Duration = Duration::from_secs(15);

/// An event of a session that this process runs.
#[derive(Debug, Clone)]
pub(crate) enum FeedItem {
    Entry(Arc<JournalLine>),
    Live(EventId, Arc<Event>),
    /// The journal changed outside a run.
    Changed,
}

/// Tells subscribers what happens in a session.
#[derive(Debug)]
pub(crate) struct Feed {
    sender: broadcast::Sender<FeedItem>,
    link: Arc<SessionLink>,
    state: Mutex<FeedState>,
}

#[derive(Debug, Default)]
struct FeedState {
    /// The id of the newest event.
    newest: EventId,
    /// The term of the newest writer.
    epoch: u64,
    /// Until when other processes want to hear live events.
    heard_until: Option<Instant>,
}

impl Feed {
    pub(crate) fn new(link: Arc<SessionLink>) -> Arc<Self> {
        Arc::new(Self {
            sender: broadcast::Sender::new(FEED_CAPACITY),
            link,
            state: Mutex::default(),
        })
    }

    /// Returns the events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<FeedItem> {
        self.sender.subscribe()
    }

    /// Somebody in another process listens.
    pub(crate) fn hello(&self) {
        self.lock().heard_until = Some(Instant::now() + HELLO_LASTS);
    }

    /// The journal changed outside a run; it ends with the entry `seq` now.
    pub(crate) fn journal_changed(&self, seq: u64) {
        let is_heard = {
            let mut state = self.lock();
            state.newest = EventId::of_entry(seq);
            state.is_heard()
        };
        let _ = self.sender.send(FeedItem::Changed);
        if is_heard {
            self.link.publish(&LinkMessage::Entries { seq });
        }
    }

    /// Returns the listener for the events of a run.
    pub(crate) fn listener(self: &Arc<Self>) -> Listener {
        let feed = self.clone();
        Arc::new(move |event: &Event| feed.on_event(event))
    }

    /// Returns the listener for the entries of a run.
    pub(crate) fn entry_listener(self: &Arc<Self>) -> EntryListener {
        let feed = self.clone();
        Arc::new(move |epoch, lines: &[JournalLine]| feed.on_entries(epoch, lines))
    }

    fn on_event(&self, event: &Event) {
        let (id, is_heard) = {
            let mut state = self.lock();
            let FeedState { newest, epoch, .. } = &mut *state;
            if is_own_start(event) {
                // A run that is continued may write no entry first, and another process may have
                // written those before.
                *newest = EventId::of_entry(newest.seq.max(event.entry));
            }
            *newest = EventId {
                seq: newest.seq,
                epoch: *epoch,
                n: newest.n + 1,
            };
            (state.newest, state.is_heard())
        };
        if self.sender.receiver_count() > 0 {
            // Without a receiver there is nobody to tell.
            let _ = self
                .sender
                .send(FeedItem::Live(id, Arc::new(event.clone())));
        }
        if is_heard {
            self.link.publish_live(id, event);
        }
    }

    fn on_entries(&self, epoch: u64, lines: &[JournalLine]) {
        let mut state = self.lock();
        state.epoch = epoch;
        let Some(last) = lines.last() else { return };
        state.newest = EventId::of_entry(last.seq);
        let is_heard = state.is_heard();
        drop(state);
        if self.sender.receiver_count() > 0 {
            for line in lines {
                let _ = self.sender.send(FeedItem::Entry(Arc::new(line.clone())));
            }
        }
        if is_heard {
            self.link.publish(&LinkMessage::Entries { seq: last.seq });
        }
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this is the beginning of a run of the session itself, not of a subagent.
fn is_own_start(event: &Event) -> bool {
    let is_own = event.child.is_none() && event.source.is_empty();
    is_own && matches!(event.kind, EventKind::RunStarted { .. })
}

impl FeedState {
    fn is_heard(&self) -> bool {
        self.heard_until.is_some_and(|until| Instant::now() < until)
    }
}
