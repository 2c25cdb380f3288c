//! Files that go with their session.

use super::session_folder;
use crate::{Agent, AgentError};
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_vfs::{FileKind, VPath, Vfs, VfsError};
use stead_workspace::offload_folder;

/// Entries of one folder whose sizes are told.
const MAX_ENTRIES: usize = 100_000;

/// The folder of a session.
#[derive(Debug)]
pub(crate) struct SessionFolder {
    pub(crate) session: SessionId,
    path: VPath,
}

impl Agent {
    /// Removes what a session that is gone has offloaded.
    pub async fn forget_offloaded(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<(), AgentError> {
        let folder = session_folder(self.workspace(), session)?;
        remove(&*self.place().files(owner, session, None), &folder).await
    }

    /// The folders of sessions, as the tree of `owner` has them. Where each session has a tree of
    /// its own there are none to be seen from outside.
    pub(crate) async fn offload_folders(
        &self,
        owner: &Owner,
    ) -> Result<Vec<SessionFolder>, AgentError> {
        let runtime = &self.workspace().definition.paths.runtime;
        let agent = self.workspace().config().agent_id();
        let root = offload_folder(runtime, &agent).map_err(VfsError::from)?;
        let entries = match self.sessionless_tree(owner).list(&root).await {
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

    /// What a folder holds, in bytes.
    pub(crate) async fn offloaded_bytes(
        &self,
        owner: &Owner,
        folder: &SessionFolder,
    ) -> Result<u64, AgentError> {
        let walk = self
            .sessionless_tree(owner)
            .walk(&folder.path, None, MAX_ENTRIES)
            .await?;
        Ok(walk.entries.iter().map(|(_, entry)| entry.size).sum())
    }

    /// Removes a folder.
    pub(crate) async fn remove_offloaded(
        &self,
        owner: &Owner,
        folder: &SessionFolder,
    ) -> Result<(), AgentError> {
        remove(&*self.sessionless_tree(owner), &folder.path).await
    }

    fn sessionless_tree(&self, owner: &Owner) -> Arc<dyn Vfs> {
        self.place().files(owner, &SessionId::sessionless(), None)
    }
}

/// Those whose session is none of `sessions`.
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
