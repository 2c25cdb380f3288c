//! Buffering events of the run for the screen.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use stead::agent::Listener;
use stead::core::{Event, EventKind};
use tokio::sync::Notify;

/// A buffer for events until the screen takes them. A run never waits for the screen: adjacent
/// deltas are merged, so that the size of the buffer is bounded by the answer, not by the number of
/// deltas.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    pending: Mutex<Vec<Event>>,
    filled: Notify,
}

impl EventBuffer {
    /// Returns a listener that fills the buffer.
    pub(super) fn listener(self: &Arc<Self>) -> Listener {
        let feed = self.clone();
        Arc::new(move |event| feed.push(event))
    }

    /// Waits until the buffer is not empty.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Returns all buffered events, in order.
    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, event: &Event) {
        let mut waiting = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting
            .last_mut()
            .is_some_and(|last| merge_delta(last, event))
        {
            waiting.push(event.clone());
        }
        drop(waiting);
        self.filled.notify_one();
    }
}

/// Appends a delta to the previous one, if both belong to the same text.
fn merge_delta(last: &mut Event, event: &Event) -> bool {
    if (&last.run, &last.source) != (&event.run, &event.source) {
        return false;
    }
    match (&mut last.kind, &event.kind) {
        (EventKind::TextDelta { text }, EventKind::TextDelta { text: more })
        | (EventKind::ThinkingDelta { text }, EventKind::ThinkingDelta { text: more }) => {
            text.push_str(more)
        }
        (
            EventKind::ToolOutputDelta { id, text },
            EventKind::ToolOutputDelta {
                id: same,
                text: more,
            },
        ) if id == same => {
            text.push_str(more);
        }
        (
            EventKind::ToolArgsDelta { index, json },
            EventKind::ToolArgsDelta {
                index: same,
                json: more,
            },
        ) if index == same => {
            json.push_str(more);
        }
        _ => return false,
    }
    last.seq = event.seq;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead::core::RunId;

    #[test]
    fn neighbouring_pieces_are_put_together_and_nothing_is_lost() {
        let feed = Arc::new(EventBuffer::default());
        let event = |seq, kind| Event {
            seq,
            entry: 0,
            child: None,
            run: RunId::new("r").unwrap(),
            source: Vec::new(),
            kind,
        };
        let text = |text: &str| EventKind::TextDelta {
            text: text.to_owned(),
        };
        let thinking = |text: &str| EventKind::ThinkingDelta {
            text: text.to_owned(),
        };
        let output = |id: &str| EventKind::ToolOutputDelta {
            id: id.to_owned(),
            text: "x".to_owned(),
        };
        let kinds = [
            text("a"),
            text("b"),
            thinking("c"),
            text("d"),
            output("1"),
            output("1"),
            output("2"),
        ];
        let listener = feed.listener();
        for (at, kind) in kinds.into_iter().enumerate() {
            listener(&event(at as u64 + 1, kind));
        }
        let joined = EventKind::ToolOutputDelta {
            id: "1".to_owned(),
            text: "xx".to_owned(),
        };
        let want = [
            (2, text("ab")),
            (3, thinking("c")),
            (4, text("d")),
            (6, joined),
            (7, output("2")),
        ];
        assert_eq!(feed.take(), want.map(|(seq, kind)| event(seq, kind)));
        assert_eq!(feed.take(), []);
    }
}
