//! An ordinary project: a folder of files that belong to people, in which an agent works.
//!
//! Everything of the agent lies in `.stead/`: settings, memory, skills and running state. Nothing
//! else in the folder means anything to Stead, apart from the files that people keep for all coding
//! agents. It is the layout of every folder without the mark of another one.
//!
//! Effects: the environment, workspace files (reads).

use super::project_files::CLAUDE_FILE;
use super::stead::{Extras, StandardParts, load_standard};
use super::{
    BuiltInSurface, Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength,
    Strictness, UnknownTools, stead,
};
use crate::{ContextFile, Nested, PlanSettings, ScaffoldFile, WorkspacePaths};
use stead_place::HOME_GITIGNORE;
use stead_skills::SkillFlavor;
use stead_vfs::{Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[
        LayoutMark::new(SETTINGS_FILE, MarkRank::Persona, MarkStrength::Ignored),
        LayoutMark::new("AGENTS.md", MarkRank::Persona, MarkStrength::Weak),
        LayoutMark::new(CLAUDE_FILE, MarkRank::Persona, MarkStrength::Weak),
    ],
    home_dir: HOME_DIR,
    // All of `.stead` except what the agent keeps for itself; `tools.json` is the project's.
    protected: Protected::workspace(HOME_DIR)
        .with_writable(&[
            &["tools.json"],
            &[HOME_DIR, "MEMORY.md"],
            &[HOME_DIR, "memory"],
            &[HOME_DIR, "knowledge"],
            &[HOME_DIR, "subagents"],
            &[HOME_DIR, "plans"],
            &[HOME_DIR, "tasks"],
        ])
        .with_users_in(HOME_DIR)
        .with_quarantine(".stead/memory/quarantine"),
    private_paths: &[".stead/agents"],
    scaffold: &[
        ScaffoldFile {
            path: SETTINGS_FILE,
            content: include_str!("../scaffold/agent.yaml"),
        },
        ScaffoldFile {
            path: ".stead/.gitignore",
            content: HOME_GITIGNORE,
        },
    ],
    configure_scaffold: Some(stead::configure_scaffold),
    unknown_tools: UnknownTools::Refused,
    strictness: Strictness::Strict,
    built_in_surface: BuiltInSurface::Applies,
    memory_flush: true,
    ..LayoutDef::new("project", |layout, cx| Box::pin(load(layout, cx)))
};

/// The folder in which everything of the agent lies.
const HOME_DIR: &str = ".stead";
const SETTINGS_FILE: &str = ".stead/agent.yaml";

/// Loads the settings in `.stead/`, and the files of the project for coding agents.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let parts = StandardParts {
        settings: SETTINGS_FILE,
        subagents: ".stead/subagents",
        hooks: ".stead/hooks",
        extras: Extras::Loaded,
    };
    let mut draft = load_standard(Draft::new(layout, paths(layout), cx), parts).await;
    if draft.config.plan == PlanSettings::default() {
        draft.config.plan.directory = ".stead/plans".to_owned();
    }
    draft
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![ContextFile {
            nested: Nested::Yes,
            ..ContextFile::new(path("AGENTS.md"), "agents_context")
        }],
        memory: Some(path(".stead/MEMORY.md")),
        daily_facts: Some(path(".stead/memory")),
        knowledge: Some(path(".stead/knowledge")),
        skills: vec![path(".stead/skills")],
        flavor: SkillFlavor::Standard,
        subagents: Some(path(".stead/subagents")),
        tools: Some(path(".stead/tools.json")),
        runtime: path(HOME_DIR),
        usage: None,
        conversations: None,
        tasks: Some(path(".stead/tasks/TASKS.yaml")),
        default_dir: None,
        protected: layout.protected(),
    }
}
