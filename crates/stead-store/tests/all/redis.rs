//! The place for tests of the Redis store: conformance, lost responses, restarts and
//! unavailability.

use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_store::{
    AcquireOutcome, Claim, DocVersion, Document, DocumentChange, Documents, EnqueueOutcome,
    Expected, FencingToken, Job, Journals, Leases, Queue, RedisStore, Space, StateStore, Store,
    StoreError,
};
use stead_testkit::LossyProxy;
use stead_testkit::servers::{ServerKind, TestServer, shared};

const LONG: Duration = Duration::from_secs(60);

async fn open() -> (Arc<dyn Store>, ()) {
    (
        Arc::new(
            RedisStore::connect(&shared(ServerKind::Redis))
                .await
                .unwrap(),
        ),
        (),
    )
}

stead_testkit::store_suite!(open());

fn fresh_space() -> Space {
    Space::new(["redis", &DocVersion::fresh().to_string()])
}

fn put(key: &str, body: &str, expect: Expected) -> DocumentChange {
    DocumentChange::Put {
        key: key.into(),
        document: Document::new("", body.to_owned()),
        expect,
    }
}

async fn fence(store: &RedisStore, space: &Space) -> FencingToken {
    match store
        .acquire(
            space,
            "lease",
            &DocVersion::fresh().to_string(),
            LONG,
            Claim::Free,
        )
        .await
        .unwrap()
    {
        AcquireOutcome::Granted(fence) => fence,
        AcquireOutcome::Held(lease) => panic!("{lease:?}"),
    }
}

fn job(payload: &'static str, max_attempts: u32) -> Job {
    Job {
        payload: Bytes::from(payload),
        dedup: None,
        delay: Duration::ZERO,
        max_attempts,
    }
}

/// A store behind a lossy connection whose scripts the server already knows.
async fn lossy() -> (LossyProxy, RedisStore, Space) {
    let url = shared(ServerKind::Redis);
    let line = LossyProxy::to(url.trim_start_matches("redis://").trim_end_matches('/'));
    let store = RedisStore::connect(&format!("redis://{}/", line.address()))
        .await
        .unwrap();
    let warm = fresh_space();
    let lease = fence(&store, &warm).await;
    store.commit(&warm, vec![], None).await.unwrap();
    store
        .append(&warm, "j", 0, &[Bytes::from("x")], &lease)
        .await
        .unwrap();
    store.enqueue(&warm, "q", job("x", 2)).await.unwrap();
    let claimed = store.claim(&warm, "q", LONG).await.unwrap().unwrap();
    store
        .nack(&warm, "q", &claimed, Duration::ZERO, "x")
        .await
        .unwrap();
    (line, store, fresh_space())
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_made_once() {
    let (line, store, space) = lossy().await;
    let moved = Document::new("m", "moved");
    let version = moved.version;
    store
        .commit(
            &space,
            vec![
                DocumentChange::Put {
                    key: "from".into(),
                    document: moved,
                    expect: Expected::Absent,
                },
                put("gone", "", Expected::Absent),
            ],
            None,
        )
        .await
        .unwrap();
    line.lose(2);
    let changes = vec![
        put("new", "1", Expected::Absent),
        DocumentChange::Move {
            from: "from".into(),
            to: "to".into(),
            version,
        },
        DocumentChange::Delete {
            key: "gone".into(),
            expect: Expected::Any,
        },
        DocumentChange::Check {
            key: "nothing".into(),
            expect: Expected::Absent,
        },
    ];
    store.commit(&space, changes, None).await.unwrap();
    assert_eq!(line.lost(), 2);
    let keys: Vec<String> = store
        .list(&space, "", None, 10)
        .await
        .unwrap()
        .into_iter()
        .map(|l| l.key)
        .collect();
    assert_eq!(keys, ["new", "to"]);
    // A document of another writer is not mistaken for ours.
    line.lose(1);
    let outcome = store
        .commit(&space, vec![put("new", "2", Expected::Absent)], None)
        .await;
    assert!(matches!(outcome, Err(StoreError::Conflict(key)) if key == "new"));
}

#[tokio::test]
async fn an_append_whose_answer_is_lost_is_made_once() {
    let (line, store, space) = lossy().await;
    let lease = fence(&store, &space).await;
    let lines = [Bytes::from("one"), Bytes::from("two")];
    line.lose(1);
    store.append(&space, "j", 0, &lines, &lease).await.unwrap();
    line.lose(1);
    store.append(&space, "j", 2, &lines, &lease).await.unwrap();
    assert_eq!(line.lost(), 2);
    assert_eq!(
        store.lines(&space, "j", 1, 1000).await.unwrap(),
        [lines.clone(), lines].concat()
    );
    line.lose(1);
    let outcome = store
        .append(
            &space,
            "j",
            2,
            &[Bytes::from("two"), Bytes::from("one")],
            &lease,
        )
        .await;
    assert!(
        matches!(outcome, Err(StoreError::Conflict(_))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_grant_whose_answer_is_lost_is_the_same_grant() {
    let (line, store, space) = lossy().await;
    line.lose(1);
    let first = fence(&store, &space).await;
    line.lose(1);
    assert!(store.renew(&space, &first, LONG).await.unwrap());
    assert_eq!(line.lost(), 2);
    let other = store
        .acquire(&space, "lease", "other", LONG, Claim::Free)
        .await
        .unwrap();
    assert!(matches!(other, AcquireOutcome::Held(lease) if lease.token == first.token));
}

#[tokio::test]
async fn a_job_whose_answers_are_lost_is_there_once() {
    let (line, store, space) = lossy().await;
    line.lose(1);
    let EnqueueOutcome::New(id) = store.enqueue(&space, "q", job("once", 1)).await.unwrap() else {
        panic!("it is new")
    };
    line.lose(1);
    // With one attempt only, a delivery that was lost would be the last one.
    let claimed = store.claim(&space, "q", LONG).await.unwrap().unwrap();
    assert_eq!((&claimed.id, claimed.attempt), (&id, 1));
    line.lose(1);
    assert!(store.ack(&space, "q", &claimed).await.unwrap());
    assert_eq!(store.claim(&space, "q", LONG).await.unwrap(), None);
    store.enqueue(&space, "q", job("twice", 2)).await.unwrap();
    for attempt in 1..=2 {
        let claimed = store.claim(&space, "q", LONG).await.unwrap().unwrap();
        assert_eq!(claimed.attempt, attempt);
        line.lose(1);
        assert!(
            store
                .nack(&space, "q", &claimed, Duration::ZERO, "no")
                .await
                .unwrap()
        );
    }
    assert_eq!(
        store
            .dead_letters(&space, "q", None, 10)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(line.lost(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_is_survived_and_nothing_acknowledged_is_lost() {
    let mut server = TestServer::start(ServerKind::Redis);
    let store = Arc::new(RedisStore::connect(server.url()).await.unwrap());
    let space = fresh_space();
    let lease = fence(&store, &space).await;
    let appending = async {
        for n in 0..400_u64 {
            store
                .append(&space, "j", n, &[Bytes::from(n.to_string())], &lease)
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let restarting = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            server = tokio::task::spawn_blocking(move || {
                server.kill();
                server.start_again();
                server
            })
            .await
            .unwrap();
        }
        server
    };
    let ((), _server) = tokio::join!(appending, restarting);
    let lines = store.lines(&space, "j", 1, 1_000_000).await.unwrap();
    assert_eq!(lines, (0..400).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_in_time() {
    let mut server = TestServer::start(ServerKind::Redis);
    let store = RedisStore::connect(server.url()).await.unwrap();
    server.stop();
    let begun = Instant::now();
    let outcome = store.get(&fresh_space(), "a").await;
    assert!(
        matches!(outcome, Err(StoreError::Unavailable { .. })),
        "{outcome:?}"
    );
    let took = begun.elapsed();
    assert!(
        (Duration::from_secs(5)..Duration::from_secs(20)).contains(&took),
        "gave up after {took:?}"
    );
    server.start_again();
    assert_eq!(store.get(&fresh_space(), "a").await.unwrap(), None);
}

#[tokio::test]
async fn a_frozen_server_answers_when_it_goes_on() {
    let server = TestServer::start(ServerKind::Redis);
    let store = RedisStore::connect(server.url()).await.unwrap();
    let space = fresh_space();
    store
        .commit(&space, vec![put("a", "1", Expected::Absent)], None)
        .await
        .unwrap();
    server.pause();
    let resuming = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.resume();
    };
    let (found, ()) = tokio::join!(store.get(&space, "a"), resuming);
    assert_eq!(found.unwrap().unwrap().body, "1");
}

#[tokio::test]
async fn ten_thousand_changes_in_one_commit() {
    let store = RedisStore::connect(&shared(ServerKind::Redis))
        .await
        .unwrap();
    let space = fresh_space();
    let changes = (0..10_000)
        .map(|n| put(&format!("{n:05}"), "x", Expected::Absent))
        .collect();
    store.commit(&space, changes, None).await.unwrap();
    assert_eq!(
        store.list(&space, "", None, 20_000).await.unwrap().len(),
        10_000
    );
    let deletes = (0..10_000)
        .map(|n| DocumentChange::Delete {
            key: format!("{n:05}"),
            expect: Expected::Any,
        })
        .collect();
    store.commit(&space, deletes, None).await.unwrap();
}

#[tokio::test]
async fn lost_lines_are_told_of() {
    let url = shared(ServerKind::Redis);
    let store = RedisStore::connect(&url).await.unwrap();
    let space = fresh_space();
    let lease = fence(&store, &space).await;
    store
        .append(
            &space,
            "j",
            0,
            &[Bytes::from("one"), Bytes::from("two")],
            &lease,
        )
        .await
        .unwrap();
    // Simulates a crash that kept one key and lost the other.
    let mut raw = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    let list = format!("{{stead:{space}}}:j:j");
    redis::cmd("RPOP")
        .arg(&list)
        .query_async::<()>(&mut raw)
        .await
        .unwrap();
    let outcome = store
        .append(&space, "j", 2, &[Bytes::from("three")], &lease)
        .await;
    assert!(
        matches!(outcome, Err(StoreError::Corrupt { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn tokens_grow_even_if_the_server_lost_its_memory() {
    let url = shared(ServerKind::Redis);
    let store = RedisStore::connect(&url).await.unwrap();
    let space = fresh_space();
    let first = fence(&store, &space).await;
    let mut raw = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    redis::cmd("DEL")
        .arg(format!("{{stead:{space}}}:l:lease"))
        .query_async::<()>(&mut raw)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    // The previous holder is fenced off at once, and cannot get in again later by chance.
    let outcome = store
        .append(&space, "j", 0, &[Bytes::from("one")], &first)
        .await;
    assert!(matches!(outcome, Err(StoreError::Fenced { lease }) if lease == "lease"));
    assert!(fence(&store, &space).await.token > first.token);
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_without_secrets() {
    let refused = RedisStore::connect("redis://user:s3cret@127.0.0.1:1/0?x=s3cret")
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable { place, .. } if place == "redis://127.0.0.1:1/0")
    );
    // This server requires no password.
    let with_password = shared(ServerKind::Redis).replace("redis://", "redis://user:s3cret@");
    let denied = RedisStore::connect(&with_password).await.unwrap_err();
    assert!(matches!(denied, StoreError::Store { .. }), "{denied:?}");
    let no_tls =
        RedisStore::connect(&shared(ServerKind::Redis).replace("redis://", "rediss://:s3cret@"))
            .await
            .unwrap_err();
    let no_url = RedisStore::connect("redis://:s3cret@host:port/x")
        .await
        .unwrap_err();
    assert!(matches!(no_url, StoreError::Setup(_)), "{no_url:?}");
    for error in [refused, denied, no_tls, no_url] {
        let told = format!("{error} {error:?}");
        assert!(!told.contains("s3cret"), "{told}");
    }
    let store = RedisStore::connect(&shared(ServerKind::Redis))
        .await
        .unwrap();
    assert!(store.is_shared() && store.place().starts_with("redis://127.0.0.1:"));
}
