//! Work directories of AgentScope's Python workspaces: `.mcp`, `skills/`, `sessions/`, `data/`.
//!
//! Effects: the environment, workspace files (reads).

mod servers;

use super::{
    AgentChoice, Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength, stead,
};
use crate::{ContextFile, Finding, Nested, OpenOption, ScaffoldFile, Surface, WorkspacePaths};
use stead_core::AgentId;
use stead_vfs::{FileKind, Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[
        LayoutMark::new(".mcp", MarkRank::Folder, MarkStrength::Strong),
        LayoutMark::new(SEED_SKILLS, MarkRank::Folder, MarkStrength::Ignored),
    ],
    protected: Protected::workspace(".stead")
        .with_unwritable(&["sessions"])
        // The list of tool servers contains their keys.
        .with_hidden(&[".stead/agents", ".mcp"]),
    private_paths: &[".stead/agents"],
    scaffold: &[
        ScaffoldFile {
            path: "AGENTS.md",
            content: include_str!("../../scaffold/agentscope-py/AGENTS.md"),
        },
        ScaffoldFile {
            path: ".mcp",
            content: include_str!("../../scaffold/agentscope-py/mcp.json"),
        },
        ScaffoldFile {
            path: "skills/.seed/note-taking/SKILL.md",
            content: include_str!("../../scaffold/deepagents/note-taking.md"),
        },
        ScaffoldFile {
            path: ".gitignore",
            content: include_str!("../../scaffold/agentscope-py/gitignore"),
        },
    ],
    agent_choice: AgentChoice::ByWorkspace,
    surface: Surface::Title,
    ..LayoutDef::new("agentscope-py", |layout, cx| Box::pin(load(layout, cx)))
};

/// The name of the agent if the folder names none.
const DEFAULT_AGENT: &str = "default";
/// The folder from which the skills of a new agent are copied.
const SEED_SKILLS: &str = "skills/.seed";

/// Loads stead's own `agent.yaml`, if there is one, the tool servers and the agent's skills.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(layout, paths(layout), cx);
    draft.load_dotenv(".env").await;
    stead::load_settings(&mut draft, "agent.yaml").await;
    if let Some(name) = &draft.options().agent {
        let id = AgentId::new(name)
            .map_err(|error| Finding::error(OpenOption::Agent, format!("{name:?}: {error}")));
        draft.config.name = draft.ok_or_note(id).or(draft.config.name.take());
    }
    // The servers are not connected, and AgentScope passes over what it cannot read.
    let before = draft.finding_count();
    servers::check_servers(&mut draft, ".mcp").await;
    draft.soften_findings(before);
    let agent = draft
        .config
        .name
        .as_ref()
        .map_or(DEFAULT_AGENT, AgentId::as_str)
        .to_owned();
    draft.paths.skills = skill_dirs(&mut draft, &agent).await;
    stead::add_configured_dirs(&mut draft).await;
    draft
}

/// Returns the folders of the agent's skills, lowest first: `skills/` itself, as in older versions,
/// then the agent's own folder or, if there is none, the seed.
async fn skill_dirs(draft: &mut Draft<'_>, agent: &str) -> Vec<VPath> {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    let mut folders = vec![path(".agents/skills")];
    let mut partition = false;
    let mut seed = false;
    let mut flat = false;
    for (name, kind) in draft.list_dir("skills").await {
        if kind != FileKind::Directory {
            continue;
        }
        if draft.is_file(&format!("skills/{name}/SKILL.md")).await {
            flat = true;
        } else {
            partition |= name == agent;
            seed |= name == ".seed";
        }
    }
    if flat || !(partition || seed) {
        folders.push(path("skills"));
    }
    if partition {
        folders.push(path(&format!("skills/{agent}")));
    } else if seed {
        folders.push(path(SEED_SKILLS));
    }
    folders
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![ContextFile {
            nested: Nested::No,
            ..ContextFile::new(path("AGENTS.md"), "agents_context")
        }],
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: Vec::new(),
        flavor: stead_skills::SkillFlavor::Standard,
        subagents: None,
        tools: Some(path("tools.json")),
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        default_dir: None,
        protected: layout.protected(),
    }
}
