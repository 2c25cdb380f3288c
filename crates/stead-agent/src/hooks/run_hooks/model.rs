//! Hooks around the model: about requests, replies and compaction.
//!
//! Effects: the clock, workspace files (reads), the journal (writes), hooks.

use super::super::effect::HookChange;
use super::super::engine::HookVerdict;
use super::super::input::{HookInput, truncate_for_hooks};
use super::{RunHooks, listens, run_input};
use crate::run::{Conversation, RunJournal, RunStop};
use crate::{HookAction, HookStop};
use serde_json::{Value, json};
use stead_core::{
    Block, CompactionCause, DroppedCounts, Entry, EventKind, Message, StopReason, ToolCall,
};
use stead_model::{Request, SystemPart};
use stead_workspace::HookEvent;

/// The most characters of the newest message that hooks are shown.
const MAX_LAST_MESSAGE_CHARS: usize = 4_000;

/// A reply after hooks saw it.
pub(crate) struct HookedReply {
    pub(crate) content: Vec<Block>,
    /// Entries to record with the reply.
    pub(crate) entries: Vec<Entry>,
    /// Why the run ends after the reply.
    pub(crate) stop: Option<RunStop>,
}

impl HookedReply {
    /// Returns a reply that no hook changed.
    pub(crate) fn unchanged(content: Vec<Block>) -> Self {
        Self {
            content,
            entries: Vec::new(),
            stop: None,
        }
    }
}

impl RunHooks {
    /// Asks hooks before a request is built, and appends their texts for the conversation to the
    /// journal.
    pub(crate) async fn before_context_build(
        &mut self,
        journal: &mut RunJournal<'_>,
        conversation: &Conversation,
    ) -> Result<(), RunStop> {
        self.system_context.clear();
        let event = HookEvent::BeforeContextBuild;
        if listens(journal, event) {
            let input = request_input(journal, conversation, event, None);
            self.ask_about_request(journal, input).await?;
        }
        Ok(self.record_pending_context(journal).await?)
    }

    /// Asks hooks about a request, and changes it as they want.
    pub(crate) async fn change_request(
        &mut self,
        journal: &mut RunJournal<'_>,
        conversation: &mut Conversation,
        request: &mut Request,
    ) -> Result<(), RunStop> {
        for event in [HookEvent::AfterContextBuild, HookEvent::BeforeModelCall] {
            if !listens(journal, event) {
                continue;
            }
            let input = request_input(journal, conversation, event, Some(&*request));
            for change in self.ask_about_request(journal, input).await? {
                if let HookChange::ModelRequest(patch) = change {
                    let params = &mut request.params;
                    params.max_output_tokens = patch.max_output_tokens.or(params.max_output_tokens);
                    params.thinking_tokens = patch.thinking_tokens.or(params.thinking_tokens);
                    params.temperature = patch.temperature.or(params.temperature);
                    self.system_context.extend(patch.system);
                }
            }
            if !self.pending_context.is_empty() {
                self.record_pending_context(journal).await?;
                request.messages = conversation.messages(journal.state()).await;
            }
        }
        let added = std::mem::take(&mut self.system_context);
        if !added.is_empty() {
            let added = added.into_iter().map(|text| SystemPart {
                text,
                stable: false,
            });
            request.system = request.system.iter().cloned().chain(added).collect();
        }
        Ok(())
    }

    /// Asks hooks, keeps their texts for the request, and returns the other changes they want.
    async fn ask_about_request(
        &mut self,
        journal: &mut RunJournal<'_>,
        input: HookInput,
    ) -> Result<Vec<HookChange>, RunStop> {
        let event = input.event;
        let results = self.ask(journal, input).await?;
        if let HookVerdict::Block { hook, reason } = results.verdict {
            return Err(RunStop::Hook(HookStop {
                hook,
                action: HookAction::Refused(event),
                reason,
            }));
        }
        self.pending_context.extend(results.context);
        let mut others = Vec::new();
        for change in results.changes {
            match change {
                HookChange::Context(text) => self.system_context.push(text),
                other => others.push(other),
            }
        }
        Ok(others)
    }

    /// Asks hooks about a reply of `model`. Returns entries instead of appending them: the caller
    /// records them together with the reply, which is paid for whatever hooks say.
    pub(crate) async fn after_model(
        &mut self,
        journal: &mut RunJournal<'_>,
        model: &str,
        stop: &StopReason,
        content: Vec<Block>,
    ) -> HookedReply {
        let mut reply = HookedReply::unchanged(content);
        if !listens(journal, HookEvent::AfterModelCall) {
            return reply;
        }
        let input = reply_input(journal, model, stop, &reply.content);
        let hooks = &journal.agent().hooks;
        let results = hooks.fire(input, &self.context(journal)).await;
        for (level, text) in results.notices {
            journal.emit(EventKind::Notice { level, text });
        }
        reply.entries = results.runs.into_iter().map(Entry::Hook).collect();
        for change in results.changes {
            if let HookChange::ModelResponse(text) = change {
                reply.content = replace_text(reply.content, text);
            }
        }
        match results.verdict {
            HookVerdict::Pass | HookVerdict::Approve(_) => {}
            HookVerdict::Halted(reason) => reply.stop = Some(reason.into()),
            HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } => {
                reply.content = Vec::new();
                reply.stop = Some(RunStop::Hook(HookStop {
                    hook,
                    action: HookAction::DroppedAnswer,
                    reason,
                }));
            }
        }
        reply
    }

    /// Asks hooks before a compaction. Returns false if a hook refuses it.
    pub(crate) async fn before_compaction(
        &mut self,
        journal: &mut RunJournal<'_>,
        cause: CompactionCause,
        before_tokens: u64,
    ) -> Result<bool, RunStop> {
        let event = HookEvent::BeforeCompaction;
        if !listens(journal, event) {
            return Ok(true);
        }
        let facts = json!({"cause": cause, "before_tokens": before_tokens});
        let input = compaction_input(journal, event, cause, facts);
        let results = self.ask(journal, input).await?;
        Ok(!matches!(results.verdict, HookVerdict::Block { .. }))
    }

    /// Tells hooks of a compaction. Their texts for the conversation go into the next request.
    pub(crate) async fn after_compaction(
        &mut self,
        journal: &mut RunJournal<'_>,
        cause: CompactionCause,
        dropped: DroppedCounts,
        (before_tokens, after_tokens): (u64, u64),
    ) -> Result<(), RunStop> {
        let event = HookEvent::AfterCompaction;
        if !listens(journal, event) {
            return Ok(());
        }
        let facts = json!({
            "cause": cause, "before_tokens": before_tokens, "after_tokens": after_tokens, "dropped": dropped,
        });
        let input = compaction_input(journal, event, cause, facts);
        let results = self.ask(journal, input).await?;
        self.pending_context.extend(results.context);
        Ok(())
    }
}

/// The facts about a request that hooks are told.
fn request_input(
    journal: &RunJournal<'_>,
    conversation: &Conversation,
    event: HookEvent,
    request: Option<&Request>,
) -> HookInput {
    let state = journal.state();
    let params = request.map_or(conversation.params(), |request| &request.params);
    let specs = conversation.tools().specs();
    let tools: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let (prefix, open) = state.visible_messages();
    let last = state.turns.last().map(|turn| turn.message.text());
    let last = last.unwrap_or_default();
    let last: String = last.chars().take(MAX_LAST_MESSAGE_CHARS).collect();
    let name = journal.session().model();
    let mut model = json!({
        "name": name,
        "step": state.run.as_ref().map_or(0, |run| run.steps) + 1,
        "messages": prefix.len() + open.len(),
        "tools": tools,
        "tokens": state.used_tokens(conversation.head_tokens()),
        "max_output_tokens": params.max_output_tokens,
        "temperature": params.temperature,
        "last": last,
    });
    let subjects = model_names(journal, name, &mut model);
    run_input(journal, event)
        .with_subjects(subjects)
        .with_fact("model", model)
}

/// The facts about a reply that hooks are told.
fn reply_input(
    journal: &RunJournal<'_>,
    model: &str,
    stop: &StopReason,
    content: &[Block],
) -> HookInput {
    let message = Message::Assistant {
        content: content.to_vec(),
    };
    let call = |call: &ToolCall| json!({"name": call.name, "call_id": call.id, "args": call.args});
    let calls: Vec<Value> = message.calls().map(call).collect();
    let mut facts = json!({
        "name": model,
        "step": journal.state().run.as_ref().map_or(0, |run| run.steps) + 1,
        "text": truncate_for_hooks(&message.text()).0,
        "calls": calls,
        "stop": stop,
    });
    let subjects = model_names(journal, model, &mut facts);
    run_input(journal, HookEvent::AfterModelCall)
        .with_subjects(subjects)
        .with_fact("model", facts)
}

/// Returns the names of `model` that matchers compare: its own, and the name that the workspace
/// gives it, which is added to `facts`.
fn model_names(journal: &RunJournal<'_>, model: &str, facts: &mut Value) -> Vec<String> {
    let settings = journal.agent().workspace().config().model.as_ref();
    let reference = settings
        .filter(|settings| settings.name == model)
        .and_then(|settings| settings.reference.clone());
    if let (Some(reference), Value::Object(facts)) = (&reference, facts) {
        facts.insert("reference".to_owned(), reference.as_str().into());
    }
    std::iter::once(model.to_owned()).chain(reference).collect()
}

/// The facts about a compaction that hooks are told.
fn compaction_input(
    journal: &RunJournal<'_>,
    event: HookEvent,
    cause: CompactionCause,
    facts: Value,
) -> HookInput {
    let name = match cause {
        CompactionCause::Limit => "limit",
        CompactionCause::Overflow => "overflow",
        CompactionCause::Manual => "manual",
    };
    run_input(journal, event)
        .with_subjects([name])
        .with_fact("compaction", facts)
}

/// Replaces all text blocks of a reply by one, after its thinking. Calls stay unchanged.
fn replace_text(content: Vec<Block>, text: String) -> Vec<Block> {
    let is_thinking = |block: &Block| matches!(block, Block::Thinking(_));
    let (thinking, rest): (Vec<Block>, Vec<Block>) = content.into_iter().partition(is_thinking);
    let rest = rest
        .into_iter()
        .filter(|block| !matches!(block, Block::Text { .. }));
    let text = (!text.is_empty()).then(|| Block::text(text));
    thinking.into_iter().chain(text).chain(rest).collect()
}
