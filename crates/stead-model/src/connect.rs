//! Creating a model from its name and settings.
//!
//! Effects: randomness, the local disk (writes).

use crate::catalogue::known_models;
use crate::http::{HttpModel, HttpSettings, is_loopback};
use crate::key_policy::{KeyPolicy, KeySource};
use crate::local::{LOCAL_PROVIDERS, connect_local};
use crate::overrides::WithOverrides;
use crate::providers::{KeyNeed, Provider, WireKind, find, providers};
use crate::reported_limits::limits_queries;
use crate::retry::{FallbackModel, RateLimitPatience, RetryingModel};
use crate::wire::anthropic::Anthropic;
use crate::wire::gemini::Gemini;
use crate::wire::openai::OpenAi;
use crate::wire::responses::Responses;
use crate::wire::{Wire, WireMode};
use crate::{Abilities, Model, ModelError, ModelFacts, ModelSettings};
use std::sync::Arc;
use stead_core::Redactor;

const DEFAULT_MAX_RETRIES: u32 = 4;

/// A lookup of environment variables, provided by the caller.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A parsed `provider:model` name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName {
    /// The part before the first colon.
    pub provider: String,
    /// The part after it, which may contain further colons, as in `ollama:qwen3:8b`.
    pub model: String,
}

impl std::str::FromStr for ModelName {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        let (provider, model) = match name.trim().split_once(':') {
            Some((provider, model)) => (provider.trim(), model.trim()),
            None => ("", name.trim()),
        };
        if provider.is_empty() || model.is_empty() {
            let advice = match names_with(model) {
                names if names.is_empty() => {
                    "a model is named as provider:model, for example anthropic:claude-sonnet-5-5"
                        .to_owned()
                }
                names => format!("did you mean {}?", names.join(" or ")),
            };
            return Err(ModelError::Config(format!(
                "{name:?} is not a model name: {advice}"
            )));
        }
        Ok(Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
        })
    }
}

/// Returns the full names of the models in the table that a provider calls `model`.
fn names_with(model: &str) -> Vec<String> {
    let names = known_models().map(|(name, _)| name);
    let is_it = |name: &String| name.split_once(':').is_some_and(|(_, rest)| rest == model);
    names.filter(is_it).collect()
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)
    }
}

/// Creates the model that `settings` describe, with its retries and fallbacks. Nothing is sent yet;
/// missing or invalid settings are reported now.
///
/// Keys are sent to every endpoint that the settings name: see [`connect_with`].
pub fn connect(settings: &ModelSettings, env: EnvLookup<'_>) -> Result<Arc<dyn Model>, ModelError> {
    let rules = SecretRules {
        keys: &KeyPolicy::default(),
        redactor: &Redactor::new(secrets(settings, env)),
    };
    connect_with(settings, env, rules)
}

/// What holds for secrets when a model is connected to.
#[derive(Debug, Clone, Copy)]
pub struct SecretRules<'a> {
    /// Which endpoints may be sent which keys.
    pub keys: &'a KeyPolicy,
    /// The secrets that tapes of `record:` models must not hold.
    pub redactor: &'a Redactor,
}

/// Creates the model that `settings` describe as [`connect()`] does, by these rules.
pub fn connect_with(
    settings: &ModelSettings,
    env: EnvLookup<'_>,
    rules: SecretRules<'_>,
) -> Result<Arc<dyn Model>, ModelError> {
    if !settings.fallbacks.is_empty() {
        return connect_with_fallbacks(settings, env, rules);
    }
    connect_alone(settings, env, rules, RateLimitPatience::UntilStopped)
}

/// Creates the model that `settings` describe, without its fallbacks.
fn connect_alone(
    settings: &ModelSettings,
    env: EnvLookup<'_>,
    rules: SecretRules<'_>,
    patience: RateLimitPatience,
) -> Result<Arc<dyn Model>, ModelError> {
    let name: ModelName = settings.name.parse()?;
    // Without retries of its own: those around the recorder let it see every attempt.
    let recorded = |inner: &str| {
        let inner = ModelSettings {
            name: inner.to_owned(),
            max_retries: Some(0),
            ..settings.clone()
        };
        connect_with(&inner, env, rules)
    };
    let (provider, rest) = (&name.provider, &name.model);
    let local = connect_local(provider, rest, settings.price, rules.redactor, recorded);
    let model: Arc<dyn Model> = match local {
        Some(model) => model?,
        None => {
            let settings = http_settings(&name, settings, env, rules.keys)?;
            Arc::new(HttpModel::new(settings)?)
        }
    };
    let max_retries = settings.max_retries.unwrap_or(DEFAULT_MAX_RETRIES);
    let retrying = Arc::new(RetryingModel::new(model, max_retries, patience));
    let window = settings.context_window.map(u64::from);
    let abilities = abilities(settings);
    if window.is_none() && abilities.is_none() {
        return Ok(retrying);
    }
    Ok(Arc::new(WithOverrides::new(retrying, window, abilities)))
}

/// Creates the model that `settings` describe, and those that are asked after it.
fn connect_with_fallbacks(
    settings: &ModelSettings,
    env: EnvLookup<'_>,
    rules: SecretRules<'_>,
) -> Result<Arc<dyn Model>, ModelError> {
    let alone = ModelSettings {
        fallbacks: Vec::new(),
        ..settings.clone()
    };
    // Another model need not be waited for.
    let first = connect_alone(&alone, env, rules, RateLimitPatience::AsOtherFailures)?;
    let others = settings.fallbacks.iter().map(|name| {
        let fallback = ModelSettings {
            name: name.clone(),
            // Endpoint, key and facts belong to the first model alone.
            base_url: None,
            api_key: None,
            context_window: None,
            abilities: None,
            price: None,
            ..alone.clone()
        };
        connect_with(&fallback, env, rules)
    });
    let others = others.collect::<Result<_, ModelError>>()?;
    Ok(Arc::new(FallbackModel::new(first, others)))
}

/// Checks that the provider of a model name exists.
pub fn check_name(name: &str) -> Result<(), ModelError> {
    let name: ModelName = name.parse()?;
    let known = LOCAL_PROVIDERS.contains(&name.provider.as_str()) || find(&name.provider).is_some();
    if known {
        Ok(())
    } else {
        Err(unknown_provider(&name))
    }
}

/// Returns the canonical name of the provider `name`, or `None` if it is unknown.
pub fn provider_name(name: &str) -> Option<&'static str> {
    let local = LOCAL_PROVIDERS.into_iter().find(|local| *local == name);
    local.or_else(|| find(name).map(|provider| provider.name))
}

/// Returns whether a provider can be told how long to keep the beginning of a request.
pub fn supports_caching(provider: &str) -> bool {
    find(provider).is_some_and(|provider| match provider.wire {
        WireKind::Anthropic => true,
        WireKind::OpenAi(_) | WireKind::Responses | WireKind::Gemini => false,
    })
}

/// Returns the values of all keys that a model could use, so that they can be redacted.
pub fn secrets(settings: &ModelSettings, env: EnvLookup<'_>) -> Vec<String> {
    let variables = providers()
        .iter()
        .flat_map(|provider| provider.key_variables);
    let keys = variables
        .filter_map(|variable| env(variable))
        .chain(settings.api_key.clone());
    let mut keys: Vec<String> = keys
        .map(|key| key.trim().to_owned())
        .filter(|key| !key.is_empty())
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Returns the settings of a model that is reached over HTTP.
fn http_settings(
    name: &ModelName,
    settings: &ModelSettings,
    env: EnvLookup<'_>,
    keys: &KeyPolicy,
) -> Result<HttpSettings, ModelError> {
    let provider = find(&name.provider).ok_or_else(|| unknown_provider(name))?;
    let Endpoint { base_url, key } = resolve_endpoint(
        provider,
        name,
        settings.base_url.as_ref(),
        settings.api_key.as_ref(),
        env,
        keys,
    )?;
    Ok(HttpSettings {
        facts: facts(name, settings),
        base_url: without_version(provider.wire, &base_url).to_owned(),
        wire: wire_for(
            provider.wire,
            &name.model,
            facts(name, settings).max_output_tokens,
        ),
        key,
        limits_queries: limits_queries(provider.wire, &name.model),
        mode: if settings.stream == Some(false) {
            WireMode::Whole
        } else {
            WireMode::Stream
        },
        timeouts: settings.timeouts.clone(),
    })
}

/// The address and key of a provider.
pub(crate) struct Endpoint {
    pub(crate) base_url: String,
    pub(crate) key: Option<String>,
}

/// Returns the endpoint of `provider`: from the settings, from its variables, or its default.
pub(crate) fn resolve_endpoint(
    provider: &'static Provider,
    name: &ModelName,
    base_url: Option<&String>,
    api_key: Option<&String>,
    env: EnvLookup<'_>,
    keys: &KeyPolicy,
) -> Result<Endpoint, ModelError> {
    let given = |text: Option<String>| {
        text.map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let base_url = given(base_url.cloned())
        .or_else(|| given(env(provider.base_url_variable)))
        .or_else(|| provider.base_url.map(str::to_owned))
        .ok_or_else(|| missing_setting(name, "base_url", provider.base_url_variable))?;
    let variables = provider.key_variables.iter();
    let key = match given(api_key.cloned()) {
        Some(key) => KeySource::Settings(key),
        None => variables
            .filter_map(|variable| given(env(variable)))
            .next()
            .map_or(KeySource::Absent, KeySource::Variable),
    };
    let key = keys.key_for(name, provider, &base_url, key)?;
    let local = reqwest::Url::parse(&base_url).is_ok_and(|url| is_loopback(&url));
    if key.is_none() && provider.key == KeyNeed::Required && !local {
        return Err(missing_setting(
            name,
            "api_key",
            provider.key_variables.first().copied().unwrap_or_default(),
        ));
    }
    Ok(Endpoint { base_url, key })
}

fn wire_for(kind: WireKind, model: &str, longest_answer: Option<u64>) -> Box<dyn Wire> {
    match kind {
        WireKind::Anthropic => Box::new(Anthropic::new(model).with_longest_answer(longest_answer)),
        WireKind::OpenAi(dialect) => Box::new(OpenAi::new(model, dialect)),
        WireKind::Responses => Box::new(Responses::new(model)),
        WireKind::Gemini => Box::new(Gemini::new(model)),
    }
}

/// Removes `/v1` from Anthropic's base URL, which people often include.
fn without_version(kind: WireKind, base_url: &str) -> &str {
    let base_url = base_url.trim_end_matches('/');
    match kind {
        WireKind::Anthropic => base_url.strip_suffix("/v1").unwrap_or(base_url),
        WireKind::OpenAi(_) | WireKind::Responses | WireKind::Gemini => base_url,
    }
}

/// Returns what the catalogue has on a model, with the price and abilities of the settings.
fn facts(name: &ModelName, settings: &ModelSettings) -> ModelFacts {
    let facts = ModelFacts::from_catalogue(name.to_string());
    ModelFacts {
        price: settings.price.or(facts.price),
        abilities: abilities(settings).or(facts.abilities),
        ..facts
    }
}

fn abilities(settings: &ModelSettings) -> Option<Abilities> {
    settings
        .abilities
        .as_ref()
        .map(|abilities| abilities.iter().copied().collect())
}

fn missing_setting(name: &ModelName, field: &str, variable: &str) -> ModelError {
    ModelError::Config(format!(
        "{name} needs {field}: set the variable {variable}, or `{field}` in the model's settings"
    ))
}

fn unknown_provider(name: &ModelName) -> ModelError {
    let known: Vec<&str> = providers()
        .iter()
        .map(|provider| provider.name)
        .chain(LOCAL_PROVIDERS)
        .collect();
    ModelError::Config(format!(
        "{name}: no provider is named {:?}; known are {}",
        name.provider,
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests;
