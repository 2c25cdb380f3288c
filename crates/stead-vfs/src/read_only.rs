//! A place that is only to be read.

use crate::lines::{LineRange, LineWindow};
use crate::{DirEntry, Expect, ReadRange, Search, Stat, VPath, Version, Vfs, VfsError, Walk};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Shows `inner` and refuses every change to it with [`VfsError::ReadOnly`].
#[derive(Debug, Clone)]
pub struct ReadOnly {
    inner: Arc<dyn Vfs>,
}

impl ReadOnly {
    /// Over `inner`.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self { inner }
    }
}

fn refused<'a, T: Send + 'a>(path: &'a VPath) -> BoxFuture<'a, Result<T, VfsError>> {
    Box::pin(async move { Err(VfsError::ReadOnly(path.clone())) })
}

impl Vfs for ReadOnly {
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
        _: Bytes,
        _: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        refused(path)
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        refused(path)
    }

    fn rename<'a>(&'a self, from: &'a VPath, _: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        refused(from)
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        refused(path)
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, _: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        refused(path)
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
