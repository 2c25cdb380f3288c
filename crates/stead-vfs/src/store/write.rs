//! Writing files, creating directories and setting mode bits in the store. See `store/mod.rs` for
//! the protocol.
//!
//! Effects: the clock, randomness, the store (writes).

use super::chunks::{INLINE_BYTES, LeftoverChunks, Uploaded};
use super::error;
use super::node::{self, FileNode, NodeMeta};
use super::retry::RetryBackoff;
use super::{Committed, StoreVfs};
use crate::{ContentHash, Expect, VPath, Version, VfsError};
use bytes::Bytes;
use stead_store::{DocumentChange, Expected};

impl StoreVfs {
    pub(super) async fn write_file(
        &self,
        path: &VPath,
        data: Bytes,
        expect: Expect,
    ) -> Result<Version, VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut uploaded = None;
        let written = self
            .write_with_retries(path, &data, &expect, &mut uploaded)
            .await;
        if let (Err(_), Some(uploaded)) = (&written, &uploaded) {
            // The original failure is reported; what remains is swept later.
            let _ = self.discard_upload(path, uploaded).await;
        }
        written
    }

    async fn write_with_retries(
        &self,
        path: &VPath,
        data: &Bytes,
        expect: &Expect,
        uploaded: &mut Option<Uploaded>,
    ) -> Result<Version, VfsError> {
        let is_large = data.len() > INLINE_BYTES;
        let mut hash = None;
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            let look = if tries.is_first() && !is_large {
                ExistingCheck::OnlyIfNeeded
            } else {
                ExistingCheck::BeforeFirstTry
            };
            let before = self.check_before_write(path, expect, look).await?;
            let hash = match hash {
                Some(hash) => hash,
                None => *hash.insert(ContentHash::of_large(path, data).await?),
            };
            if is_large {
                let kept = match uploaded.as_ref() {
                    Some(uploaded) => self.is_available(path, uploaded).await?,
                    None => false,
                };
                if !kept {
                    *uploaded = self.upload(path, data).await?;
                }
                if uploaded.is_none() {
                    continue;
                }
            }
            let body = if is_large { Bytes::new() } else { data.clone() };
            let content = NewContent {
                size: data.len(),
                hash,
                body,
                uploaded: uploaded.as_ref(),
            };
            if let Some(version) = self.put_file(path, before, content).await? {
                return Ok(version);
            }
        }
        Err(error::contended(path))
    }

    /// Makes an uploaded content the content of `path`.
    pub(super) async fn attach_uploaded(
        &self,
        path: &VPath,
        size: usize,
        hash: ContentHash,
        uploaded: &Uploaded,
    ) -> Result<Version, VfsError> {
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            let before = self
                .check_before_write(path, &Expect::Any, ExistingCheck::BeforeFirstTry)
                .await?;
            let content = NewContent {
                size,
                hash,
                body: Bytes::new(),
                uploaded: Some(uploaded),
            };
            if let Some(version) = self.put_file(path, before, content).await? {
                return Ok(version);
            }
            if !self.is_available(path, uploaded).await? {
                break;
            }
        }
        Err(error::contended(path))
    }

    /// Replaces the state that was found before by the node of a file. Returns `None` if that state
    /// has changed.
    async fn put_file(
        &self,
        path: &VPath,
        (replaced, mut changes): (Option<FileNode>, Vec<DocumentChange>),
        content: NewContent<'_>,
    ) -> Result<Option<Version>, VfsError> {
        let NewContent {
            size,
            hash,
            body,
            uploaded,
        } = content;
        let chunks = uploaded.map(|uploaded| uploaded.chunks.clone());
        let document =
            NodeMeta::file(size, hash, chunks, replaced.as_ref()).document(path, body)?;
        let version = document.version;
        let expect = replaced
            .as_ref()
            .map_or(Expected::Absent, |node| Expected::Version(node.version));
        changes.push(DocumentChange::Put {
            key: node::key(path),
            document,
            expect,
        });
        changes.extend(uploaded.map(Uploaded::remove_marker));
        let left = match replaced.as_ref().and_then(|node| node.meta.chunks.as_ref()) {
            Some(old) => self.release_chunks(path, old, &mut changes)?,
            None => LeftoverChunks::Nothing,
        };
        if self.commit(path, changes).await? == Committed::Conflict {
            return Ok(None);
        }
        if let LeftoverChunks::Chunks(old) = left {
            // The file is written; what remains of the old content has its marker.
            let _ = self.remove_chunks(path, &old).await;
        }
        Ok(Some(node::version(version)))
    }

    /// Returns the node to replace and further changes for the commit, if `expect` allows the
    /// write.
    async fn check_before_write(
        &self,
        path: &VPath,
        expect: &Expect,
        look: ExistingCheck,
    ) -> Result<(Option<FileNode>, Vec<DocumentChange>), VfsError> {
        let found = match (expect, look) {
            // The commit itself finds out.
            (Expect::Absent, ExistingCheck::OnlyIfNeeded) => None,
            (Expect::Absent | Expect::Any | Expect::Version(_), _) => self.find_node(path).await?,
        };
        match (expect, found) {
            (Expect::Absent, Some(_)) => Err(VfsError::Exists(path.clone())),
            (Expect::Version(version), Some(node))
                if node::doc_version(version) != Some(node.version) =>
            {
                Err(VfsError::Changed(path.clone()))
            }
            (Expect::Any | Expect::Version(_), Some(node)) if node.is_directory() => {
                Err(VfsError::IsDirectory(path.clone()))
            }
            (Expect::Any | Expect::Version(_), Some(node)) => Ok((Some(node), Vec::new())),
            (Expect::Version(_), None) => Err(match self.not_found_error(path).await? {
                VfsError::NotFound(path) => VfsError::Changed(path),
                other => other,
            }),
            (Expect::Any | Expect::Absent, None) => {
                let mut changes = Vec::new();
                self.ensure_parents(path, &mut changes).await?;
                Ok((None, changes))
            }
        }
    }

    pub(super) async fn make_directory(&self, path: &VPath) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Ok(());
        }
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            match self.find_node(path).await? {
                Some(node) if node.is_directory() => return Ok(()),
                Some(_) => return Err(VfsError::NotDirectory(path.clone())),
                None => {}
            }
            let mut changes = vec![self.create_directory(path)?];
            self.ensure_parents(path, &mut changes).await?;
            if self.commit(path, changes).await? == Committed::Applied {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }

    pub(super) async fn change_mode(&self, path: &VPath, mode: u32) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            match self.find_node(path).await? {
                None => return Err(self.not_found_error(path).await?),
                Some(node) if node.is_directory() => {
                    return Err(VfsError::IsDirectory(path.clone()));
                }
                Some(node) if node.meta.mode == mode & 0o777 => return Ok(()),
                Some(_) => {}
            }
            let Some((node, document)) = self.load_node(path).await? else {
                continue;
            };
            if node.is_directory() {
                continue;
            }
            let meta = NodeMeta {
                mode: mode & 0o777,
                ..node.meta
            };
            let document = meta.document(path, document.body)?;
            let expect = Expected::Version(node.version);
            let put = DocumentChange::Put {
                key: node::key(path),
                document,
                expect,
            };
            if self.commit(path, vec![put]).await? == Committed::Applied {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }
}

/// The new content of a file: the body of its node, or an upload.
struct NewContent<'a> {
    size: usize,
    hash: ContentHash,
    body: Bytes,
    uploaded: Option<&'a Uploaded>,
}

/// Whether to read the current state before the first attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExistingCheck {
    BeforeFirstTry,
    OnlyIfNeeded,
}
