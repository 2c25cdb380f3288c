//! The `compaction:` settings of agent.yaml: when the context is compacted, and what is kept.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// When the context is compacted, and how much of it is kept. `compaction: off` never compacts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompactionSettings {
    /// Whether the context is compacted (default true).
    pub enabled: bool,
    /// The size at which the context is compacted: up to 1, a fraction of the window; above, tokens
    /// (default 0.8).
    pub trigger: f64,
    /// How much of the newest messages is kept unchanged: up to 1, a fraction of the window; above,
    /// tokens (default 0.2).
    pub keep: f64,
    /// The number of messages at which the context is compacted too (default: no limit).
    pub messages: Option<u32>,
    /// The model that writes summaries (default: the agent's own, which has most of the text in its
    /// cache).
    pub model: Option<String>,
    /// The prompt for summaries, in place of the built-in one.
    pub prompt: Option<String>,
    /// The time limit of a summary, in seconds (default 180). After that, older messages are left
    /// out without a summary.
    pub timeout_seconds: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            trigger: 0.8,
            keep: 0.2,
            messages: None,
            model: None,
            prompt: None,
            timeout_seconds: 180,
        }
    }
}

impl CompactionSettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        let amount = |key: &'static str, value: f64| {
            let wrong = !value.is_finite() || value <= 0.0;
            wrong.then(|| {
                (
                    key,
                    format!(
                        "{key} must be more than 0: up to 1 a part of the window, above it tokens"
                    ),
                )
            })
        };
        let zero = |key: &'static str, is_zero: bool| {
            is_zero.then(|| (key, format!("{key} must be at least 1")))
        };
        amount("compaction.trigger", self.trigger)
            .or_else(|| amount("compaction.keep", self.keep))
            .or_else(|| zero("compaction.messages", self.messages == Some(0)))
            .or_else(|| zero("compaction.timeout_seconds", self.timeout_seconds == 0))
            .or_else(|| {
                let both_parts = self.trigger <= 1.0 && self.keep <= 1.0
                    || self.trigger > 1.0 && self.keep > 1.0;
                (both_parts && self.keep >= self.trigger).then(|| {
                    (
                        "compaction.keep",
                        "compaction.keep must be less than compaction.trigger".to_owned(),
                    )
                })
            })
    }

    /// Returns how many tokens of `window` may be used before the context is compacted.
    pub fn trigger_tokens(&self, window: u64) -> u64 {
        share_of(self.trigger, window).min(window)
    }

    /// Returns how many tokens of the newest messages are kept. The rest always leaves something to
    /// compact.
    pub fn keep_tokens(&self, window: u64) -> u64 {
        share_of(self.keep, window).min(self.trigger_tokens(window) / 2)
    }
}

fn share_of(amount: f64, window: u64) -> u64 {
    if amount <= 1.0 {
        (amount * window as f64) as u64
    } else {
        amount as u64
    }
}

impl<'de> Deserialize<'de> for CompactionSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The settings as a map.
        #[derive(Deserialize)]
        #[serde(
            remote = "CompactionSettings",
            deny_unknown_fields,
            default = "CompactionSettings::default"
        )]
        struct CompactionFields {
            enabled: bool,
            trigger: f64,
            keep: f64,
            messages: Option<u32>,
            model: Option<String>,
            prompt: Option<String>,
            timeout_seconds: u64,
        }
        struct CompactionVisitor;
        impl<'de> serde::de::Visitor<'de> for CompactionVisitor {
            type Value = CompactionSettings;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "`on`, `off`, or a map with `enabled`, `trigger`, `keep`, `messages`, `model`, `prompt`, `timeout_seconds`",
                )
            }
            fn visit_bool<E>(self, enabled: bool) -> Result<Self::Value, E> {
                Ok(CompactionSettings {
                    enabled,
                    ..CompactionSettings::default()
                })
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                match word {
                    "on" => self.visit_bool(true),
                    "off" => self.visit_bool(false),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(CompactionSettings::default())
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<Self::Value, A::Error> {
                CompactionFields::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(CompactionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CompactionSettings, String> {
        crate::AgentConfig::parse(text, &|_| None)
            .map(|config| config.compaction)
            .map_err(|all| all[0].to_string())
    }

    #[test]
    fn it_is_a_word_or_a_map_and_amounts_are_parts_or_tokens() {
        assert_eq!(parse("").unwrap(), CompactionSettings::default());
        for off in ["off", "false", "{enabled: false}"] {
            assert!(
                !parse(&format!("compaction: {off}")).unwrap().enabled,
                "{off}"
            );
        }
        let set = parse(
            "compaction: {trigger: 0.5, keep: 3000, messages: 40, model: 'openai:gpt-5-mini'}",
        )
        .unwrap();
        assert_eq!(
            (set.trigger_tokens(100_000), set.keep_tokens(100_000)),
            (50_000, 3_000)
        );
        let set = parse("compaction: {trigger: 60000}").unwrap();
        assert_eq!(
            (
                set.trigger_tokens(100_000),
                set.trigger_tokens(32_000),
                set.keep_tokens(32_000)
            ),
            (60_000, 32_000, 6_400)
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let table = [
            ("compaction: maybe", "agent.yaml:1:1: "),
            (
                "compaction:\n  trigger: 0",
                "agent.yaml:2:3: compaction.trigger must be more than 0",
            ),
            (
                "compaction:\n  keep: 0.9",
                "agent.yaml:2:3: compaction.keep must be less than compaction.trigger",
            ),
            ("compaction:\n  trigegr: 1", "agent.yaml:2:3: "),
            (
                "compaction:\n  model: nosuch:x",
                "agent.yaml:2:3: compaction.model: nosuch:x: no provider is named",
            ),
        ];
        for (text, start) in table {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with(start), "{text:?}: {message}");
        }
    }
}
