//! A store in the memory of one process.
//!
//! Effects: the clock.

use crate::bus::MemoryBus;
use crate::contract::{check_changes, check_lines};
use crate::local::{AddOutcome, JobTable, LeaseRecord, Settlement};
use crate::{
    AcquireOutcome, Bus, Claim, ClaimedJob, DeadLetter, DocVersion, Document, DocumentChange,
    Documents, EnqueueOutcome, FencingToken, Job, JournalTail, Journals, Leases, ListedDocument,
    Queue, Space, StateStore, StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PLACE: &str = "memory:";

/// A store in memory. One lock makes each operation atomic.
#[derive(Debug)]
pub struct MemoryStore {
    /// The start of the clock for leases and jobs, which is independent of the system time.
    started: Instant,
    spaces: Mutex<HashMap<Space, MemorySpace>>,
    bus: Arc<MemoryBus>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            spaces: Mutex::default(),
            bus: Arc::default(),
        }
    }
}

#[derive(Debug, Default)]
struct MemorySpace {
    documents: BTreeMap<String, Document>,
    journals: BTreeMap<String, MemoryJournal>,
    leases: HashMap<String, LeaseRecord>,
    queues: HashMap<String, MemoryQueue>,
}

#[derive(Debug, Default)]
struct MemoryJournal {
    lines: Vec<Bytes>,
    bytes: u64,
    updated_ms: i64,
}

#[derive(Debug, Default)]
struct MemoryQueue {
    jobs: JobTable,
    payloads: HashMap<String, Bytes>,
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<Space, MemorySpace>> {
        // No operation panics between two changes, so the state behind a poisoned lock is
        // consistent.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn read<T: Default>(&self, space: &Space, look: impl FnOnce(&MemorySpace) -> T) -> T {
        self.spaces().get(space).map(look).unwrap_or_default()
    }

    fn write<T>(&self, space: &Space, change: impl FnOnce(&mut MemorySpace) -> T) -> T {
        change(self.spaces().entry(space.clone()).or_default())
    }
}

impl StateStore for MemoryStore {
    fn place(&self) -> &str {
        PLACE
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn bus(&self) -> Arc<dyn Bus> {
        self.bus.clone()
    }
}

fn ready<'a, T: Send + 'a>(answer: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Documents for MemoryStore {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        ready(Ok(
            self.read(space, |contents| contents.documents.get(key).cloned())
        ))
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        ready(Ok(
            self.read(space, |contents| contents.list(prefix, after, limit))
        ))
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(
            check_changes(PLACE, &changes)
                .and_then(|()| self.write(space, |contents| contents.commit(changes, fence))),
        )
    }
}

impl MemorySpace {
    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<ListedDocument> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let found = self.documents.range::<str, _>((from, Bound::Unbounded));
        let listed = found
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, document)| ListedDocument {
                key: key.clone(),
                version: document.version,
                meta: document.meta.clone(),
            });
        listed.take(limit).collect()
    }

    fn commit(
        &mut self,
        changes: Vec<DocumentChange>,
        fence: Option<&FencingToken>,
    ) -> Result<(), StoreError> {
        fence.map_or(Ok(()), |fence| self.check_fence(fence))?;
        for change in &changes {
            self.check(change)?;
        }
        for change in changes {
            match change {
                DocumentChange::Put { key, document, .. } => {
                    self.documents.insert(key, document);
                }
                DocumentChange::Delete { key, .. } => {
                    self.documents.remove(&key);
                }
                DocumentChange::Move { from, to, .. } => {
                    if let Some(document) = self.documents.remove(&from) {
                        self.documents.insert(to, document);
                    }
                }
                DocumentChange::Check { .. } => {}
            }
        }
        Ok(())
    }

    fn check(&self, change: &DocumentChange) -> Result<(), StoreError> {
        let version =
            |key: &String| -> Option<DocVersion> { Some(self.documents.get(key)?.version) };
        let conflict = |key: &String| Err(StoreError::Conflict(key.clone()));
        match change {
            DocumentChange::Put { key, expect, .. }
            | DocumentChange::Delete { key, expect }
            | DocumentChange::Check { key, expect } => {
                if expect.matches(version(key)) {
                    Ok(())
                } else {
                    conflict(key)
                }
            }
            DocumentChange::Move {
                from,
                version: expected,
                ..
            } if version(from) != Some(*expected) => conflict(from),
            DocumentChange::Move { to, .. } if version(to).is_some() => conflict(to),
            DocumentChange::Move { .. } => Ok(()),
        }
    }

    fn check_fence(&self, fence: &FencingToken) -> Result<(), StoreError> {
        let latest = self.leases.get(&fence.name).map(|grant| grant.token);
        if latest == Some(fence.token) {
            Ok(())
        } else {
            Err(StoreError::Fenced {
                lease: fence.name.clone(),
            })
        }
    }
}

impl Journals for MemoryStore {
    fn append<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        after: u64,
        lines: &'a [Bytes],
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(check_lines(PLACE, lines).and_then(|()| {
            self.write(space, |contents| {
                contents.check_fence(fence)?;
                let end = contents
                    .journals
                    .get(journal)
                    .map_or(0, |log| log.lines.len() as u64);
                if end != after {
                    return Err(StoreError::Conflict(journal.to_owned()));
                }
                if lines.is_empty() {
                    return Ok(());
                }
                let log = contents.journals.entry(journal.to_owned()).or_default();
                log.lines.extend_from_slice(lines);
                log.bytes += lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
                log.updated_ms = jiff::Timestamp::now().as_millisecond();
                Ok(())
            })
        }))
    }

    fn lines<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        from: u64,
        max_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        let skip = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
        ready(Ok(self.read(space, |contents| {
            let lines = contents
                .journals
                .get(journal)
                .and_then(|log| log.lines.get(skip..))
                .unwrap_or_default();
            let mut bytes = 0;
            let fits = |line: &&Bytes| {
                let first = bytes == 0;
                bytes += line.len() + 1;
                first || bytes <= max_bytes
            };
            lines.iter().take_while(fits).cloned().collect()
        })))
    }

    fn tail<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournalTail>, StoreError>> {
        ready(Ok(self.read(space, |contents| {
            contents.journals.get(journal).and_then(MemoryJournal::tail)
        })))
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, JournalTail)>, StoreError>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        ready(Ok(self.read(space, |contents| {
            let found = contents.journals.range::<str, _>((from, Bound::Unbounded));
            found
                .filter_map(|(name, log)| Some((name.clone(), log.tail()?)))
                .take(limit)
                .collect()
        })))
    }

    fn erase<'a>(
        &'a self,
        space: &'a Space,
        journal: &'a str,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(self.write(space, |contents| {
            contents.check_fence(fence)?;
            contents.journals.remove(journal);
            Ok(())
        }))
    }
}

impl MemoryJournal {
    fn tail(&self) -> Option<JournalTail> {
        let last = self.lines.last()?.clone();
        Some(JournalTail {
            seq: self.lines.len() as u64,
            bytes: self.bytes,
            last,
            updated_ms: self.updated_ms,
        })
    }
}

impl Leases for MemoryStore {
    fn acquire<'a>(
        &'a self,
        space: &'a Space,
        name: &'a str,
        holder: &'a str,
        ttl: Duration,
        claim: Claim,
    ) -> BoxFuture<'a, Result<AcquireOutcome, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let grant = contents
                .leases
                .entry(name.to_owned())
                .or_insert_with(|| LeaseRecord::new(name));
            grant.acquire(now_ms, holder, ttl, claim)
        })))
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            contents
                .leases
                .get_mut(&fence.name)
                .is_some_and(|grant| grant.renew(now_ms, fence.token, ttl))
        })))
    }

    fn release<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a FencingToken,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.write(space, |contents| {
            if let Some(grant) = contents.leases.get_mut(&fence.name) {
                grant.release(fence.token);
            }
        });
        ready(Ok(()))
    }
}

impl Queue for MemoryStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<EnqueueOutcome, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let line = contents.queues.entry(queue.to_owned()).or_default();
            match line
                .jobs
                .add(now_ms, job.dedup, job.delay, job.max_attempts)
            {
                AddOutcome::Existing(id) => EnqueueOutcome::Existing(id),
                AddOutcome::New(id) => {
                    line.payloads.insert(id.clone(), job.payload);
                    EnqueueOutcome::New(id)
                }
            }
        })))
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<ClaimedJob>, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let line = contents.queues.get_mut(queue)?;
            let (id, attempt) = line.jobs.claim(now_ms, hide)?;
            let payload = line.payloads.get(&id).cloned().unwrap_or_default();
            Some(ClaimedJob {
                id,
                payload,
                attempt,
            })
        })))
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(space, queue, claimed, &Settlement::Ack)))
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(
            space,
            queue,
            claimed,
            &Settlement::Nack {
                delay,
                reason: reason.to_owned(),
            },
        )))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a ClaimedJob,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(
            space,
            queue,
            claimed,
            &Settlement::Extend { hide },
        )))
    }

    fn dead_letters<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, StoreError>> {
        ready(Ok(self.read(space, |contents| {
            let Some(line) = contents.queues.get(queue) else {
                return Vec::new();
            };
            let dead = line.jobs.dead(after).map(|(id, buried)| DeadLetter {
                id: id.clone(),
                payload: line.payloads.get(id).cloned().unwrap_or_default(),
                attempts: buried.attempts,
                reason: buried.reason.clone(),
            });
            dead.take(limit).collect()
        })))
    }
}

impl MemoryStore {
    fn settle(
        &self,
        space: &Space,
        queue: &str,
        claimed: &ClaimedJob,
        settle: &Settlement,
    ) -> bool {
        let now_ms = self.now_ms();
        self.write(space, |contents| {
            let Some(line) = contents.queues.get_mut(queue) else {
                return false;
            };
            let settled = line
                .jobs
                .settle(now_ms, &claimed.id, claimed.attempt, settle);
            if settled && *settle == Settlement::Ack {
                line.payloads.remove(&claimed.id);
            }
            settled
        })
    }
}
