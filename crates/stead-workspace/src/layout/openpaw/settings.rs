//! `config/agent.yaml` of OpenPaw, with all keys.
//!
//! Effects: the environment.

use super::channel::Channel;
use super::heartbeat::Heartbeat;
use super::model::ModelSpec;
use crate::{DropPolicy, QueueMode, QueueSettings};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use stead_model::EmbeddingSettings;

/// The settings of a workspace. All are optional.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OpenpawSettings {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) timezone: Option<String>,
    #[serde(deserialize_with = "super::model::spelled")]
    pub(super) model: ModelSpec,
    pub(super) channel: Option<Channel>,
    pub(super) channels: Option<Vec<Channel>>,
    pub(super) queue: Option<OpenpawQueue>,
    pub(super) builtins: Option<Builtins>,
    pub(super) workspace_tools: Option<ToolAllowDeny>,
    pub(super) heartbeat: Option<Heartbeat>,
    pub(super) approval_gates: Option<ApprovalGates>,
    pub(super) memory: Option<OpenpawMemory>,
    pub(super) auto_compact: Option<AutoCompact>,
    #[serde(rename = "session_ttl_minutes")]
    pub(super) _session_ttl_minutes: Option<u32>,
    #[serde(rename = "lifecycle")]
    pub(super) _lifecycle: Option<Lifecycle>,
    pub(super) tool_timeouts: Option<ToolTimeouts>,
    pub(super) lanes: Option<Lanes>,
}

/// How messages that arrive during a run are handled. The defaults are those of stead.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OpenpawQueue {
    mode: Option<QueueMode>,
    debounce_ms: Option<u64>,
    cap: Option<u32>,
    drop_policy: Option<DropPolicy>,
}

impl OpenpawQueue {
    pub(super) fn queue_settings(&self) -> QueueSettings {
        let usual = QueueSettings::default();
        QueueSettings {
            mode: self.mode.unwrap_or(usual.mode),
            debounce_ms: self.debounce_ms.unwrap_or(usual.debounce_ms),
            cap: self.cap.unwrap_or(usual.cap),
            drop: self.drop_policy.unwrap_or(usual.drop),
        }
    }
}

/// The built-in capabilities that are enabled, and the settings of each by its name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Builtins {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    #[serde(flatten)]
    pub(super) each: BTreeMap<String, Option<Builtin>>,
}

/// A built-in capability: whether it is enabled, and its own settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub(super) struct Builtin {
    pub(super) enabled: bool,
    #[serde(rename = "config")]
    _config: Map<String, Value>,
    #[serde(flatten)]
    _own: Map<String, Value>,
}

impl Default for Builtin {
    fn default() -> Self {
        Self {
            enabled: true,
            _config: Map::new(),
            _own: Map::new(),
        }
    }
}

/// Lists of allowed and denied names.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolAllowDeny {
    #[serde(rename = "allow")]
    pub(super) _allow: Vec<String>,
    pub(super) deny: Vec<String>,
}

/// Tools with calls that wait for a person.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApprovalGates {
    pub(super) enabled: bool,
    pub(super) timeout_seconds: Option<u64>,
    #[serde(rename = "default_action")]
    _default_action: Option<GateDefaultAction>,
    pub(super) tools: BTreeMap<String, Option<ApprovalGate>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum GateDefaultAction {
    Deny,
    Approve,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApprovalGate {
    pub(super) require_approval: bool,
    #[serde(rename = "show_args")]
    _show_args: bool,
}

impl Default for ApprovalGate {
    fn default() -> Self {
        Self {
            require_approval: true,
            _show_args: true,
        }
    }
}

/// The settings for searching earlier conversations.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OpenpawMemory {
    enabled: bool,
    vector_store: Option<VectorStore>,
    embedding: OpenpawEmbedding,
}

impl OpenpawMemory {
    /// Returns the settings of the embedding model; none unless it is enabled, because texts leave
    /// the machine.
    pub(super) fn embedding_settings(&self) -> Option<EmbeddingSettings> {
        let OpenpawEmbedding {
            provider,
            model,
            api_key,
        } = &self.embedding;
        let provider = provider.as_deref().unwrap_or("openai");
        let model = model.as_deref();
        let name = format!("{provider}:{}", model.unwrap_or("text-embedding-3-small"));
        let api_key = api_key.clone();
        self.enabled.then(|| EmbeddingSettings {
            name,
            api_key,
            ..EmbeddingSettings::default()
        })
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct VectorStore {
    #[serde(rename = "provider")]
    _provider: Option<String>,
    dimensions: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OpenpawEmbedding {
    provider: Option<String>,
    model: Option<String>,
    api_key: Option<String>,
}

/// The settings of compaction.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AutoCompact {
    pub(super) enabled: Option<bool>,
    pub(super) trigger: Option<f64>,
    pub(super) summary_model: Option<String>,
}

/// The events that a channel is notified about.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Lifecycle {
    #[serde(rename = "notify_startup")]
    _startup: Option<bool>,
    #[serde(rename = "notify_shutdown")]
    _shutdown: Option<bool>,
    #[serde(rename = "notify_auto_compact")]
    _auto_compact: Option<bool>,
    #[serde(rename = "notify_session_ttl")]
    _session_ttl: Option<bool>,
}

/// The time limits of tool calls.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolTimeouts {
    pub(super) default_seconds: Option<u64>,
    pub(super) overrides: BTreeMap<String, u64>,
}

/// The maximum number of runs of each kind at the same time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Lanes {
    main_concurrency: Option<u32>,
    subagent_concurrency: Option<u32>,
    cron_concurrency: Option<u32>,
}

impl OpenpawSettings {
    /// Returns every channel with its key.
    pub(super) fn all_channels(&self) -> impl Iterator<Item = (String, &Channel)> {
        let one = self
            .channel
            .iter()
            .map(|channel| ("channel".to_owned(), channel));
        let many = self.channels.iter().flatten().enumerate();
        one.chain(many.map(|(i, channel)| (format!("channels[{i}]"), channel)))
    }

    /// Returns the problems of values with their keys.
    pub(super) fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut least = |key: &str, given: Option<u64>, least: u64| {
            if given.is_some_and(|given| given < least) {
                problems.push((key.to_owned(), format!("{key} must be at least {least}")));
            }
        };
        least("model.max_turns", self.model.max_turns.map(u64::from), 1);
        least("model.timeout_seconds", self.model.timeout_seconds, 1);
        let gates = self.approval_gates.as_ref();
        least(
            "approval_gates.timeout_seconds",
            gates.and_then(|gates| gates.timeout_seconds),
            1,
        );
        let store = self
            .memory
            .as_ref()
            .and_then(|memory| memory.vector_store.as_ref());
        least(
            "memory.vector_store.dimensions",
            store.and_then(|store| store.dimensions).map(u64::from),
            1,
        );
        if let Some(timeouts) = &self.tool_timeouts {
            least("tool_timeouts.default_seconds", timeouts.default_seconds, 1);
            for (tool, seconds) in &timeouts.overrides {
                least(
                    &format!("tool_timeouts.overrides.{tool}"),
                    Some(*seconds),
                    1,
                );
            }
        }
        if let Some(lanes) = &self.lanes {
            let all = [
                ("main_concurrency", lanes.main_concurrency),
                ("subagent_concurrency", lanes.subagent_concurrency),
                ("cron_concurrency", lanes.cron_concurrency),
            ];
            all.iter()
                .for_each(|(key, number)| least(&format!("lanes.{key}"), number.map(u64::from), 1));
        }
        let queue = self
            .queue
            .as_ref()
            .and_then(|queue| queue.queue_settings().problem());
        problems.extend(queue.map(|(key, message)| (key.to_owned(), message)));
        let mut wrong = |key: &str, message: String| {
            problems.push((key.to_owned(), format!("{key}: {message}")))
        };
        if self
            .model
            .temperature
            .is_some_and(|t| !(0.0..=2.0).contains(&t))
        {
            wrong(
                "model.temperature",
                "a number from 0 to 2 is needed here".to_owned(),
            );
        }
        let trigger = self
            .auto_compact
            .as_ref()
            .and_then(|compact| compact.trigger);
        if trigger.is_some_and(|trigger| !(0.0..=1.0).contains(&trigger)) {
            wrong(
                "auto_compact.trigger",
                "a number from 0 to 1 is needed here: a part of the context".to_owned(),
            );
        }
        if let Some(message) = self
            .timezone
            .as_deref()
            .and_then(crate::config::timezone_problem)
        {
            problems.push(("timezone".to_owned(), message));
        }
        problems.extend(self.heartbeat.iter().flat_map(Heartbeat::problems));
        problems.extend(super::channel::problems(self));
        problems
    }
}
