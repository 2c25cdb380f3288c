//! The settings of OpenPaw: those of a workspace, merged over the `config.yaml` that many share.
//!
//! Effects: workspace files (reads).

use super::model::{ProviderEntry, normalize};
use super::settings::{
    ApprovalGates, AutoCompact, Builtins, Lanes, Lifecycle, OpenpawMemory, OpenpawQueue,
    OpenpawSettings, ToolAllowDeny, ToolTimeouts,
};
use super::{channel::Channel, heartbeat::Heartbeat};
use crate::layout::{Draft, SettingsRoot, unresolved_severity};
use crate::{Finding, SettingsDocument, Severity};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stead_core::{Hint, VariableSyntax};

/// The global file, in the folder of the platform.
const GLOBAL_FILE: &str = "config.yaml";

/// The sections with the same meaning in both files.
const SHARED_SECTIONS: [&str; 12] = [
    "timezone",
    "queue",
    "builtins",
    "workspace_tools",
    "heartbeat",
    "approval_gates",
    "memory",
    "auto_compact",
    "session_ttl_minutes",
    "lifecycle",
    "tool_timeouts",
    "lanes",
];

/// The sections without effect in this version.
const INACTIVE_SECTIONS: [&str; 9] = [
    "channel",
    "channels",
    "cron_jobs",
    "heartbeat",
    "lanes",
    "lifecycle",
    "logging",
    "session_ttl_minutes",
    "workspace_tools",
];

/// The two settings files, if they exist. The workspace's file overrides the global one.
#[derive(Debug, Default)]
pub(super) struct ConfigLayers {
    workspace: Option<SettingsDocument>,
    global: Option<SettingsDocument>,
}

/// The global file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GlobalConfig {
    #[serde(rename = "workspaces_path")]
    _workspaces_path: Option<String>,
    #[serde(rename = "logging")]
    _logging: Option<Logging>,
    #[serde(rename = "agent")]
    _agent: Option<AgentDefaults>,
    providers: BTreeMap<String, ProviderEntry>,
    /// The defaults of channels by kind.
    #[serde(rename = "channels")]
    _channels: Option<BTreeMap<String, Option<Channel>>>,
    #[serde(rename = "cron_jobs")]
    _cron_jobs: Option<Vec<Map<String, Value>>>,
    #[serde(rename = "timezone")]
    _timezone: Option<String>,
    #[serde(rename = "queue")]
    _queue: Option<OpenpawQueue>,
    #[serde(rename = "builtins")]
    _builtins: Option<Builtins>,
    #[serde(rename = "workspace_tools")]
    _workspace_tools: Option<ToolAllowDeny>,
    #[serde(rename = "heartbeat")]
    _heartbeat: Option<Heartbeat>,
    #[serde(rename = "approval_gates")]
    _approval_gates: Option<ApprovalGates>,
    #[serde(rename = "memory")]
    _memory: Option<OpenpawMemory>,
    #[serde(rename = "auto_compact")]
    _auto_compact: Option<AutoCompact>,
    #[serde(rename = "session_ttl_minutes")]
    _session_ttl_minutes: Option<u32>,
    #[serde(rename = "lifecycle")]
    _lifecycle: Option<Lifecycle>,
    #[serde(rename = "tool_timeouts")]
    _tool_timeouts: Option<ToolTimeouts>,
    #[serde(rename = "lanes")]
    _lanes: Option<Lanes>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Logging {
    #[serde(rename = "level")]
    _level: Option<String>,
    #[serde(rename = "directory")]
    _directory: Option<String>,
    #[serde(rename = "max_size_mb")]
    _max_size_mb: Option<u64>,
    #[serde(rename = "backup_count")]
    _backup_count: Option<u32>,
    #[serde(rename = "per_workspace")]
    _per_workspace: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AgentDefaults {
    #[serde(rename = "model")]
    _model: Option<String>,
    #[serde(rename = "api_key")]
    _api_key: Option<String>,
    #[serde(rename = "max_turns")]
    _max_turns: Option<u32>,
    #[serde(rename = "temperature")]
    _temperature: Option<f64>,
    #[serde(rename = "timeout_seconds")]
    _timeout_seconds: Option<u64>,
}

impl ConfigLayers {
    /// Reads `file` of the workspace, and the global file of the platform.
    pub(super) async fn read(draft: &mut Draft<'_>, file: &str) -> Self {
        let mut layers = Self {
            workspace: load_layer(draft, SettingsRoot::Workspace, file).await,
            global: load_layer(draft, SettingsRoot::Platform, GLOBAL_FILE).await,
        };
        if let Some(own) = &mut layers.workspace {
            draft.ignore_unknown_keys::<OpenpawSettings>(own);
        }
        if let Some(shared) = &mut layers.global {
            draft.ignore_unknown_keys::<GlobalConfig>(shared);
        }
        layers
    }

    /// Returns the settings and the catalogue of providers. Returns none if a file is invalid,
    /// which is then noted.
    pub(super) fn settings(
        &self,
        draft: &mut Draft<'_>,
    ) -> Option<(OpenpawSettings, BTreeMap<String, ProviderEntry>)> {
        let own = self
            .workspace
            .as_ref()
            .map(SettingsDocument::deserialize_into::<OpenpawSettings>);
        let shared = self
            .global
            .as_ref()
            .map(SettingsDocument::deserialize_into::<GlobalConfig>);
        let own = own.is_none_or(|own| draft.ok_or_note(own).is_some());
        let shared = shared.map_or(Some(GlobalConfig::default()), |shared| {
            draft.ok_or_note(shared)
        })?;
        if !own {
            return None;
        }
        let endpoints = shared
            .providers
            .iter()
            .filter_map(|(name, entry)| entry.endpoint(name));
        draft.platform_endpoints.extend(endpoints);
        let settings = serde_json::from_value(self.merged());
        let settings = settings.map_err(|error: serde_json::Error| {
            Finding::error(
                GLOBAL_FILE,
                format!("it does not go together with the settings of the workspace: {error}"),
            )
        });
        Some((draft.ok_or_note(settings)?, shared.providers))
    }

    /// Merges both files into one map in the form of the workspace's file.
    fn merged(&self) -> Value {
        let own = self
            .workspace
            .as_ref()
            .and_then(|own| own.value().as_object())
            .cloned()
            .unwrap_or_default();
        let shared = self
            .global
            .as_ref()
            .and_then(|shared| shared.value().as_object())
            .cloned()
            .unwrap_or_default();
        let mut below: Map<String, Value> = shared
            .iter()
            .filter(|(key, _)| SHARED_SECTIONS.contains(&key.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if let Some(defaults) = shared.get("agent").filter(|defaults| defaults.is_object()) {
            below.insert("model".to_owned(), normalize(defaults.clone()));
        }
        let denied = |map: &Map<String, Value>, list: &str| {
            let list = map
                .get("builtins")
                .and_then(|builtins| builtins.get(list))
                .and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        // A workspace adds to these two lists: it cannot enable what the platform disabled.
        let lists = ["allow", "deny"]
            .map(|list| (list, [denied(&below, list), denied(&own, list)].concat()));
        let mut own = own;
        if let Some(model) = own.remove("model") {
            own.insert("model".to_owned(), normalize(model));
        }
        let mut merged = merge_over(Value::Object(own), Value::Object(below));
        if let Some(Value::Object(builtins)) = merged.get_mut("builtins") {
            builtins.extend(
                lists
                    .into_iter()
                    .map(|(list, names)| (list.to_owned(), Value::Array(names))),
            );
        }
        let kinds = shared
            .get("channels")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let one = merged.get("channel").cloned();
        if let Some(channel) = one.filter(Value::is_object) {
            merged["channel"] = with_defaults(channel, &kinds);
        }
        if let Some(Value::Array(channels)) = merged.get_mut("channels") {
            channels
                .iter_mut()
                .for_each(|channel| *channel = with_defaults(channel.take(), &kinds));
        }
        merged
    }

    /// Records the origin of each setting. `name` returns the known key for a key of the files.
    pub(super) fn record_origins(
        &self,
        draft: &mut Draft<'_>,
        name: impl Fn(&str) -> Option<String>,
    ) {
        if let Some(shared) = &self.global {
            draft.record_origins(shared, |key| {
                let key = key
                    .strip_prefix("agent.")
                    .map_or_else(|| key.to_owned(), |rest| format!("model.{rest}"));
                name(&key)
            });
        }
        if let Some(own) = &self.workspace {
            draft.record_origins(own, name);
        }
    }

    /// Creates a finding about `key`, at the position in the file that sets it.
    pub(super) fn finding(
        &self,
        severity: Severity,
        key: &str,
        message: impl Into<String>,
    ) -> Finding {
        let own = self.workspace.as_ref().filter(|own| is_set(own, key));
        let shared_key = global_key(key);
        let shared = self
            .global
            .as_ref()
            .filter(|shared| own.is_none() && is_set(shared, &shared_key));
        match (own, shared, &self.workspace) {
            (_, Some(shared), _) => shared.finding(severity, &shared_key, message),
            (Some(own), None, _) | (None, None, Some(own)) => own.finding(severity, key, message),
            (None, None, None) => Finding::new(severity, "config/agent.yaml", message),
        }
    }

    /// Notes keys that have no effect in this version, where one of the files sets them.
    pub(super) fn note_inactive_keys(&self, draft: &mut Draft<'_>, keys: &[(&str, &str)]) {
        for (key, what) in keys {
            let own = self.workspace.as_ref().is_some_and(|own| is_set(own, key));
            if own
                || self
                    .global
                    .as_ref()
                    .is_some_and(|shared| is_set(shared, &global_key(key)))
            {
                draft.note(self.finding(Severity::Inactive, key, format!("{key}: {what}")));
                if let Some(own) = &self.workspace {
                    draft.forget_variables(own.file(), key);
                }
            }
        }
    }

    /// Notes the keys without effect that only the global file has.
    pub(super) fn note_inactive_global_keys(&self, draft: &mut Draft<'_>) {
        if let Some(shared) = &self.global {
            let later = [
                ("logging", "logs of many workspaces come in a later version"),
                ("channels", "channels come in a later version"),
                ("cron_jobs", "schedules come in a later version"),
            ];
            draft.note_inactive_keys(shared, &later);
            if is_set(shared, "workspaces_path") {
                let message = "workspaces_path: the folder is not searched for workspaces";
                let finding = shared.finding(Severity::Inactive, "workspaces_path", message);
                draft.note(finding.with_hint(Hint::ListWorkspaces));
            }
        }
    }
}

/// Reads one of the files. A variable that is not set stops a run only if the run needs it.
async fn load_layer(
    draft: &mut Draft<'_>,
    root: SettingsRoot,
    file: &str,
) -> Option<SettingsDocument> {
    let (document, unset) = draft
        .load_yaml_with_unset(root, file, VariableSyntax::All)
        .await?;
    for missing in &unset {
        draft.note(Finding {
            severity: unset_severity(draft, &missing.key),
            ..document.unset_variable_finding(missing)
        });
    }
    Some(document)
}

/// Returns the severity of a variable at `key` that is not set.
fn unset_severity(draft: &Draft<'_>, key: &str) -> Severity {
    let section = key.split(['.', '[']).next().unwrap_or_default();
    match section {
        // Connecting to a model reports a missing key, and says which variable sets it.
        _ if key.ends_with(".api_key") => Severity::NonFatal,
        "model" | "agent" | "providers" => unresolved_severity(draft),
        section if INACTIVE_SECTIONS.contains(&section) => Severity::NonFatal,
        _ => Severity::Error,
    }
}

/// Returns the severity of an invalid value at `key`.
pub(super) fn problem_severity(key: &str) -> Severity {
    let section = key.split(['.', '[']).next().unwrap_or_default();
    match INACTIVE_SECTIONS.contains(&section) {
        true => Severity::NonFatal,
        false => Severity::Error,
    }
}

/// Returns the key of the global file that corresponds to `key`.
fn global_key(key: &str) -> String {
    match key.strip_prefix("model") {
        Some("") | Some(".provider") => "agent.model".to_owned(),
        Some(rest) if rest.starts_with('.') => format!("agent{rest}"),
        Some(_) | None => key.to_owned(),
    }
}

fn is_set(document: &SettingsDocument, key: &str) -> bool {
    let pointer = format!(
        "/{}",
        key.replace('[', ".").replace(']', "").replace('.', "/")
    );
    document
        .value()
        .pointer(&pointer)
        .is_some_and(|value| !value.is_null())
}

/// Merges `upper` over `lower`: maps are merged, other values are replaced.
fn merge_over(upper: Value, lower: Value) -> Value {
    match (upper, lower) {
        (Value::Object(upper), Value::Object(mut lower)) => {
            for (key, value) in upper {
                let below = lower.remove(&key).unwrap_or(Value::Null);
                lower.insert(key, merge_over(value, below));
            }
            Value::Object(lower)
        }
        (Value::Null, lower) => lower,
        (upper, _) => upper,
    }
}

/// Merges a channel over the defaults of its kind.
fn with_defaults(channel: Value, kinds: &Map<String, Value>) -> Value {
    let kind = channel
        .get("type")
        .and_then(Value::as_str)
        .and_then(|kind| kinds.get(kind))
        .cloned();
    merge_over(channel, kind.unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn maps_merge_and_everything_else_is_replaced() {
        let lower = json!({"a": {"x": 1, "y": [1, 2]}, "b": 1, "c": {"z": 1}});
        let upper = json!({"a": {"y": [3], "w": null}, "b": "two", "c": 5});
        assert_eq!(
            merge_over(upper, lower),
            json!({"a": {"x": 1, "y": [3], "w": null}, "b": "two", "c": 5})
        );
    }
}
