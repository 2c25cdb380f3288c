//! The tool servers of AgentScope's Python workspaces: `.mcp`, in both versions of the format.
//!
//! Effects: workspace files (reads).

use crate::layout::{Draft, is_secret_name};
use crate::{SettingsDocument, Severity};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The current version of the format. The earlier one is a bare list.
const VERSION: u64 = 2;

/// A tool server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentscopeServer {
    name: String,
    #[serde(default)]
    is_stateful: Option<bool>,
    mcp_config: AgentscopeServerConfig,
    #[serde(default)]
    enable_tools: Option<Vec<String>>,
    #[serde(default)]
    disable_tools: Option<Vec<String>>,
    #[serde(default)]
    execution_timeout: Option<f64>,
}

/// The transport of a tool server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentscopeServerConfig {
    #[serde(rename = "type")]
    kind: AgentscopeServerKind,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    cwd: Option<String>,
    encoding_error_handler: Option<String>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AgentscopeServerKind {
    StdioMcp,
    HttpMcp,
}

/// Checks every server in `file`. Connecting to them comes in a later version.
pub(super) async fn check_servers(draft: &mut Draft<'_>, file: &str) {
    let Some(read) = draft.read_file(file).await else {
        return;
    };
    let Some(document) = draft.ok_or_note(SettingsDocument::parse_json(&read.file, &read.text))
    else {
        return;
    };
    for (key, list) in scopes(draft, &document) {
        let mut names = BTreeSet::new();
        for (i, value) in list.iter().enumerate() {
            let key = format!("{key}[{i}]");
            let Some(server) =
                draft.ok_or_note(document.deserialize_at::<AgentscopeServer>(&key, value))
            else {
                continue;
            };
            draft.config.secrets.extend(server.mcp_config.secrets());
            let config = value.get("mcp_config").unwrap_or(value);
            draft.declare_server(file, &server.name, config);
            if let Some((field, problem)) = server.problem() {
                draft.note(document.error(
                    &format!("{key}.{field}"),
                    format!("{key}.{field}: {problem}"),
                ));
            }
            let later = format!(
                "{}: tool servers are connected in a later version",
                server.name
            );
            draft.note(document.finding(Severity::Inactive, &key, later));
            if !names.insert(server.name.clone()) {
                let message = format!(
                    "{key}.name: there are two servers named {:?} for one session",
                    server.name
                );
                draft.note(document.error(&format!("{key}.name"), message));
            }
        }
    }
}

/// Returns the lists of servers with their keys: a single list in the first version, one list for
/// each agent and session in the second.
fn scopes(draft: &mut Draft<'_>, document: &SettingsDocument) -> Vec<(String, Vec<Value>)> {
    match document.value() {
        Value::Array(list) => vec![(String::new(), list.clone())],
        Value::Object(file) => versioned_scopes(draft, document, file),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            draft.note(document.error(
                "",
                "a list of servers, or a map with `version` and `mcps`, is needed here",
            ));
            Vec::new()
        }
    }
}

fn versioned_scopes(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    file: &Map<String, Value>,
) -> Vec<(String, Vec<Value>)> {
    if file.is_empty() {
        return Vec::new();
    }
    for key in file
        .keys()
        .filter(|key| !["version", "mcps"].contains(&key.as_str()))
    {
        let near = crate::closest_name(key, &["version", "mcps"]);
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        draft.note(document.error(key, format!("unknown field `{key}`{hint}")));
    }
    if file.get("version").and_then(Value::as_u64) != Some(VERSION) {
        draft.note(document.error("version", format!("version: {VERSION} is needed here")));
    }
    let mut lists = Vec::new();
    for (agent, key, sessions) in map_entries(draft, document, "mcps", file.get("mcps")) {
        for (session, key, list) in map_entries(draft, document, &key, Some(&sessions)) {
            match list {
                Value::Array(list) => lists.push((key, list)),
                _ => draft.note(document.error(
                    &key,
                    format!("{agent}, {session}: a list of servers is needed here"),
                )),
            }
        }
    }
    lists
}

/// Returns the fields of the map at `key`, each with its own key.
fn map_entries(
    draft: &mut Draft<'_>,
    document: &SettingsDocument,
    key: &str,
    value: Option<&Value>,
) -> Vec<(String, String, Value)> {
    match value {
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| (name.clone(), format!("{key}.{name}"), value.clone()))
            .collect(),
        Some(_) | None => {
            let message = format!(
                "{key}: a map is needed here: agents, their sessions, and the servers of each"
            );
            draft.note(document.error(key, message));
            Vec::new()
        }
    }
}

impl AgentscopeServer {
    /// Returns the first problem of the values with its field.
    fn problem(&self) -> Option<(&'static str, String)> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if self.name.is_empty() || !self.name.chars().all(allowed) {
            return Some((
                "name",
                format!("{:?}: letters, digits, `_` and `-` are allowed", self.name),
            ));
        }
        let enabled = self.enable_tools.iter().flatten();
        let disabled = self.disable_tools.iter().flatten();
        let disabled: BTreeSet<&String> = disabled.collect();
        if let Some(both) = enabled.into_iter().find(|tool| disabled.contains(tool)) {
            return Some((
                "disable_tools",
                format!("{both} is enabled and disabled; keep one"),
            ));
        }
        let wrong_time = |seconds: Option<f64>| {
            seconds.is_some_and(|seconds| !seconds.is_finite() || seconds <= 0.0)
        };
        if wrong_time(self.execution_timeout) {
            return Some((
                "execution_timeout",
                "must be more than 0 seconds".to_owned(),
            ));
        }
        if wrong_time(self.mcp_config.timeout) {
            return Some((
                "mcp_config.timeout",
                "must be more than 0 seconds".to_owned(),
            ));
        }
        if self.mcp_config.kind == AgentscopeServerKind::StdioMcp && self.is_stateful == Some(false)
        {
            return Some((
                "is_stateful",
                "a stdio_mcp server keeps its state; true is needed here".to_owned(),
            ));
        }
        self.mcp_config.problem()
    }
}

impl AgentscopeServerConfig {
    fn problem(&self) -> Option<(&'static str, String)> {
        let stdio = [
            ("mcp_config.args", self.args.is_some()),
            ("mcp_config.env", self.env.is_some()),
            ("mcp_config.cwd", self.cwd.is_some()),
            ("mcp_config.command", self.command.is_some()),
            (
                "mcp_config.encoding_error_handler",
                self.encoding_error_handler.is_some(),
            ),
        ];
        let http = [
            ("mcp_config.headers", self.headers.is_some()),
            ("mcp_config.timeout", self.timeout.is_some()),
            ("mcp_config.url", self.url.is_some()),
        ];
        let (needed, given, others, kind) = match self.kind {
            AgentscopeServerKind::StdioMcp => ("command", &self.command, &http[..], "stdio_mcp"),
            AgentscopeServerKind::HttpMcp => ("url", &self.url, &stdio[..], "http_mcp"),
        };
        if given.as_deref().is_none_or(str::is_empty) {
            return Some(("mcp_config", format!("{kind} needs `{needed}`")));
        }
        let other = others.iter().find(|(_, is_set)| *is_set);
        other.map(|(field, _)| (*field, format!("has no meaning with {kind}")))
    }

    /// Returns the values that must be redacted.
    fn secrets(&self) -> Vec<String> {
        let named = self.env.iter().chain(&self.headers).flatten();
        let is_kept =
            |name: &str| is_secret_name(name) || name.eq_ignore_ascii_case("authorization");
        named
            .filter(|(name, _)| is_kept(name))
            .map(|(_, value)| value.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_from_journals_if_its_name_says_so() {
        let config: AgentscopeServerConfig = serde_json::from_str(
            r#"{"type": "stdio_mcp", "command": "x", "env": {"API_KEY": "k1", "PATH": "/bin"}, "headers": {"authorization": "b"}}"#,
        )
        .unwrap();
        assert_eq!(config.secrets(), ["k1", "b"]);
        assert_eq!(
            config.problem(),
            Some((
                "mcp_config.headers",
                "has no meaning with stdio_mcp".to_owned()
            ))
        );
    }
}
