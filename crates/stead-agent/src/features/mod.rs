//! Capabilities of the harness, one module each.
//!
//! A [`Feature`] contributes tools and sections of the prompt. Features never call each other: they
//! meet in the journal and in the files. Adding one is its module and one line in [`all`].

mod base;
mod context;
mod files;
mod knowledge;
mod lookup;
mod memory;
mod plan;
mod shell;
mod skills;
mod subagents;
mod tasks;
mod todos;

use crate::{AgentParts, Subagents};
use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::sync::Arc;
use stead_core::{AgentId, Owner, SessionId, ToolKind};
use stead_search::LazyIndex;
use stead_store::Sessions;
use stead_tools::{FolderResolver, Tool, ToolIdentity};
use stead_vfs::{VPath, Vfs};
use stead_workspace::{
    Definition, FeatureSwitch, PlaceKind, ProjectAccess, ResolvedProfile, Section, Surface,
    TextReader, ToolLists, Workspace, WorkspaceError,
};

/// One capability of the harness.
pub trait Feature: Debug + Send + Sync {
    /// Its name, as sections give it for their owner.
    fn name(&self) -> &'static str;

    /// Returns the tools that [`contribute`](Self::contribute) may add to a turn. Sections of other
    /// features mention a tool only if a feature offers it.
    fn offers(&self) -> &'static [ToolIdentity] {
        &[]
    }

    /// Returns what the feature adds to a turn: its tools, and sections of the prompt.
    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>>;
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
        Self {
            sections,
            tools: Vec::new(),
        }
    }
}

impl From<Vec<Arc<dyn Tool>>> for Contribution {
    fn from(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            sections: Vec::new(),
            tools,
        }
    }
}

/// What a feature may know of a turn.
#[derive(Clone)]
pub struct TurnCx<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The profiles of the model that is asked.
    pub profile: &'a ResolvedProfile,
    /// How tools are named to it.
    pub surface: Surface,
    /// Whether it is to make a plan.
    pub planning: bool,
    /// The tree as this session sees it.
    pub files: &'a Arc<dyn Vfs>,
    /// The same without any guard, for what the harness itself keeps there.
    pub unguarded_files: &'a Arc<dyn Vfs>,
    /// Whose session it is.
    pub owner: &'a Owner,
    /// Those who work for the session; none outside of one.
    pub subagents: Option<&'a Arc<Subagents>>,
    /// The folder of this user's own versions of parts of the workspace, if there is one.
    pub user_folder: Option<VPath>,
    /// The session.
    pub session: &'a SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The folder that is worked in.
    pub working_folder: &'a VPath,
    /// Where its sessions are kept.
    pub sessions: Arc<dyn Sessions>,
    /// What finds words in memory and sessions.
    pub index: Arc<LazyIndex>,
    /// What kind of place the tree lies in, and in words.
    pub place: (PlaceKind, String),
    /// Where its folders lie on this machine, if they do.
    pub folders: FolderResolver,
    /// What may be done to an attached project.
    pub project: Option<ProjectAccess>,
    /// Which tools there are, as all lists together say.
    pub lists: &'a [ToolLists],
    /// Tools that there may be, before lists narrow them, by canonical name.
    pub tool_names: &'a [String],
    /// Today, as `YYYY-MM-DD`.
    pub date: String,
}

impl TurnCx<'_> {
    /// Whether the model can call a built-in tool.
    pub fn has_tool(&self, tool: &ToolIdentity) -> bool {
        self.tool_names.iter().any(|known| known == tool.name) && self.allows_tool(tool)
    }

    /// Whether the lists and the model's profiles allow a built-in tool.
    pub fn allows_tool(&self, tool: &ToolIdentity) -> bool {
        self.allows(tool.name, tool.kind)
    }

    /// Whether the lists and the model's profiles allow the tool of this canonical name and kind. In
    /// plan mode an agent can always write a plan and offer it, unless a list denies that by name.
    pub(crate) fn allows(&self, name: &str, kind: ToolKind) -> bool {
        let plans = self.planning && matches!(kind, ToolKind::PlanWrite | ToolKind::PlanExit);
        let listed = self
            .lists
            .iter()
            .all(|lists| lists.allows(name) || (plans && !lists.denies(name)));
        listed && !self.profile.profile.excludes(name)
    }

    /// Returns the name under which the model knows a tool.
    pub fn name_of(&self, tool: &ToolIdentity) -> &'static str {
        self.surface.name(tool)
    }

    /// What the workspace says the agent is.
    pub fn definition(&self) -> &Definition {
        &self.workspace.definition
    }

    /// Reads what is needed for every turn.
    pub fn reader(&self) -> &TextReader {
        &self.workspace.reader
    }

    /// Where this user's own version of `path` would lie.
    pub fn user_version(&self, path: &VPath) -> Option<VPath> {
        self.user_folder.as_ref()?.join(path.as_str()).ok()
    }
}

/// The folder `<userId>/`, if it holds a user's own versions of parts of the workspace and nothing
/// else: an ordinary folder that happens to have the name of a user is none. Whoever gave no name
/// has none either.
pub async fn user_folder(owner: &Owner, files: &dyn Vfs) -> Option<VPath> {
    /// What the folder of a user may hold: overrides, and what AgentScope keeps there at run time.
    const HOLDS: [&str; 9] = [
        "AGENTS.md",
        "skills",
        "subagents",
        "knowledge",
        "agents",
        "memory",
        "MEMORY.md",
        "plans",
        "tasks",
    ];
    /// Names that are a part of the workspace itself.
    const PARTS: [&str; 13] = [
        "agents",
        "skills",
        "subagents",
        "knowledge",
        "memory",
        "plans",
        "hooks",
        "crons",
        "profiles",
        "project",
        "config",
        "data",
        "workspace",
    ];
    let user = owner.user.as_str();
    let folder = VPath::parse(user)
        .ok()
        .filter(|path| path.as_str() == user && path.parts().count() == 1)?;
    let plain = *owner != Owner::default() && !user.starts_with(['.', '@']);
    if !plain || PARTS.iter().any(|part| part.eq_ignore_ascii_case(user)) {
        return None;
    }
    let entries = files.list(&folder).await.ok()?;
    entries
        .iter()
        .all(|entry| HOLDS.contains(&entry.name.as_str()))
        .then_some(folder)
}

/// Every feature that the settings do not switch off.
pub(crate) fn all(parts: &AgentParts) -> Vec<Box<dyn Feature>> {
    let definition = &parts.workspace.definition;
    let on = |switch: FeatureSwitch| !definition.config.disable.contains(switch);
    let mut features: Vec<Box<dyn Feature>> = vec![Box::new(base::BaseFeature)];
    if on(FeatureSwitch::FilesystemTools) {
        features.push(Box::new(files::FilesFeature));
    }
    if let Some(sandbox) = parts.sandbox.clone().filter(|_| on(FeatureSwitch::Shell)) {
        features.push(Box::new(shell::ShellFeature { sandbox }));
    }
    if on(FeatureSwitch::WorkspaceContext) {
        features.push(Box::new(context::ContextFeature));
        features.push(Box::new(knowledge::KnowledgeFeature));
    }
    if on(FeatureSwitch::Todos) {
        features.push(Box::new(todos::TodosFeature));
    }
    if on(FeatureSwitch::Tasks) {
        features.push(Box::new(tasks::TasksFeature));
    }
    if on(FeatureSwitch::PlanMode) {
        features.push(Box::new(plan::PlanFeature));
    }
    features.push(Box::new(memory::MemoryFeature));
    features.push(Box::new(skills::SkillsFeature::default()));
    if on(FeatureSwitch::MemoryTools) {
        features.push(Box::new(lookup::LookupFeature));
    }
    if on(FeatureSwitch::Subagents) {
        features.push(Box::new(subagents::SubagentsFeature));
    }
    features
}
