//! What a folder says an agent is, whichever layout it has.

use crate::{
    AgentConfig, AgentSpec, FeatureSwitch, Finding, HookSpec, Layout, ProfileLayer, SourcePosition,
    Surface, ToolLists,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use stead_skills::SkillFlavor;
use stead_vfs::{Protected, VPath};

/// An agent as its folder defines it. Every layout comes to this.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The layout of the folder.
    pub layout: Layout,
    /// Its settings, whichever files they came from.
    pub config: AgentConfig,
    /// Where its parts lie.
    pub paths: WorkspacePaths,
    /// Agents it defines beside itself, by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// Which of them the main agent is; none = the workspace itself.
    pub active: Option<String>,
    /// The same if nobody asks for another.
    pub default_delegate: Option<String>,
    /// Tools that settings other than `tools.json` allow and deny; a tool must pass all lists.
    pub tools: Vec<ToolLists>,
    /// How tools are named to the model.
    pub surface: Surface,
    /// Whom to ask when something happens, in that order.
    pub hooks: Vec<HookSpec>,
    /// Parts of the prompt that are fixed by the layout's settings.
    pub texts: Vec<FixedText>,
    /// What a person should know. Never an error: a definition with errors is not made.
    pub findings: Vec<Finding>,
    /// Where each setting came from, by key.
    pub origins: BTreeMap<String, SettingOrigin>,
    /// Profiles of models that the program gives, over those of files.
    pub profiles: Vec<ProfileLayer>,
}

/// Where the parts of an agent lie in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePaths {
    /// Files that are shown whole, in order; the first is the persona.
    pub context: Vec<ContextFile>,
    /// Curated memory, shown within a budget.
    pub memory: Option<VPath>,
    /// The folder of the facts of each day.
    pub daily_facts: Option<VPath>,
    /// The folder of knowledge: its `KNOWLEDGE.md` is shown whole, the rest listed.
    pub knowledge: Option<VPath>,
    /// Folders of skills, lowest first.
    pub skills: Vec<VPath>,
    /// How strictly its skills are read.
    pub flavor: SkillFlavor,
    /// Folder of agent definitions that are read again each turn.
    pub subagents: Option<VPath>,
    /// Tools allowed and denied, read again each turn.
    pub tools: Option<VPath>,
    /// Folder below which `agents/<id>/` holds sessions and other runtime state.
    pub runtime: VPath,
    /// The file that says who used how much, where it is not with the rest of the runtime state.
    pub usage: Option<VPath>,
    /// The folder in which conversations are kept for people to read; none = they are not.
    pub conversations: Option<VPath>,
    /// The list of tasks that outlive conversations; none = there is no place for one.
    pub tasks: Option<VPath>,
    /// Where files go that are written outside every known folder.
    pub default_dir: Option<VPath>,
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
    /// How its text is shown.
    pub rendering: ContextRendering,
}

/// How the text of a context file is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContextRendering {
    /// As it is.
    #[default]
    Whole,
    /// Without HTML comments, which are for people.
    WithoutComments,
    /// As notes that the agent keeps itself: at [`crate::order::NOTES`], and only if there are more
    /// than [`Shown::SHORT_CHARS`] characters of them.
    Notes,
}

impl ContextRendering {
    /// Notes of so many characters, or fewer, say nothing.
    pub const MAX_EMPTY_NOTE_CHARS: usize = 20;

    /// What is shown of a file's `text`; none if it is left out.
    pub fn render(self, text: &str) -> Option<Cow<'_, str>> {
        match self {
            Self::Whole => Some(Cow::Borrowed(text)),
            Self::WithoutComments => Some(strip_html_comments(text)),
            Self::Notes => (text.trim().chars().count() > Self::MAX_EMPTY_NOTE_CHARS)
                .then_some(Cow::Borrowed(text)),
        }
    }
}

/// The text without `<!-- … -->`. One that is not closed is text.
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

/// Whether a context file has siblings in folders below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nested {
    /// Only this file.
    No,
    /// One in every folder down to the working folder.
    Yes,
}

impl ContextFile {
    /// A file shown whole under `tag`.
    pub fn new(path: VPath, tag: impl Into<String>) -> Self {
        Self {
            path,
            tag: tag.into(),
            nested: Nested::No,
            rendering: ContextRendering::Whole,
        }
    }

    /// A file shown under a tag made of its path: `notes/Style.md` is `<notes_style_md>`.
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
pub struct SettingOrigin {
    /// The file, or what else gave it (`default`, `the flag -m`, a variable).
    pub source: String,
    /// Where in the file.
    #[serde(flatten)]
    pub place: Option<SourcePosition>,
}

impl Definition {
    /// Whether facts are extracted from what was said, after each run: as set, or as the layout's
    /// own users expect.
    pub fn memory_flush_enabled(&self) -> bool {
        let by_layout = self.layout.def().memory_flush;
        let wanted = self.config.memory.flush.unwrap_or(by_layout);
        wanted
            && self.paths.memory.is_some()
            && !self.config.disable.contains(FeatureSwitch::MemoryHooks)
    }

    /// The agent's own definition, if it is one of [`Definition::agents`].
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
