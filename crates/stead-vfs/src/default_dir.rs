//! A file system over another one with a default folder for paths that have no other location.
//!
//! Effects: workspace files (writes).

use crate::lines::{LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{DirEntry, Expect, ReadRange, Stat, VPath, Version, Vfs, VfsError, Walk, rebase};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;

/// A file system over `inner` in which a path that begins with no known name is a path in a default
/// folder: with `workspace` as this folder, `notes/today.md` is `workspace/notes/today.md`.
///
/// A name is known if it is one of those given, or if the root has an entry of that name. Listing
/// the root shows its real entries. A file written by its short path can be read by its short or
/// its real path. [`Vfs::resolve`] returns the real path, and rules apply to both. A search returns
/// real paths.
#[derive(Debug, Clone)]
pub struct DefaultDirVfs {
    inner: Arc<dyn Vfs>,
    dir: VPath,
    known_names: Vec<Box<str>>,
}

/// The real path of a path in a [`DefaultDirVfs`].
#[derive(Debug, Clone, PartialEq, Eq)]
enum RealPath {
    /// The path itself.
    Unchanged(VPath),
    /// A path in the default folder.
    InDefaultDir(VPath),
}

impl RealPath {
    fn path(&self) -> &VPath {
        match self {
            Self::Unchanged(path) | Self::InDefaultDir(path) => path,
        }
    }
}

impl DefaultDirVfs {
    /// Returns a file system over `inner` with the folder `dir` for paths that do not begin with
    /// one of `known_tops`. The first name of `dir` is known too.
    pub fn new<'a>(
        inner: Arc<dyn Vfs>,
        dir: VPath,
        known_tops: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let own = dir.parts().next().map(str::to_owned);
        let known = known_tops
            .into_iter()
            .map(str::to_owned)
            .chain(own)
            .map(String::into_boxed_str)
            .collect();
        Self {
            inner,
            dir,
            known_names: known,
        }
    }

    /// Returns the real path of `path`.
    async fn real_path(&self, path: &VPath) -> Result<RealPath, VfsError> {
        let Some(first) = path.parts().next() else {
            return Ok(RealPath::Unchanged(path.clone()));
        };
        if self.known_names.iter().any(|known| **known == *first) || self.is_at_root(first).await? {
            return Ok(RealPath::Unchanged(path.clone()));
        }
        Ok(RealPath::InDefaultDir(self.dir.join(path.as_str())?))
    }

    /// Returns whether the root has an entry of this name, even a dangling link.
    async fn is_at_root(&self, name: &str) -> Result<bool, VfsError> {
        let name = VPath::parse(name)?;
        match self.inner.stat(&name).await {
            Err(VfsError::NotFound(_)) => {
                Ok(self.inner.resolve(&name).await.is_ok_and(|end| end != name))
            }
            Err(error @ (VfsError::Unavailable { .. } | VfsError::Io { .. })) => Err(error),
            // An entry that cannot be read exists.
            Ok(_) | Err(_) => Ok(true),
        }
    }

    /// Returns a path of the inner file system in the form that was requested.
    fn as_requested(&self, lies: &RealPath, path: &VPath) -> VPath {
        let within_dir = |path: &VPath| {
            let rest = path
                .as_str()
                .strip_prefix(self.dir.as_str())?
                .strip_prefix('/')?;
            VPath::parse(rest).ok()
        };
        match lies {
            RealPath::Unchanged(_) => path.clone(),
            RealPath::InDefaultDir(_) => within_dir(path).unwrap_or_else(|| path.clone()),
        }
    }

    /// Calls the inner file system with the real path of `path`.
    async fn at_real_path<T>(
        &self,
        path: &VPath,
        call: impl for<'p> FnOnce(&'p dyn Vfs, &'p VPath) -> BoxFuture<'p, Result<T, VfsError>>,
    ) -> Result<T, VfsError> {
        let lies = self.real_path(path).await?;
        call(&*self.inner, lies.path())
            .await
            .map_err(|error| self.map_error(&lies, error))
    }

    fn map_error(&self, lies: &RealPath, error: VfsError) -> VfsError {
        rebase::error(error, |path| self.as_requested(lies, path))
    }

    /// Returns the error of a rename with the path in the form that was requested.
    fn map_rename_error(&self, from: &RealPath, to: &RealPath, error: VfsError) -> VfsError {
        rebase::error(error, |path| {
            let is_of = |lies: &RealPath| lies.path().contains(path) || path.contains(lies.path());
            if is_of(from) {
                self.as_requested(from, path)
            } else {
                self.as_requested(to, path)
            }
        })
    }
}

impl Vfs for DefaultDirVfs {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.stat(real)))
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.list(real)))
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.read(real, range)))
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.read_lines(real, range)))
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.write(real, data, expect)))
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            let lies = self.real_path(path).await?;
            self.inner
                .write_stream(lies.path(), source)
                .await
                .map_err(|error| self.map_error(&lies, error))
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.remove(real)))
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            let from = self.real_path(from).await?;
            let to = self.real_path(to).await?;
            let moved = self.inner.rename(from.path(), to.path()).await;
            moved.map_err(|error| self.map_rename_error(&from, &to, error))
        })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.mkdir(real)))
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.set_mode(real, mode)))
    }

    fn set_directory_mode<'a>(
        &'a self,
        path: &'a VPath,
        mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| {
            inner.set_directory_mode(real, mode)
        }))
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(async move {
            let lies = self.real_path(path).await?;
            // The start of the page is in the same folder as the walk, whatever its own first name
            // is.
            let after = match (&lies, after) {
                (RealPath::InDefaultDir(_), Some(after)) => Some(self.dir.join(after.as_str())?),
                (RealPath::Unchanged(_) | RealPath::InDefaultDir(_), after) => after.cloned(),
            };
            let walk = self.inner.walk(lies.path(), after.as_ref(), limit).await;
            let Walk { entries, truncated } = walk.map_err(|error| self.map_error(&lies, error))?;
            let entries = entries
                .into_iter()
                .map(|(path, entry)| (self.as_requested(&lies, &path), entry))
                .collect();
            Ok(Walk { entries, truncated })
        })
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(self.at_real_path(path, move |inner, real| inner.resolve(real)))
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for DefaultDirVfs {
    fn glob<'a>(
        &'a self,
        query: GlobQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GlobResult, FileSearchError>> {
        Box::pin(async move {
            let lies = self.real_path(&query.root).await?;
            let query = GlobQuery {
                root: lies.path().clone(),
                ..query
            };
            let found = self.inner.search().glob(query, bounds).await;
            found
                .map_err(|error| rebase::search_error(error, |path| self.as_requested(&lies, path)))
        })
    }

    fn grep<'a>(
        &'a self,
        query: GrepQuery,
        bounds: Bounds,
    ) -> BoxFuture<'a, Result<GrepResult, FileSearchError>> {
        Box::pin(async move {
            let lies = self.real_path(&query.root).await?;
            let query = GrepQuery {
                root: lies.path().clone(),
                ..query
            };
            let found = self.inner.search().grep(query, bounds).await;
            found
                .map_err(|error| rebase::search_error(error, |path| self.as_requested(&lies, path)))
        })
    }
}
