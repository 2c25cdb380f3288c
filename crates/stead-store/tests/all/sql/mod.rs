//! The place for tests of the SQL stores; this file has their shared support.

mod direct_access;
mod lost_responses;
mod proxy;
mod races;
mod schema_setup;
mod suite;

use std::sync::Arc;
use std::time::Duration;
use stead_store::{
    AcquireOutcome, Claim, DocVersion, Document, DocumentChange, Expected, FencingToken, Leases,
    Space, SqlStore, Store,
};
use stead_testkit::servers::{ServerKind, shared};

const LONG: Duration = Duration::from_secs(60);
const SERVERS: [ServerKind; 2] = [ServerKind::Postgres, ServerKind::Mysql];

/// A space that no other test and no earlier run has used.
fn fresh_space() -> Space {
    Space::new(["sql tests", &DocVersion::fresh().to_string()])
}

fn put(key: &str, expect: Expected) -> (Document, DocumentChange) {
    let document = Document::new("about", key.to_owned());
    (
        document.clone(),
        DocumentChange::Put {
            key: key.to_owned(),
            document,
            expect,
        },
    )
}

async fn take(
    store: &dyn Store,
    space: &Space,
    name: &str,
    holder: &str,
    claim: Claim,
) -> FencingToken {
    match store
        .acquire(space, name, holder, LONG, claim)
        .await
        .unwrap()
    {
        AcquireOutcome::Granted(fence) => fence,
        AcquireOutcome::Held(lease) => panic!("{name} is held by {lease:?}"),
    }
}

/// Returns a store on each database, and the folder of the SQLite file.
async fn stores() -> (Vec<Arc<SqlStore>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let urls = [
        format!("sqlite:{}", folder.path().join("store.db").display()),
        "sqlite::memory:".to_owned(),
        shared(ServerKind::Postgres),
        shared(ServerKind::Mysql),
    ];
    let mut stores = Vec::new();
    for url in urls {
        stores.push(Arc::new(SqlStore::connect(&url).await.unwrap()));
    }
    (stores, folder)
}
