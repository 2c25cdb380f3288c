//! Deep Agents: `AGENTS.md` files as memory, and folders of skills.
//!
//! Effects: the environment, workspace files (reads).

use super::project_files::load_project_files;
use super::{
    Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength, SettingsText, stead,
};
use crate::{
    AgentMode, AgentSpec, ContextFile, ContextRendering, Finding, FrontMatter, ScaffoldFile,
    Severity, SubagentIsolation, WorkspacePaths,
};
use serde::{Deserialize, Serialize};
use stead_model::ModelSettings;
use stead_vfs::{FileKind, Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[LayoutMark::new(
        ".deepagents",
        MarkRank::Folder,
        MarkStrength::Strong,
    )],
    protected: Protected::workspace(".stead")
        .with_writable(&[&[".deepagents", "AGENTS.md"], &[".deepagents", "skills"]])
        .with_hidden(&[".stead/agents"]),
    private_paths: &[".stead/agents"],
    scaffold: &[
        ScaffoldFile {
            path: ".deepagents/AGENTS.md",
            content: include_str!("../scaffold/deepagents/AGENTS.md"),
        },
        ScaffoldFile {
            path: ".deepagents/skills/note-taking/SKILL.md",
            content: include_str!("../scaffold/deepagents/note-taking.md"),
        },
        ScaffoldFile {
            path: ".gitignore",
            content: include_str!("../scaffold/deepagents/gitignore"),
        },
    ],
    persona: ".deepagents/AGENTS.md",
    ..LayoutDef::new("deepagents", |layout, cx| Box::pin(load(layout, cx)))
};

/// The tag that encloses every memory file.
const MEMORY_TAG: &str = "agent_memory";
/// The folder of subagents, each in a folder of its name.
const AGENTS_DIR: &str = ".deepagents/agents";

/// Loads stead's own `agent.yaml`, if there is one: a folder of Deep Agents has no settings of its
/// own.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(layout, paths(layout), cx);
    draft.load_dotenv(".env").await;
    stead::load_settings(&mut draft, "agent.yaml").await;
    stead::add_configured_dirs(&mut draft).await;
    stead::refuse_agent(&mut draft);
    // Context files from the options are memory like the others.
    for file in &mut draft.paths.context {
        MEMORY_TAG.clone_into(&mut file.tag);
        file.rendering = ContextRendering::WithoutComments;
    }
    load_subagents(&mut draft).await;
    load_project_files(&mut draft).await;
    draft
}

/// The front matter of `.deepagents/agents/<name>/AGENTS.md`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DeepagentsFrontMatter {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
}

/// Loads the subagents. They share the files of the agent that delegates to them.
async fn load_subagents(draft: &mut Draft<'_>) {
    for (folder, kind) in draft.list_dir(AGENTS_DIR).await {
        if kind != FileKind::Directory {
            continue;
        }
        let Some(read) = draft
            .read_file(&format!("{AGENTS_DIR}/{folder}/AGENTS.md"))
            .await
        else {
            continue;
        };
        match parse(&folder, &read) {
            Ok((spec, _)) if draft.agents.contains_key(&spec.name) => {
                draft.note(Finding::new(
                    Severity::NonFatal,
                    &read.file,
                    format!("there are two agents `{}`; rename one", spec.name),
                ));
            }
            Ok((spec, findings)) => {
                findings.into_iter().for_each(|finding| draft.note(finding));
                draft.agents.insert(spec.name.clone(), spec);
            }
            // The agent is left out.
            Err(finding) => draft.note(Finding {
                severity: Severity::NonFatal,
                ..finding
            }),
        }
    }
}

fn parse(folder: &str, read: &SettingsText) -> Result<(AgentSpec, Vec<Finding>), Finding> {
    let split = FrontMatter::split(&read.file, &read.text)?;
    let mut document = split.parse_document(&read.file)?;
    let findings = document.remove_unknown_keys::<DeepagentsFrontMatter>();
    let matter: DeepagentsFrontMatter = document.deserialize_into()?;
    let Some(description) = matter.description.filter(|text| !text.trim().is_empty()) else {
        return Err(document.error(
            "description",
            "`description:` is missing: others choose this agent by it",
        ));
    };
    let prompt = split.body.trim().to_owned();
    if prompt.is_empty() {
        let spot = crate::SourcePosition {
            line: split.body_line,
            column: 1,
        };
        return Err(Finding::error(
            &read.file,
            "the prompt is missing: write it below the front matter",
        )
        .with_position(spot));
    }
    let spec = AgentSpec {
        name: matter.name.unwrap_or_else(|| folder.to_owned()),
        source: read.file.clone(),
        mode: AgentMode::Subagent,
        description: Some(description),
        model: matter.model.map(|name| ModelSettings {
            name,
            ..ModelSettings::default()
        }),
        isolation: SubagentIsolation::Shared,
        prompt,
        ..AgentSpec::default()
    };
    Ok((spec, findings))
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: ["AGENTS.md", ".deepagents/AGENTS.md"]
            .map(|file| ContextFile::new(path(file), MEMORY_TAG))
            .to_vec(),
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: [".deepagents/skills", ".agents/skills", "skills"]
            .map(path)
            .to_vec(),
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
