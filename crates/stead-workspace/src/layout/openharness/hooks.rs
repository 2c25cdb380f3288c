//! `.openharness/hooks/*.yaml`: what is to be done when something happens.

use super::definitions;
use super::models::{Models, unresolved};
use super::prompts::Source;
use super::words::{instead, is_name, twice};
use crate::layout::{Draft, Side};
use crate::variables::Marks;
use crate::{Document, Severity};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    name: String,
    events: Vec<Event>,
    matcher: Option<String>,
    handler: Handler,
    #[serde(default)]
    capabilities: Vec<Capability>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Event {
    BeforeContextCompact,
    AfterContextCompact,
    BeforeContextBuild,
    AfterContextBuild,
    BeforeModelCall,
    AfterModelCall,
    BeforeToolDispatch,
    AfterToolDispatch,
    RunCompleted,
    RunFailed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Capability {
    RewriteContext,
    RewriteModelRequest,
    RewriteModelResponse,
    RewriteToolRequest,
    RewriteToolResponse,
    SuppressOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandlerKind {
    Command,
    Http,
    Prompt,
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// One for all kinds, so that a mistake is told at its key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handler {
    #[serde(rename = "type")]
    kind: HandlerKind,
    command: Option<String>,
    cwd: Option<String>,
    environment: Option<BTreeMap<String, String>>,
    url: Option<String>,
    method: Option<Method>,
    headers: Option<BTreeMap<String, String>>,
    prompt: Option<Source>,
    model_ref: Option<String>,
    agent: Option<String>,
    task: Option<Source>,
    timeout_seconds: Option<u64>,
}

/// What a hook may refer to.
pub(super) struct Known<'a> {
    pub(super) models: &'a Models,
    pub(super) agents: Vec<&'a str>,
}

/// Checks every hook; running them comes in a later version.
pub(super) async fn read(draft: &mut Draft<'_>, known: &Known<'_>) {
    let mut names: Vec<String> = Vec::new();
    for path in definitions(draft, Side::Folder, ".openharness/hooks", ".yaml").await {
        let Some(document) = draft.inactive_yaml(&path, Marks::Env).await else { continue };
        let Some(hook) = draft.take(document.typed::<Hook>()) else { continue };
        for (key, message) in hook.problems() {
            draft.note(document.error(&key, format!("{key}: {message}")));
        }
        refer(draft, &document, &hook, known);
        for (key, source) in [("handler.prompt", &hook.handler.prompt), ("handler.task", &hook.handler.task)] {
            if let Some(source) = source {
                source.text(draft, &document, key).await;
            }
        }
        if names.contains(&hook.name) {
            draft.note(document.error("name", format!("name: there are two hooks `{}`; rename one", hook.name)));
            continue;
        }
        let message = format!("the hook `{}`: hooks run in a later version", hook.name);
        draft.note(document.finding(Severity::Inactive, "name", message));
        names.push(hook.name);
    }
}

fn refer(draft: &mut Draft<'_>, document: &Document, hook: &Hook, known: &Known<'_>) {
    if let Some(Err(message)) = hook.handler.model_ref.as_deref().map(|name| known.models.resolve(name)) {
        let key = "handler.model_ref";
        draft.note(document.finding(unresolved(draft), key, format!("{key}: {message}")));
    }
    if let Some(agent) = hook.handler.agent.as_deref().filter(|agent| !known.agents.contains(agent)) {
        let hint = instead(agent, known.agents.iter().copied());
        draft.note(document.error("handler.agent", format!("handler.agent: there is no agent `{agent}`{hint}")));
    }
}

impl Hook {
    fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: &str| problems.push((key.to_owned(), message.to_owned()));
        if !is_name(&self.name) {
            wrong("name", "must be letters, digits, `.`, `_` and `-`");
        }
        if self.events.is_empty() {
            wrong("events", "is empty, so the hook would never run");
        }
        if let Some((key, _)) = twice("events", &self.events) {
            wrong(&key, "is listed twice");
        }
        if let Some((key, _)) = twice("capabilities", &self.capabilities) {
            wrong(&key, "is listed twice");
        }
        if self.handler.timeout_seconds == Some(0) {
            wrong("handler.timeout_seconds", "must be at least 1");
        }
        // The validator reads patterns as JavaScript does, and so do hooks.
        let pattern = self.matcher.as_ref().map(|matcher| jsonschema::validator_for(&json!({"pattern": matcher})));
        if let Some(Err(_)) = pattern {
            wrong("matcher", "is not a regular expression");
        }
        self.handler.problems(&mut wrong);
        problems
    }
}

impl Handler {
    /// Which keys are missing, and which belong to handlers of another kind.
    fn problems(&self, wrong: &mut impl FnMut(&str, &str)) {
        use HandlerKind::{Agent, Command, Http, Prompt};
        let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
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
            (Command, "handler.cwd", self.cwd.is_some()),
            (Command, "handler.environment", self.environment.is_some()),
            (Http, "handler.url", self.url.is_some()),
            (Http, "handler.method", self.method.is_some()),
            (Http, "handler.headers", self.headers.is_some()),
            (Prompt, "handler.prompt", self.prompt.is_some()),
            (Prompt, "handler.model_ref", self.model_ref.is_some()),
            (Agent, "handler.agent", self.agent.is_some()),
            (Agent, "handler.task", self.task.is_some()),
        ] {
            if self.kind != kind && is_there {
                wrong(key, &format!("belongs to a handler of type {}", kind.as_str()));
            }
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
