//! Listing the sessions of a folder: their journals by the time of the last change, and for those
//! on the page the summaries from the index, or new ones.
//!
//! Effects: the local disk (reads).

use super::dirs::modified_ms;
use super::index::SessionIndex;
use super::page::newest_first;
use super::{JOURNAL_SUFFIX, PageCursor, PageRequest, SessionPage};
use crate::{SessionSummary, StoreError};
use std::io;
use std::path::Path;
use stead_core::SessionId;

/// A page, and the summaries on it that the index does not have.
#[derive(Debug)]
pub(super) struct ListedPage {
    pub(super) page: SessionPage,
    pub(super) derived: Vec<SessionSummary>,
}

/// A journal as the folder shows it.
#[derive(Debug)]
struct JournalFile {
    /// The name without its suffix.
    id: String,
    updated_ms: i64,
    bytes: u64,
}

/// Returns a page of the sessions in the folder `dir`. Only the journals on the page whose summary
/// is absent or outdated are read, by `summarise`.
pub(super) fn list_page(
    dir: &Path,
    request: &PageRequest,
    summarise: impl Fn(&SessionId, i64) -> SessionSummary,
) -> Result<ListedPage, StoreError> {
    let mut files = scan(dir)?;
    if let Some(after) = &request.after {
        files.retain(|file| after.precedes(file.updated_ms, &file.id));
    }
    files.sort_unstable_by(|a, b| {
        newest_first((a.updated_ms, a.id.as_str()), (b.updated_ms, b.id.as_str()))
    });
    let index = SessionIndex::load(dir);
    let known = index.lines();
    let mut sessions: Vec<SessionSummary> = Vec::new();
    let mut derived = Vec::new();
    let mut next = None;
    for file in files {
        if sessions.len() >= request.limit {
            next = sessions.last().map(PageCursor::after);
            break;
        }
        let Ok(id) = SessionId::new(&file.id) else {
            continue;
        };
        let is_current = |summary: &SessionSummary| {
            (summary.bytes, summary.updated_ms) == (file.bytes, file.updated_ms)
        };
        let summary = match known.get(&id).filter(is_current) {
            Some(summary) => summary,
            None => {
                let summary = summarise(&id, file.updated_ms);
                // A session that is just being created, or whose creation failed.
                if summary.entries == 0 && summary.damage.is_none() {
                    continue;
                }
                derived.push(summary.clone());
                summary
            }
        };
        sessions.push(summary);
    }
    Ok(ListedPage {
        page: SessionPage { sessions, next },
        derived,
    })
}

/// Returns the journals in a folder, in any order.
fn scan(dir: &Path) -> Result<Vec<JournalFile>, StoreError> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(StoreError::io(dir, cause)),
    };
    let files = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_suffix(JOURNAL_SUFFIX)?;
        let meta = entry.metadata().ok()?;
        Some(JournalFile {
            id: id.to_owned(),
            updated_ms: modified_ms(&meta),
            bytes: meta.len(),
        })
    });
    Ok(files.collect())
}
