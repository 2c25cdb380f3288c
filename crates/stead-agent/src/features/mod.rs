//! Features: capabilities of the harness, one module each.
//!
//! A [`Feature`] contributes tools and sections of the prompt. Features never call each other; they
//! share only the journal and the files. Contributing only reads; only the tools of a feature change
//! anything. A new feature is its module and one line in [`all`].
//!
//! Effects: workspace files (reads).

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
use stead_place::{PlaceKind, ProjectAccess};
use stead_search::LazyIndex;
use stead_store::Sessions;
use stead_tools::{FolderResolver, ShownTools, Tool, ToolIdentity, builtin, tool_groups};
use stead_vfs::{VPath, Vfs};
use stead_workspace::{
    Definition, FeatureSwitch, ResolvedProfile, Section, Surface, TextReader, ToolLists, Workspace,
    WorkspaceError,
};

/// One capability of the harness.
pub trait Feature: Debug + Send + Sync {
    /// Returns its name, which its sections give as their owner.
    fn name(&self) -> &'static str;

    /// Returns the tools that [`contribute`](Self::contribute) may add to a turn. Sections of other
    /// features mention a tool only if a feature offers it.
    fn offers(&self) -> &'static [ToolIdentity] {
        &[]
    }

    /// Returns the tools and sections that the feature adds to a turn. Called once per turn setup.
    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>>;
}

/// The tools and sections that a feature adds to a turn setup.
#[derive(Default)]
pub struct Contribution {
    /// The sections of the prompt.
    pub sections: Vec<Section>,
    /// The tools of this turn.
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

/// The read-only inputs of a feature that contributes to a turn setup.
#[derive(Clone)]
pub struct TurnCx<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// The profile of the model.
    pub profile: &'a ResolvedProfile,
    /// How tools are named to the model.
    pub surface: Surface,
    /// Whether plan mode is on.
    pub planning: bool,
    /// The files under the file rules of this session. Use these for whatever the model is shown.
    pub files: &'a Arc<dyn Vfs>,
    /// The files without file rules, for what the harness itself stores.
    pub unguarded_files: &'a Arc<dyn Vfs>,
    /// The owner of the session.
    pub owner: &'a Owner,
    /// The subagents of the session; none outside of one.
    pub subagents: Option<&'a Arc<Subagents>>,
    /// The folder with this user's own versions of workspace files, if there is one.
    pub user_folder: Option<VPath>,
    /// The session.
    pub session: &'a SessionId,
    /// The agent.
    pub agent: AgentId,
    /// The working folder.
    pub working_folder: &'a VPath,
    /// Where sessions are stored.
    pub sessions: Arc<dyn Sessions>,
    /// The search index of memory and sessions.
    pub index: Arc<LazyIndex>,
    /// The kind of place, and a description of it.
    pub place: (PlaceKind, String),
    /// Where folders of the workspace are on this machine, if they are.
    pub folders: FolderResolver,
    /// The access to an attached project.
    pub project: Option<ProjectAccess>,
    /// All lists of allowed and denied tools.
    pub lists: &'a [ToolLists],
    /// The canonical names of the tools that may be registered, before lists narrow them.
    pub tool_names: &'a [String],
    /// Whether the model's context window is known to be small.
    pub small_window: bool,
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

    /// Returns how many tools the model is shown: as the profile says, or else as its context window
    /// allows. Where lists or profiles leave out what finds the others, it is shown all.
    pub fn shown_tools(&self) -> ShownTools {
        if !(self.allows_tool(&builtin::TOOL_SEARCH) && self.allows_tool(&builtin::USE_TOOL)) {
            return ShownTools::All;
        }
        let by_window = match self.small_window {
            true => ShownTools::Few,
            false => ShownTools::Usual,
        };
        self.profile.profile.shown_tools.unwrap_or(by_window)
    }

    /// Whether a list of allowed tools names the tool with this canonical name.
    pub fn names_tool(&self, name: &str) -> bool {
        self.lists
            .iter()
            .any(|lists| lists.allow.is_some() && lists.allows(name))
    }

    /// Returns how a tool is called, as a text for the model says it: by its name, or as an action of
    /// the group that it is shown in.
    pub fn call_of(&self, tool: &ToolIdentity) -> String {
        let own = || format!("`{}`", self.name_of(tool));
        if self.shown_tools() == ShownTools::All {
            return own();
        }
        let action = tool_groups().iter().find_map(|group| {
            let is_there = |name: &str| {
                let named = builtin::builtin_tool(name);
                named.is_some_and(|tool| self.has_tool(tool) && !self.names_tool(name))
            };
            let (action, _) = group.actions.iter().find(|(_, name)| *name == tool.name)?;
            let is_group = group
                .actions
                .iter()
                .filter(|(_, name)| is_there(name))
                .count()
                > 1;
            is_group.then(|| format!("`{}` `{action}`", group.name))
        });
        action.unwrap_or_else(own)
    }

    /// Returns the name under which the model knows a tool.
    pub fn name_of(&self, tool: &ToolIdentity) -> &'static str {
        self.surface.name(tool)
    }

    /// Returns the definition of the workspace.
    pub fn definition(&self) -> &Definition {
        &self.workspace.definition
    }

    /// Returns the reader for files that are needed for every turn.
    pub fn reader(&self) -> &TextReader {
        &self.workspace.reader
    }

    /// Returns where this user's own version of `path` would be.
    pub fn user_version(&self, path: &VPath) -> Option<VPath> {
        self.user_folder.as_ref()?.join(path.as_str()).ok()
    }
}

/// Returns the folder `<userId>/` if it contains only a user's own versions of workspace files. An
/// ordinary folder that happens to have the name of a user does not count, and the default owner has
/// none.
pub async fn user_folder(definition: &Definition, owner: &Owner, files: &dyn Vfs) -> Option<VPath> {
    let (folder, others) = inspect_user_folder(definition, owner, files).await?;
    others.is_empty().then_some(folder)
}

/// Returns the folder with the name of the user, if there is one and it may be theirs, and the names
/// in it that are no versions of workspace files and therefore keep it from being used.
pub async fn inspect_user_folder(
    definition: &Definition,
    owner: &Owner,
    files: &dyn Vfs,
) -> Option<(VPath, Vec<String>)> {
    /// What the folder of a user may contain: overrides, and AgentScope's files at run time.
    const ALLOWED: [&str; 9] = [
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
    /// Names of parts of the workspace itself.
    const RESERVED: [&str; 13] = [
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
    // In an ordinary project, a folder with the name of a user is the project's.
    let is_eligible =
        definition.home().is_root() && *owner != Owner::default() && !user.starts_with(['.', '@']);
    if !is_eligible || RESERVED.iter().any(|part| part.eq_ignore_ascii_case(user)) {
        return None;
    }
    let entries = files.list(&folder).await.ok()?;
    let names = entries.into_iter().map(|entry| entry.name);
    let others = names.filter(|name| !ALLOWED.contains(&name.as_str()));
    Some((folder, others.collect()))
}

/// Returns every feature that the settings do not switch off.
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
