//! The place for tests of directories swapped with links while operations run.

use super::{OPERATIONS, World, p};
use rustix::fs::{CWD, RenameFlags};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use stead_vfs::{Expect, Vfs};

/// Repeatedly swaps the directory `door` with a link of the same name to the outside.
fn swap(root: &std::path::Path, until: &AtomicBool) {
    let door = root.join("door");
    let other = root.join("other");
    while !until.load(Ordering::Relaxed) {
        rustix::fs::renameat_with(CWD, &door, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    }
}

/// Ends the swapping, also when an assertion fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_directory_swapped_with_a_link_never_leads_outside() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (name, operation) in OPERATIONS {
        let world = World::new();
        world.put("door/file", "inside");
        world.put("door/deep/file", "inside");
        std::fs::create_dir(world.outside().join("deep")).unwrap();
        std::fs::write(world.outside().join("file"), "secret").unwrap();
        std::fs::write(world.outside().join("deep/file"), "secret").unwrap();
        std::fs::write(world.outside().join("deep/hidden-name"), "secret").unwrap();
        world.link("other", "../outside");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| swap(&world.root(), &done));
            let _stop = StopAtEnd(&done);
            let end = Instant::now() + Duration::from_millis(250);
            while Instant::now() < end {
                // The door itself must stay for the next round.
                let keeps_door = !["remove", "rename from"].contains(name);
                for path in ["door/file", "door/deep/file", "door/deep", "door", "."] {
                    if path == "door" && !keeps_door {
                        continue;
                    }
                    let told = runtime.block_on(operation(world.vfs.clone(), p(path)));
                    if let Ok(told) = told {
                        assert!(
                            !told.contains("secret") && !told.contains("hidden-name"),
                            "{name} {path} told {told}"
                        );
                    }
                }
                // Restores what removes and renames took away, so that every round has something to
                // do.
                for gone in ["door/file", "door/deep/file", "plain"] {
                    let _ = runtime.block_on(world.vfs.write(
                        &p(gone),
                        "inside".into(),
                        Expect::Absent,
                    ));
                }
                let _ = runtime.block_on(world.vfs.remove(&p("moved")));
            }
        });
        let mut outside: Vec<_> = std::fs::read_dir(world.outside())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        outside.sort();
        assert_eq!(outside, ["deep", "file", "secret"], "{name}");
        for file in ["file", "deep/file", "deep/hidden-name", "secret"] {
            assert_eq!(
                std::fs::read_to_string(world.outside().join(file)).unwrap(),
                "secret",
                "{name}"
            );
        }
    }
}
