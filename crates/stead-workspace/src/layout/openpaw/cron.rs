//! `config/crons/*.yaml` of OpenPaw: scheduled prompts.
//!
//! Effects: workspace files (reads).

use super::heartbeat::DeliveryOutput;
use crate::layout::Draft;
use crate::schedule::schedule_problem;
use crate::{Finding, SettingsDocument, Severity};
use serde::Deserialize;
use std::collections::BTreeMap;
use stead_core::VariableSyntax;
use stead_vfs::FileKind;

/// A scheduled prompt.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CronJob {
    name: Option<String>,
    schedule: Option<String>,
    #[serde(rename = "enabled")]
    _enabled: Option<bool>,
    prompt: Option<String>,
    output: Option<DeliveryOutput>,
}

/// Checks every schedule in `folder`. Running them comes in a later version, so no mistake in one
/// stops the agent.
pub(super) async fn check_cron_jobs(draft: &mut Draft<'_>, folder: &str) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for (file, kind) in draft.list_dir(folder).await {
        let is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
        if kind == FileKind::Directory || !is_yaml || file.starts_with('.') {
            continue;
        }
        let before = draft.finding_count();
        let document = draft
            .load_inactive_yaml(&format!("{folder}/{file}"), VariableSyntax::All)
            .await;
        draft.soften_findings(before);
        let Some(mut document) = document else {
            continue;
        };
        draft.ignore_unknown_keys::<CronJob>(&mut document);
        let before = draft.finding_count();
        let cron = draft.ok_or_note(document.deserialize_into::<CronJob>());
        draft.soften_findings(before);
        let Some(cron) = cron else {
            continue;
        };
        for finding in findings(&cron, &document) {
            draft.note(finding);
        }
        let Some(name) = cron.name else { continue };
        if let Some(first) = names.get(&name) {
            let text = format!("name: {name:?} is already used by {first}");
            draft.note(document.finding(Severity::NonFatal, "name", text));
        }
        names.entry(name).or_insert(document.file().to_owned());
    }
}

fn findings(cron: &CronJob, document: &SettingsDocument) -> Vec<Finding> {
    let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
    let needed = [
        ("name", &cron.name),
        ("schedule", &cron.schedule),
        ("prompt", &cron.prompt),
    ];
    let mut findings: Vec<Finding> = needed
        .iter()
        .filter(|(_, text)| !given(text))
        .map(|(key, _)| document.finding(Severity::NonFatal, key, format!("`{key}:` is missing")))
        .collect();
    if let Some(problem) = cron
        .schedule
        .as_deref()
        .filter(|text| !text.trim().is_empty())
        .and_then(schedule_problem)
    {
        findings.push(document.finding(
            Severity::NonFatal,
            "schedule",
            format!("schedule: {problem}"),
        ));
    }
    if cron
        .output
        .as_ref()
        .is_some_and(|output| output.channel.is_none())
    {
        findings.push(document.finding(
            Severity::NonFatal,
            "output",
            "output: `channel:` is missing: where does the answer go?",
        ));
    }
    if findings.is_empty() {
        let text = "schedules are carried out in a later version";
        findings.push(document.finding(Severity::Inactive, "schedule", text));
    }
    findings
}
