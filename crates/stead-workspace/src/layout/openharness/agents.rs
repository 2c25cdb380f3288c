//! The agents of the openharness layout: `agents/*.md` of the workspace and of the platform.
//!
//! Effects: workspace files (reads).

use super::common::{TextOr, note_inactive_under};
use super::list_definitions;
use super::models::TOP_P_INACTIVE;
use crate::layout::{Draft, SettingsRoot, SettingsText};
use crate::{
    AgentMode, AgentSpec, Finding, FrontMatter, SettingsDocument, Severity, SourcePosition,
    SpecPolicy, SubagentIsolation,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// An agent definition with the parts that only this layout has.
pub(super) struct OpenharnessAgent {
    pub(super) spec: AgentSpec,
    pub(super) side: SettingsRoot,
    pub(super) document: SettingsDocument,
    pub(super) model: OpenharnessModelChoice,
    /// The tools, actions, skills and servers that the agent may use.
    pub(super) allowed: ToolNameLists,
    /// The tools, actions, skills and servers that the agent may not use.
    pub(super) denied: ToolNameLists,
}

/// The model that an agent names.
#[derive(Debug, Default)]
pub(super) struct OpenharnessModelChoice {
    /// A reference or an alias, with its key.
    pub(super) reference: Option<(String, &'static str)>,
    pub(super) temperature: Option<f64>,
    pub(super) max_tokens: Option<u32>,
}

/// Lists of names with their keys.
#[derive(Debug)]
pub(super) struct ToolNameLists {
    pub(super) native: NameList,
    pub(super) actions: NameList,
    pub(super) skills: NameList,
    pub(super) external: NameList,
}

#[derive(Debug)]
pub(super) struct NameList {
    pub(super) key: &'static str,
    pub(super) names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OpenharnessFrontMatter {
    mode: Option<AgentMode>,
    description: Option<String>,
    model: Option<TextOr<ModelFrontMatter>>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u32>,
    system_reminder: Option<String>,
    tools: Option<FrontMatterTools>,
    actions: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    disallowed: Option<Disallowed>,
    switch: Option<Vec<String>>,
    subagents: Option<Vec<String>>,
    policy: Option<SpecPolicy>,
    hidden: Option<bool>,
    background: Option<bool>,
    #[serde(rename = "color")]
    _color: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelFrontMatter {
    model_ref: Option<String>,
    alias: Option<String>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FrontMatterTools {
    native: Option<Vec<String>>,
    actions: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    external: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Disallowed {
    tools: Option<DisallowedTools>,
    actions: Option<Vec<String>>,
    skills: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DisallowedTools {
    native: Option<Vec<String>>,
    external: Option<Vec<String>>,
}

/// Loads all agents by name. An agent of the workspace overrides one of the platform.
pub(super) async fn load_agents(draft: &mut Draft<'_>) -> BTreeMap<String, OpenharnessAgent> {
    let mut agents = BTreeMap::new();
    for (side, folder) in [
        (SettingsRoot::Platform, "agents"),
        (SettingsRoot::Workspace, super::AGENTS_DIR),
    ] {
        for path in list_definitions(draft, side, folder, ".md").await {
            let Some(read) = draft.read_file_in(side, &path).await else {
                continue;
            };
            let name = path
                .rsplit('/')
                .next()
                .unwrap_or(&path)
                .trim_end_matches(".md");
            match parse(name, side, &read) {
                Ok((agent, findings)) => {
                    findings.into_iter().for_each(|finding| draft.note(finding));
                    agents.insert(agent.spec.name.clone(), agent);
                }
                // The choice of the main agent reports it if the agent is needed.
                Err(finding) => {
                    agents.remove(name);
                    draft.note(Finding {
                        severity: Severity::NonFatal,
                        ..finding
                    });
                }
            }
        }
    }
    for agent in agents.values() {
        note_inactive_fields(draft, agent);
    }
    agents
}

/// Parses a definition. Unknown keys are ignored; each is a finding.
fn parse(
    name: &str,
    side: SettingsRoot,
    read: &SettingsText,
) -> Result<(OpenharnessAgent, Vec<Finding>), Finding> {
    let split = FrontMatter::split(&read.file, &read.text)?;
    let mut document = split.parse_document(&read.file)?;
    let mut findings = misplaced_keys(&document);
    let unknown = document.remove_unknown_keys::<OpenharnessFrontMatter>();
    let is_new = |finding: &Finding| findings.iter().all(|told| told.place != finding.place);
    let unknown: Vec<Finding> = unknown.into_iter().filter(is_new).collect();
    findings.extend(unknown);
    let matter: OpenharnessFrontMatter = document.deserialize_into()?;
    let prompt = split.body.trim_start_matches(['\r', '\n']).trim_end();
    if prompt.trim().is_empty() {
        let message = "the prompt is missing: write it below the front matter";
        return Err(
            Finding::error(&read.file, message).with_position(SourcePosition {
                line: split.body_line,
                column: 1,
            }),
        );
    }
    let policy = matter.policy.clone().unwrap_or_default();
    check_policy(&document, &policy)?;
    let model = model_choice(&document, &matter)?;
    let (allowed, denied) = tool_name_lists(&document, &matter)?;
    let spec = AgentSpec {
        name: name.to_owned(),
        source: read.file.clone(),
        mode: matter.mode.unwrap_or_default(),
        description: matter.description.filter(|text| !text.trim().is_empty()),
        system_reminder: matter.system_reminder,
        switch_targets: matter.switch.unwrap_or_default(),
        // In this layout, agents that are not listed are not allowed.
        subagents: Some(matter.subagents.unwrap_or_default()),
        policy,
        hidden: matter.hidden.unwrap_or_default(),
        background: matter.background.unwrap_or_default(),
        // The agents of a project work on the project's files.
        isolation: SubagentIsolation::Shared,
        prompt: prompt.to_owned(),
        ..AgentSpec::default()
    };
    let agent = OpenharnessAgent {
        spec,
        side,
        document,
        model,
        allowed,
        denied,
    };
    Ok((agent, findings))
}

/// Returns findings for keys that belong elsewhere and are often written into front matter.
fn misplaced_keys(document: &SettingsDocument) -> Vec<Finding> {
    let misplaced = [
        (
            "name",
            "the name of the file is the agent's name; remove this",
        ),
        (
            "context",
            "what an agent sees is put together from its files; remove this",
        ),
        (
            "hooks",
            "hooks are files of their own, in .openharness/hooks/",
        ),
    ];
    let written = misplaced
        .iter()
        .filter(|(key, _)| document.value().get(key).is_some());
    written
        .map(|(key, why)| document.finding(Severity::NonFatal, key, format!("{key}: {why}")))
        .collect()
}

fn check_policy(document: &SettingsDocument, policy: &SpecPolicy) -> Result<(), Finding> {
    let zero = [
        (policy.max_steps == Some(0), "policy.max_steps"),
        (
            policy.run_timeout_seconds == Some(0),
            "policy.run_timeout_seconds",
        ),
        (
            policy.tool_timeout_seconds == Some(0),
            "policy.tool_timeout_seconds",
        ),
        (
            policy.max_concurrent_subagents == Some(0),
            "policy.max_concurrent_subagents",
        ),
    ];
    match zero.into_iter().find(|(is_zero, _)| *is_zero) {
        Some((_, key)) => Err(document.error(key, format!("{key} must be at least 1"))),
        None => Ok(()),
    }
}

fn model_choice(
    document: &SettingsDocument,
    matter: &OpenharnessFrontMatter,
) -> Result<OpenharnessModelChoice, Finding> {
    let none = ModelFrontMatter::default();
    let (written, inner) = match &matter.model {
        None => (None, &none),
        Some(TextOr::Text(name)) => (Some((name.clone(), "model")), &none),
        Some(TextOr::Settings(inner)) => match (&inner.model_ref, &inner.alias) {
            (Some(_), Some(_)) => {
                return Err(document.error(
                    "model.alias",
                    "model: has both `model_ref` and `alias`; keep one",
                ));
            }
            (Some(name), None) => (Some((name.clone(), "model.model_ref")), inner),
            (None, Some(name)) => (Some((name.clone(), "model.alias")), inner),
            (None, None) => (None, inner),
        },
    };
    for (key, outer, inner) in [
        (
            "temperature",
            matter.temperature.is_some(),
            inner.temperature.is_some(),
        ),
        ("top_p", matter.top_p.is_some(), inner.top_p.is_some()),
        (
            "max_tokens",
            matter.max_tokens.is_some(),
            inner.max_tokens.is_some(),
        ),
    ] {
        if outer && inner {
            return Err(document.error(
                key,
                format!("{key}: stands both here and in `model:`; keep one"),
            ));
        }
    }
    let temperature = matter.temperature.or(inner.temperature);
    let top_p = matter.top_p.or(inner.top_p);
    let max_tokens = matter.max_tokens.or(inner.max_tokens);
    for (key, wrong, rule) in [
        (
            "temperature",
            temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)),
            "must be from 0 to 2",
        ),
        (
            "top_p",
            top_p.is_some_and(|p| !(0.0..=1.0).contains(&p)),
            "must be from 0 to 1",
        ),
        ("max_tokens", max_tokens == Some(0), "must be at least 1"),
    ] {
        if wrong {
            let inside = format!("model.{key}");
            let key = if document.value().get(key).is_some() {
                key
            } else {
                inside.as_str()
            };
            return Err(document.error(key, format!("{key} {rule}")));
        }
    }
    Ok(OpenharnessModelChoice {
        reference: written,
        temperature,
        max_tokens,
    })
}

fn tool_name_lists(
    document: &SettingsDocument,
    matter: &OpenharnessFrontMatter,
) -> Result<(ToolNameLists, ToolNameLists), Finding> {
    let no_tools = FrontMatterTools::default();
    let nothing = Disallowed::default();
    let none = DisallowedTools::default();
    let tools = matter.tools.as_ref().unwrap_or(&no_tools);
    let denied = matter.disallowed.as_ref().unwrap_or(&nothing);
    let denied_tools = denied.tools.as_ref().unwrap_or(&none);
    let list = |key, names: &Option<Vec<String>>| NameList {
        key,
        names: names.clone().unwrap_or_default(),
    };
    // These two lists may be inside `tools:` or beside it.
    let either = |inside: &'static str,
                  inner: &Option<Vec<String>>,
                  outside: &'static str,
                  outer: &Option<_>| match (inner, outer) {
        (Some(_), Some(_)) => Err(document.error(
            outside,
            format!("{outside}: stands here and in `tools:`; keep one"),
        )),
        (None, Some(_)) => Ok(list(outside, outer)),
        (Some(_) | None, None) => Ok(list(inside, inner)),
    };
    let allowed = ToolNameLists {
        native: list("tools.native", &tools.native),
        actions: either("tools.actions", &tools.actions, "actions", &matter.actions)?,
        skills: either("tools.skills", &tools.skills, "skills", &matter.skills)?,
        external: list("tools.external", &tools.external),
    };
    let denied = ToolNameLists {
        native: list("disallowed.tools.native", &denied_tools.native),
        actions: list("disallowed.actions", &denied.actions),
        skills: list("disallowed.skills", &denied.skills),
        external: list("disallowed.tools.external", &denied_tools.external),
    };
    Ok((allowed, denied))
}

/// Notes the fields of an agent that are known and have no effect yet.
fn note_inactive_fields(draft: &mut Draft<'_>, agent: &OpenharnessAgent) {
    for (names, what) in [
        (&["color"][..], "agents have colours in a later version"),
        (&["top_p"], TOP_P_INACTIVE),
        (&["model", "top_p"], TOP_P_INACTIVE),
    ] {
        note_inactive_under(draft, &agent.document, names, what);
    }
}

impl ToolNameLists {
    pub(super) fn all_mut(&mut self) -> [&mut NameList; 4] {
        [
            &mut self.native,
            &mut self.actions,
            &mut self.skills,
            &mut self.external,
        ]
    }
}
