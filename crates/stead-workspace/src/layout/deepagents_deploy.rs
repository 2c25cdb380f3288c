//! Projects of Deep Agents' `deploy`: `agent.json`, `AGENTS.md`, `skills/`, `subagents/<name>/`.
//!
//! Effects: the environment, workspace files (reads).

use super::{
    Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength, ModelUse, stead,
};
use crate::{
    AgentMode, AgentSpec, ContextFile, ContextRendering, Finding, ScaffoldFile, SettingsDocument,
    Severity, SubagentIsolation, WorkspacePaths,
};
use serde::Deserialize;
use serde_json::Value;
use stead_core::AgentId;
use stead_model::{ModelSettings, check_name};
use stead_skills::SKILL_FILE;
use stead_vfs::{FileKind, Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[
        LayoutMark::new(AGENT_FILE, MarkRank::Settings, MarkStrength::Weak),
        LayoutMark::new(LEGACY_FILE, MarkRank::Settings, MarkStrength::Weak),
    ],
    // The system prompt and the subagents are deployed, not learned; `user/AGENTS.md` is memory.
    protected: Protected::workspace(".stead")
        .with_unwritable(&["AGENTS.md", SUBAGENTS_DIR])
        // The list of tool servers may contain their keys.
        .with_hidden(&[".stead/agents", SERVERS_FILE]),
    private_paths: &[".stead/agents"],
    scaffold: &[
        ScaffoldFile {
            path: AGENT_FILE,
            content: "{\n  \"name\": \"my-agent\",\n  \"description\": \"Helps with this folder.\"\n}\n",
        },
        ScaffoldFile {
            path: "AGENTS.md",
            content: "# My agent\n\nYou help with the files of this folder. Ask if a request is unclear.\n",
        },
        ScaffoldFile {
            path: "skills/note-taking/SKILL.md",
            content: include_str!("../scaffold/deepagents/note-taking.md"),
        },
        ScaffoldFile {
            path: ".gitignore",
            content: include_str!("../scaffold/deepagents/gitignore"),
        },
    ],
    ..LayoutDef::new("deepagents-deploy", |layout, cx| Box::pin(load(layout, cx)))
};

const AGENT_FILE: &str = "agent.json";
/// The settings of versions before `agent.json`.
const LEGACY_FILE: &str = "deepagents.toml";
/// The tools of tool servers. It is not Stead's `tools.json`, which lists allowed tools.
const TOOLS_FILE: &str = "tools.json";
/// The tool servers of versions before `tools.json`.
const SERVERS_FILE: &str = "mcp.json";
const SUBAGENTS_DIR: &str = "subagents";

/// Keys of `agent.json` that have no effect, each with the reason.
const INACTIVE_KEYS: [(&str, &str); 4] = [
    (
        "agent_id",
        "names an agent of the hosted service; it has no meaning here",
    ),
    (
        "backend",
        "sandboxes are used in a later version; commands run on this machine",
    ),
    (
        "permissions",
        "says who may use the hosted agent; it has no meaning here",
    ),
    (
        "extras",
        "is data of the hosted service; it has no meaning here",
    ),
];
/// Providers that have other names in LangChain: its name, ours.
const PROVIDER_NAMES: [(&str, &str); 2] = [("google_genai", "gemini"), ("mistralai", "mistral")];

/// The settings in `agent.json` that have an effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeployedAgent {
    name: Option<String>,
    description: Option<String>,
    model: Option<String>,
    runtime: Option<DeployedRuntime>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeployedRuntime {
    model: Option<DeployedModel>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeployedModel {
    model_id: Option<String>,
}

/// The settings in `subagents/<name>/agent.json` that have an effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeployedSubagent {
    description: Option<String>,
    model: Option<String>,
    /// The former name of `model`.
    model_id: Option<String>,
}

/// Loads stead's own `agent.yaml`, if there is one, then `agent.json` and the subagents.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(layout, paths(layout), cx);
    draft.load_dotenv(".env").await;
    stead::load_settings(&mut draft, "agent.yaml").await;
    load_agent(&mut draft).await;
    note_unread_files(&mut draft).await;
    load_subagents(&mut draft).await;
    stead::add_configured_dirs(&mut draft).await;
    stead::refuse_agent(&mut draft);
    draft
}

async fn load_agent(draft: &mut Draft<'_>) {
    let Some(document) = load_json(draft, AGENT_FILE).await else {
        return;
    };
    let Some(agent) = draft.ok_or_note(document.deserialize_into::<DeployedAgent>()) else {
        return;
    };
    note_keys_without_effect(
        draft,
        &document,
        "",
        &["name", "description", "model", "runtime"],
    );
    note_keys_without_effect(draft, &document, "runtime", &["model"]);
    note_keys_without_effect(draft, &document, "runtime.model", &["model_id"]);
    draft.record_origins(&document, |key| match key {
        "runtime.model.model_id" => Some("model".to_owned()),
        "name" | "description" | "model" => Some(key.to_owned()),
        _ => None,
    });
    set_name(draft, &document, agent.name);
    draft.config.description = draft.config.description.take().or(agent.description);
    let in_runtime = agent.runtime.and_then(|runtime| runtime.model?.model_id);
    if let (Some(_), Some(_)) = (&agent.model, &in_runtime) {
        let text = "model: set either `model` or `runtime.model.model_id`, not both";
        draft.note(document.error("model", text));
    }
    let (key, name) = match agent.model {
        Some(name) => ("model", Some(name)),
        None => ("runtime.model.model_id", in_runtime),
    };
    if let Some(name) = name {
        let needed = draft.options().model_use == ModelUse::Required;
        let severity = match needed && draft.options().model.is_none() {
            true => Severity::Error,
            false => Severity::NonFatal,
        };
        let model = model_settings(draft, &document, severity, (key, &name));
        draft.config.model = draft.config.model.take().or(model);
    }
}

/// Sets the agent's id, which is a part of paths and therefore more restricted than the name.
fn set_name(draft: &mut Draft<'_>, document: &SettingsDocument, name: Option<String>) {
    let Some(name) = name else {
        let text = "name: is missing; deploying the folder needs it";
        draft.note(document.finding(Severity::NonFatal, "name", text));
        return;
    };
    match AgentId::new(&name) {
        Ok(id) => draft.config.name = draft.config.name.take().or(Some(id)),
        Err(error) => {
            let text = format!("name: {name:?} is not used: {error}");
            draft.note(document.finding(Severity::Warning, "name", text));
        }
    }
}

/// Returns the model that `name` means, or notes what is wrong with it.
fn model_settings(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    severity: Severity,
    (key, name): (&str, &str),
) -> Option<ModelSettings> {
    let (provider, model) = name.trim().split_once(':').unwrap_or(("", name.trim()));
    let ours = PROVIDER_NAMES.iter().find(|(other, _)| *other == provider);
    let name = match (provider, ours) {
        ("", _) => model.to_owned(),
        (_, Some((_, ours))) => format!("{ours}:{model}"),
        (provider, None) => format!("{provider}:{model}"),
    };
    if let Err(error) = check_name(&name) {
        draft.note(document.finding(severity, key, format!("{key}: {error}")));
        return None;
    }
    Some(ModelSettings {
        name,
        ..ModelSettings::default()
    })
}

/// Notes every key of the map at `parent` that is not one of `active`.
fn note_keys_without_effect(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    parent: &str,
    active: &[&str],
) {
    let pointer = match parent {
        "" => String::new(),
        parent => format!("/{}", parent.replace('.', "/")),
    };
    let Some(Value::Object(map)) = document.value().pointer(&pointer) else {
        return;
    };
    for name in map.keys().filter(|name| !active.contains(&name.as_str())) {
        let key = match parent {
            "" => name.clone(),
            parent => format!("{parent}.{name}"),
        };
        let inactive = INACTIVE_KEYS.iter().find(|(known, _)| *known == key);
        let (severity, why) = match inactive {
            Some((_, why)) => (Severity::Inactive, *why),
            None => (Severity::NonFatal, "is not known and has no effect"),
        };
        draft.note(document.finding(severity, &key, format!("{key}: {why}")));
    }
}

/// Notes files of the project that have no effect, or that are missing.
async fn note_unread_files(draft: &mut Draft<'_>) {
    if !draft.is_file("AGENTS.md").await {
        let text = "is missing: it is the system prompt";
        draft.note(Finding::new(Severity::NonFatal, "AGENTS.md", text));
    }
    if draft.is_file(LEGACY_FILE).await {
        let text = format!("is the older form of {AGENT_FILE} and is not read; move its settings");
        draft.note(Finding::new(Severity::NonFatal, LEGACY_FILE, text));
    }
    note_tools(draft, TOOLS_FILE, "/tools").await;
    note_tools(draft, SERVERS_FILE, "/mcpServers").await;
}

/// Notes that the tools or servers at `pointer` in `file` are not connected. As they have no
/// effect, a mistake in the file does not keep the agent from running.
async fn note_tools(draft: &mut Draft<'_>, file: &str, pointer: &str) {
    let Some(read) = draft.read_file(file).await else {
        return;
    };
    let document = match SettingsDocument::parse_json(&read.file, &read.text) {
        Ok(document) => document,
        Err(finding) => {
            let severity = Severity::NonFatal;
            return draft.note(Finding {
                severity,
                ..finding
            });
        }
    };
    let count = match document.value().pointer(pointer) {
        Some(Value::Array(list)) => {
            for (i, server) in list.iter().enumerate() {
                let name = server.get("name").and_then(Value::as_str);
                let name = name.map_or_else(|| format!("number {}", i + 1), str::to_owned);
                draft.declare_server(file, &name, server);
            }
            list.len()
        }
        Some(Value::Object(map)) => {
            for (name, server) in map {
                draft.declare_server(file, name, server);
            }
            map.len()
        }
        Some(_) | None => 0,
    };
    if count > 0 {
        let text = "tool servers are connected in a later version; their tools are missing";
        draft.note(document.finding(Severity::Inactive, &pointer[1..], text));
    }
}

async fn load_json(draft: &mut Draft<'_>, file: &str) -> Option<SettingsDocument> {
    let read = draft.read_file(file).await?;
    draft.ok_or_note(SettingsDocument::parse_json(&read.file, &read.text))
}

/// Loads the subagents. They share the files of the agent that delegates to them, and have only
/// their own skills.
async fn load_subagents(draft: &mut Draft<'_>) {
    let mut skill_dirs = Vec::new();
    for (folder, kind) in draft.list_dir(SUBAGENTS_DIR).await {
        if kind != FileKind::Directory || folder.starts_with('.') {
            continue;
        }
        let dir = format!("{SUBAGENTS_DIR}/{folder}");
        let before = draft.finding_count();
        let spec = load_subagent(draft, &folder, &dir).await;
        draft.soften_findings(before);
        let Some(mut spec) = spec else {
            continue;
        };
        let skills = skill_names(draft, &format!("{dir}/skills")).await;
        if let (false, Ok(path)) = (skills.is_empty(), VPath::parse(&format!("{dir}/skills"))) {
            let text = "the main agent sees these skills too";
            draft.note(Finding::new(Severity::Warning, path.as_str(), text));
            skill_dirs.push(path);
        }
        spec.skills = Some(skills);
        note_tools(draft, &format!("{dir}/{TOOLS_FILE}"), "/tools").await;
        draft.agents.insert(folder, spec);
    }
    // Skills of the project override those of subagents.
    draft.paths.skills.splice(0..0, skill_dirs);
}

async fn load_subagent(draft: &mut Draft<'_>, name: &str, dir: &str) -> Option<AgentSpec> {
    let prompt_file = format!("{dir}/AGENTS.md");
    let prompt = draft.read_file(&prompt_file).await;
    let prompt = prompt.map(|read| read.text.trim().to_owned());
    let Some(prompt) = prompt.filter(|text| !text.is_empty()) else {
        let text = "is missing or empty: it is the prompt of this subagent, which is left out";
        draft.note(Finding::new(Severity::NonFatal, &prompt_file, text));
        return None;
    };
    let settings_file = format!("{dir}/{AGENT_FILE}");
    let Some(document) = load_json(draft, &settings_file).await else {
        if !draft.has_error(&settings_file) {
            let text = "is missing; this subagent is left out";
            draft.note(Finding::new(Severity::NonFatal, &settings_file, text));
        }
        return None;
    };
    let settings: DeployedSubagent = draft.ok_or_note(document.deserialize_into())?;
    // The name of a subagent is that of its folder.
    let active = ["name", "description", "model", "model_id"];
    note_keys_without_effect(draft, &document, "", &active);
    if settings.description.is_none() {
        let text = "description: is missing; others choose this agent by it";
        draft.note(document.finding(Severity::Warning, "description", text));
    }
    if let (Some(_), Some(_)) = (&settings.model, &settings.model_id) {
        draft.note(document.error("model", "model: set either `model` or `model_id`, not both"));
    }
    let named = settings.model.or(settings.model_id);
    let model = named
        .and_then(|name| model_settings(draft, &document, Severity::NonFatal, ("model", &name)));
    Some(AgentSpec {
        name: name.to_owned(),
        source: prompt_file,
        mode: AgentMode::Subagent,
        description: settings.description,
        model,
        isolation: SubagentIsolation::Shared,
        prompt,
        ..AgentSpec::default()
    })
}

/// Returns the names of the skills in a folder.
async fn skill_names(draft: &mut Draft<'_>, dir: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (name, kind) in draft.list_dir(dir).await {
        let file = format!("{dir}/{name}/{SKILL_FILE}");
        if kind == FileKind::Directory && draft.is_file(&file).await {
            names.push(name);
        }
    }
    names
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    let user_memory = ContextFile {
        rendering: ContextRendering::WithoutComments,
        ..ContextFile::new(path("user/AGENTS.md"), "agent_memory")
    };
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![
            ContextFile::new(path("AGENTS.md"), "agents_context"),
            user_memory,
        ],
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: vec![path("skills")],
        flavor: stead_skills::SkillFlavor::Standard,
        subagents: None,
        tools: None,
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        default_dir: None,
        protected: layout.protected(),
    }
}
