//! The directories above a path: what a commit expects of them, and what is remembered.

use super::StoreVfs;
use super::node::{self, Meta, Node};
use crate::{VPath, VfsError};
use bytes::Bytes;
use futures_util::future::try_join_all;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use stead_store::{Change, DocVersion, Document, Expected};

/// Directories remembered. Beyond that all are forgotten: a version costs one look to learn again.
const MAX_KNOWN: usize = 4096;

/// Versions that directories had when they were last seen. They only ever go into expectations, so
/// one that is out of date costs another try and nothing else.
#[derive(Debug, Default)]
pub(super) struct Directories(Mutex<HashMap<VPath, DocVersion>>);

impl Directories {
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
    pub(super) async fn anchor(
        &self,
        path: &VPath,
        changes: &mut Vec<Change>,
    ) -> Result<(), VfsError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else {
            return Ok(());
        };
        let known = match self.known.get(&parent) {
            Some(version) => Some(version),
            None => self.directory_version(path, &parent).await?,
        };
        if let Some(version) = known {
            changes.push(checked(&parent, version));
            changes.push(stamped(&parent));
            return Ok(());
        }
        changes.push(self.made(&parent)?);
        changes.push(stamped(&parent));
        let above = ancestors(&parent);
        let versions = try_join_all(
            above
                .iter()
                .map(|above| self.directory_version(path, above)),
        )
        .await?;
        // From the bottom up: all that is missing is made, and the first that is not must stay.
        for (directory, version) in above.iter().zip(versions) {
            changes.push(stamped(directory));
            match version {
                None => changes.push(self.made(directory)?),
                Some(version) => {
                    changes.push(checked(directory, version));
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
        match self.look(directory).await? {
            Some(node) if node.is_directory() => {
                self.known.put(directory, node.version);
                Ok(Some(node.version))
            }
            Some(_) => Err(VfsError::NotDirectory(path.clone())),
            None => Ok(None),
        }
    }

    /// Makes a directory where nothing is.
    pub(super) fn made(&self, directory: &VPath) -> Result<Change, VfsError> {
        let document = Meta::directory().document(directory, Bytes::new())?;
        // If it is not made after all, the conflict lets it be forgotten.
        self.known.put(directory, document.version);
        Ok(Change::Put {
            key: node::key(directory),
            document,
            expect: Expected::Absent,
        })
    }

    /// Why nothing is at `path`: nothing was put there, or nothing can be.
    pub(super) async fn missing(&self, path: &VPath) -> Result<VfsError, VfsError> {
        let above: Vec<Option<Node>> =
            try_join_all(ancestors(path).iter().map(|above| self.look(above))).await?;
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

fn checked(directory: &VPath, version: DocVersion) -> Change {
    Change::Check {
        key: node::key(directory),
        expect: Expected::Version(version),
    }
}

fn stamped(directory: &VPath) -> Change {
    let document = Document::new(Bytes::new(), Bytes::new());
    Change::Put {
        key: node::stamp_key(directory),
        document,
        expect: Expected::Any,
    }
}
