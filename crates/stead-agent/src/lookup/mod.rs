//! Finding what was remembered and what was said: one index, kept in step with files and journals.
//!
//! The index is brought up to date by each search, from what changed since the last: there is no
//! other moment at which it must be told, and nothing is lost if it is deleted.

mod dates;
mod journal;
mod memory;

pub use dates::{parse_since, parse_until};
pub use journal::{EntryText, entry_text};
pub use memory::MemoryFiles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Entry, JournalLine, SessionId};
use stead_search::{
    AppendOutcome, Embed, HybridOptions, Index, IndexError, LazyIndex, Query, SearchResults,
    SearchScope, SearchSource, SearchSourceKind, SyncOutcome,
};
use stead_store::{SessionSummary, Sessions, StoreError};
use stead_vfs::VfsError;

/// How long a search waits for meanings before it goes on with words alone.
const EMBED_DEADLINE: Duration = Duration::from_secs(5);
/// How often an index that turns out to be damaged is filled anew before the search gives up.
const MAX_REBUILDS: usize = 2;

/// Finds what was remembered and what was said.
#[derive(Debug, Clone)]
pub struct Lookup {
    index: Arc<LazyIndex>,
    embed: Option<Arc<dyn Embed>>,
}

/// What was found, and what could not be looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct LookupResult {
    /// The hits.
    pub hits: SearchResults,
    /// Sessions and files that could not be read, with the reason.
    pub unread: Vec<String>,
    /// Whether a hit may be words that nobody here vouches for, or an echo of such words.
    pub untrusted: bool,
}

/// Why nothing can be found.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The index.
    #[error(transparent)]
    Search(#[from] IndexError),
    /// The sessions.
    #[error(transparent)]
    Sessions(#[from] StoreError),
    /// The files.
    #[error(transparent)]
    Files(#[from] VfsError),
}

impl Lookup {
    /// Searches `index`; by meaning too, if `embed` tells it.
    pub fn new(index: Arc<LazyIndex>, embed: Option<Arc<dyn Embed>>) -> Self {
        Self { index, embed }
    }

    /// Searches files of memory. The scope of `query` is set here.
    pub async fn memory(
        &self,
        memory: &MemoryFiles,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Memory(memory), query)
            .await
    }

    /// Searches all sessions. The scope of `query` is set here.
    pub async fn sessions(
        &self,
        sessions: &dyn Sessions,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Sessions(sessions), query)
            .await
    }

    /// Searches one session, up to its newest entry. The scope of `query` is set here.
    pub async fn session(
        &self,
        sessions: &dyn Sessions,
        id: &SessionId,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        self.sync_and_search(LookupTarget::Session(sessions, id), query)
            .await
    }

    /// Forgets sessions that are gone and gives back their space. An index that was never made
    /// stays so.
    pub async fn prune(&self, sessions: &dyn Sessions) -> Result<(), LookupError> {
        if !self.index.exists() {
            return Ok(());
        }
        let index = self.index.get().await?;
        forget_missing(&index, &sessions.list().await?).await?;
        Ok(index.compact().await?)
    }

    /// Fills the index and asks it; once more if it was damaged.
    async fn sync_and_search(
        &self,
        what: LookupTarget<'_>,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        let index = self.index.get().await?;
        let mut rebuilds = 0;
        loop {
            match self.sync_and_search_once(&index, what, query).await {
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
        what: LookupTarget<'_>,
        query: &Query,
    ) -> Result<LookupResult, LookupError> {
        let SyncedScope { scope, unread } = what.sync(index).await?;
        let found = self
            .query_index(index, &query.clone().in_scope(scope))
            .await?;
        let outside = match what {
            LookupTarget::Memory(_) => false,
            LookupTarget::Sessions(sessions) | LookupTarget::Session(sessions, _) => {
                has_untrusted(sessions, &found).await?
            }
        };
        Ok(LookupResult {
            hits: found,
            unread,
            untrusted: outside,
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

/// Whether a hit was said after words from outside had come into its session: what was rewound
/// counts, for it is found.
async fn has_untrusted(
    sessions: &dyn Sessions,
    found: &SearchResults,
) -> Result<bool, LookupError> {
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for hit in &found.hits {
        let place = newest.entry(&hit.source).or_default();
        *place = hit.place.max(*place);
    }
    for (source, place) in newest {
        let Ok(id) = SessionId::new(source) else {
            return Ok(true);
        };
        let untrusted =
            |line: &JournalLine| matches!(&line.entry, Entry::Result(result) if result.untrusted);
        let lines = sessions.read(&id).await?;
        if lines
            .iter()
            .take_while(|line| line.seq <= place)
            .any(untrusted)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is searched.
#[derive(Clone, Copy)]
enum LookupTarget<'a> {
    Memory(&'a MemoryFiles),
    Sessions(&'a dyn Sessions),
    Session(&'a dyn Sessions, &'a SessionId),
}

impl LookupTarget<'_> {
    /// Brings `index` up to date with it.
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

/// What an index holds now.
pub(crate) struct SyncedScope {
    scope: SearchScope,
    unread: Vec<String>,
}

/// Brings the index up to date with all sessions.
async fn sync_sessions(index: &Index, sessions: &dyn Sessions) -> Result<SyncedScope, LookupError> {
    let known = index.sources(SearchSourceKind::Session).await?;
    let mut listed = sessions.list().await?;
    // In the same order everywhere, so that every place gives the same answers.
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

/// Forgets sessions that are not among those that are `listed`.
async fn forget_missing(index: &Index, listed: &[SessionSummary]) -> Result<(), LookupError> {
    let here: BTreeSet<&str> = listed.iter().map(|summary| summary.id.as_str()).collect();
    for gone in index
        .sources(SearchSourceKind::Session)
        .await?
        .keys()
        .filter(|name| !here.contains(name.as_str()))
    {
        index
            .remove(&SearchSource::new(SearchSourceKind::Session, gone))
            .await?;
    }
    Ok(())
}

/// Brings the index up to date with one session, whose journal has `lines`. What was known of it
/// and only grew is added to.
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
            .filter(|line| line.place > upto)
            .cloned()
            .collect();
        match index.append(&source, &known, &version, &more).await? {
            AppendOutcome::Added => return Ok(()),
            // Another process was faster; what it left is compared below.
            AppendOutcome::Stale => {}
        }
    }
    match index.sync(&source, &version, &all).await? {
        SyncOutcome::Unchanged | SyncOutcome::Replaced => Ok(()),
    }
}

/// The entry up to which a journal is known, if its `lines` go on from there.
fn grew_from(known: &str, lines: &[stead_core::JournalLine]) -> Option<u64> {
    let mut parts = known.split(':');
    let seq = parts.next()?.parse::<u64>().ok()?;
    let _ = parts.next()?;
    let sum = parts.next()?;
    let line = lines.get(usize::try_from(seq.checked_sub(1)?).ok()?)?;
    (line.seq == seq && line.sum.to_string() == sum).then_some(seq)
}
