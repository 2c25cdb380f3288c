//! Removal of offloaded files together with their session.
//!
//! Effects: the clock, workspace files (writes).

use super::session_folder;
use crate::{AgentError, AgentParts};
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_vfs::{FileKind, VPath, Vfs, VfsError};
use stead_workspace::offload_folder;

/// The number of entries of one folder that count towards its size.
const MAX_ENTRIES: usize = 100_000;

/// The folder with the offloaded files of one session.
#[derive(Debug)]
pub(crate) struct SessionFolder {
    session: SessionId,
    path: VPath,
}

/// The folders with the offloaded files of an owner's sessions.
#[derive(Debug)]
pub(crate) struct OffloadFolders<'a> {
    parts: &'a AgentParts,
    owner: Owner,
    /// The tree of the owner outside any session.
    files: Arc<dyn Vfs>,
}

impl<'a> OffloadFolders<'a> {
    pub(crate) fn new(parts: &'a AgentParts, owner: &Owner) -> Self {
        Self {
            parts,
            owner: owner.clone(),
            files: parts.place.files(owner, &SessionId::sessionless(), None),
        }
    }

    /// Removes the offloaded files of a session.
    pub(crate) async fn remove_of_session(&self, session: &SessionId) -> Result<(), AgentError> {
        let folder = session_folder(&self.parts.workspace, session)?;
        let files = self.parts.place.files(&self.owner, session, None);
        remove(&*files, &folder).await
    }

    /// Lists the folders of sessions in the tree of the owner. If each session has a tree of its
    /// own, there are none.
    pub(crate) async fn list(&self) -> Result<Vec<SessionFolder>, AgentError> {
        let workspace = &self.parts.workspace;
        let runtime = &workspace.definition.paths.runtime;
        let agent = workspace.config().agent_id();
        let root = offload_folder(runtime, &agent).map_err(VfsError::from)?;
        let entries = match self.files.list(&root).await {
            Ok(entries) => entries,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let folders = entries
            .into_iter()
            .filter(|entry| entry.kind == FileKind::Directory && !entry.link);
        let named = folders.filter_map(|entry| {
            Some(SessionFolder {
                session: SessionId::new(&entry.name).ok()?,
                path: root.join(&entry.name).ok()?,
            })
        });
        Ok(named.collect())
    }

    /// Returns the size of a folder in bytes.
    pub(crate) async fn size(&self, folder: &SessionFolder) -> Result<u64, AgentError> {
        let walk = self.files.walk(&folder.path, None, MAX_ENTRIES).await?;
        Ok(walk.entries.iter().map(|(_, entry)| entry.size).sum())
    }

    /// Removes a folder.
    pub(crate) async fn remove(&self, folder: &SessionFolder) -> Result<(), AgentError> {
        remove(&*self.files, &folder.path).await
    }
}

/// Returns the folders whose session is not in `sessions`.
pub(crate) fn orphaned_folders<'a>(
    folders: &'a [SessionFolder],
    sessions: &BTreeSet<&SessionId>,
) -> Vec<&'a SessionFolder> {
    folders
        .iter()
        .filter(|folder| !sessions.contains(&folder.session))
        .collect()
}

async fn remove(files: &dyn Vfs, folder: &VPath) -> Result<(), AgentError> {
    match files.remove(folder).await {
        Ok(()) | Err(VfsError::NotFound(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
