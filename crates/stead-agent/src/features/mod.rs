//! Capabilities of the harness, one module each.
//!
//! A [`Feature`] contributes tools and sections of the prompt. Features never call each other: they meet in
//! the journal and in the files. Adding one is its module and one line in [`all`].

mod base;
mod context;
mod files;
mod knowledge;
mod memory;
mod skills;
mod subagents;

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::sync::Arc;
use stead_core::{AgentId, Owner, SessionId};
use stead_tools::Tool;
use stead_vfs::{VPath, Vfs};
use stead_workspace::{Attached, Definition, PlaceKind, Reader, Section, Switch, ToolLists, Workspace, WorkspaceError};

/// One capability of the harness.
pub trait Feature: Debug + Send + Sync {
    /// Its name, as sections give it for their owner.
    fn name(&self) -> &'static str;

    /// The tools it always has.
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// What it adds to a turn.
    fn contribute<'a>(&'a self, cx: &'a TurnCx<'a>) -> BoxFuture<'a, Result<Contribution, WorkspaceError>>;
}

/// What a feature adds to a turn.
#[derive(Default)]
pub struct Contribution {
    /// Parts of the prompt.
    pub sections: Vec<Section>,
    /// Tools of this turn.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl From<Vec<Section>> for Contribution {
    fn from(sections: Vec<Section>) -> Self {
        Self { sections, tools: Vec::new() }
    }
}

/// What a feature may know of a turn.
#[derive(Debug)]
pub struct TurnCx<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The tree as this session sees it.
    pub files: &'a Arc<dyn Vfs>,
    /// Whose session it is.
    pub owner: &'a Owner,
    /// The session.
    pub session: &'a SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The folder that is worked in.
    pub folder: &'a VPath,
    /// What kind of place the tree lies in, and in words.
    pub place: (PlaceKind, String),
    /// What may be done to an attached project.
    pub project: Option<Attached>,
    /// Which tools there are, as all lists together say.
    pub lists: &'a [ToolLists],
    /// Tools that are there on every turn, by canonical name.
    pub tool_names: &'a [String],
    /// Today, as `YYYY-MM-DD`.
    pub date: String,
}

impl TurnCx<'_> {
    /// Whether the model can call the tool of this canonical name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tool_names.iter().any(|known| known == name) && self.allows_tool(name)
    }

    /// Whether the lists let a tool of this canonical name be.
    pub fn allows_tool(&self, name: &str) -> bool {
        self.lists.iter().all(|lists| lists.allow(name))
    }

    /// What the model knows a tool by.
    pub fn name_of(&self, tool: &'static str) -> &'static str {
        self.workspace.definition.surface.name(tool)
    }

    /// What the workspace says the agent is.
    pub fn definition(&self) -> &Definition {
        &self.workspace.definition
    }

    /// Reads what is needed for every turn.
    pub fn reader(&self) -> &Reader {
        &self.workspace.reader
    }

    /// Where this user's own version of `path` would lie: see [`own_path`].
    pub fn own(&self, path: &VPath) -> Option<VPath> {
        own_path(self.owner, path)
    }
}

/// Where a user's own version of `path` would lie: `<userId>/path`. None for whoever gave no name, and for names
/// that are a part of the workspace themselves.
pub fn own_path(owner: &Owner, path: &VPath) -> Option<VPath> {
    const PARTS: [&str; 12] = [
        "agents",
        "skills",
        "subagents",
        "knowledge",
        "memory",
        "plans",
        "hooks",
        "crons",
        "project",
        "config",
        "data",
        "workspace",
    ];
    let user = owner.user.as_str();
    let mine = VPath::parse(user).ok().filter(|path| path.as_str() == user && path.parts().count() == 1)?;
    let plain = *owner != Owner::default() && !user.starts_with(['.', '@']);
    let part = PARTS.iter().any(|part| part.eq_ignore_ascii_case(user));
    (plain && !part).then(|| mine.join(path.as_str()).ok())?
}

/// Every feature that the settings do not switch off.
pub(crate) fn all(definition: &Definition) -> Vec<Box<dyn Feature>> {
    let on = |switch: Switch| !definition.config.disable.has(switch);
    let mut features: Vec<Box<dyn Feature>> = vec![Box::new(base::Base)];
    if on(Switch::FilesystemTools) {
        features.push(Box::new(files::Files));
    }
    if on(Switch::WorkspaceContext) {
        features.push(Box::new(context::Context));
        features.push(Box::new(knowledge::Knowledge));
        features.push(Box::new(memory::Memory));
    }
    features.push(Box::new(skills::Skills::default()));
    if on(Switch::Subagents) {
        features.push(Box::new(subagents::Subagents));
    }
    features
}
