//! What a folder says an agent is, whichever layout it has.

use crate::skills::Flavor;
use crate::{AgentConfig, AgentSpec, Finding, Layout, Spot, Surface, ToolLists};
use std::collections::BTreeMap;
use stead_vfs::{Protected, VPath};

/// An agent as its folder defines it. Every layout comes to this.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The layout of the folder.
    pub layout: Layout,
    /// Its settings, whichever files they came from.
    pub config: AgentConfig,
    /// Where its parts lie.
    pub tree: Tree,
    /// Agents it defines beside itself, by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// Which of them the main agent is; none = the workspace itself.
    pub active: Option<String>,
    /// Tools that settings other than `tools.json` allow and deny; a tool must pass all lists.
    pub tools: Vec<ToolLists>,
    /// How tools are named to the model.
    pub surface: Surface,
    /// Parts of the prompt that are fixed by the layout's settings.
    pub texts: Vec<FixedText>,
    /// What a person should know. Never an error: a definition with errors is not made.
    pub findings: Vec<Finding>,
    /// Where each setting came from, by key.
    pub origins: BTreeMap<String, Origin>,
}

/// Where the parts of an agent lie in its folder.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Files that are shown whole, in order; the first is the persona.
    pub context: Vec<ContextFile>,
    /// Curated memory, shown within a budget.
    pub memory: Option<VPath>,
    /// The folder of the facts of each day.
    pub days: Option<VPath>,
    /// The folder of knowledge: its `KNOWLEDGE.md` is shown whole, the rest listed.
    pub knowledge: Option<VPath>,
    /// Folders of skills, lowest first.
    pub skills: Vec<VPath>,
    /// How strictly its skills are read.
    pub flavor: Flavor,
    /// Folder of agent definitions that are read again each turn.
    pub subagents: Option<VPath>,
    /// Tools allowed and denied, read again each turn.
    pub tools: Option<VPath>,
    /// Folder below which `agents/<id>/` holds sessions and other runtime state.
    pub runtime: VPath,
    /// Where files go that are written outside every known folder.
    pub home: Option<VPath>,
    /// What no rule can open.
    pub protected: Protected,
}

/// A file that is shown whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Where it lies.
    pub path: VPath,
    /// The tag around it.
    pub tag: String,
    /// Whether files of the same name in folders below, down to the working folder, are shown too.
    pub nested: Nested,
}

/// Whether a context file has siblings in folders below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// Only this file.
    No,
    /// One in every folder down to the working folder.
    Yes,
}

impl ContextFile {
    /// A file shown under a tag made of its path: `notes/Style.md` is `<notes_style_md>`.
    pub fn named(path: VPath) -> Self {
        let letter = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let tag: String = path.as_str().to_lowercase().chars().map(letter).collect();
        let tag = if tag.starts_with(|c: char| c.is_numeric()) { format!("_{tag}") } else { tag };
        Self { path, tag, nested: Nested::No }
    }
}

/// A part of the prompt that settings give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedText {
    /// What it is about, for listings.
    pub title: String,
    /// Where it stands among the sections: see [`crate::order`].
    pub order: u16,
    /// The file it came from.
    pub source: String,
    /// The text; if `tag` is set it is enclosed in it.
    pub text: String,
    /// The tag around it.
    pub tag: Option<String>,
}

/// Where a setting came from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Origin {
    /// The file, or what else gave it (`default`, `the flag -m`, a variable).
    pub source: String,
    /// Where in the file.
    #[serde(flatten)]
    pub place: Option<Spot>,
}

impl Definition {
    /// The agent's own definition, if it is one of [`Definition::agents`].
    pub fn active_spec(&self) -> Option<&AgentSpec> {
        self.agents.get(self.active.as_ref()?)
    }
}
