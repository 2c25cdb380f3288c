//! Search in memory and sessions, with one index over files and journals.
//!
//! Each search first updates the index with what changed since the last one. Nothing else updates
//! it, and it can be deleted at any time.
//!
//! Effects: the clock, workspace files (reads), the local disk (writes), the journal (reads), the
//! model.

mod dates;
mod journal;
mod memory;

pub use dates::{parse_since, parse_until};
pub use journal::{EntryText, entry_text};
pub use memory::MemoryFiles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{SessionId, TaintOrigin, recorded_taint};
use stead_search::{
    AppendOutcome, Embed, HybridOptions, Index, IndexError, LazyIndex, Query, SearchResults,
    SearchScope, SearchSource, SearchSourceKind, SyncOutcome,
};
use stead_store::{SessionSummary, Sessions, StoreError};
use stead_vfs::VfsError;

/// How long a search waits for embeddings before it uses words alone.
const EMBED_DEADLINE: Duration = Duration::from_secs(5);
/// How many times a damaged index is rebuilt before the search fails.
const MAX_REBUILDS: usize = 2;

/// Search in the memory and the sessions of an owner.
#[derive(Debug, Clone)]
pub struct Lookup {
    index: Arc<LazyIndex>,
    embed: Option<Arc<dyn Embed>>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupResult {
    /// The hits.
    pub hits: SearchResults,
    /// Sessions and files that could not be read, with the reason.
    pub unread: Vec<String>,
    /// The sessions of hits that may be untrusted content, or derived from it.
    pub taint: Vec<TaintOrigin>,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The index cannot be used.
    #[error(transparent)]
    Search(#[from] IndexError),
    /// Sessions cannot be read.
    #[error(transparent)]
    Sessions(#[from] StoreError),
    /// Files cannot be read.
    #[error(transparent)]
    Files(#[from] VfsError),
}

impl Lookup {
    /// Creates a search over `index`, which also searches by meaning if there is an embedder.
    pub fn new(index: Arc<LazyIndex>, embed: Option<Arc<dyn Embed>>) -> Self {
        Self { index, embed }
    }

    /// Searches memory files. Sets the scope of `query`.
    pub async fn memory(
        &self,
        memory: &MemoryFiles,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Memory(memory), query)
            .await
    }

    /// Searches all sessions. Sets the scope of `query`.
    pub async fn sessions(
        &self,
        sessions: &dyn Sessions,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Sessions(sessions), query)
            .await
    }

    /// Searches one session, up to its newest entry. Sets the scope of `query`.
    pub async fn session(
        &self,
        sessions: &dyn Sessions,
        id: &SessionId,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Session(sessions, id), query)
            .await
    }

    /// Removes sessions that no longer exist from the index and compacts it. Does nothing if there
    /// is no index.
    pub async fn prune(&self, sessions: &dyn Sessions) -> Result<(), LookupError> {
        if !self.index.exists() {
            return Ok(());
        }
        let index = self.index.get().await?;
        forget_missing(&index, &sessions.list_all().await?).await?;
        Ok(index.compact().await?)
    }

    /// Updates and searches the index; again if it was damaged.
    async fn sync_and_search(
        &self,
        target: LookupTarget<'_>,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        let index = self.index.get().await?;
        let mut rebuilds = 0;
        loop {
            match self.sync_and_search_once(&index, target, query).await {
                Err(LookupError::Search(IndexError::Rebuilt)) if rebuilds < MAX_REBUILDS => {
                    rebuilds += 1
                }
                outcome => return outcome,
            }
        }
    }

    async fn sync_and_search_once(
        &self,
        index: &Index,
        target: LookupTarget<'_>,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        let SyncedScope { scope, unread } = target.sync(index).await?;
        let found = self
            .query_index(index, &query.clone().in_scope(scope))
            .await?;
        let taint = match target {
            LookupTarget::Memory(_) => Vec::new(),
            LookupTarget::Sessions(sessions) | LookupTarget::Session(sessions, _) => {
                tainted_hits(sessions, &found).await?
            }
        };
        Ok(LookupResult {
            hits: found,
            unread,
            taint,
        })
    }

    async fn query_index(&self, index: &Index, query: &Query) -> Result<SearchResults, IndexError> {
        match &self.embed {
            None => index.search(query).await,
            Some(embed) => {
                let hybrid = HybridOptions {
                    embed: &**embed,
                    deadline: EMBED_DEADLINE,
                };
                index.search_hybrid(query, hybrid).await
            }
        }
    }
}

/// Returns the sessions in which a hit comes after untrusted content. Entries that were rewound
/// count, because they are found, too.
async fn tainted_hits(
    sessions: &dyn Sessions,
    found: &SearchResults,
) -> Result<Vec<TaintOrigin>, LookupError> {
    let mut origins = Vec::new();
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &found.hits {
        let position = newest.entry(&hit.source).or_default();
        *position = hit.position.max(*position);
    }
    for (source, place) in newest {
        let Ok(id) = SessionId::new(source) else {
            return Ok(vec![TaintOrigin::Unknown]);
        };
        let is_tainted = match sessions.read(&id).await {
            Ok(lines) => !recorded_taint(&lines, place).is_empty(),
            Err(error @ (StoreError::Unavailable { .. } | StoreError::Setup(_))) => {
                return Err(error.into());
            }
            // What a damaged journal took in is not known.
            Err(_) => true,
        };
        if is_tainted {
            origins.push(TaintOrigin::Session { id });
        }
    }
    Ok(origins)
}

/// The target of a search.
#[derive(Clone, Copy)]
enum LookupTarget<'a> {
    Memory(&'a MemoryFiles),
    Sessions(&'a dyn Sessions),
    Session(&'a dyn Sessions, &'a SessionId),
}

impl LookupTarget<'_> {
    /// Updates `index` with the target.
    async fn sync(self, index: &Index) -> Result<SyncedScope, LookupError> {
        match self {
            Self::Memory(memory) => memory.sync(index).await,
            Self::Sessions(sessions) => sync_sessions(index, sessions).await,
            Self::Session(sessions, id) => {
                let lines = sessions.read(id).await?;
                sync_session(index, id, None, &lines).await?;
                Ok(SyncedScope {
                    scope: SearchScope::Sources(SearchSourceKind::Session, vec![id.to_string()]),
                    unread: Vec::new(),
                })
            }
        }
    }
}

/// The scope of an updated index.
pub(crate) struct SyncedScope {
    scope: SearchScope,
    unread: Vec<String>,
}

/// Updates the index with all sessions.
async fn sync_sessions(index: &Index, sessions: &dyn Sessions) -> Result<SyncedScope, LookupError> {
    let known = index.sources(SearchSourceKind::Session).await?;
    let mut listed = sessions.list_all().await?;
    // Sorted, so that every place gives the same results.
    listed.sort_by(|a, b| a.id.cmp(&b.id));
    let mut unread = Vec::new();
    for summary in &listed {
        let mark = format!("{}:{}:", summary.entries, summary.bytes);
        if known
            .get(summary.id.as_str())
            .is_some_and(|version| version.starts_with(&mark))
        {
            continue;
        }
        match sessions.read(&summary.id).await {
            Ok(lines) => sync_session(index, &summary.id, Some(summary.bytes), &lines).await?,
            // It was removed since it was listed.
            Err(StoreError::NotFound(_)) => {}
            Err(error @ (StoreError::Unavailable { .. } | StoreError::Setup(_))) => {
                return Err(error.into());
            }
            Err(error) => unread.push(error.to_string()),
        }
    }
    forget_missing(index, &listed).await?;
    let names = listed
        .into_iter()
        .map(|summary| summary.id.to_string())
        .collect();
    Ok(SyncedScope {
        scope: SearchScope::Sources(SearchSourceKind::Session, names),
        unread,
    })
}

/// Removes the sessions that are not `listed` from the index.
async fn forget_missing(index: &Index, listed: &[SessionSummary]) -> Result<(), LookupError> {
    let existing: BTreeSet<&str> = listed.iter().map(|summary| summary.id.as_str()).collect();
    for missing in index
        .sources(SearchSourceKind::Session)
        .await?
        .keys()
        .filter(|name| !existing.contains(name.as_str()))
    {
        index
            .remove(&SearchSource::new(SearchSourceKind::Session, missing))
            .await?;
    }
    Ok(())
}

/// Updates the index with one session, whose journal has `lines`. If the journal only grew, the new
/// lines are added.
async fn sync_session(
    index: &Index,
    id: &SessionId,
    bytes: Option<u64>,
    lines: &[stead_core::JournalLine],
) -> Result<(), LookupError> {
    let Some(last) = lines.last() else {
        return Ok(());
    };
    let source = SearchSource::new(SearchSourceKind::Session, id.as_str());
    let bytes = bytes.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    let version = format!("{}:{bytes}:{}", last.seq, last.sum);
    let all = journal::searchable_lines(lines);
    if let Some(known) = index.version(&source).await?
        && let Some(upto) = grew_from(&known, lines)
    {
        if upto == last.seq && bytes == "-" {
            return Ok(());
        }
        let more: Vec<_> = all
            .iter()
            .filter(|line| line.position > upto)
            .cloned()
            .collect();
        match index.append(&source, &known, &version, &more).await? {
            AppendOutcome::Added => return Ok(()),
            // Another process was faster; the versions are compared below.
            AppendOutcome::Stale => {}
        }
    }
    match index.sync(&source, &version, &all).await? {
        SyncOutcome::Unchanged | SyncOutcome::Replaced => Ok(()),
    }
}

/// Returns the last entry that is known of a journal, if its `lines` continue from there.
fn grew_from(known: &str, lines: &[stead_core::JournalLine]) -> Option<u64> {
    let mut parts = known.split(':');
    let seq = parts.next()?.parse::<u64>().ok()?;
    let _ = parts.next()?;
    let sum = parts.next()?;
    let line = lines.get(usize::try_from(seq.checked_sub(1)?).ok()?)?;
    (line.seq == seq && line.sum.to_string() == sum).then_some(seq)
}
