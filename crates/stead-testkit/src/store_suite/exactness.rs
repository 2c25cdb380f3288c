//! Keys compare byte by byte: no case, no language, no wildcard, no trimming.
//!
//! Effects: test support.

use super::*;
use stead_store::MAX_KEY_BYTES;

pub(super) const CASES: &[StoreCase] = cases![
    look_alikes_are_different_keys,
    listings_are_in_the_order_of_bytes,
    every_prefix_finds_what_begins_with_it,
    after_compares_bytes,
    the_longest_keys_are_told_apart,
    names_of_leases_and_queues_are_exact_too,
];

/// Keys that some database, collation, file system or pattern treats as equal to another.
const TRICKY: &[&str] = &[
    " ",
    " a",
    "a",
    "a ",
    "a  ",
    "A",
    "a.",
    ".",
    "..",
    "a..",
    "a/",
    "a//",
    "a/b",
    "a//b",
    "/a",
    "a\\b",
    "\\",
    "a\\",
    "%",
    "a%",
    "a%b",
    "_",
    "a_",
    "a_b",
    "axb",
    "*",
    "a*",
    "?",
    "a?",
    "[a]",
    "a[b]",
    "^a",
    "a{b}",
    "'",
    "a'b",
    "\"",
    "`",
    "--",
    "-a",
    "a-b",
    "a:b",
    "{a}",
    "a}b",
    "#",
    "a#b",
    "%61",
    "a%2Fb",
    "null",
    "0",
    "00",
    "1",
    "10",
    "2",
    "1e0",
    "ä",
    "a\u{308}",
    "Ä",
    "ae",
    "æ",
    "ß",
    "ss",
    "SS",
    "ẞ",
    "ﬁ",
    "fi",
    "\u{212b}",
    "Å",
    "A\u{30a}",
    "ñ",
    "n\u{303}",
    "i",
    "I",
    "ı",
    "İ",
    "i\u{307}",
    "а",
    "ａ",
    "ɑ",
    "𝐚",
    "a\u{200b}",
    "a\u{200d}",
    "a\u{ad}",
    "\u{feff}a",
    "a\u{a0}",
    "a\u{3000}",
    "\u{202e}a",
    "한",
    "\u{1112}\u{1161}\u{11ab}",
    "é",
    "e\u{301}",
    "\u{fe0f}",
    "☺",
    "☺\u{fe0f}",
    "👩",
    "👩‍💻",
    "👩🏽",
    "\u{7f}",
    "\u{80}",
    "\u{7ff}",
    "\u{800}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{10000}",
    "\u{1f600}",
    "\u{10fffe}",
    "\u{10ffff}",
    "\u{10ffff}\u{10ffff}",
    "a\u{10ffff}",
    "a\u{10ffff}b",
    "a\u{d7ff}b",
    "b",
];

async fn tricky(cx: &CaseContext) {
    let changes = TRICKY
        .iter()
        .map(|key| put(key, key, Expected::Absent).1)
        .collect();
    cx.commit(changes).await.unwrap();
}

fn sorted(keep: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut keys: Vec<&str> = TRICKY.iter().copied().filter(|key| keep(key)).collect();
    keys.sort_unstable_by_key(|key| key.as_bytes());
    keys
}

async fn look_alikes_are_different_keys(cx: CaseContext) {
    // One by one, so that each is created beside all keys that it could be confused with.
    for key in TRICKY {
        cx.create(key, key).await;
    }
    for key in TRICKY {
        assert_eq!(cx.body(key).await.as_deref(), Some(*key), "{key:?}");
    }
    for key in TRICKY {
        cx.commit(vec![delete(key, Expected::Any)]).await.unwrap();
        assert_eq!(cx.get(key).await, None, "{key:?}");
    }
    assert_eq!(cx.keys("").await, Vec::<String>::new());
}

async fn listings_are_in_the_order_of_bytes(cx: CaseContext) {
    tricky(&cx).await;
    assert_eq!(cx.keys("").await, sorted(|_| true));
}

async fn every_prefix_finds_what_begins_with_it(cx: CaseContext) {
    tricky(&cx).await;
    let prefixes: std::collections::BTreeSet<&str> = TRICKY
        .iter()
        .flat_map(|key| key.char_indices().map(|(at, c)| &key[..at + c.len_utf8()]))
        .collect();
    for prefix in prefixes {
        assert_eq!(
            cx.keys(prefix).await,
            sorted(|key| key.starts_with(prefix)),
            "{prefix:?}"
        );
    }
}

async fn after_compares_bytes(cx: CaseContext) {
    tricky(&cx).await;
    for after in TRICKY {
        let page = cx.list("", Some(after), 3).await;
        let keys: Vec<&str> = page.iter().map(|listed| listed.key.as_str()).collect();
        let mut expected = sorted(|key| key.as_bytes() > after.as_bytes());
        expected.truncate(3);
        assert_eq!(keys, expected, "after {after:?}");
    }
}

async fn the_longest_keys_are_told_apart(cx: CaseContext) {
    let wide = "\u{10ffff}".repeat(MAX_KEY_BYTES / 4);
    let stem = "k".repeat(MAX_KEY_BYTES - 1);
    let mut keys = vec![
        format!("{stem}a"),
        format!("{stem}b"),
        format!("{stem} "),
        stem.clone(),
        wide.clone(),
    ];
    for key in &keys {
        cx.create(key, "1").await;
    }
    keys.sort();
    assert_eq!(cx.keys("").await, keys);
    assert_eq!(cx.keys(&stem).await, keys[..4]);
    assert_eq!(cx.keys(&keys[2]).await, keys[2..3]);
    assert_eq!(cx.keys(&wide).await, [wide]);
    let version = cx.get(&keys[3]).await.unwrap().version;
    let to = format!("{stem}c");
    cx.commit(vec![relocate(&keys[3], &to, version)])
        .await
        .unwrap();
    assert_eq!(cx.get(&to).await.unwrap().version, version);
}

async fn names_of_leases_and_queues_are_exact_too(cx: CaseContext) {
    for name in LOOK_ALIKE_NAMES {
        // Each is granted, so it was not confused with any of the others.
        cx.fence(name, name, LONG).await;
        let job = Job {
            payload: Bytes::from(name),
            dedup: None,
            delay: Duration::ZERO,
            max_attempts: 1,
        };
        cx.enqueue(name, job).await;
    }
    for name in LOOK_ALIKE_NAMES {
        assert_eq!(cx.claim(name, LONG).await.unwrap().payload, name);
        assert_eq!(cx.claim(name, LONG).await, None);
    }
}
