//! The envelope of a bus message between processes: the message, the bus that sent it, and its
//! number, from which a receiver notices that messages were lost.
//!
//! Effects: the clock, randomness.

use super::{Channel, MAX_BUS_MESSAGE_BYTES};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The length of kind, origin and number.
pub(super) const HEADER_BYTES: usize = 1 + 16 + 8;
/// The number of topics or origins that are remembered. Forgetting one costs a needless hint.
const MAX_REMEMBERED: usize = 1024;

const KIND_MESSAGE: u8 = b'm';
const KIND_LAGGED: u8 = b'l';

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// The bus that sent it.
    pub(crate) origin: u128,
    /// The number of the message among those of its origin and topic.
    pub(crate) seq: u64,
    /// The message, or `None` if it was too long.
    pub(crate) message: Option<Bytes>,
}

impl Envelope {
    /// Encodes it as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match self.message {
            Some(_) => KIND_MESSAGE,
            None => KIND_LAGGED,
        };
        let message = self.message.as_deref().unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + message.len());
        bytes.push(kind);
        bytes.extend_from_slice(&self.origin.to_be_bytes());
        bytes.extend_from_slice(&self.seq.to_be_bytes());
        bytes.extend_from_slice(message);
        bytes
    }

    /// Decodes bytes, or returns `None` if they are something else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (origin, rest) = rest.split_first_chunk::<16>()?;
        let (seq, message) = rest.split_first_chunk::<8>()?;
        let message = match *kind {
            KIND_MESSAGE => Some(Bytes::copy_from_slice(message)),
            KIND_LAGGED => None,
            _ => return None,
        };
        Some(Self {
            origin: u128::from_be_bytes(*origin),
            seq: u64::from_be_bytes(*seq),
            message,
        })
    }
}

/// The numbers of the messages that one bus sends.
#[derive(Debug)]
pub(super) struct Numbering {
    origin: u128,
    sent: Mutex<HashMap<Channel, u64>>,
}

impl Numbering {
    pub(super) fn new() -> Self {
        Self {
            origin: uuid::Uuid::now_v7().as_u128(),
            sent: Mutex::default(),
        }
    }

    /// Returns whether an envelope is of this bus.
    pub(super) fn is_own(&self, envelope: &Envelope) -> bool {
        envelope.origin == self.origin
    }

    /// Returns the next envelope of a topic.
    pub(super) fn envelope(&self, channel: &Channel, message: Bytes) -> Envelope {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.len() >= MAX_REMEMBERED && !sent.contains_key(channel) {
            sent.clear();
        }
        let seq = sent.entry(channel.clone()).or_insert(0);
        *seq += 1;
        Envelope {
            origin: self.origin,
            seq: *seq,
            message: Some(message).filter(|message| message.len() <= MAX_BUS_MESSAGE_BYTES),
        }
    }
}

/// The last number received from each origin of a topic.
#[derive(Debug, Default)]
pub(super) struct GapDetector {
    received: HashMap<u128, u64>,
}

/// Whether messages are missing before one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuity {
    Complete,
    Gap,
}

impl GapDetector {
    /// Returns whether there were envelopes of the same origin before.
    pub(super) fn knows(&self, envelope: &Envelope) -> bool {
        self.received.contains_key(&envelope.origin)
    }

    /// Notes an envelope. The first one of an origin has nothing before it.
    pub(super) fn note(&mut self, envelope: &Envelope) -> Continuity {
        if self.received.len() >= MAX_REMEMBERED {
            self.received.clear();
        }
        let before = self.received.insert(envelope.origin, envelope.seq);
        match before {
            Some(before) if before.wrapping_add(1) != envelope.seq => Continuity::Gap,
            Some(_) | None => Continuity::Complete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_else_is() {
        let envelope = Envelope {
            origin: 7 << 100,
            seq: 3,
            message: Some(Bytes::from_static(b"\0\xff")),
        };
        assert_eq!(
            Envelope::decode(&envelope.encode()).as_ref(),
            Some(&envelope)
        );
        let lagged = Envelope {
            message: None,
            ..envelope
        };
        assert_eq!(Envelope::decode(&lagged.encode()), Some(lagged));
        for other in [&b""[..], b"m", &[b'x'; HEADER_BYTES]] {
            assert_eq!(Envelope::decode(other), None);
        }
    }

    #[test]
    fn a_missing_number_is_a_gap_and_a_new_origin_is_none() {
        let here = Numbering::new();
        let there = Numbering::new();
        let topic: Channel = "t".into();
        let other: Channel = "u".into();
        let mut gaps = GapDetector::default();
        let mut note = |from: &Numbering| gaps.note(&from.envelope(&topic, Bytes::new()));
        assert_eq!(note(&here), Continuity::Complete);
        assert_eq!(note(&there), Continuity::Complete);
        assert_eq!(note(&here), Continuity::Complete);
        here.envelope(&other, Bytes::new());
        assert_eq!(note(&here), Continuity::Complete);
        here.envelope(&topic, Bytes::new());
        assert_eq!(note(&here), Continuity::Gap);
        assert_eq!(note(&here), Continuity::Complete);
        let long = Bytes::from(vec![0; MAX_BUS_MESSAGE_BYTES + 1]);
        assert_eq!(here.envelope(&topic, long).message, None);
    }
}
