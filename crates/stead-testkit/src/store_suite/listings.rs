//! Listings in pages, and the isolation of spaces.
//!
//! Effects: test support.

use super::*;

pub(super) const CASES: &[StoreCase] = cases![
    a_listing_shows_key_version_and_meta,
    pages_follow_each_other,
    after_need_not_exist,
    a_listing_of_nothing_is_empty,
    spaces_see_nothing_of_each_other,
];

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
    // Names and keys that would collide if they were only concatenated, or compared without case.
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
