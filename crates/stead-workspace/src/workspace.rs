//! A folder opened as a workspace.

use crate::layout::{detect, load};
use crate::{AgentConfig, Definition, Finding, LoadCx, OpenOptions, Prompt, SessionFacts};
use std::sync::{Arc, Mutex, PoisonError};
use stead_vfs::{FileKind, ReadRange, RuleError, Rules, VPath, Version, Vfs, VfsError};

/// Largest settings or persona file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// How many personas are remembered: users of a shared place may each have their own.
const KEPT_PERSONAS: usize = 64;

/// A workspace: its files, and what they say the agent is.
#[derive(Debug)]
pub struct Workspace {
    /// The files it was opened from: everything for a local place, a template for a shared one.
    pub files: Arc<dyn Vfs>,
    /// What they say the agent is.
    pub definition: Definition,
    /// Personas as last read, by version, newest last: a file is read again only when it changed.
    personas: Mutex<Vec<(Version, Arc<str>)>>,
    /// What the agent may read and write, compiled from its `permissions:`.
    pub rules: Arc<Rules>,
}

/// Why a folder is not a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Its settings are wrong.
    #[error("{}", lines(.0))]
    Invalid(Vec<Finding>),
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

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Workspace {
    /// Opens the workspace in `files`, taking variables from `lookup`.
    pub async fn open(
        files: Arc<dyn Vfs>,
        options: &OpenOptions,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Self, WorkspaceError> {
        let layout = match options.layout {
            Some(layout) => layout,
            None => detect(&*files).await,
        };
        let cx = LoadCx { files: &files, variables: lookup, options };
        let definition = load(layout, &cx).await.map_err(WorkspaceError::Invalid)?;
        let rules = Arc::new(Rules::new(&definition.config.permissions, definition.tree.protected)?);
        Ok(Self { files, definition, rules, personas: Mutex::default() })
    }

    /// Its settings.
    pub fn config(&self) -> &AgentConfig {
        &self.definition.config
    }

    /// The prompt as it is now in `files`: those that changed since the last call are read again.
    pub async fn prompt(&self, files: &dyn Vfs, facts: &SessionFacts) -> Result<Prompt, WorkspaceError> {
        let persona = self.persona(files).await?;
        let mut prompt = Prompt::assemble(persona.as_deref(), facts);
        if let Some(description) = &self.config().description {
            prompt.describe(description);
        }
        Ok(prompt)
    }

    async fn persona(&self, files: &dyn Vfs) -> Result<Option<Arc<str>>, WorkspaceError> {
        let path = VPath::parse("AGENTS.md").map_err(VfsError::from)?;
        let current = match files.stat(&path).await {
            Ok(stat) => stat.version,
            Err(VfsError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Some(text) = self.known_persona(&current) {
            return Ok(Some(text));
        }
        let Some((text, version)) = read_text(files, "AGENTS.md").await? else { return Ok(None) };
        let text: Arc<str> = text.into();
        let mut personas = self.personas.lock().unwrap_or_else(PoisonError::into_inner);
        personas.retain(|(known, _)| *known != version);
        if personas.len() == KEPT_PERSONAS {
            personas.remove(0);
        }
        personas.push((version, text.clone()));
        Ok(Some(text))
    }

    fn known_persona(&self, version: &Version) -> Option<Arc<str>> {
        let personas = self.personas.lock().unwrap_or_else(PoisonError::into_inner);
        personas.iter().find(|(known, _)| known == version).map(|(_, text)| text.clone())
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
