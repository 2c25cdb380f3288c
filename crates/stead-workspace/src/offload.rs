//! `offload:` in agent.yaml.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::AgentId;
use stead_vfs::{PathError, VPath};

/// A result that is no longer than its own preview is not worth a file.
const MIN_TOKENS: u64 = 1_000;

/// The folder that holds what the sessions of `agent` have offloaded, one folder each, where
/// runtime state lies below `runtime`.
pub fn offload_folder(runtime: &VPath, agent: &AgentId) -> Result<VPath, PathError> {
    runtime.join(&format!("agents/{agent}/offload"))
}

/// When a text is too long for the conversation, so that a file holds it and the conversation only
/// its two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadSettings {
    /// Tokens of one tool's result (default 20000); never more than a quarter of the window.
    pub tool_result_tokens: u64,
    /// Tokens of one message of a person (default 50000); never more than 0.4 of the window.
    pub user_message_tokens: u64,
    /// Megabytes that the files of one session may take (default 512).
    pub max_mb: u64,
}

impl Default for OffloadSettings {
    fn default() -> Self {
        Self {
            tool_result_tokens: 20_000,
            user_message_tokens: 50_000,
            max_mb: 512,
        }
    }
}

impl OffloadSettings {
    /// What is wrong with them, and the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        let least = |key: &'static str, value: u64, least: u64, hint: &str| {
            (value < least).then(|| (key, format!("{key} must be at least {least}{hint}")))
        };
        let off = "; to keep long texts in the conversation, set disable: [offload]";
        least(
            "offload.tool_result_tokens",
            self.tool_result_tokens,
            MIN_TOKENS,
            off,
        )
        .or_else(|| {
            least(
                "offload.user_message_tokens",
                self.user_message_tokens,
                MIN_TOKENS,
                off,
            )
        })
        .or_else(|| least("offload.max_mb", self.max_mb, 1, ""))
    }

    /// Tokens that a result may have where `window` tokens fit into a request.
    pub fn result_limit(&self, window: Option<u64>) -> u64 {
        self.tool_result_tokens
            .min(window.map_or(u64::MAX, |window| window / 4))
    }

    /// Tokens that a message of a person may have where `window` tokens fit into a request.
    pub fn message_limit(&self, window: Option<u64>) -> u64 {
        self.user_message_tokens
            .min(window.map_or(u64::MAX, |window| window / 5 * 2))
    }

    /// Bytes that the files of one session may take.
    pub fn max_bytes(&self) -> u64 {
        self.max_mb.saturating_mul(1024 * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_shrink_with_small_windows() {
        let settings = OffloadSettings::default();
        let cases = [
            (None, 20_000, 50_000),
            (Some(1_000_000), 20_000, 50_000),
            (Some(100_000), 20_000, 40_000),
            (Some(32_000), 8_000, 12_800),
            (Some(4_000), 1_000, 1_600),
        ];
        for (window, result, message) in cases {
            assert_eq!(
                (
                    settings.result_limit(window),
                    settings.message_limit(window)
                ),
                (result, message),
                "{window:?}"
            );
        }
    }

    #[test]
    fn limits_that_make_no_sense_are_refused_at_their_place() {
        let parse =
            |text: &str| crate::AgentConfig::parse(text, &|_| None).unwrap_err()[0].to_string();
        let off = "; to keep long texts in the conversation, set disable: [offload]";
        let cases = [
            (
                "name: a\noffload:\n  tool_result_tokens: 5",
                format!("agent.yaml:3:3: offload.tool_result_tokens must be at least 1000{off}"),
            ),
            (
                "offload: {user_message_tokens: 0}",
                format!("agent.yaml:1:11: offload.user_message_tokens must be at least 1000{off}"),
            ),
            (
                "offload: {max_mb: 0}",
                "agent.yaml:1:11: offload.max_mb must be at least 1".to_owned(),
            ),
        ];
        for (text, want) in cases {
            assert_eq!(parse(text), want);
        }
        assert!(
            parse("offload: {tokens: 5}").contains("tokens"),
            "unknown keys are errors"
        );
    }
}
