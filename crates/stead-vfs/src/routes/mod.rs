//! Routes: several file systems in one tree, by path prefix.
//!
//! Effects: the clock, workspace files (writes).

mod fan_out;
mod read;
mod write;

use crate::lines::{LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{DirEntry, Expect, ReadRange, Stat, VPath, Version, Vfs, VfsError, Walk, rebase};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Several file systems in one tree: each mount holds the paths at and below its mount point, the
/// longest mount point decides, and the default holds the rest. All paths in results and errors are
/// those of the whole tree.
///
/// - Mount points and the directories above them always exist and cannot be moved, removed or
///   replaced. What a file system holds at the mount point of another is hidden.
/// - Moving something between two file systems copies it and then removes it, which is not atomic.
/// - A search runs on all file systems at once. A failing one is named in the result and does not
///   affect the others.
#[derive(Debug, Clone)]
pub struct Routes {
    default: Arc<dyn Vfs>,
    mounts: BTreeMap<VPath, Arc<dyn Vfs>>,
}

impl Routes {
    /// Returns `mounts` over `default`. A mount at the root replaces the default.
    pub fn new(default: Arc<dyn Vfs>, mut mounts: BTreeMap<VPath, Arc<dyn Vfs>>) -> Self {
        let default = mounts.remove(&VPath::root()).unwrap_or(default);
        Self { default, mounts }
    }

    /// Returns the file system that holds `path`.
    fn route(&self, path: &VPath) -> Result<Route<'_>, VfsError> {
        let above = std::iter::successors(Some(path.clone()), VPath::parent);
        let found = above
            .into_iter()
            .find_map(|at| self.mounts.get(&at).map(|vfs| (at, vfs)));
        let (at, vfs) = found.unwrap_or((VPath::root(), &self.default));
        let own = VPath::parse(path.as_str().strip_prefix(at.as_str()).unwrap_or_default())?;
        Ok(Route {
            vfs,
            at,
            inner_path: own,
        })
    }

    /// Returns whether `path` is a mount point or above one, and so cannot be removed.
    fn is_fixed(&self, path: &VPath) -> bool {
        self.mounts.keys().any(|at| path.contains(at))
    }

    /// Returns the mount points below `path`, without `path` itself.
    fn mounts_below<'a>(
        &'a self,
        path: &'a VPath,
    ) -> impl Iterator<Item = (&'a VPath, &'a Arc<dyn Vfs>)> {
        self.mounts
            .iter()
            .filter(move |(at, _)| path != *at && path.contains(at))
    }
}

/// A file system of the tree, and a path in it.
struct Route<'a> {
    vfs: &'a Arc<dyn Vfs>,
    /// The mount point in the whole tree.
    at: VPath,
    /// The path in the file system.
    inner_path: VPath,
}

impl Route<'_> {
    /// Converts a path of the file system to one of the whole tree.
    fn to_full(&self, own: &VPath) -> VPath {
        full_path(&self.at, own)
    }

    fn map_error(&self, error: VfsError) -> VfsError {
        rebase::error(error, |own| self.to_full(own))
    }
}

/// Converts the path `own` of the file system mounted at `at` to one of the whole tree.
fn full_path(at: &VPath, own: &VPath) -> VPath {
    // Both are valid paths, so only the length can be too much; then the path in the file system is
    // used.
    at.join(own.as_str()).unwrap_or_else(|_| own.clone())
}

impl Vfs for Routes {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(self.stat_routed(path))
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(self.list_routed(path))
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(async move {
            let route = self.file_route(path)?;
            route
                .vfs
                .read(&route.inner_path, range)
                .await
                .map_err(|e| route.map_error(e))
        })
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(async move {
            let route = self.file_route(path)?;
            route
                .vfs
                .read_lines(&route.inner_path, range)
                .await
                .map_err(|e| route.map_error(e))
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.write_routed(path, data, expect))
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            if self.is_fixed(path) && !path.is_root() {
                return Err(VfsError::IsDirectory(path.clone()));
            }
            let route = self.route(path)?;
            route
                .vfs
                .write_stream(&route.inner_path, source)
                .await
                .map_err(|e| route.map_error(e))
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.remove_routed(path))
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.rename_routed(from, to))
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.mkdir_routed(path))
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let route = self.file_route(path)?;
            route
                .vfs
                .set_mode(&route.inner_path, mode)
                .await
                .map_err(|e| route.map_error(e))
        })
    }

    fn set_directory_mode<'a>(
        &'a self,
        path: &'a VPath,
        mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let route = self.file_route(path)?;
            let set = route.vfs.set_directory_mode(&route.inner_path, mode).await;
            set.map_err(|e| route.map_error(e))
        })
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(self.walk_routed(path, after, limit))
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(async move {
            let route = self.route(path)?;
            let own = route
                .vfs
                .resolve(&route.inner_path)
                .await
                .map_err(|e| route.map_error(e))?;
            Ok(route.to_full(&own))
        })
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for Routes {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        Box::pin(self.glob_everywhere(query, bounds))
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        Box::pin(self.grep_everywhere(query, bounds))
    }
}
