//! The `offload:` settings of agent.yaml: the length at which a text is moved to a file.
//!
//! Effects: none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::AgentId;
use stead_vfs::{PathError, VPath};

/// The minimum for the limits: a text that is no longer than its preview is not worth a file.
const MIN_TOKENS: u64 = 1_000;

/// Returns the folder of the texts that sessions of `agent` have offloaded, with one subfolder for
/// each session. `runtime` is the folder of runtime state.
pub fn offload_folder(runtime: &VPath, agent: &AgentId) -> Result<VPath, PathError> {
    runtime.join(&format!("agents/{agent}/offload"))
}

/// The length at which a text is moved to a file; the conversation keeps its two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffloadSettings {
    /// The maximum number of tokens of a tool's result (default 20000); never more than a quarter
    /// of the window.
    pub tool_result_tokens: u64,
    /// The maximum number of tokens of a person's message (default 50000); never more than 0.4 of
    /// the window.
    pub user_message_tokens: u64,
    /// The maximum size of the files of one session, in megabytes (default 512).
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
    /// Returns the first problem of the settings with the key it is about.
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

    /// Returns the maximum number of tokens of a result, for a model with this window.
    pub fn result_limit(&self, window: Option<u64>) -> u64 {
        self.tool_result_tokens
            .min(window.map_or(u64::MAX, |window| window / 4))
    }

    /// Returns the maximum number of tokens of a person's message, for a model with this window.
    pub fn message_limit(&self, window: Option<u64>) -> u64 {
        self.user_message_tokens
            .min(window.map_or(u64::MAX, |window| window / 5 * 2))
    }

    /// Returns the maximum size of the files of one session, in bytes.
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
