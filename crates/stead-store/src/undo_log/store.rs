//! The undo log as documents of a store.
//!
//! Effects: the clock, randomness, the store (writes).

use super::{LoggedRun, PreImage, RunKey, UndoLog};
use crate::{
    DocVersion, Document, DocumentChange, Documents, Expected, MAX_BODY_BYTES, Space, StoreError,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stead_core::{RunId, SessionId};

/// The number of documents fetched or changed at once.
const PAGE: usize = 500;
/// The number of bytes in one commit.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;

/// An undo log as documents: `r:<session>.<run>:<number>` for a line, `i:<hash>:<part>` for a
/// content.
#[derive(Debug)]
pub struct StoreUndoLog {
    documents: Arc<dyn Documents>,
    space: Space,
}

impl StoreUndoLog {
    /// Returns the undo log in `space`, which must hold nothing else.
    pub fn new(documents: Arc<dyn Documents>, space: Space) -> Self {
        Self { documents, space }
    }

    async fn list_all(&self, prefix: &str) -> Result<Vec<crate::ListedDocument>, StoreError> {
        let mut all = Vec::new();
        loop {
            let after = all
                .last()
                .map(|listed: &crate::ListedDocument| listed.key.clone());
            let page = self
                .documents
                .list(&self.space, prefix, after.as_deref(), PAGE)
                .await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }

    async fn delete_prefix(&self, prefix: &str) -> Result<(), StoreError> {
        let keys = self
            .list_all(prefix)
            .await?
            .into_iter()
            .map(|listed| listed.key);
        let changes: Vec<DocumentChange> = keys
            .map(|key| DocumentChange::Delete {
                key,
                expect: Expected::Any,
            })
            .collect();
        for part in changes.chunks(PAGE) {
            self.documents
                .commit(&self.space, part.to_vec(), None)
                .await?;
        }
        Ok(())
    }
}

impl UndoLog for StoreUndoLog {
    fn record<'a>(
        &'a self,
        run: &'a RunKey,
        line: String,
        images: Vec<(String, Bytes)>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut changes = Vec::new();
            let mut size = 0;
            // Two files may have the same content, and no key may occur twice in a commit.
            let mut kept = BTreeSet::new();
            for (hash, content) in images {
                if !kept.insert(hash.clone()) {
                    continue;
                }
                // The first part holds the size of the whole; an empty content has one empty part.
                for (part, start) in (0..content.len().max(1))
                    .step_by(MAX_BODY_BYTES)
                    .enumerate()
                {
                    let body = content.slice(start..content.len().min(start + MAX_BODY_BYTES));
                    size += body.len();
                    let meta = if part == 0 {
                        content.len().to_string()
                    } else {
                        String::new()
                    };
                    let key = format!("i:{hash}:{part:06}");
                    changes.push(DocumentChange::Put {
                        key,
                        document: Document::new(meta, body),
                        expect: Expected::Any,
                    });
                    if size >= COMMIT_BYTES {
                        self.documents
                            .commit(&self.space, std::mem::take(&mut changes), None)
                            .await?;
                        size = 0;
                    }
                }
            }
            let document = Document::new(Bytes::new(), line);
            let key = format!("r:{}.{}:{}", run.session, run.run, document.version);
            changes.push(DocumentChange::Put {
                key,
                document,
                expect: Expected::Absent,
            });
            self.documents.commit(&self.space, changes, None).await
        })
    }

    fn records<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            for listed in self
                .list_all(&format!("r:{}.{}:", run.session, run.run))
                .await?
            {
                let Some(document) = self.documents.get(&self.space, &listed.key).await? else {
                    continue;
                };
                let corrupt = |cause: std::string::FromUtf8Error| StoreError::Corrupt {
                    place: listed.key.clone(),
                    cause: cause.to_string(),
                };
                lines.push(String::from_utf8(document.body.to_vec()).map_err(corrupt)?);
            }
            Ok(lines)
        })
    }

    fn image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, StoreError>> {
        Box::pin(async move {
            let mut content = BytesMut::new();
            let parts = self.list_all(&format!("i:{hash}:")).await?;
            if parts.is_empty() {
                return Ok(None);
            }
            for part in parts {
                let document = self.documents.get(&self.space, &part.key).await?;
                content
                    .extend_from_slice(&document.map(|document| document.body).unwrap_or_default());
            }
            Ok(Some(content.freeze()))
        })
    }

    fn runs(&self) -> BoxFuture<'_, Result<Vec<LoggedRun>, StoreError>> {
        Box::pin(async move {
            let mut last: BTreeMap<RunKey, i64> = BTreeMap::new();
            for listed in self.list_all("r:").await? {
                let ids = listed
                    .key
                    .split(':')
                    .nth(1)
                    .and_then(|ids| ids.split_once('.'));
                let Some((session, run)) = ids else { continue };
                let (Ok(session), Ok(run)) = (SessionId::new(session), RunId::new(run)) else {
                    continue;
                };
                last.insert(RunKey { session, run }, version_created_ms(listed.version));
            }
            let mut runs: Vec<_> = last
                .into_iter()
                .map(|(key, updated_ms)| LoggedRun { key, updated_ms })
                .collect();
            runs.sort_by(|a, b| (a.updated_ms, &a.key).cmp(&(b.updated_ms, &b.key)));
            Ok(runs)
        })
    }

    fn images(&self) -> BoxFuture<'_, Result<Vec<PreImage>, StoreError>> {
        Box::pin(async move {
            let parts = self.list_all("i:").await?.into_iter();
            let first = parts.filter_map(|listed| {
                let bytes = std::str::from_utf8(&listed.meta).ok()?.parse().ok()?;
                let hash = listed.key.split(':').nth(1)?.to_owned();
                Some(PreImage {
                    hash,
                    bytes,
                    kept_ms: version_created_ms(listed.version),
                })
            });
            Ok(first.collect())
        })
    }

    fn delete_run<'a>(&'a self, run: &'a RunKey) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.delete_prefix(&format!("r:{}.{}:", run.session, run.run))
                .await
        })
    }

    fn delete_image<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.delete_prefix(&format!("i:{hash}:")).await })
    }
}

/// Returns the creation time of a version: its first 48 bits are milliseconds since 1970.
fn version_created_ms(version: DocVersion) -> i64 {
    (version.0 >> 80) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;

    #[tokio::test]
    async fn two_files_of_one_content_are_one_image_of_one_record() {
        let log = StoreUndoLog::new(Arc::new(MemoryStore::new()), Space::new(["undo"]));
        let run = RunKey {
            session: SessionId::fresh(),
            run: RunId::fresh(),
        };
        let image = |hash: &str, content: &'static str| {
            (hash.to_owned(), Bytes::from_static(content.as_bytes()))
        };
        let images = vec![image("h", "same"), image("g", "other"), image("h", "same")];
        log.record(&run, "line".to_owned(), images).await.unwrap();
        assert_eq!(log.records(&run).await.unwrap(), ["line"]);
        let mut kept: Vec<_> = log
            .images()
            .await
            .unwrap()
            .into_iter()
            .map(|image| image.hash)
            .collect();
        kept.sort_unstable();
        assert_eq!(kept, ["g", "h"]);
        assert_eq!(log.image("h").await.unwrap().unwrap(), "same");
    }
}
