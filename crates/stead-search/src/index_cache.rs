//! A cache of the search indexes of many owners, each opened on first use.
//!
//! Effects: the local disk (writes).

use crate::{Index, IndexError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The number of indexes that stay open. Each holds files and threads; a closed one is opened again
/// when needed.
const MAX_OPEN: usize = 16;

/// Indexes by location, most recently used first, limited in number.
#[derive(Debug, Default)]
pub struct IndexCache(Mutex<Vec<(IndexLocation, Arc<LazyIndex>)>>);

/// The location of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
enum IndexLocation {
    File(PathBuf),
    /// In memory, under a name.
    Memory(String),
}

/// An index that is opened on first use.
#[derive(Debug)]
pub struct LazyIndex {
    location: IndexLocation,
    index: OnceCell<Arc<Index>>,
}

impl IndexCache {
    /// Returns the index in the file `path`.
    pub fn for_path(&self, path: &Path) -> Arc<LazyIndex> {
        self.get_or_insert(IndexLocation::File(path.to_owned()))
    }

    /// Returns the index of that name in memory.
    pub fn in_memory(&self, name: &str) -> Arc<LazyIndex> {
        self.get_or_insert(IndexLocation::Memory(name.to_owned()))
    }

    fn get_or_insert(&self, spot: IndexLocation) -> Arc<LazyIndex> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all
            .iter()
            .position(|(known, _)| *known == spot)
            .map(|at| all.remove(at));
        let (spot, lazy) = found.unwrap_or_else(|| {
            (
                spot.clone(),
                Arc::new(LazyIndex {
                    location: spot,
                    index: OnceCell::new(),
                }),
            )
        });
        all.insert(0, (spot, lazy.clone()));
        all.truncate(MAX_OPEN);
        lazy
    }
}

impl LazyIndex {
    /// Returns the index, opening it on first use. If the file cannot be used, for example in a
    /// read-only folder, the index is created in memory.
    pub async fn get(&self) -> Result<Arc<Index>, IndexError> {
        self.index.get_or_try_init(|| self.open()).await.cloned()
    }

    /// Returns whether the index exists. It may not be open yet.
    pub fn exists(&self) -> bool {
        self.index.initialized()
            || matches!(&self.location, IndexLocation::File(path) if path.exists())
    }

    async fn open(&self) -> Result<Arc<Index>, IndexError> {
        if let IndexLocation::File(path) = &self.location {
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
        let shelf = IndexCache::default();
        let lazy = shelf.for_path(&dir.path().join("file/search.sqlite"));
        assert!(lazy.get().await.is_ok());
        assert!(Arc::ptr_eq(
            &lazy,
            &shelf.for_path(&dir.path().join("file/search.sqlite"))
        ));
    }

    #[test]
    fn no_more_than_a_few_stay_open() {
        let shelf = IndexCache::default();
        let first = shelf.in_memory("0");
        (1..MAX_OPEN).for_each(|n| drop(shelf.in_memory(&n.to_string())));
        assert!(Arc::ptr_eq(&first, &shelf.in_memory("0")));
        (0..MAX_OPEN).for_each(|n| drop(shelf.in_memory(&format!("other {n}"))));
        assert!(!Arc::ptr_eq(&first, &shelf.in_memory("0")));
    }
}
