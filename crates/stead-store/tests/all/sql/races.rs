//! The place for tests of concurrent commits, takeovers and dropped operations on a SQL store.

use super::*;
use stead_store::{Documents, StateStore, StoreError};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_that_need_each_other_absent_are_never_both_made() {
    let (stores, _folder) = stores().await;
    for store in stores {
        let mut winners = 0;
        let races = stead_testkit::rounds(25);
        for _ in 0..races {
            let space = fresh_space();
            let mut racers = JoinSet::new();
            for (own, other) in [("a", "b"), ("b", "a")] {
                let store = store.clone();
                let space = space.clone();
                racers.spawn(async move {
                    let must = DocumentChange::Check {
                        key: other.to_owned(),
                        expect: Expected::Absent,
                    };
                    store
                        .commit(&space, vec![put(own, Expected::Absent).1, must], None)
                        .await
                });
            }
            let outcomes = racers.join_all().await;
            let made = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert!(made <= 1, "{}: both were made", store.place());
            for outcome in outcomes.into_iter().filter_map(Result::err) {
                assert!(matches!(outcome, StoreError::Conflict(_)), "{outcome:?}");
            }
            assert_eq!(store.list(&space, "", None, 10).await.unwrap().len(), made);
            winners += made;
        }
        assert!(
            winners * 5 >= races * 4,
            "{}: only {winners} of {races} races had a winner",
            store.place()
        );
    }
}

/// A commit waits for a takeover in progress and sees its token, not the one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_waits_for_a_takeover_and_is_fenced_off() {
    for kind in SERVERS {
        let url = shared(kind);
        let store = Arc::new(SqlStore::connect(&url).await.unwrap());
        let old = put("old", Expected::Absent);
        let at_old = Expected::Version(old.0.version);
        let forms: Vec<Vec<DocumentChange>> = vec![
            vec![put("new", Expected::Absent).1],
            vec![put("old", Expected::Any).1],
            vec![put("old", at_old).1],
            vec![DocumentChange::Delete {
                key: "old".into(),
                expect: at_old,
            }],
            vec![DocumentChange::Delete {
                key: "old".into(),
                expect: Expected::Any,
            }],
            vec![DocumentChange::Move {
                from: "old".into(),
                to: "new".into(),
                version: old.0.version,
            }],
            vec![put("new", Expected::Absent).1, put("old", at_old).1],
        ];
        for changes in forms {
            let space = fresh_space();
            store
                .commit(&space, vec![old.1.clone()], None)
                .await
                .unwrap();
            let fence = take(&*store, &space, "l", "one", Claim::Free).await;
            let takeover = direct_access::begin_takeover(&url, &space, "l").await;
            let mut committing = JoinSet::new();
            let store = store.clone();
            let within = space.clone();
            let told = format!("{changes:?}");
            let reader = store.clone();
            committing.spawn(async move { store.commit(&within, changes, Some(&fence)).await });
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(committing.try_join_next().is_none(), "{told} did not wait");
            takeover.commit().await;
            let outcome = committing.join_next().await.unwrap().unwrap();
            assert!(
                matches!(outcome, Err(StoreError::Fenced { .. })),
                "{told}: {outcome:?}"
            );
            let listed = reader.list(&space, "", None, usize::MAX).await.unwrap();
            assert_eq!(
                listed
                    .iter()
                    .map(|listed| listed.version)
                    .collect::<Vec<_>>(),
                [old.0.version],
                "{told}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn commits_of_the_same_keys_in_any_order_all_end() {
    let (stores, _folder) = stores().await;
    for store in stores {
        let space = fresh_space();
        let mut racers = JoinSet::new();
        for n in 0..8 {
            let store = store.clone();
            let space = space.clone();
            racers.spawn(async move {
                for round in 0..5 {
                    let mut keys: Vec<String> = (0..20)
                        .map(|key| format!("{:02}", (key * 7 + n + round) % 20))
                        .collect();
                    if n % 2 == 0 {
                        keys.reverse();
                    }
                    let changes = keys.iter().map(|key| put(key, Expected::Any).1).collect();
                    store.commit(&space, changes, None).await.unwrap();
                }
            });
        }
        racers.join_all().await;
        assert_eq!(store.list(&space, "", None, 100).await.unwrap().len(), 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_dropped_half_way_leaves_all_or_nothing_and_a_store_that_works() {
    let (stores, _folder) = stores().await;
    for store in stores {
        for micros in (0..3000).step_by(100) {
            let space = fresh_space();
            let changes = ["a", "b", "c"]
                .map(|key| put(key, Expected::Absent).1)
                .to_vec();
            let commit = store.commit(&space, changes, None);
            let ended = tokio::time::timeout(Duration::from_micros(micros), commit).await;
            // Reading the same keys for writing waits until the server has noticed the dropped
            // operation.
            let (document, change) = put("a", Expected::Any);
            store.commit(&space, vec![change], None).await.unwrap();
            assert_eq!(store.get(&space, "a").await.unwrap(), Some(document));
            let count = store.list(&space, "", None, 10).await.unwrap().len();
            assert!(
                count == 1 && ended.is_err() || count == 3,
                "{}: {count} of 3",
                store.place()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_stores_on_one_file_work_together() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let space = fresh_space();
    let mut racers = JoinSet::new();
    for n in 0..6 {
        let url = url.clone();
        let space = space.clone();
        racers.spawn(async move {
            let store = SqlStore::connect(&url).await.unwrap();
            for round in 0..20 {
                store
                    .commit(
                        &space,
                        vec![put(&format!("{n} {round}"), Expected::Absent).1],
                        None,
                    )
                    .await
                    .unwrap();
            }
        });
    }
    racers.join_all().await;
    let store = SqlStore::connect(&url).await.unwrap();
    assert_eq!(store.list(&space, "", None, 1000).await.unwrap().len(), 120);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_documents_move_at_once() {
    let (stores, _folder) = stores().await;
    for store in stores {
        let space = fresh_space();
        let documents: Vec<(String, Document)> = (0..10_000)
            .map(|n| (format!("{n:05}"), Document::new("m", n.to_string())))
            .collect();
        let puts = documents.iter().map(|(key, document)| DocumentChange::Put {
            key: format!("old/{key}"),
            document: document.clone(),
            expect: Expected::Absent,
        });
        store.commit(&space, puts.collect(), None).await.unwrap();
        let moves = documents
            .iter()
            .map(|(key, document)| DocumentChange::Move {
                from: format!("old/{key}"),
                to: format!("new/{key}"),
                version: document.version,
            });
        store.commit(&space, moves.collect(), None).await.unwrap();
        assert_eq!(store.list(&space, "old/", None, 1).await.unwrap(), []);
        let found = store.list(&space, "new/", None, 20_000).await.unwrap();
        assert!(
            found
                .iter()
                .map(|listed| listed.version)
                .eq(documents.iter().map(|(_, document)| document.version))
        );
        assert_eq!(
            store.get(&space, "new/04711").await.unwrap().unwrap().body,
            "4711"
        );
    }
}
