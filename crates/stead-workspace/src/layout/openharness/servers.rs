//! The tool servers of the openharness layout: `.openharness/tools/settings.yaml`.
//!
//! Effects: workspace files (reads).

use crate::Severity;
use crate::layout::Draft;
use serde::Deserialize;
use std::collections::BTreeMap;
use stead_core::VariableSyntax;

const SERVERS_FILE: &str = ".openharness/tools/settings.yaml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenharnessServer {
    command: Option<String>,
    url: Option<String>,
    enabled: Option<bool>,
    environment: Option<BTreeMap<String, String>>,
    headers: Option<BTreeMap<String, String>>,
    timeout: Option<u64>,
    #[serde(rename = "oauth")]
    _oauth: Option<bool>,
    #[serde(rename = "expose")]
    _expose: Option<ServerExpose>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServerExpose {
    #[serde(rename = "tool_prefix")]
    _tool_prefix: Option<String>,
    #[serde(rename = "include")]
    _include: Option<Vec<String>>,
    #[serde(rename = "exclude")]
    _exclude: Option<Vec<String>>,
}

/// Returns the names of all servers, after checking them. Connecting to them comes in a later
/// version.
pub(super) async fn load_servers(draft: &mut Draft<'_>) -> Vec<String> {
    let Some(document) = draft
        .load_inactive_yaml(SERVERS_FILE, VariableSyntax::Env)
        .await
    else {
        return Vec::new();
    };
    let Some(servers) =
        draft.ok_or_note(document.deserialize_into::<BTreeMap<String, OpenharnessServer>>())
    else {
        return Vec::new();
    };
    for (name, server) in &servers {
        if server.enabled != Some(false)
            && let Some(settings) = document.value().get(name)
        {
            draft.declare_server(SERVERS_FILE, name, settings);
        }
        match server.problem() {
            Some((key, message)) => draft
                .note(document.error(&format!("{name}{key}"), format!("{name}{key}: {message}"))),
            None if server.enabled == Some(false) => {}
            None => {
                let message = format!("{name}: tool servers are connected in a later version");
                draft.note(document.finding(Severity::Inactive, name, message));
            }
        }
    }
    servers.into_keys().collect()
}

impl OpenharnessServer {
    /// Returns the first problem, with its key below the server, which starts with a dot.
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        match (self.command.as_deref(), self.url.as_deref()) {
            (Some(_), Some(_)) => return Some(("", "has both `command` and `url`; keep one")),
            (None, None) => return Some(("", "needs `command` or `url`")),
            (Some(command), None) if command.trim().is_empty() => {
                return Some((".command", "is empty"));
            }
            (None, Some(url)) if !url.starts_with("http://") && !url.starts_with("https://") => {
                return Some((
                    ".url",
                    "is not an address; it begins with http:// or https://",
                ));
            }
            (Some(_), None) if self.headers.is_some() => {
                return Some((".headers", "belongs to a server with a `url`"));
            }
            (None, Some(_)) if self.environment.is_some() => {
                return Some((".environment", "belongs to a server with a `command`"));
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        (self.timeout == Some(0)).then_some((".timeout", "must be at least 1 millisecond"))
    }
}
