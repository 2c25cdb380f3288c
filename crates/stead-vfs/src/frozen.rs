//! A layer that refuses changes: all for good (a read-only project), or all but one file while a
//! switch is on (plan mode).
//!
//! Effects: workspace files (writes).

use crate::forward::forward_reads;
use crate::{Expect, VPath, Version, Vfs, VfsError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::{Arc, PoisonError, RwLock};

/// The switch of a [`Frozen`] file system. Clones share one switch, which starts unfrozen.
#[derive(Debug, Clone, Default)]
pub struct Freeze(Arc<RwLock<WritablePaths>>);

/// The paths that may be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum WritablePaths {
    /// Every path.
    #[default]
    All,
    /// The content of one file, and nothing else.
    OneFile(VPath),
    /// No path.
    None,
}

impl Freeze {
    /// Freezes everything except the content of the file `writable`; `None` unfreezes.
    pub fn set(&self, writable: Option<VPath>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) =
            writable.map_or(WritablePaths::All, WritablePaths::OneFile);
    }

    fn writable(&self) -> WritablePaths {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A file system over `inner` that can be frozen. Reads always pass. While it is frozen, every
/// change fails with [`VfsError::ReadOnly`], except writing the one file that the switch names, and
/// that only if its path is not a link to another file.
#[derive(Debug, Clone)]
pub struct Frozen {
    inner: Arc<dyn Vfs>,
    freeze: Freeze,
}

impl Frozen {
    /// Returns a file system over `inner` that consults `freeze` at each change.
    pub fn new(inner: Arc<dyn Vfs>, freeze: Freeze) -> Self {
        Self { inner, freeze }
    }

    /// Returns a file system over `inner` that refuses every change for good.
    pub fn read_only(inner: Arc<dyn Vfs>) -> Self {
        let freeze = Freeze(Arc::new(RwLock::new(WritablePaths::None)));
        Self { inner, freeze }
    }

    /// Fails unless every path may be changed.
    fn require_unfrozen(&self, path: &VPath) -> Result<(), VfsError> {
        match self.freeze.writable() {
            WritablePaths::All => Ok(()),
            WritablePaths::OneFile(_) | WritablePaths::None => {
                Err(VfsError::ReadOnly(path.clone()))
            }
        }
    }

    /// Fails unless the content of `path` may be changed. Only writes may use it.
    async fn require_writable(&self, path: &VPath) -> Result<(), VfsError> {
        match self.freeze.writable() {
            WritablePaths::OneFile(writable) if writable == *path => {
                let resolved = self.inner.resolve(path).await?;
                // The file system may keep the file below a folder of its own, hence the suffix. A
                // link to a file whose path ends with the same names is not recognised.
                if resolved == *path || resolved.as_str().ends_with(&format!("/{path}")) {
                    Ok(())
                } else {
                    Err(VfsError::ReadOnly(path.clone()))
                }
            }
            WritablePaths::All | WritablePaths::OneFile(_) | WritablePaths::None => {
                self.require_unfrozen(path)
            }
        }
    }
}

impl Vfs for Frozen {
    forward_reads!(inner);

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
}
