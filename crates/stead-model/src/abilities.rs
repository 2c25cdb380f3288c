//! The abilities of models: kinds of input and features that not every model has.
//!
//! Effects: none.

use crate::Request;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// An ability that not every model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// Images as input.
    Images,
    /// Documents (PDF) as input.
    Documents,
    /// Audio as input.
    Audio,
    /// Thinking before the answer.
    Thinking,
    /// Tool calls.
    Tools,
}

impl Ability {
    /// All abilities.
    pub const ALL: [Self; 5] = [
        Self::Images,
        Self::Documents,
        Self::Audio,
        Self::Thinking,
        Self::Tools,
    ];

    /// Returns the name used in settings and listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Documents => "documents",
            Self::Audio => "audio",
            Self::Thinking => "thinking",
            Self::Tools => "tools",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of abilities.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities(u8);

impl Abilities {
    /// Returns whether the set contains `ability`.
    pub fn has(self, ability: Ability) -> bool {
        self.0 & ability.bit() != 0
    }

    /// Returns the abilities of the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Ability> {
        Ability::ALL
            .into_iter()
            .filter(move |ability| self.has(*ability))
    }

    /// Returns the request without settings that the model does not support. Media that it does not
    /// support are replaced by text when they are encoded.
    pub(crate) fn restrict(self, request: &Request) -> Cow<'_, Request> {
        let thinks = self.has(Ability::Thinking) || request.params.thinking_tokens.is_none();
        let calls = self.has(Ability::Tools) || request.tools.is_empty();
        if thinks && calls {
            return Cow::Borrowed(request);
        }
        let mut fitted = request.clone();
        if !thinks {
            fitted.params.thinking_tokens = None;
        }
        if !calls {
            fitted.tools = Arc::new([]);
        }
        Cow::Owned(fitted)
    }
}

impl FromIterator<Ability> for Abilities {
    fn from_iter<I: IntoIterator<Item = Ability>>(abilities: I) -> Self {
        Self(
            abilities
                .into_iter()
                .fold(0, |bits, ability| bits | ability.bit()),
        )
    }
}

/// Formats the names joined by commas, or `-` for none.
impl fmt::Display for Abilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Ability::as_str).collect();
        f.write_str(if names.is_empty() { "-" } else { "" })?;
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Abilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Abilities({self})")
    }
}

impl FromStr for Abilities {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::default());
        }
        let named = |name: &str| {
            Ability::ALL
                .into_iter()
                .find(|ability| ability.as_str() == name)
        };
        text.split(',')
            .map(|name| named(name).ok_or_else(|| format!("{name:?} is no ability")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{Risk, ToolSpec};

    #[test]
    fn a_set_survives_its_own_text() {
        for text in [
            "-",
            "images",
            "images,documents,audio,thinking,tools",
            "documents,tools",
        ] {
            assert_eq!(text.parse::<Abilities>().unwrap().to_string(), text);
        }
        assert!("images,flying".parse::<Abilities>().is_err());
    }

    #[test]
    fn a_model_is_not_sent_what_it_cannot_do() {
        let spec = ToolSpec::new("ls", "", Risk::READS);
        let mut request = Request {
            tools: vec![spec].into(),
            ..Request::default()
        };
        request.params.thinking_tokens = Some(1000);
        for (abilities, thinking, tools) in [
            ("-", None, 0),
            ("tools", None, 1),
            ("thinking", Some(1000), 0),
            ("thinking,tools", Some(1000), 1),
        ] {
            let fitted = abilities
                .parse::<Abilities>()
                .unwrap()
                .restrict(&request)
                .into_owned();
            assert_eq!(
                (fitted.params.thinking_tokens, fitted.tools.len()),
                (thinking, tools),
                "{abilities}"
            );
        }
    }
}
