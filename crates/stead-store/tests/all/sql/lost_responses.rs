//! The place for tests of lost responses of a SQL server: every operation takes effect once.

use super::proxy::Proxy;
use super::*;
use bytes::Bytes;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use stead_store::{Documents, EnqueueOutcome, Job, Journals, Queue, StateStore, StoreError};
use stead_testkit::servers::TestServer;
use tokio::task::JoinSet;

/// Runs `operation` in a new space each time, with the connection cut at each of its responses in
/// turn.
async fn cut_everywhere<F: Future<Output = ()>>(
    prepare: impl AsyncFn(&SqlStore, &Space),
    operation: impl Fn(Arc<SqlStore>, Space) -> F,
) {
    for kind in SERVERS {
        // A server's first response to a new statement is that it was parsed; to a prepared one,
        // the result.
        for known in [false, true] {
            let proxy = Proxy::before(&shared(kind)).await;
            let store = Arc::new(SqlStore::connect(proxy.url()).await.unwrap());
            let mut cuts = 0;
            for answers in 0.. {
                if known {
                    let space = fresh_space();
                    prepare(&store, &space).await;
                    operation(store.clone(), space).await;
                }
                let space = fresh_space();
                prepare(&store, &space).await;
                proxy.cut_after(answers);
                operation(store.clone(), space).await;
                if !proxy.was_cut() {
                    break;
                }
                cuts += 1;
            }
            assert!(cuts > 0, "nothing was cut");
        }
    }
}

async fn nothing(_: &SqlStore, _: &Space) {}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_put_once() {
    for expect in [Expected::Absent, Expected::Any] {
        cut_everywhere(nothing, |store, space| async move {
            let (document, change) = put("a", expect);
            store.commit(&space, vec![change], None).await.unwrap();
            assert_eq!(store.get(&space, "a").await.unwrap(), Some(document));
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_replaced_and_removed_once_under_a_fence() {
    let first = put("a", Expected::Absent);
    let prepare = async |store: &SqlStore, space: &Space| {
        take(store, space, "l", "me", Claim::Free).await;
        store
            .commit(space, vec![first.1.clone()], None)
            .await
            .unwrap();
    };
    cut_everywhere(prepare, |store, space| {
        let expect = Expected::Version(first.0.version);
        async move {
            let fence = take(&*store, &space, "l", "me", Claim::Free).await;
            let (second, change) = put("a", expect);
            store
                .commit(&space, vec![change], Some(&fence))
                .await
                .unwrap();
            assert_eq!(store.get(&space, "a").await.unwrap(), Some(second.clone()));
            let gone = DocumentChange::Delete {
                key: "a".into(),
                expect: Expected::Version(second.version),
            };
            store
                .commit(&space, vec![gone], Some(&fence))
                .await
                .unwrap();
            assert_eq!(store.get(&space, "a").await.unwrap(), None);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_many_kinds_is_made_once() {
    let moved = put("from", Expected::Absent);
    let removed = put("gone", Expected::Absent);
    let prepare = async |store: &SqlStore, space: &Space| {
        store
            .commit(space, vec![moved.1.clone(), removed.1.clone()], None)
            .await
            .unwrap();
    };
    cut_everywhere(prepare, |store, space| {
        let moved = moved.0.clone();
        let removed = removed.0.version;
        async move {
            let (made, change) = put("made", Expected::Absent);
            let changes = vec![
                change,
                DocumentChange::Move {
                    from: "from".into(),
                    to: "to".into(),
                    version: moved.version,
                },
                DocumentChange::Delete {
                    key: "gone".into(),
                    expect: Expected::Version(removed),
                },
                DocumentChange::Check {
                    key: "nothing".into(),
                    expect: Expected::Absent,
                },
            ];
            store.commit(&space, changes, None).await.unwrap();
            assert_eq!(store.get(&space, "made").await.unwrap(), Some(made));
            assert_eq!(store.get(&space, "to").await.unwrap(), Some(moved));
            assert_eq!(store.list(&space, "", None, 10).await.unwrap().len(), 2);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_somebody_else_prevented_is_still_a_conflict() {
    let prepare = async |store: &SqlStore, space: &Space| {
        store
            .commit(space, vec![put("a", Expected::Absent).1], None)
            .await
            .unwrap();
    };
    cut_everywhere(prepare, |store, space| async move {
        let outcome = store
            .commit(&space, vec![put("a", Expected::Absent).1], None)
            .await;
        assert!(
            matches!(outcome, Err(StoreError::Conflict(_))),
            "{outcome:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_appended_once() {
    cut_everywhere(nothing, |store, space| async move {
        let fence = take(&*store, &space, "l", "me", Claim::Free).await;
        assert_eq!(fence.token, 1);
        let lines: Vec<Bytes> = ["one", "two", "three", "four"].map(Bytes::from).to_vec();
        store
            .append(&space, "j", 0, &lines[..1], &fence)
            .await
            .unwrap();
        store
            .append(&space, "j", 1, &lines[1..3], &fence)
            .await
            .unwrap();
        store
            .append(&space, "j", 3, &lines[3..], &fence)
            .await
            .unwrap();
        assert_eq!(store.lines(&space, "j", 1, 1000).await.unwrap(), lines);
        assert_eq!(store.tail(&space, "j").await.unwrap().unwrap().bytes, 19);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_granted_once() {
    cut_everywhere(nothing, |store, space| async move {
        let first = take(&*store, &space, "l", "one", Claim::Free).await;
        assert_eq!(first.token, 1);
        let second = take(&*store, &space, "l", "two", Claim::Takeover(1)).await;
        assert_eq!(second.token, 2);
        assert!(store.renew(&space, &second, LONG).await.unwrap());
        store.release(&space, &second).await.unwrap();
        assert_eq!(
            take(&*store, &space, "l", "three", Claim::Free).await.token,
            3
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_added_delivered_and_ended_once() {
    cut_everywhere(nothing, |store, space| async move {
        for (dedup, queue) in [(None, "plain"), (Some("key".to_owned()), "keyed")] {
            let job = Job {
                payload: "do".into(),
                dedup,
                delay: Duration::ZERO,
                max_attempts: 2,
            };
            let EnqueueOutcome::New(id) = store.enqueue(&space, queue, job).await.unwrap() else {
                panic!("it is new")
            };
            let first = store
                .claim(&space, queue, LONG)
                .await
                .unwrap()
                .expect("a job");
            assert_eq!((&first.id, first.attempt), (&id, 1));
            assert_eq!(store.claim(&space, queue, LONG).await.unwrap(), None);
            assert!(store.extend(&space, queue, &first, LONG).await.unwrap());
            assert!(
                store
                    .nack(&space, queue, &first, Duration::ZERO, "not now")
                    .await
                    .unwrap()
            );
            let second = store
                .claim(&space, queue, LONG)
                .await
                .unwrap()
                .expect("the job again");
            assert_eq!(second.attempt, 2);
            assert!(store.ack(&space, queue, &second).await.unwrap());
            assert_eq!(store.claim(&space, queue, LONG).await.unwrap(), None);
            assert_eq!(
                store.dead_letters(&space, queue, None, 10).await.unwrap(),
                []
            );
        }
    })
    .await;
}

/// Writes documents and a journal, and returns how far they were acknowledged.
async fn write_until(
    store: Arc<SqlStore>,
    space: Space,
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
) -> u64 {
    let fence = take(&*store, &space, "l", "me", Claim::Free).await;
    let mut n = 0;
    while !stop.load(Ordering::SeqCst) {
        store
            .append(&space, "j", n, &[Bytes::from(n.to_string())], &fence)
            .await
            .unwrap();
        store
            .commit(
                &space,
                vec![put(&format!("{n:06}"), Expected::Absent).1],
                None,
            )
            .await
            .unwrap();
        n += 1;
        made.fetch_add(1, Ordering::SeqCst);
    }
    n
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_killed_server_that_comes_back_is_survived() {
    for kind in SERVERS {
        let mut server = TestServer::start(kind);
        let store = Arc::new(SqlStore::connect(server.url()).await.unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let made = Arc::new(AtomicU64::new(0));
        let spaces: Vec<Space> = (0..4).map(|_| fresh_space()).collect();
        let mut writers = JoinSet::new();
        for space in spaces.clone() {
            let work = write_until(store.clone(), space.clone(), stop.clone(), made.clone());
            writers.spawn(async move { (space, work.await) });
        }
        for restart in [TestServer::kill as fn(&mut TestServer), TestServer::stop] {
            let enough = made.load(Ordering::SeqCst) + 40;
            while made.load(Ordering::SeqCst) < enough {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::task::block_in_place(|| {
                restart(&mut server);
                server.start_again();
            });
        }
        let enough = made.load(Ordering::SeqCst) + 40;
        while made.load(Ordering::SeqCst) < enough {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.store(true, Ordering::SeqCst);
        while let Some(ended) = writers.join_next().await {
            let (space, count) = ended.unwrap();
            let lines = store.lines(&space, "j", 1, usize::MAX).await.unwrap();
            assert_eq!(
                lines,
                (0..count)
                    .map(|n| Bytes::from(n.to_string()))
                    .collect::<Vec<_>>()
            );
            assert_eq!(
                store.list(&space, "", None, 1_000_000).await.unwrap().len() as u64,
                count
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_reported_without_the_password() {
    let each = SERVERS.map(TestServer::start).map(async |mut server| {
        let store = SqlStore::connect(server.url()).await.unwrap();
        store.get(&fresh_space(), "a").await.unwrap();
        tokio::task::block_in_place(|| server.kill());
        let began = Instant::now();
        let error = store.get(&fresh_space(), "a").await.unwrap_err();
        assert!(
            (8..25).contains(&began.elapsed().as_secs()),
            "given up after {:?}",
            began.elapsed()
        );
        assert!(
            matches!(&error, StoreError::Unavailable { place, .. } if place == store.place()),
            "{error:?}"
        );
        assert!(!format!("{error} {error:?} {store:?}").contains("for-tests-only"));
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_froze_amid_a_commit_does_not_keep_its_lease() {
    let each = SERVERS.map(async |kind| {
        let proxy = Proxy::before(&shared(kind)).await;
        let frozen = Arc::new(SqlStore::connect(proxy.url()).await.unwrap());
        let other = SqlStore::connect(&shared(kind)).await.unwrap();
        let space = fresh_space();
        let fence = take(&*frozen, &space, "l", "one", Claim::Free).await;
        let (first, made): (Vec<_>, Vec<_>) = ["a", "b"]
            .map(|key| put(key, Expected::Absent))
            .into_iter()
            .unzip();
        frozen.commit(&space, made, Some(&fence)).await.unwrap();
        let again = |document: &Document| {
            let key = std::str::from_utf8(&document.body).unwrap();
            put(key, Expected::Version(document.version)).1
        };
        let changes = first.iter().map(again).collect();
        // The begin, the check of the lease and the check of the keys pass; no response to the
        // writes does.
        proxy.freeze_after(3);
        let mut commits = JoinSet::new();
        let store = frozen.clone();
        let within = space.clone();
        let shown = fence.clone();
        commits.spawn(async move { store.commit(&within, changes, Some(&shown)).await });
        while !proxy.is_frozen() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let began = Instant::now();
        let second = take(&other, &space, "l", "two", Claim::Takeover(fence.token)).await;
        assert_eq!(second.token, fence.token + 1);
        assert!(
            began.elapsed() > Duration::from_secs(5),
            "the lease was not locked"
        );
        assert!(commits.try_join_next().is_none(), "it is still frozen");
        for document in &first {
            let key = std::str::from_utf8(&document.body).unwrap();
            assert_eq!(
                other.get(&space, key).await.unwrap().as_ref(),
                Some(document)
            );
        }
        let outcome = other
            .commit(&space, vec![put("c", Expected::Any).1], Some(&fence))
            .await;
        assert!(
            matches!(outcome, Err(StoreError::Fenced { .. })),
            "{outcome:?}"
        );
    });
    futures_util::future::join_all(each).await;
}
