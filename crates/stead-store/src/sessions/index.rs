//! `sessions.json`: the summaries for listings, derived from the journals, which take precedence.

use crate::{Disk, Position, SessionSummary, StoreError};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;
use stead_core::{SessionId, SessionState};

pub(crate) const INDEX_FILE: &str = "sessions.json";
const INDEX_VERSION: u32 = 1;

/// The content of the file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionIndex {
    version: u32,
    pub(crate) sessions: BTreeMap<SessionId, SessionSummary>,
}

impl SessionIndex {
    /// Reads the index. An absent, broken or older file gives an empty index, because it can be
    /// rebuilt.
    pub(crate) fn load(dir: &Path) -> Self {
        let text = std::fs::read(dir.join(INDEX_FILE)).unwrap_or_default();
        serde_json::from_slice(&text)
            .ok()
            .filter(|index: &Self| index.version == INDEX_VERSION)
            .unwrap_or_default()
    }

    /// Merges `changes` into the file. Waits briefly for another process that does the same; the
    /// next listing notices an index that is out of date.
    pub(crate) fn merge(
        path: &Path,
        dir: &File,
        disk: &dyn Disk,
        changes: BTreeMap<SessionId, SessionSummary>,
    ) -> Result<(), StoreError> {
        for _ in 0..20 {
            match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let mut index = Self::load(path);
                    index.sessions.extend(changes);
                    let stored = index.store(path, dir, disk);
                    let _ = rustix::fs::flock(dir, FlockOperation::Unlock);
                    return stored;
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Ok(())
    }

    /// Writes the file.
    pub(crate) fn store(
        &mut self,
        path: &Path,
        dir: &File,
        disk: &dyn Disk,
    ) -> Result<(), StoreError> {
        self.version = INDEX_VERSION;
        let text = serde_json::to_vec_pretty(self).unwrap_or_default();
        disk.replace(dir.as_fd(), Path::new(INDEX_FILE), &text, 0o644)
            .map_err(|cause| StoreError::io(path.join(INDEX_FILE), cause))
    }
}

impl SessionSummary {
    /// Returns the summary of `state` for listings.
    pub(crate) fn of(
        id: &SessionId,
        state: &SessionState,
        position: Position,
        updated_ms: i64,
    ) -> Self {
        Self {
            id: id.clone(),
            title: state.title.clone(),
            parent: state.spawned.as_ref().map(|spawned| spawned.by.clone()),
            updated_ms,
            entries: position.seq,
            runs: state.runs,
            outcome: if state.run.is_some() {
                None
            } else {
                state.last_outcome
            },
            model: state.model.clone(),
            usage: state.usage,
            cost: state.cost,
            bytes: position.bytes,
            damage: None,
        }
    }
}
