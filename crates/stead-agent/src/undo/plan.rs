//! The plan of an undo, and the comparison of file states.
//!
//! Effects: none.

use std::collections::{BTreeMap, BTreeSet};
use stead_core::RunId;
use stead_store::RunKey;
use stead_vfs::{ChangeRecord, FileState, VPath, Version};

/// What an undo does, or why it cannot be done.
#[derive(Debug, Default)]
pub struct UndoPlan {
    /// The steps, sorted by path.
    pub steps: Vec<UndoStep>,
    /// The reasons why it cannot be done; empty if it can.
    pub obstacles: Vec<UndoObstacle>,
    pub(super) runs: Vec<RunKey>,
}

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// The path.
    pub path: VPath,
    /// What is done to it.
    pub action: UndoAction,
}

/// What an undo does to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAction {
    /// Restores the earlier content of a file.
    Restore {
        /// The hash of the content.
        hash: String,
        /// The permission bits, if they are known.
        mode: Option<u32>,
        /// The version of the file that is there now, if there is one.
        over: Option<Version>,
    },
    /// Removes a file that the run created.
    Remove,
    /// Creates a directory that the run removed.
    MakeDirectory {
        /// The permission bits, if they are known.
        mode: Option<u32>,
    },
    /// Moves back what the run moved, and whose content is not kept.
    MoveBack {
        /// Where it is now.
        from: VPath,
    },
    /// Removes a directory that the run created, if it is empty.
    RemoveDirectory,
}

/// Why a path cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UndoObstacle {
    /// It is not as the run left it.
    #[error("{0} was changed since, by someone else")]
    Changed(VPath),
    /// The changes of the run are no longer recorded.
    #[error("what run {0} changed is no longer known (`undo:` in agent.yaml bounds it)")]
    Forgotten(RunId),
    /// The earlier state was not recorded.
    #[error("{path} cannot be put back: {reason}")]
    NotCaptured {
        /// The path.
        path: VPath,
        /// The reason.
        reason: String,
    },
}

/// The state of each path before the first and after the last change.
pub(super) type NetChanges = BTreeMap<String, (FileState, FileState)>;

/// Returns for each path the state before the first and after the last change since the last undo.
pub(super) fn net_changes(records: &[ChangeRecord]) -> NetChanges {
    let done = records
        .iter()
        .rposition(|record| *record == ChangeRecord::Undone)
        .map_or(0, |at| at + 1);
    let records = &records[done..];
    let void: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| match record {
            ChangeRecord::Void { id } => Some(id.as_str()),
            ChangeRecord::Change { .. } | ChangeRecord::Undone => None,
        })
        .collect();
    let mut net = NetChanges::new();
    for record in records {
        let ChangeRecord::Change { id, paths } = record else {
            continue;
        };
        if void.contains(id.as_str()) {
            continue;
        }
        for change in paths {
            let after = after_all_moves(&net, change.after.clone());
            let entry = net.entry(change.path.clone());
            let first = entry.or_insert_with(|| (change.before.clone(), after.clone()));
            first.1 = after;
        }
    }
    net
}

/// Returns the state after a change. If what was moved had been moved before, it is told where it
/// was at first.
pub(super) fn after_all_moves(net: &NetChanges, after: FileState) -> FileState {
    let FileState::Moved { from, identity } = after else {
        return after;
    };
    let first = match net.get(&from) {
        Some((_, FileState::Moved { from: first, .. })) => first.clone(),
        Some(_) | None => from,
    };
    FileState::Moved {
        from: first,
        identity,
    }
}

/// Whether two states are equal: content always counts, permission bits if both are known.
pub(super) fn is_same_state(a: &FileState, b: &FileState) -> bool {
    match (a, b) {
        (FileState::File { hash: a, mode: m }, FileState::File { hash: b, mode: n }) => {
            a == b && (m.is_none() || n.is_none() || m.map(|m| m & 0o777) == n.map(|n| n & 0o777))
        }
        (FileState::Absent, FileState::Absent)
        | (FileState::Directory { .. }, FileState::Directory { .. }) => true,
        (
            FileState::Absent
            | FileState::Directory { .. }
            | FileState::File { .. }
            | FileState::Unkept(_)
            | FileState::Moved { .. },
            _,
        ) => false,
    }
}
