//! `model:` of OpenPaw, and the catalogue of providers in its global settings.
//!
//! Effects: none.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stead_model::{ModelSettings, providers};

/// A model: its endpoint and the limits of a run, in one map. OpenPaw passes unknown keys to the
/// client, so the map is open.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct ModelSpec {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) api_key: Option<String>,
    pub(super) temperature: Option<f64>,
    pub(super) max_turns: Option<u32>,
    pub(super) region: Option<String>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) base_url: Option<String>,
    pub(super) max_tokens: Option<u32>,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

/// The endpoint of a provider, under a name chosen by the user.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct ProviderEntry {
    /// The provider that defines the protocol; the entry's own name if it is left out.
    #[serde(rename = "type")]
    kind: Option<String>,
    api_key: Option<String>,
    base_url: Option<String>,
    pub(super) region: Option<String>,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

impl ProviderEntry {
    /// Returns the provider and the endpoint of the entry `name`, if it names one.
    pub(super) fn endpoint(&self, name: &str) -> Option<(String, String)> {
        let provider = self.kind.clone().unwrap_or_else(|| name.to_owned());
        Some((provider, self.base_url.clone()?))
    }
}

/// Deserializes `provider:model` or a map.
pub(super) fn spelled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelSpec, D::Error> {
    struct ModelSpecVisitor;
    impl<'de> serde::de::Visitor<'de> for ModelSpecVisitor {
        type Value = ModelSpec;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`provider:model`, or a map with `provider:` and `model:`")
        }
        fn visit_str<E>(self, name: &str) -> Result<ModelSpec, E> {
            Ok(ModelSpec {
                model: Some(name.to_owned()),
                ..ModelSpec::default()
            })
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<ModelSpec, A::Error> {
            ModelSpec::deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }
        fn visit_unit<E>(self) -> Result<ModelSpec, E> {
            Ok(ModelSpec::default())
        }
        fn visit_none<E>(self) -> Result<ModelSpec, E> {
            Ok(ModelSpec::default())
        }
    }
    deserializer.deserialize_any(ModelSpecVisitor)
}

/// Returns the value as a map with separate `provider` and `model`, if possible.
pub(super) fn normalize(value: Value) -> Value {
    let mut map = match value {
        Value::String(name) => Map::from_iter([("model".to_owned(), Value::String(name))]),
        Value::Object(map) => map,
        other => return other,
    };
    let named = map
        .get("provider")
        .is_some_and(|provider| !provider.is_null());
    let split = match map.get("model").and_then(Value::as_str) {
        Some(name) if !named => name
            .split_once(':')
            .map(|(provider, model)| (provider.to_owned(), model.to_owned())),
        Some(_) | None => None,
    };
    if let Some((provider, model)) = split {
        map.insert("provider".to_owned(), provider.into());
        map.insert("model".to_owned(), model.into());
    }
    Value::Object(map)
}

impl ModelSpec {
    /// Returns the entry of `catalogue` for the model's provider.
    pub(super) fn provider_entry<'a>(
        &self,
        catalogue: &'a BTreeMap<String, ProviderEntry>,
    ) -> Option<&'a ProviderEntry> {
        catalogue.get(self.provider.as_ref()?)
    }

    /// Returns the settings of the model, with its provider from `catalogue`. The error has the key
    /// it is about.
    pub(super) fn settings(
        &self,
        catalogue: &BTreeMap<String, ProviderEntry>,
    ) -> Result<Option<ModelSettings>, (&'static str, String)> {
        let Some(model) = self
            .model
            .as_deref()
            .filter(|model| !model.trim().is_empty())
        else {
            return match &self.provider {
                None => Ok(None),
                Some(provider) => Err((
                    "model",
                    format!("model: which model of {provider}? Set model.model"),
                )),
            };
        };
        let Some(provider) = self
            .provider
            .as_deref()
            .filter(|provider| !provider.trim().is_empty())
        else {
            return Err((
                "model",
                format!("model: {model:?} is not a model name: provider:model is needed"),
            ));
        };
        let entry = self.provider_entry(catalogue).cloned().unwrap_or_default();
        Ok(Some(ModelSettings {
            name: format!("{}:{model}", entry.kind.as_deref().unwrap_or(provider)),
            base_url: self.base_url.clone().or(entry.base_url),
            // A variable that is not set leaves an empty key.
            api_key: [self.api_key.clone(), entry.api_key]
                .into_iter()
                .flatten()
                .find(|key| !key.is_empty()),
            max_output_tokens: self.max_tokens,
            temperature: self.temperature,
            ..ModelSettings::default()
        }))
    }
}

/// Whether the provider is supported.
pub(super) fn is_supported_provider(provider: &str) -> bool {
    let over_network = providers()
        .iter()
        .any(|known| known.name == provider || known.aliases.contains(&provider));
    over_network || ["scripted", "record", "replay"].contains(&provider)
}
