//! One record of the usage log: one call of a model, as a line of the log.
//!
//! Effects: the clock.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_core::{RunId, SessionId, SubagentOrigin, Usage, Usd, UserId};

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The answer of a run.
    Answer,
    /// The answer of a subagent's run.
    Subagent,
    /// The summary of a conversation.
    Compaction,
    /// The extraction or consolidation of facts.
    Memory,
    /// The answer of a hook.
    Hook,
}

impl Purpose {
    /// Returns the name, as in a line of the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Subagent => "subagent",
            Self::Compaction => "compaction",
            Self::Memory => "memory",
            Self::Hook => "hook",
        }
    }

    /// Returns the purpose of the answers of a session.
    pub(crate) fn of_answers(spawned: Option<&SubagentOrigin>) -> Self {
        match spawned {
            Some(_) => Self::Subagent,
            None => Self::Answer,
        }
    }
}

/// The usage of one model call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageRecord {
    /// The time of the call.
    pub at: Timestamp,
    /// The user it was made for.
    pub user: String,
    /// The session.
    pub session: String,
    /// The run, if it was part of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The purpose.
    pub purpose: Purpose,
    /// The model that answered, as `provider:model`.
    pub model: String,
    /// The tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// The cost; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Usd>,
    /// The duration in milliseconds; absent if the line was rebuilt from a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// The format of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UsageLineFormat {
    Stead,
    /// Also has the field names that OpenPaw's own tools look for.
    Openpaw {
        workspace: String,
    },
}

impl UsageRecord {
    /// Creates the record of a call that ended now, without usage.
    pub fn new(
        user: &UserId,
        session: &SessionId,
        purpose: Purpose,
        model: impl Into<String>,
    ) -> Self {
        Self {
            at: Timestamp::now(),
            user: user.to_string(),
            session: session.to_string(),
            run: None,
            purpose,
            model: model.into(),
            usage: Usage::default(),
            cost: None,
            ms: None,
        }
    }

    /// Sets the run.
    pub fn for_run(self, run: &RunId) -> Self {
        Self {
            run: Some(run.to_string()),
            ..self
        }
    }

    /// Sets the usage and the cost.
    pub fn with_usage(self, usage: Usage, cost: Option<Usd>) -> Self {
        Self {
            usage,
            cost,
            ..self
        }
    }

    pub(super) fn to_line(&self, form: &UsageLineFormat) -> String {
        let mut line = json!(self);
        if let (UsageLineFormat::Openpaw { workspace }, Some(fields)) = (form, line.as_object_mut())
        {
            let usual = [
                ("timestamp", json!(self.at)),
                ("workspace", json!(workspace)),
                ("invocation_type", json!("user")),
                ("session_key", json!(self.session)),
                ("total_tokens", json!(self.usage.total_tokens())),
                ("llm_calls", json!(1)),
                ("duration_ms", json!(self.ms.unwrap_or_default())),
            ];
            fields.extend(usual.map(|(name, value)| (name.to_owned(), value)));
        }
        line.to_string()
    }

    /// Parses a line, also one that OpenPaw wrote.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let text = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|name| fields.get(*name)?.as_str())
                .map(str::to_owned)
        };
        let number = |names: [&str; 2]| names.iter().find_map(|name| fields.get(*name)?.as_u64());
        Some(Self {
            at: text(["at", "timestamp"])?.parse().ok()?,
            user: text(["user", "user"]).unwrap_or_else(|| UserId::default().to_string()),
            session: text(["session", "session_key"])?,
            run: text(["run", "run"]),
            purpose: match fields.get("purpose") {
                Some(purpose) => serde_json::from_value(purpose.clone()).ok()?,
                None => Purpose::Answer,
            },
            model: text(["model", "model"])?,
            usage: serde_json::from_value(Value::Object(fields.clone())).ok()?,
            cost: fields
                .get("cost")
                .and_then(|cost| serde_json::from_value(cost.clone()).ok()),
            ms: number(["ms", "duration_ms"]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> UsageRecord {
        let usage = Usage {
            input_tokens: 1200,
            cache_read_tokens: 1000,
            cache_write_tokens: 100,
            output_tokens: 30,
            reasoning_tokens: 5,
        };
        UsageRecord {
            at: "2026-03-01T10:00:00Z".parse().unwrap(),
            user: "alice".into(),
            session: "s1".into(),
            run: Some("r1".into()),
            purpose: Purpose::Compaction,
            model: "openai:gpt-5".into(),
            usage,
            cost: Some(Usd::from_nanos(1_500_000)),
            ms: Some(812),
        }
    }

    #[test]
    fn a_record_survives_its_own_line_in_every_form() {
        for form in [
            UsageLineFormat::Stead,
            UsageLineFormat::Openpaw {
                workspace: "my-agent".into(),
            },
        ] {
            let line = record().to_line(&form);
            assert!(!line.contains('\n'));
            assert_eq!(UsageRecord::parse(&line), Some(record()), "{line}");
        }
    }

    #[test]
    fn the_names_that_openpaw_uses_are_written_and_read() {
        let line = record().to_line(&UsageLineFormat::Openpaw {
            workspace: "my-agent".into(),
        });
        let fields: Map<String, Value> = serde_json::from_str(&line).unwrap();
        for (name, value) in [
            ("timestamp", json!("2026-03-01T10:00:00Z")),
            ("workspace", json!("my-agent")),
            ("invocation_type", json!("user")),
            ("session_key", json!("s1")),
            ("total_tokens", json!(1230)),
            ("llm_calls", json!(1)),
            ("duration_ms", json!(812)),
            ("model", json!("openai:gpt-5")),
        ] {
            assert_eq!(fields.get(name), Some(&value), "{name}");
        }
        let theirs = r#"{"timestamp": "2026-01-02T03:04:05.678901+00:00", "workspace": "w", "invocation_type": "cron",
            "session_key": "telegram:7", "input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "llm_calls": 1,
            "duration_ms": 55, "model": "anthropic:claude"}"#;
        let read = UsageRecord::parse(theirs).unwrap();
        assert_eq!(
            (read.session.as_str(), read.usage.input_tokens, read.ms),
            ("telegram:7", 10, Some(55))
        );
        for torn in ["", "{", r#"{"at": "now"}"#, "[]"] {
            assert_eq!(UsageRecord::parse(torn), None, "{torn}");
        }
    }
}
