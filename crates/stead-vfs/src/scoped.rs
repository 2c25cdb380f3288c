//! A folder of a file system as a file system.
//!
//! Effects: the clock, workspace files (writes).

use crate::lines::{LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{
    DirEntry, Expect, FileKind, ReadRange, Stat, VPath, Version, Vfs, VfsError, Walk, find, rebase,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;

/// The subtree of `inner` at `prefix`, with that as its root. No path and no error shows the
/// prefix.
///
/// The root exists even if the prefix does not yet: the first write creates it. Links that lead out
/// of the subtree are refused when they are met. On a local disk that others write to, open the
/// directory itself as a [`LocalVfs`](crate::LocalVfs) instead, which also withstands links that
/// are swapped in meanwhile. Ignore files above the prefix do not apply to searches.
#[derive(Debug, Clone)]
pub struct Scoped {
    inner: Arc<dyn Vfs>,
    prefix: VPath,
}

impl Scoped {
    /// Returns the subtree of `inner` below `prefix`.
    pub fn new(inner: Arc<dyn Vfs>, prefix: VPath) -> Self {
        Self { inner, prefix }
    }

    /// Returns a path in `inner` with all links resolved within the scope.
    async fn resolve_within(&self, path: &VPath) -> Result<VPath, VfsError> {
        let full = self.to_inner(path)?;
        let real = self
            .inner
            .resolve(&full)
            .await
            .map_err(|e| self.map_error(e))?;
        if real != full
            && !self
                .inner
                .resolve(&self.prefix)
                .await
                .map_err(|e| self.map_error(e))?
                .contains(&real)
        {
            return Err(VfsError::Escapes(path.clone()));
        }
        Ok(full)
    }

    /// Like [`Self::resolve_within`] for a path that must be a file, so not the root.
    async fn resolve_file(&self, path: &VPath) -> Result<VPath, VfsError> {
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        self.resolve_within(path).await
    }

    /// Calls the inner file system with the path of a file in it.
    async fn at_file<T>(
        &self,
        path: &VPath,
        call: impl for<'p> FnOnce(&'p dyn Vfs, &'p VPath) -> BoxFuture<'p, Result<T, VfsError>>,
    ) -> Result<T, VfsError> {
        let full = self.resolve_file(path).await?;
        call(&*self.inner, &full)
            .await
            .map_err(|e| self.map_error(e))
    }

    /// Like [`Self::resolve_within`] for the name itself, which may be a link to anywhere.
    async fn resolve_entry(&self, path: &VPath) -> Result<VPath, VfsError> {
        let Some(parent) = path.parent() else {
            return Err(VfsError::Denied(path.clone()));
        };
        match self.resolve_within(&parent).await {
            Err(VfsError::Escapes(_)) => Err(VfsError::Escapes(path.clone())),
            Err(other) => Err(other),
            Ok(_) => self.to_inner(path),
        }
    }

    fn to_inner(&self, path: &VPath) -> Result<VPath, VfsError> {
        Ok(self.prefix.join(path.as_str())?)
    }

    /// Converts a path of `inner` to one of the subtree.
    fn to_scoped(&self, full: &VPath) -> VPath {
        let rest = if self.prefix.contains(full) {
            &full.as_str()[self.prefix.as_str().len()..]
        } else {
            ""
        };
        VPath::parse(rest).unwrap_or_else(|_| VPath::root())
    }

    fn map_error(&self, error: VfsError) -> VfsError {
        rebase::error(error, |path| self.to_scoped(path))
    }

    /// Replaces a missing prefix at the root by `empty`, because nothing was written yet.
    fn or_empty<T>(path: &VPath, found: Result<T, VfsError>, empty: T) -> Result<T, VfsError> {
        match found {
            Err(VfsError::NotFound(_)) if path.is_root() => Ok(empty),
            found => found,
        }
    }
}

impl Vfs for Scoped {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(async move {
            let full = self.resolve_within(path).await?;
            let found = self.inner.stat(&full).await.map_err(|e| self.map_error(e));
            let version = Version("root".into());
            let kind = FileKind::Directory;
            let size = 0;
            let modified_ms = 0;
            Self::or_empty(
                path,
                found,
                Stat {
                    kind,
                    size,
                    modified_ms,
                    version,
                    mode: None,
                    hash: None,
                },
            )
        })
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(async move {
            let full = self.resolve_within(path).await?;
            Self::or_empty(
                path,
                self.inner.list(&full).await.map_err(|e| self.map_error(e)),
                Vec::new(),
            )
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(self.at_file(path, move |inner, full| inner.read(full, range)))
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(self.at_file(path, move |inner, full| inner.read_lines(full, range)))
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.at_file(path, move |inner, full| inner.write(full, data, expect)))
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            let full = self.resolve_file(path).await?;
            self.inner
                .write_stream(&full, source)
                .await
                .map_err(|e| self.map_error(e))
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let full = self.resolve_entry(path).await?;
            self.inner
                .remove(&full)
                .await
                .map_err(|e| self.map_error(e))
        })
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let full = self.resolve_entry(from).await?;
            if to.is_root() {
                // Nothing can be moved there; but an error about `from` comes first.
                self.inner
                    .stat(&full)
                    .await
                    .map_err(|e| self.map_error(e))?;
                return Err(VfsError::Denied(to.clone()));
            }
            let target = self.resolve_entry(to).await?;
            self.inner
                .rename(&full, &target)
                .await
                .map_err(|e| self.map_error(e))
        })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let full = self.resolve_within(path).await?;
            self.inner.mkdir(&full).await.map_err(|e| self.map_error(e))
        })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.at_file(path, move |inner, full| inner.set_mode(full, mode)))
    }

    fn set_directory_mode<'a>(
        &'a self,
        path: &'a VPath,
        mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let full = self.resolve_within(path).await?;
            let set = self.inner.set_directory_mode(&full, mode).await;
            set.map_err(|e| self.map_error(e))
        })
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(async move {
            let full = self.resolve_within(path).await?;
            let after = after.map(|after| self.to_inner(after)).transpose()?;
            let walk = self
                .inner
                .walk(&full, after.as_ref(), limit)
                .await
                .map_err(|e| self.map_error(e));
            let Walk { entries, truncated } = Self::or_empty(path, walk, Walk::default())?;
            let entries = entries
                .into_iter()
                .map(|(path, entry)| (self.to_scoped(&path), entry))
                .collect();
            Ok(Walk { entries, truncated })
        })
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(async move {
            let full = self.to_inner(path)?;
            let real = self
                .inner
                .resolve(&full)
                .await
                .map_err(|e| self.map_error(e))?;
            if real == full {
                return Ok(path.clone());
            }
            let base = self
                .inner
                .resolve(&self.prefix)
                .await
                .map_err(|e| self.map_error(e))?;
            match real.as_str().strip_prefix(base.as_str()) {
                Some(rest) if base.contains(&real) => Ok(VPath::parse(rest)?),
                Some(_) | None => Err(VfsError::Escapes(path.clone())),
            }
        })
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for Scoped {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        Box::pin(find::glob(self, query, bounds))
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        Box::pin(find::grep(self, query, bounds))
    }
}
