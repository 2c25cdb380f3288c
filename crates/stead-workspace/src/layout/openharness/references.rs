//! What agents refer to: models, tools, actions, skills, servers and each other. All of it must be
//! there.

use super::agents::{Agent, Choice, List};
use super::models::{Models, Resolved, unresolved};
use super::native::{Natives, State};
use super::words::instead;
use crate::layout::{Draft, Side};
use crate::{AgentMode, FrontMatter, Severity};
use std::collections::BTreeMap;
use stead_model::ModelSettings;
use stead_vfs::FileKind;

/// What there is to refer to.
pub(super) struct Known<'a> {
    pub(super) models: &'a Models,
    pub(super) natives: Natives,
    pub(super) actions: Vec<String>,
    pub(super) servers: Vec<String>,
    pub(super) skills: Vec<String>,
    pub(super) modes: BTreeMap<String, AgentMode>,
}

/// What an agent is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Main,
    Other,
}

/// The names of the skills of the workspace, by folder and by front matter. Files are read only if
/// `wanted` has a name that is no folder's.
pub(super) async fn skills(draft: &mut Draft<'_>, wanted: &[String]) -> Vec<String> {
    let mut found: Vec<(String, String)> = Vec::new();
    for root in draft.tree.skills.clone() {
        for (name, kind) in draft.names(root.as_str()).await {
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
        let Some(read) = draft.read(&file).await else {
            continue;
        };
        // What is wrong with a skill is told by those who load it.
        let document =
            FrontMatter::split(&file, &read.text).and_then(|split| split.document(&file));
        let name = document
            .ok()
            .and_then(|document| Some(document.value().get("name")?.as_str()?.to_owned()));
        names.extend(name);
    }
    names
}

impl Known<'_> {
    /// Checks everything that `agent` refers to, and fills its definition in. Gives the model it
    /// refers to.
    pub(super) fn settle(
        &self,
        draft: &mut Draft<'_>,
        agent: &mut Agent,
        role: Role,
    ) -> Option<Resolved> {
        self.tools(draft, agent);
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
            named(draft, agent, allowed, known, noun);
            named(draft, agent, denied, known, noun);
            let canonical = |name: &str| name.to_owned();
            contradictions(draft, agent, allowed, denied, &canonical);
        }
        let Agent {
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
        self.others(draft, agent);
        let resolved = self.model(draft, agent, role);
        let spec = &mut agent.spec;
        spec.tools = Some(agent.allowed.native.names.clone());
        spec.denied_tools = agent.denied.native.names.clone();
        spec.actions = Some(agent.allowed.actions.names.clone());
        spec.skills = Some(agent.allowed.skills.names.clone());
        spec.servers = Some(agent.allowed.external.names.clone());
        spec.model = settings(resolved.as_ref(), &agent.model);
        resolved
    }

    fn tools(&self, draft: &mut Draft<'_>, agent: &Agent) {
        for list in [&agent.allowed.native, &agent.denied.native] {
            for (i, name) in list.names.iter().enumerate() {
                let key = format!("{}[{i}]", list.key);
                match self.natives.find(name) {
                    Ok(native) if native.state == State::Later => {
                        let message = format!("{}: {name} comes in a later version", list.key);
                        draft.note(agent.document.finding(Severity::Inactive, &key, message));
                    }
                    Ok(_) => {}
                    Err(message) => {
                        let message = format!("{}: {message}", list.key);
                        draft.note(agent.document.finding(severity(agent.side), &key, message));
                    }
                }
            }
        }
        let canonical = |name: &str| {
            self.natives
                .find(name)
                .map_or(name.to_owned(), |native| native.canonical.clone())
        };
        contradictions(
            draft,
            agent,
            &agent.allowed.native,
            &agent.denied.native,
            &canonical,
        );
    }

    /// The agents it may switch and delegate to.
    fn others(&self, draft: &mut Draft<'_>, agent: &Agent) {
        let delegates = agent.spec.subagents.as_deref().unwrap_or_default();
        for (key, targets, fits, what) in [
            (
                "switch",
                &agent.spec.switch[..],
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
                        let hint = instead(target, self.modes.keys().map(String::as_str));
                        let message = format!("{key}: there is no agent `{target}`{hint}");
                        agent.document.finding(severity(agent.side), &at, message)
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

    fn model(&self, draft: &mut Draft<'_>, agent: &Agent, role: Role) -> Option<Resolved> {
        let Some((written, key)) = &agent.model.written else {
            if role == Role::Main
                && draft.options().model.is_none()
                && draft.options().asks == crate::Asks::Model
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
                    (Side::Platform, Role::Other) => Severity::Warning,
                    (Side::Platform, Role::Main) | (Side::Folder, Role::Main | Role::Other) => {
                        unresolved(draft)
                    }
                };
                draft.note(
                    agent
                        .document
                        .finding(severity, key, format!("{key}: {message}")),
                );
                None
            }
        }
    }
}

/// The settings of the model an agent asks for.
fn settings(resolved: Option<&Resolved>, choice: &Choice) -> Option<ModelSettings> {
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

/// How bad a name is that leads nowhere. What the platform defines is not for the workspace to
/// repair.
fn severity(side: Side) -> Severity {
    match side {
        Side::Folder => Severity::Error,
        Side::Platform => Severity::Warning,
    }
}

fn named(draft: &mut Draft<'_>, agent: &Agent, list: &List, known: &[String], noun: &str) {
    for (i, name) in list
        .names
        .iter()
        .enumerate()
        .filter(|(_, name)| !known.contains(name))
    {
        let hint = instead(name, known.iter().map(String::as_str));
        let message = format!("{}: there is no {noun} `{name}`{hint}", list.key);
        draft.note(agent.document.finding(
            severity(agent.side),
            &format!("{}[{i}]", list.key),
            message,
        ));
    }
}

/// Notes every name that is both allowed and denied.
fn contradictions(
    draft: &mut Draft<'_>,
    agent: &Agent,
    allowed: &List,
    denied: &List,
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
