//! The kinds of folders that are agents, and how each is read.
//!
//! Every layout is one module with a [`LayoutDef`], and one line in the table in `table.rs`. Its
//! `load` function reads the settings of a folder and checks them; the draft it returns becomes the
//! [`Definition`](crate::Definition). The rest of the program asks the table and never matches on
//! [`Layout`]. Layouts read the files they are given and change nothing.
//!
//! Effects: workspace files (reads).

mod agentscope;
mod agentscope_py;
mod deepagents;
mod deepagents_deploy;
mod draft;
mod openharness;
mod openpaw;
mod project;
mod project_files;
mod stead;
mod subagents;
mod table;

pub use openpaw::{WorkspaceNameError, check_workspace_name};
pub use table::{
    AgentChoice, AgentToolLists, BuiltInSurface, CheckName, InnerDirs, Layout, LayoutDef,
    LayoutMark, MarkRank, MarkStrength, Strictness, UnknownTools,
};

pub(crate) use openharness::{
    TextOr, TextSource, first_duplicate, is_valid_name, list_definitions, suggestion,
};

pub use draft::is_secret_variable;
pub(crate) use draft::{
    Draft, SettingsRoot, SettingsText, decode_text, is_secret_name, unresolved_severity,
};
pub(crate) use project_files::is_project_agent;
pub(crate) use subagents::{ParsedSubagent, definition_id, parse as parse_subagent};

use crate::profile::ParsedProfile;
use crate::{ProfileLayer, TrustJudge};
use std::path::PathBuf;
use std::sync::Arc;
use stead_model::KeyPolicy;
use stead_vfs::{VPath, Vfs};

/// The options for opening a folder as a workspace.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// The layout; none = the layout is detected.
    pub layout: Option<Layout>,
    /// The name of the main agent, where the folder defines several.
    pub agent: Option<String>,
    /// The name of the folder, where it is known.
    pub folder: Option<String>,
    /// The model, as `provider:model`. It replaces the model that the folder names.
    pub model: Option<String>,
    /// Whether a model will be used. If not, a model that cannot be found is not an error.
    pub model_use: ModelUse,
    /// The files that many workspaces share: models and agents of a platform (`models/*.yaml`,
    /// `agents/*.md`), and OpenPaw's global `config.yaml`.
    pub platform: Option<Arc<dyn Vfs>>,
    /// Additional context files, from the root of the workspace.
    pub memory: Vec<String>,
    /// Additional folders of skills, from the root of the workspace.
    pub skills: Vec<String>,
    /// The person's own folder, which has skills for all workspaces; none if it is the workspace
    /// itself.
    pub home: Option<Arc<dyn Vfs>>,
    /// The folder of this machine for derived data of places that are not folders; none = no such
    /// data is stored.
    pub cache: Option<PathBuf>,
    /// Decides whether the folder may act; none = it may. A program that opens folders of others
    /// sets it.
    pub trust: Option<Arc<dyn TrustJudge>>,
    /// Which endpoints may be sent which keys. The default restricts nothing.
    pub keys: Arc<KeyPolicy>,
    /// Files and folders of the workspace that the agent may neither read nor change, such as the
    /// person's own settings where they lie in it.
    pub private_paths: Vec<VPath>,
    /// The person's own profiles. Those of the folder override them.
    pub profiles: Vec<ProfileLayer>,
}

/// Whether a model will be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelUse {
    /// A model will be used.
    #[default]
    Required,
    /// A model will be used: the one that a session recorded, or else the configured one. A
    /// configured model that is missing or wrong is no error yet.
    RecordedOrConfigured,
    /// Only files are read.
    NotNeeded,
}

/// The inputs of a layout's `load` function.
pub struct LoadCx<'a> {
    /// The files of the folder.
    pub files: &'a Arc<dyn Vfs>,
    /// The variables of the process. The folder's own `.env` overrides them.
    pub variables: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// The options.
    pub options: &'a OpenOptions,
}

/// Checks the profiles of the folder. Their settings are read again for every turn.
pub(crate) async fn load_profiles(draft: &mut Draft<'_>) {
    let folder = draft.layout().def().profiles_dir;
    let mut read = Vec::new();
    for path in list_definitions(draft, SettingsRoot::Workspace, folder, ".yaml").await {
        let Some(file) = draft.read_file(&path).await else {
            continue;
        };
        match ParsedProfile::parse(&file.file, &file.text) {
            Ok(profile) => read.push(profile),
            Err(findings) => findings.into_iter().for_each(|finding| draft.note(finding)),
        }
    }
    ParsedProfile::duplicate_findings(&read)
        .into_iter()
        .for_each(|finding| draft.note(finding));
    read.into_iter()
        .flat_map(|profile| profile.notes)
        .for_each(|note| draft.note(note));
}

/// Returns the layout of a folder by its marks, or that of an ordinary project if there are none.
pub async fn detect_layout(files: &dyn Vfs) -> Layout {
    try_detect_layout(files).await.unwrap_or(Layout::UNMARKED)
}

/// Returns the layout of a folder by its marks, if there are any.
///
/// An agent must not be able to turn its folder into a workspace of another layout with fewer
/// rules: in no layout can it write the marks of another.
pub async fn try_detect_layout(files: &dyn Vfs) -> Option<Layout> {
    let has = async |mark: &str| match VPath::parse(mark) {
        Ok(path) => files.stat(&path).await.is_ok(),
        Err(_) => false,
    };
    Layout::from_marks(has).await
}

#[cfg(test)]
mod tests;
