//! `stead explain`: the value of a setting, and its origin.
//!
//! Effects: the environment, the terminal, workspace files (reads), the local disk (reads).

use super::args::{ExplainArgs, GlobalArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, workspace_dir};
use super::open_agent::{configured_model, open_workspace, without_model};
use super::print::{out_json, outln};
use super::style::Style;
use serde_json::{Value, json};
use std::process::ExitCode;
use stead::core::Redactor;
use stead::tools::closest_name;
use stead::workspace::{ProfileSetting, ResolvedProfile, SettingOrigin, Workspace};

pub(crate) async fn explain(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &ExplainArgs,
) -> Result<ExitCode, CliError> {
    let dir = workspace_dir(common, env)?;
    let workspace =
        open_workspace(&dir, without_model(open_options(common, env, &dir)?), env).await?;
    let redactor = Redactor::new(workspace.config().secrets.clone());
    let mut settings = serde_json::to_value(workspace.config()).map_err(anyhow::Error::from)?;
    redact(&mut settings, &redactor);
    let profile = ProfileRows::load(
        configured_model(common, env, &dir, &workspace).map(|settings| settings.name),
        &workspace,
    )
    .await?;
    let given = profile.select(args.key.as_deref())?;
    let keys = match &args.key {
        Some(key) if is_profile(key) => Vec::new(),
        Some(key) => vec![require_known_key(key, &settings)?],
        None => set_keys(&workspace)
            .into_iter()
            .filter(|key| value_at(&settings, key).is_some())
            .collect(),
    };
    let has_personal = !env.personal.origins.is_empty();
    if keys.is_empty() && given.is_empty() && !has_personal && !args.json {
        outln!("nothing is set: every setting has its default (`stead schema` describes them)");
    }
    let style = Style::stdout(env);
    let set = keys.into_iter().map(|key| {
        let value = value_at(&settings, &key).cloned().unwrap_or_default();
        let origin = setting_origin(&workspace, &key);
        (key, value, origin)
    });
    let personal = match args.key {
        Some(_) => Vec::new(),
        None => personal_rows(env, &workspace),
    };
    for (key, value, origin) in set.chain(personal).chain(given) {
        if args.json {
            out_json(&json!({"key": key, "value": value, "origin": origin}));
            continue;
        }
        let from = match origin {
            Some(SettingOrigin {
                source,
                place: Some(place),
            }) => format!("{source}:{}:{}", place.line, place.column),
            Some(SettingOrigin {
                source,
                place: None,
            }) => source,
            None => "default".to_owned(),
        };
        outln!(
            "{} = {}  {}",
            style.bold(&key),
            value.to_string(),
            style.dim(&format!("({from})"))
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the person's own settings that count in this workspace, as rows of the listing. No key
/// is shown.
fn personal_rows(env: &ProcessEnv, workspace: &Workspace) -> Vec<SettingRow> {
    let personal = &env.personal;
    let origin = |key: &str| personal.origins.get(key).cloned();
    let mut rows = Vec::new();
    let names_none = workspace
        .config()
        .model
        .as_ref()
        .is_none_or(|own| own.name.is_empty());
    if let (Some(model), true) = (&personal.model, names_none) {
        rows.push(("model.name".to_owned(), json!(model), origin("model")));
    }
    for (name, provider) in &personal.providers {
        let key = |field: &str| format!("providers.{name}.{field}");
        let base_url = provider
            .base_url
            .as_ref()
            .map(|url| ("base_url", json!(url)));
        let api_key = provider.api_key.as_ref().map(|_| ("api_key", json!("•••")));
        let hosts = Some(&provider.hosts).filter(|hosts| !hosts.is_empty());
        let hosts = hosts.map(|hosts| ("hosts", json!(hosts)));
        for (field, value) in [base_url, api_key, hosts].into_iter().flatten() {
            rows.push((key(field), value, origin(&key(field))));
        }
    }
    rows
}

/// The profiles of the model that a run would use, as rows of the listing.
struct ProfileRows {
    rows: Vec<SettingRow>,
}

/// A key with its value and the origin of the value.
type SettingRow = (String, Value, Option<SettingOrigin>);

impl ProfileRows {
    async fn load(model: Option<String>, workspace: &Workspace) -> Result<Self, CliError> {
        let model = model.unwrap_or_else(|| "none".to_owned());
        let all = workspace.profiles(&*workspace.files, |_| true).await?;
        let resolved = ResolvedProfile::new(all, &model);
        if resolved.layers.is_empty() {
            return Ok(Self { rows: Vec::new() });
        }
        let from = |source: String| {
            Some(SettingOrigin {
                source,
                place: None,
            })
        };
        let applied: Vec<String> = resolved.layers.iter().map(ToString::to_string).collect();
        let mut rows = vec![("profiles".to_owned(), json!(applied), from(model.clone()))];
        for ProfileSetting {
            key,
            value,
            source: by,
        } in resolved.settings()
        {
            let by = match overriding_setting(&key, workspace) {
                Some(setting) => format!("{by}; overridden by {setting}"),
                None => by,
            };
            rows.push((format!("profile.{key}"), value, from(by)));
        }
        Ok(Self { rows })
    }

    /// Returns the selected rows.
    fn select(self, key: Option<&str>) -> Result<Vec<SettingRow>, CliError> {
        let Some(key) = key else { return Ok(self.rows) };
        let below = |row: &SettingRow| {
            row.0
                .strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let rows: Vec<SettingRow> = self.rows.into_iter().filter(below).collect();
        if rows.is_empty() && is_profile(key) {
            return Err(CliError::usage(match key {
                "profiles" => "no profile applies to the model (-m names another)".to_owned(),
                _ => format!(
                    "no profile of the model sets {key} (`stead explain profiles` lists what they set)"
                ),
            }));
        }
        Ok(rows)
    }
}

/// Whether a key belongs to profiles.
fn is_profile(key: &str) -> bool {
    ["profile", "profiles"].contains(&key.split('.').next().unwrap_or_default())
}

/// Returns the agent's own setting that overrides one of a profile, if it is set.
fn overriding_setting(key: &str, workspace: &Workspace) -> Option<&'static str> {
    let config = workspace.config();
    let model = config.model.as_ref();
    match key {
        "surface" => config.surface.map(|_| "surface"),
        "temperature" => model
            .and_then(|model| model.temperature)
            .map(|_| "model.temperature"),
        "thinking_tokens" => model
            .and_then(|model| model.thinking_tokens)
            .map(|_| "model.thinking_tokens"),
        _ => None,
    }
}

/// Returns the keys that are set somewhere, without those that only contain others.
fn set_keys(workspace: &Workspace) -> Vec<String> {
    let all: Vec<&String> = workspace.definition.origins.keys().collect();
    let holds = |key: &str| {
        all.iter().any(|other| {
            other
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(['.', '[']))
        })
    };
    all.iter()
        .filter(|key| !holds(key))
        .map(|key| (*key).clone())
        .collect()
}

/// Returns the origin of a key, or of the nearest key that contains it.
fn setting_origin(workspace: &Workspace, key: &str) -> Option<SettingOrigin> {
    let mut key = key;
    loop {
        if let Some(origin) = workspace.definition.origins.get(key) {
            return Some(origin.clone());
        }
        key = &key[..key.rfind(['.', '['])?];
    }
}

/// Returns the key if it names a setting.
fn require_known_key(key: &str, settings: &Value) -> Result<String, CliError> {
    if value_at(settings, key).is_some() {
        return Ok(key.to_owned());
    }
    let mut names = Vec::new();
    collect_keys("", settings, &mut names);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint =
        closest_name(key, &names).map_or(String::new(), |near| format!("; did you mean {near}?"));
    Err(CliError::usage(format!(
        "there is no setting {key}{hint} (`stead schema` describes all)"
    )))
}

fn value_at<'a>(settings: &'a Value, key: &str) -> Option<&'a Value> {
    let pointer = format!("/{}", key.replace(['.', '['], "/").replace(']', ""));
    settings.pointer(&pointer)
}

fn collect_keys(prefix: &str, value: &Value, names: &mut Vec<String>) {
    let Value::Object(fields) = value else { return };
    for (name, field) in fields {
        let key = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        collect_keys(&key, field, names);
        names.push(key);
    }
}

fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.redact(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redactor)),
        Value::Object(fields) => {
            for (name, field) in fields {
                redact(field, redactor);
                if name == "api_key" && field.is_string() {
                    *field = "•••".into();
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
