//! Around the model: what it is sent, what it answers, and what it is no longer shown.

use super::super::effect::HookChange;
use super::super::engine::HookVerdict;
use super::super::input::{HookInput, truncate_for_hooks};
use crate::active_run::{ActiveRun, RunStop};
use serde_json::{Value, json};
use stead_core::{Block, CompactionCause, DroppedCounts, Entry, Message, StopReason};
use stead_model::{Request, SystemPart};
use stead_workspace::HookEvent;

/// The most that is shown of the newest message.
const MAX_LAST_MESSAGE_CHARS: usize = 4_000;

/// An answer after hooks saw it.
pub(crate) struct HookedReply {
    pub(crate) content: Vec<Block>,
    /// What is to go on record with it.
    pub(crate) entries: Vec<Entry>,
    /// Why the run ends here.
    pub(crate) stop: Option<RunStop>,
}

impl ActiveRun<'_> {
    /// Asks before a request is put together. What hooks want said is in the conversation then.
    pub(crate) async fn before_context(&mut self) -> Result<(), RunStop> {
        self.hook_output.context.clear();
        if self.hooks_listen(HookEvent::BeforeContextBuild) {
            let input = self.request_input(HookEvent::BeforeContextBuild, None);
            self.ask_about_request(input).await?;
        }
        Ok(self.record_pending_context().await?)
    }

    /// Asks about a request that is put together, and changes it as they want.
    pub(crate) async fn apply_request_hooks(
        &mut self,
        request: &mut Request,
    ) -> Result<(), RunStop> {
        for event in [HookEvent::AfterContextBuild, HookEvent::BeforeModelCall] {
            if !self.hooks_listen(event) {
                continue;
            }
            let input = self.request_input(event, Some(&*request));
            for change in self.ask_about_request(input).await? {
                if let HookChange::ModelRequest(patch) = change {
                    let params = &mut request.params;
                    params.max_output_tokens = patch.max_output_tokens.or(params.max_output_tokens);
                    params.thinking_tokens = patch.thinking_tokens.or(params.thinking_tokens);
                    params.temperature = patch.temperature.or(params.temperature);
                    self.hook_output.context.extend(patch.system);
                }
            }
            if !self.hook_output.pending_context.is_empty() {
                self.record_pending_context().await?;
                request.messages = self.messages().await;
            }
        }
        let context = std::mem::take(&mut self.hook_output.context);
        if !context.is_empty() {
            let said = context.into_iter().map(|text| SystemPart {
                text,
                stable: false,
            });
            request.system = request.system.iter().cloned().chain(said).collect();
        }
        Ok(())
    }

    /// Asks, and keeps words and context for the request; gives the other changes.
    async fn ask_about_request(&mut self, input: HookInput) -> Result<Vec<HookChange>, RunStop> {
        let at = input.event.as_str();
        let fired = self.ask_hooks(input).await?;
        if let HookVerdict::Block { hook, reason } = fired.verdict {
            return Err(RunStop::Hook(format!(
                "hook {hook} said no at {at}: {reason}"
            )));
        }
        self.hook_output.pending_context.extend(fired.context);
        let mut others = Vec::new();
        for change in fired.changes {
            match change {
                HookChange::Context(text) => self.hook_output.context.push(text),
                other => others.push(other),
            }
        }
        Ok(others)
    }

    /// What hooks are told of a request.
    fn request_input(&self, event: HookEvent, request: Option<&Request>) -> HookInput {
        let state = &self.session.state;
        let params = request.map_or(&self.params, |request| &request.params);
        let tools: Vec<String> = self
            .tools
            .specs()
            .iter()
            .map(|spec| spec.name.clone())
            .collect();
        let (prefix, open) = state.visible_messages();
        let last: String = state
            .turns
            .last()
            .map(|turn| {
                turn.message
                    .text()
                    .chars()
                    .take(MAX_LAST_MESSAGE_CHARS)
                    .collect()
            })
            .unwrap_or_default();
        let mut model = json!({
            "name": self.session.agent.parts.model.name(),
            "step": state.run.as_ref().map_or(0, |run| run.steps) + 1,
            "messages": prefix.len() + open.len(),
            "tools": tools,
            "tokens": state.used_tokens(self.head_tokens()),
            "max_output_tokens": params.max_output_tokens,
            "temperature": params.temperature,
            "last": last,
        });
        let name = self.session.agent.parts.model.name();
        self.hook_input(event)
            .with_subjects(self.model_names(name, &mut model))
            .with_fact("model", model)
    }

    /// What matchers look at where `model` is asked: its name, and what the workspace calls it,
    /// which is told, too.
    fn model_names(&self, model: &str, told: &mut Value) -> Vec<String> {
        let settings = self.session.agent.workspace().config().model.as_ref();
        let reference = settings
            .filter(|settings| settings.name == model)
            .and_then(|own| own.reference.clone());
        if let (Some(reference), Value::Object(told)) = (&reference, told) {
            told.insert("reference".to_owned(), reference.as_str().into());
        }
        std::iter::once(model.to_owned()).chain(reference).collect()
    }

    /// Asks about an answer of `model`. Nothing here fails: the answer is paid for, and goes on
    /// record.
    pub(crate) async fn after_model(
        &mut self,
        model: &str,
        stop: &StopReason,
        content: Vec<Block>,
    ) -> HookedReply {
        let mut seen = HookedReply {
            content,
            entries: Vec::new(),
            stop: None,
        };
        if !self.hooks_listen(HookEvent::AfterModelCall) {
            return seen;
        }
        let message = Message::Assistant {
            content: seen.content,
        };
        let call = |call: &stead_core::ToolCall| json!({"name": call.name, "call_id": call.id, "args": call.args});
        let calls: Vec<Value> = message.calls().map(call).collect();
        let text = message.text();
        let mut facts = json!({
            "name": model,
            "step": self.session.state.run.as_ref().map_or(0, |run| run.steps) + 1,
            "text": truncate_for_hooks(&text).0,
            "calls": calls,
            "stop": stop,
        });
        seen.content = match message {
            Message::Assistant { content } | Message::User { content } => content,
            Message::Tool { .. } => Vec::new(),
        };
        let names = self.model_names(model, &mut facts);
        let input = self
            .hook_input(HookEvent::AfterModelCall)
            .with_subjects(names)
            .with_fact("model", facts);
        let mut fired = self
            .session
            .agent
            .hooks
            .fire(input, &self.hook_context())
            .await;
        for (level, text) in fired.notices.drain(..) {
            self.notify_listener(stead_core::EventKind::Notice { level, text });
        }
        seen.entries = fired.runs.into_iter().map(Entry::Hook).collect();
        for change in fired.changes {
            if let HookChange::ModelResponse(text) = change {
                seen.content = replace_text(seen.content, text);
            }
        }
        match fired.verdict {
            HookVerdict::Pass | HookVerdict::Approve(_) => {}
            HookVerdict::Halted(halted) => seen.stop = Some(halted.into()),
            HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } => {
                seen.content = Vec::new();
                seen.stop = Some(RunStop::Hook(format!(
                    "hook {hook} dropped the model's answer: {reason}"
                )));
            }
        }
        seen
    }

    /// Asks before something is left out of the context. False if a hook wants all of it kept.
    pub(crate) async fn before_compaction(
        &mut self,
        cause: CompactionCause,
        before_tokens: u64,
    ) -> Result<bool, RunStop> {
        if !self.hooks_listen(HookEvent::BeforeCompaction) {
            return Ok(true);
        }
        let facts = json!({"cause": cause, "before_tokens": before_tokens});
        let fired = self
            .ask_hooks(self.compaction_input(HookEvent::BeforeCompaction, cause, facts))
            .await?;
        Ok(!matches!(fired.verdict, HookVerdict::Block { .. }))
    }

    /// Tells that something is left out. What hooks want said then comes with the next request.
    pub(crate) async fn after_compaction(
        &mut self,
        cause: CompactionCause,
        dropped: DroppedCounts,
        (before_tokens, after_tokens): (u64, u64),
    ) -> Result<(), RunStop> {
        if !self.hooks_listen(HookEvent::AfterCompaction) {
            return Ok(());
        }
        let facts = json!({
            "cause": cause, "before_tokens": before_tokens, "after_tokens": after_tokens, "dropped": dropped,
        });
        let fired = self
            .ask_hooks(self.compaction_input(HookEvent::AfterCompaction, cause, facts))
            .await?;
        self.hook_output.pending_context.extend(fired.context);
        Ok(())
    }

    fn compaction_input(
        &self,
        event: HookEvent,
        cause: CompactionCause,
        facts: Value,
    ) -> HookInput {
        let name = match cause {
            CompactionCause::Limit => "limit",
            CompactionCause::Overflow => "overflow",
            CompactionCause::Manual => "manual",
        };
        self.hook_input(event)
            .with_subjects([name])
            .with_fact("compaction", facts)
    }
}

/// An answer with other words: its thinking first, and its calls as they were.
fn replace_text(content: Vec<Block>, text: String) -> Vec<Block> {
    let is_thinking = |block: &Block| matches!(block, Block::Thinking(_));
    let (thinking, rest): (Vec<Block>, Vec<Block>) = content.into_iter().partition(is_thinking);
    let rest = rest
        .into_iter()
        .filter(|block| !matches!(block, Block::Text { .. }));
    let said = (!text.is_empty()).then(|| Block::text(text));
    thinking.into_iter().chain(said).chain(rest).collect()
}
