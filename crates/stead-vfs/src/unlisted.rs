//! Leaving paths out of listings and searches.
//!
//! Effects: workspace files (writes).

use crate::lines::{LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search, UnsearchedPart,
    Visible,
};
use crate::{DirEntry, Expect, ReadRange, Stat, VPath, Version, Vfs, VfsError, Walk};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;

/// The minimum number of entries walked at once.
const WALK_PAGE: usize = 1000;
/// The characters from which on a segment of a glob is no plain name.
const GLOB_CHARS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A file system over `inner` whose listings and searches leave out some paths and everything below
/// them, unless the listing or the search begins in or at one of them.
///
/// This keeps clutter out and protects nothing: every path can be read and changed as before.
#[derive(Debug, Clone)]
pub struct Unlisted {
    inner: Arc<dyn Vfs>,
    paths: Arc<[VPath]>,
}

impl Unlisted {
    /// Returns a file system over `inner` that does not list `paths`.
    pub fn new(inner: Arc<dyn Vfs>, paths: impl IntoIterator<Item = VPath>) -> Self {
        Self {
            inner,
            paths: paths.into_iter().collect(),
        }
    }

    /// Returns the paths to leave out below `root`: none if it lies in or at one of them.
    fn left_out_below(&self, root: &VPath) -> Vec<VPath> {
        if self.paths.iter().any(|path| path.contains(root)) {
            return Vec::new();
        }
        let below = self.paths.iter().filter(|path| root.contains(path));
        below.cloned().collect()
    }

    /// Returns the paths that a search leaves out. Those that the glob names in plain are searched.
    async fn left_out_of_search(&self, root: &VPath, glob: Option<&str>) -> Vec<VPath> {
        // Results have real paths, also where the root is a link.
        let root = self.inner.resolve(root).await.unwrap_or(root.clone());
        let left_out = self.left_out_below(&root);
        let Some(named) = glob.and_then(|glob| plain_start(&root, glob)) else {
            return left_out;
        };
        let is_named = |path: &VPath| path.contains(&named);
        left_out
            .into_iter()
            .filter(|path| !is_named(path))
            .collect()
    }

    async fn shown_walk(
        &self,
        path: &VPath,
        after: Option<&VPath>,
        limit: usize,
    ) -> Result<Walk, VfsError> {
        let left_out = self.left_out_below(path);
        if left_out.is_empty() {
            return self.inner.walk(path, after, limit).await;
        }
        let mut after = after.cloned();
        let mut entries = Vec::new();
        // What is left out must not use up the limit, so more pages are read until there are enough.
        loop {
            let wanted = limit
                .saturating_add(1)
                .saturating_sub(entries.len())
                .max(WALK_PAGE);
            let walk = self.inner.walk(path, after.as_ref(), wanted).await?;
            after = walk
                .entries
                .last()
                .map(|(child, _)| child.clone())
                .or(after);
            let is_shown = |child: &VPath| !left_out.iter().any(|path| path.contains(child));
            entries.extend(
                walk.entries
                    .into_iter()
                    .filter(|(child, _)| is_shown(child)),
            );
            if entries.len() > limit || !walk.truncated {
                let truncated = entries.len() > limit;
                entries.truncate(limit);
                return Ok(Walk { entries, truncated });
            }
        }
    }
}

/// Returns the path that the plain names at the start of a glob lead to, if it begins with
/// directories that are plain names.
fn plain_start(root: &VPath, glob: &str) -> Option<VPath> {
    let names = glob
        .split('/')
        .take_while(|name| !name.contains(GLOB_CHARS))
        .collect::<Vec<_>>();
    // A pattern without `/` matches names at any depth.
    if !glob.contains('/') || names.is_empty() {
        return None;
    }
    root.join(&names.join("/")).ok()
}

/// Returns `bounds` in which nothing below `left_out` is visible.
fn without(bounds: Bounds, left_out: &[VPath]) -> Bounds {
    if left_out.is_empty() {
        return bounds;
    }
    let starts: Vec<String> = left_out.iter().map(|path| format!("{path}/")).collect();
    let names: Vec<VPath> = left_out.to_vec();
    let before = bounds.visible.clone();
    let is_visible = move |path: &str| {
        !starts.iter().any(|start| path.starts_with(start))
            && !names.iter().any(|name| name.as_str() == path)
            && before.allows(path)
    };
    Bounds {
        visible: Visible::If(Arc::new(is_visible)),
        ..bounds
    }
}

/// Returns the parts that do not lie below `left_out`.
fn shown_parts(failed: Vec<UnsearchedPart>, left_out: &[VPath]) -> Vec<UnsearchedPart> {
    let is_shown = |part: &UnsearchedPart| !left_out.iter().any(|path| path.contains(&part.path));
    failed.into_iter().filter(is_shown).collect()
}

impl Search for Unlisted {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        Box::pin(async move {
            let left_out = self
                .left_out_of_search(&query.root, Some(&query.pattern))
                .await;
            let bounds = without(bounds, &left_out);
            let found = self.inner.search().glob(query, bounds).await?;
            Ok(GlobResult {
                failed: shown_parts(found.failed, &left_out),
                ..found
            })
        })
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        Box::pin(async move {
            let left_out = self
                .left_out_of_search(&query.root, query.glob.as_deref())
                .await;
            let bounds = without(bounds, &left_out);
            let found = self.inner.search().grep(query, bounds).await?;
            Ok(GrepResult {
                failed: shown_parts(found.failed, &left_out),
                ..found
            })
        })
    }
}

impl Vfs for Unlisted {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        self.inner.stat(path)
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(async move {
            let entries = self.inner.list(path).await?;
            let is_shown = |entry: &DirEntry| {
                path.join(&entry.name)
                    .map_or(true, |child| !self.paths.contains(&child))
            };
            Ok(entries.into_iter().filter(is_shown).collect())
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        self.inner.read(path, range)
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        self.inner.read_lines(path, range)
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        self.inner.write(path, data, expect)
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        self.inner.write_stream(path, source)
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.inner.remove(path)
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.inner.rename(from, to)
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.inner.mkdir(path)
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        self.inner.set_mode(path, mode)
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(self.shown_walk(path, after, limit))
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        self.inner.resolve(path)
    }

    fn search(&self) -> &dyn Search {
        self
    }
}
