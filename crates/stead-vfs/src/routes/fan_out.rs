//! One search in several places at once.
//!
//! Each place searches itself, in its own way, and is told by [`Visible`] which of its files count
//! here: those that the pattern selects by their path in the whole tree, and that no other place
//! hides. As that is asked before limits apply, the results of all places, merged and cut, are
//! exactly those of one search.
//!
//! Ignore files above a mount point have a say in it, as in any directory. A place cannot know
//! them, so where there are some, the tree is searched from here.

use super::{Routes, whole};
use crate::find::{Ended, Stop};
use crate::glob::{Dots, PathGlob};
use crate::grep::{self, relative_start};
use crate::ignores::{Ignores, IsDir};
use crate::search::{Bounds, GlobQuery, GlobResult, GrepQuery, GrepResult, SearchError, Visible};
use crate::{FileMatches, VPath, Vfs, VfsError, find, relocate};
use futures_util::future::join_all;
use std::sync::Arc;

/// Selects every file; the second also those whose names begin with a dot.
const EVERY: &str = "**";
const EVERY_WITH_DOTS: &str = "**/*{,.}";

/// A place's part in a search.
struct Part<'a> {
    vfs: &'a Arc<dyn Vfs>,
    /// Where the place begins.
    at: VPath,
    /// Where its search begins, in the whole tree.
    start: VPath,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The place searches itself.
    Own,
    /// Its files are walked and read from here, for rules from above hold in it.
    FromHere,
}

impl Routes {
    pub(super) async fn glob_everywhere(
        &self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> Result<GlobResult, SearchError> {
        let glob = Arc::new(PathGlob::new(&query.pattern)?);
        let (root, parts) = match self
            .plan(&query.root, &bounds, glob.dots(), Some(&glob))
            .await
        {
            Ok(planned) => planned?,
            Err(Ended::Late) => {
                return Ok(GlobResult {
                    timed_out: true,
                    ..GlobResult::default()
                });
            }
            Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
        };
        let searches = parts.iter().map(async |part| {
            let bounds = self.bounds_of(part, &bounds, Some(&glob), &root);
            match part.way {
                Way::FromHere => find::glob_below(self, &glob, &root, &part.start, &bounds).await,
                Way::Own => {
                    let pattern = if part.start == root {
                        query.pattern.clone()
                    } else {
                        every(glob.dots())
                    };
                    let query = GlobQuery {
                        pattern,
                        root: part.own_start()?,
                    };
                    let found = part.vfs.search().glob(query, bounds).await;
                    let mut found =
                        found.map_err(|e| relocate::search_error(e, |own| whole(&part.at, own)))?;
                    found
                        .paths
                        .iter_mut()
                        .for_each(|path| *path = whole(&part.at, path));
                    Ok(found)
                }
            }
        });
        let mut merged = GlobResult::default();
        let results = join_all(searches).await;
        for found in self.sorted_out(&root, &parts, results, &mut merged.failed)? {
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
    ) -> Result<GrepResult, SearchError> {
        let glob = query
            .glob
            .as_deref()
            .map(PathGlob::new)
            .transpose()?
            .map(Arc::new);
        let dots = glob.as_ref().map_or(Dots::Hidden, |glob| glob.dots());
        let (root, parts) = match self.plan(&query.root, &bounds, dots, glob.as_deref()).await {
            Ok(planned) => planned?,
            Err(Ended::Late) => {
                return Ok(GrepResult {
                    timed_out: true,
                    ..GrepResult::default()
                });
            }
            Err(Ended::Cancelled) => return Err(SearchError::Cancelled),
        };
        let searches = parts.iter().map(async |part| {
            let is_root = part.start == root;
            let bounds = self.bounds_of(part, &bounds, glob.as_ref(), &root);
            match part.way {
                Way::FromHere if is_root => {
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
                Way::FromHere => {
                    find::grep_below(self, &query, glob.as_deref(), &root, &part.start, &bounds)
                        .await
                }
                Way::Own => {
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
                    let mut found =
                        found.map_err(|e| relocate::search_error(e, |own| whole(&part.at, own)))?;
                    found
                        .files
                        .iter_mut()
                        .for_each(|file| file.path = whole(&part.at, &file.path));
                    Ok(found)
                }
            }
        });
        let mut merged = GrepResult::default();
        let results = join_all(searches).await;
        let mut files: Vec<FileMatches> = Vec::new();
        for found in self.sorted_out(&root, &parts, results, &mut merged.failed)? {
            files.extend(found.files);
            merged.truncated |= found.truncated;
            merged.timed_out |= found.timed_out;
            merged.unreadable += found.unreadable;
            merged.failed.extend(found.failed);
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let weighed = files.into_iter().map(|file| {
            let weight = grep::weight(query.mode, file.count);
            (file, weight)
        });
        let (files, cut) = grep::cut(weighed, bounds.limit);
        merged.files = files;
        merged.truncated |= cut;
        Ok(merged)
    }

    /// Where a search begins, links followed, and the places it concerns, first the one that holds
    /// the root.
    async fn plan(
        &self,
        root: &VPath,
        bounds: &Bounds,
        dots: Dots,
        glob: Option<&PathGlob>,
    ) -> Result<Result<(VPath, Vec<Part<'_>>), VfsError>, Ended> {
        let planned = async {
            let root = self.resolve(root).await?;
            let owner = self.route(&root)?;
            let way = match self.rules_above(&owner.at).await {
                Some(_) => Way::FromHere,
                None => Way::Own,
            };
            let mut parts = vec![Part {
                vfs: owner.vfs,
                at: owner.at,
                start: root.clone(),
                way,
            }];
            for (at, vfs) in &self.mounts {
                if *at == root || !root.contains(at) {
                    continue;
                }
                if let Some(way) = self.way_to(&root, at, dots, glob).await {
                    parts.push(Part {
                        vfs,
                        at: at.clone(),
                        start: at.clone(),
                        way,
                    });
                }
            }
            Ok((root, parts))
        };
        Stop::new(bounds).within(planned).await
    }

    /// How to search what is mounted at `at`; none if a search from `root` does not come that far.
    async fn way_to(
        &self,
        root: &VPath,
        at: &VPath,
        dots: Dots,
        glob: Option<&PathGlob>,
    ) -> Option<Way> {
        let from = relative_start(root.as_str());
        let mut on_the_way: Vec<VPath> = std::iter::successors(Some(at.clone()), VPath::parent)
            .take_while(|path| path != root && root.contains(path))
            .collect();
        on_the_way.reverse();
        let mut way = Way::Own;
        for path in &on_the_way {
            let is_dotted = path.name().starts_with('.') && dots == Dots::Hidden;
            if path.name() == ".git"
                || is_dotted
                || glob.is_some_and(|glob| !glob.may_enter(&path.as_str()[from..]))
            {
                return None;
            }
            if let Some(rules) = self.rules_above(path).await {
                if rules.leave_out(path.as_str(), IsDir::Yes) {
                    return None;
                }
                way = Way::FromHere;
            }
        }
        Some(way)
    }

    /// What the ignore files above a path say. Where they cannot be read, they say nothing, for
    /// that they cannot is reported by the search of the place they are in.
    async fn rules_above(&self, path: &VPath) -> Option<Arc<Ignores>> {
        find::levels_above(self, path).await.ok().flatten()
    }

    /// What a place is told of the limits, and of the files that count.
    fn bounds_of(
        &self,
        part: &Part<'_>,
        bounds: &Bounds,
        glob: Option<&Arc<PathGlob>>,
        root: &VPath,
    ) -> Bounds {
        let at = part.at.clone();
        let way = part.way;
        let outer = bounds.visible.clone();
        let inner: Vec<VPath> = self
            .mounts_below(&part.at)
            .map(|(at, _)| at.clone())
            .collect();
        let from = relative_start(root.as_str());
        // The place that holds the root is given the pattern itself.
        let glob = glob.filter(|_| part.start != *root).cloned();
        let counts = move |path: &str| {
            let Ok(path) = VPath::parse(path) else {
                return false;
            };
            let full = match way {
                Way::Own => whole(&at, &path),
                Way::FromHere => path,
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

    /// The results there are. A place that failed is named in `failed`, unless nothing can be said
    /// without it.
    fn sorted_out<T>(
        &self,
        root: &VPath,
        parts: &[Part<'_>],
        results: Vec<Result<T, SearchError>>,
        failed: &mut Vec<String>,
    ) -> Result<Vec<T>, SearchError> {
        let mut found = Vec::new();
        for (part, result) in parts.iter().zip(results) {
            match result {
                Ok(result) => found.push(result),
                Err(SearchError::Vfs(VfsError::NotFound(_) | VfsError::NotDirectory(_)))
                    if part.start == *root && self.is_fixed(root) => {}
                Err(SearchError::Vfs(error)) if parts.len() > 1 => {
                    failed.push(format!("{}: {error}", part.at))
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

impl Part<'_> {
    fn own_start(&self) -> Result<VPath, SearchError> {
        let rest = self
            .start
            .as_str()
            .strip_prefix(self.at.as_str())
            .unwrap_or_default();
        VPath::parse(rest).map_err(|e| SearchError::Vfs(e.into()))
    }
}

fn every(dots: Dots) -> String {
    match dots {
        Dots::Hidden => EVERY.to_owned(),
        Dots::Shown => EVERY_WITH_DOTS.to_owned(),
    }
}
