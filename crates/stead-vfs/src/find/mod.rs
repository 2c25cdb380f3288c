//! Searching any place through its [`Vfs`], with the meaning that [`Search`](crate::Search)
//! promises.
//!
//! For a place without a faster way of its own: its [`Search`](crate::Search) calls [`glob`] and
//! [`grep`]. The names come from [`Vfs::walk`], page by page; the contents of those that count are
//! then read, a few at once, the large ones block by block. Results are made in their final order,
//! so the search ends with the first one beyond the limit.

mod content;
mod names;
mod stop;

use crate::glob::{Dots, PathGlob};
use crate::grep::{self, relative_start};
use crate::search::{
    Bounds, FileMatches, GlobQuery, GlobResult, GrepQuery, GrepResult, SearchError,
};
use crate::{FileKind, VPath, Vfs, VfsError};
use content::{Content, Looked};
use futures_util::{StreamExt, stream};
use names::Names;

pub(crate) use names::levels_above;
pub(crate) use stop::{Ended, Stop};

/// Files searched at once.
const FILES_AT_ONCE: usize = 8;

/// Files whose path matches a pattern.
pub async fn glob<V: Vfs + ?Sized>(
    vfs: &V,
    query: GlobQuery,
    bounds: Bounds,
) -> Result<GlobResult, SearchError> {
    let glob = PathGlob::new(&query.pattern)?;
    let root = match Stop::new(&bounds).within(vfs.resolve(&query.root)).await {
        Ok(root) => root?,
        Err(Ended::Late) => {
            return Ok(GlobResult {
                timed_out: true,
                ..GlobResult::default()
            });
        }
        Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
    };
    glob_below(vfs, &glob, &root, &root, &bounds).await
}

/// Lines that match a pattern.
pub async fn grep<V: Vfs + ?Sized>(
    vfs: &V,
    query: GrepQuery,
    bounds: Bounds,
) -> Result<GrepResult, SearchError> {
    let glob = query.glob.as_deref().map(PathGlob::new).transpose()?;
    let stop = Stop::new(&bounds);
    let content = Content::new(&query, &bounds)?;
    let looked = stop.within(async {
        let root = vfs.resolve(&query.root).await?;
        let stat = vfs.stat(&root).await;
        Ok::<_, VfsError>((root, stat))
    });
    let (root, stat) = match looked.await {
        Ok(looked) => looked?,
        Err(Ended::Late) => {
            return Ok(GrepResult {
                timed_out: true,
                ..GrepResult::default()
            });
        }
        Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
    };
    let size = match stat {
        Ok(stat) if stat.kind == FileKind::File => stat.size,
        // The walk says what is wrong with a root that is none.
        Ok(_) | Err(_) => {
            return grep_below(vfs, &query, glob.as_ref(), &root, &root, &bounds).await;
        }
    };
    let mut found = GrepResult::default();
    if glob.is_some_and(|glob| !glob.matches(root.name())) || !content.wants(root.as_str()) {
        return Ok(found);
    }
    let mut results = Vec::new();
    match stop.within(content.search(vfs, root, size)).await {
        Ok(looked) => add(&mut found, &mut results, looked, &query),
        Err(Ended::Late) => found.timed_out = true,
        Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
    }
    (found.files, found.truncated) = grep::cut(results.into_iter(), bounds.limit);
    Ok(found)
}

/// Files below `start` whose path from `root` matches.
pub(crate) async fn glob_below<V: Vfs + ?Sized>(
    vfs: &V,
    glob: &PathGlob,
    root: &VPath,
    start: &VPath,
    bounds: &Bounds,
) -> Result<GlobResult, SearchError> {
    let stop = Stop::new(bounds);
    let from = relative_start(root.as_str());
    let mut names = Names::new(vfs, start, glob.dots(), Some(glob), from);
    let mut found = GlobResult::default();
    loop {
        let page = match stop.within(names.next_page()).await {
            Ok(page) => page?,
            Err(Ended::Late) => {
                found.timed_out = true;
                return Ok(found);
            }
            Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
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

/// Lines of files below `start` whose path from `root` matches.
pub(crate) async fn grep_below<V: Vfs + ?Sized>(
    vfs: &V,
    query: &GrepQuery,
    glob: Option<&PathGlob>,
    root: &VPath,
    start: &VPath,
    bounds: &Bounds,
) -> Result<GrepResult, SearchError> {
    let content = Content::new(query, bounds)?;
    let stop = Stop::new(bounds);
    let from = relative_start(root.as_str());
    let dots = glob.map_or(Dots::Hidden, PathGlob::dots);
    let mut names = Names::new(vfs, start, dots, glob, from);
    let mut found = GrepResult::default();
    let mut results = Vec::new();
    let ended = 'search: loop {
        let page = match stop.within(names.next_page()).await {
            Ok(page) => page?,
            Err(ended) => break Some(ended),
        };
        let Some(page) = page else { break None };
        let candidates = page.into_iter().filter(|(path, _)| {
            glob.is_none_or(|glob| glob.matches(&path.as_str()[from..]))
                && content.wants(path.as_str())
        });
        let searches = candidates.map(|(path, size)| content.search(vfs, path, size));
        let mut looks = stream::iter(searches).buffered(FILES_AT_ONCE);
        loop {
            match stop.within(looks.next()).await {
                Ok(None) => break,
                Ok(Some(looked)) => add(&mut found, &mut results, looked, query),
                Err(ended) => break 'search Some(ended),
            }
            if results.iter().map(|(_, weight)| weight).sum::<usize>() > bounds.limit {
                break 'search None;
            }
        }
    };
    match ended {
        Some(Ended::Cancelled) => return Err(SearchError::Cancelled),
        Some(Ended::Late) => found.timed_out = true,
        None => {}
    }
    (found.files, found.truncated) = grep::cut(results.into_iter(), bounds.limit);
    Ok(found)
}

fn add(
    found: &mut GrepResult,
    results: &mut Vec<(FileMatches, usize)>,
    looked: Looked,
    query: &GrepQuery,
) {
    match looked {
        Looked::Nothing => {}
        Looked::Unreadable => found.unreadable += 1,
        Looked::Matches(file) => {
            let weight = grep::weight(query.mode, file.count);
            results.push((file, weight));
        }
    }
}
