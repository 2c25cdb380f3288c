//! Cases about the inbox of a session.
//!
//! Effects: test support.

use super::{CaseContext, LONG, StoreCase, cases, race};
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use stead_core::{InputId, SessionId};
use stead_store::{
    InboxError, InputOutcome, InputStatus, Inserted, MAX_BODY_BYTES, MAX_INPUT_KEY_BYTES,
    MAX_WAITING_INPUTS, SessionInbox, StoreError,
};

pub(super) const CASES: &[StoreCase] = cases![
    rows_wait_in_order_until_they_are_settled,
    inserters_of_many_processes_have_one_order,
    the_same_key_is_the_same_input,
    one_key_at_once_is_one_input,
    what_is_too_long_is_refused,
    a_full_inbox_refuses_until_a_row_is_settled,
    settling_again_changes_nothing,
    a_replaced_holder_settles_nothing,
    inboxes_of_sessions_are_apart,
    a_cleared_inbox_begins_anew,
    old_keys_and_outcomes_are_forgotten,
];

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

fn inbox(cx: &CaseContext) -> SessionInbox {
    SessionInbox::new(cx.store.clone(), &cx.space, &session())
}

async fn insert_new(inbox: &SessionInbox, key: Option<&str>, body: &str) -> InputId {
    let body = Bytes::copy_from_slice(body.as_bytes());
    match inbox.insert(key, body).await.unwrap() {
        Inserted::New(id) => id,
        Inserted::Existing { id, status } => panic!("{id} is {status:?} already"),
    }
}

async fn bodies(inbox: &SessionInbox) -> Vec<String> {
    let rows = inbox.waiting(MAX_WAITING_INPUTS).await.unwrap();
    rows.into_iter()
        .map(|row| String::from_utf8(row.body.to_vec()).unwrap())
        .collect()
}

fn recorded(seq: u64) -> InputOutcome {
    InputOutcome::Recorded { seq }
}

async fn rows_wait_in_order_until_they_are_settled(cx: CaseContext) {
    let inbox = inbox(&cx);
    assert_eq!(inbox.waiting(10).await.unwrap(), []);
    let mut ids = Vec::new();
    for body in ["a", "b", "c", ""] {
        ids.push(insert_new(&inbox, None, body).await);
    }
    assert!(ids.is_sorted());
    assert_eq!(bodies(&inbox).await, ["a", "b", "c", ""]);
    let first = inbox.waiting(2).await.unwrap();
    let first: Vec<&InputId> = first.iter().map(|row| &row.id).collect();
    assert_eq!(first, [&ids[0], &ids[1]]);
    let refused = InputOutcome::Refused {
        reason: "no".to_owned(),
    };
    let settled = [(ids[2].clone(), recorded(7)), (ids[0].clone(), refused)];
    inbox.settle(&settled, None).await.unwrap();
    assert_eq!(bodies(&inbox).await, ["b", ""]);
    let mut found = Vec::new();
    for id in &ids {
        found.push(inbox.status(id).await.unwrap());
    }
    let refused = InputStatus::Refused {
        reason: "no".to_owned(),
    };
    assert_eq!(
        found,
        [
            Some(refused),
            Some(InputStatus::Waiting),
            Some(InputStatus::Recorded { seq: 7 }),
            Some(InputStatus::Waiting),
        ]
    );
    for unknown in [
        InputId::fresh(),
        InputId::numbered(1),
        InputId::numbered(99),
    ] {
        assert_eq!(inbox.status(&unknown).await.unwrap(), None, "{unknown}");
    }
}

async fn inserters_of_many_processes_have_one_order(cx: CaseContext) {
    const INSERTERS: usize = 8;
    const ROWS: usize = 8;
    let made = race(INSERTERS, |inserter| {
        let inbox = inbox(&cx);
        async move {
            let mut ids = Vec::new();
            for row in 0..ROWS {
                ids.push(insert_new(&inbox, None, &format!("{inserter}/{row}")).await);
            }
            ids
        }
    })
    .await;
    for ids in &made {
        assert!(ids.is_sorted(), "later insertions come later: {ids:?}");
    }
    let rows = inbox(&cx).waiting(MAX_WAITING_INPUTS).await.unwrap();
    let numbers: Vec<Option<u64>> = rows.iter().map(|row| row.id.number()).collect();
    let wanted: Vec<Option<u64>> = (1..=(INSERTERS * ROWS) as u64).map(Some).collect();
    assert_eq!(numbers, wanted);
    for inserter in 0..INSERTERS {
        let mine: Vec<String> = rows
            .iter()
            .map(|row| String::from_utf8(row.body.to_vec()).unwrap())
            .filter(|body| body.starts_with(&format!("{inserter}/")))
            .collect();
        let wanted: Vec<String> = (0..ROWS).map(|row| format!("{inserter}/{row}")).collect();
        assert_eq!(mine, wanted);
    }
}

async fn the_same_key_is_the_same_input(cx: CaseContext) {
    let inbox = inbox(&cx);
    let long = "k".repeat(MAX_INPUT_KEY_BYTES);
    for key in ["", "k", "K", "k ", "ä", &long] {
        let id = insert_new(&inbox, Some(key), key).await;
        let again = inbox.insert(Some(key), Bytes::from(key.to_owned())).await;
        let status = InputStatus::Waiting;
        let existing = Inserted::Existing {
            id: id.clone(),
            status,
        };
        assert_eq!(again.unwrap(), existing, "{key:?}");
        let other = inbox.insert(Some(key), Bytes::from("other")).await;
        assert!(
            matches!(&other, Err(InboxError::KeyConflict(used)) if used == key),
            "{key:?}: {other:?}"
        );
        inbox
            .settle(&[(id.clone(), recorded(3))], None)
            .await
            .unwrap();
        let again = inbox.insert(Some(key), Bytes::from(key.to_owned())).await;
        let status = InputStatus::Recorded { seq: 3 };
        assert_eq!(again.unwrap(), Inserted::Existing { id, status }, "{key:?}");
    }
    assert_eq!(bodies(&inbox).await, Vec::<String>::new());
}

async fn one_key_at_once_is_one_input(cx: CaseContext) {
    let made = race(8, |_| {
        let inbox = inbox(&cx);
        async move { inbox.insert(Some("k"), Bytes::from("same")).await.unwrap() }
    })
    .await;
    let new = made
        .iter()
        .filter(|inserted| matches!(inserted, Inserted::New(_)));
    assert_eq!(new.count(), 1, "{made:?}");
    assert_eq!(bodies(&inbox(&cx)).await, ["same"]);
}

async fn what_is_too_long_is_refused(cx: CaseContext) {
    let inbox = inbox(&cx);
    let key = "k".repeat(MAX_INPUT_KEY_BYTES + 1);
    let refused = inbox.insert(Some(&key), Bytes::new()).await.unwrap_err();
    assert!(
        refused.to_string().contains("at most 256 bytes"),
        "{refused}"
    );
    let body = Bytes::from(vec![b'x'; MAX_BODY_BYTES + 1]);
    let refused = inbox.insert(None, body.clone()).await.unwrap_err();
    assert!(
        matches!(refused, InboxError::TooLarge { part: "body", .. }),
        "{refused}"
    );
    let largest = body.slice(1..);
    inbox.insert(None, largest.clone()).await.unwrap();
    assert!(inbox.waiting(9).await.unwrap()[0].body == largest);
}

async fn a_full_inbox_refuses_until_a_row_is_settled(cx: CaseContext) {
    let inbox = inbox(&cx);
    let mut ids = Vec::new();
    for _ in 0..MAX_WAITING_INPUTS {
        ids.push(insert_new(&inbox, None, "x").await);
    }
    for _ in 0..2 {
        let refused = inbox.insert(None, Bytes::from("y")).await;
        assert!(matches!(refused, Err(InboxError::Full(_))), "{refused:?}");
    }
    // From the middle, so that the oldest row is no measure.
    inbox
        .settle(&[(ids[500].clone(), recorded(1))], None)
        .await
        .unwrap();
    insert_new(&inbox, None, "y").await;
    let refused = inbox.insert(None, Bytes::from("z")).await;
    assert!(matches!(refused, Err(InboxError::Full(_))), "{refused:?}");
    let all: Vec<(InputId, InputOutcome)> = ids.into_iter().map(|id| (id, recorded(2))).collect();
    inbox.settle(&all, None).await.unwrap();
    assert_eq!(bodies(&inbox).await, ["y"]);
}

async fn settling_again_changes_nothing(cx: CaseContext) {
    let inbox = inbox(&cx);
    let id = insert_new(&inbox, None, "a").await;
    let unknown = [InputId::numbered(77), InputId::fresh()].map(|id| (id, recorded(1)));
    inbox.settle(&unknown, None).await.unwrap();
    inbox.settle(&[], None).await.unwrap();
    assert_eq!(bodies(&inbox).await, ["a"]);
    for seq in [4, 5] {
        inbox
            .settle(&[(id.clone(), recorded(seq))], None)
            .await
            .unwrap();
        let status = inbox.status(&id).await.unwrap();
        assert_eq!(status, Some(InputStatus::Recorded { seq: 4 }));
    }
    assert_eq!(inbox.status(&unknown[0].0).await.unwrap(), None);
}

async fn a_replaced_holder_settles_nothing(cx: CaseContext) {
    let inbox = inbox(&cx);
    let id = insert_new(&inbox, None, "a").await;
    let first = cx.fence("session/s", "first", LONG).await;
    let second = cx.take_over(&first, "second").await;
    let settled = [(id.clone(), recorded(2))];
    let refused = inbox.settle(&settled, Some(&first)).await;
    assert!(
        matches!(refused, Err(InboxError::Store(StoreError::Fenced { .. }))),
        "{refused:?}"
    );
    assert_eq!(bodies(&inbox).await, ["a"]);
    inbox.settle(&settled, Some(&second)).await.unwrap();
    assert_eq!(bodies(&inbox).await, Vec::<String>::new());
}

async fn inboxes_of_sessions_are_apart(cx: CaseContext) {
    let sessions = ["s", "s2", "S"].map(|id| SessionId::new(id).unwrap());
    let of = |session| SessionInbox::new(cx.store.clone(), &cx.space, session);
    for session in &sessions {
        insert_new(&of(session), Some("key"), session.as_str()).await;
    }
    for session in &sessions {
        assert_eq!(bodies(&of(session)).await, [session.as_str()]);
    }
}

async fn a_cleared_inbox_begins_anew(cx: CaseContext) {
    let other = SessionInbox::new(cx.store.clone(), &cx.space, &SessionId::new("s2").unwrap());
    insert_new(&other, None, "other").await;
    let inbox = inbox(&cx);
    inbox.clear().await.unwrap();
    let id = insert_new(&inbox, Some("k"), "a").await;
    insert_new(&inbox, None, "b").await;
    inbox
        .settle(&[(id.clone(), recorded(2))], None)
        .await
        .unwrap();
    inbox.clear().await.unwrap();
    assert_eq!(bodies(&inbox).await, Vec::<String>::new());
    assert_eq!(inbox.status(&id).await.unwrap(), None);
    assert_eq!(insert_new(&inbox, Some("k"), "c").await.number(), Some(1));
    assert_eq!(bodies(&other).await, ["other"]);
}

async fn old_keys_and_outcomes_are_forgotten(cx: CaseContext) {
    let day = |days: i64| {
        Timestamp::UNIX_EPOCH
            .checked_add(SignedDuration::from_hours(days * 24))
            .unwrap()
    };
    let then = inbox(&cx).with_time(day(1));
    let now = inbox(&cx).with_time(day(3));
    let mut old = Vec::new();
    for n in 0..200_u64 {
        let key = format!("old {n}");
        let id = insert_new(&then, Some(&key), &key).await;
        then.settle(&[(id.clone(), recorded(n))], None)
            .await
            .unwrap();
        old.push(id);
    }
    // Nothing is forgotten while it is one of the newest.
    let again = now.insert(Some("old 0"), Bytes::from("old 0")).await;
    assert!(matches!(again, Ok(Inserted::Existing { .. })), "{again:?}");
    let mut pending = Vec::new();
    for n in 0..1100_u64 {
        let key = (n % 2 == 0).then(|| format!("new {n}"));
        let id = insert_new(&now, key.as_deref(), "x").await;
        pending.push((id, recorded(1000 + n)));
        if pending.len() == 100 {
            now.settle(&pending, None).await.unwrap();
            pending.clear();
        }
    }
    // The first 200 are older than a day, and more than 1,000 came after them.
    assert_eq!(now.status(&old[0]).await.unwrap(), None);
    insert_new(&now, Some("old 0"), "another body").await;
    // The newest of the old ones are not among the newest 1,000 any more either, but the outcomes
    // of a whole segment are forgotten together.
    let segments = cx.keys("inbox/s/d/").await;
    assert!(segments.len() < 1300 / 64 + 1, "{segments:?}");
    let recent = now.insert(Some("new 2"), Bytes::from("x")).await;
    assert!(
        matches!(recent, Ok(Inserted::Existing { .. })),
        "{recent:?}"
    );
}
