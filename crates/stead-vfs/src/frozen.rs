//! A place whose writing can be switched off.

use crate::lines::{LineRange, LineWindow};
use crate::{DirEntry, Expect, ReadRange, Search, Stat, VPath, Version, Vfs, VfsError, Walk};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::{Arc, PoisonError, RwLock};

/// Switches the writing of a [`Frozen`] off and on. Clones are the same switch.
#[derive(Debug, Clone, Default)]
pub struct Freeze(Arc<RwLock<Option<VPath>>>);

impl Freeze {
    /// From here on nothing but the file `but` may be written; with none, everything may.
    pub fn set(&self, but: Option<VPath>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = but;
    }

    /// The one file that may be written; none if all may.
    pub fn writable_file(&self) -> Option<VPath> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Shows `inner` as it is. While it is frozen every change is refused, whoever asks, but to write
/// one file; and that one only where its name leads to no other file.
#[derive(Debug, Clone)]
pub struct Frozen {
    inner: Arc<dyn Vfs>,
    freeze: Freeze,
}

impl Frozen {
    /// Over `inner`, as `freeze` says at each change.
    pub fn new(inner: Arc<dyn Vfs>, freeze: Freeze) -> Self {
        Self { inner, freeze }
    }

    /// Refuses to change anything at `path` while it is frozen.
    fn require_unfrozen(&self, path: &VPath) -> Result<(), VfsError> {
        match self.freeze.writable_file() {
            Some(_) => Err(VfsError::ReadOnly(path.clone())),
            None => Ok(()),
        }
    }

    /// Refuses to write `path` while it is frozen, unless it is the one file.
    async fn require_writable(&self, path: &VPath) -> Result<(), VfsError> {
        match self.freeze.writable_file() {
            Some(but) if but == *path => {
                let end = self.inner.resolve(path).await?;
                // A place may keep it in a folder of its own; a link would take it to another file.
                let same = end == *path || end.as_str().ends_with(&format!("/{path}"));
                if same {
                    Ok(())
                } else {
                    Err(VfsError::ReadOnly(path.clone()))
                }
            }
            Some(_) => Err(VfsError::ReadOnly(path.clone())),
            None => Ok(()),
        }
    }
}

impl Vfs for Frozen {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        self.inner.stat(path)
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        self.inner.list(path)
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
        Box::pin(async move {
            self.require_writable(path).await?;
            self.inner.write(path, data, expect).await
        })
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            self.require_writable(path).await?;
            self.inner.write_stream(path, source).await
        })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require_unfrozen(path)?;
            self.inner.remove(path).await
        })
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require_unfrozen(from)?;
            self.inner.rename(from, to).await
        })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require_unfrozen(path)?;
            self.inner.mkdir(path).await
        })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.require_unfrozen(path)?;
            self.inner.set_mode(path, mode).await
        })
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        self.inner.walk(path, after, limit)
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        self.inner.resolve(path)
    }

    fn search(&self) -> &dyn Search {
        self.inner.search()
    }
}
