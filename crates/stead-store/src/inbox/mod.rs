//! The durable inbox of a session: commands that wait for the process that holds the session.
//!
//! ```text
//! inbox/<session>/head          the number of the next input
//! inbox/<session>/w/<number>    a waiting row: metadata (id, time), body
//! inbox/<session>/k/<bucket>    remembered keys
//! inbox/<session>/d/<segment>   outcomes of 64 inputs
//! ```
//!
//! Every insertion replaces the counter and expects the version it has read, so the numbers of rows
//! are the order in which they were inserted, whichever process or machine did it.
//!
//! Effects: the clock, randomness, the store (writes).

mod records;
mod types;

pub use types::{InboxError, InboxRow, InputOutcome, Inserted};

use crate::{
    DocVersion, Document, DocumentChange, Expected, FencingToken, MAX_BODY_BYTES, Space,
    StateStore, StoreError,
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use records::{
    InboxHead, KeyBucket, KeyRecord, Memory, OutcomeSegment, RowMeta, SEGMENT_INPUTS, SegmentMeta,
    hash, parse, text,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use stead_core::InputStatus;
use stead_core::{InputId, SessionId};

/// The most rows that can wait in one inbox.
pub const MAX_WAITING_INPUTS: usize = 1000;
/// The maximum length of an input's key, in bytes.
pub const MAX_INPUT_KEY_BYTES: usize = 256;
/// The number of inputs whose keys and outcomes are remembered however old they are.
pub const REMEMBERED_INPUTS: u64 = 1000;

/// The number of segments that one insertion forgets at most.
const PRUNED_SEGMENTS: usize = 4;
/// The number of rows that one commit settles.
const SETTLED_AT_ONCE: usize = 200;
/// The number of documents that one commit removes.
const REMOVED_AT_ONCE: usize = 200;
/// The number of rows fetched at the same time.
const PARALLEL_READS: usize = 8;
/// How long an operation competes with others before it gives up.
const CONTENTION_DEADLINE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE_MS: u64 = 64;

/// The inbox of one session: rows that wait, in order of insertion, and the outcomes of earlier
/// ones.
///
/// Keys and outcomes are remembered for 24 hours, and those of the newest [`REMEMBERED_INPUTS`]
/// inputs for longer.
#[derive(Debug, Clone)]
pub struct SessionInbox {
    store: Arc<dyn StateStore>,
    space: Space,
    session: SessionId,
    clock: InboxClock,
}

/// The clock of an inbox. Only the age of what is remembered depends on it.
#[derive(Debug, Clone, Copy)]
enum InboxClock {
    System,
    Fixed(Timestamp),
}

/// A waiting row without its body.
#[derive(Debug)]
struct WaitingRow {
    key: String,
    version: DocVersion,
    meta: RowMeta,
}

impl SessionInbox {
    /// Returns the inbox of `session` in `space`. Accesses nothing until it is used.
    ///
    /// A fencing token for [`settle`](Self::settle) must be of a lease in the same space. Files
    /// need a space for each session, because they list a whole space. `Place::inbox` does both.
    pub fn new(store: Arc<dyn StateStore>, space: &Space, session: &SessionId) -> Self {
        Self {
            store,
            space: space.clone(),
            session: session.clone(),
            clock: InboxClock::System,
        }
    }

    /// Returns the inbox with a clock that shows `now`, for tests.
    pub fn with_time(self, now: Timestamp) -> Self {
        Self {
            clock: InboxClock::Fixed(now),
            ..self
        }
    }

    /// Inserts a row. Durable on return. An input with the same key and body as an earlier one is
    /// the earlier one.
    pub async fn insert(&self, key: Option<&str>, body: Bytes) -> Result<Inserted, InboxError> {
        at_most("key", key.map_or(0, str::len), MAX_INPUT_KEY_BYTES)?;
        at_most("body", body.len(), MAX_BODY_BYTES)?;
        let mut turns = Turns::new();
        loop {
            let (head_version, head) = self.get::<InboxHead>(&self.key("head")).await?;
            let memory = Memory::new(head.next, self.now());
            let id = InputId::numbered(head.next);
            let mut changes = Vec::with_capacity(3);
            if let Some(key) = key {
                let new = self.key_record(key, &body, id.clone());
                let bucket_key = self.key(&format!("k/{:02x}", KeyBucket::number(&new.key_hash)));
                let (version, mut bucket) = self.get::<KeyBucket>(&bucket_key).await?;
                if let Some(known) = bucket.find(&new.key_hash, memory)
                    && let Some(existing) = self.existing(key, known, &new).await?
                {
                    return Ok(existing);
                }
                bucket.add(new, memory);
                changes.push(self.put(bucket_key, Vec::new(), &bucket, version)?);
            }
            let waiting = self.waiting_bound(&head).await?;
            let new_head = InboxHead {
                next: head.next + 1,
                waiting_bound: waiting + 1,
            };
            changes.push(self.put(self.key("head"), Vec::new(), &new_head, head_version)?);
            changes.push(self.new_row(head.next, &id, body.clone())?);
            match self.store.commit(&self.space, changes, None).await {
                Ok(()) => {}
                // The insertion itself may be the change that the retry of a lost response met.
                Err(StoreError::Conflict(_)) if self.status(&id).await?.is_some() => {}
                Err(error @ StoreError::Conflict(_)) => {
                    turns.wait(error).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            if new_head.next.is_multiple_of(SEGMENT_INPUTS)
                && let Err(error) = self.forget(Memory::new(new_head.next, self.now())).await
            {
                tracing::debug!(session = %self.session, %error, "old outcomes are kept until a later insertion");
            }
            return Ok(Inserted::New(id));
        }
    }

    /// Returns the oldest waiting rows, at most `limit`, in order of insertion.
    pub async fn waiting(&self, limit: usize) -> Result<Vec<InboxRow>, InboxError> {
        let rows = self.rows_after(None, limit).await?;
        let rows = stream::iter(rows).map(|row| async move {
            let found = self.store.get(&self.space, &row.key).await?;
            // A row that was settled meanwhile is left out.
            Ok::<_, StoreError>(found.map(|document| InboxRow {
                id: row.meta.id,
                at: Timestamp::from_millisecond(row.meta.at_ms).unwrap_or_default(),
                body: document.body,
            }))
        });
        let found: Vec<Option<InboxRow>> = rows.buffered(PARALLEL_READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Removes rows that were carried out or refused, and remembers their outcomes. Rows that are
    /// not waiting are left as they are, so it can be repeated. Fails with [`StoreError::Fenced`]
    /// if `fence` is outdated.
    pub async fn settle(
        &self,
        settled: &[(InputId, InputOutcome)],
        fence: Option<&FencingToken>,
    ) -> Result<(), InboxError> {
        for part in settled.chunks(SETTLED_AT_ONCE) {
            let mut turns = Turns::new();
            loop {
                let changes = self.settlement(part).await?;
                if changes.is_empty() {
                    break;
                }
                match self.store.commit(&self.space, changes, fence).await {
                    Ok(()) => break,
                    Err(error @ StoreError::Conflict(_)) => turns.wait(error).await?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Returns the state of an input, or `None` if it is unknown or forgotten.
    pub async fn status(&self, id: &InputId) -> Result<Option<InputStatus>, InboxError> {
        let Some(number) = id.number() else {
            return Ok(None);
        };
        // Rows only go from waiting to settled, so looking in this order misses none.
        let row = self.rows_after(number.checked_sub(1), 1).await?;
        if row.first().is_some_and(|row| row.meta.id == *id) {
            return Ok(Some(InputStatus::Waiting));
        }
        let (_, segment) = self
            .get::<OutcomeSegment>(&self.segment_key(number))
            .await?;
        Ok(segment.find(id).map(|outcome| match outcome {
            InputOutcome::Recorded { seq } => InputStatus::Recorded { seq: *seq },
            InputOutcome::Done => InputStatus::Done,
            InputOutcome::Refused { reason } => InputStatus::Refused {
                reason: reason.clone(),
            },
        }))
    }

    /// Removes everything, for a session that is removed.
    pub async fn clear(&self) -> Result<(), StoreError> {
        let mut turns = Turns::new();
        loop {
            let listed = self
                .store
                .list(&self.space, &self.key(""), None, REMOVED_AT_ONCE)
                .await?;
            if listed.is_empty() {
                return Ok(());
            }
            let gone = listed.into_iter().map(|document| DocumentChange::Delete {
                key: document.key,
                expect: Expected::Version(document.version),
            });
            match self.store.commit(&self.space, gone.collect(), None).await {
                Ok(()) => {}
                Err(error @ StoreError::Conflict(_)) => turns.wait(error).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the changes that settle those of `settled` that wait.
    async fn settlement(
        &self,
        settled: &[(InputId, InputOutcome)],
    ) -> Result<Vec<DocumentChange>, StoreError> {
        let outcomes: HashMap<&InputId, &InputOutcome> =
            settled.iter().map(|(id, outcome)| (id, outcome)).collect();
        let numbers = || outcomes.keys().filter_map(|id| id.number());
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else {
            return Ok(Vec::new());
        };
        let span = usize::try_from(last - first).unwrap_or(usize::MAX);
        let limit = span.saturating_add(1).min(MAX_WAITING_INPUTS * 2);
        let mut changes = Vec::new();
        let mut segments = BTreeMap::new();
        for row in self.rows_after(first.checked_sub(1), limit).await? {
            let Some(outcome) = outcomes.get(&row.meta.id) else {
                continue;
            };
            let segment_key = self.segment_key(row.meta.id.number().unwrap_or_default());
            if !segments.contains_key(&segment_key) {
                let segment = self.get::<OutcomeSegment>(&segment_key).await?;
                segments.insert(segment_key.clone(), segment);
            }
            if let Some((_, segment)) = segments.get_mut(&segment_key) {
                segment.add(&row.meta.id, outcome);
            }
            changes.push(DocumentChange::Delete {
                key: row.key,
                expect: Expected::Version(row.version),
            });
        }
        let meta = SegmentMeta {
            at_ms: self.now().as_millisecond(),
        };
        let meta = text(self.store.place(), &meta)?;
        for (key, (version, segment)) in segments {
            changes.push(self.put(key, meta.clone(), &segment, version)?);
        }
        Ok(changes)
    }

    /// Returns the earlier input with the same key, or `None` if its outcome is forgotten.
    async fn existing(
        &self,
        key: &str,
        known: &KeyRecord,
        new: &KeyRecord,
    ) -> Result<Option<Inserted>, InboxError> {
        if known.body_hash != new.body_hash {
            return Err(InboxError::KeyConflict(key.to_owned()));
        }
        let status = self.status(&known.id).await?;
        Ok(status.map(|status| Inserted::Existing {
            id: known.id.clone(),
            status,
        }))
    }

    /// Returns a bound of the number of waiting rows, counted if the known one is too high.
    async fn waiting_bound(&self, head: &InboxHead) -> Result<usize, InboxError> {
        if head.waiting_bound < MAX_WAITING_INPUTS {
            return Ok(head.waiting_bound);
        }
        let waiting = self.rows_after(None, MAX_WAITING_INPUTS).await?.len();
        if waiting < MAX_WAITING_INPUTS {
            Ok(waiting)
        } else {
            Err(InboxError::Full(self.session.clone()))
        }
    }

    /// Removes the oldest outcomes that need not be remembered, a bounded number of them.
    async fn forget(&self, memory: Memory) -> Result<(), StoreError> {
        let prefix = self.key("d/");
        let listed = self
            .store
            .list(&self.space, &prefix, None, PRUNED_SEGMENTS)
            .await?;
        let mut changes = Vec::new();
        for segment in listed {
            let meta: SegmentMeta = parse(self.store.place(), &segment.key, &segment.meta)?;
            let number = u64::from_str_radix(&segment.key[prefix.len()..], 16).unwrap_or(u64::MAX);
            if !memory.keeps_segment(number, meta.at_ms) {
                changes.push(DocumentChange::Delete {
                    key: segment.key,
                    expect: Expected::Version(segment.version),
                });
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.store.commit(&self.space, changes, None).await
    }

    /// Returns waiting rows whose number comes after `after`, in order.
    async fn rows_after(
        &self,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<WaitingRow>, StoreError> {
        let after = after.map(|number| self.row_key(number));
        let listed = self
            .store
            .list(&self.space, &self.key("w/"), after.as_deref(), limit)
            .await?;
        let rows = listed.into_iter().map(|row| {
            Ok(WaitingRow {
                meta: parse(self.store.place(), &row.key, &row.meta)?,
                key: row.key,
                version: row.version,
            })
        });
        rows.collect()
    }

    fn key_record(&self, key: &str, body: &[u8], id: InputId) -> KeyRecord {
        KeyRecord {
            key_hash: hash(key.as_bytes()),
            body_hash: hash(body),
            id,
            at_ms: self.now().as_millisecond(),
        }
    }

    fn new_row(
        &self,
        number: u64,
        id: &InputId,
        body: Bytes,
    ) -> Result<DocumentChange, StoreError> {
        let meta = RowMeta {
            id: id.clone(),
            at_ms: self.now().as_millisecond(),
        };
        Ok(DocumentChange::Put {
            key: self.row_key(number),
            document: Document::new(text(self.store.place(), &meta)?, body),
            expect: Expected::Absent,
        })
    }

    /// Returns a document with the version it is expected to have when it is replaced.
    async fn get<T: DeserializeOwned + Default>(
        &self,
        key: &str,
    ) -> Result<(Expected, T), StoreError> {
        match self.store.get(&self.space, key).await? {
            None => Ok((Expected::Absent, T::default())),
            Some(found) => Ok((
                Expected::Version(found.version),
                parse(self.store.place(), key, &found.body)?,
            )),
        }
    }

    fn put<T: Serialize>(
        &self,
        key: String,
        meta: Vec<u8>,
        value: &T,
        expect: Expected,
    ) -> Result<DocumentChange, StoreError> {
        Ok(DocumentChange::Put {
            key,
            document: Document::new(meta, text(self.store.place(), value)?),
            expect,
        })
    }

    fn key(&self, rest: &str) -> String {
        format!("inbox/{}/{rest}", self.session)
    }

    fn row_key(&self, number: u64) -> String {
        self.key(&format!("w/{number:016x}"))
    }

    fn segment_key(&self, number: u64) -> String {
        self.key(&format!("d/{:016x}", number / SEGMENT_INPUTS))
    }

    fn now(&self) -> Timestamp {
        match self.clock {
            InboxClock::System => Timestamp::now(),
            InboxClock::Fixed(now) => now,
        }
    }
}

fn at_most(part: &'static str, bytes: usize, max: usize) -> Result<(), InboxError> {
    if bytes <= max {
        Ok(())
    } else {
        Err(InboxError::TooLarge { part, bytes, max })
    }
}

/// The attempts of an operation that competes with others. Each loser waits a random time, longer
/// after each attempt.
struct Turns {
    give_up: Instant,
    longest_ms: u64,
}

impl Turns {
    fn new() -> Self {
        Self {
            give_up: Instant::now() + CONTENTION_DEADLINE,
            longest_ms: 1,
        }
    }

    /// Waits for the next attempt, or returns `error` if there were too many.
    async fn wait(&mut self, error: StoreError) -> Result<(), StoreError> {
        if Instant::now() >= self.give_up {
            return Err(error);
        }
        let random = DocVersion::fresh().0 as u64;
        tokio::time::sleep(Duration::from_millis(random % (self.longest_ms + 1))).await;
        self.longest_ms = (self.longest_ms * 2).min(LONGEST_PAUSE_MS);
        Ok(())
    }
}
