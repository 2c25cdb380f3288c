//! The place for tests of the in-memory store.

use std::sync::Arc;
use stead_store::{MemoryStore, StateStore, Store};

async fn open() -> (Arc<dyn Store>, ()) {
    (Arc::new(MemoryStore::new()), ())
}

stead_testkit::store_suite!(open());

#[test]
fn it_says_that_it_is_nobody_elses() {
    let store = MemoryStore::new();
    assert_eq!((store.place(), store.is_shared()), ("memory:", false));
}
