//! The place for tests of concurrent writers with separate connections to one place.

use super::backends::Ground;
use super::p;
use std::sync::Arc;
use stead_testkit::vfs_suite;
use stead_vfs::{Expect, ReadRange, Vfs, VfsError};
use tokio::task::JoinSet;

const HANDLES: usize = 8;

async fn handles(ground: &Ground) -> Vec<Arc<dyn Vfs>> {
    let mut handles = Vec::new();
    for _ in 0..HANDLES {
        handles.push(ground.open().await);
    }
    handles
}

/// One creator of a file wins, one editor of a version wins, no other edit and no appended line is
/// lost, no content is torn, and nothing is left without its directory.
macro_rules! writers {
    ($($name:ident: $ground:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                let ground = $ground;
                vfs_suite::races_between(&handles(&ground).await).await;
            }
        )*
    };
}

writers! {
    eight_writers_on_memory: Ground::memory();
    eight_writers_on_local: Ground::local();
    eight_writers_on_sqlite: Ground::sqlite();
    eight_writers_on_redis: Ground::redis();
    eight_writers_on_postgres: Ground::postgres();
    eight_writers_on_mariadb: Ground::mariadb();
    eight_writers_on_files: Ground::files();
    eight_writers_on_redis_over_local: Ground::redis().over(Ground::local());
    eight_writers_on_postgres_over_sqlite: Ground::postgres().over(Ground::sqlite());
    eight_writers_on_local_over_mariadb: Ground::local().over(Ground::mariadb());
    eight_writers_on_mariadb_over_redis: Ground::mariadb().over(Ground::redis());
}

/// The file is in lower when they begin: the first append copies it to upper, and no append is
/// lost.
async fn append_to_a_file_of_the_layer_below(ground: Ground) {
    const LINES: usize = 6;
    let Ground::Over(_, lower) = &ground else {
        panic!("not an overlay")
    };
    let below = lower.open().await;
    below
        .write(&p("d/log"), "first\n".into(), Expect::Absent)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for (writer, vfs) in handles(&ground).await.into_iter().enumerate() {
        tasks.spawn(async move {
            for line in 0..LINES {
                loop {
                    let (text, version) = vfs.read(&p("d/log"), ReadRange::ALL).await.unwrap();
                    let more = [&text, format!("{writer}.{line}\n").as_bytes()].concat();
                    match vfs
                        .write(&p("d/log"), more.into(), Expect::Version(version))
                        .await
                    {
                        Ok(_) => break,
                        Err(VfsError::Changed(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
    }
    tasks.join_all().await;
    let (text, _) = ground
        .open()
        .await
        .read(&p("d/log"), ReadRange::ALL)
        .await
        .unwrap();
    let mut found: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    assert_eq!(found.remove(0), "first");
    found.sort_unstable();
    let mut all: Vec<_> = (0..HANDLES)
        .flat_map(|w| (0..LINES).map(move |l| format!("{w}.{l}")))
        .collect();
    all.sort_unstable();
    assert_eq!(found, all);
    assert_eq!(
        below.read(&p("d/log"), ReadRange::ALL).await.unwrap().0,
        "first\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_writers_append_to_a_file_of_the_layer_below() {
    append_to_a_file_of_the_layer_below(Ground::redis().over(Ground::local())).await;
    append_to_a_file_of_the_layer_below(Ground::postgres().over(Ground::sqlite())).await;
    append_to_a_file_of_the_layer_below(Ground::local().over(Ground::mariadb())).await;
    append_to_a_file_of_the_layer_below(Ground::mariadb().over(Ground::local())).await;
}
