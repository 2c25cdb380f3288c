//! The stead layout: its entry of the table of layouts, and how its settings are read. It reads the
//! files of the workspace and changes nothing.
//!
//! Effects: the environment, workspace files (reads).

use super::project_files::{SERVERS_FILE, load_project_files};
use super::{
    BuiltInSurface, Draft, Layout, LayoutDef, LayoutMark, LoadCx, MarkRank, MarkStrength,
    Strictness, UnknownTools, subagents,
};
use crate::{
    AgentConfig, ContextFile, FeatureSwitch, Finding, Nested, OpenOption, ScaffoldChoices,
    ScaffoldFile, Severity, WorkspacePaths,
};
use stead_model::{ModelSettings, check_name};
use stead_skills::SkillFlavor;
use stead_vfs::{Protected, VPath};

/// The entry of the table of layouts.
pub(super) static DEF: LayoutDef = LayoutDef {
    marks: &[LayoutMark::new(
        "agent.yaml",
        MarkRank::Settings,
        MarkStrength::Strong,
    )],
    reserved: &["tools.json", ".stead", SERVERS_FILE],
    protected: PROTECTED,
    profiles_dir: PROFILES_DIR,
    scaffold: &SCAFFOLD,
    configure_scaffold: Some(configure_scaffold),
    unknown_tools: UnknownTools::Refused,
    strictness: Strictness::Strict,
    built_in_surface: BuiltInSurface::Applies,
    memory_flush: true,
    ..LayoutDef::new("stead", |layout, cx| {
        Box::pin(load(layout, cx, Extras::Loaded))
    })
};

/// The folder of profiles.
pub(super) const PROFILES_DIR: &str = "profiles";

/// Hooks, schedules, profiles, journals and installed skills cannot be written; facts that wait for
/// review cannot be read.
pub(super) const PROTECTED: Protected = Protected::workspace("")
    .with_unwritable(&["hooks", "crons", "profiles", "agents"])
    .with_quarantine("memory/quarantine");

/// The files of a new workspace.
pub(super) const SCAFFOLD: [ScaffoldFile; 3] = [
    ScaffoldFile {
        path: "AGENTS.md",
        content: include_str!("../scaffold/AGENTS.md"),
    },
    ScaffoldFile {
        path: "agent.yaml",
        content: include_str!("../scaffold/agent.yaml"),
    },
    ScaffoldFile {
        path: ".gitignore",
        content: include_str!("../scaffold/gitignore"),
    },
];

/// Puts a model into `agent.yaml`.
pub(super) fn configure_scaffold(
    choices: &ScaffoldChoices,
    file: ScaffoldFile,
) -> Result<String, String> {
    if choices.channel.is_some() {
        return Err("channels come in a later version".to_owned());
    }
    match &choices.model {
        Some(model) if file.path.ends_with("agent.yaml") => {
            check_name(model).map_err(|error| error.to_string())?;
            Ok(format!("model: {model:?}\n\n{}", file.content))
        }
        Some(_) | None => Ok(file.content.to_owned()),
    }
}

/// Whether hooks, and the files that people keep in a project for coding agents, are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extras {
    Loaded,
    Ignored,
}

/// Loads the settings, the subagents and the extras; everything else is read when it is needed.
pub(super) async fn load<'a>(layout: Layout, cx: &'a LoadCx<'a>, extras: Extras) -> Draft<'a> {
    let parts = StandardParts {
        settings: "agent.yaml",
        subagents: "subagents",
        hooks: "hooks",
        extras,
    };
    load_standard(Draft::new(layout, paths(layout), cx), parts).await
}

/// Where the parts of a workspace lie that are read when it is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct StandardParts {
    pub(super) settings: &'static str,
    pub(super) subagents: &'static str,
    pub(super) hooks: &'static str,
    pub(super) extras: Extras,
}

/// Loads the settings, the subagents and the extras from `parts`.
pub(super) async fn load_standard<'a>(mut draft: Draft<'a>, parts: StandardParts) -> Draft<'a> {
    draft.load_dotenv(".env").await;
    load_settings(&mut draft, parts.settings).await;
    add_configured_dirs(&mut draft).await;
    refuse_agent(&mut draft);
    if !draft.config.disable.contains(FeatureSwitch::Subagents) {
        for spec in subagents::load_subagents(&mut draft, parts.subagents).await {
            draft.agents.insert(spec.name.clone(), spec);
        }
    }
    match parts.extras {
        Extras::Loaded => {
            load_project_files(&mut draft).await;
            load_hooks(&mut draft, parts.hooks).await;
        }
        Extras::Ignored => {}
    }
    draft
}

/// Loads the hooks in a folder.
async fn load_hooks(draft: &mut Draft<'_>, folder: &str) {
    let agents: Vec<String> = draft.agents.keys().cloned().collect();
    let model = |name: &str| match check_name(name) {
        Ok(_) => Ok(ModelSettings {
            name: name.to_owned(),
            ..ModelSettings::default()
        }),
        Err(error) => Err((Severity::Error, error.to_string())),
    };
    let known = crate::hooks::HookReferences {
        model: &model,
        agents: agents.iter().map(String::as_str).collect(),
    };
    crate::hooks::load_hooks(draft, folder, &known).await;
}

/// Loads the settings of stead's own `agent.yaml`, if there is one.
pub(super) async fn load_settings(draft: &mut Draft<'_>, file: &str) {
    let Some(document) = draft.load_yaml(file).await else {
        return;
    };
    draft.record_origins(&document, |key| Some(key.to_owned()));
    let Some(mut config) = draft.ok_or_note(AgentConfig::from_document(&document)) else {
        return;
    };
    config.secrets = std::mem::take(&mut draft.config.secrets);
    draft.surface = config.surface.unwrap_or(draft.surface);
    for (key, files) in [
        ("context_files", &config.context_files),
        ("skills.dirs", &config.skills.dirs),
    ] {
        for (i, file) in files.iter().enumerate() {
            if let Err(error) = VPath::parse(file) {
                draft.note(
                    document.error(&format!("{key}[{i}]"), format!("{key}: {file:?}: {error}")),
                );
            }
        }
    }
    draft.config = config;
    for (key, files) in [
        ("context_files", draft.config.context_files.clone()),
        ("skills.dirs", draft.config.skills.dirs.clone()),
    ] {
        for (i, file) in files.iter().enumerate() {
            if !draft.exists(file).await {
                let text = format!("{key}: there is no {file}");
                draft.note(document.finding(Severity::NonFatal, &format!("{key}[{i}]"), text));
            }
        }
    }
}

/// Adds the context files and folders of skills that the settings and the options name.
pub(super) async fn add_configured_dirs(draft: &mut Draft<'_>) {
    let options = draft.options();
    for (option, files) in [
        (OpenOption::ContextFiles, &options.memory),
        (OpenOption::Skills, &options.skills),
    ] {
        for file in files {
            if VPath::parse(file).is_ok() && !draft.exists(file).await {
                draft.note(Finding::error(
                    option,
                    format!("there is no {file} in the workspace"),
                ));
            }
        }
    }
    let config = draft.config.clone();
    for (file, flag) in configured_names(&config.context_files, &options.memory) {
        match VPath::parse(file) {
            Ok(path) if draft.paths.context.iter().any(|known| known.path == path) => {}
            Ok(path) => draft
                .paths
                .context
                .push(ContextFile::with_tag_from_path(path)),
            Err(error) if flag => draft.note(Finding::error(
                OpenOption::ContextFiles,
                format!("{file:?}: {error}"),
            )),
            Err(_) => {}
        }
    }
    for (folder, flag) in configured_names(&config.skills.dirs, &options.skills) {
        match VPath::parse(folder) {
            Ok(path) => draft.paths.skills.push(path),
            Err(error) if flag => draft.note(Finding::error(
                OpenOption::Skills,
                format!("{folder:?}: {error}"),
            )),
            Err(_) => {}
        }
    }
}

/// Reports the option that chooses the main agent, which has no meaning where there is one agent.
pub(super) fn refuse_agent(draft: &mut Draft<'_>) {
    if let Some(name) = &draft.options().agent {
        let layout = draft.layout();
        let message = format!(
            "{name:?}: this workspace ({layout}) is one agent; its subagents are not run by themselves"
        );
        draft.note(Finding::error(OpenOption::Agent, message));
    }
}

fn configured_names<'a>(
    settings: &'a [String],
    flags: &'a [String],
) -> impl Iterator<Item = (&'a String, bool)> {
    settings
        .iter()
        .map(|path| (path, false))
        .chain(flags.iter().map(|path| (path, true)))
}

fn paths(layout: Layout) -> WorkspacePaths {
    let path = |text: &str| VPath::parse(text).unwrap_or(VPath::root());
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![ContextFile {
            nested: Nested::Yes,
            ..ContextFile::new(path("AGENTS.md"), "agents_context")
        }],
        memory: Some(path("MEMORY.md")),
        daily_facts: Some(path("memory")),
        knowledge: Some(path("knowledge")),
        skills: vec![path("skills")],
        flavor: SkillFlavor::Standard,
        subagents: Some(path("subagents")),
        tools: Some(path("tools.json")),
        runtime: VPath::root(),
        usage: None,
        conversations: None,
        tasks: Some(path("tasks/TASKS.yaml")),
        default_dir: None,
        protected: layout.protected(),
    }
}
