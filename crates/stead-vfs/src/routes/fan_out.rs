//! Part of `Routes`: one search in several mounted file systems at once.
//!
//! Each file system searches itself and is told by [`Visible`] which of its files count: those that
//! the pattern selects by their path in the whole tree, and that no other mount hides. This filter
//! applies before limits, so the merged and truncated results are exactly those of one search.
//!
//! Ignore files above a mount point apply in it, as in any directory. A file system does not know
//! them, so if there are any, the mount is searched from here.
//!
//! Effects: the clock, workspace files (reads).

use super::{Routes, full_path};
use crate::find::{SearchInterrupted, SearchStop};
use crate::glob::{DotFiles, PathGlob};
use crate::grep::{self, relative_start};
use crate::ignores::{Ignores, IsDir};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, UnsearchedPart, Visible,
};
use crate::{FileMatches, VPath, Vfs, VfsError, find, rebase};
use futures_util::future::join_all;
use std::sync::Arc;

/// Patterns that select every file; the second includes names that begin with a dot.
const EVERY: &str = "**";
const EVERY_WITH_DOTS: &str = "**/*{,.}";

/// The part of one file system in a search.
struct MountSearch<'a> {
    vfs: &'a Arc<dyn Vfs>,
    /// The mount point.
    at: VPath,
    /// The start of its search, in the whole tree.
    start: VPath,
    strategy: SearchStrategy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchStrategy {
    /// The file system searches itself.
    Delegate,
    /// Its files are walked and read from here, because ignore files above apply in it.
    WalkHere,
}

impl Routes {
    pub(super) async fn glob_everywhere(
        &self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> Result<GlobResult, FileSearchError> {
        let glob = Arc::new(PathGlob::new(&query.pattern)?);
        let (root, parts) = match self
            .plan_search(&query.root, &bounds, glob.dot_files(), Some(&glob))
            .await
        {
            Ok(planned) => planned?,
            Err(SearchInterrupted::TimedOut) => {
                return Ok(GlobResult {
                    timed_out: true,
                    ..GlobResult::default()
                });
            }
            Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
        };
        let searches = parts.iter().map(async |part| {
            let bounds = self.mount_bounds(part, &bounds, Some(&glob), &root);
            match part.strategy {
                SearchStrategy::WalkHere => {
                    find::glob_below(self, &glob, &root, &part.start, &bounds).await
                }
                SearchStrategy::Delegate => {
                    let pattern = if part.start == root {
                        query.pattern.clone()
                    } else {
                        every(glob.dot_files())
                    };
                    let query = GlobQuery {
                        pattern,
                        root: part.own_start()?,
                    };
                    let found = part.vfs.search().glob(query, bounds).await;
                    let mut found = found
                        .map_err(|e| rebase::search_error(e, |own| full_path(&part.at, own)))?;
                    found
                        .paths
                        .iter_mut()
                        .for_each(|path| *path = full_path(&part.at, path));
                    move_parts(&mut found.failed, &part.at);
                    Ok(found)
                }
            }
        });
        let mut merged = GlobResult::default();
        let results = join_all(searches).await;
        for found in self.collect_results(&root, &parts, results, &mut merged.failed)? {
            merged.paths.extend(found.paths);
            merged.truncated |= found.truncated;
            merged.timed_out |= found.timed_out;
            merged.failed.extend(found.failed);
        }
        merged.paths.sort_unstable();
        merged.truncated |= merged.paths.len() > bounds.limit;
        merged.paths.truncate(bounds.limit);
        Ok(merged)
    }

    pub(super) async fn grep_everywhere(
        &self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> Result<GrepResult, FileSearchError> {
        let glob = query
            .glob
            .as_deref()
            .map(PathGlob::new)
            .transpose()?
            .map(Arc::new);
        let dots = glob
            .as_ref()
            .map_or(DotFiles::Hidden, |glob| glob.dot_files());
        let (root, parts) = match self
            .plan_search(&query.root, &bounds, dots, glob.as_deref())
            .await
        {
            Ok(planned) => planned?,
            Err(SearchInterrupted::TimedOut) => {
                return Ok(GrepResult {
                    timed_out: true,
                    ..GrepResult::default()
                });
            }
            Err(SearchInterrupted::Cancelled) => return Err(FileSearchError::Cancelled),
        };
        let searches = parts.iter().map(async |part| {
            let is_root = part.start == root;
            let bounds = self.mount_bounds(part, &bounds, glob.as_ref(), &root);
            match part.strategy {
                SearchStrategy::WalkHere if is_root => {
                    find::grep(
                        self,
                        GrepQuery {
                            root: root.clone(),
                            ..query.clone()
                        },
                        bounds,
                    )
                    .await
                }
                SearchStrategy::WalkHere => {
                    find::grep_below(self, &query, glob.as_deref(), &root, &part.start, &bounds)
                        .await
                }
                SearchStrategy::Delegate => {
                    let pattern = if is_root {
                        query.glob.clone()
                    } else {
                        glob.as_ref().map(|_| every(dots))
                    };
                    let query = GrepQuery {
                        glob: pattern,
                        root: part.own_start()?,
                        ..query.clone()
                    };
                    let found = part.vfs.search().grep(query, bounds).await;
                    let mut found = found
                        .map_err(|e| rebase::search_error(e, |own| full_path(&part.at, own)))?;
                    found
                        .files
                        .iter_mut()
                        .for_each(|file| file.path = full_path(&part.at, &file.path));
                    move_parts(&mut found.failed, &part.at);
                    Ok(found)
                }
            }
        });
        let mut merged = GrepResult::default();
        let results = join_all(searches).await;
        let mut files: Vec<FileMatches> = Vec::new();
        for found in self.collect_results(&root, &parts, results, &mut merged.failed)? {
            files.extend(found.files);
            merged.truncated |= found.truncated;
            merged.timed_out |= found.timed_out;
            merged.unreadable += found.unreadable;
            merged.failed.extend(found.failed);
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let weighed = files.into_iter().map(|file| {
            let weight = grep::result_count(query.mode, file.count);
            (file, weight)
        });
        let (files, cut) = grep::truncate_matches(weighed, bounds.limit);
        merged.files = files;
        merged.truncated |= cut;
        Ok(merged)
    }

    /// Returns the search root with links resolved, and the file systems concerned, first the one
    /// that holds the root.
    async fn plan_search(
        &self,
        root: &VPath,
        bounds: &Bounds,
        dots: DotFiles,
        glob: Option<&PathGlob>,
    ) -> Result<Result<(VPath, Vec<MountSearch<'_>>), VfsError>, SearchInterrupted> {
        let planned = async {
            let root = self.resolve(root).await?;
            let owner = self.route(&root)?;
            let strategy = match self.ignores_above_mount(&owner.at).await {
                Some(_) => SearchStrategy::WalkHere,
                None => SearchStrategy::Delegate,
            };
            let mut parts = vec![MountSearch {
                vfs: owner.vfs,
                at: owner.at,
                start: root.clone(),
                strategy,
            }];
            for (at, vfs) in &self.mounts {
                if *at == root || !root.contains(at) {
                    continue;
                }
                if let Some(strategy) = self.strategy_for(&root, at, dots, glob).await {
                    parts.push(MountSearch {
                        vfs,
                        at: at.clone(),
                        start: at.clone(),
                        strategy,
                    });
                }
            }
            Ok((root, parts))
        };
        SearchStop::new(bounds).run(planned).await
    }

    /// Returns how to search the mount at `at`, or `None` if a search from `root` does not reach
    /// it.
    async fn strategy_for(
        &self,
        root: &VPath,
        at: &VPath,
        dots: DotFiles,
        glob: Option<&PathGlob>,
    ) -> Option<SearchStrategy> {
        let from = relative_start(root.as_str());
        let mut on_the_way: Vec<VPath> = std::iter::successors(Some(at.clone()), VPath::parent)
            .take_while(|path| path != root && root.contains(path))
            .collect();
        on_the_way.reverse();
        let mut way = SearchStrategy::Delegate;
        for path in &on_the_way {
            let is_dotted = path.name().starts_with('.') && dots == DotFiles::Hidden;
            if path.name() == ".git"
                || is_dotted
                || glob.is_some_and(|glob| !glob.may_enter(&path.as_str()[from..]))
            {
                return None;
            }
            if let Some(rules) = self.ignores_above_mount(path).await {
                if rules.is_ignored(path.as_str(), IsDir::Yes) {
                    return None;
                }
                way = SearchStrategy::WalkHere;
            }
        }
        Some(way)
    }

    /// Returns the ignore rules above a mount. Files that cannot be read give none; the search of
    /// their own file system reports them.
    async fn ignores_above_mount(&self, path: &VPath) -> Option<Arc<Ignores>> {
        find::ignores_above(self, path).await.ok().flatten()
    }

    /// Returns the bounds for one file system: the limits and the files that count.
    fn mount_bounds(
        &self,
        part: &MountSearch<'_>,
        bounds: &Bounds,
        glob: Option<&Arc<PathGlob>>,
        root: &VPath,
    ) -> Bounds {
        let at = part.at.clone();
        let way = part.strategy;
        let outer = bounds.visible.clone();
        let inner: Vec<VPath> = self
            .mounts_below(&part.at)
            .map(|(at, _)| at.clone())
            .collect();
        let from = relative_start(root.as_str());
        // The file system that holds the root is given the pattern itself.
        let glob = glob.filter(|_| part.start != *root).cloned();
        let counts = move |path: &str| {
            let Ok(path) = VPath::parse(path) else {
                return false;
            };
            let full = match way {
                SearchStrategy::Delegate => full_path(&at, &path),
                SearchStrategy::WalkHere => path,
            };
            !inner.iter().any(|inner| inner.contains(&full))
                && glob
                    .as_ref()
                    .is_none_or(|glob| glob.matches(&full.as_str()[from..]))
                && outer.allows(full.as_str())
        };
        Bounds {
            visible: Visible::If(Arc::new(counts)),
            ..bounds.clone()
        }
    }

    /// Merges the results. A file system that failed is named in `failed`, unless it holds the
    /// search root.
    fn collect_results<T>(
        &self,
        root: &VPath,
        parts: &[MountSearch<'_>],
        results: Vec<Result<T, FileSearchError>>,
        failed: &mut Vec<UnsearchedPart>,
    ) -> Result<Vec<T>, FileSearchError> {
        let mut found = Vec::new();
        for (part, result) in parts.iter().zip(results) {
            match result {
                Ok(result) => found.push(result),
                Err(FileSearchError::Vfs(VfsError::NotFound(_) | VfsError::NotDirectory(_)))
                    if part.start == *root && self.is_fixed(root) => {}
                Err(FileSearchError::Vfs(error)) if parts.len() > 1 => {
                    failed.push(UnsearchedPart {
                        path: part.at.clone(),
                        reason: error.to_string(),
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// Moves parts of a file system to where it is mounted.
fn move_parts(parts: &mut [UnsearchedPart], at: &VPath) {
    for part in parts {
        part.path = full_path(at, &part.path);
    }
}

impl MountSearch<'_> {
    fn own_start(&self) -> Result<VPath, FileSearchError> {
        let rest = self
            .start
            .as_str()
            .strip_prefix(self.at.as_str())
            .unwrap_or_default();
        VPath::parse(rest).map_err(|e| FileSearchError::Vfs(e.into()))
    }
}

fn every(dots: DotFiles) -> String {
    match dots {
        DotFiles::Hidden => EVERY.to_owned(),
        DotFiles::Shown => EVERY_WITH_DOTS.to_owned(),
    }
}
