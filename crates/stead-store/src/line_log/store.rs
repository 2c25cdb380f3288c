//! A line log as documents of a store, one for each line, so that appends do not wait for each
//! other.
//!
//! Effects: the clock, randomness, the store (writes).

use super::{LineLog, RewriteLines};
use crate::{Document, DocumentChange, Expected, ListedDocument, Space, Store, StoreError};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The number of documents fetched or changed at once.
const PAGE: usize = 500;

/// A line log in a space of a store. Keys begin with the time, so that lines are listed in order.
#[derive(Debug)]
pub struct StoreLineLog {
    store: Arc<dyn Store>,
    space: Space,
}

impl StoreLineLog {
    /// Returns the log in `space`, which must hold nothing else.
    pub fn new(store: Arc<dyn Store>, space: Space) -> Self {
        Self { store, space }
    }

    async fn list_all(&self) -> Result<Vec<ListedDocument>, StoreError> {
        let mut all: Vec<ListedDocument> = Vec::new();
        loop {
            let after = all.last().map(|listed| listed.key.clone());
            let page = self
                .store
                .list(&self.space, "", after.as_deref(), PAGE)
                .await?;
            let full = page.len() == PAGE;
            all.extend(page);
            if !full {
                return Ok(all);
            }
        }
    }
}

/// Returns the change that adds a line. The line is the document's metadata, so that listing
/// returns it.
fn put_line(line: String) -> DocumentChange {
    let document = Document::new(line, "");
    DocumentChange::Put {
        key: document.version.to_string(),
        document,
        expect: Expected::Absent,
    }
}

fn line_text(listed: &ListedDocument) -> String {
    String::from_utf8_lossy(&listed.meta).into_owned()
}

impl LineLog for StoreLineLog {
    fn append(&self, lines: Vec<String>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.store
                .commit(&self.space, lines.into_iter().map(put_line).collect(), None)
                .await
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move { Ok(self.list_all().await?.iter().map(line_text).collect()) })
    }

    fn rewrite(&self, rewrite: RewriteLines) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let old = self.list_all().await?;
            let new = rewrite(old.iter().map(line_text).collect());
            let removed = old.into_iter().map(|listed| DocumentChange::Delete {
                key: listed.key,
                expect: Expected::Any,
            });
            let changes: Vec<DocumentChange> =
                removed.chain(new.into_iter().map(put_line)).collect();
            for part in changes.chunks(PAGE) {
                self.store.commit(&self.space, part.to_vec(), None).await?;
            }
            Ok(())
        })
    }

    fn locate(&self) -> String {
        format!("{}, {}", self.store.place(), self.space)
    }
}
