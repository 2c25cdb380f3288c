//! The kinds of folders that are agents, and how each is read.
//!
//! Every layout is one module with a `load`: it reads the settings of a folder, checks them, and
//! gives one [`Definition`]. Nothing outside these modules knows how a foreign folder is laid out.

mod agentscope_py;
mod deepagents;
mod draft;
mod openharness;
mod openpaw;
mod stead;
mod subagents;

pub use openpaw::{WorkspaceNameError, check_workspace_name};

pub(crate) use openharness::{
    TextOr, TextSource, first_duplicate, is_valid_name, list_definitions, suggestion,
};

pub(crate) use draft::{Draft, SettingsRoot, SettingsText, decode_text, is_secret_name};
pub(crate) use subagents::parse as parse_subagent;

use crate::profile::ParsedProfile;
use crate::{Definition, Finding};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use stead_vfs::{VPath, Vfs};

/// The kinds of folders that are agents.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Our own: `AGENTS.md`, `agent.yaml`, …
    #[default]
    Stead,
    /// AgentScope's: the same tree, in `.agentscope/workspace/`.
    Agentscope,
    /// OpenHarness: `.openharness/` beside a project's `AGENTS.md`.
    Openharness,
    /// OpenPaw: `agent/ config/ data/ memory/ workspace/`, or its older flat form.
    Openpaw,
    /// Deep Agents: `AGENTS.md` files and folders of skills.
    Deepagents,
    /// A work directory of AgentScope's Python workspace: `.mcp`, `skills/`, `sessions/`, `data/`.
    AgentscopePy,
}

impl Layout {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Stead,
        Self::Agentscope,
        Self::Openharness,
        Self::Openpaw,
        Self::Deepagents,
        Self::AgentscopePy,
    ];

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stead => "stead",
            Self::Agentscope => "agentscope",
            Self::Openharness => "openharness",
            Self::Openpaw => "openpaw",
            Self::Deepagents => "deepagents",
            Self::AgentscopePy => "agentscope-py",
        }
    }
}

impl Layout {
    /// Names at the root that are known to the layout: what begins with none of them, and is not
    /// there, is written to [`Tree::home`](crate::Tree::home), where the layout has one.
    pub fn top_level_names(self) -> &'static [&'static str] {
        match self {
            Self::Openpaw => &openpaw::TOP_LEVEL_DIRS,
            Self::Stead
            | Self::Agentscope
            | Self::Openharness
            | Self::Deepagents
            | Self::AgentscopePy => &[],
        }
    }
}

impl Layout {
    /// The folder of profiles: our own is a part of the layout, in others it lies with what else is
    /// ours.
    pub fn profiles_dir(self) -> &'static str {
        match self {
            Self::Stead | Self::Agentscope => "profiles",
            Self::Openharness | Self::Openpaw | Self::Deepagents | Self::AgentscopePy => {
                ".stead/profiles"
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|layout| layout.as_str() == text)
            .ok_or_else(|| format!("layouts are: {}", known()))
    }
}

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
    let draft = match layout {
        Layout::Stead | Layout::Agentscope => stead::load(layout, cx).await,
        Layout::Openharness => openharness::load(cx).await,
        Layout::Openpaw => openpaw::load(cx).await,
        Layout::Deepagents => deepagents::load(cx).await,
        Layout::AgentscopePy => agentscope_py::load(cx).await,
    };
    let mut draft = draft;
    load_profiles(&mut draft, layout.profiles_dir()).await;
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
    const MARKERS: [(&str, Layout); 8] = [
        (".openharness", Layout::Openharness),
        (".deepagents", Layout::Deepagents),
        (".mcp", Layout::AgentscopePy),
        ("skills/.seed", Layout::AgentscopePy),
        ("agent.yaml", Layout::Stead),
        ("agent/AGENT.md", Layout::Openpaw),
        ("config/agent.yaml", Layout::Openpaw),
        ("AGENTS.md", Layout::Stead),
    ];
    let has = async |mark: &str| match VPath::parse(mark) {
        Ok(path) => files.stat(&path).await.is_ok(),
        Err(_) => false,
    };
    // The older form of OpenPaw has an `agent.yaml` too. Some keep an `AGENT.md` beside `AGENTS.md`
    // for other tools.
    if has("AGENT.md").await && !has("AGENTS.md").await {
        return Some(Layout::Openpaw);
    }
    for (mark, layout) in MARKERS {
        if has(mark).await {
            return Some(layout);
        }
    }
    None
}
