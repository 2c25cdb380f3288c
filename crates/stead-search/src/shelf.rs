//! Indexes of many owners, each opened when it is first asked.

use crate::{Index, SearchError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Indexes that stay open. Each holds files and threads; one that was closed is opened or made
/// again.
const MAX_OPEN: usize = 16;

/// Indexes by where they lie, the last used first, a bounded number of them.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Vec<(Spot, Arc<Lazy>)>>);

/// Where an index lies.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Spot {
    File(PathBuf),
    /// In memory, under a name.
    Memory(String),
}

/// An index that is opened when it is first asked.
#[derive(Debug)]
pub struct Lazy {
    spot: Spot,
    opened: OnceCell<Arc<Index>>,
}

impl Shelf {
    /// The index in the file `path`.
    pub fn file(&self, path: &Path) -> Arc<Lazy> {
        self.take(Spot::File(path.to_owned()))
    }

    /// The index of that name in memory.
    pub fn memory(&self, name: &str) -> Arc<Lazy> {
        self.take(Spot::Memory(name.to_owned()))
    }

    fn take(&self, spot: Spot) -> Arc<Lazy> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all
            .iter()
            .position(|(known, _)| *known == spot)
            .map(|at| all.remove(at));
        let (spot, lazy) = found.unwrap_or_else(|| {
            (
                spot.clone(),
                Arc::new(Lazy {
                    spot,
                    opened: OnceCell::new(),
                }),
            )
        });
        all.insert(0, (spot, lazy.clone()));
        all.truncate(MAX_OPEN);
        lazy
    }
}

impl Lazy {
    /// The index. A file that cannot be used, say in a folder that is read-only, is no reason not
    /// to search: then it is made in memory.
    pub async fn get(&self) -> Result<Arc<Index>, SearchError> {
        self.opened.get_or_try_init(|| self.open()).await.cloned()
    }

    /// Whether there is one already. It may still have to be opened.
    pub fn is_made(&self) -> bool {
        self.opened.initialized() || matches!(&self.spot, Spot::File(path) if path.exists())
    }

    async fn open(&self) -> Result<Arc<Index>, SearchError> {
        if let Spot::File(path) = &self.spot {
            match Index::open(path).await {
                Ok(index) => return Ok(Arc::new(index)),
                Err(error) => tracing::warn!(%error, "the search index is kept in memory"),
            }
        }
        Index::in_memory().await.map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_that_cannot_be_written_is_searched_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let shelf = Shelf::default();
        let lazy = shelf.file(&dir.path().join("file/search.sqlite"));
        assert!(lazy.get().await.is_ok());
        assert!(Arc::ptr_eq(
            &lazy,
            &shelf.file(&dir.path().join("file/search.sqlite"))
        ));
    }

    #[test]
    fn no_more_than_a_few_stay_open() {
        let shelf = Shelf::default();
        let first = shelf.memory("0");
        (1..MAX_OPEN).for_each(|n| drop(shelf.memory(&n.to_string())));
        assert!(Arc::ptr_eq(&first, &shelf.memory("0")));
        (0..MAX_OPEN).for_each(|n| drop(shelf.memory(&format!("other {n}"))));
        assert!(!Arc::ptr_eq(&first, &shelf.memory("0")));
    }
}
