//! The actions of the openharness layout, commands in `.openharness/actions/*/ACTION.yaml`.
//!
//! Effects: workspace files (reads).

use super::common::is_valid_name;
use crate::folder_trust::named_in_line;
use crate::layout::Draft;
use crate::{ActingKind, SettingsDocument, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use stead_core::VariableSyntax;
use stead_vfs::{FileKind, VPath};

const ACTIONS_DIR: &str = ".openharness/actions";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenharnessAction {
    name: String,
    description: String,
    #[serde(rename = "expose")]
    _expose: Option<ActionExpose>,
    #[serde(rename = "recovery")]
    _recovery: Option<Recovery>,
    input_schema: Option<Value>,
    entry: ActionEntry,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ActionExpose {
    #[serde(rename = "to_llm")]
    _to_llm: Option<bool>,
    #[serde(rename = "callable_by_user")]
    _callable_by_user: Option<bool>,
    #[serde(rename = "callable_by_api")]
    _callable_by_api: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Recovery {
    #[serde(rename = "retry_policy")]
    _retry_policy: Option<RetryPolicy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RetryPolicy {
    Manual,
    Safe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionEntry {
    command: String,
    #[serde(default, rename = "environment")]
    _environment: BTreeMap<String, String>,
    cwd: Option<String>,
    timeout_seconds: Option<u64>,
}

/// Returns the names of all actions, after checking them. Running them comes in a later version.
pub(super) async fn load_actions(draft: &mut Draft<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (folder, kind) in draft.list_dir(ACTIONS_DIR).await {
        if kind != FileKind::Directory || folder.starts_with('.') {
            continue;
        }
        let path = format!("{ACTIONS_DIR}/{folder}/ACTION.yaml");
        let Some(document) = draft.load_inactive_yaml(&path, VariableSyntax::Env).await else {
            continue;
        };
        let Some(action) = draft.ok_or_note(document.deserialize_into::<OpenharnessAction>())
        else {
            continue;
        };
        for (key, message) in action.problems() {
            draft.note(document.error(key, format!("{key}: {message}")));
        }
        if names.contains(&action.name) {
            draft.note(document.error(
                "name",
                format!("name: there are two actions `{}`; rename one", action.name),
            ));
            continue;
        }
        let command = &action.entry.command;
        let summary = format!("runs `{command}` as the action {}", action.name);
        draft.declare_part(ActingKind::Tool, &path, (summary, named_in_line(command)));
        note_inactive_action(draft, &document, &action.name);
        names.push(action.name);
    }
    names
}

fn note_inactive_action(draft: &mut Draft<'_>, document: &SettingsDocument, name: &str) {
    let message = format!("the action `{name}`: actions run in a later version");
    draft.note(document.finding(Severity::Inactive, "name", message));
}

impl OpenharnessAction {
    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if !is_valid_name(&self.name) {
            problems.push((
                "name",
                format!("{:?} must be letters, digits, `.`, `_` and `-`", self.name),
            ));
        }
        if self.description.trim().is_empty() {
            problems.push((
                "description",
                "is empty; the model chooses an action by it".to_owned(),
            ));
        }
        if self.entry.command.trim().is_empty() {
            problems.push(("entry.command", "is empty".to_owned()));
        }
        if self.entry.timeout_seconds == Some(0) {
            problems.push(("entry.timeout_seconds", "must be at least 1".to_owned()));
        }
        if let Some(Err(error)) = self.entry.cwd.as_deref().map(VPath::parse) {
            problems.push(("entry.cwd", error.to_string()));
        }
        match &self.input_schema {
            None => {}
            Some(schema) if !schema.is_object() => {
                problems.push(("input_schema", "a JSON schema is needed here".to_owned()))
            }
            Some(schema) => {
                let wrong = jsonschema::validator_for(schema).err();
                problems.extend(
                    wrong.map(|error| ("input_schema", format!("is not a JSON schema: {error}"))),
                );
            }
        }
        problems
    }
}
