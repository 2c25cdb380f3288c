//! OpenPaw's workspaces: `agent/ config/ data/ memory/ workspace/`, or the older flat form.
//!
//! Effects: the environment, workspace files (reads).

mod channel;
mod cron;
mod heartbeat;
mod layers;
mod model;
mod scaffold;
mod settings;
mod tools;
mod workspace_name;

pub use workspace_name::{WorkspaceNameError, check_workspace_name};

use super::{
    Draft, InnerDirs, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength, stead,
};
use crate::{ContextFile, ContextRendering, Finding, Severity, SkillMode, WorkspacePaths};
use layers::ConfigLayers;
use settings::{OpenpawMemory, OpenpawSettings};
use std::collections::BTreeMap;
use stead_core::{AgentId, Hint};
use stead_vfs::{Protected, VPath};

/// OpenPaw's default number of turns.
const DEFAULT_MAX_TURNS: u32 = 50;
const DEFAULT_RUN_SECONDS: u64 = 300;

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[
        // The older form has an `agent.yaml` too, and some folders of other layouts keep an
        // `AGENT.md` beside `AGENTS.md` for other tools.
        LayoutMark {
            unless: Some("AGENTS.md"),
            ..LayoutMark::new("AGENT.md", MarkRank::Exclusive, MarkStrength::Weak)
        },
        LayoutMark::new("agent/AGENT.md", MarkRank::Settings, MarkStrength::Strong),
        LayoutMark::new(
            "config/agent.yaml",
            MarkRank::Settings,
            MarkStrength::Ignored,
        ),
    ],
    inner_dirs: Some(InnerDirs {
        names: &["config", "agent"],
        mark: "agent/AGENT.md",
    }),
    check_name: Some(check_workspace_name),
    top_level_names: &["agent", "config", "data", "memory", "workspace"],
    // Settings, journals and recorded conversations; only the tools for tasks change their list.
    protected: Protected::workspace("data")
        .with_unwritable(&[
            "hooks",
            "crons",
            "agents",
            "config",
            "data",
            "TASKS.yaml",
            "memory/logs",
            "memory/conversations",
        ])
        .with_writable(&[&["agent", "AGENT.md"], &["AGENT.md"]])
        .with_tool_files(&[&["data", "TASKS.yaml"], &["TASKS.yaml"]]),
    private_paths: &[
        "data/agents",
        "data/token_usage.jsonl",
        "memory/conversations",
    ],
    scaffold: &scaffold::SCAFFOLD,
    scaffold_dirs: &scaffold::DIRS,
    configure_scaffold: Some(scaffold::configure),
    persona: "agent/AGENT.md",
    ..LayoutDef::new("openpaw", |layout, cx| Box::pin(load(layout, cx)))
};

/// The arrangement of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FolderShape {
    /// The parts are in folders.
    Nested,
    /// All parts are at the root.
    Flat,
}

impl FolderShape {
    /// Returns the path of a file about the agent's identity.
    fn agent(self, name: &str) -> String {
        match self {
            Self::Nested => format!("agent/{name}"),
            Self::Flat => name.to_owned(),
        }
    }

    /// Returns the path of a settings file.
    fn config(self, name: &str) -> String {
        match self {
            Self::Nested => format!("config/{name}"),
            Self::Flat => name.to_owned(),
        }
    }
}

/// Loads the settings and checks the other files.
async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>) -> Draft<'a> {
    let form = detect_shape(cx).await;
    let mut draft = Draft::new(layout, paths(layout, form), cx);
    draft.config.skills.mode = Some(SkillMode::Full);
    draft.config.policy.max_steps = DEFAULT_MAX_TURNS;
    draft.config.policy.run_timeout_seconds = DEFAULT_RUN_SECONDS;
    // Older versions kept the list of tasks at the root.
    if form == FolderShape::Flat && draft.is_file("TASKS.yaml").await {
        draft.paths.tasks = VPath::parse("TASKS.yaml").ok();
    }
    check_identity_files(&mut draft, form).await;
    draft.load_dotenv(&form.config(".env")).await;
    draft.load_platform_dotenv(".env").await;
    let layers = ConfigLayers::read(&mut draft, &form.config("agent.yaml")).await;
    let settings = match layers.settings(&mut draft) {
        Some((settings, catalogue)) => {
            apply_settings(&mut draft, &layers, &settings, &catalogue);
            settings
        }
        None => OpenpawSettings::default(),
    };
    set_agent_id(&mut draft, &settings);
    cron::check_cron_jobs(&mut draft, &form.config("crons")).await;
    tools::note_custom_tools(&mut draft, &form.agent("tools")).await;
    stead::add_configured_dirs(&mut draft).await;
    stead::refuse_agent(&mut draft);
    draft
}

async fn detect_shape(cx: &LoadCx<'_>) -> FolderShape {
    for (file, form) in [
        ("agent/AGENT.md", FolderShape::Nested),
        ("AGENT.md", FolderShape::Flat),
    ] {
        if let Ok(path) = VPath::parse(file)
            && cx.files.stat(&path).await.is_ok()
        {
            return form;
        }
    }
    FolderShape::Nested
}

/// Notes which of the four identity files are missing or empty.
async fn check_identity_files(draft: &mut Draft<'_>, form: FolderShape) {
    for (name, severity, says) in [
        (
            "AGENT.md",
            Severity::Error,
            "what the agent can do and how it behaves",
        ),
        ("USER.md", Severity::NonFatal, "whom it serves"),
        ("SOUL.md", Severity::NonFatal, "its values and manner"),
        (
            "HEARTBEAT.md",
            Severity::NonFatal,
            "what it is about; the agent keeps it",
        ),
    ] {
        let file = form.agent(name);
        match draft.read_file(&file).await {
            None if draft.has_error(&file) => {}
            None => draft.note(Finding::new(
                severity,
                &file,
                format!("is missing: it says {says}"),
            )),
            Some(read) if read.text.trim().is_empty() && name != "HEARTBEAT.md" => {
                draft.note(Finding::new(
                    Severity::NonFatal,
                    &file,
                    format!("is empty: it says {says}"),
                ));
            }
            Some(_) => {}
        }
    }
}

/// Applies the settings.
fn apply_settings(
    draft: &mut Draft<'_>,
    layers: &ConfigLayers,
    settings: &OpenpawSettings,
    catalogue: &BTreeMap<String, model::ProviderEntry>,
) {
    layers.record_origins(draft, stead_key);
    for (key, message) in settings.problems() {
        draft.note(layers.finding(layers::problem_severity(&key), &key, message));
    }
    for (key, channel) in settings.all_channels() {
        for (key, message) in channel.warnings(&key) {
            draft.note(layers.finding(Severity::Warning, &key, message));
        }
    }
    match settings.model.settings(catalogue) {
        Ok(model) => {
            if let Some(provider) = model
                .as_ref()
                .and_then(|model| model.name.split(':').next())
                && !model::is_supported_provider(provider)
            {
                let message = format!("model: the provider {provider:?} is not supported");
                let finding = layers.finding(Severity::NonFatal, "model.provider", message);
                draft.note(finding.with_hint(Hint::ListProviders));
            }
            draft.config.model = model;
        }
        Err((key, message)) => draft.note(layers.finding(Severity::Error, key, message)),
    }
    if let Some(queue) = &settings.queue {
        draft.config.queue = queue.queue_settings();
    }
    let policy = &mut draft.config.policy;
    policy.max_steps = settings.model.max_turns.unwrap_or(policy.max_steps);
    policy.run_timeout_seconds = settings
        .model
        .timeout_seconds
        .unwrap_or(policy.run_timeout_seconds);
    let tool_seconds = settings
        .tool_timeouts
        .as_ref()
        .and_then(|timeouts| timeouts.default_seconds);
    policy.tool_timeout_seconds = tool_seconds.unwrap_or(policy.tool_timeout_seconds);
    draft.config.description = settings.description.clone();
    draft.config.timezone = settings.timezone.clone();
    if let Some(compact) = &settings.auto_compact {
        let compaction = &mut draft.config.compaction;
        compaction.enabled = compact.enabled.unwrap_or(compaction.enabled);
        compaction.trigger = compact
            .trigger
            .filter(|part| *part > 0.0)
            .unwrap_or(compaction.trigger);
        compaction.model = compact.summary_model.clone();
    }
    draft.config.search.embedding = settings
        .memory
        .as_ref()
        .and_then(OpenpawMemory::embedding_settings);
    if draft.config.search.embedding.is_none() {
        let off = "words alone are searched unless memory.enabled is true";
        layers.note_inactive_keys(draft, &[("memory.embedding", off), ("memory.enabled", off)]);
    }
    tools::apply_deny_lists(draft, layers, settings);
    tools::apply_approval_gates(draft, layers, settings);
    note_inactive_settings(draft, layers, settings, catalogue);
}

/// Returns the key of stead that corresponds to a key of OpenPaw.
fn stead_key(key: &str) -> Option<String> {
    let same = [
        "name",
        "description",
        "timezone",
        "model",
        "model.temperature",
        "model.api_key",
        "model.base_url",
    ];
    let known = match key {
        key if same.contains(&key) => key,
        key @ ("queue" | "queue.mode" | "queue.debounce_ms" | "queue.cap") => key,
        "queue.drop_policy" => "queue.drop",
        "model.model" | "model.provider" => "model.name",
        "model.max_tokens" => "model.max_output_tokens",
        "model.max_turns" => "policy.max_steps",
        "model.timeout_seconds" => "policy.run_timeout_seconds",
        "tool_timeouts.default_seconds" => "policy.tool_timeout_seconds",
        "auto_compact" => "compaction",
        "auto_compact.enabled" => "compaction.enabled",
        "auto_compact.trigger" => "compaction.trigger",
        "auto_compact.summary_model" => "compaction.model",
        "memory.embedding" => "search.embedding",
        key => {
            return Some(format!(
                "approvals.{}",
                key.strip_prefix("approval_gates.tools.")?
            ));
        }
    };
    Some(known.to_owned())
}

/// Notes the settings that take effect in a later version.
fn note_inactive_settings(
    draft: &mut Draft<'_>,
    layers: &ConfigLayers,
    settings: &OpenpawSettings,
    catalogue: &BTreeMap<String, model::ProviderEntry>,
) {
    layers.note_inactive_keys(
        draft,
        &[
            (
                "model.region",
                "regions come with the providers that have them",
            ),
            ("channel", "channels come in a later version"),
            ("channels", "channels come in a later version"),
            (
                "builtins.allow",
                "builtins that are not here yet come in a later version",
            ),
            ("workspace_tools", "custom tools run in a later version"),
            ("heartbeat", "check-ins come in a later version"),
            (
                "approval_gates.timeout_seconds",
                "a question waits until it is answered",
            ),
            (
                "approval_gates.default_action",
                "a question waits until it is answered",
            ),
            (
                "memory.vector_store",
                "vectors are kept in the search index",
            ),
            (
                "session_ttl_minutes",
                "sessions of groups come with channels",
            ),
            ("lifecycle", "notices come with channels"),
            (
                "tool_timeouts.overrides",
                "limits of single tools come in a later version",
            ),
            ("lanes", "many runs at once come in a later version"),
        ],
    );
    layers.note_inactive_global_keys(draft);
    for name in settings.model.more.keys() {
        let key = format!("model.{name}");
        layers.note_inactive_keys(
            draft,
            &[(&key, "settings of a model's client have no effect here")],
        );
    }
    let later = |name: &&String| !tools::is_supported(name);
    for name in settings
        .builtins
        .iter()
        .flat_map(|builtins| builtins.each.keys())
        .filter(later)
    {
        let key = format!("builtins.{name}");
        layers.note_inactive_keys(draft, &[(&key, "this builtin comes in a later version")]);
    }
    if let Some(entry) = settings.model.provider_entry(catalogue) {
        let region = entry.region.as_ref().map(|_| "region".to_owned());
        for name in entry.more.keys().cloned().chain(region) {
            let key = format!(
                "providers.{}.{name}",
                settings.model.provider.as_deref().unwrap_or_default()
            );
            layers.note_inactive_keys(
                draft,
                &[(&key, "settings of a provider's client have no effect here")],
            );
        }
    }
}

/// Sets the agent's id: from its name, the name of its folder, or `main`.
fn set_agent_id(draft: &mut Draft<'_>, settings: &OpenpawSettings) {
    let folder = draft.options().folder.as_deref();
    if let Some(folder) = folder
        && let Err(error) = check_workspace_name(folder)
    {
        draft.note(Finding::new(
            Severity::NonFatal,
            ".",
            format!("the folder {folder:?}: {error}"),
        ));
    }
    let id = settings
        .name
        .as_deref()
        .and_then(workspace_name::agent_id)
        .or_else(|| folder.and_then(workspace_name::agent_id));
    draft.config.name = Some(id.unwrap_or_else(AgentId::main));
}

fn paths(layout: Layout, form: FolderShape) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    let shown = |name: &str, tag: &str| ContextFile::new(path(&form.agent(name)), tag);
    let notes = ContextFile {
        rendering: ContextRendering::Notes,
        ..shown("HEARTBEAT.md", "heartbeat")
    };
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![
            shown("SOUL.md", "soul"),
            shown("AGENT.md", "agent"),
            shown("USER.md", "user"),
            notes,
        ],
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: vec![path(&form.agent("skills"))],
        flavor: stead_skills::SkillFlavor::OpenPaw,
        subagents: None,
        tools: None,
        runtime: path("data"),
        usage: Some(path("data/token_usage.jsonl")),
        conversations: Some(path("memory/conversations")),
        tasks: Some(path("data/TASKS.yaml")),
        default_dir: Some(path("workspace")),
        protected: layout.protected(),
    }
}
