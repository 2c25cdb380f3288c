//! A store as plain files below one folder, for several processes of one machine.
//!
//! ```text
//! <root>/<space>/documents/<key>          a line of JSON (key, version, lengths), then meta, then body
//! <root>/<space>/leases/<name>.json       who holds it, and until when
//! <root>/<space>/queues/<queue>.json      the jobs; what they are about is in payloads/
//! <root>/<space>/pending.json             what to do first, after an operation that was cut off
//! ```
//!
//! One lock per space, held for each operation: simple, and never in doubt. What takes several
//! steps says so in `pending.json` before the first one; whoever takes the lock next brings it to
//! its end.

mod documents;
mod leases;
mod locked_folder;
mod names;
mod queue;

use crate::{Disk, Space, StateStore, StoreError};
use locked_folder::LockedFolder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keeps everything as files below one folder.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
    place: String,
    disk: Arc<dyn Disk>,
}

impl FileStore {
    /// The store in `root`. Touches nothing until the first write.
    pub fn new(root: &Path, disk: Arc<dyn Disk>) -> Self {
        Self {
            root: root.to_owned(),
            place: format!("file:{}", root.display()),
            disk,
        }
    }

    /// Does `act` while nobody else is in the space, which is made if need be.
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

    /// Does `act` while nobody else is in the space; a space that is not there has nothing in it.
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

    /// Disks and locks make threads wait, so they get threads of their own.
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
}

/// The clock that all processes of this machine share.
fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
