//! The overlay: a writable file system over a read-only one.
//!
//! Effects: the clock, randomness, workspace files (writes).

mod masks;
mod read;
mod write;

use crate::lines::{LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{DirEntry, Expect, ReadRange, Stat, VPath, Version, Vfs, VfsError, find};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use masks::MaskFile;
use std::sync::Arc;

/// A writable file system `upper` over `lower`. A path in both layers is upper's; directories show
/// the entries of both. Only upper is written.
///
/// - Removing a path of lower adds it to the list of masks, the file `.stead-overlay.json` in
///   upper.
///   A mask hides lower at and below its path for good; whatever is created there later belongs to
///   upper alone. That file, and all names at the root that begin with `.stead-overlay.`, cannot be
///   listed or opened through the overlay.
/// - A file of upper, even an empty one, hides a file or directory of lower. A path that lower
///   denies does not matter once upper has something there.
/// - A version names the layer it belongs to. A write that expects a version of lower creates a
///   file in upper, and fails with [`VfsError::Changed`] if another writer did so first.
/// - Moving a directory with content of lower copies it, then masks it. It appears at its new path
///   at once, but a crash in between leaves it at both paths.
///
/// Upper should not be an overlay itself, because one hides the masks of the other; lower may be
/// one.
#[derive(Debug, Clone)]
pub struct Overlay {
    upper: Arc<dyn Vfs>,
    lower: Arc<dyn Vfs>,
    masks: Arc<MaskFile>,
}

impl Overlay {
    /// Returns the writable `upper` over `lower`, which is never changed.
    pub fn new(upper: Arc<dyn Vfs>, lower: Arc<dyn Vfs>) -> Self {
        Self {
            masks: Arc::new(MaskFile::new(Arc::clone(&upper))),
            upper,
            lower,
        }
    }
}

/// The layer that something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverlayLayer {
    Upper,
    Lower,
}

impl OverlayLayer {
    const fn tag(self) -> &'static str {
        match self {
            Self::Upper => "u:",
            Self::Lower => "l:",
        }
    }

    /// Converts a version of this layer to one of the overlay.
    fn tagged(self, version: &Version) -> Version {
        Version(format!("{}{version}", self.tag()).into())
    }

    /// Converts a version of the overlay to one of this layer.
    fn untagged(self, version: &Version) -> Option<Version> {
        version
            .0
            .strip_prefix(self.tag())
            .map(|own| Version(own.into()))
    }
}

impl Vfs for Overlay {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(async move { self.find(path).await.map(|(_, stat)| stat) })
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(self.list_both(path))
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(self.read_either(path, range))
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(self.read_lines_either(path, range))
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.write_upper(path, data, expect))
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.stream_upper(path, source))
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.remove_both(path))
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.rename_both(from, to))
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.mkdir_upper(path))
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.set_mode_upper(path, mode))
    }

    fn set_directory_mode<'a>(
        &'a self,
        path: &'a VPath,
        mode: u32,
    ) -> BoxFuture<'a, Result<(), VfsError>> {
        self.upper.set_directory_mode(path, mode)
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(async move {
            let in_upper = self.upper.resolve(path).await?;
            if in_upper != *path {
                return Ok(in_upper);
            }
            self.resolve_lower(path).await
        })
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for Overlay {
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

#[cfg(test)]
mod tests;
