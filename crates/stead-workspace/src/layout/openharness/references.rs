//! The references of agents of the openharness layout to models, tools, actions, skills, servers
//! and other agents. All must exist.
//!
//! Effects: workspace files (reads).

use super::agents::{NameList, OpenharnessAgent, OpenharnessModelChoice};
use super::common::suggestion;
use super::models::{OpenharnessModels, ResolvedModel};
use super::native_tools::{NativeToolState, NativeTools};
use crate::layout::{Draft, SettingsRoot, unresolved_severity};
use crate::{AgentMode, FrontMatter, Severity};
use std::collections::BTreeMap;
use stead_core::Hint;
use stead_model::ModelSettings;
use stead_vfs::FileKind;

/// The names that agents can refer to.
pub(super) struct ReferenceTable<'a> {
    pub(super) models: &'a OpenharnessModels,
    pub(super) natives: NativeTools,
    pub(super) actions: Vec<String>,
    pub(super) servers: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) modes: BTreeMap<String, AgentMode>,
}

/// The role of an agent in this workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentRank {
    Main,
    Other,
}

/// Returns the names of the workspace's skills, by folder and by front matter. Files are read only
/// if `wanted` has a name that is not a folder's.
pub(super) async fn skill_names(draft: &mut Draft<'_>, wanted: &[String]) -> Vec<String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for root in draft.paths.skills.clone() {
        for (name, kind) in draft.list_dir(root.as_str()).await {
            if kind == FileKind::Directory && !name.starts_with(['.', '_']) {
                found.push((format!("{root}/{name}/SKILL.md"), name));
            }
        }
    }
    let mut names: Vec<String> = found.iter().map(|(_, name)| name.clone()).collect();
    if wanted.iter().all(|name| names.contains(name)) {
        return names;
    }
    for (file, _) in found {
        let Some(read) = draft.read_file(&file).await else {
            continue;
        };
        // Problems of skills are reported when they are loaded.
        let document =
            FrontMatter::split(&file, &read.text).and_then(|split| split.parse_document(&file));
        let name = document
            .ok()
            .and_then(|document| Some(document.value().get("name")?.as_str()?.to_owned()));
        names.extend(name);
    }
    names
}

impl ReferenceTable<'_> {
    /// Checks all references of `agent` and completes its definition. Returns the model that it
    /// refers to.
    pub(super) fn resolve_agent(
        &self,
        draft: &mut Draft<'_>,
        agent: &mut OpenharnessAgent,
        role: AgentRank,
    ) -> Option<ResolvedModel> {
        self.check_tools(draft, agent, role);
        for (allowed, denied, known, noun) in [
            (
                &agent.allowed.actions,
                &agent.denied.actions,
                &self.actions,
                "action",
            ),
            (
                &agent.allowed.skills,
                &agent.denied.skills,
                &self.skills,
                "skill",
            ),
            (
                &agent.allowed.external,
                &agent.denied.external,
                &self.servers,
                "tool server",
            ),
        ] {
            check_names(draft, (agent, role), allowed, known, noun);
            check_names(draft, (agent, role), denied, known, noun);
            let canonical = |name: &str| name.to_owned();
            note_contradictions(draft, agent, allowed, denied, &canonical);
        }
        let OpenharnessAgent {
            allowed, denied, ..
        } = &*agent;
        for (list, what) in [
            (&allowed.actions, "actions run in a later version"),
            (
                &allowed.external,
                "tool servers are connected in a later version",
            ),
            (&denied.actions, "actions run in a later version"),
            (
                &denied.external,
                "tool servers are connected in a later version",
            ),
        ] {
            if !list.names.is_empty() {
                let message = format!("{}: {what}", list.key);
                draft.note(
                    agent
                        .document
                        .finding(Severity::Inactive, list.key, message),
                );
            }
        }
        self.check_agents(draft, agent, role);
        let resolved = self.resolve_model(draft, agent, role);
        let spec = &mut agent.spec;
        spec.tools = Some(agent.allowed.native.names.clone());
        spec.denied_tools = agent.denied.native.names.clone();
        spec.actions = Some(agent.allowed.actions.names.clone());
        spec.skills = Some(agent.allowed.skills.names.clone());
        spec.servers = Some(agent.allowed.external.names.clone());
        spec.model = model_settings(resolved.as_ref(), &agent.model);
        resolved
    }

    fn check_tools(&self, draft: &mut Draft<'_>, agent: &OpenharnessAgent, role: AgentRank) {
        for list in [&agent.allowed.native, &agent.denied.native] {
            for (i, name) in list.names.iter().enumerate() {
                let key = format!("{}[{i}]", list.key);
                match self.natives.find(name) {
                    Ok(native) if native.state == NativeToolState::Planned => {
                        let message = format!("{}: {name} comes in a later version", list.key);
                        draft.note(agent.document.finding(Severity::Inactive, &key, message));
                    }
                    Ok(_) => {}
                    Err(message) => {
                        let message = format!("{}: {message}", list.key);
                        draft.note(agent.document.finding(
                            dangling_severity(agent.side, role),
                            &key,
                            message,
                        ));
                    }
                }
            }
        }
        let canonical = |name: &str| {
            self.natives
                .find(name)
                .map_or(name.to_owned(), |native| native.canonical.clone())
        };
        note_contradictions(
            draft,
            agent,
            &agent.allowed.native,
            &agent.denied.native,
            &canonical,
        );
    }

    /// Checks the agents that `agent` may switch and delegate to.
    fn check_agents(&self, draft: &mut Draft<'_>, agent: &OpenharnessAgent, role: AgentRank) {
        let delegates = agent.spec.subagents.as_deref().unwrap_or_default();
        for (key, targets, fits, what) in [
            (
                "switch",
                &agent.spec.switch_targets[..],
                AgentMode::is_primary as fn(AgentMode) -> bool,
                "switched to",
            ),
            (
                "subagents",
                delegates,
                AgentMode::is_subagent,
                "delegated to",
            ),
        ] {
            for (i, target) in targets.iter().enumerate() {
                let at = format!("{key}[{i}]");
                let finding = match self.modes.get(target) {
                    None => {
                        let hint = suggestion(target, self.modes.keys().map(String::as_str));
                        let message = format!("{key}: there is no agent `{target}`{hint}");
                        agent
                            .document
                            .finding(dangling_severity(agent.side, role), &at, message)
                    }
                    Some(mode) if !fits(*mode) => {
                        let mode = mode_name(*mode);
                        let message = format!(
                            "{key}: `{target}` has `mode: {mode}`, so it should not be {what}"
                        );
                        agent.document.finding(Severity::Warning, &at, message)
                    }
                    Some(_) => continue,
                };
                draft.note(finding);
            }
        }
    }

    fn resolve_model(
        &self,
        draft: &mut Draft<'_>,
        agent: &OpenharnessAgent,
        role: AgentRank,
    ) -> Option<ResolvedModel> {
        let Some((written, key)) = &agent.model.reference else {
            if role == AgentRank::Main
                && draft.options().model.is_none()
                && draft.options().model_use == crate::ModelUse::Required
            {
                let message = "no model: the one of the environment is used; name one with `model: {model_ref: …}`";
                draft.note(agent.document.finding(Severity::Warning, "model", message));
            }
            return None;
        };
        match self.models.resolve(written) {
            Ok(resolved) => Some(resolved),
            Err(message) => {
                let severity = match (agent.side, role) {
                    (SettingsRoot::Platform, AgentRank::Other) => Severity::Warning,
                    (SettingsRoot::Workspace, AgentRank::Other) => Severity::NonFatal,
                    (SettingsRoot::Platform | SettingsRoot::Workspace, AgentRank::Main) => {
                        unresolved_severity(draft)
                    }
                };
                let finding = agent
                    .document
                    .finding(severity, key, format!("{key}: {message}"));
                draft.note(finding.with_hint(Hint::GiveModel));
                None
            }
        }
    }
}

/// Returns the settings of the model that an agent names.
fn model_settings(
    resolved: Option<&ResolvedModel>,
    choice: &OpenharnessModelChoice,
) -> Option<ModelSettings> {
    if resolved.is_none() && choice.temperature.is_none() && choice.max_tokens.is_none() {
        return None;
    }
    let settings = resolved
        .map(|resolved| resolved.settings.clone())
        .unwrap_or_default();
    Some(ModelSettings {
        temperature: choice.temperature.or(settings.temperature),
        max_output_tokens: choice.max_tokens.or(settings.max_output_tokens),
        ..settings
    })
}

/// Returns the severity of a reference to a missing item. An agent that is not the main one does not
/// stop a run, and the workspace cannot repair definitions of the platform.
fn dangling_severity(side: SettingsRoot, role: AgentRank) -> Severity {
    match (side, role) {
        (SettingsRoot::Workspace, AgentRank::Main) => Severity::Error,
        (SettingsRoot::Workspace, AgentRank::Other) => Severity::NonFatal,
        (SettingsRoot::Platform, AgentRank::Main | AgentRank::Other) => Severity::Warning,
    }
}

fn check_names(
    draft: &mut Draft<'_>,
    (agent, role): (&OpenharnessAgent, AgentRank),
    list: &NameList,
    known: &[String],
    noun: &str,
) {
    for (i, name) in list
        .names
        .iter()
        .enumerate()
        .filter(|(_, name)| !known.contains(name))
    {
        let hint = suggestion(name, known.iter().map(String::as_str));
        let message = format!("{}: there is no {noun} `{name}`{hint}", list.key);
        draft.note(agent.document.finding(
            dangling_severity(agent.side, role),
            &format!("{}[{i}]", list.key),
            message,
        ));
    }
}

/// Notes every name that is both allowed and denied.
fn note_contradictions(
    draft: &mut Draft<'_>,
    agent: &OpenharnessAgent,
    allowed: &NameList,
    denied: &NameList,
    canonical: &dyn Fn(&str) -> String,
) {
    let allows = |name: &str| {
        allowed
            .names
            .iter()
            .any(|other| canonical(other) == canonical(name))
    };
    for (i, name) in denied
        .names
        .iter()
        .enumerate()
        .filter(|(_, name)| allows(name))
    {
        let message = format!(
            "{}: {name} is listed in {} too; keep one",
            denied.key, allowed.key
        );
        draft.note(
            agent
                .document
                .error(&format!("{}[{i}]", denied.key), message),
        );
    }
}

fn mode_name(mode: AgentMode) -> &'static str {
    match mode {
        AgentMode::Primary => "primary",
        AgentMode::Subagent => "subagent",
        AgentMode::All => "all",
    }
}
