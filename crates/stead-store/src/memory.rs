//! A store in the memory of one process.

use crate::contract::{check_changes, check_lines};
use crate::local::{Added, Grant, Jobs, Settle};
use crate::{
    Acquired, Change, Claim, Claimed, Dead, DocVersion, Document, Documents, Enqueued, Fence, Job,
    Journals, Leases, Listed, Queue, Space, Store, StoreError, Tail,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PLACE: &str = "memory:";

/// Keeps everything in memory, until it is dropped. Everything happens under one lock, so that each
/// operation is whole.
#[derive(Debug)]
pub struct MemoryStore {
    /// Leases and jobs count time from here: a clock that is set does not touch them.
    begun: Instant,
    spaces: Mutex<HashMap<Space, Contents>>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            spaces: Mutex::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Contents {
    documents: BTreeMap<String, Document>,
    journals: BTreeMap<String, Log>,
    leases: HashMap<String, Grant>,
    queues: HashMap<String, Line>,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<Bytes>,
    bytes: u64,
    updated_ms: i64,
}

#[derive(Debug, Default)]
struct Line {
    jobs: Jobs,
    payloads: HashMap<String, Bytes>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn spaces(&self) -> MutexGuard<'_, HashMap<Space, Contents>> {
        // Nothing below panics between two changes, so what a poisoned lock protects is whole.
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    fn read<T: Default>(&self, space: &Space, look: impl FnOnce(&Contents) -> T) -> T {
        self.spaces().get(space).map(look).unwrap_or_default()
    }

    fn write<T>(&self, space: &Space, change: impl FnOnce(&mut Contents) -> T) -> T {
        change(self.spaces().entry(space.clone()).or_default())
    }
}

impl Store for MemoryStore {
    fn place(&self) -> &str {
        PLACE
    }

    fn is_shared(&self) -> bool {
        false
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
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        ready(Ok(
            self.read(space, |contents| contents.list(prefix, after, limit))
        ))
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<Change>,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(
            check_changes(PLACE, &changes)
                .and_then(|()| self.write(space, |contents| contents.commit(changes, fence))),
        )
    }
}

impl Contents {
    fn list(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Listed> {
        let from = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let found = self.documents.range::<str, _>((from, Bound::Unbounded));
        let listed = found
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, document)| Listed {
                key: key.clone(),
                version: document.version,
                meta: document.meta.clone(),
            });
        listed.take(limit).collect()
    }

    fn commit(&mut self, changes: Vec<Change>, fence: Option<&Fence>) -> Result<(), StoreError> {
        fence.map_or(Ok(()), |fence| self.check_fence(fence))?;
        for change in &changes {
            self.check(change)?;
        }
        for change in changes {
            match change {
                Change::Put { key, document, .. } => {
                    self.documents.insert(key, document);
                }
                Change::Delete { key, .. } => {
                    self.documents.remove(&key);
                }
                Change::Move { from, to, .. } => {
                    if let Some(document) = self.documents.remove(&from) {
                        self.documents.insert(to, document);
                    }
                }
                Change::Check { .. } => {}
            }
        }
        Ok(())
    }

    fn check(&self, change: &Change) -> Result<(), StoreError> {
        let version =
            |key: &String| -> Option<DocVersion> { Some(self.documents.get(key)?.version) };
        let conflict = |key: &String| Err(StoreError::Conflict(key.clone()));
        match change {
            Change::Put { key, expect, .. }
            | Change::Delete { key, expect }
            | Change::Check { key, expect } => {
                if expect.holds(version(key)) {
                    Ok(())
                } else {
                    conflict(key)
                }
            }
            Change::Move {
                from,
                version: expected,
                ..
            } if version(from) != Some(*expected) => conflict(from),
            Change::Move { to, .. } if version(to).is_some() => conflict(to),
            Change::Move { .. } => Ok(()),
        }
    }

    fn check_fence(&self, fence: &Fence) -> Result<(), StoreError> {
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
        fence: &'a Fence,
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
    ) -> BoxFuture<'a, Result<Option<Tail>, StoreError>> {
        ready(Ok(self.read(space, |contents| {
            contents.journals.get(journal).and_then(Log::tail)
        })))
    }

    fn names<'a>(
        &'a self,
        space: &'a Space,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<(String, Tail)>, StoreError>> {
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
        fence: &'a Fence,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(self.write(space, |contents| {
            contents.check_fence(fence)?;
            contents.journals.remove(journal);
            Ok(())
        }))
    }
}

impl Log {
    fn tail(&self) -> Option<Tail> {
        let last = self.lines.last()?.clone();
        Some(Tail {
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
    ) -> BoxFuture<'a, Result<Acquired, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let grant = contents
                .leases
                .entry(name.to_owned())
                .or_insert_with(|| Grant::new(name));
            grant.acquire(now_ms, holder, ttl, claim)
        })))
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a Fence,
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
        fence: &'a Fence,
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
    ) -> BoxFuture<'a, Result<Enqueued, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let line = contents.queues.entry(queue.to_owned()).or_default();
            match line
                .jobs
                .add(now_ms, job.dedup, job.delay, job.max_attempts)
            {
                Added::Known(id) => Enqueued::Known(id),
                Added::New(id) => {
                    line.payloads.insert(id.clone(), job.payload);
                    Enqueued::New(id)
                }
            }
        })))
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<Claimed>, StoreError>> {
        let now_ms = self.now_ms();
        ready(Ok(self.write(space, |contents| {
            let line = contents.queues.get_mut(queue)?;
            let (id, attempt) = line.jobs.claim(now_ms, hide)?;
            let payload = line.payloads.get(&id).cloned().unwrap_or_default();
            Some(Claimed {
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
        claimed: &'a Claimed,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(space, queue, claimed, &Settle::Ack)))
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(
            space,
            queue,
            claimed,
            &Settle::Nack {
                delay,
                reason: reason.to_owned(),
            },
        )))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.settle(
            space,
            queue,
            claimed,
            &Settle::Extend { hide },
        )))
    }

    fn dead<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Dead>, StoreError>> {
        ready(Ok(self.read(space, |contents| {
            let Some(line) = contents.queues.get(queue) else {
                return Vec::new();
            };
            let dead = line.jobs.dead(after).map(|(id, buried)| Dead {
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
    fn settle(&self, space: &Space, queue: &str, claimed: &Claimed, settle: &Settle) -> bool {
        let now_ms = self.now_ms();
        self.write(space, |contents| {
            let Some(line) = contents.queues.get_mut(queue) else {
                return false;
            };
            let settled = line
                .jobs
                .settle(now_ms, &claimed.id, claimed.attempt, settle);
            if settled && *settle == Settle::Ack {
                line.payloads.remove(&claimed.id);
            }
            settled
        })
    }
}
