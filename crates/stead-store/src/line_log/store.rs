//! A log of lines as documents of a store: one for each, so that nobody waits for anybody.

use super::{LineLog, Rewrite};
use crate::{Change, Document, Expected, Listed, Space, Store, StoreError};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// How many documents are fetched or changed at once.
const PAGE: usize = 500;

/// Lines in a space of a store. Their keys are made of the time, so they are listed in order.
#[derive(Debug)]
pub struct StoreLines {
    store: Arc<dyn Store>,
    space: Space,
}

impl StoreLines {
    /// The lines in a space of their own.
    pub fn new(store: Arc<dyn Store>, space: Space) -> Self {
        Self { store, space }
    }

    async fn all(&self) -> Result<Vec<Listed>, StoreError> {
        let mut all: Vec<Listed> = Vec::new();
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

/// A line as a change: what is listed of a document is all there is to it.
fn added(line: String) -> Change {
    let document = Document::new(line, "");
    Change::Put {
        key: document.version.to_string(),
        document,
        expect: Expected::Absent,
    }
}

fn text(listed: &Listed) -> String {
    String::from_utf8_lossy(&listed.meta).into_owned()
}

impl LineLog for StoreLines {
    fn append(&self, lines: Vec<String>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.store
                .commit(&self.space, lines.into_iter().map(added).collect(), None)
                .await
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move { Ok(self.all().await?.iter().map(text).collect()) })
    }

    fn rewrite(&self, rewrite: Rewrite) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let old = self.all().await?;
            let new = rewrite(old.iter().map(text).collect());
            let removed = old.into_iter().map(|listed| Change::Delete {
                key: listed.key,
                expect: Expected::Any,
            });
            let changes: Vec<Change> = removed.chain(new.into_iter().map(added)).collect();
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
