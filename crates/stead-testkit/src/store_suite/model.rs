//! Five hundred random operations give the same answers as a map in memory.
//!
//! This covers what the other cases do not: commits of several kinds of change, on keys that have
//! been put, moved and removed in any order before.
//!
//! Effects: test support.

use super::*;
use std::collections::BTreeMap;

pub(super) const CASES: &[StoreCase] = cases![random_operations_are_as_in_a_map];

const STEPS: usize = 500;
/// The seed, which reproduces a failure on every store.
const SEED: u64 = 0x5eed_0001;
const KEYS: &[&str] = &[
    "a",
    "A",
    "a ",
    "a/",
    "a/b",
    "a/b/c",
    "a0",
    "ab",
    "ä",
    "a\u{308}",
    "b",
    "b%",
    "b_",
    "\u{10ffff}",
];

type DocumentOracle = BTreeMap<String, Document>;

async fn random_operations_are_as_in_a_map(cx: CaseContext) {
    let mut dice = SuiteRng(SEED);
    let mut oracle = DocumentOracle::new();
    let mut made = 0;
    let mut refused = 0;
    for step in 0..crate::rounds(STEPS) {
        match dice.below(10) {
            0 => {
                let key = dice.pick(KEYS);
                assert_eq!(
                    cx.get(key).await,
                    oracle.get(key).cloned(),
                    "step {step}: get {key:?}"
                );
            }
            1..3 => {
                let key = dice.pick(KEYS);
                let cut = key
                    .char_indices()
                    .map(|(at, _)| at)
                    .nth(dice.below(3))
                    .unwrap_or(key.len());
                let after = (dice.below(2) == 0).then(|| dice.pick(KEYS));
                let limit = 1 + dice.below(6);
                let listed = cx.list(&key[..cut], after, limit).await;
                let expected = oracle_list(&oracle, &key[..cut], after, limit);
                assert_eq!(
                    listed,
                    expected,
                    "step {step}: list {:?} after {after:?}",
                    &key[..cut]
                );
            }
            _ => {
                let changes = random_changes(&mut dice, &oracle);
                let told = format!("step {step}: {changes:?}");
                match (cx.commit(changes.clone()).await, holds(&oracle, &changes)) {
                    (Ok(()), true) => {
                        made += 1;
                        changes
                            .into_iter()
                            .for_each(|change| apply(&mut oracle, change));
                    }
                    (Err(StoreError::Conflict(_)), false) => refused += 1,
                    (outcome, expected) => {
                        panic!("{told}: {outcome:?}, expected to hold: {expected}")
                    }
                }
            }
        }
    }
    assert!(
        made > 100 && refused > 50,
        "the dice are loaded: {made} made, {refused} refused"
    );
    assert_eq!(
        cx.list("", None, 100).await,
        oracle_list(&oracle, "", None, 100)
    );
    for key in KEYS {
        assert_eq!(cx.get(key).await, oracle.get(*key).cloned());
    }
}

fn random_changes(dice: &mut SuiteRng, oracle: &DocumentOracle) -> Vec<DocumentChange> {
    let mut keys: Vec<&str> = KEYS.to_vec();
    let count = 1 + dice.below(4);
    let mut changes = Vec::new();
    for _ in 0..count {
        let key = keys.swap_remove(dice.below(keys.len())).to_owned();
        let found = oracle.get(&key).map(|document| document.version);
        let expect = match (dice.below(8), found) {
            (0, _) => Expected::Absent,
            (1, _) => Expected::Version(DocVersion::fresh()),
            (2..5, Some(version)) => Expected::Version(version),
            (2..5, None) => Expected::Absent,
            _ => Expected::Any,
        };
        changes.push(match (dice.below(6), found) {
            (0, _) => DocumentChange::Delete { key, expect },
            (1, _) => DocumentChange::Check { key, expect },
            (2 | 3, Some(version)) => DocumentChange::Move {
                from: key,
                to: keys.swap_remove(dice.below(keys.len())).to_owned(),
                version,
            },
            _ => {
                let body = vec![dice.below(256) as u8; dice.below(300)];
                DocumentChange::Put {
                    key,
                    document: Document::new(vec![dice.below(256) as u8; dice.below(20)], body),
                    expect,
                }
            }
        });
    }
    changes
}

fn holds(oracle: &DocumentOracle, changes: &[DocumentChange]) -> bool {
    let version = |key: &String| oracle.get(key).map(|document| document.version);
    changes.iter().all(|change| match change {
        DocumentChange::Put { key, expect, .. }
        | DocumentChange::Delete { key, expect }
        | DocumentChange::Check { key, expect } => expect.matches(version(key)),
        DocumentChange::Move {
            from,
            to,
            version: expected,
        } => version(from) == Some(*expected) && version(to).is_none(),
    })
}

fn apply(oracle: &mut DocumentOracle, change: DocumentChange) {
    match change {
        DocumentChange::Put { key, document, .. } => {
            oracle.insert(key, document);
        }
        DocumentChange::Delete { key, .. } => {
            oracle.remove(&key);
        }
        DocumentChange::Move { from, to, .. } => {
            let document = oracle.remove(&from).expect("it was there");
            oracle.insert(to, document);
        }
        DocumentChange::Check { .. } => {}
    }
}

fn oracle_list(
    oracle: &DocumentOracle,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Vec<ListedDocument> {
    let found = oracle.iter().filter(|(key, _)| {
        key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
    });
    let listed = found.map(|(key, document)| ListedDocument {
        key: key.clone(),
        version: document.version,
        meta: document.meta.clone(),
    });
    listed.take(limit).collect()
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct SuiteRng(u64);

impl SuiteRng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
