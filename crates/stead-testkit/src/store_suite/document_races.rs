//! Fenced and concurrent commits.
//!
//! Effects: test support.

use super::*;

pub(super) const CASES: &[StoreCase] = cases![
    a_commit_with_the_latest_fence_is_made,
    a_commit_with_an_older_fence_is_refused,
    thirty_two_creates_have_one_winner,
    concurrent_increments_lose_nothing,
    racing_moves_have_one_winner,
    readers_see_whole_commits_of_one_document,
];

async fn a_commit_with_the_latest_fence_is_made(cx: CaseContext) {
    let fence = cx.fence("lease", "one", LONG).await;
    cx.store
        .commit(
            &cx.space,
            vec![put("a", "1", Expected::Absent).1],
            Some(&fence),
        )
        .await
        .unwrap();
    // The lease has expired, but nobody else acquired it.
    let late = cx.fence("late", "one", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    cx.store
        .commit(
            &cx.space,
            vec![put("b", "1", Expected::Absent).1],
            Some(&late),
        )
        .await
        .unwrap();
    assert_eq!(cx.keys("").await, ["a", "b"]);
}

async fn a_commit_with_an_older_fence_is_refused(cx: CaseContext) {
    let first = cx.fence("lease", "one", LONG).await;
    let second = cx.take_over(&first, "two").await;
    assert_fenced(
        &cx.store
            .commit(
                &cx.space,
                vec![put("a", "1", Expected::Any).1],
                Some(&first),
            )
            .await,
    );
    assert_eq!(cx.get("a").await, None);
    cx.store
        .commit(
            &cx.space,
            vec![put("a", "2", Expected::Absent).1],
            Some(&second),
        )
        .await
        .unwrap();
    // A fenced writer gets `Fenced`, even if there are other errors.
    assert_fenced(
        &cx.store
            .commit(
                &cx.space,
                vec![put("a", "1", Expected::Absent).1],
                Some(&first),
            )
            .await,
    );
    // A lease of the same name in another space is another lease.
    let elsewhere = cx.within("elsewhere");
    let third = elsewhere.fence("lease", "three", LONG).await;
    elsewhere.take_over(&third, "four").await;
    cx.store
        .commit(
            &cx.space,
            vec![put("a", "3", Expected::Any).1],
            Some(&second),
        )
        .await
        .unwrap();
    assert_eq!(cx.body("a").await.unwrap(), "3");
}

async fn thirty_two_creates_have_one_winner(cx: CaseContext) {
    let outcomes = race(32, |n| {
        let cx = cx.clone();
        async move {
            (
                n,
                cx.commit(vec![put("a", &n.to_string(), Expected::Absent).1])
                    .await,
            )
        }
    })
    .await;
    let winners: Vec<String> = outcomes
        .iter()
        .filter(|(_, made)| made.is_ok())
        .map(|(n, _)| n.to_string())
        .collect();
    assert_eq!(winners, [cx.body("a").await.unwrap()]);
    outcomes
        .iter()
        .filter(|(_, made)| made.is_err())
        .for_each(|(_, made)| assert_conflict(made));
}

async fn concurrent_increments_lose_nothing(cx: CaseContext) {
    const WRITERS: usize = 8;
    const EACH: usize = 10;
    cx.create("counter", "0").await;
    race(WRITERS, |_| {
        let cx = cx.clone();
        async move {
            let mut made = 0;
            while made < EACH {
                let found = cx.get("counter").await.unwrap();
                let count: usize = std::str::from_utf8(&found.body).unwrap().parse().unwrap();
                let next = put(
                    "counter",
                    &(count + 1).to_string(),
                    Expected::Version(found.version),
                )
                .1;
                match cx.commit(vec![next]).await {
                    Ok(()) => made += 1,
                    conflict => assert_conflict(&conflict),
                }
            }
        }
    })
    .await;
    assert_eq!(
        cx.body("counter").await.unwrap(),
        (WRITERS * EACH).to_string()
    );
}

async fn racing_moves_have_one_winner(cx: CaseContext) {
    let version = cx.create("a", "1").await;
    let outcomes = race(8, |n| {
        let cx = cx.clone();
        async move {
            cx.commit(vec![relocate("a", &format!("to/{n}"), version)])
                .await
        }
    })
    .await;
    assert_eq!(outcomes.iter().filter(|made| made.is_ok()).count(), 1);
    assert_eq!((cx.get("a").await, cx.keys("to/").await.len()), (None, 1));
}

async fn readers_see_whole_commits_of_one_document(cx: CaseContext) {
    // Meta and body always come from the same writer.
    let change = |n: u8| {
        let document = Document::new(vec![n; 4000], vec![n; 60_000]);
        DocumentChange::Put {
            key: "a".into(),
            document,
            expect: Expected::Any,
        }
    };
    cx.commit(vec![change(0)]).await.unwrap();
    race(4, |n| {
        let cx = cx.clone();
        async move {
            for round in 0..10 {
                if n == 0 {
                    cx.commit(vec![change(round)]).await.unwrap();
                }
                let found = cx.get("a").await.unwrap();
                let of = found.body[0];
                let whole = found.meta.iter().chain(&found.body).all(|byte| *byte == of);
                assert!(
                    whole && found.meta.len() == 4000 && found.body.len() == 60_000,
                    "a mixture was read"
                );
            }
        }
    })
    .await;
}
