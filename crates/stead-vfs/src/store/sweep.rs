//! Removing contents of files that a crash left in the store. See `store/mod.rs` for the protocol.
//!
//! Effects: the clock, randomness, the store (writes).

use super::chunks::Marker;
use super::error;
use super::node::{self, MARKERS};
use super::{Committed, StoreVfs};
use crate::{VPath, VfsError};
use bytes::Bytes;
use std::time::Duration;
use stead_store::Document;

/// The number of markers read at once.
const PAGE: usize = 500;

impl StoreVfs {
    /// Removes contents that no file has referred to for `older_than`, left by a writer that died
    /// or is so slow that it must start again. Returns their number.
    pub async fn sweep(&self, older_than: Duration) -> Result<usize, VfsError> {
        let root = VPath::root();
        let age_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
        let oldest_ms = node::now_ms().saturating_sub(age_ms);
        let mut swept = 0;
        let mut after: Option<String> = None;
        loop {
            let page = self
                .documents
                .list(&self.space, MARKERS, after.as_deref(), PAGE)
                .await;
            let page = page.map_err(|e| error::at(&root, e))?;
            for listed in &page {
                let marker: Marker =
                    serde_json::from_slice(&listed.meta).map_err(|e| VfsError::Io {
                        path: root.clone(),
                        source: e.into(),
                    })?;
                if marker.since_ms > oldest_ms {
                    continue;
                }
                let claimed = Document::new(listed.meta.clone(), Bytes::new());
                if self
                    .remove_if_unreferenced(&root, &marker.chunks, claimed, listed.version)
                    .await?
                    == Committed::Applied
                {
                    swept += 1;
                }
            }
            if page.len() < PAGE {
                return Ok(swept);
            }
            after = page.into_iter().next_back().map(|last| last.key);
        }
    }
}
