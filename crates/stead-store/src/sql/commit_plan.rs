//! Part of the SQL store: the effect of a commit on each key, as the expected state before and the
//! state after. No I/O.
//!
//! Effects: none.

use crate::contract::{DocVersion, Document, DocumentChange, Expected};
use std::collections::BTreeMap;

/// All keys of a commit, in key order.
#[derive(Debug)]
pub(super) struct CommitPlan<'a> {
    pub(super) touched: BTreeMap<&'a str, KeyChange<'a>>,
}

/// The effect on one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyChange<'a> {
    pub(super) expect: Expected,
    pub(super) outcome: KeyOutcome<'a>,
}

/// The state of a key after the commit.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeyOutcome<'a> {
    /// The key is not changed.
    Unchanged,
    /// The key holds this document.
    Written(&'a Document),
    /// The key is absent.
    Deleted,
    /// The document has moved to this key.
    MovedTo(&'a str),
    /// The key holds the document of this version, moved from another key.
    MovedFrom(DocVersion),
}

/// The versions found at keys.
pub(super) type FoundVersions = BTreeMap<String, DocVersion>;

impl<'a> CommitPlan<'a> {
    /// Returns the plan of validated changes: no key occurs in two of them.
    pub(super) fn new(changes: &'a [DocumentChange]) -> Self {
        let mut touched = BTreeMap::new();
        let mut touch = |key: &'a str, expect, fate| {
            touched.insert(
                key,
                KeyChange {
                    expect,
                    outcome: fate,
                },
            )
        };
        for change in changes {
            match change {
                DocumentChange::Put {
                    key,
                    document,
                    expect,
                } => touch(key, *expect, KeyOutcome::Written(document)),
                // Deleting an absent key is allowed.
                DocumentChange::Delete {
                    key,
                    expect: Expected::Absent,
                } => touch(key, Expected::Absent, KeyOutcome::Unchanged),
                DocumentChange::Delete { key, expect } => touch(key, *expect, KeyOutcome::Deleted),
                DocumentChange::Move { from, to, version } => {
                    touch(from, Expected::Version(*version), KeyOutcome::MovedTo(to));
                    touch(to, Expected::Absent, KeyOutcome::MovedFrom(*version))
                }
                DocumentChange::Check { key, expect } => touch(key, *expect, KeyOutcome::Unchanged),
            };
        }
        Self { touched }
    }

    /// Returns the first key whose state is not the expected one.
    pub(super) fn conflict(&self, found: &FoundVersions) -> Option<&'a str> {
        let wrong = |(key, touch): &(&&'a str, &KeyChange<'_>)| {
            !touch.expect.matches(found.get(**key).copied())
        };
        self.touched.iter().find(wrong).map(|(key, _)| *key)
    }

    /// Returns whether the state is what the commit would have left.
    pub(super) fn is_applied(&self, found: &FoundVersions) -> bool {
        self.touched.iter().all(|(key, touch)| {
            let found = found.get(*key).copied();
            match touch.outcome {
                KeyOutcome::Unchanged => touch.expect.matches(found),
                KeyOutcome::Written(document) => found == Some(document.version),
                KeyOutcome::Deleted | KeyOutcome::MovedTo(_) => found.is_none(),
                KeyOutcome::MovedFrom(version) => found == Some(version),
            }
        })
    }

    /// Returns the keys for which `wanted` holds, in order.
    pub(super) fn keys(&self, wanted: impl Fn(&KeyChange<'a>) -> bool) -> Vec<&'a str> {
        self.touched
            .iter()
            .filter(|(_, touch)| wanted(touch))
            .map(|(key, _)| *key)
            .collect()
    }

    /// Returns the written documents for which `wanted` holds, in key order.
    pub(super) fn writes(&self, wanted: impl Fn(Expected) -> bool) -> Vec<(&'a str, &'a Document)> {
        let write = |(key, touch): (&&'a str, &KeyChange<'a>)| match touch.outcome {
            KeyOutcome::Written(document) if wanted(touch.expect) => Some((*key, document)),
            KeyOutcome::Written(_)
            | KeyOutcome::Unchanged
            | KeyOutcome::Deleted
            | KeyOutcome::MovedTo(_)
            | KeyOutcome::MovedFrom(_) => None,
        };
        self.touched.iter().filter_map(write).collect()
    }

    /// Returns the moves as pairs of old and new key, ordered by old key.
    pub(super) fn moves(&self) -> Vec<(&'a str, &'a str)> {
        let moved = |(key, touch): (&&'a str, &KeyChange<'a>)| match touch.outcome {
            KeyOutcome::MovedTo(to) => Some((*key, to)),
            KeyOutcome::Written(_)
            | KeyOutcome::Unchanged
            | KeyOutcome::Deleted
            | KeyOutcome::MovedFrom(_) => None,
        };
        self.touched.iter().filter_map(moved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: DocVersion = DocVersion(1);

    fn put(key: &str, expect: Expected) -> DocumentChange {
        DocumentChange::Put {
            key: key.to_owned(),
            document: Document::new("", ""),
            expect,
        }
    }

    fn found(pairs: &[(&str, DocVersion)]) -> FoundVersions {
        pairs
            .iter()
            .map(|(key, version)| ((*key).to_owned(), *version))
            .collect()
    }

    #[test]
    fn a_commit_is_made_when_all_is_as_it_leaves_it() {
        let changes = [
            put("a", Expected::Absent),
            DocumentChange::Delete {
                key: "b".into(),
                expect: Expected::Version(OLD),
            },
            DocumentChange::Move {
                from: "c".into(),
                to: "d".into(),
                version: OLD,
            },
            DocumentChange::Check {
                key: "e".into(),
                expect: Expected::Absent,
            },
        ];
        let plan = CommitPlan::new(&changes);
        let DocumentChange::Put { document, .. } = &changes[0] else {
            panic!("the first is a put")
        };
        let made = found(&[("a", document.version), ("d", OLD)]);
        assert!(plan.is_applied(&made) && plan.conflict(&made) == Some("a"));
        let before = found(&[("b", OLD), ("c", OLD)]);
        assert!(!plan.is_applied(&before) && plan.conflict(&before).is_none());
        for (key, version) in [("b", OLD), ("c", OLD), ("e", OLD), ("a", OLD)] {
            let mut partly = made.clone();
            partly.insert(key.to_owned(), version);
            assert!(!plan.is_applied(&partly), "{key}");
        }
        assert!(!plan.is_applied(&found(&[("a", document.version)])));
    }
}
