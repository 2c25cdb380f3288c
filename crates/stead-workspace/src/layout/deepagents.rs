//! Deep Agents: `AGENTS.md` files that are remembered, and folders of skills.

use super::{Draft, Layout, LoadCx, Read, stead};
use crate::{AgentMode, AgentSpec, ContextFile, Finding, FrontMatter, Isolation, Shown, Tree};
use serde::{Deserialize, Serialize};
use stead_model::ModelSettings;
use stead_vfs::{FileKind, Protected, VPath};

/// The tag around every memory file.
const TAG: &str = "agent_memory";
/// Where the agents lie that work can be handed to, each in a folder of its name.
const AGENTS: &str = ".deepagents/agents";

/// Reads stead's own `agent.yaml`, if it is there: a folder of Deep Agents has no settings of its
/// own.
pub(super) async fn load<'a>(cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(Layout::Deepagents, tree(), cx);
    draft.dotenv(".env").await;
    stead::settings(&mut draft, "agent.yaml").await;
    stead::add_given(&mut draft).await;
    stead::refuse_agent(&mut draft);
    // Files that were given are memory like the others.
    for file in &mut draft.tree.context {
        TAG.clone_into(&mut file.tag);
        file.shown = Shown::WithoutComments;
    }
    subagents(&mut draft).await;
    draft
}

/// The front matter of `.deepagents/agents/<name>/AGENTS.md`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Matter {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
}

/// Reads the agents that work can be handed to. They share the files of the one that hands it over.
async fn subagents(draft: &mut Draft<'_>) {
    for (folder, kind) in draft.names(AGENTS).await {
        if kind != FileKind::Directory {
            continue;
        }
        let Some(read) = draft.read(&format!("{AGENTS}/{folder}/AGENTS.md")).await else {
            continue;
        };
        match parse(&folder, &read) {
            Ok(spec) if draft.agents.contains_key(&spec.name) => {
                draft.note(Finding::error(
                    &read.file,
                    format!("there are two agents `{}`; rename one", spec.name),
                ));
            }
            Ok(spec) => drop(draft.agents.insert(spec.name.clone(), spec)),
            Err(finding) => draft.note(finding),
        }
    }
}

fn parse(folder: &str, read: &Read) -> Result<AgentSpec, Finding> {
    let split = FrontMatter::split(&read.file, &read.text)?;
    let document = split.document(&read.file)?;
    let matter: Matter = document.typed()?;
    let Some(description) = matter.description.filter(|text| !text.trim().is_empty()) else {
        return Err(document.error(
            "description",
            "`description:` is missing: others choose this agent by it",
        ));
    };
    let prompt = split.body.trim().to_owned();
    if prompt.is_empty() {
        let spot = crate::Spot {
            line: split.body_line,
            column: 1,
        };
        return Err(Finding::error(
            &read.file,
            "the prompt is missing: write it below the front matter",
        )
        .at(spot));
    }
    Ok(AgentSpec {
        name: matter.name.unwrap_or_else(|| folder.to_owned()),
        source: read.file.clone(),
        mode: AgentMode::Subagent,
        description: Some(description),
        model: matter.model.map(|name| ModelSettings {
            name,
            ..ModelSettings::default()
        }),
        isolation: Isolation::Shared,
        prompt,
        ..AgentSpec::default()
    })
}

fn tree() -> Tree {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    Tree {
        context: ["AGENTS.md", ".deepagents/AGENTS.md"]
            .map(|file| ContextFile::new(path(file), TAG))
            .to_vec(),
        memory: None,
        days: None,
        knowledge: None,
        skills: [".deepagents/skills", ".agents/skills", "skills"]
            .map(path)
            .to_vec(),
        flavor: crate::skills::Flavor::Standard,
        subagents: None,
        tools: Some(path("tools.json")),
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        home: None,
        protected: Protected::DEEPAGENTS,
    }
}
