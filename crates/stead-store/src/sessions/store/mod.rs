//! Sessions in a store that other machines may share.
//!
//! A session is a journal of the store. Its writer holds a lease and passes its fencing token with
//! every append. A process that takes the session over gets a greater token, and from then on the
//! store refuses appends of the earlier holder. Every call that can change something is recorded
//! before it is executed, so a holder that slept past its lease stops before its next side effect.
//!
//! Effects: the clock, randomness, the local disk (reads), the store (writes), the journal
//! (writes).

mod listing;
mod range;
mod writer;

use super::holder::ProcessIdentity;
use super::journal::{check_lines, read_line};
use super::read_positions::ReadPositions;
use super::{JournalEnd, PageRequest, SessionPage};
use crate::{
    AcquireOutcome, Claim, Document, DocumentChange, Expected, FencingToken, Holder, ImportOutcome,
    JournalTail, JournalWriter, Lease, LockWait, OpenedSession, Position, SessionSummary, Sessions,
    Space, Store, StoreError,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    AgentId, Entry, JournalLine, LineError, NewSession, Redactor, SessionId, SessionStart,
    SessionState,
};
use writer::{LEASE_TTL, RENEW_INTERVAL, StoreWriter, check_for_lost_writes};

/// The interval at which a waiting process checks the lease.
const POLL: Duration = Duration::from_millis(100);
/// The number of journal bytes fetched at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The number of names fetched at once.
const PAGE: usize = 500;

/// The sessions of one agent and owner in a [`Store`].
#[derive(Debug)]
pub struct StoreSessions {
    store: Arc<dyn Store>,
    space: Space,
    /// The space of the derived summaries.
    index: Space,
    agent: AgentId,
    redactor: Redactor,
    read_ends: ReadPositions,
}

impl StoreSessions {
    /// Returns the sessions of `agent` in `space`. Accesses nothing until it is used.
    pub fn new(store: Arc<dyn Store>, space: Space, agent: AgentId, redactor: Redactor) -> Self {
        let index = space.within("index");
        Self {
            store,
            space,
            index,
            agent,
            redactor,
            read_ends: ReadPositions::default(),
        }
    }

    /// Acquires the lease of a session. Waits for a holder that is alive as `wait` allows; replaces
    /// a holder that is gone or that was silent for as long as a lease lasts.
    async fn lease(&self, id: &SessionId, wait: LockWait) -> Result<FencingToken, StoreError> {
        let name = lease_name(id);
        let me = ProcessIdentity::fresh().text();
        let patience = match wait {
            LockWait::No => Duration::ZERO,
            LockWait::AtMost(limit) => limit,
        };
        let started = Instant::now();
        let mut claim = Claim::Free;
        let mut first: Option<Lease> = None;
        loop {
            let held = match self
                .store
                .acquire(&self.space, &name, &me, LEASE_TTL, claim)
                .await?
            {
                AcquireOutcome::Granted(fence) => return Ok(fence),
                AcquireOutcome::Held(held) => held,
            };
            let holder = ProcessIdentity::parse(&held.holder);
            if holder.as_ref().is_some_and(ProcessIdentity::is_gone)
                && claim != Claim::Takeover(held.token)
            {
                claim = Claim::Takeover(held.token);
                continue;
            }
            // A holder that renews is alive, and so is one that runs on this machine. Another may
            // be gone, and its lease then expires in time.
            let first = first.get_or_insert_with(|| held.clone());
            let waited = started.elapsed();
            let renewed = held.token != first.token
                || held.remaining + waited > first.remaining + RENEW_INTERVAL / 2;
            let is_alive = renewed || holder.as_ref().is_some_and(ProcessIdentity::is_running);
            if is_alive && waited >= patience {
                let holder = holder.map_or_else(Holder::default, |holder| holder.holder());
                return Err(StoreError::Locked {
                    session: id.clone(),
                    holder,
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn new_writer(&self, id: &SessionId, at: Position, fence: FencingToken) -> Box<StoreWriter> {
        let store = self.store.clone();
        let place = journal_location(&*self.store, id);
        Box::new(StoreWriter::new(
            (store, self.space.clone()),
            self.redactor.clone(),
            (id.clone(), place),
            at,
            fence,
        ))
    }

    /// Passes every line of a journal, verified, to `sink`. Returns the end of the journal.
    async fn scan(
        &self,
        id: &SessionId,
        mut sink: impl FnMut(JournalLine) -> Result<(), StoreError>,
    ) -> Result<Position, StoreError> {
        let mut at = Position::START;
        loop {
            let page = self
                .store
                .lines(&self.space, id.as_str(), at.seq + 1, PAGE_BYTES)
                .await?;
            if page.is_empty() {
                return Ok(at);
            }
            for text in page {
                let number = at.seq + 1;
                let damaged = |cause| StoreError::Damaged {
                    path: journal_location(&*self.store, id),
                    line: number,
                    cause,
                };
                let line = read_line(&text, number, at.sum).map_err(damaged)?;
                match &line.entry {
                    Entry::Session(start) if start.session != *id => {
                        let cause = LineError::Malformed(format!(
                            "it belongs to session {}",
                            start.session
                        ));
                        return Err(damaged(cause));
                    }
                    _ => {}
                }
                at = Position {
                    seq: number,
                    sum: line.sum,
                    bytes: at.bytes + text.len() as u64 + 1,
                };
                sink(line)?;
            }
        }
    }

    async fn fold(&self, id: &SessionId) -> Result<(SessionState, Position), StoreError> {
        let mut state = SessionState::default();
        let at = self
            .scan(id, |line| {
                let unfit = |cause| StoreError::Inconsistent {
                    path: journal_location(&*self.store, id),
                    cause,
                };
                state.apply(line.seq, &line.entry).map_err(unfit)
            })
            .await?;
        Ok((state, at))
    }

    async fn summarise(&self, id: &SessionId, tail: &JournalTail) -> SessionSummary {
        match self.fold(id).await {
            Ok((state, at)) => SessionSummary::of(id, &state, at, tail.updated_ms),
            Err(error) => {
                let at = Position {
                    bytes: tail.bytes,
                    seq: tail.seq,
                    ..Position::START
                };
                let blank = SessionSummary::of(id, &SessionState::default(), at, tail.updated_ms);
                SessionSummary {
                    damage: Some(error.to_string()),
                    ..blank
                }
            }
        }
    }

    async fn store_summary(&self, summary: &SessionSummary) -> Result<(), StoreError> {
        let meta = serde_json::to_vec(summary).unwrap_or_default();
        let document = Document::new(meta, Bytes::new());
        let put = DocumentChange::Put {
            key: summary.id.to_string(),
            document,
            expect: Expected::Any,
        };
        self.store.commit(&self.index, vec![put], None).await
    }
}

impl Sessions for StoreSessions {
    fn create<'a>(
        &'a self,
        id: &'a SessionId,
        new: NewSession,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>> {
        Box::pin(async move {
            if self.store.tail(&self.space, id.as_str()).await?.is_some() {
                return Err(StoreError::Exists(id.clone()));
            }
            let fence = self.lease(id, LockWait::No).await?;
            let mut writer = self.new_writer(id, Position::START, fence);
            let agent = self.agent.clone();
            let start = Entry::Session(SessionStart::new(id.clone(), agent, new));
            let lines = match writer.append(vec![start]).await {
                Ok(lines) => lines,
                // Another process created it between the check and the lease.
                Err(StoreError::Conflict(_)) => return Err(StoreError::Exists(id.clone())),
                Err(error) => return Err(error),
            };
            let mut state = SessionState::default();
            for line in lines {
                let unfit = |cause| StoreError::Inconsistent {
                    path: journal_location(&*self.store, id),
                    cause,
                };
                state.apply(line.seq, &line.entry).map_err(unfit)?;
            }
            Ok(OpenedSession {
                state: Some(state),
                writer,
                torn: None,
            })
        })
    }

    fn open<'a>(
        &'a self,
        id: &'a SessionId,
        known: Option<Position>,
        wait: LockWait,
    ) -> BoxFuture<'a, Result<OpenedSession, StoreError>> {
        Box::pin(async move {
            // A lease outlives its use, so none is created for a session that does not exist.
            if self.store.tail(&self.space, id.as_str()).await?.is_none() && known.is_none() {
                return Err(StoreError::NotFound(id.clone()));
            }
            let fence = self.lease(id, wait).await?;
            // Dropping the writer releases the lease, whatever fails below.
            let mut writer = self.new_writer(id, Position::START, fence);
            let tail = self.store.tail(&self.space, id.as_str()).await?;
            if let Some(known) = known {
                writer.at = known;
                if ends_at(tail.as_ref(), known) {
                    return Ok(OpenedSession {
                        state: None,
                        writer,
                        torn: None,
                    });
                }
                check_for_lost_writes(&writer.place, tail.as_ref(), known)?;
            }
            if tail.is_none() {
                return Err(StoreError::NotFound(id.clone()));
            }
            let (state, at) = self.fold(id).await?;
            writer.at = at;
            Ok(OpenedSession {
                state: Some(state),
                writer,
                torn: None,
            })
        })
    }

    fn read<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            self.scan(id, |line| {
                lines.push(line);
                Ok(())
            })
            .await?;
            if lines.is_empty() {
                Err(StoreError::NotFound(id.clone()))
            } else {
                Ok(lines)
            }
        })
    }

    fn read_from<'a>(
        &'a self,
        id: &'a SessionId,
        from_seq: u64,
        limit_bytes: usize,
    ) -> BoxFuture<'a, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(self.read_range(id, from_seq.max(1), limit_bytes))
    }

    fn tail<'a>(
        &'a self,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<JournalEnd>, StoreError>> {
        Box::pin(async move {
            let tail = self.store.tail(&self.space, id.as_str()).await?;
            Ok(tail.map(|tail| JournalEnd {
                seq: tail.seq,
                bytes: tail.bytes,
            }))
        })
    }

    fn list(&self, page: PageRequest) -> BoxFuture<'_, Result<SessionPage, StoreError>> {
        Box::pin(self.list_page(page))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            if self.store.tail(&self.space, id.as_str()).await?.is_none() {
                return Err(StoreError::NotFound(id.clone()));
            }
            let fence = self.lease(id, LockWait::No).await?;
            self.store.erase(&self.space, id.as_str(), &fence).await?;
            let gone = DocumentChange::Delete {
                key: id.to_string(),
                expect: Expected::Any,
            };
            self.store.commit(&self.index, vec![gone], None).await?;
            self.store.release(&self.space, &fence).await
        })
    }

    fn export<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Bytes>, StoreError>> {
        Box::pin(async move {
            let mut lines: Vec<Bytes> = Vec::new();
            loop {
                let page = self
                    .store
                    .lines(&self.space, id.as_str(), lines.len() as u64 + 1, PAGE_BYTES)
                    .await?;
                if page.is_empty() {
                    break;
                }
                lines.extend(page);
            }
            if lines.is_empty() {
                return Err(StoreError::NotFound(id.clone()));
            }
            check_lines(&journal_location(&*self.store, id), id, &lines)?;
            Ok(lines)
        })
    }

    fn import<'a>(
        &'a self,
        id: &'a SessionId,
        lines: Vec<Bytes>,
    ) -> BoxFuture<'a, Result<ImportOutcome, StoreError>> {
        Box::pin(async move {
            check_lines(&journal_location(&*self.store, id), id, &lines)?;
            let known = match self.export(id).await {
                Ok(known) => known,
                Err(StoreError::NotFound(_)) => Vec::new(),
                Err(error) => return Err(error),
            };
            if known.len() >= lines.len() && known[..lines.len()] == lines[..] {
                return Ok(ImportOutcome::Same);
            }
            if lines[..known.len().min(lines.len())] != known[..] {
                return Err(StoreError::Exists(id.clone()));
            }
            let fence = self.lease(id, LockWait::No).await?;
            let mut after = known.len();
            for part in batches(&lines[after..]) {
                self.store
                    .append(&self.space, id.as_str(), after as u64, part, &fence)
                    .await?;
                after += part.len();
            }
            self.store.release(&self.space, &fence).await?;
            Ok(if known.is_empty() {
                ImportOutcome::New
            } else {
                ImportOutcome::Extended
            })
        })
    }

    fn update_derived<'a>(
        &'a self,
        state: &'a SessionState,
        position: Position,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(id) = &state.session else { return };
            let summary =
                SessionSummary::of(id, state, position, jiff::Timestamp::now().as_millisecond());
            if let Err(error) = self.store_summary(&summary).await {
                tracing::warn!(session = %id, %error, "summary not written; it is derived and will be rebuilt");
            }
        })
    }

    fn locate(&self, id: &SessionId) -> String {
        journal_location(&*self.store, id).display().to_string()
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Splits lines into batches of about a page.
fn batches(lines: &[Bytes]) -> Vec<&[Bytes]> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut size = 0;
    for (i, line) in lines.iter().enumerate() {
        size += line.len();
        if size >= PAGE_BYTES {
            parts.push(&lines[start..=i]);
            (start, size) = (i + 1, 0);
        }
    }
    if start < lines.len() {
        parts.push(&lines[start..]);
    }
    parts
}

fn lease_name(id: &SessionId) -> String {
    format!("session/{id}")
}

/// Returns the location of a journal, for people.
fn journal_location(store: &dyn Store, id: &SessionId) -> PathBuf {
    PathBuf::from(format!("{} session {id}", store.place()))
}

fn ends_at(tail: Option<&JournalTail>, at: Position) -> bool {
    let end = format!("{}\"}}", at.sum);
    tail.is_some_and(|tail| {
        (tail.seq, tail.bytes) == (at.seq, at.bytes) && tail.last.ends_with(end.as_bytes())
    })
}
