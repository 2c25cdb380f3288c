//! The place for tests of the VFS suite on real servers and on layers over them.

use super::backends::Ground;
use std::sync::Arc;
use stead_core::{RunId, SessionId};
use stead_store::{MemoryStore, RunKey, Space, StoreUndoLog};
use stead_testkit::vfs_suite::{self, SCRIPT_OPERATIONS, Transcript};
use stead_vfs::{Guarded, Protected, Recorded, Rules, StoreVfs, Vfs};

/// Returns the results of the in-memory backend, which all others must match.
async fn in_memory(seed: u64) -> Transcript {
    vfs_suite::script(&StoreVfs::in_memory(), seed, SCRIPT_OPERATIONS).await
}

async fn same_answers(vfs: &dyn Vfs, seed: u64) {
    let expected = in_memory(seed).await;
    let here = vfs_suite::script(vfs, seed, SCRIPT_OPERATIONS).await;
    assert_eq!(here.answers.len(), SCRIPT_OPERATIONS);
    // Compared as bytes and reported line by line.
    for (here, expected) in here.answers.iter().zip(&expected.answers) {
        assert_eq!(here, expected, "seed {seed}");
    }
    assert_eq!(here.tree, expected.tree, "seed {seed}");
    assert_eq!(
        here.to_string().into_bytes(),
        expected.to_string().into_bytes(),
        "seed {seed}"
    );
}

fn guarded(inner: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
    Arc::new(Guarded::new(
        inner,
        Arc::new(Rules::new(&[], Protected::NONE).unwrap()),
    ))
}

fn recorded(inner: Arc<dyn Vfs>) -> Arc<dyn Vfs> {
    let log = StoreUndoLog::new(Arc::new(MemoryStore::new()), Space::new(["undo"]));
    let run = RunKey {
        session: SessionId::fresh(),
        run: RunId::fresh(),
    };
    Arc::new(Recorded::new(inner, Arc::new(log), run))
}

/// Makes one test per backend: the scripts of so many seeds, from the first one.
macro_rules! scripts {
    ($($name:ident: $ground:expr, $first:literal, $count:literal;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                for seed in ($first..).take(stead_testkit::rounds($count)) {
                    let ground = $ground;
                    same_answers(&*ground.open().await, seed).await;
                }
            }
        )*
    };
}

scripts! {
    a_script_on_memory: Ground::memory(), 0, 2;
    a_script_on_local: Ground::local(), 0, 2;
    a_script_on_sqlite: Ground::sqlite(), 0, 2;
    a_script_on_redis: Ground::redis(), 0, 2;
    a_script_on_postgres: Ground::postgres(), 0, 2;
    a_script_on_mariadb: Ground::mariadb(), 0, 2;
    a_script_on_files: Ground::files(), 0, 1;
    a_script_on_redis_over_local: Ground::redis().over(Ground::local()), 2, 1;
    a_script_on_postgres_over_sqlite: Ground::postgres().over(Ground::sqlite()), 2, 1;
    a_script_on_local_over_mariadb: Ground::local().over(Ground::mariadb()), 2, 1;
    a_script_on_mariadb_over_redis: Ground::mariadb().over(Ground::redis()), 3, 1;
    a_script_on_sqlite_over_postgres_over_local:
        Ground::sqlite().over(Ground::postgres().over(Ground::local())), 3, 1;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_without_rules_and_a_record_change_no_answer() {
    for (seed, ground) in (4..).zip([
        Ground::redis(),
        Ground::sqlite().over(Ground::local()),
        Ground::local(),
    ]) {
        same_answers(&*guarded(recorded(ground.open().await)), seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_over_random_files_of_another_server() {
    let layers = [
        (Ground::redis(), Ground::postgres()),
        (Ground::postgres(), Ground::mariadb()),
        (Ground::local(), Ground::redis()),
        (Ground::sqlite(), Ground::local()),
    ];
    for (seed, (upper, lower)) in (70..).zip(layers) {
        let below = lower.open().await;
        vfs_suite::scatter(&*below, seed, 40).await;
        let before = vfs_suite::tree(&*below).await;
        let oracle = vfs_suite::oracle_of(&*below).await;
        let twin = StoreVfs::in_memory();
        vfs_suite::scatter(&twin, seed, 40).await;
        assert_eq!(vfs_suite::tree(&twin).await, before);
        let ground = upper.over(lower);
        let overlay = ground.open().await;
        let here = vfs_suite::script_from(&*overlay, oracle.clone(), seed, SCRIPT_OPERATIONS).await;
        let in_memory = vfs_suite::script_from(&twin, oracle, seed, SCRIPT_OPERATIONS).await;
        assert_eq!(
            here.to_string().into_bytes(),
            in_memory.to_string().into_bytes(),
            "seed {seed}"
        );
        assert_eq!(
            vfs_suite::tree(&*below).await,
            before,
            "seed {seed}: the lower layer changed"
        );
    }
}

/// The rest of the suite on one backend.
macro_rules! suite {
    ($($name:ident: $ground:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn cases() {
                    let ground = $ground;
                    vfs_suite::cases(ground.open().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn streams() {
                    let ground = $ground;
                    vfs_suite::streams(ground.open().await).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn matrix() {
                    let ground = $ground;
                    vfs_suite::matrix(ground.open().await).await;
                }
            }
        )*
    };
}

suite! {
    sqlite: Ground::sqlite();
    redis: Ground::redis();
    postgres: Ground::postgres();
    mariadb: Ground::mariadb();
    redis_over_local: Ground::redis().over(Ground::local());
}
