//! The place for tests of the index file: damage, concurrent writers, kills and unwritable folders.

use crate::{found, memory, notes};
use std::path::Path;
use std::sync::Arc;
use stead_search::{Index, IndexError, Query, SearchSourceKind, SourceLine};

async fn filled(path: &Path) -> Index {
    let index = Index::open(path).await.unwrap();
    index
        .sync(&memory("a.md"), "1", &notes(&["heron"]))
        .await
        .unwrap();
    index
}

#[tokio::test]
async fn a_file_keeps_what_it_was_told_and_may_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/search.sqlite");
    drop(filled(&path).await);
    assert_eq!(
        found(&Index::open(&path).await.unwrap(), "heron").await,
        [1]
    );
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    assert_eq!(
        found(&Index::open(&path).await.unwrap(), "heron").await,
        Vec::<u64>::new()
    );
}

/// Creates another program's database.
async fn foreign(path: &Path) {
    use sqlx::{ConnectOptions, Connection, Executor};
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut conn = options.connect().await.unwrap();
    conn.execute("CREATE TABLE theirs (x)").await.unwrap();
    conn.close().await.unwrap();
}

/// Creates an index as an earlier version might have left it.
async fn older(path: &Path) {
    use sqlx::{ConnectOptions, Connection, Executor};
    drop(filled(path).await);
    let mut conn = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    conn.execute("PRAGMA user_version = 999").await.unwrap();
    conn.close().await.unwrap();
}

#[tokio::test]
async fn what_is_no_index_of_this_format_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(
        path("text"),
        "this is no database, and long enough to look like one ".repeat(100),
    )
    .unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("short"), "SQLite format 3\0").unwrap();
    foreign(&path("foreign")).await;
    older(&path("older")).await;
    for name in ["text", "empty", "short", "foreign", "older"] {
        let index = Index::open(path(name))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            index.sources(SearchSourceKind::Memory).await.unwrap(),
            [].into(),
            "{name}"
        );
        index
            .sync(&memory("a.md"), "1", &notes(&["stork"]))
            .await
            .unwrap();
        drop(index);
        assert_eq!(
            found(&Index::open(path(name)).await.unwrap(), "stork").await,
            [1],
            "{name}"
        );
    }
}

#[tokio::test]
async fn damage_anywhere_ends_in_an_answer_or_in_a_new_index() {
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let lines: Vec<SourceLine> = (1..=400)
        .map(|n| SourceLine::note(n, format!("heron number {n}")))
        .collect();
    let index = Index::open(&sound).await.unwrap();
    index.sync(&memory("a.md"), "1", &lines).await.unwrap();
    drop(index);
    // Moves everything from the log into the file itself.
    let whole = {
        use sqlx::{ConnectOptions, Connection, Executor};
        let mut conn = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(&sound)
            .connect()
            .await
            .unwrap();
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            .await
            .unwrap();
        conn.close().await.unwrap();
        std::fs::read(&sound).unwrap()
    };
    for start in (0..whole.len()).step_by(4096 * 3) {
        let path = dir.path().join(format!("damaged{start}"));
        let mut bytes = whole.clone();
        let end = (start + 600).min(bytes.len());
        bytes[start..end].fill(0xa5);
        std::fs::write(&path, bytes).unwrap();
        let index = Index::open(&path)
            .await
            .unwrap_or_else(|error| panic!("at {start}: {error}"));
        let mut rebuilt = 0;
        loop {
            // As a user of an index does: sync the sources, then search.
            let told = index.sync(&memory("a.md"), "1", &lines).await.map(drop);
            let asked = match told {
                Ok(()) => index.search(&Query::new("number 7")).await.map(drop),
                Err(error) => Err(error),
            };
            match asked {
                Ok(()) => break,
                Err(IndexError::Rebuilt) if rebuilt < 3 => rebuilt += 1,
                Err(error) => panic!("at {start}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_written_is_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    for path in [dir.path().to_owned(), dir.path().join("file/search.sqlite")] {
        let error = Index::open(&path).await.unwrap_err();
        assert!(matches!(error, IndexError::Unavailable { .. }), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("search.sqlite");
    // To SQLite, two indexes over one file are like two processes.
    let (one, two) = tokio::join!(Index::open(&path), Index::open(&path));
    let both = [Arc::new(one.unwrap()), Arc::new(two.unwrap())];
    let mut work = tokio::task::JoinSet::new();
    for (who, index) in both.iter().cloned().enumerate() {
        work.spawn(async move {
            for n in 0..40 {
                let source = memory(&format!("{who}-{n}.md"));
                index
                    .sync(&source, "1", &notes(&["heron", "stork"]))
                    .await
                    .unwrap();
                index.search(&Query::new("heron")).await.unwrap();
            }
        });
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    for index in &both {
        assert_eq!(
            index.sources(SearchSourceKind::Memory).await.unwrap().len(),
            80
        );
        let all = index.search(&Query::new("heron").limit(200)).await.unwrap();
        assert_eq!(all.hits.len(), 80);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_make_the_file_at_once() {
    for _ in 0..stead_testkit::rounds(20) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("search.sqlite");
        let mut opening = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let path = path.clone();
            opening.spawn(async move { Index::open(path).await.map(drop) });
        }
        while let Some(opened) = opening.join_next().await {
            opened.unwrap().unwrap();
        }
    }
}

/// The child of the next test: writes until it is killed.
#[test]
fn writes_until_killed() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is how its parent speaks to it"
    )]
    let Ok(path) = std::env::var("STEAD_SEARCH_VICTIM") else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let index = Index::open(path).await.unwrap();
        for version in 1_u64.. {
            let lines: Vec<SourceLine> = (1..=50)
                .map(|n| SourceLine::note(n, format!("version{version}")))
                .collect();
            index
                .sync(&memory("a.md"), &version.to_string(), &lines)
                .await
                .unwrap();
        }
    });
}

#[tokio::test]
async fn a_kill_leaves_the_old_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("search.sqlite");
    for round in 0..stead_testkit::rounds(5) as u64 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "index_file::writes_until_killed", "--nocapture"])
            .env("STEAD_SEARCH_VICTIM", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(400 + 37 * round % 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let index = Index::open(&path).await.unwrap();
        let version = index
            .version(&memory("a.md"))
            .await
            .unwrap()
            .expect("it wrote at least once");
        let found = index
            .search(&Query::new(format!("version{version}")).limit(200))
            .await
            .unwrap();
        assert_eq!(found.hits.len(), 50, "version {version}");
    }
}
