//! One holder at a time, tokens that only grow.
//!
//! Effects: test support.

use super::*;

pub(super) const CASES: &[StoreCase] = cases![
    a_held_lease_is_refused_and_told_of,
    a_released_lease_is_free,
    an_expired_lease_is_free_and_not_before,
    tokens_grow_with_every_grant,
    a_holder_that_asks_again_gets_its_own,
    renewing_makes_it_last,
    an_expired_lease_nobody_took_can_be_renewed,
    renewing_after_a_takeover_is_refused,
    over_takes_only_what_it_names,
    an_old_release_frees_nothing,
    leases_see_nothing_of_each_other,
    thirty_two_racers_have_one_holder,
    racers_for_an_expired_lease_have_one_holder,
    work_under_leases_never_overlaps,
];

fn ours(acquired: AcquireOutcome) -> FencingToken {
    match acquired {
        AcquireOutcome::Granted(fence) => fence,
        AcquireOutcome::Held(lease) => panic!("it is held: {lease:?}"),
    }
}

#[track_caller]
fn held(acquired: AcquireOutcome, holder: &str, token: u64) {
    match acquired {
        AcquireOutcome::Held(lease) => {
            assert_eq!((lease.holder.as_str(), lease.token), (holder, token));
            assert!(
                lease.remaining > Duration::ZERO && lease.remaining <= LONG,
                "{:?} left",
                lease.remaining
            );
        }
        AcquireOutcome::Granted(fence) => {
            panic!("{holder} should hold it, but it was granted: {fence:?}")
        }
    }
}

async fn a_held_lease_is_refused_and_told_of(cx: CaseContext) {
    let holder = "process 7 on „häuschen“ 🏠 ' \" \\";
    let fence = cx.fence("l", holder, LONG).await;
    assert_eq!(fence.name, "l");
    held(
        cx.acquire("l", "two", LONG, Claim::Free).await,
        holder,
        fence.token,
    );
    held(
        cx.acquire("l", "two", LONG, Claim::Free).await,
        holder,
        fence.token,
    );
}

async fn a_released_lease_is_free(cx: CaseContext) {
    let first = cx.fence("l", "one", LONG).await;
    cx.store.release(&cx.space, &first).await.unwrap();
    cx.store.release(&cx.space, &first).await.unwrap();
    let second = cx.fence("l", "two", LONG).await;
    assert!(second.token > first.token, "{first:?} {second:?}");
}

async fn an_expired_lease_is_free_and_not_before(cx: CaseContext) {
    let begun = Instant::now();
    let first = cx.fence("l", "one", SHORT).await;
    let second = eventually(
        async || match cx.acquire("l", "two", LONG, Claim::Free).await {
            AcquireOutcome::Granted(fence) => Some(fence),
            AcquireOutcome::Held(lease) => {
                assert_eq!(lease.token, first.token);
                assert!(lease.remaining <= SHORT);
                None
            }
        },
    )
    .await;
    assert!(
        begun.elapsed() + CLOCK_SLACK >= SHORT,
        "free after {:?}",
        begun.elapsed()
    );
    assert!(second.token > first.token);
}

async fn tokens_grow_with_every_grant(cx: CaseContext) {
    let mut last = cx.fence("l", "0", LONG).await;
    for n in 1..20 {
        let holder = n.to_string();
        let next = match n % 3 {
            0 => {
                cx.store.release(&cx.space, &last).await.unwrap();
                cx.fence("l", &holder, LONG).await
            }
            1 => cx.take_over(&last, &holder).await,
            _ => {
                assert!(
                    cx.store
                        .renew(&cx.space, &last, Duration::from_millis(1))
                        .await
                        .unwrap()
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
                cx.fence("l", &holder, LONG).await
            }
        };
        assert!(
            next.token > last.token,
            "grant {n}: {} after {}",
            next.token,
            last.token
        );
        last = next;
    }
}

async fn a_holder_that_asks_again_gets_its_own(cx: CaseContext) {
    let first = cx.fence("l", "one", SHORT).await;
    assert_eq!(ours(cx.acquire("l", "one", LONG, Claim::Free).await), first);
    assert_eq!(
        ours(
            cx.acquire("l", "one", LONG, Claim::Takeover(first.token))
                .await
        ),
        first
    );
    // The lease lasts for the time of the last request.
    tokio::time::sleep(SHORT).await;
    held(
        cx.acquire("l", "two", LONG, Claim::Free).await,
        "one",
        first.token,
    );
}

async fn renewing_makes_it_last(cx: CaseContext) {
    let fence = cx.fence("l", "one", SHORT).await;
    assert!(cx.store.renew(&cx.space, &fence, LONG).await.unwrap());
    tokio::time::sleep(SHORT).await;
    held(
        cx.acquire("l", "two", LONG, Claim::Free).await,
        "one",
        fence.token,
    );
    // The time counts from now, so a renewal may also shorten the lease.
    assert!(
        cx.store
            .renew(&cx.space, &fence, Duration::from_millis(1))
            .await
            .unwrap()
    );
    tokio::time::sleep(Duration::from_millis(20)).await;
    cx.fence("l", "two", LONG).await;
}

async fn an_expired_lease_nobody_took_can_be_renewed(cx: CaseContext) {
    let fence = cx.fence("l", "one", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(cx.store.renew(&cx.space, &fence, LONG).await.unwrap());
    held(
        cx.acquire("l", "two", LONG, Claim::Free).await,
        "one",
        fence.token,
    );
}

async fn renewing_after_a_takeover_is_refused(cx: CaseContext) {
    let first = cx.fence("l", "one", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let second = cx.fence("l", "two", LONG).await;
    assert!(!cx.store.renew(&cx.space, &first, LONG).await.unwrap());
    held(
        cx.acquire("l", "three", LONG, Claim::Free).await,
        "two",
        second.token,
    );
    // Nor after the new holder has released it.
    cx.store.release(&cx.space, &second).await.unwrap();
    assert!(!cx.store.renew(&cx.space, &first, LONG).await.unwrap());
    let third = cx.fence("l", "three", LONG).await;
    assert!(third.token > second.token);
}

async fn over_takes_only_what_it_names(cx: CaseContext) {
    let first = ours(cx.acquire("l", "one", LONG, Claim::Takeover(12)).await);
    for token in [first.token - 1, first.token + 1, 0] {
        held(
            cx.acquire("l", "two", LONG, Claim::Takeover(token)).await,
            "one",
            first.token,
        );
    }
    let second = ours(
        cx.acquire("l", "two", LONG, Claim::Takeover(first.token))
            .await,
    );
    assert!(second.token > first.token);
    // A takeover of an earlier holder does not apply to the current one.
    held(
        cx.acquire("l", "three", LONG, Claim::Takeover(first.token))
            .await,
        "two",
        second.token,
    );
}

async fn an_old_release_frees_nothing(cx: CaseContext) {
    let first = cx.fence("l", "one", LONG).await;
    let second = cx.take_over(&first, "two").await;
    cx.store.release(&cx.space, &first).await.unwrap();
    held(
        cx.acquire("l", "three", LONG, Claim::Free).await,
        "two",
        second.token,
    );
    cx.store
        .release(
            &cx.space,
            &FencingToken {
                name: "never given".into(),
                token: 3,
            },
        )
        .await
        .unwrap();
}

async fn leases_see_nothing_of_each_other(cx: CaseContext) {
    let spaces = [
        cx.clone(),
        cx.within("a"),
        cx.within("A"),
        cx.within("a").within("b"),
        cx.within("ab"),
    ];
    for (n, space) in spaces.iter().enumerate() {
        for name in ["l", "L", "l ", "b/l", "a/b/l"] {
            let fence = space.fence(name, &format!("{n} {name}"), LONG).await;
            held(
                space.acquire(name, "x", LONG, Claim::Free).await,
                &format!("{n} {name}"),
                fence.token,
            );
        }
    }
}

async fn thirty_two_racers_have_one_holder(cx: CaseContext) {
    let outcomes = race(32, |n| {
        let cx = cx.clone();
        async move { cx.acquire("l", &n.to_string(), LONG, Claim::Free).await }
    })
    .await;
    let fences: Vec<FencingToken> = outcomes
        .iter()
        .filter_map(|acquired| match acquired {
            AcquireOutcome::Granted(fence) => Some(fence.clone()),
            AcquireOutcome::Held(_) => None,
        })
        .collect();
    assert_eq!(fences.len(), 1, "{fences:?}");
    for acquired in outcomes {
        if let AcquireOutcome::Held(lease) = acquired {
            assert_eq!(lease.token, fences[0].token);
        }
    }
}

async fn racers_for_an_expired_lease_have_one_holder(cx: CaseContext) {
    let first = cx.fence("l", "one", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let outcomes = race(32, |n| {
        let cx = cx.clone();
        // Half of them know that the holder is gone, the other half see only that its time is over.
        let claim = if n % 2 == 0 {
            Claim::Free
        } else {
            Claim::Takeover(first.token)
        };
        async move { cx.acquire("l", &format!("racer {n}"), LONG, claim).await }
    })
    .await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|acquired| matches!(acquired, AcquireOutcome::Granted(_)))
            .count(),
        1
    );
}

async fn work_under_leases_never_overlaps(cx: CaseContext) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let inside = Arc::new(AtomicUsize::new(0));
    let tokens = race(6, |n| {
        let cx = cx.clone();
        let inside = inside.clone();
        async move {
            let mut tokens = Vec::new();
            while tokens.len() < 4 {
                let holder = format!("{n} {}", tokens.len());
                match cx.acquire("l", &holder, LONG, Claim::Free).await {
                    AcquireOutcome::Granted(fence) => {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        tokio::task::yield_now().await;
                        inside.fetch_sub(1, Ordering::SeqCst);
                        cx.store.release(&cx.space, &fence).await.unwrap();
                        tokens.push(fence.token);
                    }
                    AcquireOutcome::Held(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
            tokens
        }
    })
    .await;
    let mut all = tokens.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24, "every grant has a token of its own");
}
