//! A folder opened as a workspace.

use crate::{AgentConfig, ConfigError, Prompt, SessionFacts};
use std::sync::{Arc, Mutex, PoisonError};
use stead_vfs::{FileKind, Protected, ReadRange, RuleError, Rules, VPath, Version, Vfs, VfsError};

/// Largest settings or persona file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A workspace: its files, and the settings read from them.
#[derive(Debug)]
pub struct Workspace {
    /// All files of it.
    pub files: Arc<dyn Vfs>,
    /// What `agent.yaml` says.
    pub config: AgentConfig,
    /// What the agent may read and write, compiled from its `permissions:`.
    pub rules: Arc<Rules>,
    /// AGENTS.md as last read; read again only when it changed.
    persona: Mutex<Option<(Version, Arc<str>)>>,
}

/// Why a folder is not a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Its settings are wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its file rules are wrong.
    #[error("agent.yaml: {0}")]
    Rules(#[from] RuleError),
    /// A file cannot be read.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// A file is not text.
    #[error("{0} is not UTF-8 text; save it as UTF-8")]
    NotText(VPath),
}

impl Workspace {
    /// Reads the settings of the workspace in `files`, taking variables from `lookup`.
    pub async fn open(
        files: Arc<dyn Vfs>,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Self, WorkspaceError> {
        let config = match read_text(&*files, "agent.yaml").await? {
            Some((text, _)) => AgentConfig::parse(&text, lookup)?,
            None => AgentConfig::default(),
        };
        let rules = Arc::new(Rules::new(&config.permissions, Protected::STEAD)?);
        Ok(Self { files, config, rules, persona: Mutex::default() })
    }

    /// The prompt as it is now: files that changed since the last call are read again.
    pub async fn prompt(&self, facts: &SessionFacts) -> Result<Prompt, WorkspaceError> {
        let persona = self.persona().await?;
        let mut prompt = Prompt::assemble(persona.as_deref(), facts);
        if let Some(description) = &self.config.description {
            prompt.describe(description);
        }
        Ok(prompt)
    }

    async fn persona(&self) -> Result<Option<Arc<str>>, WorkspaceError> {
        let path = VPath::parse("AGENTS.md").map_err(VfsError::from)?;
        let current = match self.files.stat(&path).await {
            Ok(stat) => stat.version,
            Err(VfsError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let known = self.persona.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, text)) = known.filter(|(version, _)| *version == current) {
            return Ok(Some(text));
        }
        let Some((text, version)) = read_text(&*self.files, "AGENTS.md").await? else { return Ok(None) };
        let text: Arc<str> = text.into();
        *self.persona.lock().unwrap_or_else(PoisonError::into_inner) = Some((version, text.clone()));
        Ok(Some(text))
    }
}

async fn read_text(files: &dyn Vfs, name: &str) -> Result<Option<(String, Version)>, WorkspaceError> {
    let path = VPath::parse(name).map_err(VfsError::from)?;
    let stat = match files.stat(&path).await {
        Ok(stat) => stat,
        Err(VfsError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match stat.kind {
        FileKind::File => {}
        FileKind::Directory => return Err(VfsError::IsDirectory(path).into()),
        FileKind::Other => return Err(VfsError::Special(path).into()),
    }
    if stat.size > MAX_FILE_BYTES {
        return Err(VfsError::TooLarge { path, size: stat.size, limit: MAX_FILE_BYTES }.into());
    }
    let (bytes, version) = files.read(&path, ReadRange::ALL).await?;
    match String::from_utf8(bytes.into()) {
        Ok(text) => Ok(Some((text, version))),
        Err(_) => Err(WorkspaceError::NotText(path)),
    }
}
