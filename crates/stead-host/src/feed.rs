//! The events of a session that this process runs, for subscribers here and elsewhere.
//!
//! Effects: the clock, the store (writes).

use crate::link::{LinkMessage, SessionLink};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use stead_core::{Event, EventId, EventKind, JournalLine};
use tokio::sync::Notify;

/// The items that wait for a subscriber before adjacent deltas are merged.
const MERGE_ABOVE_ITEMS: usize = 64;
/// The items that wait for a subscriber at most; one that lags further behind reads the journal.
const MAX_ITEMS: usize = 16 * 1024;
/// How long other processes are sent live events after somebody there said that they listen.
pub(crate) const HELLO_LASTS: Duration = Duration::from_secs(15);

/// An event of a session that this process runs.
#[derive(Debug, Clone)]
pub(crate) enum FeedItem {
    Entry(Arc<JournalLine>),
    Live(EventId, Arc<Event>),
    /// The journal has new entries up to this one: it changed outside a run, or the subscriber lags
    /// too far behind. Live events after that entry are still to come.
    Changed {
        last: u64,
    },
}

/// Tells subscribers what happens in a session.
#[derive(Debug)]
pub(crate) struct Feed {
    link: Arc<SessionLink>,
    state: Mutex<FeedState>,
}

#[derive(Debug, Default)]
struct FeedState {
    /// The id of the newest event.
    newest: EventId,
    /// Whether a run of this process is going on.
    is_running: bool,
    /// The term of the newest writer.
    epoch: u64,
    /// Until when other processes want to hear live events.
    heard_until: Option<Instant>,
    /// What the subscribers of this process have not taken yet.
    buffers: Vec<Weak<FeedBuffer>>,
}

/// What a subscriber has not taken yet.
#[derive(Debug, Default)]
struct FeedBuffer {
    items: Mutex<VecDeque<FeedItem>>,
    filled: Notify,
}

/// The events for one subscriber in this process. A run does not wait for subscribers.
#[derive(Debug)]
pub(crate) struct FeedReceiver(Arc<FeedBuffer>);

impl FeedReceiver {
    /// Waits for the next item. Dropping the future loses nothing.
    pub(crate) async fn recv(&self) -> FeedItem {
        loop {
            let filled = self.0.filled.notified();
            tokio::pin!(filled);
            // Registered before the items are checked: one that comes in between would be missed.
            filled.as_mut().enable();
            if let Some(item) = self.0.lock().pop_front() {
                return item;
            }
            filled.await;
        }
    }
}

impl FeedBuffer {
    fn push(&self, item: FeedItem) {
        let mut items = self.lock();
        if items.len() >= MERGE_ABOVE_ITEMS
            && let Some(last) = items.back_mut()
            && merge_delta(last, &item)
        {
            return;
        }
        if items.len() >= MAX_ITEMS {
            items.clear();
            items.push_back(FeedItem::Changed { last: u64::MAX });
        }
        items.push_back(item);
        drop(items);
        self.filled.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<FeedItem>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends a delta to the one before it, if both belong to the same text.
fn merge_delta(last: &mut FeedItem, next: &FeedItem) -> bool {
    let FeedItem::Live(next_id, next) = next else {
        return false;
    };
    let FeedItem::Live(id, event) = last else {
        return false;
    };
    if (&event.run, &event.source) != (&next.run, &next.source) {
        return false;
    }
    let merged = match (&event.kind, &next.kind) {
        (EventKind::TextDelta { text }, EventKind::TextDelta { text: more }) => {
            EventKind::TextDelta {
                text: format!("{text}{more}"),
            }
        }
        (EventKind::ThinkingDelta { text }, EventKind::ThinkingDelta { text: more }) => {
            EventKind::ThinkingDelta {
                text: format!("{text}{more}"),
            }
        }
        (
            EventKind::ToolOutputDelta { id, text },
            EventKind::ToolOutputDelta {
                id: same,
                text: more,
            },
        ) if id == same => EventKind::ToolOutputDelta {
            id: id.clone(),
            text: format!("{text}{more}"),
        },
        (
            EventKind::ToolArgsDelta { index, json },
            EventKind::ToolArgsDelta {
                index: same,
                json: more,
            },
        ) if index == same => EventKind::ToolArgsDelta {
            index: *index,
            json: format!("{json}{more}"),
        },
        _ => return false,
    };
    *event = Arc::new(Event {
        kind: merged,
        ..(**next).clone()
    });
    *id = *next_id;
    true
}

impl Feed {
    pub(crate) fn new(link: Arc<SessionLink>) -> Arc<Self> {
        Arc::new(Self {
            link,
            state: Mutex::default(),
        })
    }

    /// Returns the events from now on.
    pub(crate) fn subscribe(&self) -> FeedReceiver {
        let buffer = Arc::new(FeedBuffer::default());
        let mut state = self.lock();
        state.buffers.retain(|known| known.strong_count() > 0);
        state.buffers.push(Arc::downgrade(&buffer));
        FeedReceiver(buffer)
    }

    /// Whether a run of this process is going on.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().is_running
    }

    /// The run of this process has ended, and what it was given is settled.
    pub(crate) fn run_settled(&self) {
        self.lock().is_running = false;
    }

    /// Somebody in another process listens.
    pub(crate) fn hello(&self) {
        self.lock().heard_until = Some(Instant::now() + HELLO_LASTS);
    }

    /// The journal changed outside a run; it ends with the entry `seq` now.
    pub(crate) fn journal_changed(&self, seq: u64) {
        let mut state = self.lock();
        state.newest = EventId::of_entry(seq);
        state.tell(|| FeedItem::Changed { last: seq });
        if state.is_heard() {
            drop(state);
            self.link.publish(&LinkMessage::Entries { seq });
        }
    }

    /// Tells subscribers of a live event.
    pub(crate) fn on_event(&self, event: &Event) {
        let mut state = self.lock();
        let FeedState {
            newest,
            epoch,
            is_running,
            ..
        } = &mut *state;
        if is_own_start(event) {
            *is_running = true;
            // A run that is continued may write no entry first, and another process may have
            // written those before.
            *newest = EventId::of_entry(newest.seq.max(event.entry));
        }
        *newest = EventId {
            seq: newest.seq,
            epoch: *epoch,
            n: newest.n + 1,
        };
        let id = *newest;
        state.tell(|| FeedItem::Live(id, Arc::new(event.clone())));
        if state.is_heard() {
            drop(state);
            self.link.publish_live(id, event);
        }
    }

    /// Tells subscribers of entries that a run recorded.
    pub(crate) fn on_entries(&self, epoch: u64, lines: &[JournalLine]) {
        let mut state = self.lock();
        state.epoch = epoch;
        let Some(last) = lines.last() else { return };
        state.newest = EventId::of_entry(last.seq);
        for line in lines {
            state.tell(|| FeedItem::Entry(Arc::new(line.clone())));
        }
        if state.is_heard() {
            drop(state);
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
    /// Tells the subscribers of this process. Without any, the item is not made.
    fn tell(&self, item: impl FnOnce() -> FeedItem) {
        let mut buffers = self.buffers.iter().filter_map(Weak::upgrade).peekable();
        if buffers.peek().is_none() {
            return;
        }
        let item = item();
        for buffer in buffers {
            buffer.push(item.clone());
        }
    }

    fn is_heard(&self) -> bool {
        self.heard_until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::RunId;

    fn live(n: u64, kind: EventKind) -> FeedItem {
        let event = Event {
            seq: n,
            entry: 0,
            run: RunId::new("r").unwrap(),
            child: None,
            source: Vec::new(),
            kind,
        };
        let id = EventId {
            seq: 1,
            epoch: 1,
            n,
        };
        FeedItem::Live(id, Arc::new(event))
    }

    fn text(text: &str) -> EventKind {
        EventKind::TextDelta {
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_slow_subscriber_gets_every_text_in_fewer_pieces() {
        let buffer = FeedBuffer::default();
        let pieces = 3 * MERGE_ABOVE_ITEMS as u64;
        for n in 1..=pieces {
            buffer.push(live(n, text("ab")));
        }
        let items = std::mem::take(&mut *buffer.lock());
        assert_eq!(items.len(), MERGE_ABOVE_ITEMS);
        let mut whole = String::new();
        let mut newest = 0;
        for item in items {
            let FeedItem::Live(id, event) = item else {
                panic!("{item:?}")
            };
            assert_eq!(id.n, event.seq);
            newest = id.n;
            let EventKind::TextDelta { text } = &event.kind else {
                panic!("{event:?}")
            };
            whole.push_str(text);
        }
        assert_eq!((whole, newest), ("ab".repeat(pieces as usize), pieces));
    }

    #[test]
    fn one_that_lags_too_far_behind_is_told_to_read_the_journal() {
        let buffer = FeedBuffer::default();
        for n in 0..=MAX_ITEMS as u64 {
            buffer.push(live(n, EventKind::ModelStarted { step: 1 }));
        }
        let items = std::mem::take(&mut *buffer.lock());
        assert_eq!(items.len(), 2);
        assert!(
            matches!(items[0], FeedItem::Changed { last: u64::MAX }),
            "{items:?}"
        );
    }
}
