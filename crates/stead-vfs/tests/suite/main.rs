//! The place for tests of the VFS conformance suite on every backend.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod composed;
mod faulty_store;
mod store_backend;

use faulty_store::Shaky;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_store::{Disk, MemoryStore, Space};
use stead_testkit::vfs_suite;
use stead_vfs::{
    DefaultDirVfs, Freeze, Frozen, LocalVfs, Overlay, Routes, Scoped, StoreVfs, VPath, Vfs,
};

/// A file system, and values that must outlive it.
struct Place {
    vfs: Arc<dyn Vfs>,
    _held: Vec<tempfile::TempDir>,
}

/// The local disk without syncs: power failures are tested elsewhere.
#[derive(Debug)]
struct Unsynced;

impl Disk for Unsynced {
    fn sync(&self, _: &std::fs::File) -> std::io::Result<()> {
        Ok(())
    }
}

fn local_place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let vfs = LocalVfs::open(temp.path(), Arc::new(Unsynced)).unwrap();
    Place {
        vfs: Arc::new(vfs),
        _held: vec![temp],
    }
}

fn memory_place() -> Place {
    Place {
        vfs: Arc::new(StoreVfs::in_memory()),
        _held: Vec::new(),
    }
}

/// A store that yields at every operation, so that all interleavings can happen.
fn store_place() -> Place {
    let documents = Arc::new(Shaky::new(MemoryStore::new()));
    Place {
        vfs: Arc::new(StoreVfs::new(documents, Space::new(["a", "b"]))),
        _held: Vec::new(),
    }
}

fn overlay_of(upper: Place, lower: Place) -> Place {
    let held = upper._held.into_iter().chain(lower._held).collect();
    Place {
        vfs: Arc::new(Overlay::new(upper.vfs, lower.vfs)),
        _held: held,
    }
}

fn scoped(inner: Place, prefix: &str) -> Place {
    Place {
        vfs: Arc::new(Scoped::new(inner.vfs, VPath::parse(prefix).unwrap())),
        _held: inner._held,
    }
}

/// Paths that begin with no known name are in `workspace/`.
fn homed(inner: Place) -> Place {
    let home = VPath::parse("workspace").unwrap();
    Place {
        vfs: Arc::new(DefaultDirVfs::new(inner.vfs, home, ["agent", "data"])),
        _held: inner._held,
    }
}

/// Memory at the root, and mounts of both kinds.
fn routes_place(mounts: &[&str]) -> Place {
    let mut held = Vec::new();
    let mut places: BTreeMap<VPath, Arc<dyn Vfs>> = BTreeMap::new();
    for (number, mount) in mounts.iter().enumerate() {
        let place = if number % 2 == 0 {
            local_place()
        } else {
            memory_place()
        };
        places.insert(VPath::parse(mount).unwrap(), place.vfs);
        held.extend(place._held);
    }
    Place {
        vfs: Arc::new(Routes::new(memory_place().vfs, places)),
        _held: held,
    }
}

/// The parts of the suite on one file system, each as a test.
macro_rules! suite {
    ($name:ident, $place:expr) => {
        mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn cases() {
                let place = $place;
                vfs_suite::cases(place.vfs).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn matrix() {
                let place = $place;
                vfs_suite::matrix(place.vfs).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn races() {
                let place = $place;
                vfs_suite::races(place.vfs).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn streams() {
                let place = $place;
                vfs_suite::streams(place.vfs).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn script() {
                let place = $place;
                let memory =
                    vfs_suite::script(&StoreVfs::in_memory(), 11, vfs_suite::SCRIPT_OPERATIONS)
                        .await;
                let here = vfs_suite::script(&*place.vfs, 11, vfs_suite::SCRIPT_OPERATIONS).await;
                assert_eq!(here.to_string(), memory.to_string());
            }
        }
    };
}

suite!(local, local_place());
suite!(memory, memory_place());
suite!(store, store_place());
suite!(
    overlay_of_memory_over_memory,
    overlay_of(memory_place(), memory_place())
);
suite!(
    overlay_of_memory_over_local,
    overlay_of(memory_place(), local_place())
);
suite!(
    overlay_of_local_over_memory,
    overlay_of(local_place(), memory_place())
);
suite!(scope_of_memory, scoped(memory_place(), "tenants/a b/files"));
suite!(scope_of_local, scoped(local_place(), "tenants/a b/files"));
suite!(
    short_names_in_memory,
    scoped(homed(memory_place()), "some/where")
);
suite!(
    short_names_of_local,
    scoped(homed(local_place()), "some/where")
);
suite!(known_names_of_homed, scoped(homed(memory_place()), "data"));
suite!(
    thawed,
    Place {
        vfs: Arc::new(Frozen::new(memory_place().vfs, Freeze::default())),
        _held: Vec::new()
    }
);
suite!(routes_without_mounts, routes_place(&[]));
suite!(
    local_mount_of_routes,
    scoped(routes_place(&["m", "n"]), "m")
);
suite!(
    memory_mount_of_routes,
    scoped(routes_place(&["l", "m/n"]), "m/n")
);
suite!(
    default_of_routes,
    scoped(routes_place(&["l", "m/n"]), "m/other")
);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_scripts_in_memory() {
    for seed in (100..).take(stead_testkit::rounds(10)) {
        vfs_suite::script(&StoreVfs::in_memory(), seed, vfs_suite::SCRIPT_OPERATIONS).await;
    }
}
