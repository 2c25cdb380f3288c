//! Listing the sessions of a store.
//!
//! Effects: the clock, randomness, the store (writes), the journal (reads).

use super::super::page::newest_first;
use super::super::{PageCursor, PageRequest, SessionPage};
use super::{PAGE, StoreSessions};
use crate::{SessionSummary, StoreError};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;
use stead_core::SessionId;

/// The number of summaries fetched at the same time.
const PARALLEL_READS: usize = 8;

/// A journal as the store lists it.
#[derive(Debug)]
struct ListedJournal {
    name: String,
    seq: u64,
    bytes: u64,
    updated_ms: i64,
}

impl StoreSessions {
    /// Returns a page. Only the summaries on the page are read, unless it is the whole listing.
    pub(super) async fn list_page(&self, request: PageRequest) -> Result<SessionPage, StoreError> {
        let mut journals = self.journals().await?;
        if let Some(after) = &request.after {
            journals.retain(|journal| after.precedes(journal.updated_ms, &journal.name));
        }
        journals.sort_unstable_by(|a, b| {
            newest_first((a.updated_ms, &a.name), (b.updated_ms, &b.name))
        });
        let has_more = journals.len() > request.limit;
        journals.truncate(request.limit);
        let known = match journals.len() {
            few if few <= PAGE => None,
            _ => Some(self.all_summaries().await?),
        };
        let known = known.as_ref();
        let summaries =
            stream::iter(journals).map(|journal| async move { self.summary(journal, known).await });
        let found: Vec<Option<SessionSummary>> =
            summaries.buffered(PARALLEL_READS).try_collect().await?;
        let sessions: Vec<SessionSummary> = found.into_iter().flatten().collect();
        let last = sessions.last().filter(|_| has_more);
        let next = last.map(PageCursor::after);
        Ok(SessionPage { sessions, next })
    }

    /// Returns the summary of a journal: from `known` or the store if it is current, or a new one.
    /// A journal whose name is no id has none.
    async fn summary(
        &self,
        journal: ListedJournal,
        known: Option<&HashMap<String, SessionSummary>>,
    ) -> Result<Option<SessionSummary>, StoreError> {
        let Ok(id) = SessionId::new(&journal.name) else {
            return Ok(None);
        };
        let stored = match known {
            Some(known) => known.get(&journal.name).cloned(),
            None => {
                let document = self.store.get(&self.index, &journal.name).await?;
                document.and_then(|found| serde_json::from_slice(&found.meta).ok())
            }
        };
        let is_current = |summary: &SessionSummary| {
            (summary.entries, summary.bytes) == (journal.seq, journal.bytes)
        };
        if let Some(summary) = stored.filter(is_current) {
            return Ok(Some(SessionSummary {
                updated_ms: journal.updated_ms,
                ..summary
            }));
        }
        let Some(tail) = self.store.tail(&self.space, &journal.name).await? else {
            return Ok(None);
        };
        let summary = self.summarise(&id, &tail).await;
        // Summaries are derived: a read-only store can be listed too.
        let _ = self.store_summary(&summary).await;
        // As old as it was when it was listed, so that the order and the cursor are right.
        Ok(Some(SessionSummary {
            updated_ms: journal.updated_ms,
            ..summary
        }))
    }

    async fn journals(&self) -> Result<Vec<ListedJournal>, StoreError> {
        let mut journals = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self
                .store
                .names(&self.space, after.as_deref(), PAGE)
                .await?;
            after = page.last().map(|(name, _)| name.clone());
            let full = page.len() == PAGE;
            journals.extend(page.into_iter().map(|(name, tail)| ListedJournal {
                name,
                seq: tail.seq,
                bytes: tail.bytes,
                updated_ms: tail.updated_ms,
            }));
            if !full {
                return Ok(journals);
            }
        }
    }

    async fn all_summaries(&self) -> Result<HashMap<String, SessionSummary>, StoreError> {
        let mut known = HashMap::new();
        let mut after: Option<String> = None;
        loop {
            let page = self
                .store
                .list(&self.index, "", after.as_deref(), PAGE)
                .await?;
            after = page.last().map(|listed| listed.key.clone());
            let full = page.len() == PAGE;
            known.extend(
                page.into_iter()
                    .filter_map(|l| Some((l.key, serde_json::from_slice(&l.meta).ok()?))),
            );
            if !full {
                return Ok(known);
            }
        }
    }
}
