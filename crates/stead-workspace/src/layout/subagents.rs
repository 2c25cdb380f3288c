//! `subagents/<id>.md`: agent definitions of the stead and agentscope layouts.
//!
//! Effects: workspace files (reads).

use super::{Draft, ModelUse, SettingsText, Strictness};
use crate::{
    AgentMode, AgentSpec, Finding, FrontMatter, SettingsDocument, Severity, SpecPolicy,
    SubagentIsolation, tool_problem,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use stead_model::ModelSettings;
use stead_vfs::{CheckedRule, FileKind, Rule};

/// The maximum number of findings about names of subagents that do not exist.
const MAX_DANGLING_FINDINGS: usize = 50;

/// The front matter of a definition.
#[derive(Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SubagentFrontMatter {
    description: Option<String>,
    mode: Option<AgentMode>,
    model: Option<String>,
    temperature: Option<f64>,
    #[serde(alias = "topP")]
    top_p: Option<f64>,
    variant: Option<String>,
    #[serde(alias = "maxIters")]
    steps: Option<u32>,
    tools: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    hidden: bool,
    #[serde(alias = "exposeToUser")]
    expose_to_user: Option<bool>,
    workspace: Option<SubagentWorkspace>,
    system_reminder: Option<String>,
    switch: Vec<String>,
    subagents: Option<Vec<String>>,
    policy: SpecPolicy,
    #[serde(deserialize_with = "crate::config::permissions")]
    #[schemars(with = "Vec<Rule>")]
    permissions: Vec<CheckedRule>,
    background: bool,
    #[serde(alias = "response_format")]
    result_schema: Option<Value>,
}

#[derive(Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SubagentWorkspace {
    mode: Option<SubagentWorkspaceMode>,
    path: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SubagentWorkspaceMode {
    Isolated,
    Shared,
}

/// Loads every definition in `folder`, and notes those with problems.
pub(super) async fn load_subagents(draft: &mut Draft<'_>, folder: &str) -> Vec<AgentSpec> {
    // The agent can write these files, and must not be able to keep people from opening the
    // workspace.
    let severity = match draft.options().model_use {
        ModelUse::NotNeeded | ModelUse::RecordedOrConfigured => Severity::NonFatal,
        ModelUse::Required => draft.lenient_severity(),
    };
    let strictness = draft.layout().def().strictness;
    let before = draft.finding_count();
    let mut specs = Vec::new();
    for (name, kind) in draft.list_dir(folder).await {
        let Some(id) = definition_id(&name) else {
            continue;
        };
        if kind == FileKind::Directory {
            continue;
        }
        let Some(read) = draft.read_file(&format!("{folder}/{name}")).await else {
            continue;
        };
        match parse(id, &read, strictness) {
            Ok(ParsedSubagent::Spec(spec, findings)) => {
                findings.into_iter().for_each(|finding| draft.note(finding));
                specs.push(*spec);
            }
            Ok(ParsedSubagent::Skipped(finding)) | Err(finding) => draft.note(finding),
        }
    }
    match severity {
        Severity::Error => {}
        Severity::NonFatal | Severity::Warning | Severity::Inactive => {
            draft.soften_findings(before);
        }
    }
    let names: BTreeSet<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let mut dangling = 0;
    for spec in &specs {
        for (key, target) in spec
            .switch_targets
            .iter()
            .map(|to| ("switch", to))
            .chain(referenced_agents(spec))
        {
            if !names.contains(target) && dangling < MAX_DANGLING_FINDINGS {
                dangling += 1;
                let known: Vec<&str> = names.iter().map(String::as_str).collect();
                let near = crate::closest_name(target, &known);
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                let text = format!("{key}: there is no agent `{target}`{hint}");
                draft.note(Finding::new(severity, &spec.source, text));
            }
        }
    }
    specs
}

fn referenced_agents(spec: &AgentSpec) -> impl Iterator<Item = (&'static str, &String)> {
    spec.subagents.iter().flatten().map(|to| ("subagents", to))
}

/// Returns the name of the agent that a file in the folder defines, if it defines one.
pub(crate) fn definition_id(file: &str) -> Option<&str> {
    let id = file.strip_suffix(".md")?;
    let is_agent = !id.is_empty() && !id.starts_with('.') && !id.eq_ignore_ascii_case("readme");
    is_agent.then_some(id)
}

/// What a file in the folder of definitions is.
#[derive(Debug, PartialEq)]
pub(crate) enum ParsedSubagent {
    /// A definition, with findings about it.
    Spec(Box<AgentSpec>, Vec<Finding>),
    /// No definition.
    Skipped(Finding),
}

/// Parses one definition. In a lenient layout, a file without front matter is skipped, unknown keys
/// are ignored, and a list may be written as a text with commas.
pub(crate) fn parse(
    id: &str,
    read: &SettingsText,
    strictness: Strictness,
) -> Result<ParsedSubagent, Finding> {
    let split = FrontMatter::split(&read.file, &read.text)?;
    let mut document = match strictness {
        Strictness::Strict => split.parse_document(&read.file)?,
        Strictness::Lenient => split.parse_lenient_document(&read.file)?,
    };
    let mut findings = Vec::new();
    if strictness == Strictness::Lenient {
        if split.yaml.is_none() {
            let text = "is skipped: it has no front matter, so it defines no agent";
            let finding = Finding::new(Severity::NonFatal, &read.file, text);
            return Ok(ParsedSubagent::Skipped(finding));
        }
        document.split_text_lists(&["tools", "skills"]);
        findings = document.remove_unknown_keys::<SubagentFrontMatter>();
    }
    let matter: SubagentFrontMatter = document.deserialize_into()?;
    let Some(description) = matter.description.filter(|text| !text.trim().is_empty()) else {
        return Err(document.error(
            "description",
            "`description:` is missing: others choose this agent by it",
        ));
    };
    let isolation = match matter.workspace {
        None
        | Some(SubagentWorkspace {
            mode: None | Some(SubagentWorkspaceMode::Isolated),
            path: None,
        }) => SubagentIsolation::Isolated,
        Some(SubagentWorkspace {
            mode: Some(SubagentWorkspaceMode::Shared),
            path: None,
        }) => SubagentIsolation::Shared,
        Some(SubagentWorkspace {
            path: Some(path), ..
        }) => SubagentIsolation::Folder(path),
    };
    let body = split.body.trim();
    findings.extend(inactive_findings(&document));
    for (i, name) in matter.tools.iter().flatten().enumerate() {
        if let Some((severity @ Severity::NonFatal, text)) = tool_problem(name) {
            findings.push(document.finding(
                severity,
                &format!("tools[{i}]"),
                format!("tools: {text}"),
            ));
        }
    }
    match (&isolation, body.is_empty()) {
        (SubagentIsolation::Isolated | SubagentIsolation::Shared, true) => {
            let spot = crate::SourcePosition {
                line: split.body_line,
                column: 1,
            };
            return Err(Finding::error(
                &read.file,
                "the prompt is missing: write it below the front matter",
            )
            .with_position(spot));
        }
        (SubagentIsolation::Folder(_), false) => {
            let text = "the text below is not used: the agent at workspace.path has its own";
            findings.push(document.finding(Severity::Warning, "workspace.path", text));
        }
        (SubagentIsolation::Folder(_), true)
        | (SubagentIsolation::Isolated | SubagentIsolation::Shared, false) => {}
    }
    if let SubagentIsolation::Folder(_) = isolation {
        let text = "workspace.path: agents with a folder of their own come in a later version; it cannot be given work";
        findings.push(document.finding(Severity::Inactive, "workspace.path", text));
    }
    let model = (matter.model.is_some() || matter.temperature.is_some()).then(|| ModelSettings {
        name: matter.model.unwrap_or_default(),
        temperature: matter.temperature,
        ..ModelSettings::default()
    });
    let policy = SpecPolicy {
        max_steps: matter.policy.max_steps.or(matter.steps),
        ..matter.policy
    };
    if policy.max_steps == Some(0) {
        return Err(document.error("steps", "steps must be at least 1"));
    }
    let (switch_targets, subagents) = match matter.permissions.is_empty() {
        true => (matter.switch, matter.subagents),
        false => {
            for key in ["switch", "subagents"] {
                let is_set = document
                    .value()
                    .get(key)
                    .is_some_and(|list| list.as_array().is_some_and(|list| !list.is_empty()));
                if is_set {
                    let text = format!(
                        "{key}: an agent with permissions of its own cannot hand work to others, whom they would not bind"
                    );
                    findings.push(document.finding(Severity::NonFatal, key, text));
                }
            }
            (Vec::new(), Some(Vec::new()))
        }
    };
    let spec = AgentSpec {
        name: id.to_owned(),
        source: read.file.clone(),
        mode: matter.mode.unwrap_or(AgentMode::Subagent),
        description: Some(description),
        model,
        system_reminder: matter.system_reminder,
        tools: matter.tools,
        skills: matter.skills,
        switch_targets,
        subagents,
        permissions: matter.permissions,
        policy,
        hidden: matter.hidden,
        isolation,
        background: matter.background,
        result_schema: matter.result_schema,
        prompt: body.to_owned(),
        ..AgentSpec::default()
    };
    Ok(ParsedSubagent::Spec(Box::new(spec), findings))
}

/// Returns findings for keys that have no effect yet.
fn inactive_findings(document: &SettingsDocument) -> Vec<Finding> {
    const INACTIVE_FIELDS: [&str; 5] =
        ["top_p", "topP", "variant", "expose_to_user", "exposeToUser"];
    let set = |key: &&str| {
        document
            .value()
            .get(key)
            .is_some_and(|value| !value.is_null())
    };
    let keys: Vec<&str> = INACTIVE_FIELDS.into_iter().filter(set).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    let text = format!("{}: used in a later version", keys.join(", "));
    vec![document.finding(Severity::Inactive, keys[0], text)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse_text(text: String, strictness: Strictness) -> Result<ParsedSubagent, Finding> {
        let read = SettingsText {
            file: "subagents/helper.md".to_owned(),
            text,
        };
        parse("helper", &read, strictness)
    }

    fn read_as(matter: &str, strictness: Strictness) -> Result<(AgentSpec, Vec<Finding>), Finding> {
        let text = format!("---\ndescription: Helps.\n{matter}\n---\nYou help.\n");
        match parse_text(text, strictness)? {
            ParsedSubagent::Spec(spec, findings) => Ok((*spec, findings)),
            ParsedSubagent::Skipped(finding) => Err(finding),
        }
    }

    fn read(matter: &str) -> Result<(AgentSpec, Vec<Finding>), Finding> {
        read_as(matter, Strictness::Strict)
    }

    #[test]
    fn an_agent_with_permissions_hands_no_work_to_others() {
        let matter =
            "permissions: [{operations: [write], paths: [\"**\"], mode: deny}]\nsubagents: [x]";
        let (spec, findings) = read(matter).unwrap();
        assert_eq!(
            (spec.permissions.len(), spec.subagents),
            (1, Some(Vec::new()))
        );
        assert_eq!(findings.len(), 1, "{findings:?}");
        let wrong = read("permissions: [{operations: [], paths: [a], mode: deny}]");
        assert_eq!(wrong.unwrap_err().place.line, 3);
    }

    #[test]
    fn a_lenient_layout_passes_over_what_it_does_not_know() {
        let matter = "name: helper\ntools: read_file, grep_files\nlevel: 3";
        let (spec, findings) = read_as(matter, Strictness::Lenient).unwrap();
        assert_eq!(
            spec.tools.as_deref(),
            Some(&["read_file".to_owned(), "grep_files".to_owned()][..])
        );
        let told: Vec<_> = findings
            .iter()
            .map(|f| (f.severity, f.place.line))
            .collect();
        assert_eq!(told, [(Severity::NonFatal, 5), (Severity::NonFatal, 3)]);
        let plain = "# Notes\n\nNo agent.\n".to_owned();
        let skipped = parse_text(plain.clone(), Strictness::Lenient).unwrap();
        assert!(matches!(skipped, ParsedSubagent::Skipped(_)), "{skipped:?}");
        parse_text(plain, Strictness::Strict).unwrap_err();
        let ids = ["README.md", "readme.md", ".x.md", ".md", "x.txt", "x.md"];
        assert_eq!(
            ids.map(definition_id),
            [None, None, None, None, None, Some("x")]
        );
    }

    #[test]
    fn every_field_arrives_and_what_has_no_effect_is_told_to_come_later() {
        let base = || AgentSpec {
            name: "helper".to_owned(),
            source: "subagents/helper.md".to_owned(),
            mode: AgentMode::Subagent,
            description: Some("Helps.".to_owned()),
            prompt: "You help.".to_owned(),
            ..AgentSpec::default()
        };
        let model = |name: &str, temperature| ModelSettings {
            name: name.to_owned(),
            temperature,
            ..ModelSettings::default()
        };
        let names = |list: &[&str]| {
            list.iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<String>>()
        };
        let steps = SpecPolicy {
            max_steps: Some(12),
            ..SpecPolicy::default()
        };
        #[rustfmt::skip]
        let table = [
            ("", base(), None),
            ("mode: primary", AgentSpec { mode: AgentMode::Primary, ..base() }, None),
            ("mode: all", AgentSpec { mode: AgentMode::All, ..base() }, None),
            ("hidden: true", AgentSpec { hidden: true, ..base() }, None),
            ("subagents: []", AgentSpec { subagents: Some(Vec::new()), ..base() }, None),
            ("model: qwen3-max", AgentSpec { model: Some(model("qwen3-max", None)), ..base() }, None),
            ("temperature: 0.2", AgentSpec { model: Some(model("", Some(0.2))), ..base() }, None),
            ("background: true", AgentSpec { background: true, ..base() }, None),
            ("result_schema: {type: object}", AgentSpec { result_schema: Some(json!({"type": "object"})), ..base() }, None),
            ("top_p: 0.9", base(), Some("top_p")),
            ("variant: high", base(), Some("variant")),
            ("steps: 12", AgentSpec { policy: steps.clone(), ..base() }, None),
            ("maxIters: 12", AgentSpec { policy: steps.clone(), ..base() }, None),
            ("policy: {max_steps: 12}", AgentSpec { policy: steps, ..base() }, None),
            ("tools: [read_file]", AgentSpec { tools: Some(names(&["read_file"])), ..base() }, None),
            ("skills: [pdf]", AgentSpec { skills: Some(names(&["pdf"])), ..base() }, None),
            ("expose_to_user: true", base(), Some("expose_to_user")),
            ("workspace: {mode: isolated}", base(), None),
            ("workspace: {mode: shared}", AgentSpec { isolation: SubagentIsolation::Shared, ..base() }, None),
            ("system_reminder: Now you.", AgentSpec { system_reminder: Some("Now you.".to_owned()), ..base() }, None),
        ];
        for (matter, expected, later) in table {
            let (spec, findings) = read(matter).unwrap();
            assert_eq!(spec, expected, "{matter}");
            let told: Vec<(Severity, u64)> = findings
                .iter()
                .map(|finding| (finding.severity, finding.place.line))
                .collect();
            assert_eq!(
                told,
                later
                    .map(|_| (Severity::Inactive, 3))
                    .into_iter()
                    .collect::<Vec<_>>(),
                "{matter}"
            );
            assert!(
                later.is_none_or(|key| findings[0].message.starts_with(key)),
                "{matter}: {findings:?}"
            );
        }
        let (_, findings) = read("tools: [read_file, raed_file]").unwrap();
        assert!(
            findings
                .iter()
                .any(|finding| finding.severity == Severity::NonFatal
                    && finding.message.contains("raed_file"))
        );
        for wrong in [
            "mode: main",
            "steps: many",
            "tools: read_file",
            "unknown: 1",
            "steps: 0",
        ] {
            assert_eq!(read(wrong).unwrap_err().place.line, 3, "{wrong}");
        }
    }
}
