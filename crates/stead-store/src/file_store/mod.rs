//! A store as plain files below one folder, for several processes of one machine.
//!
//! ```text
//! <root>/<space>/documents/<key>          a line of JSON (key, version, lengths), then meta, then body
//! <root>/<space>/leases/<name>.json       the holder and the deadline
//! <root>/<space>/queues/<queue>.json      the jobs; their payloads are in payloads/
//! <root>/<space>/pending.json             how to complete an interrupted operation
//! ```
//!
//! Each operation holds one lock per space. A multi-step operation is recorded in `pending.json`
//! before its first step, and the next process that takes the lock completes it.
//!
//! Effects: the clock, randomness, the environment, the local disk (writes).

mod documents;
mod leases;
mod locked_folder;
mod names;
mod queue;

use crate::bus::{DEFAULT_RUNTIME_DIR, LocalBus};
use crate::{Bus, Disk, Space, StateStore, StoreError};
use locked_folder::LockedFolder;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A store of documents, leases and queues in files below one folder.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
    place: String,
    disk: Arc<dyn Disk>,
    runtime_dir: PathBuf,
    bus: OnceLock<Arc<LocalBus>>,
}

impl FileStore {
    /// Returns the store in `root`. Creates nothing until the first write.
    pub fn new(root: &Path, disk: Arc<dyn Disk>) -> Self {
        Self {
            root: root.to_owned(),
            place: format!("file:{}", root.display()),
            disk,
            runtime_dir: PathBuf::from(DEFAULT_RUNTIME_DIR),
            bus: OnceLock::new(),
        }
    }

    /// Sets the folder of this machine for the sockets of the bus, which is `/tmp` by default. All
    /// processes that use the store must name the same one.
    pub fn with_runtime_dir(self, runtime_dir: &Path) -> Self {
        Self {
            runtime_dir: runtime_dir.to_owned(),
            ..self
        }
    }

    /// Runs `act` under the lock of the space, creating the space if needed.
    async fn write<T: Send + 'static>(
        &self,
        space: &Space,
        act: impl FnOnce(&LockedFolder) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = self.disk.clone();
        let path = self.root.join(names::space_folder_name(space));
        self.run_blocking(move || act(&LockedFolder::open_or_create(&disk, &path)?))
            .await
    }

    /// Runs `act` under the lock of the space. A space that does not exist is empty.
    async fn read<T: Default + Send + 'static>(
        &self,
        space: &Space,
        act: impl FnOnce(&LockedFolder) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = self.disk.clone();
        let path = self.root.join(names::space_folder_name(space));
        self.run_blocking(move || {
            LockedFolder::open(&disk, &path)?
                .map_or_else(|| Ok(T::default()), |folder| act(&folder))
        })
        .await
    }

    /// Runs `act` on a blocking thread, because disks and locks block.
    async fn run_blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ended = tokio::task::spawn_blocking(act).await;
        ended.map_err(|cause| StoreError::Store {
            place: self.place.clone(),
            cause: cause.to_string(),
        })?
    }
}

impl StateStore for FileStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn bus(&self) -> Arc<dyn Bus> {
        let bus = self.bus.get_or_init(|| {
            let root = real_path(&self.root);
            Arc::new(LocalBus::new(&self.runtime_dir, &root.to_string_lossy()))
        });
        bus.clone()
    }
}

/// Returns `path` without links as far as it exists, so that all processes have one name for it.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in absolute.ancestors() {
        if let (Ok(real), Ok(rest)) = (existing.canonicalize(), absolute.strip_prefix(existing)) {
            return real.join(rest);
        }
    }
    absolute
}

/// Returns the time by the clock that all processes of this machine share.
fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
