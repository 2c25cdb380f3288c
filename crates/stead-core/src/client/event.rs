//! Events of a subscription, and their ids.
//!
//! Effects: none.

use crate::{Event, JournalLine};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The id of an event: the journal entry that it is or follows, the term of the process that wrote
/// it, and a counter of live events since that entry. Clients use it only as a [`Cursor`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The sequence number of the entry.
    pub seq: u64,
    /// The fencing token of the writer; 0 for an entry.
    pub epoch: u64,
    /// The number of the live event since the entry, from 1; 0 for the entry itself.
    pub n: u64,
}

impl EventId {
    /// Returns the id of a journal entry.
    pub fn of_entry(seq: u64) -> Self {
        Self {
            seq,
            epoch: 0,
            n: 0,
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seq, epoch, n } = self;
        write!(f, "{seq}.{epoch}.{n}")
    }
}

/// A text that is not the id of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the id of an event")]
pub struct EventIdError(String);

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, EventIdError> {
        let wrong = || EventIdError(text.to_owned());
        let mut parts = text.split('.').map(|part| match part.as_bytes() {
            [b'0'..=b'9', ..] => part.parse::<u64>().map_err(|_| wrong()),
            _ => Err(wrong()),
        });
        let mut next = || parts.next().unwrap_or_else(|| Err(wrong()));
        let seq = next()?;
        let epoch = next()?;
        let n = next()?;
        match parts.next() {
            None => Ok(Self { seq, epoch, n }),
            Some(_) => Err(wrong()),
        }
    }
}

/// Where a subscription begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// With the first entry of the session.
    Start,
    /// With what happens from now on.
    Now,
    /// After an event that was received before.
    After(EventId),
}

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEvent {
    /// The id, from which a later subscription can go on.
    pub id: EventId,
    /// What happened.
    pub body: SessionEventBody,
}

/// What happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEventBody {
    /// A journal entry with its whole content. It replaces the live events since the entry before.
    Entry(Arc<JournalLine>),
    /// A live event of a run. It may be lost.
    Live(Arc<Event>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written_and_nothing_else_is() {
        let id = EventId {
            seq: 12,
            epoch: 3,
            n: 7,
        };
        assert_eq!(id.to_string(), "12.3.7");
        assert_eq!("12.3.7".parse(), Ok(id));
        for text in [
            "", "1", "1.2", "1.2.3.4", "1.-2.3", "a.b.c", "1..3", "+1.2.3",
        ] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }
}
