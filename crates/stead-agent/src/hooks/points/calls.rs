//! Around calls: before the gate, in the place of a person, after the result.

use super::super::effect::HookChange;
use super::super::engine::{HookResults, HookVerdict};
use super::super::input::{HookInput, truncate_for_hooks};
use super::render_context;
use crate::active_run::{ActiveRun, RunStop};
use crate::halt::Halt;
use crate::{Agent, ApprovalAnswer, ApprovalQuestion, Budget, DelegationBounds};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use stead_core::{
    Block, CallResult, CallState, HookOutcome, Message, Owner, PendingCall, Redactor, ResultStatus,
    SessionId, ToolCall,
};
use stead_tools::{Registry, known_names};
use stead_workspace::HookEvent;

/// Asks about the result of a call once there is one, while other calls go on.
pub(crate) struct AfterToolHooks {
    pub(super) agent: Arc<Agent>,
    pub(super) owner: Owner,
    pub(super) session: SessionId,
    pub(super) budget: Budget,
    pub(super) halt: Halt,
    /// What they are told, and what binds them; none if nobody is asked.
    pub(super) input: Option<(HookInput, DelegationBounds)>,
}

impl ActiveRun<'_> {
    /// Asks about a call that nobody has judged yet. None if it is denied, which is on record then.
    pub(crate) async fn before_tool(
        &mut self,
        mut pending: PendingCall,
    ) -> Result<Option<PendingCall>, RunStop> {
        let fresh = pending.state == CallState::New && pending.call.invalid.is_none();
        if !fresh || !self.hooks_listen(HookEvent::BeforeToolCall) {
            return Ok(Some(pending));
        }
        // What is no tool is refused by the registry.
        let Some(input) = self.call_input(HookEvent::BeforeToolCall, &pending.call) else {
            return Ok(Some(pending));
        };
        let mut fired = self
            .session
            .agent
            .hooks
            .fire(input, &self.hook_context())
            .await;
        refuse_secrets(self.session.sessions.redactor(), &mut fired);
        let HookResults {
            verdict,
            changes,
            context: words,
            suppressed,
            ..
        } = self.record_hook_results(fired).await?;
        let id = pending.call.id.clone();
        if let HookVerdict::Block { hook, reason } = verdict {
            let text = format!("denied: hook {hook}: {reason}");
            self.refuse(&pending.call, ResultStatus::Denied, text)
                .await?;
            return Ok(None);
        }
        for change in changes {
            if let HookChange::ToolArgs(args) = change {
                pending.call = ToolCall {
                    args,
                    ..pending.call
                };
            }
        }
        if suppressed {
            self.hook_output.suppressed.insert(id.clone());
        }
        if !words.is_empty() {
            self.hook_output
                .call_context
                .entry(id)
                .or_default()
                .extend(words);
        }
        Ok(Some(pending))
    }

    /// What a hook answers in the place of a person, and as whom; none if a person is to be asked.
    pub(crate) async fn permission_from_hooks(
        &mut self,
        question: &ApprovalQuestion,
    ) -> Result<Option<(ApprovalAnswer, String)>, RunStop> {
        if !self.hooks_listen(HookEvent::PermissionRequest) {
            return Ok(None);
        }
        let ApprovalQuestion {
            id,
            tool,
            args,
            rule,
            ..
        } = question.clone();
        let call = ToolCall {
            id,
            name: tool,
            args,
            invalid: None,
            signature: None,
        };
        let Some(input) = self.call_input(HookEvent::PermissionRequest, &call) else {
            return Ok(None);
        };
        let fired = self.ask_hooks(input.with_fact("rule", rule.into())).await?;
        Ok(match fired.verdict {
            HookVerdict::Approve(hook) => Some((ApprovalAnswer::Yes, format!("hook {hook}"))),
            HookVerdict::Block { hook, reason } => Some((
                ApprovalAnswer::No {
                    reason: Some(reason),
                },
                format!("hook {hook}"),
            )),
            HookVerdict::Pass | HookVerdict::StopRun { .. } | HookVerdict::Halted(_) => None,
        })
    }

    /// Who asks about the result of a call.
    pub(crate) fn after_tool(&self, call: &ToolCall) -> AfterToolHooks {
        let listens = self.hooks_listen(HookEvent::AfterToolCall);
        AfterToolHooks {
            agent: self.session.agent.clone(),
            owner: self.session.owner.clone(),
            session: self.session.id.clone(),
            budget: self.budget.clone(),
            halt: self.halt.clone(),
            input: match listens {
                true => self
                    .call_input(HookEvent::AfterToolCall, call)
                    .map(|input| (input, self.session.delegation_bounds())),
                false => None,
            },
        }
    }

    /// Puts on record what hooks said of a result, and adds what they said to it. Why the run is to
    /// end, if it is.
    pub(crate) async fn apply_after_tool_results(
        &mut self,
        fired: HookResults,
        result: &mut CallResult,
    ) -> Result<Option<RunStop>, RunStop> {
        let mut words = self
            .hook_output
            .call_context
            .remove(&result.id)
            .unwrap_or_default();
        words.extend(fired.context.iter().cloned());
        result
            .content
            .extend(words.iter().map(|words| Block::text(render_context(words))));
        if fired.suppressed {
            self.hook_output.suppressed.insert(result.id.clone());
        }
        match self.record_hook_results(fired).await {
            Ok(_) => Ok(None),
            // The call has run: its result goes on record first.
            Err(stop @ (RunStop::Hook(_) | RunStop::Halted(_))) => Ok(Some(stop)),
            Err(stop) => Err(stop),
        }
    }

    /// What hooks are told of a call; none if there is no such tool.
    fn call_input(&self, event: HookEvent, call: &ToolCall) -> Option<HookInput> {
        call_input(self.hook_input(event), self.callable_tools(), call)
    }
}

/// What hooks are told of a call; none if there is no such tool.
pub(super) fn call_input(input: HookInput, tools: &Registry, call: &ToolCall) -> Option<HookInput> {
    let spec = tools.find(&call.name)?.spec();
    let names = [&spec.name, &call.name]
        .into_iter()
        .chain(&spec.aliases)
        .cloned();
    let covered = spec
        .follows_rules_of
        .as_deref()
        .map(known_names)
        .unwrap_or_default();
    let known = known_names(&spec.name)
        .into_iter()
        .chain(covered)
        .map(str::to_owned);
    let tool =
        json!({"name": spec.name, "called_as": call.name, "call_id": call.id, "args": call.args});
    let mut input = input
        .with_subjects(names.chain(known))
        .with_fact("tool", tool);
    input.call = Some(call.id.clone());
    Some(input)
}

/// What runs must be what is on record, and no secret is.
pub(super) fn refuse_secrets(redactor: &Redactor, fired: &mut HookResults) {
    let holds = |args: &Value| matches!(redactor.redact(&args.to_string()), Cow::Owned(_));
    for run in fired
        .runs
        .iter_mut()
        .filter(|run| run.args.as_ref().is_some_and(holds))
    {
        let reason = "the arguments it gave hold a secret of this machine".to_owned();
        (run.args, run.outcome, run.detail) = (None, HookOutcome::Failed, Some(reason.clone()));
        fired.verdict = HookVerdict::Block {
            hook: run.hook.clone(),
            reason,
        };
    }
}

impl AfterToolHooks {
    /// The result as the model is to be told it, and what hooks said.
    pub(crate) async fn run(self, mut result: CallResult) -> (CallResult, HookResults) {
        let Some((mut input, bound)) = self.input else {
            return (result, HookResults::default());
        };
        let text = Message::User {
            content: result.content.clone(),
        }
        .text();
        let (text, cut) = truncate_for_hooks(&text);
        if let Some(Value::Object(tool)) = input.facts.get_mut("tool") {
            tool.insert("status".to_owned(), result.status.as_str().into());
            tool.insert("result".to_owned(), text.into());
            tool.insert("cut".to_owned(), cut.into());
        }
        let asking = super::HookContext {
            agent: &self.agent,
            owner: &self.owner,
            session: &self.session,
            bounds: bound,
            budget: self.budget,
            halt: Some(&self.halt),
            max_wait: super::NO_LIMIT,
        };
        let fired = self.agent.hooks.fire(input, &asking).await;
        for change in &fired.changes {
            if let HookChange::ToolResult(text) = change {
                result.content = vec![Block::text(text)];
            }
        }
        if let HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } =
            &fired.verdict
        {
            let text = format!("withheld: hook {hook}: {reason}. The call itself has run.");
            (result.status, result.content) = (ResultStatus::Error, vec![Block::text(text)]);
            result.activates = None;
        }
        (result, fired)
    }
}
