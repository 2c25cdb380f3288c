//! The models of the openharness layout: `models/*.yaml` of workspace and platform, and aliases.
//!
//! Effects: workspace files (reads).

use super::common::{TextOr, note_inactive_under, suggestion};
use super::{list_definitions, settings::OpenharnessSettings};
use crate::layout::{Draft, SettingsRoot, unresolved_severity};
use crate::{Finding, SettingsDocument, Severity};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stead_core::{UnsetVariable, VariableSyntax};
use stead_model::{ModelSettings, providers};

/// All models that can be referred to.
#[derive(Default)]
pub(super) struct OpenharnessModels {
    /// The models by reference: `platform/x`, `workspace/x`.
    by_reference: BTreeMap<String, ModelSettings>,
    /// The models that need a variable that is not set, with that variable.
    unset: BTreeMap<String, String>,
    aliases: BTreeMap<String, ResolvedModel>,
    /// The aliases whose model is missing, with that model.
    broken_aliases: BTreeMap<String, String>,
}

/// A model with its reference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResolvedModel {
    pub(super) reference: String,
    pub(super) settings: ModelSettings,
}

/// An alias with its own settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelAlias {
    #[serde(rename = "ref")]
    reference: String,
    temperature: Option<f64>,
    #[serde(rename = "top_p")]
    _top_p: Option<f64>,
    max_tokens: Option<u32>,
}

/// An entry of a file of models.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelEntry {
    provider: String,
    name: String,
    key: Option<String>,
    url: Option<String>,
    #[serde(rename = "metadata")]
    _metadata: Option<Map<String, Value>>,
}

/// Loads the models of both trees, and the aliases in the settings.
pub(super) async fn load_models(
    draft: &mut Draft<'_>,
    settings: Option<&OpenharnessSettings>,
) -> OpenharnessModels {
    let mut models = OpenharnessModels::default();
    for (side, folder) in [
        (SettingsRoot::Platform, "models"),
        (SettingsRoot::Workspace, ".openharness/models"),
    ] {
        for path in list_definitions(draft, side, folder, ".yaml").await {
            if let Some((document, unset)) = draft
                .load_yaml_with_unset(side, &path, VariableSyntax::AllOrEnv)
                .await
            {
                models.add(draft, &document, side, &unset);
            }
        }
    }
    if let Some(settings) = settings {
        models.add_aliases(draft, settings);
    }
    models
}

impl OpenharnessModels {
    fn add(
        &mut self,
        draft: &mut Draft<'_>,
        document: &SettingsDocument,
        side: SettingsRoot,
        unset: &[UnsetVariable],
    ) {
        let prefix = match side {
            SettingsRoot::Platform => "platform",
            SettingsRoot::Workspace => "workspace",
        };
        let severity = match side {
            // A platform may offer more models than a workspace has keys for.
            SettingsRoot::Platform => Severity::Warning,
            SettingsRoot::Workspace => unresolved_severity(draft),
        };
        for missing in unset {
            draft.note(Finding {
                severity,
                ..document.unset_variable_finding(missing)
            });
        }
        let Some(entries) =
            draft.ok_or_note(document.deserialize_into::<BTreeMap<String, ModelEntry>>())
        else {
            return;
        };
        for (name, entry) in entries {
            let reference = format!("{prefix}/{name}");
            let needs = |missing: &&UnsetVariable| {
                VARIABLE_FIELDS
                    .iter()
                    .any(|field| missing.key == format!("{name}.{field}"))
            };
            if let Some(missing) = unset.iter().find(needs) {
                self.unset.insert(reference, missing.name.clone());
                continue;
            }
            if let Err((key, message)) = entry.check() {
                draft.note(
                    document.error(&format!("{name}.{key}"), format!("{name}.{key}: {message}")),
                );
                continue;
            }
            note_inactive_under(
                draft,
                document,
                &[&name, "metadata"],
                "is used in a later version",
            );
            if self.by_reference.contains_key(&reference) {
                draft.note(document.error(
                    &name,
                    format!("there are two models `{reference}`; rename one"),
                ));
                continue;
            }
            // A URL is not a secret; redacting it would garble ordinary text.
            draft
                .config
                .secrets
                .retain(|secret| Some(secret) != entry.url.as_ref());
            let settings = ModelSettings {
                reference: Some(reference.clone()),
                ..entry.settings()
            };
            if let (SettingsRoot::Platform, Some(url)) = (side, &settings.base_url) {
                let named = (settings.name.clone(), url.clone());
                draft.platform_endpoints.push(named);
            }
            // A key is a secret even if its model is not used.
            draft.config.secrets.extend(settings.api_key.clone());
            self.by_reference.insert(reference, settings);
        }
    }

    fn add_aliases(&mut self, draft: &mut Draft<'_>, settings: &OpenharnessSettings) {
        for (alias, target) in &settings.models {
            let key = format!("models.{alias}");
            let (reference, at) = match target {
                TextOr::Text(reference) => (reference, key.clone()),
                TextOr::Settings(alias) => (&alias.reference, format!("{key}.ref")),
            };
            note_inactive_under(
                draft,
                &settings.document,
                &["models", alias, "top_p"],
                TOP_P_INACTIVE,
            );
            let Some(known) = self.by_reference.get(reference) else {
                let message = format!("{key}: {}", self.unknown_model_message(reference));
                // It stops a run only if the main agent uses it.
                draft.note(settings.document.finding(Severity::NonFatal, &at, message));
                self.broken_aliases.insert(alias.clone(), reference.clone());
                continue;
            };
            let mut known = known.clone();
            if let TextOr::Settings(ModelAlias {
                temperature,
                max_tokens,
                ..
            }) = target
            {
                (known.temperature, known.max_output_tokens) = (*temperature, *max_tokens);
            }
            self.aliases.insert(
                alias.clone(),
                ResolvedModel {
                    reference: reference.clone(),
                    settings: known,
                },
            );
        }
    }

    /// Returns the model for `written`, which is an alias or a reference.
    pub(super) fn resolve(&self, written: &str) -> Result<ResolvedModel, String> {
        if let Some(resolved) = self.aliases.get(written) {
            return Ok(resolved.clone());
        }
        let known = self
            .by_reference
            .get(written)
            .ok_or_else(|| self.unknown_model_message(written))?;
        Ok(ResolvedModel {
            reference: written.to_owned(),
            settings: known.clone(),
        })
    }

    fn unknown_model_message(&self, written: &str) -> String {
        if let Some(variable) = self.unset.get(written) {
            return format!(
                "the model `{written}` needs the variable {variable}, which is not set"
            );
        }
        if let Some(reference) = self.broken_aliases.get(written) {
            return format!(
                "the model `{written}` is `{reference}`: {}",
                self.unknown_model_message(reference)
            );
        }
        let known = self
            .by_reference
            .keys()
            .chain(self.aliases.keys())
            .map(String::as_str);
        let has_platform = self
            .by_reference
            .keys()
            .any(|name| name.starts_with("platform/"));
        match written.split_once('/') {
            Some(("platform", _)) if !has_platform => {
                format!("there is no model `{written}`, for no platform with models is given")
            }
            Some(_) | None => {
                format!(
                    "there is no model `{written}`{}",
                    suggestion(written, known)
                )
            }
        }
    }
}

/// The fields of a model in which variables are replaced.
const VARIABLE_FIELDS: [&str; 4] = ["provider", "name", "key", "url"];

/// The reason why `top_p` has no effect.
pub(super) const TOP_P_INACTIVE: &str = "is sent to models in a later version";

impl ModelEntry {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let provider = providers()
            .iter()
            .find(|known| known.name == self.provider || known.aliases.contains(&&*self.provider));
        let Some(provider) = provider else {
            let known = providers().iter().map(|provider| provider.name);
            return Err((
                "provider",
                format!(
                    "there is no provider `{}`{}",
                    self.provider,
                    suggestion(&self.provider, known)
                ),
            ));
        };
        if self.name.trim().is_empty() {
            return Err((
                "name",
                "is empty; name the model as its provider does".to_owned(),
            ));
        }
        match &self.url {
            None if provider.base_url.is_none() => {
                Err(("provider", format!("{} needs a `url`", self.provider)))
            }
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err((
                "url",
                format!("{url:?} is not an address; it begins with http:// or https://"),
            )),
            None | Some(_) => Ok(()),
        }
    }

    fn settings(self) -> ModelSettings {
        ModelSettings {
            name: format!("{}:{}", self.provider, self.name),
            base_url: self.url,
            api_key: self.key.filter(|key| !key.is_empty()),
            ..ModelSettings::default()
        }
    }
}
