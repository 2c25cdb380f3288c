//! The disk space that the files of a session may take.
//!
//! Effects: workspace files (reads).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stead_vfs::{VPath, Vfs, VfsError};
use tokio::sync::OnceCell;

/// The most entries of the folder that are counted. A session has few; with more than this the quota
/// counts as used up.
const MAX_ENTRIES: usize = 100_000;

/// The space that the files of one session may take, shared by all their writers.
#[derive(Debug)]
pub struct Quota {
    files: Arc<dyn Vfs>,
    folder: VPath,
    max_bytes: u64,
    /// Counted when it is first needed: most runs never write.
    used: OnceCell<AtomicU64>,
}

impl Quota {
    /// A quota of `max_bytes` in `folder` of `files`.
    pub fn new(files: Arc<dyn Vfs>, folder: VPath, max_bytes: u64) -> Self {
        Self {
            files,
            folder,
            max_bytes,
            used: OnceCell::new(),
        }
    }

    /// Takes up to `wanted` bytes, and returns how many there were: none if it cannot be found how
    /// many are used.
    pub async fn reserve_up_to(&self, wanted: u64) -> u64 {
        let Ok(used) = self.used().await else {
            return 0;
        };
        let room = |used: u64| wanted.min(self.max_bytes.saturating_sub(used));
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used + room(used))
        });
        taken.map_or(0, room)
    }

    /// Takes all of `wanted` bytes or nothing, and returns whether there were enough: not if it
    /// cannot be found how many are used.
    pub async fn try_reserve(&self, wanted: u64) -> bool {
        let Ok(used) = self.used().await else {
            return false;
        };
        let taken = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(wanted)
                .filter(|used| *used <= self.max_bytes)
        });
        taken.is_ok()
    }

    /// Gives back bytes that were taken and not used.
    pub fn release(&self, bytes: u64) {
        if let Some(used) = self.used.get() {
            used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Describes the quota, for a message that it is used up.
    pub fn describe(&self) -> String {
        format!(
            "the files of this session have reached {} MB (offload.max_mb)",
            self.max_bytes / (1024 * 1024)
        )
    }

    async fn used(&self) -> Result<&AtomicU64, VfsError> {
        self.used
            .get_or_try_init(|| async { self.measure().await.map(AtomicU64::new) })
            .await
    }

    /// Counts the bytes in the folder. A missing folder is empty.
    async fn measure(&self) -> Result<u64, VfsError> {
        match self.files.walk(&self.folder, None, MAX_ENTRIES).await {
            Ok(walk) if walk.truncated => Ok(self.max_bytes),
            Ok(walk) => Ok(walk.entries.iter().map(|(_, entry)| entry.size).sum()),
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => Ok(0),
            Err(error) => Err(error),
        }
    }
}
