//! The openharness layout: `.openharness/` beside the `AGENTS.md` of a project.
//!
//! `AGENTS.md` describes the project; `.openharness/agents/*.md` define the agents. One of them is
//! the main agent. Models and agents that many workspaces share come from a platform.
//!
//! Effects: workspace files (reads).

mod actions;
mod agents;
mod common;
mod models;
mod native_tools;
mod prompts;
mod references;
mod scaffold;
mod servers;
mod settings;

use self::agents::OpenharnessAgent;
pub(crate) use self::common::{TextOr, first_duplicate, is_valid_name, suggestion};
use self::native_tools::NativeTools;
pub(crate) use self::prompts::TextSource;
use self::references::{AgentRank, ReferenceTable};
use self::settings::{OpenharnessSettings, WorkspaceKind};
use super::stead::add_configured_dirs;
use super::{
    AgentChoice, AgentToolLists, Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank,
    MarkStrength, SettingsRoot, unresolved_severity,
};
use crate::for_agent::{policy, with_implied_tools};
use crate::{
    AgentSpec, ContextFile, Finding, FixedText, OpenOption, Policy, Severity, Surface,
    WorkspacePaths, section_order,
};
use std::collections::BTreeMap;
use stead_vfs::{FileKind, Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[LayoutMark::new(
        OPENHARNESS_DIR,
        MarkRank::Folder,
        MarkStrength::Strong,
    )],
    // All of `.openharness` except the memory.
    protected: Protected::workspace(".openharness/data")
        .with_writable(&[&[OPENHARNESS_DIR, "memory"]])
        .with_quarantine(".openharness/memory/quarantine"),
    private_paths: &[".openharness/data"],
    scaffold: &scaffold::SCAFFOLD,
    persona: ".openharness/agents/",
    agent_choice: AgentChoice::ByWorkspace,
    agent_tool_lists: AgentToolLists::Replaced,
    surface: Surface::Title,
    ..LayoutDef::new("openharness", |layout, cx| Box::pin(load(layout, cx)))
};

const OPENHARNESS_DIR: &str = ".openharness";
const AGENTS_DIR: &str = ".openharness/agents";
/// The known entries of the folder.
const KNOWN_ENTRIES: [&str; 11] = [
    "agents",
    "models",
    "actions",
    "skills",
    "hooks",
    "tools",
    "memory",
    "data",
    "state",
    "settings.yaml",
    "prompts.yaml",
];

/// Loads everything below `.openharness`.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let mut draft = Draft::new(layout, paths(layout), cx);
    note_misspelled_names(&mut draft).await;
    let settings = settings::load_settings(&mut draft).await;
    let models = models::load_models(&mut draft, settings.as_ref()).await;
    let mut agents = agents::load_agents(&mut draft).await;
    add_configured_dirs(&mut draft).await;
    let kind = settings
        .as_ref()
        .map_or(WorkspaceKind::Project, |settings| settings.kind);
    match kind {
        WorkspaceKind::Project => {}
        WorkspaceKind::Chat => remove_tools_for_chat(&mut draft, &mut agents),
    }
    let (active, usual) = choose_main_agent(&mut draft, settings.as_ref(), &agents);
    if active.is_none() {
        draft.harden_findings(AGENTS_DIR);
    }
    let known = ReferenceTable {
        models: &models,
        natives: NativeTools::new(),
        actions: actions::load_actions(&mut draft).await,
        servers: servers::load_servers(&mut draft).await,
        skills: references::skill_names(&mut draft, &referenced_skills(&agents)).await,
        modes: agents
            .iter()
            .map(|(name, agent)| (name.clone(), agent.spec.mode))
            .collect(),
    };
    let severity = unresolved_severity(&draft);
    let model = |name: &str| match models.resolve(name) {
        Ok(resolved) => Ok(resolved.settings),
        Err(message) => Err((severity, message)),
    };
    let names = agents.keys().map(String::as_str).collect();
    let hooks = crate::hooks::HookReferences {
        model: &model,
        agents: names,
    };
    crate::hooks::load_hooks(&mut draft, ".openharness/hooks", &hooks).await;
    let mut models_of = BTreeMap::new();
    for (name, agent) in &mut agents {
        let role = if active.as_ref() == Some(name) {
            AgentRank::Main
        } else {
            AgentRank::Other
        };
        models_of.insert(name.clone(), known.resolve_agent(&mut draft, agent, role));
    }
    let speaker = |agent: &OpenharnessAgent| {
        let model = models_of.get(&agent.spec.name).and_then(Option::as_ref);
        prompts::PromptTarget {
            agent: agent_prompt_text(&agent.spec),
            model,
        }
    };
    let main = active.as_ref().and_then(|name| agents.get(name));
    if let Some(agent) = main {
        apply_main_agent(&mut draft, agent);
        prompts::load_prompts(&mut draft, settings.as_ref(), speaker(agent)).await;
    }
    // A session may switch to the other agents. Their prompts are assembled the same way, and
    // problems are reported once.
    let texts = std::mem::take(&mut draft.texts);
    let told = draft.finding_count();
    let mut spoken = Vec::new();
    for (name, agent) in &agents {
        prompts::load_prompts(&mut draft, settings.as_ref(), speaker(agent)).await;
        spoken.push((name.clone(), std::mem::take(&mut draft.texts)));
    }
    draft.truncate_findings(told);
    draft.texts = texts;
    for (name, texts) in spoken {
        if let Some(agent) = agents.get_mut(&name) {
            agent.spec.texts = texts;
        }
    }
    draft.agents = agents
        .into_iter()
        .map(|(name, agent)| (name, agent.spec))
        .collect();
    (draft.active, draft.default_delegate) = (active, usual);
    draft
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![ContextFile::new(path("AGENTS.md"), "agents_context")],
        memory: Some(path(".openharness/memory/MEMORY.md")),
        daily_facts: None,
        knowledge: None,
        skills: vec![path(".openharness/skills")],
        flavor: stead_skills::SkillFlavor::OpenHarness,
        subagents: None,
        tools: None,
        runtime: path(".openharness/data"),
        usage: None,
        conversations: None,
        tasks: None,
        default_dir: None,
        protected: layout.protected(),
    }
}

/// Returns the files of a folder that end with `extension`. Similar endings are reported.
pub(crate) async fn list_definitions(
    draft: &mut Draft<'_>,
    side: SettingsRoot,
    folder: &str,
    extension: &str,
) -> Vec<String> {
    let similar: &[&str] = match extension {
        ".yaml" => &[".yml", ".json"],
        _ => &[".markdown", ".mdx", ".txt"],
    };
    let mut paths = Vec::new();
    for (name, kind) in draft.list_dir_in(side, folder).await {
        if kind == FileKind::Directory || name.starts_with('.') {
            continue;
        }
        let path = format!("{folder}/{name}");
        if name.len() > extension.len() && name.ends_with(extension) {
            paths.push(path);
        } else if similar.iter().any(|end| name.ends_with(end)) {
            let message = format!("is not read: only names that end with {extension} are");
            draft.note(Finding::new(
                Severity::Warning,
                side.display_path(&path),
                message,
            ));
        }
    }
    paths
}

/// Reports names that are similar to an entry of the layout.
async fn note_misspelled_names(draft: &mut Draft<'_>) {
    for (name, _) in draft.list_dir(OPENHARNESS_DIR).await {
        let near = crate::closest_name(&name, &KNOWN_ENTRIES)
            .filter(|_| !KNOWN_ENTRIES.contains(&name.as_str()) && name != "prompts");
        if let Some(near) = near {
            let message = format!("is no part of the layout; did you mean `{near}`?");
            draft.note(Finding::new(
                Severity::Warning,
                format!("{OPENHARNESS_DIR}/{name}"),
                message,
            ));
        }
    }
}

/// Removes tools, skills and delegation from all agents of a chat workspace.
fn remove_tools_for_chat(draft: &mut Draft<'_>, agents: &mut BTreeMap<String, OpenharnessAgent>) {
    draft.paths.skills.clear();
    if !draft.options().skills.is_empty() {
        let message = "ignored, for the workspace is of kind chat";
        draft.note(Finding::new(Severity::Warning, OpenOption::Skills, message));
    }
    for agent in agents.values_mut() {
        let mut ignored = Vec::new();
        for list in agent
            .allowed
            .all_mut()
            .into_iter()
            .chain(agent.denied.all_mut())
        {
            if !std::mem::take(&mut list.names).is_empty() {
                ignored.push(list.key);
            }
        }
        if !std::mem::take(&mut agent.spec.switch_targets).is_empty() {
            ignored.push("switch");
        }
        if agent
            .spec
            .subagents
            .replace(Vec::new())
            .is_some_and(|names| !names.is_empty())
        {
            ignored.push("subagents");
        }
        for key in ignored {
            let message = format!("{key}: ignored, for the workspace is of kind chat");
            draft.note(agent.document.finding(Severity::Warning, key, message));
        }
    }
}

/// Chooses the main agent: the one that the options name, the settings' default, `assistant`, or
/// the first that can be it. The second value is the choice without the options.
fn choose_main_agent(
    draft: &mut Draft<'_>,
    settings: Option<&OpenharnessSettings>,
    agents: &BTreeMap<String, OpenharnessAgent>,
) -> (Option<String>, Option<String>) {
    let primary = || {
        agents
            .values()
            .filter(|agent| agent.spec.mode.is_primary())
            .map(|agent| agent.spec.name.as_str())
    };
    let problem = |name: &str| match agents.get(name) {
        Some(agent) if agent.spec.mode.is_primary() => None,
        Some(_) => Some(format!(
            "`{name}` is a subagent, so it cannot be the main agent{}",
            suggestion(name, primary())
        )),
        None => Some(format!(
            "there is no agent `{name}`{}",
            suggestion(name, primary())
        )),
    };
    let default =
        settings.and_then(|settings| Some((settings.default_agent.as_deref()?, settings)));
    if let Some((problem, settings)) =
        default.and_then(|(name, settings)| Some((problem(name)?, settings)))
    {
        draft.note(
            settings
                .document
                .error("default_agent", format!("default_agent: {problem}")),
        );
        return (None, None);
    }
    let fallback = || {
        primary()
            .find(|name| *name == "assistant")
            .or_else(|| primary().next())
    };
    let chosen = default.map(|(name, _)| name).or_else(fallback);
    let usual = chosen.map(str::to_owned);
    if let Some(name) = draft.options().agent.as_deref() {
        return match problem(name) {
            None => (Some(name.to_owned()), usual),
            Some(problem) => {
                draft.note(Finding::error(OpenOption::Agent, problem));
                (None, usual)
            }
        };
    }
    if chosen.is_none() {
        let names: Vec<&str> = agents.keys().map(String::as_str).collect();
        let message = match names.is_empty() {
            true => "there is no agent; write one, as NAME.md".to_owned(),
            false => format!(
                "no agent can be the main one, all are subagents: {}",
                names.join(", ")
            ),
        };
        draft.note(Finding::error(AGENTS_DIR, message));
    }
    (usual.clone(), usual)
}

fn referenced_skills(agents: &BTreeMap<String, OpenharnessAgent>) -> Vec<String> {
    let lists = agents
        .values()
        .flat_map(|agent| [&agent.allowed.skills, &agent.denied.skills]);
    lists.flat_map(|list| list.names.iter().cloned()).collect()
}

/// Returns the prompt text of an agent.
fn agent_prompt_text(spec: &AgentSpec) -> FixedText {
    FixedText {
        title: format!("agent {}", spec.name),
        order: section_order::PERSONA,
        source: spec.source.clone(),
        text: spec.prompt.clone(),
        tag: None,
    }
}

/// Applies the model, limits and tools of the main agent to the workspace.
fn apply_main_agent(draft: &mut Draft<'_>, agent: &OpenharnessAgent) {
    let spec = &agent.spec;
    draft.config.model = spec.model.clone();
    draft.config.policy = policy(&spec.policy, &Policy::default());
    draft.tools.allow = Some(with_implied_tools(
        spec.tools.clone().unwrap_or_default(),
        spec,
    ));
    draft.tools.deny = spec.denied_tools.clone();
    draft.record_origins(&agent.document, |key| match key {
        "model" | "model.model_ref" | "model.alias" => Some("model.name".to_owned()),
        "temperature" | "model.temperature" => Some("model.temperature".to_owned()),
        "max_tokens" | "model.max_tokens" => Some("model.max_output_tokens".to_owned()),
        key if key.starts_with("policy.") => Some(key.to_owned()),
        "tools.native" => Some("tools.allow".to_owned()),
        "disallowed.tools.native" => Some("tools.deny".to_owned()),
        _ => None,
    });
}
