//! The kinds of folders that are agents, and how each is read.
//!
//! Every layout is one module with a [`LayoutDef`], and one line in the table in `table.rs`. Its
//! `load` function reads the settings of a folder, checks them and returns one [`Definition`]. The
//! rest of the program asks the table and never matches on [`Layout`].

mod agentscope;
mod agentscope_py;
mod deepagents;
mod draft;
mod openharness;
mod openpaw;
mod stead;
mod subagents;
mod table;

pub use openpaw::{WorkspaceNameError, check_workspace_name};
pub use table::{
    AgentChoice, AgentToolLists, BuiltInSurface, CheckName, InnerDirs, Layout, LayoutDef,
    LayoutMark, MarkRank, MarkStrength, UnknownTools,
};

pub(crate) use openharness::{
    TextOr, TextSource, first_duplicate, is_valid_name, list_definitions, suggestion,
};

pub(crate) use draft::{Draft, SettingsRoot, SettingsText, decode_text, is_secret_name};
pub(crate) use subagents::parse as parse_subagent;

use crate::profile::ParsedProfile;
use crate::{Definition, Finding};
use std::path::PathBuf;
use std::sync::Arc;
use stead_vfs::{VPath, Vfs};

/// What a folder is opened with.
#[derive(Clone, Default)]
pub struct OpenOptions {
    /// The layout; none = it is detected.
    pub layout: Option<Layout>,
    /// The agent of the folder that is to be the main one, where it defines several.
    pub agent: Option<String>,
    /// The name of the folder, where it is known.
    pub folder: Option<String>,
    /// The model the command line gives, `provider:model`; it replaces whatever the folder names.
    pub model: Option<String>,
    /// Whether a model will be asked; if not, one that cannot be found is no reason to refuse.
    pub model_use: ModelUse,
    /// What many workspaces share: models and agents of a platform (`models/*.yaml`,
    /// `agents/*.md`), and OpenPaw's global `config.yaml`.
    pub platform: Option<Arc<dyn Vfs>>,
    /// More files to show whole, from the root of the workspace.
    pub memory: Vec<String>,
    /// More folders of skills, from the root of the workspace.
    pub skills: Vec<String>,
    /// The person's own folder, which has skills for all workspaces; none if it is the workspace
    /// itself.
    pub home: Option<Arc<dyn Vfs>>,
    /// Where this machine keeps what is derived from places that are not folders; none = nowhere.
    pub cache: Option<PathBuf>,
}

/// Whether a model will be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelUse {
    /// One will.
    #[default]
    Required,
    /// Only files are looked at.
    NotNeeded,
}

/// What a layout reads from.
pub struct LoadCx<'a> {
    /// The folder.
    pub files: &'a Arc<dyn Vfs>,
    /// Variables of the process; a folder's own `.env` goes before them.
    pub variables: &'a (dyn Fn(&str) -> Option<String> + Sync),
    /// How it is to be opened.
    pub options: &'a OpenOptions,
}

/// Reads the folder. On errors, all of them are told.
pub(crate) async fn load(layout: Layout, cx: &LoadCx<'_>) -> Result<Definition, Vec<Finding>> {
    let def = layout.def();
    let mut draft = (def.load)(layout, cx).await;
    load_profiles(&mut draft, def.profiles_dir).await;
    draft.finish()
}

/// Reads the profiles in `folder` for what is wrong with them; what they say is read for every
/// turn.
async fn load_profiles(draft: &mut Draft<'_>, folder: &str) {
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

/// The layout of a folder: by what only one kind has; stead's own if nothing tells.
pub async fn detect_layout(files: &dyn Vfs) -> Layout {
    try_detect_layout(files).await.unwrap_or_default()
}

/// The layout of a folder; none if nothing in it says that it is an agent.
///
/// An agent must not make its folder another kind of workspace, one with fewer rules: in no layout
/// can it write the marks of another.
pub async fn try_detect_layout(files: &dyn Vfs) -> Option<Layout> {
    let has = async |mark: &str| match VPath::parse(mark) {
        Ok(path) => files.stat(&path).await.is_ok(),
        Err(_) => false,
    };
    Layout::from_marks(has).await
}

#[cfg(test)]
mod tests;
