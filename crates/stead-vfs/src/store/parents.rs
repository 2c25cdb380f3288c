//! The directories above a path: what a commit expects of them, and what is remembered.

use super::StoreVfs;
use super::node::{self, FileNode, NodeMeta};
use crate::{VPath, VfsError};
use bytes::Bytes;
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use stead_store::{DocVersion, Document, DocumentChange, Expected};

/// Directories remembered. Beyond that all are forgotten: a version costs one look to learn again.
const MAX_KNOWN: usize = 4096;

/// Versions that directories had when they were last seen. They only ever go into expectations, so
/// one that is out of date costs another try and nothing else.
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

    /// Forgets every directory on the way to `path`, and `path`.
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
    /// Adds to `changes` all that makes sure that `path`, where nothing is yet, has a directory to
    /// be in: the nearest one there is must still be there, those below it are made.
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
        // From the bottom up: all that is missing is made, and the first that is not must stay.
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

    /// The version of a directory above `path`; none if nothing is there.
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

    /// Makes a directory where nothing is.
    pub(super) fn create_directory(&self, directory: &VPath) -> Result<DocumentChange, VfsError> {
        let document = NodeMeta::directory().document(directory, Bytes::new())?;
        // If it is not made after all, the conflict lets it be forgotten.
        self.directory_versions.put(directory, document.version);
        Ok(DocumentChange::Put {
            key: node::key(directory),
            document,
            expect: Expected::Absent,
        })
    }

    /// Why nothing is at `path`: nothing was put there, or nothing can be.
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

/// The directories above `path`, the nearest first, the root left out.
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
