//! The place for tests of opening a SQL store: concurrent setup, newer schemas, unreachable
//! servers, passwords, expiry of dedup keys.

use super::*;
use stead_store::{Documents, EnqueueOutcome, Job, Queue, StateStore, StoreError};
use stead_testkit::servers::TestServer;
use tokio::task::JoinSet;

/// Returns empty databases that no other test uses.
fn empty() -> (Vec<String>, (tempfile::TempDir, Vec<TestServer>)) {
    let folder = tempfile::tempdir().unwrap();
    let servers: Vec<TestServer> = SERVERS.map(TestServer::start).into_iter().collect();
    let file = format!(
        "sqlite:{}",
        folder.path().join("deep/er/store.db").display()
    );
    let urls = servers
        .iter()
        .map(|server| server.url().to_owned())
        .chain([file])
        .collect();
    (urls, (folder, servers))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_empty_database_is_set_up_by_twenty_at_once_and_a_newer_one_is_left_alone() {
    let (urls, _guard) = empty();
    for url in urls {
        let mut starting = JoinSet::new();
        for n in 0..20 {
            let url = url.clone();
            starting.spawn(async move {
                let store = SqlStore::connect(&url).await.unwrap();
                let space = fresh_space();
                store
                    .commit(&space, vec![put(&n.to_string(), Expected::Absent).1], None)
                    .await
                    .unwrap();
            });
        }
        starting.join_all().await;
        direct_access::run(&url, "INSERT INTO stead_schema (version) VALUES (99)").await;
        let error = SqlStore::connect(&url).await.unwrap_err();
        let says = error.to_string();
        assert!(
            matches!(error, StoreError::Setup(_))
                && says.contains("99")
                && says.contains("upgrade"),
            "{says}"
        );
        assert!(!says.contains("for-tests-only"), "{says}");
    }
}

#[tokio::test]
async fn a_place_is_told_without_password_and_who_shares_it() {
    let (stores, folder) = stores().await;
    let file = format!("sqlite:{}", folder.path().join("store.db").display());
    assert_eq!(
        (stores[0].place(), stores[0].is_shared()),
        (file.as_str(), false)
    );
    assert_eq!(
        (stores[1].place(), stores[1].is_shared()),
        ("sqlite::memory:", false)
    );
    for (store, scheme) in stores[2..]
        .iter()
        .zip(["postgres://127.0.0.1:", "mysql://127.0.0.1:"])
    {
        assert!(
            store.place().starts_with(scheme) && store.place().ends_with("/stead"),
            "{}",
            store.place()
        );
        assert!(store.is_shared());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_opened_says_why_and_never_the_password() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = taken.local_addr().unwrap();
    let each = SERVERS.map(async |kind| {
        let url = shared(kind);
        let scheme = url.split(':').next().unwrap();
        let wrong = [
            url.replace("for-tests-only", "sesame%40open"),
            format!("{}/no_such_database", url.strip_suffix("/stead").unwrap()),
            format!("{scheme}://me:sesame%40open@{silent}/stead"),
            format!("{scheme}://me:sesame%40open@127.0.0.1:1/stead"),
            format!("{scheme}://me:x/sesame@open@127.0.0.1:1/stead"),
        ];
        let each = wrong.map(async |url| {
            let error = SqlStore::connect(&url)
                .await
                .expect_err("it cannot be opened");
            let says = format!("{error} {error:?}");
            for secret in ["for-tests-only", "sesame@open", "sesame%40open"] {
                assert!(!says.contains(secret), "{says}");
            }
            let sorted = matches!(
                error,
                StoreError::Store { .. } | StoreError::Unavailable { .. } | StoreError::Setup(_)
            );
            assert!(sorted, "{says}");
        });
        futures_util::future::join_all(each).await;
    });
    futures_util::future::join_all(each).await;
    for (url, word) in [
        ("mysql://127.0.0.1", "database"),
        ("redis://x", "postgres://"),
        ("sqlite:", "file"),
    ] {
        let error = SqlStore::connect(url).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Setup(says) if says.contains(word)),
            "{error}"
        );
    }
    let not_a_folder = tempfile::NamedTempFile::new().unwrap();
    let url = format!("sqlite:{}/store.db", not_a_folder.path().display());
    assert!(matches!(
        SqlStore::connect(&url).await,
        Err(StoreError::Io { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_what_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let space = fresh_space();
    let (document, change) = put("a", Expected::Absent);
    SqlStore::connect(&url)
        .await
        .unwrap()
        .commit(&space, vec![change], None)
        .await
        .unwrap();
    assert_eq!(
        SqlStore::connect(&url)
            .await
            .unwrap()
            .get(&space, "a")
            .await
            .unwrap(),
        Some(document)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dedup_key_is_forgotten_after_a_day() {
    const TWO_DAYS_AGO: &str =
        "UPDATE stead_jobs SET ended_ms = ended_ms - 172800000 WHERE state <> 0;
         UPDATE stead_jobs SET due_ms = due_ms - 172800000 WHERE state = 2";
    const ALMOST: &str = "UPDATE stead_jobs SET ended_ms = ended_ms - 86000000 WHERE state <> 0;
         UPDATE stead_jobs SET due_ms = due_ms - 86000000 WHERE state = 2";
    let (urls, _guard) = empty();
    for url in urls {
        let store = SqlStore::connect(&url).await.unwrap();
        let space = fresh_space();
        let job = |key: &str| Job {
            payload: key.to_owned().into(),
            dedup: Some(key.to_owned()),
            delay: Duration::ZERO,
            max_attempts: 1,
        };
        let add = async |key: &str| store.enqueue(&space, "q", job(key)).await.unwrap();
        let mut first = Vec::new();
        for key in ["done", "dead"] {
            first.push(add(key).await);
            let claimed = store.claim(&space, "q", LONG).await.unwrap().unwrap();
            let ended = match key {
                "done" => store.ack(&space, "q", &claimed).await,
                _ => {
                    store
                        .nack(&space, "q", &claimed, Duration::ZERO, "no")
                        .await
                }
            };
            assert!(ended.unwrap());
        }
        direct_access::run(&url, ALMOST).await;
        for (key, first) in ["done", "dead"].iter().zip(&first) {
            let EnqueueOutcome::New(id) = first else {
                panic!("{first:?}")
            };
            assert_eq!(add(key).await, EnqueueOutcome::Existing(id.clone()));
        }
        direct_access::run(&url, TWO_DAYS_AGO).await;
        for key in ["done", "dead"] {
            assert!(matches!(add(key).await, EnqueueOutcome::New(_)), "{key}");
            assert!(
                matches!(add(key).await, EnqueueOutcome::Existing(_)),
                "{key}"
            );
        }
        let dead = store.dead_letters(&space, "q", None, 10).await.unwrap();
        assert_eq!(
            dead.iter()
                .map(|dead| dead.payload.as_ref())
                .collect::<Vec<_>>(),
            [b"dead"],
            "a dead letter stays"
        );
    }
}
