//! The conformance suite, on every place there is and on what is put together from them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use stead_store::OsDisk;
use stead_testkit::vfs_suite;
use stead_vfs::{LocalVfs, Vfs};

fn local() -> (tempfile::TempDir, Arc<dyn Vfs>) {
    let temp = tempfile::tempdir().unwrap();
    let vfs = LocalVfs::open(temp.path(), Arc::new(OsDisk)).unwrap();
    (temp, Arc::new(vfs))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn local_disk() {
    let (_temp, vfs) = local();
    vfs_suite::all(vfs, 1).await;
}
