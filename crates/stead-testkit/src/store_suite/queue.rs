//! Each job is delivered at least once, to one worker at a time, and none is lost.
//!
//! Effects: test support.

use super::*;
use stead_store::DeadLetter;

pub(super) const CASES: &[StoreCase] = cases![
    an_empty_queue_gives_nothing,
    a_job_is_delivered_with_its_payload,
    payloads_of_any_bytes_are_kept,
    jobs_come_in_the_order_they_were_added,
    jobs_come_in_the_order_they_are_due,
    a_delayed_job_is_not_early,
    later_ids_compare_greater,
    a_known_key_adds_nothing,
    a_known_key_stays_known_when_done_or_dead,
    keys_of_other_queues_are_not_known,
    a_done_job_does_not_come_again,
    a_claimed_job_is_hidden_and_comes_again,
    an_old_claim_can_do_nothing,
    a_late_worker_may_still_finish,
    extending_hides_for_longer,
    a_job_given_back_comes_again_after_its_delay,
    what_was_given_back_is_not_ours,
    the_last_attempt_given_back_is_dead,
    the_last_attempt_that_expires_is_dead,
    a_dead_job_is_nobodys,
    dead_letters_are_listed_in_pages,
    queues_see_nothing_of_each_other,
];

pub(super) fn job(payload: &str) -> Job {
    Job {
        payload: Bytes::copy_from_slice(payload.as_bytes()),
        dedup: None,
        delay: Duration::ZERO,
        max_attempts: 5,
    }
}

pub(super) fn keyed(payload: &str, key: &str) -> Job {
    Job {
        dedup: Some(key.to_owned()),
        ..job(payload)
    }
}

fn id(enqueued: EnqueueOutcome) -> String {
    match enqueued {
        EnqueueOutcome::New(id) => id,
        EnqueueOutcome::Existing(id) => panic!("{id} was there already"),
    }
}

impl CaseContext {
    pub(super) async fn ack(&self, queue: &str, claimed: &ClaimedJob) -> bool {
        self.store.ack(&self.space, queue, claimed).await.unwrap()
    }

    pub(super) async fn nack(
        &self,
        queue: &str,
        claimed: &ClaimedJob,
        delay: Duration,
        reason: &str,
    ) -> bool {
        self.store
            .nack(&self.space, queue, claimed, delay, reason)
            .await
            .unwrap()
    }

    pub(super) async fn dead(&self, queue: &str) -> Vec<DeadLetter> {
        self.store
            .dead_letters(&self.space, queue, None, 100)
            .await
            .unwrap()
    }
}

async fn an_empty_queue_gives_nothing(cx: CaseContext) {
    assert_eq!(cx.claim("q", LONG).await, None);
    assert_eq!(cx.dead("q").await, []);
    let never = ClaimedJob {
        id: "never".into(),
        payload: Bytes::new(),
        attempt: 1,
    };
    assert!(!cx.ack("q", &never).await);
    assert!(!cx.nack("q", &never, Duration::ZERO, "x").await);
    assert!(!cx.store.extend(&cx.space, "q", &never, LONG).await.unwrap());
}

async fn a_job_is_delivered_with_its_payload(cx: CaseContext) {
    let id = id(cx.enqueue("q", job("do it")).await);
    let claimed = cx.claim("q", LONG).await.unwrap();
    assert_eq!(
        claimed,
        ClaimedJob {
            id,
            payload: Bytes::from("do it"),
            attempt: 1
        }
    );
    assert_eq!(cx.claim("q", LONG).await, None);
    assert!(cx.ack("q", &claimed).await);
}

async fn payloads_of_any_bytes_are_kept(cx: CaseContext) {
    let every_byte: Vec<u8> = (0..=255).collect();
    for payload in [
        Bytes::new(),
        Bytes::from(every_byte),
        Bytes::from(vec![7; 256 * 1024]),
    ] {
        cx.enqueue(
            "q",
            Job {
                payload: payload.clone(),
                max_attempts: 1,
                ..job("")
            },
        )
        .await;
        let claimed = cx.claim("q", LONG).await.unwrap();
        assert!(
            claimed.payload == payload,
            "{} bytes come back as they were",
            payload.len()
        );
        assert!(cx.nack("q", &claimed, Duration::ZERO, "x").await);
        assert!(cx.dead("q").await.last().unwrap().payload == payload);
    }
}

async fn jobs_come_in_the_order_they_were_added(cx: CaseContext) {
    for n in 0..12 {
        cx.enqueue("q", job(&n.to_string())).await;
    }
    for n in 0..12 {
        assert_eq!(cx.claim("q", LONG).await.unwrap().payload, n.to_string());
    }
}

async fn jobs_come_in_the_order_they_are_due(cx: CaseContext) {
    // The jobs must be added faster than the distance of their due times, which a busy machine does
    // not always manage.
    for queue in (0..20).map(|n| n.to_string()) {
        let begun = Instant::now();
        for delay_ms in [180, 60, 120, 0] {
            cx.enqueue(
                &queue,
                Job {
                    delay: Duration::from_millis(delay_ms),
                    ..job(&delay_ms.to_string())
                },
            )
            .await;
        }
        if begun.elapsed() >= Duration::from_millis(50) {
            continue;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        for expected in ["0", "60", "120", "180"] {
            assert_eq!(cx.claim(&queue, LONG).await.unwrap().payload, expected);
        }
        return;
    }
    panic!("this machine is too slow to tell");
}

async fn a_delayed_job_is_not_early(cx: CaseContext) {
    let begun = Instant::now();
    cx.enqueue(
        "q",
        Job {
            delay: SHORT,
            ..job("later")
        },
    )
    .await;
    let claimed = cx.claim_soon("q", LONG).await;
    assert!(
        begun.elapsed() + CLOCK_SLACK >= SHORT,
        "it came after {:?}",
        begun.elapsed()
    );
    assert_eq!((&claimed.payload[..], claimed.attempt), (&b"later"[..], 1));
}

async fn later_ids_compare_greater(cx: CaseContext) {
    let mut last = String::new();
    for n in 0..20 {
        let delay = Duration::from_secs(100 - n);
        let next = id(cx.enqueue("q", Job { delay, ..job("") }).await);
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

async fn a_known_key_adds_nothing(cx: CaseContext) {
    let first = id(cx.enqueue("q", keyed("one", "key")).await);
    assert_eq!(
        cx.enqueue("q", keyed("two", "key")).await,
        EnqueueOutcome::Existing(first.clone())
    );
    id(cx.enqueue("q", keyed("three", "KEY")).await);
    id(cx.enqueue("q", keyed("four", "key ")).await);
    id(cx.enqueue("q", job("five")).await);
    id(cx.enqueue("q", job("five")).await);
    for payload in ["one", "three", "four", "five", "five"] {
        assert_eq!(cx.claim("q", LONG).await.unwrap().payload, payload);
    }
    assert_eq!(
        cx.enqueue("q", keyed("six", "key")).await,
        EnqueueOutcome::Existing(first)
    );
    assert_eq!(cx.claim("q", LONG).await, None);
}

async fn a_known_key_stays_known_when_done_or_dead(cx: CaseContext) {
    let done = id(cx.enqueue("q", keyed("", "done")).await);
    let claimed = cx.claim("q", LONG).await.unwrap();
    assert!(cx.ack("q", &claimed).await);
    assert_eq!(
        cx.enqueue("q", keyed("", "done")).await,
        EnqueueOutcome::Existing(done)
    );
    let dead = id(cx
        .enqueue(
            "q",
            Job {
                max_attempts: 1,
                ..keyed("", "dead")
            },
        )
        .await);
    let claimed = cx.claim("q", LONG).await.unwrap();
    assert!(cx.nack("q", &claimed, Duration::ZERO, "no").await);
    assert_eq!(
        cx.enqueue("q", keyed("", "dead")).await,
        EnqueueOutcome::Existing(dead)
    );
    assert_eq!(cx.claim("q", LONG).await, None);
}

async fn keys_of_other_queues_are_not_known(cx: CaseContext) {
    id(cx.enqueue("q", keyed("", "key")).await);
    id(cx.enqueue("r", keyed("", "key")).await);
    id(cx.within("a").enqueue("q", keyed("", "key")).await);
}

async fn a_done_job_does_not_come_again(cx: CaseContext) {
    cx.enqueue("q", job("once")).await;
    let claimed = cx.claim("q", Duration::from_millis(1)).await.unwrap();
    assert!(cx.ack("q", &claimed).await);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(
        (cx.claim("q", LONG).await, cx.dead("q").await),
        (None, vec![])
    );
}

async fn a_claimed_job_is_hidden_and_comes_again(cx: CaseContext) {
    let id = id(cx.enqueue("q", job("again")).await);
    let delivery = |attempt| ClaimedJob {
        id: id.clone(),
        payload: Bytes::from("again"),
        attempt,
    };
    let begun = Instant::now();
    assert_eq!(cx.claim("q", SHORT).await, Some(delivery(1)));
    assert_eq!(
        cx.claim_soon("q", Duration::from_millis(1)).await,
        delivery(2)
    );
    assert!(
        begun.elapsed() + CLOCK_SLACK >= SHORT,
        "it came after {:?}",
        begun.elapsed()
    );
    assert_eq!(cx.claim_soon("q", LONG).await, delivery(3));
    assert_eq!(cx.claim("q", LONG).await, None);
}

async fn an_old_claim_can_do_nothing(cx: CaseContext) {
    cx.enqueue("q", job("shared")).await;
    let first = cx.claim("q", Duration::from_millis(1)).await.unwrap();
    let second = cx.claim_soon("q", LONG).await;
    assert_eq!((second.id.as_str(), second.attempt), (first.id.as_str(), 2));
    assert!(!cx.ack("q", &first).await);
    assert!(!cx.nack("q", &first, Duration::ZERO, "old").await);
    assert!(
        !cx.store
            .extend(&cx.space, "q", &first, Duration::ZERO)
            .await
            .unwrap()
    );
    // The second queue is not affected.
    assert_eq!(cx.claim("q", LONG).await, None);
    assert!(cx.ack("q", &second).await);
    assert_eq!(cx.claim("q", LONG).await, None);
}

async fn a_late_worker_may_still_finish(cx: CaseContext) {
    cx.enqueue("q", job("slow")).await;
    let claimed = cx.claim("q", Duration::from_millis(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(cx.ack("q", &claimed).await, "it was not delivered again");
    assert_eq!(cx.claim("q", LONG).await, None);
}

async fn extending_hides_for_longer(cx: CaseContext) {
    cx.enqueue("q", job("long")).await;
    let claimed = cx.claim("q", LONG).await.unwrap();
    let begun = Instant::now();
    assert!(
        cx.store
            .extend(&cx.space, "q", &claimed, SHORT)
            .await
            .unwrap()
    );
    let again = cx.claim_soon("q", Duration::from_millis(1)).await;
    assert!(
        begun.elapsed() + CLOCK_SLACK >= SHORT,
        "it came after {:?}",
        begun.elapsed()
    );
    assert_eq!(again.attempt, 2);
    assert!(cx.store.extend(&cx.space, "q", &again, LONG).await.unwrap());
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(cx.claim("q", LONG).await, None);
    assert!(cx.ack("q", &again).await);
}

async fn a_job_given_back_comes_again_after_its_delay(cx: CaseContext) {
    let id = id(cx.enqueue("q", job("try")).await);
    let first = cx.claim("q", LONG).await.unwrap();
    assert!(cx.nack("q", &first, Duration::ZERO, "not yet").await);
    let second = cx.claim_soon("q", LONG).await;
    assert_eq!((second.id.as_str(), second.attempt), (id.as_str(), 2));
    let begun = Instant::now();
    assert!(cx.nack("q", &second, SHORT, "not yet").await);
    let third = cx.claim_soon("q", LONG).await;
    assert!(
        begun.elapsed() + CLOCK_SLACK >= SHORT,
        "it came after {:?}",
        begun.elapsed()
    );
    assert_eq!((third.id, third.attempt), (id, 3));
    assert_eq!(cx.dead("q").await, []);
}

async fn what_was_given_back_is_not_ours(cx: CaseContext) {
    cx.enqueue("q", job("back")).await;
    let claimed = cx.claim("q", LONG).await.unwrap();
    assert!(
        cx.nack("q", &claimed, Duration::from_millis(1), "first")
            .await
    );
    assert!(!cx.nack("q", &claimed, LONG, "again").await);
    assert!(
        !cx.store
            .extend(&cx.space, "q", &claimed, LONG)
            .await
            .unwrap()
    );
    assert!(!cx.ack("q", &claimed).await);
    assert_eq!(cx.claim_soon("q", LONG).await.attempt, 2);
}

async fn the_last_attempt_given_back_is_dead(cx: CaseContext) {
    let id = id(cx
        .enqueue(
            "q",
            Job {
                max_attempts: 2,
                ..job("hopeless")
            },
        )
        .await);
    for reason in ["first failure", "second failure ü"] {
        let claimed = cx.claim_soon("q", LONG).await;
        assert!(cx.nack("q", &claimed, Duration::ZERO, reason).await);
    }
    assert_eq!(cx.claim("q", LONG).await, None);
    let expected = DeadLetter {
        id,
        payload: Bytes::from("hopeless"),
        attempts: 2,
        reason: "second failure ü".to_owned(),
    };
    assert_eq!(cx.dead("q").await, [expected]);
}

async fn the_last_attempt_that_expires_is_dead(cx: CaseContext) {
    let id = id(cx
        .enqueue(
            "q",
            Job {
                max_attempts: 2,
                ..job("crashes")
            },
        )
        .await);
    for attempt in 1..=2 {
        let claimed = cx.claim_soon("q", Duration::from_millis(1)).await;
        assert_eq!((&claimed.id, claimed.attempt), (&id, attempt));
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    // A dead letter does not block other jobs.
    cx.enqueue("q", job("alive")).await;
    assert_eq!(cx.claim("q", LONG).await.unwrap().payload, "alive");
    assert_eq!(cx.claim("q", LONG).await, None);
    let dead = cx.dead("q").await;
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (&dead[0].id, &dead[0].payload[..], dead[0].attempts),
        (&id, &b"crashes"[..], 2)
    );
    assert!(!dead[0].reason.is_empty(), "it says why");
}

async fn a_dead_job_is_nobodys(cx: CaseContext) {
    cx.enqueue(
        "q",
        Job {
            max_attempts: 1,
            ..job("")
        },
    )
    .await;
    let claimed = cx.claim("q", Duration::from_millis(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(cx.claim("q", LONG).await, None);
    assert!(!cx.ack("q", &claimed).await);
    assert!(!cx.nack("q", &claimed, Duration::ZERO, "late").await);
    assert!(
        !cx.store
            .extend(&cx.space, "q", &claimed, LONG)
            .await
            .unwrap()
    );
    assert_eq!(cx.dead("q").await.len(), 1);
}

async fn dead_letters_are_listed_in_pages(cx: CaseContext) {
    let mut expected = Vec::new();
    for n in 0..7 {
        let id = id(cx
            .enqueue(
                "q",
                Job {
                    max_attempts: 1,
                    ..job(&n.to_string())
                },
            )
            .await);
        let claimed = cx.claim("q", LONG).await.unwrap();
        let reason = format!("reason {n}");
        assert!(cx.nack("q", &claimed, Duration::ZERO, &reason).await);
        expected.push(DeadLetter {
            id,
            payload: Bytes::from(n.to_string()),
            attempts: 1,
            reason,
        });
    }
    let mut read: Vec<DeadLetter> = Vec::new();
    loop {
        let after = read.last().map(|dead| dead.id.as_str());
        let page = cx
            .store
            .dead_letters(&cx.space, "q", after, 3)
            .await
            .unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read, expected);
    assert_eq!(cx.dead("other").await, []);
}

async fn queues_see_nothing_of_each_other(cx: CaseContext) {
    let spaces = [
        cx.clone(),
        cx.within("a"),
        cx.within("A"),
        cx.within("a").within("b"),
        cx.within("ab"),
    ];
    let queues = ["q", "Q", "b/q", "a/b/q"];
    for (n, space) in spaces.iter().enumerate() {
        for queue in queues {
            space.enqueue(queue, job(&format!("{n} {queue}"))).await;
        }
    }
    for (n, space) in spaces.iter().enumerate() {
        for queue in queues {
            let claimed = space.claim(queue, LONG).await.unwrap();
            assert_eq!(claimed.payload, format!("{n} {queue}"));
            // The id alone is no proof in another space.
            assert!(!cx.within("elsewhere").ack(queue, &claimed).await);
            assert!(!space.ack("none", &claimed).await);
            assert!(space.ack(queue, &claimed).await);
            assert_eq!(space.claim(queue, LONG).await, None);
        }
    }
}
