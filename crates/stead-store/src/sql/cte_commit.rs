//! Part of the SQL store: a commit as one statement, for databases whose WITH clauses can change
//! rows.
//!
//! The statement first locks the rows that must exist, and writes only if all of them do. A key
//! that must be absent needs no lookup: inserting it fails if it exists.
//!
//! Effects: none.

use super::commit_plan::{CommitPlan, KeyOutcome};
use super::driver::Statement;
use crate::contract::{Document, Expected};

/// The maximum number of parts of a statement that the server keeps prepared.
const MAX_PARTS: usize = 8;

/// A commit of only inserts, overwrites and checks.
#[derive(Debug)]
pub(super) struct CteCommit<'a> {
    space: &'a str,
    fence: Option<(&'a str, i64)>,
    checks: Vec<(&'a str, [u8; 16])>,
    updates: Vec<DocumentRow<'a>>,
    inserts: Vec<DocumentRow<'a>>,
}

#[derive(Debug)]
struct DocumentRow<'a> {
    key: &'a str,
    version: [u8; 16],
    document: &'a Document,
}

impl<'a> CteCommit<'a> {
    /// Returns the statement for `plan`, if it can be one and its rows take at most `max_bytes`.
    pub(super) fn new(
        plan: &CommitPlan<'a>,
        space: &'a str,
        fence: Option<(&'a str, i64)>,
        max_bytes: usize,
    ) -> Option<Self> {
        let mut chain = Self {
            space,
            fence,
            checks: Vec::new(),
            updates: Vec::new(),
            inserts: Vec::new(),
        };
        for (key, touch) in &plan.touched {
            let row = |document: &'a Document| DocumentRow {
                key,
                version: document.version.0.to_be_bytes(),
                document,
            };
            match (touch.outcome, touch.expect) {
                (KeyOutcome::Unchanged, Expected::Version(version)) => {
                    chain.checks.push((key, version.0.to_be_bytes()))
                }
                (KeyOutcome::Unchanged, Expected::Any) => {}
                (KeyOutcome::Written(document), Expected::Any) => chain.updates.push(row(document)),
                (KeyOutcome::Written(document), Expected::Absent) => {
                    chain.inserts.push(row(document))
                }
                (KeyOutcome::Unchanged, Expected::Absent)
                | (KeyOutcome::Written(_), Expected::Version(_))
                | (KeyOutcome::Deleted | KeyOutcome::MovedTo(_) | KeyOutcome::MovedFrom(_), _) => {
                    return None;
                }
            }
        }
        let rows = || chain.updates.iter().chain(&chain.inserts);
        let bytes: usize = rows()
            .map(|row| row.document.meta.len() + row.document.body.len())
            .sum();
        let fits = rows().count() > 0
            && rows().count() + chain.checks.len() <= MAX_PARTS
            && bytes <= max_bytes;
        fits.then_some(chain)
    }

    /// Returns the only key that can be present although it must be absent.
    pub(super) fn sole_inserted_key(&self) -> Option<&'a str> {
        match &self.inserts[..] {
            [row] => Some(row.key),
            _ => None,
        }
    }

    /// Returns the SQL text. If it changes nothing, an expectation did not hold.
    pub(super) fn statement(&self, or_overwrite: &str) -> Statement<'_> {
        let mut with = Vec::new();
        let mut from = String::new();
        if self.fence.is_some() {
            with.push(
                "held AS (SELECT 1 FROM stead_leases WHERE space = ? AND name = ? AND token = ? FOR SHARE)".into(),
            );
            from.push_str(", held");
        }
        for number in 0..self.checks.len() {
            with.push(format!(
                "c{number} AS (SELECT 1 FROM stead_docs WHERE space = ? AND dkey = ? AND version = ? FOR SHARE)"
            ));
            from.push_str(&format!(", c{number}"));
        }
        let last = match (self.updates.len(), self.inserts.len()) {
            (overwritten, 0) => insert(overwritten, &from, or_overwrite),
            (0, made) => insert(made, &from, ""),
            (overwritten, made) => {
                with.push(format!(
                    "overwritten AS ({})",
                    insert(overwritten, &from, or_overwrite)
                ));
                insert(made, &from, "")
            }
        };
        let with = if with.is_empty() {
            String::new()
        } else {
            format!("WITH {} ", with.join(", "))
        };
        let mut statement = Statement::new(format!("{with}{last}"));
        if let Some((name, token)) = self.fence {
            statement = statement.bytes(self.space).bytes(name).int(token);
        }
        for (key, version) in &self.checks {
            statement = statement.bytes(self.space).bytes(*key).bytes(version);
        }
        self.updates
            .iter()
            .chain(&self.inserts)
            .fold(statement, |s, row| {
                let DocumentRow {
                    key,
                    version,
                    document,
                } = row;
                s.bytes(self.space)
                    .bytes(*key)
                    .bytes(version)
                    .bytes(&document.meta)
                    .bytes(&document.body)
            })
    }
}

fn insert(rows: usize, from: &str, ending: &str) -> String {
    let values = "(?, ?, ?, ?, ?), ".repeat(rows);
    let values = values.trim_end_matches(", ");
    format!(
        "INSERT INTO stead_docs (space, dkey, version, meta, body) SELECT w.space, w.dkey, w.version, w.meta, w.body \
         FROM (VALUES {values}) AS w (space, dkey, version, meta, body){from}{ending}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{DocVersion, DocumentChange};

    const OLD: DocVersion = DocVersion(1);

    fn put(key: &str, expect: Expected) -> DocumentChange {
        DocumentChange::Put {
            key: key.into(),
            document: Document::new("meta", "body"),
            expect,
        }
    }

    fn check(key: &str, expect: Expected) -> DocumentChange {
        DocumentChange::Check {
            key: key.into(),
            expect,
        }
    }

    #[test]
    fn every_mark_has_a_parameter() {
        let changes = [
            put("a", Expected::Absent),
            put("b", Expected::Any),
            check("c", Expected::Version(OLD)),
            check("d", Expected::Version(OLD)),
        ];
        for (changes, fence) in [
            (&changes[..], Some(("lease", 7))),
            (&changes[..1], None),
            (&changes[1..2], None),
            (&changes[..3], None),
        ] {
            let plan = CommitPlan::new(changes);
            let chain = CteCommit::new(&plan, "space", fence, 100).unwrap();
            let statement = chain.statement(" ON CONFLICT DO UPDATE");
            assert_eq!(
                statement.sql.matches('?').count(),
                statement.params.len(),
                "{}",
                statement.sql
            );
        }
    }

    #[test]
    fn what_is_more_than_adding_and_checking_is_no_chain() {
        let change = |changes: &[DocumentChange]| {
            let plan = CommitPlan::new(changes);
            CteCommit::new(&plan, "space", None, 100).is_some()
        };
        let many: Vec<DocumentChange> = (0..=MAX_PARTS)
            .map(|n| put(&n.to_string(), Expected::Any))
            .collect();
        assert!(change(&many[1..]) && !change(&many));
        let large = DocumentChange::Put {
            key: "a".into(),
            document: Document::new("", vec![0; 101]),
            expect: Expected::Absent,
        };
        let others = [
            put("a", Expected::Version(OLD)),
            check("a", Expected::Absent),
            check("a", Expected::Version(OLD)),
            DocumentChange::Delete {
                key: "a".into(),
                expect: Expected::Any,
            },
            DocumentChange::Move {
                from: "a".into(),
                to: "b".into(),
                version: OLD,
            },
            large,
        ];
        for other in others {
            assert!(!change(std::slice::from_ref(&other)), "{other:?}");
        }
    }
}
