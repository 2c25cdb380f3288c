//! Which models a profile is for.

use std::fmt;
use std::str::FromStr;
use stead_model::{ModelName, provider_name, providers};

/// Which models a profile is for: `provider`, `provider:model`, or `provider:beginning*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProfileKey {
    /// The provider's usual name, whichever was written.
    provider: &'static str,
    pattern: ModelPattern,
}

/// Which models of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ModelPattern {
    All,
    /// Those whose names begin so.
    Prefix(String),
    Exact(String),
}

impl ProfileKey {
    /// Whether the model is meant. `name` is `provider:model`, with any name of the provider.
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

    /// How closely it names a model: a provider less than a family, a short beginning less than a
    /// long one, and one model more than all of them.
    pub fn specificity(&self) -> (u8, usize) {
        match &self.pattern {
            ModelPattern::All => (0, 0),
            ModelPattern::Prefix(beginning) => (1, beginning.len()),
            ModelPattern::Exact(_) => (2, 0),
        }
    }

    /// The provider's usual name.
    pub fn provider(&self) -> &'static str {
        self.provider
    }
}

impl FromStr for ProfileKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (provider, model) = match text.trim().split_once(':') {
            Some((provider, model)) => (provider.trim(), Some(model.trim())),
            None => (text.trim(), None),
        };
        let known = provider_name(provider).ok_or_else(|| unknown(provider))?;
        let which = match model {
            None => ModelPattern::All,
            Some("" | "*") => {
                return Err(format!("{text:?}: `{known}` alone means all of its models"));
            }
            Some(model) => match model.split_once('*') {
                None => ModelPattern::Exact(model.to_owned()),
                Some((beginning, "")) => ModelPattern::Prefix(beginning.to_owned()),
                Some(_) => return Err(format!("{text:?}: a `*` may only stand at the end")),
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

fn unknown(provider: &str) -> String {
    let names: Vec<&str> = providers().iter().map(|provider| provider.name).collect();
    let hint = crate::closest_name(provider, &names)
        .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("no provider is named {provider:?}{hint} (`stead models` lists them)")
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
            let error = text.parse::<ProfileKey>().unwrap_err();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }
}
