//! The directories above a path: the checks and creations that a commit needs for them, and a cache
//! of their versions. See `store/mod.rs` for the protocol.
//!
//! Effects: the clock, randomness, the store (reads).

use super::StoreVfs;
use super::node::{self, FileNode, NodeMeta};
use crate::{VPath, VfsError};
use bytes::Bytes;
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use stead_store::{DocVersion, Document, DocumentChange, Expected};

/// The number of cached directories. Beyond it the cache is cleared: a version costs one lookup to
/// learn again.
const MAX_KNOWN: usize = 4096;

/// The versions of directories when they were last seen, or about to be created. They are only used
/// in expectations, so an outdated one costs a retry and nothing else.
#[derive(Debug, Default)]
pub(super) struct DirectoryVersions(Mutex<HashMap<VPath, DocVersion>>);

impl DirectoryVersions {
    fn get(&self, path: &VPath) -> Option<DocVersion> {
        self.lock().get(path).copied()
    }

    pub(super) fn put(&self, path: &VPath, version: DocVersion) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(path.clone(), version);
    }

    /// Forgets `path` and every directory above it.
    pub(super) fn forget_above(&self, path: &VPath) {
        let mut known = self.lock();
        let mut next = Some(path.clone());
        while let Some(path) = next {
            known.remove(&path);
            next = path.parent();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<VPath, DocVersion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreVfs {
    /// Adds the changes that ensure a parent directory for the new `path`: the nearest existing one
    /// must stay, and those below it are created.
    pub(super) async fn ensure_parents(
        &self,
        path: &VPath,
        changes: &mut Vec<DocumentChange>,
    ) -> Result<(), VfsError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else {
            return Ok(());
        };
        let known = match self.directory_versions.get(&parent) {
            Some(version) => Some(version),
            None => self.directory_version(path, &parent).await?,
        };
        if let Some(version) = known {
            changes.push(check_directory(&parent, version));
            changes.push(replace_stamp(&parent));
            return Ok(());
        }
        changes.push(self.create_directory(&parent)?);
        changes.push(replace_stamp(&parent));
        let above = ancestors(&parent);
        let versions = try_join_all(
            above
                .iter()
                .map(|above| self.directory_version(path, above)),
        )
        .await?;
        // From the bottom up: missing directories are created, and the first existing one must
        // stay.
        for (directory, version) in above.iter().zip(versions) {
            changes.push(replace_stamp(directory));
            match version {
                None => changes.push(self.create_directory(directory)?),
                Some(version) => {
                    changes.push(check_directory(directory, version));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the version of a directory above `path`, or `None` if nothing is there.
    async fn directory_version(
        &self,
        path: &VPath,
        directory: &VPath,
    ) -> Result<Option<DocVersion>, VfsError> {
        match self.find_node(directory).await? {
            Some(node) if node.is_directory() => {
                self.directory_versions.put(directory, node.version);
                Ok(Some(node.version))
            }
            Some(_) => Err(VfsError::NotDirectory(path.clone())),
            None => Ok(None),
        }
    }

    /// Returns the change that creates a directory.
    pub(super) fn create_directory(&self, directory: &VPath) -> Result<DocumentChange, VfsError> {
        let document = NodeMeta::directory().document(directory, Bytes::new())?;
        // If it is not created after all, the conflict removes it from the cache.
        self.directory_versions.put(directory, document.version);
        Ok(DocumentChange::Put {
            key: node::key(directory),
            document,
            expect: Expected::Absent,
        })
    }

    /// Returns the error for a missing `path`: not found, or below a file.
    pub(super) async fn not_found_error(&self, path: &VPath) -> Result<VfsError, VfsError> {
        let above: Vec<Option<FileNode>> =
            try_join_all(ancestors(path).iter().map(|above| self.find_node(above))).await?;
        let through_file = above.iter().flatten().any(|node| !node.is_directory());
        let path = path.clone();
        Ok(if through_file {
            VfsError::NotDirectory(path)
        } else {
            VfsError::NotFound(path)
        })
    }
}

/// Returns the directories above `path`, nearest first, without the root.
fn ancestors(path: &VPath) -> Vec<VPath> {
    std::iter::successors(path.parent(), VPath::parent)
        .filter(|path| !path.is_root())
        .collect()
}

fn check_directory(directory: &VPath, version: DocVersion) -> DocumentChange {
    DocumentChange::Check {
        key: node::key(directory),
        expect: Expected::Version(version),
    }
}

fn replace_stamp(directory: &VPath) -> DocumentChange {
    let document = Document::new(Bytes::new(), Bytes::new());
    DocumentChange::Put {
        key: node::stamp_key(directory),
        document,
        expect: Expected::Any,
    }
}
