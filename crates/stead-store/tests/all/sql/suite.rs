//! The place for tests of the store conformance suite on each SQL database.

mod sqlite_file {
    use std::sync::Arc;
    use stead_store::{SqlStore, Store};

    async fn open() -> (Arc<dyn Store>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let url = format!(
            "sqlite:{}",
            folder.path().join("not/yet/there.db").display()
        );
        (Arc::new(SqlStore::connect(&url).await.unwrap()), folder)
    }

    stead_testkit::store_suite!(open());
}

mod sqlite_memory {
    use std::sync::Arc;
    use stead_store::{SqlStore, Store};

    async fn open() -> (Arc<dyn Store>, ()) {
        (
            Arc::new(SqlStore::connect("sqlite::memory:").await.unwrap()),
            (),
        )
    }

    stead_testkit::store_suite!(open());
}

mod postgres {
    use std::sync::Arc;
    use stead_store::{SqlStore, Store};
    use stead_testkit::servers::{ServerKind, shared};

    async fn open() -> (Arc<dyn Store>, ()) {
        (
            Arc::new(
                SqlStore::connect(&shared(ServerKind::Postgres))
                    .await
                    .unwrap(),
            ),
            (),
        )
    }

    stead_testkit::store_suite!(open());
}

mod mariadb {
    use std::sync::Arc;
    use stead_store::{SqlStore, Store};
    use stead_testkit::servers::{ServerKind, shared};

    async fn open() -> (Arc<dyn Store>, ()) {
        (
            Arc::new(SqlStore::connect(&shared(ServerKind::Mysql)).await.unwrap()),
            (),
        )
    }

    stead_testkit::store_suite!(open());
}
