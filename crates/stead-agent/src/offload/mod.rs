//! Offloading: texts and media that are too long for the conversation are moved to files of the
//! session before they are recorded.
//!
//! ```text
//! <runtime>/agents/<agent>/offload/<session>/<call>.txt          a long result
//! <runtime>/agents/<agent>/offload/<session>/input-<run>.md      a long message
//! <runtime>/agents/<agent>/offload/<session>/media/<sha256>.png  an image, once
//! ```
//!
//! The folder is part of the tree: the agent can read and search it, but not change it. It is
//! removed with its session, and its size is limited.
//!
//! Effects: workspace files (writes).

mod cleanup;
mod copy;
mod media;
mod media_loader;
mod text;

pub(crate) use cleanup::{OffloadFolders, SessionFolder, orphaned_folders};
pub(crate) use copy::copy_entries;
pub use copy::copy_offloaded;
pub(crate) use media_loader::MediaLoader;

use bytes::Bytes;
use std::sync::Arc;
use stead_core::{AccessKind, Block, Redactor, SessionId, VerdictKind};
use stead_tools::{OutputLength, PreviewKind, Quota, ReadTools, SpillFactory, SpillSite};
use stead_vfs::{Expect, Rules, VPath, Vfs, VfsError};
use stead_workspace::{OffloadSettings, Workspace, offload_folder};

/// Content that cannot be written to a file stays in the conversation if it is shorter than this.
const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// Offloads long content of one session.
#[derive(Debug)]
pub(crate) struct Offload {
    files: Arc<dyn Vfs>,
    /// The folder of the session.
    folder: VPath,
    quota: Arc<Quota>,
    settings: OffloadSettings,
    rules: Arc<Rules>,
    redactor: Redactor,
    readers: ReadTools,
}

/// Why content was not written to a file.
#[derive(Debug)]
enum OffloadFailure {
    /// The session has used up its space.
    Quota(String),
    /// The file could not be written, or the rules do not allow reading it.
    Failed(String),
}

impl OffloadFailure {
    fn into_text(self) -> String {
        match self {
            Self::Quota(why) | Self::Failed(why) => why,
        }
    }
}

/// Returns the folder with the offloaded files of a session.
pub(crate) fn session_folder(
    workspace: &Workspace,
    session: &SessionId,
) -> Result<VPath, VfsError> {
    let runtime = &workspace.definition.paths.runtime;
    let agent = workspace.config().agent_id();
    Ok(offload_folder(runtime, &agent)?.join(session.as_str())?)
}

impl Offload {
    /// Creates the offload of `session` in the tree `files`.
    pub(crate) fn new(
        workspace: &Workspace,
        session: &SessionId,
        files: Arc<dyn Vfs>,
        redactor: Redactor,
        readers: ReadTools,
    ) -> Result<Self, VfsError> {
        let folder = session_folder(workspace, session)?;
        let settings = workspace.config().offload.clone();
        let quota = Arc::new(Quota::new(
            files.clone(),
            folder.clone(),
            settings.max_bytes(),
        ));
        Ok(Self {
            files,
            folder,
            quota,
            settings,
            rules: workspace.rules.clone(),
            redactor,
            readers,
        })
    }

    /// Returns the result of a call as it is recorded. `window` is the context window of the model
    /// in tokens.
    pub(crate) async fn offload_result(
        &self,
        call: &str,
        length: OutputLength,
        content: Vec<Block>,
        window: Option<u64>,
    ) -> Vec<Block> {
        let content = match length {
            OutputLength::Bounded => content,
            OutputLength::Any => {
                let limit = self.settings.result_limit(window);
                self.offload_text(PreviewKind::Output, &format!("{call}.txt"), content, limit)
                    .await
            }
        };
        self.offload_media(content).await
    }

    /// Returns a message as it is recorded. Long text is moved to the file `name`.
    pub(crate) async fn offload_message(
        &self,
        name: &str,
        content: Vec<Block>,
        window: Option<u64>,
    ) -> Vec<Block> {
        let limit = self.settings.message_limit(window);
        let content = self
            .offload_text(PreviewKind::Message, name, content, limit)
            .await;
        self.offload_media(content).await
    }

    /// Returns what takes the output of a call while it runs.
    pub(crate) fn spills(
        &self,
        call: &str,
        listener: Arc<dyn Fn(String) + Send + Sync>,
    ) -> SpillFactory {
        SpillFactory::at(SpillSite {
            files: self.files.clone(),
            folder: self.folder.clone(),
            name: call.to_owned(),
            cap_bytes: SpillSite::CAP_BYTES,
            quota: self.quota.clone(),
            redactor: self.redactor.clone(),
            readers: self.readers,
            listener,
        })
    }

    /// Writes a file that the agent can read.
    async fn put(&self, path: &VPath, data: Bytes, expect: Expect) -> Result<(), OffloadFailure> {
        if self.rules.decide(AccessKind::Read, path).kind == VerdictKind::Deny {
            return Err(OffloadFailure::Failed(format!(
                "permissions keep {path} from being read"
            )));
        }
        let bytes = data.len() as u64;
        if !self.quota.try_reserve(bytes).await {
            return Err(OffloadFailure::Quota(self.quota.describe()));
        }
        match self.files.write(path, data, expect).await {
            Ok(_) => Ok(()),
            Err(error) => {
                self.quota.release(bytes);
                match error {
                    VfsError::Exists(_) => Ok(()),
                    error => Err(OffloadFailure::Failed(format!(
                        "it could not be written: {error}"
                    ))),
                }
            }
        }
    }
}
