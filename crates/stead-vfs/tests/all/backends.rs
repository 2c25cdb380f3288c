//! Test support: real backends that several independent handles can open.

use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use stead_store::{DocVersion, Documents, FileStore, MemoryStore, OsDisk, Space, connect};
use stead_testkit::servers::{ServerKind, shared};
use stead_vfs::{LocalVfs, Overlay, StoreVfs, Vfs};

/// The storage behind several handles.
pub(crate) enum Ground {
    Memory(Arc<MemoryStore>),
    Local(tempfile::TempDir),
    Sqlite(tempfile::TempDir),
    Files(tempfile::TempDir),
    /// A server, and a space that no other test and no earlier run has used.
    Server(ServerKind, Space),
    Over(Box<Ground>, Box<Ground>),
}

impl Ground {
    pub(crate) fn memory() -> Self {
        Self::Memory(Arc::new(MemoryStore::new()))
    }

    pub(crate) fn local() -> Self {
        Self::Local(tempfile::tempdir().unwrap())
    }

    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(crate) fn files() -> Self {
        Self::Files(tempfile::tempdir().unwrap())
    }

    pub(crate) fn redis() -> Self {
        Self::server(ServerKind::Redis)
    }

    pub(crate) fn postgres() -> Self {
        Self::server(ServerKind::Postgres)
    }

    pub(crate) fn mariadb() -> Self {
        Self::server(ServerKind::Mysql)
    }

    fn server(kind: ServerKind) -> Self {
        Self::Server(
            kind,
            Space::new(["vfs tests", &DocVersion::fresh().to_string()]),
        )
    }

    pub(crate) fn over(self, lower: Self) -> Self {
        Self::Over(Box::new(self), Box::new(lower))
    }

    /// Opens an independent handle.
    pub(crate) fn open(&self) -> BoxFuture<'_, Arc<dyn Vfs>> {
        Box::pin(async move {
            let handle: Arc<dyn Vfs> = match self {
                Self::Local(folder) => {
                    Arc::new(LocalVfs::open(folder.path(), Arc::new(OsDisk)).unwrap())
                }
                Self::Over(upper, lower) => {
                    Arc::new(Overlay::new(upper.open().await, lower.open().await))
                }
                Self::Memory(_) | Self::Sqlite(_) | Self::Files(_) | Self::Server(..) => {
                    let (documents, space) = self.documents().await;
                    Arc::new(StoreVfs::new(documents, space))
                }
            };
            handle
        })
    }

    /// Returns the documents that hold the files, through a separate connection.
    pub(crate) async fn documents(&self) -> (Arc<dyn Documents>, Space) {
        let files = Space::new(["files"]);
        match self {
            Self::Memory(store) => (Arc::clone(store) as Arc<dyn Documents>, files),
            Self::Files(folder) => (
                Arc::new(FileStore::new(folder.path(), Arc::new(OsDisk))),
                files,
            ),
            Self::Sqlite(folder) => (connect(&sqlite_url(folder.path())).await.unwrap(), files),
            Self::Server(kind, space) => (connect(&shared(*kind)).await.unwrap(), space.clone()),
            Self::Local(_) | Self::Over(..) => panic!("no single store is below these files"),
        }
    }
}

fn sqlite_url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("store.db").display())
}
