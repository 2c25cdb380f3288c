//! What a hook is told.

use super::effect::HookChange;
use serde_json::{Map, Value, json};
use stead_core::{RunId, RunOutcome, SessionId};
use stead_workspace::HookEvent;

/// The most that is shown of a text that has no limit of its own.
const MAX_SHOWN_CHARS: usize = 200_000;

/// Something that happened, as hooks are told it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookInput {
    pub(crate) event: HookEvent,
    pub(crate) session: SessionId,
    pub(crate) run: Option<RunId>,
    pub(crate) agent: String,
    pub(crate) user: String,
    /// What matchers look at; one that is found in any of them is enough.
    pub(crate) subjects: Vec<String>,
    /// How the run ended, where it did.
    pub(crate) outcome: Option<RunOutcome>,
    /// The call it is about.
    pub(crate) call: Option<String>,
    /// What else is told.
    pub(crate) facts: Map<String, Value>,
}

impl HookInput {
    /// As a hook reads it.
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

    /// The same under the names that hooks of other harnesses look for: a guard that finds nothing
    /// would let all pass.
    fn foreign_aliases(&self) -> Map<String, Value> {
        let fact = |of: &str, key: &str| self.facts.get(of).and_then(|of| of.get(key)).cloned();
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
            ("tool_input", fact("tool", "args")),
            ("tool_output", fact("tool", "result")),
        ];
        named
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect()
    }

    /// The same with one more fact.
    pub(super) fn with_fact(mut self, key: &str, value: Value) -> Self {
        self.facts.insert(key.to_owned(), value);
        self
    }

    /// The same about these, as matchers look at it.
    pub(super) fn with_subjects(
        mut self,
        subjects: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.subjects.extend(subjects.into_iter().map(Into::into));
        self
    }

    /// What the next hook is told after this change.
    pub(super) fn apply(&mut self, change: &HookChange) {
        let (fact, key, value) = match change {
            HookChange::ToolArgs(args) => ("tool", "args", args.clone()),
            HookChange::ToolResult(text) => ("tool", "result", text.as_str().into()),
            HookChange::ModelResponse(text) => ("model", "text", text.as_str().into()),
            HookChange::Prompt(text) => {
                self.facts.insert("prompt".to_owned(), text.as_str().into());
                return;
            }
            // They add to what is sent, and the summary of that stays true.
            HookChange::Context(_) | HookChange::ModelRequest(_) => return,
        };
        if let Some(Value::Object(fact)) = self.facts.get_mut(fact) {
            fact.insert(key.to_owned(), value);
        }
    }
}

/// The beginning of a text, and whether that is not all of it.
pub(super) fn truncate_for_hooks(text: &str) -> (&str, bool) {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}
