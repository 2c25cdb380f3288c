//! A store in the memory of one process.

use crate::contract::{check_changes, check_lines};
use crate::{
    Acquired, Change, Claim, Claimed, Dead, DocVersion, Document, Documents, Enqueued, Fence, Job, Journals, Lease,
    Leases, Listed, Queue, Space, Store, StoreError, Tail,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PLACE: &str = "memory:";
const DEDUP_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// What a dead letter says of a worker that was not heard of again.
const EXPIRED: &str = "the worker did not answer in time";

/// Keeps everything in memory, until it is dropped. Everything happens under one lock, so that each
/// operation is whole.
#[derive(Debug, Default)]
pub struct MemoryStore {
    spaces: Mutex<HashMap<Space, Contents>>,
}

#[derive(Debug, Default)]
struct Contents {
    documents: BTreeMap<String, Document>,
    journals: BTreeMap<String, Log>,
    leases: HashMap<String, Grant>,
    queues: HashMap<String, Jobs>,
}

#[derive(Debug, Default)]
struct Log {
    lines: Vec<Bytes>,
    bytes: u64,
    updated_ms: i64,
}

#[derive(Debug)]
struct Grant {
    token: u64,
    /// None when it was given back.
    holder: Option<String>,
    until: Instant,
}

#[derive(Debug, Default)]
struct Jobs {
    /// The number of jobs so far, from which ids are made.
    count: u64,
    waiting: BTreeMap<String, Waiting>,
    known: HashMap<String, (String, Instant)>,
    dead: BTreeMap<String, Dead>,
}

#[derive(Debug)]
struct Waiting {
    payload: Bytes,
    due: Instant,
    attempt: u32,
    max_attempts: u32,
    state: JobState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobState {
    /// Nobody's.
    Free,
    /// In the hands of a worker until it is due.
    Claimed,
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

/// An hour too far ahead for the clock is as good as any other.
fn later(now: Instant, wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    now + wait.min(FAR)
}

fn ready<'a, T: Send + 'a>(answer: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Documents for MemoryStore {
    fn get<'a>(&'a self, space: &'a Space, key: &'a str) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        ready(Ok(self.read(space, |contents| contents.documents.get(key).cloned())))
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        ready(Ok(self.read(space, |contents| contents.list(prefix, after, limit))))
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<Change>,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(
            check_changes(PLACE, &changes).and_then(|()| self.write(space, |contents| contents.commit(changes, fence))),
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
        let listed = found.take_while(|(key, _)| key.starts_with(prefix)).map(|(key, document)| Listed {
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
        let version = |key: &String| -> Option<DocVersion> { Some(self.documents.get(key)?.version) };
        let conflict = |key: &String| Err(StoreError::Conflict(key.clone()));
        match change {
            Change::Put { key, expect, .. } | Change::Delete { key, expect } | Change::Check { key, expect } => {
                if expect.holds(version(key)) {
                    Ok(())
                } else {
                    conflict(key)
                }
            }
            Change::Move { from, version: expected, .. } if version(from) != Some(*expected) => conflict(from),
            Change::Move { to, .. } if version(to).is_some() => conflict(to),
            Change::Move { .. } => Ok(()),
        }
    }

    fn check_fence(&self, fence: &Fence) -> Result<(), StoreError> {
        let latest = self.leases.get(&fence.name).map(|grant| grant.token);
        if latest == Some(fence.token) { Ok(()) } else { Err(StoreError::Fenced { lease: fence.name.clone() }) }
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
                let end = contents.journals.get(journal).map_or(0, |log| log.lines.len() as u64);
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
            let lines = contents.journals.get(journal).and_then(|log| log.lines.get(skip..)).unwrap_or_default();
            let mut bytes = 0;
            let fits = |line: &&Bytes| {
                let first = bytes == 0;
                bytes += line.len() + 1;
                first || bytes <= max_bytes
            };
            lines.iter().take_while(fits).cloned().collect()
        })))
    }

    fn tail<'a>(&'a self, space: &'a Space, journal: &'a str) -> BoxFuture<'a, Result<Option<Tail>, StoreError>> {
        ready(Ok(self.read(space, |contents| contents.journals.get(journal).and_then(Log::tail))))
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
            found.filter_map(|(name, log)| Some((name.clone(), log.tail()?))).take(limit).collect()
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
        Some(Tail { seq: self.lines.len() as u64, bytes: self.bytes, last, updated_ms: self.updated_ms })
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
        let now = Instant::now();
        ready(Ok(self.write(space, |contents| {
            let grant = contents.leases.entry(name.to_owned());
            let grant = grant.or_insert(Grant { token: 0, holder: None, until: now });
            match &grant.holder {
                Some(theirs) if theirs == holder => grant.until = later(now, ttl),
                Some(theirs) if now < grant.until && claim != Claim::Over(grant.token) => {
                    let left = grant.until - now;
                    return Acquired::Held(Lease { holder: theirs.clone(), token: grant.token, left });
                }
                _ => *grant = Grant { token: grant.token + 1, holder: Some(holder.to_owned()), until: later(now, ttl) },
            }
            Acquired::Ours(Fence { name: name.to_owned(), token: grant.token })
        })))
    }

    fn renew<'a>(
        &'a self,
        space: &'a Space,
        fence: &'a Fence,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.write(space, |contents| {
            let ours = contents.ours(fence);
            let renewed = ours.map(|grant| grant.until = later(Instant::now(), ttl));
            renewed.is_some()
        })))
    }

    fn release<'a>(&'a self, space: &'a Space, fence: &'a Fence) -> BoxFuture<'a, Result<(), StoreError>> {
        self.write(space, |contents| {
            if let Some(grant) = contents.ours(fence) {
                grant.holder = None;
            }
        });
        ready(Ok(()))
    }
}

impl Contents {
    fn ours(&mut self, fence: &Fence) -> Option<&mut Grant> {
        self.leases.get_mut(&fence.name).filter(|grant| grant.token == fence.token && grant.holder.is_some())
    }
}

impl Queue for MemoryStore {
    fn enqueue<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        job: Job,
    ) -> BoxFuture<'a, Result<Enqueued, StoreError>> {
        ready(Ok(self.write(space, |contents| contents.queues.entry(queue.to_owned()).or_default().add(job))))
    }

    fn claim<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        hide: Duration,
    ) -> BoxFuture<'a, Result<Option<Claimed>, StoreError>> {
        ready(Ok(self.write(space, |contents| contents.queues.get_mut(queue)?.claim(hide))))
    }

    fn ack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.claimed(space, queue, claimed, |jobs, _| {
            jobs.waiting.remove(&claimed.id);
        })))
    }

    fn nack<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        delay: Duration,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.claimed(space, queue, claimed, |jobs, now| {
            let Some(job) = jobs.waiting.get_mut(&claimed.id) else { return };
            if job.attempt >= job.max_attempts {
                return jobs.bury(&claimed.id, reason);
            }
            job.state = JobState::Free;
            job.due = later(now, delay);
        })))
    }

    fn extend<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        claimed: &'a Claimed,
        hide: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(self.claimed(space, queue, claimed, |jobs, now| {
            if let Some(job) = jobs.waiting.get_mut(&claimed.id) {
                job.due = later(now, hide);
            }
        })))
    }

    fn dead<'a>(
        &'a self,
        space: &'a Space,
        queue: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Dead>, StoreError>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        ready(Ok(self.read(space, |contents| {
            let Some(jobs) = contents.queues.get(queue) else { return Vec::new() };
            jobs.dead.range::<str, _>((from, Bound::Unbounded)).map(|(_, dead)| dead.clone()).take(limit).collect()
        })))
    }
}

impl MemoryStore {
    /// Does `act` if the job is still in the hands of that worker.
    fn claimed(&self, space: &Space, queue: &str, claimed: &Claimed, act: impl FnOnce(&mut Jobs, Instant)) -> bool {
        self.write(space, |contents| {
            let Some(jobs) = contents.queues.get_mut(queue) else { return false };
            let job = jobs.waiting.get(&claimed.id);
            let ours = job.is_some_and(|job| job.state == JobState::Claimed && job.attempt == claimed.attempt);
            if ours {
                act(jobs, Instant::now());
            }
            ours
        })
    }
}

impl Jobs {
    fn add(&mut self, job: Job) -> Enqueued {
        let now = Instant::now();
        self.known.retain(|_, (_, since)| now.duration_since(*since) < DEDUP_MEMORY);
        if let Some((id, _)) = job.dedup.as_ref().and_then(|key| self.known.get(key)) {
            return Enqueued::Known(id.clone());
        }
        self.count += 1;
        let id = format!("{:016x}", self.count);
        if let Some(key) = job.dedup {
            self.known.insert(key, (id.clone(), now));
        }
        let Job { payload, delay, max_attempts, .. } = job;
        let waiting = Waiting { payload, due: later(now, delay), attempt: 0, max_attempts, state: JobState::Free };
        self.waiting.insert(id.clone(), waiting);
        Enqueued::New(id)
    }

    fn claim(&mut self, hide: Duration) -> Option<Claimed> {
        let now = Instant::now();
        loop {
            let due = self.waiting.iter_mut().filter(|(_, job)| job.due <= now);
            // The ids of jobs that are due since the same moment decide.
            let (id, job) = due.min_by_key(|(id, job)| (job.due, (*id).clone()))?;
            let id = id.clone();
            if job.attempt > 0 && job.attempt >= job.max_attempts {
                self.bury(&id, EXPIRED);
                continue;
            }
            job.attempt += 1;
            job.due = later(now, hide);
            job.state = JobState::Claimed;
            return Some(Claimed { id, payload: job.payload.clone(), attempt: job.attempt });
        }
    }

    fn bury(&mut self, id: &str, reason: &str) {
        if let Some(Waiting { payload, attempt, .. }) = self.waiting.remove(id) {
            let dead = Dead { id: id.to_owned(), payload, attempts: attempt, reason: reason.to_owned() };
            self.dead.insert(id.to_owned(), dead);
        }
    }
}
