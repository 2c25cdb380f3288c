//! What a commit touches: which keys, what must be there before, and what is there after. No I/O.

use crate::contract::{Change, DocVersion, Document, Expected};
use std::collections::BTreeMap;

/// All keys of a commit, in order.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) touched: BTreeMap<&'a str, Touch<'a>>,
}

/// What happens at one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch<'a> {
    pub(super) expect: Expected,
    pub(super) fate: Fate<'a>,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fate<'a> {
    /// Nothing.
    Stays,
    /// This is there.
    Holds(&'a Document),
    /// Nothing is there.
    Ends,
    /// Its document is at this key.
    GoesTo(&'a str),
    /// The document of this version has come from another key.
    Receives(DocVersion),
}

/// The versions found at keys.
pub(super) type Found = BTreeMap<String, DocVersion>;

impl<'a> Plan<'a> {
    /// The plan of changes that were found sound: no key is in two of them.
    pub(super) fn new(changes: &'a [Change]) -> Self {
        let mut touched = BTreeMap::new();
        let mut touch = |key: &'a str, expect, fate| touched.insert(key, Touch { expect, fate });
        for change in changes {
            match change {
                Change::Put {
                    key,
                    document,
                    expect,
                } => touch(key, *expect, Fate::Holds(document)),
                // Nothing to remove is all that is asked for.
                Change::Delete {
                    key,
                    expect: Expected::Absent,
                } => touch(key, Expected::Absent, Fate::Stays),
                Change::Delete { key, expect } => touch(key, *expect, Fate::Ends),
                Change::Move { from, to, version } => {
                    touch(from, Expected::Version(*version), Fate::GoesTo(to));
                    touch(to, Expected::Absent, Fate::Receives(*version))
                }
                Change::Check { key, expect } => touch(key, *expect, Fate::Stays),
            };
        }
        Self { touched }
    }

    /// The first key at which something else was found than expected.
    pub(super) fn conflict(&self, found: &Found) -> Option<&'a str> {
        let wrong =
            |(key, touch): &(&&'a str, &Touch<'_>)| !touch.expect.holds(found.get(**key).copied());
        self.touched.iter().find(wrong).map(|(key, _)| *key)
    }

    /// Whether everything is as the commit would have left it.
    pub(super) fn is_made(&self, found: &Found) -> bool {
        self.touched.iter().all(|(key, touch)| {
            let found = found.get(*key).copied();
            match touch.fate {
                Fate::Stays => touch.expect.holds(found),
                Fate::Holds(document) => found == Some(document.version),
                Fate::Ends | Fate::GoesTo(_) => found.is_none(),
                Fate::Receives(version) => found == Some(version),
            }
        })
    }

    /// The keys for which `wanted` holds, in order.
    pub(super) fn keys(&self, wanted: impl Fn(&Touch<'a>) -> bool) -> Vec<&'a str> {
        self.touched
            .iter()
            .filter(|(_, touch)| wanted(touch))
            .map(|(key, _)| *key)
            .collect()
    }

    /// The documents that are written where `wanted` holds, in order of key.
    pub(super) fn writes(&self, wanted: impl Fn(Expected) -> bool) -> Vec<(&'a str, &'a Document)> {
        let write = |(key, touch): (&&'a str, &Touch<'a>)| match touch.fate {
            Fate::Holds(document) if wanted(touch.expect) => Some((*key, document)),
            Fate::Holds(_) | Fate::Stays | Fate::Ends | Fate::GoesTo(_) | Fate::Receives(_) => None,
        };
        self.touched.iter().filter_map(write).collect()
    }

    /// The moves, as from and to, in order of from.
    pub(super) fn moves(&self) -> Vec<(&'a str, &'a str)> {
        let moved = |(key, touch): (&&'a str, &Touch<'a>)| match touch.fate {
            Fate::GoesTo(to) => Some((*key, to)),
            Fate::Holds(_) | Fate::Stays | Fate::Ends | Fate::Receives(_) => None,
        };
        self.touched.iter().filter_map(moved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: DocVersion = DocVersion(1);

    fn put(key: &str, expect: Expected) -> Change {
        Change::Put {
            key: key.to_owned(),
            document: Document::new("", ""),
            expect,
        }
    }

    fn found(pairs: &[(&str, DocVersion)]) -> Found {
        pairs
            .iter()
            .map(|(key, version)| ((*key).to_owned(), *version))
            .collect()
    }

    #[test]
    fn a_commit_is_made_when_all_is_as_it_leaves_it() {
        let changes = [
            put("a", Expected::Absent),
            Change::Delete {
                key: "b".into(),
                expect: Expected::Version(OLD),
            },
            Change::Move {
                from: "c".into(),
                to: "d".into(),
                version: OLD,
            },
            Change::Check {
                key: "e".into(),
                expect: Expected::Absent,
            },
        ];
        let plan = Plan::new(&changes);
        let Change::Put { document, .. } = &changes[0] else {
            panic!("the first is a put")
        };
        let made = found(&[("a", document.version), ("d", OLD)]);
        assert!(plan.is_made(&made) && plan.conflict(&made) == Some("a"));
        let before = found(&[("b", OLD), ("c", OLD)]);
        assert!(!plan.is_made(&before) && plan.conflict(&before).is_none());
        for (key, version) in [("b", OLD), ("c", OLD), ("e", OLD), ("a", OLD)] {
            let mut partly = made.clone();
            partly.insert(key.to_owned(), version);
            assert!(!plan.is_made(&partly), "{key}");
        }
        assert!(!plan.is_made(&found(&[("a", document.version)])));
    }
}
