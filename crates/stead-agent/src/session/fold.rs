//! The folded journal of a session.
//!
//! Effects: none.

use std::sync::Arc;
use stead_core::{Entry, FoldError, JournalLine, SessionState};
use stead_store::Position;
use stead_tools::{ActiveSkills, FileVersions};

/// The state of a session as its journal says, the end of the journal it was folded from, and the
/// views of it that tools hold while they run.
#[derive(Debug, Default)]
pub(super) struct SessionFold {
    state: SessionState,
    position: Option<Position>,
    file_versions: Arc<FileVersions>,
    active_skills: Arc<ActiveSkills>,
}

/// Whether folded entries may have changed the permissions of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionChange {
    None,
    Possible,
}

impl SessionFold {
    /// Returns the state of the session.
    pub(super) fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the end of the journal, if the journal was opened for writing before.
    pub(super) fn position(&self) -> Option<Position> {
        self.position
    }

    /// Returns the versions of files that the model has seen.
    pub(super) fn file_versions(&self) -> Arc<FileVersions> {
        self.file_versions.clone()
    }

    /// Returns the skills that are active.
    pub(super) fn active_skills(&self) -> Arc<ActiveSkills> {
        self.active_skills.clone()
    }

    /// Replaces the state by one that was folded from the whole journal.
    pub(super) fn replace(&mut self, state: SessionState) {
        self.file_versions = Arc::new(FileVersions::new(state.seen.clone()));
        self.active_skills = Arc::new(ActiveSkills::new(&state.skills));
        self.state = state;
        self.position = None;
    }

    /// Sets the end of the journal that the state was folded from.
    pub(super) fn set_position(&mut self, position: Position) {
        self.position = Some(position);
    }

    /// Folds lines that were just written.
    pub(super) fn apply(&mut self, lines: &[JournalLine]) -> Result<PermissionChange, FoldError> {
        let mut change = PermissionChange::None;
        for line in lines {
            self.state.apply(line.seq, &line.entry)?;
            match &line.entry {
                Entry::Result(result) => {
                    if result.change.is_some() || result.untrusted {
                        change = PermissionChange::Possible;
                    }
                    self.file_versions.record(&result.seen);
                    if let Some(activation) = &result.activates {
                        self.active_skills.record(activation);
                    }
                }
                Entry::Rewind(_) => {
                    self.active_skills = Arc::new(ActiveSkills::new(&self.state.skills));
                    change = PermissionChange::Possible;
                }
                Entry::Compaction(_) => {
                    self.active_skills = Arc::new(ActiveSkills::new(&self.state.skills));
                }
                Entry::Set(_) => change = PermissionChange::Possible,
                Entry::Notice(notice) if notice.untrusted => change = PermissionChange::Possible,
                Entry::Session(_)
                | Entry::User(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Steer(_)
                | Entry::Pin(_)
                | Entry::Hook(_)
                | Entry::Sent(_)
                | Entry::End(_) => {}
            }
        }
        Ok(change)
    }
}
