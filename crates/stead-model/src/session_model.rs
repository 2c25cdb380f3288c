//! The settings of a model as a session's journal records them.
//!
//! Effects: the environment.

use crate::connect::EnvLookup;
use crate::local::LOCAL_PROVIDERS;
use crate::providers::find;
use crate::{ModelError, ModelSettings};
use serde_json::{Map, Value};
use stead_core::{ModelScope, SessionModel};

/// The fields of the settings that are recorded under a name of their own, or never.
const NOT_RECORDED: [&str; 5] = ["name", "base_url", "api_key", "provider", "model"];

impl ModelSettings {
    /// Returns these settings as a journal records them: with the endpoint that is used, without
    /// keys and without settings that have their default value.
    pub fn to_session_model(&self, scope: ModelScope, env: EnvLookup<'_>) -> SessionModel {
        let absolute = |name: &String| Value::from(absolute_file(name));
        let own = serde_json::to_value(Self {
            fallbacks: Vec::new(),
            ..self.clone()
        });
        let usual = serde_json::to_value(Self::default());
        let mut settings = match (own, usual) {
            (Ok(Value::Object(own)), Ok(Value::Object(usual))) => own
                .into_iter()
                .filter(|(key, value)| {
                    !NOT_RECORDED.contains(&key.as_str()) && usual.get(key) != Some(value)
                })
                .collect(),
            (_, _) => Map::new(),
        };
        if !self.fallbacks.is_empty() {
            let fallbacks: Vec<Value> = self.fallbacks.iter().map(absolute).collect();
            settings.insert("fallbacks".to_owned(), Value::from(fallbacks));
        }
        SessionModel {
            name: absolute_file(&self.name),
            base_url: self.endpoint(env).map(without_credentials),
            key_variable: self.key_variable(env),
            settings,
            scope,
        }
    }

    /// Returns the variable that holds the key, if the settings do not contain one.
    fn key_variable(&self, env: EnvLookup<'_>) -> Option<String> {
        let provider = find(self.name.split(':').next()?)?;
        let is_set = |variable: &&&str| env(variable).is_some_and(|key| !key.trim().is_empty());
        match self.api_key {
            Some(_) => None,
            None => provider
                .key_variables
                .iter()
                .find(is_set)
                .map(|variable| (*variable).to_owned()),
        }
    }

    /// Returns the settings that a journal recorded. Fails if the session began with a key that
    /// `env` does not have.
    pub fn from_session_model(
        recorded: &SessionModel,
        env: EnvLookup<'_>,
    ) -> Result<Self, ModelError> {
        let missing = recorded
            .key_variable
            .as_ref()
            .filter(|variable| env(variable).is_none_or(|key| key.trim().is_empty()));
        if let Some(variable) = missing {
            let message = format!("its key is missing: set the variable {variable}");
            return Err(ModelError::Config(message));
        }
        let settings = Value::Object(recorded.settings.clone());
        let settings: Self = serde_json::from_value(settings).map_err(|error| {
            let name = &recorded.name;
            ModelError::Config(format!(
                "the recorded settings of {name} are wrong: {error}"
            ))
        })?;
        Ok(Self {
            name: recorded.name.clone(),
            base_url: recorded.base_url.clone(),
            ..settings
        })
    }

    /// Returns the endpoint, unless it is the provider's default.
    fn endpoint(&self, env: EnvLookup<'_>) -> Option<String> {
        let provider = find(self.name.split(':').next()?)?;
        let given = |text: Option<String>| {
            text.map(|text| text.trim().to_owned())
                .filter(|text| !text.is_empty())
        };
        given(self.base_url.clone())
            .or_else(|| given(env(provider.base_url_variable)))
            .filter(|url| Some(url.as_str()) != provider.base_url)
    }
}

/// Makes the file of a `scripted:`, `replay:` or `record:` model absolute, because the session may
/// be continued from another folder.
fn absolute_file(name: &str) -> String {
    match name.split_once(':') {
        Some((kind, file)) if LOCAL_PROVIDERS.contains(&kind) && !file.contains(':') => {
            match std::path::absolute(file) {
                Ok(path) => format!("{kind}:{}", path.display()),
                Err(_) => name.to_owned(),
            }
        }
        Some(_) | None => name.to_owned(),
    }
}

/// Removes a user name and password from a URL.
fn without_credentials(url: String) -> String {
    let Ok(mut parsed) = reqwest::Url::parse(&url) else {
        return url;
    };
    if parsed.username().is_empty() && parsed.password().is_none() {
        return url;
    }
    match parsed.set_username("").and(parsed.set_password(None)) {
        Ok(()) => parsed.to_string(),
        Err(()) => url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timeouts;

    #[test]
    fn settings_are_recorded_without_keys_and_come_back() {
        let settings = ModelSettings {
            name: "openai:x".into(),
            base_url: Some("http://user:secret@127.0.0.1:9/v1".into()),
            api_key: Some("sk-secret".into()),
            temperature: Some(0.5),
            fallbacks: vec!["anthropic:y".into()],
            timeouts: Timeouts {
                idle_seconds: 5.0,
                ..Timeouts::default()
            },
            ..ModelSettings::default()
        };
        let recorded = settings.to_session_model(ModelScope::AllAgents, &|_| None);
        let text = serde_json::to_string(&recorded).unwrap();
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(recorded.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
        let back = ModelSettings::from_session_model(&recorded, &|_| None).unwrap();
        let expected = ModelSettings {
            base_url: recorded.base_url,
            api_key: None,
            ..settings
        };
        assert_eq!(back, expected);
    }

    #[test]
    fn a_session_that_began_with_a_key_needs_it_again() {
        let settings = ModelSettings {
            name: "openai:x".into(),
            ..ModelSettings::default()
        };
        let with_key = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-1".to_owned());
        let recorded = settings.to_session_model(ModelScope::Default, &with_key);
        assert_eq!(recorded.key_variable.as_deref(), Some("OPENAI_API_KEY"));
        assert!(ModelSettings::from_session_model(&recorded, &with_key).is_ok());
        let error = ModelSettings::from_session_model(&recorded, &|_| None).unwrap_err();
        assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
    }

    #[test]
    fn the_endpoint_that_is_used_is_recorded_and_a_default_is_not() {
        let endpoint = |base_url: Option<&str>, variable: Option<&'static str>| {
            let settings = ModelSettings {
                name: "openai:x".into(),
                base_url: base_url.map(str::to_owned),
                ..ModelSettings::default()
            };
            let lookup = move |name: &str| {
                variable
                    .filter(|_| name == "OPENAI_BASE_URL")
                    .map(str::to_owned)
            };
            settings
                .to_session_model(ModelScope::Default, &lookup)
                .base_url
        };
        assert_eq!(endpoint(None, None), None);
        assert_eq!(
            endpoint(None, Some("http://v/v1")).as_deref(),
            Some("http://v/v1")
        );
        assert_eq!(
            endpoint(Some("http://s/v1"), Some("http://v/v1")).as_deref(),
            Some("http://s/v1")
        );
    }
}
