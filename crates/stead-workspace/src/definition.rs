//! The definition of an agent, the same for every layout.
//!
//! Effects: none.

use crate::{
    ActingPart, AgentConfig, AgentSpec, FeatureSwitch, Finding, FlushAfter, HookSpec, Layout,
    ProfileLayer, SourcePosition, Surface, ToolLists,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use stead_core::Owner;
use stead_skills::SkillFlavor;
use stead_vfs::{Protected, VPath};

/// An agent as its folder defines it. Every layout is loaded into this type.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The layout of the folder.
    pub layout: Layout,
    /// The settings.
    pub config: AgentConfig,
    /// The paths of the agent's parts.
    pub paths: WorkspacePaths,
    /// Further agents that the folder defines, by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// The name of the main agent, if it is one of `agents`.
    pub active: Option<String>,
    /// The main agent if the person chooses none.
    pub default_delegate: Option<String>,
    /// Tools that settings other than `tools.json` allow and deny; a tool must pass all lists.
    pub tools: Vec<ToolLists>,
    /// The names under which tools are shown to the model.
    pub surface: Surface,
    /// The hooks, in the order in which they are asked.
    pub hooks: Vec<HookSpec>,
    /// Sections of the prompt that come from settings.
    pub texts: Vec<FixedText>,
    /// Findings that are not errors; with errors there is no definition.
    pub findings: Vec<Finding>,
    /// The origin of each setting, by key.
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Profiles given by the program; they override those of files.
    pub profiles: Vec<ProfileLayer>,
    /// The variables of the process that settings refer to.
    pub variable_uses: Vec<ProcessVariable>,
    /// The parts that act besides those that are settings: tool servers, tools.
    pub declared_parts: Vec<ActingPart>,
    /// The endpoints that the person's platform names, with the name of the model.
    pub platform_endpoints: Vec<(String, String)>,
}

/// A variable of the process that a setting of the folder refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessVariable {
    /// The name of the variable.
    pub name: String,
    /// The key of the setting.
    pub key: String,
    /// The file with the setting.
    pub file: String,
}

/// The paths of the parts of an agent in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePaths {
    /// The files that are shown whole, in order; the first is the persona.
    pub context: Vec<ContextFile>,
    /// Curated memory, shown within a budget.
    pub memory: Option<VPath>,
    /// The folder of the facts of each day.
    pub daily_facts: Option<VPath>,
    /// The memory of the agent that a subagent works for. The subagent neither is shown it nor
    /// keeps it.
    pub memory_of_parent: Vec<VPath>,
    /// The folder of knowledge: its `KNOWLEDGE.md` is shown whole, the rest listed.
    pub knowledge: Option<VPath>,
    /// Folders of skills, lowest first.
    pub skills: Vec<VPath>,
    /// The rules that the skills follow.
    pub flavor: SkillFlavor,
    /// The folder of agent definitions, which is read again for each turn.
    pub subagents: Option<VPath>,
    /// The file of allowed and denied tools, which is read again for each turn.
    pub tools: Option<VPath>,
    /// The folder below which `agents/<id>/` holds sessions and other runtime state.
    pub runtime: VPath,
    /// The usage log, if it is not stored with the other runtime state.
    pub usage: Option<VPath>,
    /// The folder of readable copies of conversations; none = none are written.
    pub conversations: Option<VPath>,
    /// The list of tasks that outlive sessions; none = the layout has none.
    pub tasks: Option<VPath>,
    /// The folder for new files outside the known ones.
    pub default_dir: Option<VPath>,
    /// The protected paths.
    pub protected: Protected,
}

/// A file that is shown whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// The path.
    pub path: VPath,
    /// The tag that encloses the text.
    pub tag: String,
    /// Whether files of the same name in folders below, down to the working folder, are shown too.
    pub nested: Nested,
    /// How the text is shown.
    pub rendering: ContextRendering,
}

/// How the text of a context file is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContextRendering {
    /// The text as it is.
    #[default]
    Whole,
    /// The text without HTML comments, which are for people.
    WithoutComments,
    /// The text as notes of the agent, in [`crate::section_order::NOTES`], if it has more than
    /// [`ContextRendering::MAX_EMPTY_NOTE_CHARS`] characters.
    Notes,
    /// The text as it is, unless it only repeats or imports the `AGENTS.md` beside it. A file that
    /// cannot be read is left out.
    UnlessRepeated,
}

impl ContextRendering {
    /// The maximum length of notes that count as empty.
    pub const MAX_EMPTY_NOTE_CHARS: usize = 20;

    /// Returns what is shown of `text`; none if the file is left out.
    pub fn render(self, text: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Whole | Self::UnlessRepeated => Some(Cow::Borrowed(text)),
            Self::WithoutComments => Some(strip_html_comments(text)),
            Self::Notes => (text.trim().chars().count() > Self::MAX_EMPTY_NOTE_CHARS)
                .then_some(Cow::Borrowed(text)),
        }
    }
}

/// Removes `<!-- … -->`. A comment that is not closed is kept.
fn strip_html_comments(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        let Some(length) = rest[start + 4..].find("-->") else {
            break;
        };
        out.push_str(&rest[..start]);
        rest = &rest[start + 4 + length + 3..];
    }
    if out.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(out + rest)
}

/// Whether files of the same name in subfolders are shown too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// Only this file.
    No,
    /// The file of that name in every folder down to the working folder.
    Yes,
}

impl ContextFile {
    /// Creates a file that is shown whole under `tag`.
    pub fn new(path: VPath, tag: impl Into<String>) -> Self {
        Self {
            path,
            tag: tag.into(),
            nested: Nested::No,
            rendering: ContextRendering::Whole,
        }
    }

    /// Creates a file with a tag made of its path: `notes/Style.md` is shown as `<notes_style_md>`.
    pub fn with_tag_from_path(path: VPath) -> Self {
        let letter = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let tag: String = path.as_str().to_lowercase().chars().map(letter).collect();
        let tag = if tag.starts_with(|c: char| c.is_numeric()) {
            format!("_{tag}")
        } else {
            tag
        };
        Self::new(path, tag)
    }
}

/// A section of the prompt that comes from settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedText {
    /// The title, for listings.
    pub title: String,
    /// The position among the sections: see [`crate::section_order`].
    pub order: u16,
    /// The file that the text came from.
    pub source: String,
    /// The text, which is enclosed in `tag` if it is set.
    pub text: String,
    /// The tag that encloses the text.
    pub tag: Option<String>,
}

/// The origin of a setting.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SettingOrigin {
    /// The file, or another source (`default`, a flag, a variable).
    pub source: String,
    /// The position in the file.
    #[serde(flatten)]
    pub place: Option<SourcePosition>,
}

impl Definition {
    /// Returns the folder in which everything of the agent lies; the root if the whole tree is the
    /// agent's.
    pub fn home(&self) -> VPath {
        VPath::parse(self.layout.def().home_dir).unwrap_or(VPath::root())
    }

    /// Returns the paths that hold the running state in the tree of `owner`: journals, queues, usage,
    /// offloaded texts and the like. Listings and searches leave them out.
    pub fn running_state(&self, owner: &Owner) -> Vec<VPath> {
        let paths = &self.paths;
        let agents = |folder: VPath| folder.join("agents").ok();
        // The tree of a user has the state of the user in the folder of the agent.
        let of_user = (*owner != Owner::default()).then(|| self.home());
        let state = [agents(paths.runtime.clone()), of_user.and_then(agents)];
        let others = [&paths.usage, &paths.conversations].into_iter().flatten();
        state.into_iter().flatten().chain(others.cloned()).collect()
    }

    /// Whether facts are extracted from conversations: the setting, or the default of the layout.
    pub fn memory_flush_enabled(&self) -> bool {
        let by_layout = self.layout.def().memory_flush;
        let wanted = self.config.memory.flush.unwrap_or(by_layout);
        wanted
            && self.paths.memory.is_some()
            && !self.config.disable.contains(FeatureSwitch::MemoryHooks)
    }

    /// When facts are extracted: the setting, or the default of the layout.
    pub fn memory_flush_after(&self) -> FlushAfter {
        let by_layout = self.layout.def().memory_flush_after;
        self.config.memory.flush_after.unwrap_or(by_layout)
    }

    /// Returns the file that the setting `key` comes from; the name of the layout if no file sets it.
    pub fn setting_source(&self, key: &str) -> String {
        match self.origins.get(key) {
            Some(origin) => origin.source.clone(),
            None => self.layout.to_string(),
        }
    }

    /// Returns the definition of the main agent, if it is one of [`Definition::agents`].
    pub fn active_spec(&self) -> Option<&AgentSpec> {
        self.agents.get(self.active.as_ref()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_shown_whole_or_without_comments_or_if_it_says_something() {
        #[rustfmt::skip]
        let table = [
            (ContextRendering::Whole, "a <!-- b -->", Some("a <!-- b -->")),
            (ContextRendering::WithoutComments, "a<!-- b\n -->c<!---->\n", Some("ac\n")),
            (ContextRendering::WithoutComments, "<!-- all -->", Some("")),
            (ContextRendering::WithoutComments, "a <!-- open", Some("a <!-- open")),
            (ContextRendering::WithoutComments, "a <!--> b", Some("a <!--> b")),
            (ContextRendering::Notes, "# Heartbeat", None),
            (ContextRendering::Notes, "  exactly twenty chars \n", None),
            (ContextRendering::Notes, "twenty-one characters", Some("twenty-one characters")),
        ];
        for (shown, text, expected) in table {
            assert_eq!(
                shown.render(text).as_deref(),
                expected,
                "{shown:?} {text:?}"
            );
        }
    }
}
