//! Compare-and-set, atomicity, listing, isolation, races.

use super::*;
use stead_store::{MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_META_BYTES};

pub(super) const CASES: &[StoreCase] = cases![
    what_is_absent_is_none,
    what_is_put_is_got,
    empty_and_binary_contents_are_kept,
    the_largest_document_is_kept,
    what_is_too_large_is_refused,
    put_any_writes_over_anything,
    put_absent_conflicts_with_a_document,
    put_version_needs_exactly_that_version,
    delete_in_all_forms,
    check_in_all_forms,
    a_moved_document_keeps_its_version_and_content,
    a_move_onto_something_conflicts,
    a_move_of_another_version_conflicts,
    a_conflict_names_the_key,
    a_failing_commit_applies_nothing,
    a_key_in_two_changes_is_refused,
    an_empty_commit_is_made,
    a_remade_document_is_another,
    a_commit_of_three_thousand_changes,
    several_large_documents_in_one_commit,
    a_listing_shows_key_version_and_meta,
    pages_follow_each_other,
    after_need_not_exist,
    a_listing_of_nothing_is_empty,
    spaces_see_nothing_of_each_other,
    a_commit_with_the_latest_fence_is_made,
    a_commit_with_an_older_fence_is_refused,
    thirty_two_creates_have_one_winner,
    concurrent_increments_lose_nothing,
    racing_moves_have_one_winner,
    readers_see_whole_commits_of_one_document,
];

async fn what_is_absent_is_none(cx: CaseContext) {
    assert_eq!(cx.get("a").await, None);
    cx.create("b", "1").await;
    assert_eq!(cx.get("a").await, None);
}

async fn what_is_put_is_got(cx: CaseContext) {
    let document = Document::new("meta", "body");
    let change = DocumentChange::Put {
        key: "a".into(),
        document: document.clone(),
        expect: Expected::Absent,
    };
    cx.commit(vec![change]).await.unwrap();
    assert_eq!(cx.get("a").await, Some(document));
}

async fn empty_and_binary_contents_are_kept(cx: CaseContext) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let documents = [
        ("empty", Document::new("", "")),
        ("meta only", Document::new("m", "")),
        ("body only", Document::new("", "b")),
        (
            "binary",
            Document::new(every_byte.clone(), every_byte.repeat(4)),
        ),
        (
            "version 0",
            Document {
                version: DocVersion(0),
                meta: Bytes::new(),
                body: Bytes::from_static(b"0"),
            },
        ),
        (
            "version max",
            Document {
                version: DocVersion(u128::MAX),
                meta: Bytes::new(),
                body: Bytes::new(),
            },
        ),
    ];
    for (key, document) in &documents {
        let change = DocumentChange::Put {
            key: (*key).into(),
            document: document.clone(),
            expect: Expected::Absent,
        };
        cx.commit(vec![change]).await.unwrap();
    }
    for (key, document) in documents {
        assert_eq!(cx.get(key).await, Some(document), "{key}");
    }
}

async fn the_largest_document_is_kept(cx: CaseContext) {
    let document = Document::new(vec![0xfe; MAX_META_BYTES], vec![0x00; MAX_BODY_BYTES]);
    let key = "k".repeat(MAX_KEY_BYTES);
    let change = DocumentChange::Put {
        key: key.clone(),
        document: document.clone(),
        expect: Expected::Absent,
    };
    cx.commit(vec![change]).await.unwrap();
    assert!(
        cx.get(&key).await == Some(document),
        "a document of the largest size comes back as it was"
    );
}

async fn what_is_too_large_is_refused(cx: CaseContext) {
    let put = |key: String, document| DocumentChange::Put {
        key,
        document,
        expect: Expected::Any,
    };
    let long = "k".repeat(MAX_KEY_BYTES + 1);
    let refused = [
        put(long.clone(), Document::new("", "")),
        put("a".into(), Document::new(vec![0; MAX_META_BYTES + 1], "")),
        put("a".into(), Document::new("", vec![0; MAX_BODY_BYTES + 1])),
    ];
    for change in refused {
        let outcome = cx
            .commit(vec![super::put("b", "", Expected::Any).1, change])
            .await;
        assert!(
            matches!(outcome, Err(StoreError::Store { .. })),
            "{outcome:?}"
        );
    }
    let moved_to = cx.create("a", "1").await;
    assert!(
        cx.commit(vec![relocate("a", &long, moved_to)])
            .await
            .is_err()
    );
    assert_eq!(cx.keys("").await, ["a"]);
}

async fn put_any_writes_over_anything(cx: CaseContext) {
    for body in ["1", "2", "2"] {
        let (version, change) = put("a", body, Expected::Any);
        cx.commit(vec![change]).await.unwrap();
        let found = cx.get("a").await.unwrap();
        assert_eq!((found.version, &found.body[..]), (version, body.as_bytes()));
    }
    assert_eq!(cx.keys("").await, ["a"]);
}

async fn put_absent_conflicts_with_a_document(cx: CaseContext) {
    cx.create("a", "1").await;
    assert_conflict(&cx.commit(vec![put("a", "2", Expected::Absent).1]).await);
    assert_eq!(cx.body("a").await.unwrap(), "1");
}

async fn put_version_needs_exactly_that_version(cx: CaseContext) {
    let absent = Expected::Version(DocVersion::fresh());
    assert_conflict(&cx.commit(vec![put("a", "1", absent).1]).await);
    let first = cx.create("a", "1").await;
    let (second, change) = put("a", "2", Expected::Version(first));
    cx.commit(vec![change]).await.unwrap();
    assert_conflict(
        &cx.commit(vec![put("a", "3", Expected::Version(first)).1])
            .await,
    );
    let found = cx.get("a").await.unwrap();
    assert_eq!((found.version, &found.body[..]), (second, &b"2"[..]));
}

async fn delete_in_all_forms(cx: CaseContext) {
    cx.commit(vec![delete("a", Expected::Any)]).await.unwrap();
    cx.commit(vec![delete("a", Expected::Absent)])
        .await
        .unwrap();
    let version = cx.create("a", "1").await;
    assert_conflict(&cx.commit(vec![delete("a", Expected::Absent)]).await);
    assert_conflict(
        &cx.commit(vec![delete("a", Expected::Version(DocVersion::fresh()))])
            .await,
    );
    assert_eq!(cx.body("a").await.unwrap(), "1");
    cx.commit(vec![delete("a", Expected::Version(version))])
        .await
        .unwrap();
    assert_eq!((cx.get("a").await, cx.keys("").await), (None, vec![]));
    assert_conflict(
        &cx.commit(vec![delete("a", Expected::Version(version))])
            .await,
    );
    cx.create("a", "2").await;
    cx.commit(vec![delete("a", Expected::Any)]).await.unwrap();
    assert_eq!(cx.get("a").await, None);
}

async fn check_in_all_forms(cx: CaseContext) {
    let version = cx.create("a", "1").await;
    let other = DocVersion::fresh();
    let table = [
        ("a", Expected::Any, true),
        ("a", Expected::Absent, false),
        ("a", Expected::Version(version), true),
        ("a", Expected::Version(other), false),
        ("b", Expected::Any, true),
        ("b", Expected::Absent, true),
        ("b", Expected::Version(version), false),
    ];
    for (n, (key, expect, holds)) in table.into_iter().enumerate() {
        let beside = format!("beside {n}");
        let outcome = cx
            .commit(vec![
                check(key, expect),
                put(&beside, "", Expected::Absent).1,
            ])
            .await;
        if holds {
            outcome.unwrap();
        } else {
            assert_conflict(&outcome);
        }
        assert_eq!(cx.get(&beside).await.is_some(), holds, "{key} {expect:?}");
    }
    assert_eq!(
        (cx.get("a").await.unwrap().version, cx.get("b").await),
        (version, None)
    );
}

async fn a_moved_document_keeps_its_version_and_content(cx: CaseContext) {
    let document = Document::new("meta", vec![0xff, 0, 10]);
    let change = DocumentChange::Put {
        key: "a".into(),
        document: document.clone(),
        expect: Expected::Absent,
    };
    cx.commit(vec![change]).await.unwrap();
    cx.commit(vec![relocate("a", "b/c", document.version)])
        .await
        .unwrap();
    assert_eq!(
        (cx.get("a").await, cx.keys("").await),
        (None, vec!["b/c".to_owned()])
    );
    assert_eq!(cx.get("b/c").await, Some(document));
}

async fn a_move_onto_something_conflicts(cx: CaseContext) {
    let version = cx.create("a", "1").await;
    cx.create("b", "2").await;
    assert_conflict(&cx.commit(vec![relocate("a", "b", version)]).await);
    assert_eq!(
        (cx.body("a").await.unwrap(), cx.body("b").await.unwrap()),
        ("1".to_owned(), "2".to_owned())
    );
}

async fn a_move_of_another_version_conflicts(cx: CaseContext) {
    assert_conflict(
        &cx.commit(vec![relocate("a", "b", DocVersion::fresh())])
            .await,
    );
    cx.create("a", "1").await;
    assert_conflict(
        &cx.commit(vec![relocate("a", "b", DocVersion::fresh())])
            .await,
    );
    assert_eq!(
        (cx.body("a").await.unwrap().as_str(), cx.get("b").await),
        ("1", None)
    );
}

async fn a_conflict_names_the_key(cx: CaseContext) {
    cx.create("who/is it", "1").await;
    let outcome = cx
        .commit(vec![
            put("other", "", Expected::Any).1,
            put("who/is it", "2", Expected::Absent).1,
        ])
        .await;
    assert!(
        matches!(&outcome, Err(StoreError::Conflict(what)) if what.contains("who/is it")),
        "{outcome:?}"
    );
}

async fn a_failing_commit_applies_nothing(cx: CaseContext) {
    let versions = [
        cx.create("put", "old").await,
        cx.create("delete", "old").await,
        cx.create("move", "old").await,
    ];
    let good = || {
        vec![
            put("put", "new", Expected::Version(versions[0])).1,
            put("create", "new", Expected::Absent).1,
            delete("delete", Expected::Version(versions[1])),
            relocate("move", "moved", versions[2]),
            check("nothing", Expected::Absent),
        ]
    };
    // The bad one stands at every place, so that it is not the order that saves us.
    for at in 0..=good().len() {
        let mut changes = good();
        changes.insert(
            at,
            check("not there", Expected::Version(DocVersion::fresh())),
        );
        assert_conflict(&cx.commit(changes).await);
        assert_eq!(cx.keys("").await, ["delete", "move", "put"]);
        assert_eq!(cx.body("put").await.unwrap(), "old");
    }
    cx.commit(good()).await.unwrap();
    assert_eq!(cx.keys("").await, ["create", "moved", "put"]);
    assert_eq!(cx.body("put").await.unwrap(), "new");
}

async fn a_key_in_two_changes_is_refused(cx: CaseContext) {
    let version = cx.create("a", "1").await;
    let twice = [
        vec![
            put("b", "1", Expected::Any).1,
            put("b", "2", Expected::Any).1,
        ],
        vec![delete("a", Expected::Any), put("a", "2", Expected::Any).1],
        vec![relocate("a", "b", version), put("b", "2", Expected::Any).1],
        vec![relocate("a", "a", version)],
        vec![check("a", Expected::Any), delete("a", Expected::Any)],
    ];
    for changes in twice {
        let outcome = cx.commit(changes).await;
        assert!(
            matches!(outcome, Err(StoreError::Store { .. })),
            "{outcome:?}"
        );
        assert_eq!(
            (cx.keys("").await, cx.body("a").await.unwrap()),
            (vec!["a".to_owned()], "1".to_owned())
        );
    }
}

async fn an_empty_commit_is_made(cx: CaseContext) {
    cx.commit(vec![]).await.unwrap();
    assert_eq!(cx.keys("").await, Vec::<String>::new());
}

async fn a_remade_document_is_another(cx: CaseContext) {
    let first = cx.create("a", "1").await;
    cx.commit(vec![delete("a", Expected::Version(first))])
        .await
        .unwrap();
    let second = cx.create("a", "1").await;
    assert_ne!(first, second);
    assert_conflict(
        &cx.commit(vec![put("a", "2", Expected::Version(first)).1])
            .await,
    );
}

async fn a_commit_of_three_thousand_changes(cx: CaseContext) {
    const COUNT: usize = 3_000;
    let key = |n: usize| format!("many/{n:05}");
    let puts = |expect| {
        (0..COUNT)
            .map(|n| put(&key(n), &n.to_string(), expect).1)
            .collect()
    };
    cx.commit(puts(Expected::Absent)).await.unwrap();
    // One that is in the way stops them all.
    assert_conflict(&cx.commit(puts(Expected::Absent)).await);
    let all: Vec<String> = (0..COUNT).map(key).collect();
    assert_eq!(cx.keys("many/").await, all);
    let deletes = (0..COUNT).map(|n| delete(&key(n), Expected::Any)).collect();
    cx.commit(deletes).await.unwrap();
    assert_eq!(cx.keys("").await, Vec::<String>::new());
}

async fn several_large_documents_in_one_commit(cx: CaseContext) {
    let documents: Vec<Document> = (0..4)
        .map(|n| Document::new("", vec![n; MAX_BODY_BYTES]))
        .collect();
    let changes = documents.iter().enumerate();
    let changes = changes.map(|(n, document)| DocumentChange::Put {
        key: n.to_string(),
        document: document.clone(),
        expect: Expected::Absent,
    });
    cx.commit(changes.collect()).await.unwrap();
    for (n, document) in documents.into_iter().enumerate() {
        assert!(
            cx.get(&n.to_string()).await == Some(document),
            "document {n} comes back as it was"
        );
    }
}

async fn a_listing_shows_key_version_and_meta(cx: CaseContext) {
    let document = Document::new(vec![0xff, 0, b'm'], "body");
    let listed = ListedDocument {
        key: "a".into(),
        version: document.version,
        meta: document.meta.clone(),
    };
    cx.commit(vec![DocumentChange::Put {
        key: "a".into(),
        document,
        expect: Expected::Absent,
    }])
    .await
    .unwrap();
    assert_eq!(cx.list("", None, 10).await, [listed]);
}

async fn pages_follow_each_other(cx: CaseContext) {
    const COUNT: usize = 25;
    let expected: Vec<String> = (0..COUNT).map(|n| format!("p/{n:02}")).collect();
    let neighbours = ["o", "p", "p0", "p.", "q"];
    let others = neighbours
        .iter()
        .map(|key| put(key, "", Expected::Absent).1);
    let changes = expected
        .iter()
        .rev()
        .map(|key| put(key, "", Expected::Absent).1)
        .chain(others)
        .collect();
    cx.commit(changes).await.unwrap();
    for limit in [1, 7, COUNT, COUNT + 1] {
        let mut keys: Vec<String> = Vec::new();
        loop {
            let page = cx.list("p/", keys.last().map(String::as_str), limit).await;
            assert!(page.len() <= limit);
            let is_last = page.len() < limit;
            keys.extend(page.into_iter().map(|listed| listed.key));
            if is_last {
                break;
            }
        }
        assert_eq!(keys, expected, "in pages of {limit}");
    }
}

async fn after_need_not_exist(cx: CaseContext) {
    for key in ["a/1", "a/3", "b"] {
        cx.create(key, "").await;
    }
    let table = [
        (Some("a/2"), "a/", &["a/3"][..]),
        (Some("a/"), "a/", &["a/1", "a/3"]),
        (Some("a/1"), "a/", &["a/3"]),
        (Some(""), "a/", &["a/1", "a/3"]),
        (Some("0"), "a/", &["a/1", "a/3"]),
        (Some("a/4"), "a/", &[]),
        (Some("z"), "a/", &[]),
        (Some("a/3"), "", &["b"]),
        (None, "a/3", &["a/3"]),
    ];
    for (after, prefix, expected) in table {
        let keys: Vec<String> = cx
            .list(prefix, after, 10)
            .await
            .into_iter()
            .map(|listed| listed.key)
            .collect();
        assert_eq!(keys, expected, "{prefix:?} after {after:?}");
    }
}

async fn a_listing_of_nothing_is_empty(cx: CaseContext) {
    assert_eq!(cx.list("", None, 10).await, []);
    cx.create("a", "").await;
    assert_eq!(cx.list("b", None, 10).await, []);
    assert_eq!(cx.list("", None, 0).await, []);
}

async fn spaces_see_nothing_of_each_other(cx: CaseContext) {
    // Names and keys that would meet if they were merely put together, or compared without case.
    let spaces = [
        cx.clone(),
        cx.within("a"),
        cx.within("A"),
        cx.within("ab"),
        cx.within("a").within("b"),
        cx.within(""),
    ];
    let keys = ["x", "b/x", "a/b/x", "/x"];
    for (n, space) in spaces.iter().enumerate() {
        for key in keys {
            space.create(key, &format!("{n} {key}")).await;
        }
    }
    for (n, space) in spaces.iter().enumerate() {
        assert_eq!(space.keys("").await, ["/x", "a/b/x", "b/x", "x"], "{n}");
        for key in keys {
            assert_eq!(space.body(key).await.unwrap(), format!("{n} {key}"));
        }
    }
    spaces[1]
        .commit(keys.iter().map(|key| delete(key, Expected::Any)).collect())
        .await
        .unwrap();
    assert_eq!(spaces[1].keys("").await, Vec::<String>::new());
    for space in spaces
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != 1)
        .map(|(_, space)| space)
    {
        assert_eq!(space.keys("").await.len(), keys.len(), "{}", space.space);
    }
}

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
    // Late, but nobody else came.
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
    // What is fenced off is told so, whatever else is wrong.
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
    // Meta and body are always of one writer.
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
