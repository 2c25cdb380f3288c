//! The parts of a folder's settings that act by themselves.
//!
//! Effects: none.

use super::{named_in_line, named_in_words, names_of_hook};
use crate::{Definition, Handler, HookSpec, Program, ToolsConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use stead_core::PermissionMode;
use stead_model::{EmbeddingSettings, ModelSettings, Provider, endpoint_origin, providers};
use stead_place::FilesystemMode;
use stead_shell::ReadPolicy;
use stead_vfs::VPath;

/// The variables of the process that say nothing about a person's secrets.
const HARMLESS_VARIABLES: [&str; 7] = ["HOME", "USER", "LANG", "TZ", "PWD", "TMPDIR", "SHELL"];

/// The name under which the origin of the folder's own variables is kept.
pub(crate) const DOTENV_KEY: &str = "variables";
/// The start of the names of models whose answers are recorded.
const RECORDING: &str = "record:";

/// A part of a folder that acts without being asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActingPart {
    /// What kind of part it is.
    pub kind: ActingKind,
    /// The file that it is written in, as messages name it.
    pub source: String,
    /// What it would do, for a person to read.
    pub summary: String,
    /// The files that decide what it does: the settings file, and scripts that it runs.
    pub files: BTreeSet<VPath>,
    /// The words of its command, which may name files of the folder.
    pub names: Vec<String>,
}

/// The kinds of parts that act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActingKind {
    /// A hook: a command, a request, or a question to a model at an event.
    Hook,
    /// A tool server.
    Server,
    /// A program of the folder that the model can call as a tool.
    Tool,
    /// An endpoint that conversations are sent to.
    Endpoint,
    /// A permission mode that asks less than the default one.
    PermissionMode,
    /// Commands that run without asking.
    Command,
    /// Variables that commands are given.
    CommandVariable,
    /// A variable of the process that a setting contains.
    Variable,
    /// Sources whose content counts as trusted.
    TrustedSource,
    /// A store that files or sessions are kept in.
    Store,
    /// A folder outside the workspace that is attached to it.
    Project,
    /// A file that answers of models are recorded in.
    Recording,
}

/// Returns the parts of a folder that act, in the order in which a person is shown them.
pub fn acting_parts(definition: &Definition) -> Vec<ActingPart> {
    let mut parts: Vec<ActingPart> = definition.hooks.iter().map(hook_part).collect();
    parts.extend(definition.declared_parts.iter().cloned());
    let mut add = |kind: ActingKind, key: &str, summary: String| {
        parts.push(settings_part(definition, kind, key, summary));
    };
    let config = &definition.config;
    match config.permission_mode {
        PermissionMode::AcceptEdits | PermissionMode::Bypass => {
            let mode = config.permission_mode.as_str();
            let summary = format!("asks less than usual: permission_mode: {mode}");
            add(ActingKind::PermissionMode, "permission_mode", summary);
        }
        PermissionMode::Default | PermissionMode::Explore | PermissionMode::DontAsk => {}
    }
    if !config.commands.allow.is_empty() {
        let allowed: Vec<&str> = config
            .commands
            .allow
            .iter()
            .map(|rule| rule.text())
            .collect();
        let summary = format!("runs commands without asking: `{}`", allowed.join("`, `"));
        let part = settings_part(definition, ActingKind::Command, "commands", summary);
        parts.push(ActingPart {
            names: allowed.into_iter().flat_map(named_in_line).collect(),
            ..part
        });
    }
    let mut add = |kind: ActingKind, key: &str, summary: String| {
        parts.push(settings_part(definition, kind, key, summary));
    };
    if config.commands.reads == ReadPolicy::Allow {
        let summary = "runs commands that only read without asking".to_owned();
        add(ActingKind::Command, "commands", summary);
    }
    let given = config.execute.env.keys().chain(&config.execute.pass);
    let given: Vec<&str> = given.map(String::as_str).collect();
    if !given.is_empty() {
        let summary = format!("gives commands the variables {}", given.join(", "));
        let mut part = settings_part(definition, ActingKind::CommandVariable, "execute", summary);
        // The values of passed variables may come from the folder.
        part.files.extend(dotenv_file(definition));
        parts.push(part);
    }
    let mut add = |kind: ActingKind, key: &str, summary: String| {
        parts.push(settings_part(definition, kind, key, summary));
    };
    let trust = &config.trust;
    let trusted = trust.hosts.iter().chain(&trust.servers).chain(&trust.files);
    let trusted: Vec<&str> = trusted.map(String::as_str).collect();
    if !trusted.is_empty() {
        let summary = format!("trusts content from {}", trusted.join(", "));
        add(ActingKind::TrustedSource, "trust", summary);
    }
    if config.filesystem.mode == FilesystemMode::Store {
        let summary = "keeps its files and sessions in a store".to_owned();
        add(ActingKind::Store, "filesystem", summary);
    }
    if config.sessions.url.is_some() {
        let summary = "keeps its sessions in a store".to_owned();
        add(ActingKind::Store, "sessions", summary);
    }
    if let Some(project) = &config.filesystem.project {
        let project = project.settings();
        let access = match project.writable {
            true => "reads and writes",
            false => "reads",
        };
        let summary = format!("{access} the folder {}", project.path.display());
        add(ActingKind::Project, "filesystem", summary);
    }
    parts.extend(model_parts(definition));
    parts.extend(variable_parts(definition));
    parts
}

/// Returns the parts that say where conversations go.
fn model_parts(definition: &Definition) -> Vec<ActingPart> {
    let config = &definition.config;
    let mut parts = Vec::new();
    let mut add = |settings: &ModelSettings, source: &str| {
        let is_of_platform = |url: &str| {
            let mut named = definition.platform_endpoints.iter();
            named.any(|(_, endpoint)| endpoint == url)
        };
        if let Some(url) = set(settings.base_url.as_ref()).filter(|url| !is_of_platform(url)) {
            let host = shown_host(url);
            let summary = format!("sends conversations with {} to {host}", settings.name);
            parts.push(part(ActingKind::Endpoint, source, summary));
        }
        let names = std::iter::once(&settings.name).chain(&settings.fallbacks);
        for name in names.filter(|name| name.starts_with(RECORDING)) {
            parts.push(recording_part(source, name));
        }
    };
    let of_settings = definition.setting_source("model");
    if let Some(settings) = &config.model {
        add(settings, &of_settings);
    }
    for spec in definition.agents.values() {
        if let Some(settings) = &spec.model {
            add(settings, &spec.source);
        }
    }
    for hook in &definition.hooks {
        if let Handler::Prompt {
            model: Some(settings),
            ..
        } = &hook.handler
        {
            add(settings, &hook.source);
        }
    }
    let embedding = config.search.embedding.as_ref();
    if let Some(EmbeddingSettings { name, base_url, .. }) = embedding
        && let Some(url) = set(base_url.as_ref())
    {
        let summary = format!("sends texts to embed with {name} to {}", shown_host(url));
        let source = definition.setting_source("search");
        parts.push(part(ActingKind::Endpoint, &source, summary));
    }
    parts.extend(dotenv_parts(definition));
    for (key, name) in [
        ("memory", &config.memory.model),
        ("compaction", &config.compaction.model),
    ] {
        if let Some(name) = name.as_ref().filter(|name| name.starts_with(RECORDING)) {
            parts.push(recording_part(&definition.setting_source(key), name));
        }
    }
    parts
}

/// Returns the endpoints and keys of providers that the folder's own variables set.
fn dotenv_parts(definition: &Definition) -> Vec<ActingPart> {
    let own = &definition.config.variables;
    let file = definition.setting_source(DOTENV_KEY);
    let names_using = |is_used: &dyn Fn(&Provider) -> bool| {
        let users = providers().iter().filter(|provider| is_used(provider));
        let names: Vec<&str> = users.map(|provider| provider.name).collect();
        names.join(", ")
    };
    let mut parts = Vec::new();
    for (variable, value) in own.iter().filter(|(_, value)| !value.trim().is_empty()) {
        let by_endpoint = names_using(&|provider| provider.base_url_variable == variable);
        if !by_endpoint.is_empty() {
            let summary = format!(
                "sends conversations with {by_endpoint} to {}",
                shown_host(value)
            );
            parts.push(part(ActingKind::Endpoint, &file, summary));
        }
        let by_key = names_using(&|provider| provider.key_variables.contains(&&**variable));
        if !by_key.is_empty() {
            let summary = format!("has its own {variable}, for {by_key}");
            parts.push(part(ActingKind::Endpoint, &file, summary));
        }
    }
    parts
}

/// Returns the variables of the process that settings contain. A provider's own key as an
/// `api_key` is none of them: where it is sent is decided when the model is connected to.
fn variable_parts(definition: &Definition) -> impl Iterator<Item = ActingPart> {
    let is_provider_key = |name: &str| {
        let mut variables = providers().iter().flat_map(|p| p.key_variables);
        variables.any(|variable| *variable == name)
    };
    let uses = definition.variable_uses.iter();
    let acting = uses.filter(move |used| {
        let field = used.key.rsplit('.').next();
        let is_api_key = matches!(field, Some("api_key" | "key"));
        let is_own_key = is_api_key && is_provider_key(&used.name);
        !HARMLESS_VARIABLES.contains(&used.name.as_str()) && !is_own_key
    });
    acting.map(|used| {
        let summary = format!(
            "takes the variable {} from your environment, for {}",
            used.name, used.key
        );
        part(ActingKind::Variable, &used.file, summary)
    })
}

fn hook_part(hook: &HookSpec) -> ActingPart {
    let action = match &hook.handler {
        Handler::Command { program, .. } => match program {
            Program::Shell(line) => format!("runs `{line}`"),
            Program::Direct { program, args } => {
                let words = std::iter::once(program).chain(args);
                let words: Vec<&str> = words.map(String::as_str).collect();
                format!("runs `{}`", words.join(" "))
            }
        },
        Handler::Http { url, method, .. } => {
            format!("sends what happens to {url} ({})", method.as_str())
        }
        Handler::Prompt { .. } => "asks a model".to_owned(),
        Handler::Agent { agent, .. } => format!("runs the agent {agent}"),
    };
    let action = match &hook.handler {
        Handler::Command { program, env, .. } => {
            let unknown = names_of_hook(program, env).unknown;
            let unknown: Vec<String> = unknown.into_iter().collect();
            match unknown.is_empty() {
                true => action,
                false => format!(
                    "{action} (which files {} means is not known, so a change of them does not ask again)",
                    unknown.join(" ")
                ),
            }
        }
        Handler::Http { .. } | Handler::Prompt { .. } | Handler::Agent { .. } => action,
    };
    let events: Vec<&str> = hook.events.iter().map(|on| on.event.as_str()).collect();
    let mut part = part(
        ActingKind::Hook,
        &hook.source,
        format!("{action} at {}", events.join(", ")),
    );
    part.files.extend(hook.files.iter().cloned());
    part
}

/// Returns the parts of the tool servers in `tools.json`, whose variables were not replaced.
pub(crate) fn server_parts(file: &str, config: &ToolsConfig) -> Vec<ActingPart> {
    let servers = config.servers.iter();
    let parts = servers.map(|(name, server)| {
        let command = server.command.iter().chain(&server.args);
        let command: Vec<&str> = command.map(String::as_str).collect();
        let action = match (&server.url, command.is_empty()) {
            (Some(url), _) => format!("connects to {url}"),
            (None, false) => format!("starts `{}`", command.join(" ")),
            (None, true) => "is connected".to_owned(),
        };
        let summary = format!("{action} as the tool server {name}");
        ActingPart {
            names: named_in_words(command.into_iter().map(str::to_owned).collect()),
            ..part(ActingKind::Server, file, summary)
        }
    });
    parts.collect()
}

fn recording_part(source: &str, name: &str) -> ActingPart {
    let summary = format!("records the answers of models: {name}");
    part(ActingKind::Recording, source, summary)
}

/// Returns the file of the folder's own variables.
fn dotenv_file(definition: &Definition) -> Option<VPath> {
    let origin = definition.origins.get(DOTENV_KEY)?;
    VPath::parse(&origin.source).ok()
}

/// Returns the machine that a URL leads to, as far as it can be read. The rest of a URL may contain
/// secrets.
fn shown_host(url: &str) -> String {
    endpoint_origin(url).unwrap_or_else(|| "an address that cannot be read".to_owned())
}

fn settings_part(
    definition: &Definition,
    kind: ActingKind,
    key: &str,
    summary: String,
) -> ActingPart {
    part(kind, &definition.setting_source(key), summary)
}

/// Returns a part that is defined by the file `source` alone.
pub(crate) fn part(kind: ActingKind, source: &str, summary: String) -> ActingPart {
    ActingPart {
        kind,
        source: source.to_owned(),
        summary,
        files: VPath::parse(source).into_iter().collect(),
        names: Vec::new(),
    }
}

/// Returns a text that is set and not blank.
fn set(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}
