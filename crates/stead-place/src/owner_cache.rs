//! A cache of the sessions and states of the owners that were used last.
//!
//! Effects: none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use stead_store::{FileSessions, FileStore};

/// The number of owners that are kept.
const MAX_OWNERS: usize = 256;

/// The sessions and the state of one owner. They are shared because sessions hold open files and
/// an index that is not written yet, and because the subscribers of a state meet in its bus.
#[derive(Debug, Clone)]
pub(crate) struct OwnerStores {
    pub(crate) sessions: Arc<FileSessions>,
    pub(crate) state: Arc<FileStore>,
}

/// The stores of owners by their folder, those used last at the end.
#[derive(Debug, Default)]
pub(crate) struct OwnerCache {
    used: Mutex<Vec<(PathBuf, OwnerStores)>>,
}

impl OwnerCache {
    /// Returns the stores in `folder`, or those that `open` returns if there are none yet.
    pub(crate) fn get(&self, folder: &Path, open: impl FnOnce() -> OwnerStores) -> OwnerStores {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        // The newest is asked for most often.
        if let Some(at) = used.iter().rposition(|(known, _)| known == folder) {
            let found = used.remove(at);
            let stores = found.1.clone();
            used.push(found);
            return stores;
        }
        if used.len() >= MAX_OWNERS {
            used.remove(0);
        }
        let stores = open();
        used.push((folder.to_owned(), stores.clone()));
        stores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{AgentId, Redactor};
    use stead_store::OsDisk;

    #[test]
    fn an_owner_used_lately_is_kept_and_others_make_room() {
        let cache = OwnerCache::default();
        let open = |folder: &str| {
            cache.get(Path::new(folder), || OwnerStores {
                sessions: Arc::new(FileSessions::new(
                    Path::new(folder),
                    AgentId::main(),
                    Arc::new(OsDisk),
                    Redactor::default(),
                )),
                state: Arc::new(FileStore::new(Path::new(folder), Arc::new(OsDisk))),
            })
        };
        let kept = open("kept");
        let old = open("old");
        for n in 0..MAX_OWNERS - 1 {
            open(&n.to_string());
            assert!(Arc::ptr_eq(&open("kept").sessions, &kept.sessions));
        }
        assert!(!Arc::ptr_eq(&open("old").state, &old.state));
        assert_eq!(cache.used.lock().unwrap().len(), MAX_OWNERS);
    }
}
