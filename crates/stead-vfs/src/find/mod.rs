//! Searching any file system through its [`Vfs`], with the guarantees of [`Search`](crate::Search).
//!
//! For file systems without a faster search of their own: their [`Search`](crate::Search) calls
//! [`glob`] and [`grep()`]. Names come from [`Vfs::walk`], page by page; then the contents of
//! matching files are read, several at once and large ones in blocks. Results are produced in their
//! final order, so the search ends with the first one beyond the limit.
//!
//! Effects: the clock, workspace files (reads).

mod content;
mod file_walk;
mod stop;

use crate::glob::{DotFiles, PathGlob};
use crate::grep::{self, relative_start};
use crate::search::{
    Bounds, FileMatches, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult,
};
use crate::{FileKind, VPath, Vfs, VfsError};
use content::{ContentSearch, FileSearchOutcome};
use file_walk::FileWalk;
use futures_util::{StreamExt, stream};

pub(crate) use file_walk::ignores_above;
pub(crate) use stop::{SearchInterrupted, SearchStop};

/// The number of files searched at once.
const FILES_AT_ONCE: usize = 8;

/// Returns the files whose path matches a pattern.
pub async fn glob<V: Vfs + ?Sized>(
    vfs: &V,
    query: GlobQuery,
    bounds: Bounds,
) -> Result<GlobResult, FileSearchError> {
    let glob = PathGlob::new(&query.pattern)?;
    let root = match SearchStop::new(&bounds).run(vfs.resolve(&query.root)).await {
        Ok(root) => root?,
        Err(SearchInterrupted::TimedOut) => {
            return Ok(GlobResult {
                timed_out: true,
                ..GlobResult::default()
            });
        }
        Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
    };
    glob_below(vfs, &glob, &root, &root, &bounds).await
}

/// Returns the lines that match a pattern.
pub async fn grep<V: Vfs + ?Sized>(
    vfs: &V,
    query: GrepQuery,
    bounds: Bounds,
) -> Result<GrepResult, FileSearchError> {
    let glob = query.glob.as_deref().map(PathGlob::new).transpose()?;
    let stop = SearchStop::new(&bounds);
    let content = ContentSearch::new(&query, &bounds)?;
    let looked = stop.run(async {
        let root = vfs.resolve(&query.root).await?;
        let stat = vfs.stat(&root).await;
        Ok::<_, VfsError>((root, stat))
    });
    let (root, stat) = match looked.await {
        Ok(looked) => looked?,
        Err(SearchInterrupted::TimedOut) => {
            return Ok(GrepResult {
                timed_out: true,
                ..GrepResult::default()
            });
        }
        Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
    };
    let size = match stat {
        Ok(stat) if stat.kind == FileKind::File => stat.size,
        // The walk reports an invalid root.
        Ok(_) | Err(_) => {
            return grep_below(vfs, &query, glob.as_ref(), &root, &root, &bounds).await;
        }
    };
    let mut found = GrepResult::default();
    if glob.is_some_and(|glob| !glob.matches(root.name())) || !content.accepts(root.as_str()) {
        return Ok(found);
    }
    let mut results = Vec::new();
    match stop.run(content.search(vfs, root, size)).await {
        Ok(looked) => add_outcome(&mut found, &mut results, looked, &query),
        Err(SearchInterrupted::TimedOut) => found.timed_out = true,
        Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
    }
    (found.files, found.truncated) = grep::truncate_matches(results.into_iter(), bounds.limit);
    Ok(found)
}

/// Returns the files below `start` whose path from `root` matches.
pub(crate) async fn glob_below<V: Vfs + ?Sized>(
    vfs: &V,
    glob: &PathGlob,
    root: &VPath,
    start: &VPath,
    bounds: &Bounds,
) -> Result<GlobResult, FileSearchError> {
    let stop = SearchStop::new(bounds);
    let from = relative_start(root.as_str());
    let mut names = FileWalk::new(vfs, start, glob.dot_files(), Some(glob), from);
    let mut found = GlobResult::default();
    loop {
        let page = match stop.run(names.next_page()).await {
            Ok(page) => page?,
            Err(SearchInterrupted::TimedOut) => {
                found.timed_out = true;
                return Ok(found);
            }
            Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
        };
        let Some(page) = page else { return Ok(found) };
        for (path, _) in page {
            if !glob.matches(&path.as_str()[from..]) || !bounds.visible.allows(path.as_str()) {
                continue;
            }
            if found.paths.len() == bounds.limit {
                found.truncated = true;
                return Ok(found);
            }
            found.paths.push(path);
        }
    }
}

/// Returns the matching lines of files below `start` whose path from `root` matches.
pub(crate) async fn grep_below<V: Vfs + ?Sized>(
    vfs: &V,
    query: &GrepQuery,
    glob: Option<&PathGlob>,
    root: &VPath,
    start: &VPath,
    bounds: &Bounds,
) -> Result<GrepResult, FileSearchError> {
    let content = ContentSearch::new(query, bounds)?;
    let stop = SearchStop::new(bounds);
    let from = relative_start(root.as_str());
    let dots = glob.map_or(DotFiles::Hidden, PathGlob::dot_files);
    let mut names = FileWalk::new(vfs, start, dots, glob, from);
    let mut found = GrepResult::default();
    let mut results = Vec::new();
    let ended = 'search: loop {
        let page = match stop.run(names.next_page()).await {
            Ok(page) => page?,
            Err(ended) => break Some(ended),
        };
        let Some(page) = page else { break None };
        let candidates = page.into_iter().filter(|(path, _)| {
            glob.is_none_or(|glob| glob.matches(&path.as_str()[from..]))
                && content.accepts(path.as_str())
        });
        let searches = candidates.map(|(path, size)| content.search(vfs, path, size));
        let mut looks = stream::iter(searches).buffered(FILES_AT_ONCE);
        loop {
            match stop.run(looks.next()).await {
                Ok(None) => break,
                Ok(Some(looked)) => add_outcome(&mut found, &mut results, looked, query),
                Err(ended) => break 'search Some(ended),
            }
            if results.iter().map(|(_, weight)| weight).sum::<usize>() > bounds.limit {
                break 'search None;
            }
        }
    };
    match ended {
        Some(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
        Some(SearchInterrupted::TimedOut) => found.timed_out = true,
        None => {}
    }
    (found.files, found.truncated) = grep::truncate_matches(results.into_iter(), bounds.limit);
    Ok(found)
}

fn add_outcome(
    found: &mut GrepResult,
    results: &mut Vec<(FileMatches, usize)>,
    looked: FileSearchOutcome,
    query: &GrepQuery,
) {
    match looked {
        FileSearchOutcome::NoMatch => {}
        FileSearchOutcome::Unreadable => found.unreadable += 1,
        FileSearchOutcome::Matches(file) => {
            let weight = grep::result_count(query.mode, file.count);
            results.push((file, weight));
        }
    }
}
