//! Concurrent workers of one queue.
//!
//! Effects: test support.

use super::queue::{job, keyed};
use super::*;
use std::collections::BTreeMap;

pub(super) const CASES: &[StoreCase] = cases![
    racing_workers_do_each_job_once,
    racing_workers_share_what_was_dropped,
    racing_adds_of_one_key_add_one_job,
];

/// Claims jobs until all workers together have done `total`, and returns those that this worker
/// did.
async fn work(
    cx: CaseContext,
    done: Arc<std::sync::atomic::AtomicUsize>,
    total: usize,
) -> Vec<String> {
    use std::sync::atomic::Ordering;
    let mut mine = Vec::new();
    let end = Instant::now() + CASE_DEADLINE / 2;
    while done.load(Ordering::SeqCst) < total {
        assert!(Instant::now() < end, "jobs are missing");
        match cx.claim("q", LONG).await {
            Some(claimed) => {
                assert!(cx.ack("q", &claimed).await);
                done.fetch_add(1, Ordering::SeqCst);
                mine.push(String::from_utf8(claimed.payload.to_vec()).unwrap());
            }
            None => tokio::time::sleep(POLL).await,
        }
    }
    mine
}

async fn racing_workers_do_each_job_once(cx: CaseContext) {
    const JOBS: usize = 200;
    for n in 0..JOBS {
        cx.enqueue("q", job(&n.to_string())).await;
    }
    let done = Arc::default();
    let shares = race(16, |_| work(cx.clone(), Arc::clone(&done), JOBS)).await;
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    shares
        .into_iter()
        .flatten()
        .for_each(|payload| *times.entry(payload).or_default() += 1);
    assert_eq!(times.len(), JOBS);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert_eq!(
        (cx.claim("q", LONG).await, cx.dead("q").await),
        (None, vec![])
    );
}

async fn racing_workers_share_what_was_dropped(cx: CaseContext) {
    const JOBS: usize = 20;
    for n in 0..JOBS {
        cx.enqueue("q", job(&n.to_string())).await;
    }
    for _ in 0..JOBS {
        cx.claim("q", Duration::from_millis(1)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let done = Arc::default();
    let mut all = race(8, |_| work(cx.clone(), Arc::clone(&done), JOBS))
        .await
        .concat();
    all.sort_by_key(|payload| payload.parse::<usize>().unwrap());
    assert_eq!(all, (0..JOBS).map(|n| n.to_string()).collect::<Vec<_>>());
}

async fn racing_adds_of_one_key_add_one_job(cx: CaseContext) {
    let outcomes = race(16, |n| {
        let cx = cx.clone();
        async move { cx.enqueue("q", keyed(&n.to_string(), "key")).await }
    })
    .await;
    let new: Vec<&String> = outcomes
        .iter()
        .filter_map(|enqueued| match enqueued {
            EnqueueOutcome::New(id) => Some(id),
            EnqueueOutcome::Existing(_) => None,
        })
        .collect();
    assert_eq!(new.len(), 1);
    for enqueued in &outcomes {
        let (EnqueueOutcome::New(id) | EnqueueOutcome::Existing(id)) = enqueued;
        assert_eq!(id, new[0]);
    }
    assert_eq!(cx.claim("q", LONG).await.unwrap().id, *new[0]);
    assert_eq!(cx.claim("q", LONG).await, None);
}
