//! The store backend: a file system in the documents of a store.
//!
//! A node is one document; its key holds its depth and its path, so a directory's entries are one
//! range of keys. Directories are documents too, except the root, and every entry has an existing
//! directory. That holds because every change is one commit with expectations:
//!
//! - Adding an entry checks the directory's own document, and replaces its *stamp*, a document of
//!   which no version is expected. So concurrent additions do not conflict.
//! - Moving or removing a directory reads its stamp first and its entries then, and expects that
//!   stamp: an entry that was added in between is never lost.
//!
//! A large content is stored in chunks under a name of its own, before the node that refers to it.
//! While no node refers to it, a *marker* exists; contents that a crash leaves are found by their
//! marker ([`StoreVfs::sweep`]).
//!
//! Effects: the clock, randomness, workspace files (reads), the store (writes).

mod chunks;
mod error;
mod node;
mod parents;
mod read;
mod retry;
mod stream;
mod sweep;
mod tree;
mod write;

use crate::lines::{self, LineRange, LineWindow};
use crate::search::{
    Bounds, FileSearchError, GlobQuery, GlobResult, GrepQuery, GrepResult, Search,
};
use crate::{DirEntry, Expect, ReadRange, Stat, VPath, Version, Vfs, VfsError, Walk, find};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use parents::DirectoryVersions;
use std::sync::Arc;
use stead_store::{DocumentChange, Documents, FencingToken, MemoryStore, Space, StoreError};

/// A file system in one space of a store.
///
/// Versions are those of the documents, so they stay when a file is moved. Paths have at most 1,024
/// bytes. Mode bits and hashes are kept. There are no links. A read of several chunks starts again
/// if the file is replaced meanwhile; a listing or walk is not a snapshot.
///
/// Clones share cached knowledge of the tree, and differ at most in their [`FencingToken`].
#[derive(Debug, Clone)]
pub struct StoreVfs {
    documents: Arc<dyn Documents>,
    space: Space,
    fence: Option<FencingToken>,
    directory_versions: Arc<DirectoryVersions>,
}

impl StoreVfs {
    /// Returns the tree in `space`, which is empty if it was never written.
    pub fn new(documents: Arc<dyn Documents>, space: Space) -> Self {
        Self {
            documents,
            space,
            fence: None,
            directory_versions: Arc::default(),
        }
    }

    /// Returns an empty tree in memory.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::new()), Space::new(["files"]))
    }

    /// Returns the same tree with a fence: changes through this clone fail with
    /// [`VfsError::Fenced`] once `fence`, a lease of the same space, was lost.
    pub fn fenced(&self, fence: FencingToken) -> Self {
        Self {
            fence: Some(fence),
            ..self.clone()
        }
    }

    /// Commits `changes`. Returns whether they were applied or conflicted.
    async fn commit(
        &self,
        path: &VPath,
        changes: Vec<DocumentChange>,
    ) -> Result<Committed, VfsError> {
        match self
            .documents
            .commit(&self.space, changes, self.fence.as_ref())
            .await
        {
            Ok(()) => Ok(Committed::Applied),
            Err(StoreError::Conflict(_)) => {
                self.directory_versions.forget_above(path);
                Ok(Committed::Conflict)
            }
            Err(error) => Err(error::at(path, error)),
        }
    }
}

/// The result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Committed {
    Applied,
    Conflict,
}

impl Vfs for StoreVfs {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(self.stat_node(path))
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(self.list_directory(path))
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(self.read_range(path, range))
    }

    fn read_lines<'a>(
        &'a self,
        path: &'a VPath,
        range: LineRange,
    ) -> BoxFuture<'a, Result<LineWindow, VfsError>> {
        Box::pin(lines::read_lines_by_range(self, path, range))
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.write_file(path, data, expect))
    }

    fn write_stream<'a>(
        &'a self,
        path: &'a VPath,
        source: BoxStream<'a, Bytes>,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(self.write_from_stream(path, source))
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.remove_tree(path))
    }

    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.move_tree(from, to))
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.make_directory(path))
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(self.change_mode(path, mode))
    }

    fn walk<'a>(
        &'a self,
        path: &'a VPath,
        after: Option<&'a VPath>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Walk, VfsError>> {
        Box::pin(self.walk_levels(path, after, limit))
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        Box::pin(async move { node::check_length(path).map(|()| path.clone()) })
    }

    fn search(&self) -> &dyn Search {
        self
    }
}

impl Search for StoreVfs {
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
