//! Compare-and-set, and atomic commits.
//!
//! Effects: test support.

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
    // The conflicting change is tried at every position, so that the order does not matter.
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
    // One existing key makes all of them fail.
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
