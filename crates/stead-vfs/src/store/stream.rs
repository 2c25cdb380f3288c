//! Writing contents of files to the store in pieces. See `store/mod.rs` for the protocol.
//!
//! Effects: the clock, randomness, the store (writes).

use super::chunks::{CHUNK_BYTES, INLINE_BYTES, Marker, Uploaded};
use super::error;
use super::node::{self, Chunks};
use super::{Committed, StoreVfs};
use crate::{ContentHash, Expect, VPath, Version, VfsError};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use sha2::{Digest, Sha256};
use stead_store::{DocVersion, Document, DocumentChange, Expected};

/// The number of bytes uploaded at once.
const BATCH_BYTES: usize = 4 * CHUNK_BYTES;

/// A content that is not complete yet.
struct StreamUpload {
    /// The bytes that are not in the store yet.
    pending: BytesMut,
    hash: Sha256,
    size: usize,
    /// The part that is, as recorded in its marker.
    uploaded: Option<Uploaded>,
}

impl StoreVfs {
    pub(super) async fn write_from_stream(
        &self,
        path: &VPath,
        mut source: BoxStream<'_, Bytes>,
    ) -> Result<Version, VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::IsDirectory(path.clone()));
        }
        let mut growing = StreamUpload {
            pending: BytesMut::new(),
            hash: Sha256::new(),
            size: 0,
            uploaded: None,
        };
        let written = self.upload_stream(path, &mut source, &mut growing).await;
        if let (Err(_), Some(uploaded)) = (&written, &growing.uploaded) {
            // The original failure is reported; what remains is swept later.
            let _ = self.discard_upload(path, uploaded).await;
        }
        written
    }

    async fn upload_stream(
        &self,
        path: &VPath,
        source: &mut BoxStream<'_, Bytes>,
        growing: &mut StreamUpload,
    ) -> Result<Version, VfsError> {
        while let Some(piece) = source.next().await {
            growing.hash.update(&piece);
            growing.size += piece.len();
            growing.pending.extend_from_slice(&piece);
            while growing.pending.len() >= BATCH_BYTES {
                let batch = growing.pending.split_to(BATCH_BYTES).freeze();
                self.upload_more(path, growing, batch).await?;
            }
        }
        let rest = growing.pending.split().freeze();
        if growing.uploaded.is_none() && rest.len() <= INLINE_BYTES {
            return self.write_file(path, rest, Expect::Any).await;
        }
        if !rest.is_empty() {
            self.upload_more(path, growing, rest).await?;
        }
        let hash = ContentHash(growing.hash.clone().finalize().into());
        match &growing.uploaded {
            Some(uploaded) => {
                self.attach_uploaded(path, growing.size, hash, uploaded)
                    .await
            }
            None => Err(error::contended(path)),
        }
    }

    /// Uploads more of a content and records it in the marker, so that all of it is swept if the
    /// writer dies.
    async fn upload_more(
        &self,
        path: &VPath,
        growing: &mut StreamUpload,
        batch: Bytes,
    ) -> Result<(), VfsError> {
        let known = growing.uploaded.as_ref();
        let begun = known.map_or_else(
            || Chunks {
                blob: DocVersion::fresh().to_string(),
                bytes: CHUNK_BYTES as u64,
                count: 0,
            },
            |uploaded| uploaded.chunks.clone(),
        );
        let chunks = Chunks {
            count: begun.count + batch.len().div_ceil(CHUNK_BYTES) as u64,
            ..begun.clone()
        };
        let document = Marker::document(path, &chunks)?;
        let marker = document.version;
        let expect = known.map_or(Expected::Absent, |uploaded| {
            Expected::Version(uploaded.marker)
        });
        let mut changes = vec![DocumentChange::Put {
            key: chunks.marker(),
            document,
            expect,
        }];
        for (number, start) in (begun.count..).zip((0..batch.len()).step_by(CHUNK_BYTES)) {
            let document = Document::new(
                Bytes::new(),
                batch.slice(start..batch.len().min(start + CHUNK_BYTES)),
            );
            changes.push(DocumentChange::Put {
                key: chunks.key(number),
                document,
                expect: Expected::Absent,
            });
        }
        if self.commit(path, changes).await? == Committed::Conflict {
            // It took so long that it was swept.
            return Err(error::contended(path));
        }
        growing.uploaded = Some(Uploaded { chunks, marker });
        Ok(())
    }
}
