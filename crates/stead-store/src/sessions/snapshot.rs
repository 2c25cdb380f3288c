//! The snapshot of a session: a copy of its state for people and other programs.
//!
//! Effects: the local disk (writes).

use super::dirs::make_dirs;
use crate::{Disk, Position, open_dir};
use serde::Serialize;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use stead_core::{FORMAT_VERSION, SessionState};

/// The content of the file.
#[derive(Serialize)]
struct SnapshotFile<'a> {
    version: u32,
    position: Position,
    messages: usize,
    #[serde(flatten)]
    state: &'a SessionState,
}

/// Writes the state of a session at `position` below the agent's folder `root`.
pub(super) fn write_snapshot(
    disk: &dyn Disk,
    root: &Path,
    state: &SessionState,
    position: Position,
) -> io::Result<()> {
    let Some(id) = &state.session else {
        return Ok(());
    };
    let dir = root.join("context").join(id.as_str());
    make_dirs(disk, &dir)?;
    let snapshot = SnapshotFile {
        version: FORMAT_VERSION,
        position,
        messages: state.turns.len(),
        state,
    };
    let text = serde_json::to_vec_pretty(&snapshot)?;
    disk.replace(
        open_dir(&dir)?.as_fd(),
        Path::new("agent_state.json"),
        &text,
        0o600,
    )
}
