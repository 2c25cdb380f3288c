//! The settings file of a hook as it is written, and its checks.
//!
//! Effects: none.

use super::event::HookEventName;
use super::spec::{Capability, HttpMethod, OnFailure};
use super::{HookEvent, Matcher};
use crate::layout::{TextOr, TextSource, first_duplicate, is_valid_name};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The maximum time limit of a hook.
const MAX_TIMEOUT_SECONDS: u64 = 600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHook {
    pub(super) name: String,
    pub(super) events: Vec<HookEventName>,
    pub(super) matcher: Option<String>,
    pub(super) handler: RawHandler,
    #[serde(default)]
    pub(super) capabilities: Vec<Capability>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) on_failure: Option<OnFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HandlerKind {
    Command,
    Http,
    Prompt,
    Agent,
}

/// The keys of all kinds of handlers in one type, so that a problem is reported at its key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHandler {
    #[serde(rename = "type")]
    pub(super) kind: HandlerKind,
    pub(super) command: Option<String>,
    pub(super) args: Option<Vec<String>>,
    pub(super) cwd: Option<String>,
    pub(super) env: Option<BTreeMap<String, String>>,
    pub(super) environment: Option<BTreeMap<String, String>>,
    pub(super) url: Option<String>,
    pub(super) method: Option<HttpMethod>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) prompt: Option<TextOr<TextSource>>,
    pub(super) model: Option<String>,
    pub(super) model_ref: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) task: Option<TextOr<TextSource>>,
    pub(super) timeout_seconds: Option<u64>,
}

/// Keys with their problems.
pub(super) type KeyProblems = Vec<(String, String)>;

impl RawHook {
    /// Returns the problems that can be found without other files.
    pub(super) fn problems(&self) -> KeyProblems {
        let mut problems = Vec::new();
        let mut wrong =
            |key: &str, message: &str| problems.push((key.to_owned(), message.to_owned()));
        if !is_valid_name(&self.name) {
            wrong("name", "must be letters, digits, `.`, `_` and `-`");
        }
        if self.events.is_empty() {
            wrong("events", "is empty, so the hook would never run");
        }
        for (key, again) in [
            (
                "events",
                first_duplicate("events", &self.events).map(|(key, _)| key),
            ),
            {
                (
                    "capabilities",
                    first_duplicate("capabilities", &self.capabilities).map(|(key, _)| key),
                )
            },
        ] {
            if let Some(at) = again {
                wrong(&at, &format!("is listed twice in {key}"));
            }
        }
        for (key, seconds) in [
            ("timeout_seconds", self.timeout_seconds),
            ("handler.timeout_seconds", self.handler.timeout_seconds),
        ] {
            match seconds {
                Some(0) => wrong(key, "must be at least 1"),
                Some(MAX_TIMEOUT_SECONDS..) if seconds > Some(MAX_TIMEOUT_SECONDS) => {
                    wrong(key, &format!("must be at most {MAX_TIMEOUT_SECONDS}"));
                }
                Some(_) | None => {}
            }
        }
        if self.timeout_seconds.is_some() && self.handler.timeout_seconds.is_some() {
            wrong(
                "handler.timeout_seconds",
                "is said twice; `timeout_seconds` beside `handler` is enough",
            );
        }
        if self
            .matcher
            .as_deref()
            .is_some_and(|matcher| Matcher::new(matcher).is_none())
        {
            wrong("matcher", "is not a regular expression");
        }
        let blocks = self.listened_events().any(HookEvent::can_be_blocked);
        if self.on_failure == Some(OnFailure::Closed) && !self.events.is_empty() && !blocks {
            wrong(
                "on_failure",
                "nothing can be blocked at these events, so `closed` would mean nothing",
            );
        }
        self.handler.problems(&mut wrong);
        problems
    }

    /// Returns the capabilities that have no meaning for any of the hook's events, with their keys.
    pub(super) fn unused_capabilities(&self) -> KeyProblems {
        let idle = |(_, capability): &(usize, &Capability)| {
            !self
                .listened_events()
                .any(|event| capability.events().contains(&event))
        };
        let told = |(i, capability): (usize, &Capability)| {
            let events: Vec<&str> = capability
                .events()
                .iter()
                .map(|event| event.as_str())
                .collect();
            let message = format!(
                "{} is of use only at {}",
                capability.as_str(),
                events.join(", ")
            );
            (format!("capabilities[{i}]"), message)
        };
        self.capabilities
            .iter()
            .enumerate()
            .filter(idle)
            .map(told)
            .collect()
    }

    fn listened_events(&self) -> impl Iterator<Item = HookEvent> {
        self.events.iter().map(|written| written.trigger().event)
    }
}

impl RawHandler {
    /// Adds missing keys, and keys that belong to handlers of another kind.
    fn problems(&self, wrong: &mut impl FnMut(&str, &str)) {
        use HandlerKind::{Agent, Command, Http, Prompt};
        let filled =
            |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
        for (kind, key, is_there) in [
            (Command, "handler.command", filled(&self.command)),
            (Http, "handler.url", filled(&self.url)),
            (Prompt, "handler.prompt", self.prompt.is_some()),
            (Agent, "handler.agent", filled(&self.agent)),
            (Agent, "handler.task", self.task.is_some()),
        ] {
            if self.kind == kind && !is_there {
                wrong(key, "is missing or empty");
            }
        }
        for (kind, key, is_there) in [
            (Command, "handler.command", self.command.is_some()),
            (Command, "handler.args", self.args.is_some()),
            (Command, "handler.cwd", self.cwd.is_some()),
            (Command, "handler.env", self.env.is_some()),
            (Command, "handler.environment", self.environment.is_some()),
            (Http, "handler.url", self.url.is_some()),
            (Http, "handler.method", self.method.is_some()),
            (Http, "handler.headers", self.headers.is_some()),
            (Prompt, "handler.prompt", self.prompt.is_some()),
            (Prompt, "handler.model", self.model.is_some()),
            (Prompt, "handler.model_ref", self.model_ref.is_some()),
            (Agent, "handler.agent", self.agent.is_some()),
            (Agent, "handler.task", self.task.is_some()),
        ] {
            if self.kind != kind && is_there {
                wrong(
                    key,
                    &format!("belongs to a handler of type {}", kind.as_str()),
                );
            }
        }
        for (key, both) in [
            (
                "handler.environment",
                self.env.is_some() && self.environment.is_some(),
            ),
            (
                "handler.model_ref",
                self.model.is_some() && self.model_ref.is_some(),
            ),
        ] {
            if both {
                wrong(key, "is said twice, under two names; keep one");
            }
        }
        let is_address = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if self.kind == Http
            && self
                .url
                .as_deref()
                .is_some_and(|url| !url.trim().is_empty() && !is_address(url))
        {
            wrong(
                "handler.url",
                "is not an address; it begins with http:// or https://",
            );
        }
    }
}

impl HandlerKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::Prompt => "prompt",
            Self::Agent => "agent",
        }
    }
}
