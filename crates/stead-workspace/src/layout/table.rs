//! The table of layouts: everything the rest of the program needs to know about each.
//!
//! Effects: none.

use super::{Draft, LoadCx, WorkspaceNameError};
use super::{
    agentscope, agentscope_py, deepagents, deepagents_deploy, openharness, openpaw, project, stead,
};
use crate::{ConfigureScaffold, EmptyAllow, FlushAfter, ScaffoldFile, Surface, ToolsDialect};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;
use stead_vfs::Protected;

/// Defines [`Layout`] from its table: one line per layout, in the order in which they are listed.
macro_rules! layouts {
    ($($(#[$attribute:meta])* $name:ident = $def:path,)+) => {
        /// The kinds of folders that are agents.
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum Layout {
            $($(#[$attribute])* $name,)+
        }

        impl Layout {
            /// All layouts.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name,)+];

            /// Returns what is known about the layout.
            pub fn def(self) -> &'static LayoutDef {
                match self {
                    $(Self::$name => &$def,)+
                }
            }
        }
    };
}

layouts! {
    /// Stead's own: `AGENTS.md`, `agent.yaml`, …
    #[default]
    Stead = stead::DEF,
    /// AgentScope's: the same tree, in `.agentscope/workspace/`.
    Agentscope = agentscope::DEF,
    /// OpenHarness: `.openharness/` beside a project's `AGENTS.md`.
    Openharness = openharness::DEF,
    /// OpenPaw: `agent/ config/ data/ memory/ workspace/`, or its older flat form.
    Openpaw = openpaw::DEF,
    /// Deep Agents: `AGENTS.md` files and folders of skills.
    Deepagents = deepagents::DEF,
    /// A work directory of AgentScope's Python workspace: `.mcp`, `skills/`, `sessions/`, `data/`.
    AgentscopePy = agentscope_py::DEF,
    /// A project of Deep Agents' `deploy`: `agent.json`, `AGENTS.md`, `skills/`, `subagents/`.
    DeepagentsDeploy = deepagents_deploy::DEF,
    /// An ordinary project: everything of the agent lies in `.stead/`.
    Project = project::DEF,
}

/// What is known about a layout: one entry of the table.
#[derive(Debug)]
pub struct LayoutDef {
    /// The name on the command line and in messages.
    pub name: &'static str,
    /// The files and folders by which the layout is recognised.
    pub marks: &'static [LayoutMark],
    /// Further paths that agents of no layout may write, because they hold settings.
    pub reserved: &'static [&'static str],
    /// The folder in which everything of the agent lies; empty for the root.
    pub home_dir: &'static str,
    /// The path below a project at which its workspace lies, if the layout has a fixed one.
    pub nested_dir: Option<&'static str>,
    /// The folders of a workspace that look like workspaces themselves.
    pub inner_dirs: Option<InnerDirs>,
    /// Checks the name of the folder of a new workspace, if the layout restricts it.
    pub check_name: Option<CheckName>,
    /// Names at the root that are known to the layout. A new file elsewhere is written to
    /// [`WorkspacePaths::default_dir`](crate::WorkspacePaths::default_dir), if there is one.
    pub top_level_names: &'static [&'static str],
    /// What the agent cannot write or read, apart from the marks of all layouts.
    pub(crate) protected: Protected,
    /// Patterns of paths that belong to one owner.
    pub private_paths: &'static [&'static str],
    /// The folder of profiles.
    pub profiles_dir: &'static str,
    /// The files of a new workspace.
    pub scaffold: &'static [ScaffoldFile],
    /// The folders of a new workspace, apart from those of its files.
    pub scaffold_dirs: &'static [&'static str],
    /// Puts a model and a channel into the files of a new workspace, if the layout has a place for
    /// them.
    pub configure_scaffold: Option<ConfigureScaffold>,
    /// The file or folder in which a person writes who the agent is.
    pub persona: &'static str,
    /// How the agent is chosen that a session talks to.
    pub agent_choice: AgentChoice,
    /// What happens to a tool in `tools.json` that does not exist.
    pub unknown_tools: UnknownTools,
    /// What happens to mistakes in the settings.
    pub strictness: Strictness,
    /// What an empty `allow` list in `tools.json` means.
    pub empty_allow: EmptyAllow,
    /// How the tool lists of an agent relate to those of the workspace.
    pub agent_tool_lists: AgentToolLists,
    /// The names under which tools are shown, unless settings or profiles say otherwise.
    pub surface: Surface,
    /// Whether the built-in profile of a model may choose another surface.
    pub built_in_surface: BuiltInSurface,
    /// Whether facts are extracted from conversations by default.
    pub memory_flush: bool,
    /// When they are extracted by default.
    pub memory_flush_after: FlushAfter,
    /// Reads the settings of a folder.
    pub(crate) load: LoadFn,
}

/// Checks the name of the folder of a workspace.
pub type CheckName = fn(&str) -> Result<(), WorkspaceNameError>;

/// Reads the settings of a folder that has the given layout.
pub(crate) type LoadFn = for<'a> fn(Layout, &'a LoadCx<'a>) -> BoxFuture<'a, Draft<'a>>;

/// A file or folder by which a layout is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutMark {
    /// The path from the root of the workspace.
    pub path: &'static str,
    /// How much the mark says.
    pub rank: MarkRank,
    /// A path that makes the mark meaningless if it exists.
    pub unless: Option<&'static str>,
    /// Whether the nearest folder upward that has the mark is taken as the workspace.
    pub locates: MarkStrength,
}

impl LayoutMark {
    /// Returns a mark.
    pub(crate) const fn new(path: &'static str, rank: MarkRank, locates: MarkStrength) -> Self {
        Self {
            path,
            rank,
            unless: None,
            locates,
        }
    }
}

/// How much a mark says about the layout. A lower rank is looked at first, in all layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkRank {
    /// A file that only this layout has, even beside the settings of another.
    Exclusive,
    /// A folder named after the harness.
    Folder,
    /// A settings file.
    Settings,
    /// A persona, which folders of other kinds may have too. The agent may write it.
    Persona,
}

impl MarkRank {
    /// All ranks, in the order in which they are looked at.
    const ALL: [Self; 4] = [Self::Exclusive, Self::Folder, Self::Settings, Self::Persona];
}

/// How a mark helps to find the workspace from a folder inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkStrength {
    /// Only a workspace has it.
    Strong,
    /// Other folders may have it too.
    Weak,
    /// The mark is not searched for.
    Ignored,
}

/// Folders of a workspace that look like workspaces themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InnerDirs {
    /// The names of the folders.
    pub names: &'static [&'static str],
    /// A path that the folder around them has if it is the workspace.
    pub mark: &'static str,
}

/// How the agent is chosen that a session talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentChoice {
    /// The workspace defines several agents, one of which is opened.
    ByWorkspace,
    /// The workspace is one agent; a session may switch to its subagents.
    BySession,
}

/// What happens to a tool in `tools.json` that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownTools {
    /// It is an error: a typo in a `deny` list would leave a tool in.
    Refused,
    /// It is ignored: the lists may name tools of another harness.
    Ignored,
}

/// What happens to mistakes in settings that the layout's own system passes over, such as unknown
/// keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// They are errors: the workspace cannot be opened.
    Strict,
    /// The faulty part is left out, as by the layout's own system. A validation of the workspace
    /// reports it.
    Lenient,
}

/// How the tool lists of an agent relate to those of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentToolLists {
    /// A tool must pass both.
    Added,
    /// The agent's own lists replace those of the workspace.
    Replaced,
}

/// Whether the built-in profile of a model may choose the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltInSurface {
    /// It may.
    Applies,
    /// It may not: texts of the workspace name tools by the layout's own surface.
    Ignored,
}

impl LayoutDef {
    /// Returns an entry with the values that most layouts share.
    pub(crate) const fn new(name: &'static str, load: LoadFn) -> Self {
        Self {
            name,
            marks: &[],
            reserved: &[],
            home_dir: "",
            nested_dir: None,
            inner_dirs: None,
            check_name: None,
            top_level_names: &[],
            protected: Protected::workspace(""),
            private_paths: &[],
            profiles_dir: ".stead/profiles",
            scaffold: &[],
            scaffold_dirs: &[],
            configure_scaffold: None,
            persona: "AGENTS.md",
            agent_choice: AgentChoice::BySession,
            unknown_tools: UnknownTools::Ignored,
            strictness: Strictness::Lenient,
            empty_allow: EmptyAllow::Nothing,
            agent_tool_lists: AgentToolLists::Added,
            surface: Surface::Snake,
            built_in_surface: BuiltInSurface::Ignored,
            memory_flush: false,
            memory_flush_after: FlushAfter::Idle,
            load,
        }
    }
}

/// Paths that agents of no layout may write: settings, and what would make a folder a workspace of
/// another layout, with other rules.
static RESERVED: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of_layout = |layout: Layout| {
        let def = layout.def();
        let marks = def.marks.iter();
        marks
            .filter(|mark| mark.rank != MarkRank::Persona)
            .map(|mark| mark.path)
            .chain(def.reserved.iter().copied())
    };
    Layout::ALL.into_iter().flat_map(of_layout).collect()
});

impl Layout {
    /// The layout of a folder without marks.
    pub const UNMARKED: Self = Self::Project;

    /// Returns the name on the command line and in messages.
    pub fn as_str(self) -> &'static str {
        self.def().name
    }

    /// Returns what agents of this layout cannot write or read.
    pub fn protected(self) -> Protected {
        self.def().protected.with_marks(&RESERVED)
    }

    /// Returns how the layout reads `tools.json`.
    pub fn tools_dialect(self) -> ToolsDialect {
        ToolsDialect {
            empty_allow: self.def().empty_allow,
            strictness: self.def().strictness,
        }
    }

    /// Returns the patterns of paths that belong to one owner in some layout.
    pub fn private_paths() -> Vec<&'static str> {
        let mut paths: Vec<&str> = Self::ALL
            .into_iter()
            .flat_map(|layout| layout.def().private_paths)
            .copied()
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Returns the marks of this strength in all layouts.
    pub fn marks_of(strength: MarkStrength) -> impl Iterator<Item = &'static str> {
        Self::ALL
            .into_iter()
            .flat_map(|layout| layout.def().marks)
            .filter(move |mark| mark.locates == strength)
            .map(|mark| mark.path)
    }

    /// Returns the layout that the path of a folder tells, for layouts with a fixed
    /// [`LayoutDef::nested_dir`]. Links in `dir` must be resolved.
    pub fn from_dir(dir: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|layout| {
            layout
                .def()
                .nested_dir
                .is_some_and(|nested| dir.ends_with(nested))
        })
    }

    /// Returns the layout that the marks in a folder tell; `has` says whether a path exists.
    pub(super) async fn from_marks(has: impl AsyncFn(&str) -> bool) -> Option<Self> {
        for rank in MarkRank::ALL {
            for layout in Self::ALL {
                for mark in layout.def().marks.iter().filter(|mark| mark.rank == rank) {
                    let void = match mark.unless {
                        Some(other) => has(other).await,
                        None => false,
                    };
                    if !void && has(mark.path).await {
                        return Some(layout);
                    }
                }
            }
        }
        None
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
