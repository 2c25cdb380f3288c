//! What is too long for the conversation goes to files of the session, before it is on record.
//!
//! ```text
//! <runtime>/agents/<agent>/offload/<session>/<call>.txt          a long result
//! <runtime>/agents/<agent>/offload/<session>/input-<run>.md      a long message
//! <runtime>/agents/<agent>/offload/<session>/media/<sha256>.png  an image, once
//! ```
//!
//! The folder is part of the tree: the agent can read and search it, and change nothing in it. It
//! goes with its session, and what it may take is bounded.

mod cleanup;
mod copy;
mod media;
mod media_loader;
mod text;

pub(crate) use cleanup::{OffloadFolders, SessionFolder, orphaned_folders};
pub use copy::copy_offloaded;
pub(crate) use media_loader::MediaLoader;

use bytes::Bytes;
use std::sync::Arc;
use stead_core::{AccessKind, Block, Redactor, RunId, SessionId, VerdictKind};
use stead_tools::{OutputLength, PreviewKind, Quota, ReadTools, SpillFactory, SpillSite};
use stead_vfs::{Expect, Rules, VPath, Vfs, VfsError};
use stead_workspace::{OffloadSettings, Workspace, offload_folder};

/// What cannot be written stays in the conversation if it is shorter than this.
const MAX_INLINE_BYTES: usize = 1024 * 1024;

/// Where one session puts what is too long.
#[derive(Debug)]
pub(crate) struct Offload {
    files: Arc<dyn Vfs>,
    /// The session's own folder.
    folder: VPath,
    quota: Arc<Quota>,
    settings: OffloadSettings,
    rules: Arc<Rules>,
    redactor: Redactor,
    readers: ReadTools,
}

/// Why something is not in a file.
#[derive(Debug)]
enum OffloadFailure {
    /// There is no more room for files of this session.
    Quota(String),
    /// It could not be written, or nobody could read it there.
    Failed(String),
}

impl OffloadFailure {
    fn into_text(self) -> String {
        match self {
            Self::Quota(why) | Self::Failed(why) => why,
        }
    }
}

/// The folder of a session.
pub(crate) fn session_folder(
    workspace: &Workspace,
    session: &SessionId,
) -> Result<VPath, VfsError> {
    let runtime = &workspace.definition.paths.runtime;
    let agent = workspace.config().agent_id();
    Ok(offload_folder(runtime, &agent)?.join(session.as_str())?)
}

impl Offload {
    /// For `session`, whose files are `files`.
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

    /// The result of a call as it goes on record, where `window` tokens fit into a request.
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

    /// A message as it goes on record.
    pub(crate) async fn offload_input(
        &self,
        run: &RunId,
        content: Vec<Block>,
        window: Option<u64>,
    ) -> Vec<Block> {
        self.offload_message(&format!("input-{run}.md"), content, window)
            .await
    }

    /// A message as it goes on record; what is too long of it goes to the file of this name.
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

    /// Where the output of a call goes while it runs.
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
