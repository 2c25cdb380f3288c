//! The JSON object that a hook reads about an event. Pure: [`run_hooks`](super::run_hooks) collects
//! the facts.
//!
//! Effects: none.

use super::effect::HookChange;
use serde_json::{Map, Value, json};
use stead_core::{RunId, RunOutcome, SessionId};
use stead_workspace::HookEvent;

/// The most characters of a tool result or a reply that hooks are shown. Prompts are shown whole.
const MAX_SHOWN_CHARS: usize = 200_000;

/// An event with its facts, as hooks are told about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookInput {
    pub(crate) event: HookEvent,
    pub(crate) session: SessionId,
    pub(crate) run: Option<RunId>,
    pub(crate) agent: String,
    pub(crate) user: String,
    /// The texts that matchers are applied to. A matcher must match one of them.
    pub(crate) subjects: Vec<String>,
    /// The outcome of the run, if the event is its end.
    pub(crate) outcome: Option<RunOutcome>,
    /// The id of the call that the event is about.
    pub(crate) call: Option<String>,
    /// The facts of this event, by key. They override the keys that every event has.
    pub(crate) facts: Map<String, Value>,
}

impl HookInput {
    /// Returns the JSON object that a hook reads.
    pub(super) fn json(&self, cwd: &str) -> Value {
        let mut all = Map::new();
        let run = self.run.as_ref().map(RunId::as_str);
        all.insert("event".to_owned(), self.event.as_str().into());
        all.insert("session".to_owned(), self.session.as_str().into());
        all.insert("run".to_owned(), json!(run));
        all.insert("agent".to_owned(), self.agent.as_str().into());
        all.insert("user".to_owned(), self.user.as_str().into());
        all.insert("cwd".to_owned(), cwd.into());
        all.extend(self.facts.clone());
        all.extend(self.foreign_aliases());
        Value::Object(all)
    }

    /// Returns the facts under the names that hooks of other harnesses look for. Without them, a
    /// guard written for another harness would find nothing and let everything pass.
    fn foreign_aliases(&self) -> Map<String, Value> {
        let fact = |group: &str, key: &str| self.facts.get(group)?.get(key).cloned();
        let run = self.run.as_ref().map(|run| run.as_str().into());
        let named = [
            (
                "hook_event_name",
                Some(self.event.openharness_name().into()),
            ),
            ("session_id", Some(self.session.as_str().into())),
            ("run_id", run),
            ("agent_name", Some(self.agent.as_str().into())),
            ("effective_agent_name", Some(self.agent.as_str().into())),
            (
                "model_ref",
                fact("model", "reference").or_else(|| fact("model", "name")),
            ),
            ("tool_name", fact("tool", "called_as")),
            ("tool_call_id", fact("tool", "call_id")),
            ("tool_input", fact("tool", "input")),
            ("tool_output", fact("tool", "result")),
        ];
        named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }

    /// Adds a fact.
    pub(super) fn with_fact(mut self, key: &str, value: Value) -> Self {
        self.facts.insert(key.to_owned(), value);
        self
    }

    /// Adds subjects for matchers.
    pub(super) fn with_subjects(
        mut self,
        subjects: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.subjects.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// Applies a change, so that the next hook sees it.
    pub(super) fn apply(&mut self, change: &HookChange) {
        let (fact, key, value) = match change {
            HookChange::ToolArgs(args) => ("tool", "args", args.clone()),
            HookChange::ToolResult(text) => ("tool", "result", text.as_str().into()),
            HookChange::ModelResponse(text) => ("model", "text", text.as_str().into()),
            HookChange::Prompt(text) => {
                self.facts.insert("prompt".to_owned(), text.as_str().into());
                return;
            }
            // These only add to the request. The facts about it stay true.
            HookChange::Context(_) | HookChange::ModelRequest(_) => return,
        };
        if let Some(Value::Object(fact)) = self.facts.get_mut(fact) {
            if key == "args" {
                fact.insert("input".to_owned(), value.clone());
            }
            fact.insert(key.to_owned(), value);
        }
    }
}

/// Returns the beginning of a text, and whether it was cut.
pub(super) fn truncate_for_hooks(text: &str) -> (&str, bool) {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}
