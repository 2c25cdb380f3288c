//! Contents of files that are too large for one document of the store, in chunks. See
//! `store/mod.rs` for the protocol.
//!
//! Effects: the clock, randomness, the store (writes).

use super::error;
use super::node::{self, Chunks};
use super::{Committed, StoreVfs};
use crate::{VPath, VfsError};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use stead_store::{DocVersion, Document, DocumentChange, Expected};

/// Contents up to this size are the body of their node.
pub(super) const INLINE_BYTES: usize = 64 * 1024;
pub(super) const CHUNK_BYTES: usize = 512 * 1024;
/// The number of chunks in one commit, limited by what a store accepts.
const CHUNKS_PER_COMMIT: usize = 8;
/// The number of chunks removed in the commit that releases them; the others are removed
/// afterwards.
const DISCARDED_AT_ONCE: u64 = 1000;

/// The content of a marker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) chunks: Chunks,
    pub(super) since_ms: i64,
}

impl Marker {
    pub(super) fn document(path: &VPath, chunks: &Chunks) -> Result<Document, VfsError> {
        let marker = Self {
            chunks: chunks.clone(),
            since_ms: node::now_ms(),
        };
        let meta = serde_json::to_vec(&marker).map_err(|e| VfsError::Io {
            path: path.clone(),
            source: e.into(),
        })?;
        Ok(Document::new(meta, Bytes::new()))
    }
}

/// A content in the store that no node refers to yet.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) chunks: Chunks,
    pub(super) marker: DocVersion,
}

impl Uploaded {
    /// Returns the change that must be committed together with the node that refers to the content.
    pub(super) fn remove_marker(&self) -> DocumentChange {
        DocumentChange::Delete {
            key: self.chunks.marker(),
            expect: Expected::Version(self.marker),
        }
    }
}

impl StoreVfs {
    /// Uploads a large content. Returns `None` if it took so long that it was swept.
    pub(super) async fn upload(
        &self,
        path: &VPath,
        data: &Bytes,
    ) -> Result<Option<Uploaded>, VfsError> {
        let count = data.len().div_ceil(CHUNK_BYTES) as u64;
        let chunks = Chunks {
            blob: DocVersion::fresh().to_string(),
            bytes: CHUNK_BYTES as u64,
            count,
        };
        let document = Marker::document(path, &chunks)?;
        let uploaded = Uploaded {
            marker: document.version,
            chunks,
        };
        let marker = uploaded.chunks.marker();
        // Every commit changes or checks the marker, so nothing is added to a content that is being
        // swept.
        let mut changes = vec![DocumentChange::Put {
            key: marker.clone(),
            document,
            expect: Expected::Absent,
        }];
        for (number, start) in (0..data.len()).step_by(CHUNK_BYTES).enumerate() {
            let body = data.slice(start..data.len().min(start + CHUNK_BYTES));
            let document = Document::new(Bytes::new(), body);
            changes.push(DocumentChange::Put {
                key: uploaded.chunks.key(number as u64),
                document,
                expect: Expected::Absent,
            });
            if changes.len() <= CHUNKS_PER_COMMIT && start + CHUNK_BYTES < data.len() {
                continue;
            }
            let check = DocumentChange::Check {
                key: marker.clone(),
                expect: Expected::Version(uploaded.marker),
            };
            if self
                .commit(path, std::mem::replace(&mut changes, vec![check]))
                .await?
                == Committed::Conflict
            {
                return Ok(None);
            }
        }
        Ok(Some(uploaded))
    }

    /// Returns whether an uploaded content can still be used: one that took too long may have been
    /// swept.
    pub(super) async fn is_available(
        &self,
        path: &VPath,
        uploaded: &Uploaded,
    ) -> Result<bool, VfsError> {
        let marker = self
            .documents
            .get(&self.space, &uploaded.chunks.marker())
            .await;
        Ok(marker
            .map_err(|e| error::at(path, e))?
            .is_some_and(|marker| marker.version == uploaded.marker))
    }

    /// Removes an uploaded content that was not used. If a commit whose response was lost did use
    /// it, its marker is gone and it stays.
    pub(super) async fn discard_upload(
        &self,
        path: &VPath,
        uploaded: &Uploaded,
    ) -> Result<(), VfsError> {
        let document = Marker::document(path, &uploaded.chunks)?;
        self.remove_if_unreferenced(path, &uploaded.chunks, document, uploaded.marker)
            .await
            .map(drop)
    }

    /// Removes an unreferenced content if its marker still has `version`. Returns whether it did.
    pub(super) async fn remove_if_unreferenced(
        &self,
        path: &VPath,
        chunks: &Chunks,
        document: Document,
        version: DocVersion,
    ) -> Result<Committed, VfsError> {
        // From here on the writer cannot use it any more; and if this process dies, the next sweep
        // finds it.
        let claim = DocumentChange::Put {
            key: chunks.marker(),
            document,
            expect: Expected::Version(version),
        };
        let claimed = self.commit(path, vec![claim]).await?;
        if claimed == Committed::Applied {
            self.remove_chunks(path, chunks).await?;
        }
        Ok(claimed)
    }

    /// Adds the changes that release a content to `changes`. Returns whether chunks remain to be
    /// removed after the commit.
    pub(super) fn release_chunks(
        &self,
        path: &VPath,
        chunks: &Chunks,
        changes: &mut Vec<DocumentChange>,
    ) -> Result<LeftoverChunks, VfsError> {
        if chunks.count <= DISCARDED_AT_ONCE {
            changes.extend((0..chunks.count).map(|n| DocumentChange::Delete {
                key: chunks.key(n),
                expect: Expected::Any,
            }));
            return Ok(LeftoverChunks::Nothing);
        }
        let document = Marker::document(path, chunks)?;
        changes.push(DocumentChange::Put {
            key: chunks.marker(),
            document,
            expect: Expected::Any,
        });
        Ok(LeftoverChunks::Chunks(chunks.clone()))
    }

    /// Removes the chunks of an unreferenced content, then their marker.
    pub(super) async fn remove_chunks(
        &self,
        path: &VPath,
        chunks: &Chunks,
    ) -> Result<(), VfsError> {
        for start in (0..chunks.count).step_by(DISCARDED_AT_ONCE as usize) {
            let end = chunks.count.min(start + DISCARDED_AT_ONCE);
            let deletes = (start..end).map(|n| DocumentChange::Delete {
                key: chunks.key(n),
                expect: Expected::Any,
            });
            self.commit(path, deletes.collect()).await?;
        }
        let marker = DocumentChange::Delete {
            key: chunks.marker(),
            expect: Expected::Any,
        };
        self.commit(path, vec![marker]).await.map(drop)
    }
}

/// The chunks that remain to be removed after a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeftoverChunks {
    Nothing,
    Chunks(Chunks),
}
