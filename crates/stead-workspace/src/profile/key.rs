//! The models that a profile applies to.
//!
//! Effects: none.

use std::fmt;
use std::str::FromStr;
use stead_core::Hint;
use stead_model::{ModelName, provider_name, providers};

/// The models that a profile applies to: `provider`, `provider:model`, or `provider:prefix*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileKey {
    /// The provider's usual name, for any of its names in the file.
    provider: &'static str,
    pattern: ModelPattern,
}

/// The models of a provider that a key covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ModelPattern {
    All,
    /// All models with names that start with this text.
    Prefix(String),
    Exact(String),
}

impl ProfileKey {
    /// Whether the key covers the model. `name` is `provider:model`, with any name of the provider.
    pub fn covers(&self, name: &str) -> bool {
        let Ok(ModelName { provider, model }) = name.parse() else {
            return false;
        };
        let of_provider = provider_name(&provider) == Some(self.provider);
        of_provider
            && match &self.pattern {
                ModelPattern::All => true,
                ModelPattern::Prefix(beginning) => model.starts_with(beginning.as_str()),
                ModelPattern::Exact(one) => model == *one,
            }
    }

    /// Returns how specific the key is: a provider is less specific than a prefix, a short prefix
    /// less than a long one, and a single model is the most specific.
    pub fn specificity(&self) -> (u8, usize) {
        match &self.pattern {
            ModelPattern::All => (0, 0),
            ModelPattern::Prefix(beginning) => (1, beginning.len()),
            ModelPattern::Exact(_) => (2, 0),
        }
    }

    /// Returns the provider's usual name.
    pub fn provider(&self) -> &'static str {
        self.provider
    }
}

impl FromStr for ProfileKey {
    type Err = ProfileKeyError;

    fn from_str(text: &str) -> Result<Self, ProfileKeyError> {
        let (provider, model) = match text.trim().split_once(':') {
            Some((provider, model)) => (provider.trim(), Some(model.trim())),
            None => (text.trim(), None),
        };
        let known = provider_name(provider).ok_or_else(|| unknown_provider(provider))?;
        let which = match model {
            None => ModelPattern::All,
            Some("" | "*") => {
                return Err(ProfileKeyError::AllModels {
                    key: text.to_owned(),
                    provider: known,
                });
            }
            Some(model) => match model.split_once('*') {
                None => ModelPattern::Exact(model.to_owned()),
                Some((beginning, "")) => ModelPattern::Prefix(beginning.to_owned()),
                Some(_) => return Err(ProfileKeyError::Asterisk(text.to_owned())),
            },
        };
        Ok(Self {
            provider: known,
            pattern: which,
        })
    }
}

impl fmt::Display for ProfileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            ModelPattern::All => f.write_str(self.provider),
            ModelPattern::Prefix(beginning) => write!(f, "{}:{beginning}*", self.provider),
            ModelPattern::Exact(model) => write!(f, "{}:{model}", self.provider),
        }
    }
}

/// Why a text is not a profile key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileKeyError {
    /// No provider has this name.
    #[error("no provider is named {name:?}{}", did_you_mean(*.nearest))]
    UnknownProvider {
        /// The name as it was written.
        name: String,
        /// The most similar name of a provider.
        nearest: Option<&'static str>,
    },
    /// The key names all models of a provider in a longer way than needed.
    #[error("{key:?}: `{provider}` alone means all of its models")]
    AllModels {
        /// The key as it was written.
        key: String,
        /// The provider's usual name.
        provider: &'static str,
    },
    /// The key has a `*` that is not its last character.
    #[error("{0:?}: a `*` may only stand at the end")]
    Asterisk(String),
}

impl ProfileKeyError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::UnknownProvider { .. } => Some(Hint::ListProviders),
            Self::AllModels { .. } | Self::Asterisk(_) => None,
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

fn unknown_provider(name: &str) -> ProfileKeyError {
    let names: Vec<&str> = providers().iter().map(|provider| provider.name).collect();
    ProfileKeyError::UnknownProvider {
        name: name.to_owned(),
        nearest: crate::closest_name(name, &names).and_then(provider_name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_covers_what_it_names_under_every_name_of_the_provider() {
        let table = [
            ("openai", "openai:gpt-5", true),
            ("openai", "openai-chat:gpt-5", true),
            ("openai-chat", "openai:gpt-5", true),
            ("openai", "responses:gpt-5", false),
            ("openai:gpt-5", "openai:gpt-5", true),
            ("openai:gpt-5", "openai:gpt-5-mini", false),
            ("openai:gpt-5*", "openai:gpt-5-mini", true),
            ("openai:gpt-5*", "openai:gpt-5", true),
            ("openai:gpt-5*", "openai:gpt-4", false),
            (" claude : claude-x ", "anthropic:claude-x", true),
            ("ollama:qwen3:8b", "ollama:qwen3:8b", true),
            ("scripted", "scripted:demo.yaml", true),
            ("openai", "none", false),
        ];
        for (key, model, want) in table {
            assert_eq!(
                key.parse::<ProfileKey>().unwrap().covers(model),
                want,
                "{key} {model}"
            );
        }
    }

    #[test]
    fn what_is_no_key_says_why() {
        for (text, said) in [
            (
                "opnai",
                "no provider is named \"opnai\"; did you mean `openai`?",
            ),
            ("", "no provider is named \"\""),
            ("gpt-5", "no provider is named \"gpt-5\""),
            ("openai:", "`openai` alone means all of its models"),
            ("openai:*", "`openai` alone means all of its models"),
            ("openai:g*t", "a `*` may only stand at the end"),
            ("openai:gpt**", "a `*` may only stand at the end"),
        ] {
            let error = text.parse::<ProfileKey>().unwrap_err().to_string();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }
}
