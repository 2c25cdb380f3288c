//! The writer of a journal in a store.
//!
//! Effects: the clock, the store (writes), the journal (writes).

use super::super::journal::encode;
use crate::{FencingToken, JournalTail, JournalWriter, Position, Space, Store, StoreError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Entry, JournalLine, Redactor, SessionId};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time after which a silent holder can be replaced.
pub(super) const LEASE_TTL: Duration = Duration::from_secs(10);
/// The interval at which a holder renews its lease.
pub(super) const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// The writer of one journal in a store, which holds its lease.
#[derive(Debug)]
pub(super) struct StoreWriter {
    store: Arc<dyn Store>,
    space: Space,
    redactor: Redactor,
    session: SessionId,
    pub(super) place: PathBuf,
    pub(super) at: Position,
    fence: FencingToken,
    /// Set before an append begins and cleared after it succeeded.
    broken: bool,
    closed: bool,
    lease_lost: CancellationToken,
    _renewal: JoinSet<()>,
}

impl StoreWriter {
    /// Returns a writer that continues at `at` and keeps the lease alive.
    pub(super) fn new(
        (store, space): (Arc<dyn Store>, Space),
        redactor: Redactor,
        (session, place): (SessionId, PathBuf),
        at: Position,
        fence: FencingToken,
    ) -> Self {
        let lost = CancellationToken::new();
        let mut renewal = JoinSet::new();
        renewal.spawn(keep_renewing(
            store.clone(),
            space.clone(),
            fence.clone(),
            lost.clone(),
        ));
        let broken = false;
        let closed = false;
        Self {
            store,
            space,
            redactor,
            session,
            place,
            at,
            fence,
            broken,
            closed,
            lease_lost: lost,
            _renewal: renewal,
        }
    }
}

impl StoreWriter {
    /// Returns why the lease is gone: another holder took it, or the store lost what it had.
    async fn why_fenced(&self) -> StoreError {
        let tail = self.store.tail(&self.space, self.session.as_str()).await;
        let lost = tail.and_then(|tail| check_for_lost_writes(&self.place, tail.as_ref(), self.at));
        match lost {
            Err(lost @ StoreError::Corrupt { .. }) => lost,
            Ok(()) | Err(_) => StoreError::Fenced {
                lease: format!("session {}", self.session),
            },
        }
    }
}

impl JournalWriter for StoreWriter {
    fn append(
        &mut self,
        entries: Vec<Entry>,
    ) -> BoxFuture<'_, Result<Vec<JournalLine>, StoreError>> {
        Box::pin(async move {
            if self.lease_lost.is_cancelled() {
                return Err(self.why_fenced().await);
            }
            if self.broken {
                return Err(StoreError::Broken(self.place.clone()));
            }
            let damaged = |(line, cause)| StoreError::Damaged {
                path: self.place.clone(),
                line,
                cause,
            };
            let (text, lines) = encode(&self.redactor, self.at, entries).map_err(damaged)?;
            let Some(last) = lines.last() else {
                return Ok(lines);
            };
            let to = Position {
                seq: last.seq,
                sum: last.sum,
                bytes: self.at.bytes + text.len() as u64,
            };
            self.broken = true;
            let texts = split_lines(text);
            let appended = self.store.append(
                &self.space,
                self.session.as_str(),
                self.at.seq,
                &texts,
                &self.fence,
            );
            match appended.await {
                Ok(()) => {}
                Err(StoreError::Fenced { .. }) => {
                    self.lease_lost.cancel();
                    return Err(self.why_fenced().await);
                }
                Err(error @ StoreError::Conflict(_)) if self.at.seq > 0 => {
                    let tail = self.store.tail(&self.space, self.session.as_str()).await?;
                    check_for_lost_writes(&self.place, tail.as_ref(), self.at)?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
            self.at = to;
            self.broken = false;
            Ok(lines)
        })
    }

    fn position(&self) -> Position {
        self.at
    }

    fn fence(&self) -> Option<&FencingToken> {
        Some(&self.fence)
    }

    fn lease_lost(&self) -> CancellationToken {
        self.lease_lost.clone()
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        self.closed = true;
        Box::pin(async move {
            if self.lease_lost.is_cancelled() {
                return;
            }
            if let Err(error) = self.store.release(&self.space, &self.fence).await {
                tracing::warn!(session = %self.session, %error, "the lease was not given back; it will expire");
            }
        })
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        let (false, Ok(runtime)) = (self.closed || self.lease_lost.is_cancelled(), runtime) else {
            return;
        };
        // Nothing waits for this task: the store's own deadlines end it, and an unreleased lease
        // expires.
        let store = self.store.clone();
        let space = self.space.clone();
        let fence = self.fence.clone();
        runtime.spawn(async move {
            let _ = store.release(&space, &fence).await;
        });
    }
}

/// Renews a lease until it is lost. A store that does not answer is no reason to stop: unless
/// another holder took the lease in the meantime, it is still held.
async fn keep_renewing(
    store: Arc<dyn Store>,
    space: Space,
    fence: FencingToken,
    lost: CancellationToken,
) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        if let Ok(false) = store.renew(&space, &fence, LEASE_TTL).await {
            lost.cancel();
            return;
        }
    }
}

/// Splits `text` into lines without their ends, without copying.
fn split_lines(text: String) -> Vec<Bytes> {
    let text = Bytes::from(text);
    let mut start = 0;
    memchr::memchr_iter(b'\n', &text)
        .map(|end| {
            let line = text.slice(start..end);
            start = end + 1;
            line
        })
        .collect()
}

/// Checks that a store did not lose acknowledged lines (Redis without a synced log may).
pub(super) fn check_for_lost_writes(
    place: &Path,
    tail: Option<&JournalTail>,
    at: Position,
) -> Result<(), StoreError> {
    let now = tail.map_or(0, |tail| tail.seq);
    if now >= at.seq {
        return Ok(());
    }
    let cause = format!(
        "the store lost lines {} to {} that it had acknowledged",
        now + 1,
        at.seq
    );
    Err(StoreError::Corrupt {
        place: place.display().to_string(),
        cause,
    })
}
