//! The documents of an inbox, as pure data: the counter, the remembered keys, the outcomes.
//!
//! Effects: none.

use super::{InputOutcome, REMEMBERED_INPUTS};
use crate::StoreError;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stead_core::InputId;

/// The number of documents that keys are spread over.
const KEY_BUCKETS: u8 = 64;
/// The number of keys in one of these documents, which keeps it below the limit of a body. The
/// oldest are forgotten beyond it.
const MAX_BUCKET_KEYS: usize = 3000;
/// The number of inputs whose outcomes share a document.
pub(super) const SEGMENT_INPUTS: u64 = 64;
/// The part of a refusal's reason that is remembered, in bytes.
const MAX_REASON_BYTES: usize = 1000;
/// How long keys and outcomes are remembered at least.
const REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// The counter of an inbox. Every insertion replaces it, so insertions have one order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct InboxHead {
    /// The number of the next input.
    pub(super) next: u64,
    /// The most rows that can be waiting: those counted last and those inserted since.
    pub(super) waiting_bound: usize,
}

impl Default for InboxHead {
    fn default() -> Self {
        Self {
            next: 1,
            waiting_bound: 0,
        }
    }
}

/// What a listing shows of a waiting row.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RowMeta {
    pub(super) id: InputId,
    pub(super) at_ms: i64,
}

/// The keys of one bucket, oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeyBucket {
    keys: Vec<KeyRecord>,
}

/// A remembered key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    pub(super) key_hash: String,
    pub(super) body_hash: String,
    pub(super) id: InputId,
    pub(super) at_ms: i64,
}

impl KeyBucket {
    /// Returns the bucket of a key by the hash of the key.
    pub(super) fn number(key_hash: &str) -> u8 {
        key_hash
            .get(..2)
            .and_then(|start| u8::from_str_radix(start, 16).ok())
            .unwrap_or(0)
            % KEY_BUCKETS
    }

    /// Returns the record of a key that is still remembered.
    pub(super) fn find(&self, key_hash: &str, memory: Memory) -> Option<&KeyRecord> {
        self.keys
            .iter()
            .find(|record| record.key_hash == key_hash && memory.keeps(&record.id, record.at_ms))
    }

    /// Adds a key and forgets those that are old.
    pub(super) fn add(&mut self, new: KeyRecord, memory: Memory) {
        self.keys.retain(|record| {
            record.key_hash != new.key_hash && memory.keeps(&record.id, record.at_ms)
        });
        let excess = (self.keys.len() + 1).saturating_sub(MAX_BUCKET_KEYS);
        self.keys.drain(..excess);
        self.keys.push(new);
    }
}

/// The outcomes of [`SEGMENT_INPUTS`] inputs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct OutcomeSegment {
    outcomes: Vec<OutcomeRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OutcomeRecord {
    id: InputId,
    outcome: InputOutcome,
}

/// What a listing shows of a segment.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SegmentMeta {
    /// The time of the last outcome.
    pub(super) at_ms: i64,
}

impl OutcomeSegment {
    pub(super) fn find(&self, id: &InputId) -> Option<&InputOutcome> {
        let found = self.outcomes.iter().find(|record| record.id == *id);
        found.map(|record| &record.outcome)
    }

    /// Adds an outcome. The first outcome of an input stays.
    pub(super) fn add(&mut self, id: &InputId, outcome: &InputOutcome) {
        if self.find(id).is_some() {
            return;
        }
        let outcome = match outcome {
            InputOutcome::Recorded { seq } => InputOutcome::Recorded { seq: *seq },
            InputOutcome::Done => InputOutcome::Done,
            InputOutcome::Refused { reason } => {
                let end = reason.floor_char_boundary(MAX_REASON_BYTES);
                InputOutcome::Refused {
                    reason: reason[..end].to_owned(),
                }
            }
        };
        self.outcomes.push(OutcomeRecord {
            id: id.clone(),
            outcome,
        });
    }
}

/// What is remembered: the newest inputs, and all of the last day.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    next: u64,
    oldest_ms: i64,
}

impl Memory {
    /// Returns what an inbox remembers whose next input has the number `next`.
    pub(super) fn new(next: u64, now: Timestamp) -> Self {
        let oldest_ms = now
            .checked_sub(REMEMBERED_FOR)
            .map_or(i64::MIN, Timestamp::as_millisecond);
        Self { next, oldest_ms }
    }

    fn keeps(self, id: &InputId, at_ms: i64) -> bool {
        let is_new = id
            .number()
            .is_some_and(|number| number.saturating_add(REMEMBERED_INPUTS) >= self.next);
        is_new || at_ms >= self.oldest_ms
    }

    /// Returns whether a segment whose last outcome is of `at_ms` is still needed.
    pub(super) fn keeps_segment(self, segment: u64, at_ms: i64) -> bool {
        let end = (segment + 1).saturating_mul(SEGMENT_INPUTS);
        end.saturating_add(REMEMBERED_INPUTS) >= self.next || at_ms >= self.oldest_ms
    }
}

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |hex, byte| {
            format!("{hex}{byte:02x}")
        })
}

/// Parses the document or metadata at `key`.
pub(super) fn parse<T: DeserializeOwned>(
    place: &str,
    key: &str,
    text: &[u8],
) -> Result<T, StoreError> {
    serde_json::from_slice(text).map_err(|cause| StoreError::Corrupt {
        place: format!("{place}, {key}"),
        cause: cause.to_string(),
    })
}

/// Returns the text of a document or its metadata.
pub(super) fn text<T: Serialize>(place: &str, value: &T) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|cause| StoreError::Store {
        place: place.to_owned(),
        cause: cause.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3600).unwrap()
    }

    fn record(number: u64, hour: i64) -> KeyRecord {
        KeyRecord {
            key_hash: format!("{number:064x}"),
            body_hash: String::new(),
            id: InputId::numbered(number),
            at_ms: at(hour).as_millisecond(),
        }
    }

    #[test]
    fn a_key_is_forgotten_only_when_it_is_both_old_and_one_of_many() {
        // The number of the input, its age in hours, and whether it is remembered.
        let table = [
            (1, 0, true),
            (1, 23, true),
            (1, 25, false),
            (1000, 25, false),
            (1001, 25, true),
            (2000, 1000, true),
        ];
        for (number, age_hours, kept) in table {
            let key = record(number, 10_000 - age_hours);
            let bucket = KeyBucket {
                keys: vec![key.clone()],
            };
            let memory = Memory::new(2001, at(10_000));
            let found = bucket.find(&key.key_hash, memory).is_some();
            assert_eq!(found, kept, "input {number}, {age_hours} hours old");
        }
    }

    #[test]
    fn a_bucket_never_outgrows_a_document() {
        let memory = Memory::new(1, at(10_000));
        let mut bucket = KeyBucket::default();
        for number in 0..MAX_BUCKET_KEYS as u64 + 10 {
            bucket.add(record(number, 10_000), memory);
        }
        assert_eq!(bucket.keys.len(), MAX_BUCKET_KEYS);
        assert_eq!(bucket.keys[0].id.number(), Some(10));
        let text = text("", &bucket).unwrap();
        assert!(text.len() < crate::MAX_BODY_BYTES, "{}", text.len());
    }

    #[test]
    fn the_first_outcome_stays_and_a_long_reason_is_cut() {
        let mut segment = OutcomeSegment::default();
        let id = InputId::numbered(1);
        let reason = "ä".repeat(MAX_REASON_BYTES);
        segment.add(&id, &InputOutcome::Refused { reason });
        segment.add(&id, &InputOutcome::Recorded { seq: 7 });
        let kept = InputOutcome::Refused {
            reason: "ä".repeat(MAX_REASON_BYTES / 2),
        };
        assert_eq!(segment.find(&id), Some(&kept));
    }
}
