//! Files that people keep in a project for coding agents: `CLAUDE.md`, `.claude/` and `.mcp.json`.
//!
//! Effects: workspace files (reads).

use super::subagents::{ParsedSubagent, definition_id, parse};
use super::{Draft, Strictness};
use crate::{
    AgentSpec, ContextFile, ContextRendering, FeatureSwitch, Finding, Nested, SettingsDocument,
    Severity,
};
use serde_json::Value;
use stead_vfs::{FileKind, VPath};

/// The file of project rules, beside or instead of `AGENTS.md`.
pub(super) const CLAUDE_FILE: &str = "CLAUDE.md";
/// The file of tool servers of a project. It may say what is run.
pub(super) const SERVERS_FILE: &str = ".mcp.json";
const SKILLS_DIR: &str = ".claude/skills";
const AGENTS_DIR: &str = ".claude/agents";
const COMMANDS_DIR: &str = ".claude/commands";
/// Names of models that say nothing about the provider. The agent has the model of the one that
/// delegates to it.
const MODEL_ALIASES: [&str; 4] = ["inherit", "sonnet", "opus", "haiku"];

/// Adds what the project has of these files. What the workspace itself has goes before it.
pub(super) async fn load_project_files(draft: &mut Draft<'_>) {
    load_rules(draft).await;
    load_skills(draft).await;
    if !draft.config.disable.contains(FeatureSwitch::Subagents) {
        load_agents(draft).await;
    }
    note_commands(draft).await;
    note_servers(draft).await;
}

/// Adds `CLAUDE.md`, also where there is none yet: whoever writes it writes a part of the prompt. It
/// is not shown if it is the same text as `AGENTS.md`: often it is a link to it, or only imports it.
async fn load_rules(draft: &mut Draft<'_>) {
    let before = draft.finding_count();
    // Only to tell why it is not shown.
    let _ = draft.read_file(CLAUDE_FILE).await;
    draft.soften_findings(before);
    if let Ok(path) = VPath::parse(CLAUDE_FILE) {
        let file = ContextFile {
            nested: Nested::Yes,
            rendering: ContextRendering::UnlessRepeated,
            ..ContextFile::with_tag_from_path(path)
        };
        draft.paths.context.push(file);
    }
}

/// Adds the folder of skills, and notes what of it leads out of the workspace.
async fn load_skills(draft: &mut Draft<'_>) {
    let before = draft.finding_count();
    for (name, kind) in draft.list_dir(SKILLS_DIR).await {
        if kind == FileKind::Other {
            let path = format!("{SKILLS_DIR}/{name}");
            let text = "is passed over: it leads out of the workspace, or is no ordinary file";
            draft.note(Finding::new(Severity::NonFatal, path, text));
        }
    }
    draft.soften_findings(before);
    if let (true, Ok(skills)) = (draft.exists(SKILLS_DIR).await, VPath::parse(SKILLS_DIR)) {
        draft.paths.skills.insert(0, skills);
    }
}

/// Adds the subagents. One of the workspace's own goes before one of the same name.
async fn load_agents(draft: &mut Draft<'_>) {
    let before = draft.finding_count();
    for (name, kind) in draft.list_dir(AGENTS_DIR).await {
        let Some(id) = definition_id(&name).filter(|_| kind != FileKind::Directory) else {
            continue;
        };
        let Some(read) = draft.read_file(&format!("{AGENTS_DIR}/{name}")).await else {
            continue;
        };
        match parse(id, &read, Strictness::Lenient) {
            Ok(ParsedSubagent::Spec(spec, findings)) => {
                // These definitions have keys of their own, such as `name` and `color`.
                let told = |finding: &Finding| finding.severity == Severity::Inactive;
                findings
                    .into_iter()
                    .filter(told)
                    .for_each(|finding| draft.note(finding));
                let spec = without_model_alias(*spec);
                draft.agents.entry(spec.name.clone()).or_insert(spec);
            }
            Ok(ParsedSubagent::Skipped(finding)) | Err(finding) => draft.note(finding),
        }
    }
    draft.soften_findings(before);
}

/// Whether a definition is one of the project's, by its file.
pub(crate) fn is_project_agent(source: &str) -> bool {
    let rest = source.strip_prefix(AGENTS_DIR);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

fn without_model_alias(mut spec: AgentSpec) -> AgentSpec {
    let is_alias = |name: &str| MODEL_ALIASES.contains(&name);
    spec.model = spec.model.filter(|model| !is_alias(&model.name));
    spec
}

async fn note_commands(draft: &mut Draft<'_>) {
    let commands = draft.list_dir(COMMANDS_DIR).await;
    if !commands.is_empty() {
        let text = "commands of a project are used in a later version";
        draft.note(Finding::new(Severity::Inactive, COMMANDS_DIR, text));
    }
}

/// Notes the tool servers. As they are not connected, a mistake in the file stops no run.
async fn note_servers(draft: &mut Draft<'_>) {
    let before = draft.finding_count();
    let read = draft.read_file(SERVERS_FILE).await;
    draft.soften_findings(before);
    let Some(read) = read else { return };
    let document = match SettingsDocument::parse_json(&read.file, &read.text) {
        Ok(document) => document,
        Err(finding) => {
            return draft.note(Finding {
                severity: Severity::NonFatal,
                ..finding
            });
        }
    };
    let servers = document
        .value()
        .get("mcpServers")
        .and_then(Value::as_object);
    for (name, server) in servers.into_iter().flatten() {
        draft.declare_server(SERVERS_FILE, name, server);
        let key = format!("mcpServers.{name}");
        let text = format!("{key}: tool servers are connected in a later version");
        draft.note(document.finding(Severity::Inactive, &key, text));
    }
}
