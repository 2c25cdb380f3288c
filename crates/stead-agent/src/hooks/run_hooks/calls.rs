//! Hooks around calls: before the gate, in place of a person, after the result.
//!
//! Effects: the clock, workspace files (reads), the local disk (reads), the journal (writes),
//! hooks.

use super::super::ask::HookContext;
use super::super::effect::HookChange;
use super::super::engine::{HookResults, HookVerdict};
use super::super::input::{HookInput, truncate_for_hooks};
use super::{LONGER_THAN_ANY_HOOK, RunHooks, listens, record_results, render_context, run_input};
use crate::admission::resolved_paths;
use crate::commands::LinePaths;
use crate::run::{Conversation, RunJournal, RunSignals, RunStop};
use crate::{Agent, ApprovalAnswer, ApprovalQuestion, Budget, DelegationBounds};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use stead_core::{
    Block, CallResult, CallState, HookOutcome, Message, NestedCall, NestedId, Owner, PendingCall,
    Redactor, ResultStatus, SessionId, ToolCall,
};
use stead_tools::{PreparedCall, known_names};
use stead_vfs::VPath;
use stead_workspace::HookEvent;

/// What hooks said about a call before the gate judged it.
pub(crate) enum BeforeToolOutcome {
    /// The call goes to the gate, perhaps with arguments that hooks changed.
    Continue(Box<PendingCall>),
    /// The call is denied for this reason.
    Deny(String),
}

/// Asks hooks about the result of one call, while other calls go on.
pub(crate) struct AfterToolHooks {
    agent: Arc<Agent>,
    owner: Owner,
    session: SessionId,
    budget: Budget,
    signals: RunSignals,
    /// The facts for the hooks, and the bounds of agents among them; none if no hook listens.
    input: Option<(HookInput, DelegationBounds)>,
}

impl RunHooks {
    /// Asks hooks about a call that nobody has judged yet. `nested` says what it is, if it is a nested
    /// call.
    pub(crate) async fn before_tool(
        &mut self,
        journal: &mut RunJournal<'_>,
        conversation: &Conversation,
        mut pending: PendingCall,
        nested: Option<&NestedCall>,
    ) -> Result<BeforeToolOutcome, RunStop> {
        let event = HookEvent::BeforeToolCall;
        let is_new = pending.state == CallState::New && pending.call.invalid.is_none();
        if !is_new || !listens(journal, event) {
            return Ok(BeforeToolOutcome::Continue(Box::new(pending)));
        }
        // The registry refuses calls of unknown tools.
        let Some(input) = guard_input(journal, conversation, event, &pending.call).await else {
            return Ok(BeforeToolOutcome::Continue(Box::new(pending)));
        };
        let hooks = &journal.agent().hooks;
        let mut results = hooks.fire(input, &self.context(journal)).await;
        refuse_secrets(journal.session().redactor(), &mut results);
        let run = journal.state().run.as_ref();
        let is_known = run.is_some_and(|run| run.pending.find(&pending.call.id).is_some());
        if !is_known && let Some(first) = results.runs.iter_mut().find(|run| run.args.is_some()) {
            first.nested = nested.cloned();
        }
        let results = record_results(journal, results).await?;
        if let HookVerdict::Block { hook, reason } = results.verdict {
            return Ok(BeforeToolOutcome::Deny(format!(
                "denied: hook {hook}: {reason}"
            )));
        }
        for change in results.changes {
            if let HookChange::ToolArgs(args) = change {
                pending.call.args = args;
            }
        }
        let id = pending.call.id.clone();
        if results.suppressed {
            self.suppressed.insert(id.clone());
        }
        if !results.context.is_empty() {
            let texts = self.call_context.entry(id).or_default();
            texts.extend(results.context);
        }
        Ok(BeforeToolOutcome::Continue(Box::new(pending)))
    }

    /// Asks hooks a question in place of a person. Returns the answer and the name of the hook, or
    /// `None` if a person is to be asked.
    pub(crate) async fn permission(
        &mut self,
        journal: &mut RunJournal<'_>,
        conversation: &Conversation,
        question: &ApprovalQuestion,
    ) -> Result<Option<(ApprovalAnswer, String)>, RunStop> {
        let event = HookEvent::PermissionRequest;
        if !listens(journal, event) {
            return Ok(None);
        }
        let call = ToolCall {
            id: question.id.clone(),
            name: question.tool.clone(),
            args: question.args.clone(),
            invalid: None,
            signature: None,
        };
        let Some(input) = guard_input(journal, conversation, event, &call).await else {
            return Ok(None);
        };
        let input = input.with_fact("rule", question.rule.clone().into());
        let results = self.ask(journal, input).await?;
        Ok(match results.verdict {
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

    /// Prepares to ask hooks about the result of `call`.
    pub(crate) fn after_tool(
        &self,
        journal: &RunJournal<'_>,
        conversation: &Conversation,
        call: &ToolCall,
    ) -> AfterToolHooks {
        let event = HookEvent::AfterToolCall;
        let session = journal.session();
        let input = match listens(journal, event) {
            true => call_input(journal, conversation, event, call)
                .map(|input| (input, session.delegation_bounds())),
            false => None,
        };
        AfterToolHooks {
            agent: session.agent().clone(),
            owner: session.owner().clone(),
            session: session.id().clone(),
            budget: self.budget.clone(),
            signals: self.signals.clone(),
            input,
        }
    }

    /// Adds the texts of hooks to a result, and records that the hooks ran. Returns why the run is
    /// to end after the result is on record, if it is.
    pub(crate) async fn add_to_result(
        &mut self,
        journal: &mut RunJournal<'_>,
        results: HookResults,
        result: &mut CallResult,
    ) -> Result<Option<RunStop>, RunStop> {
        let before = self.call_context.remove(&result.id).unwrap_or_default();
        let texts = before.iter().chain(&results.context).map(render_context);
        result.content.extend(texts.map(Block::text));
        if results.suppressed {
            self.suppressed.insert(result.id.clone());
        }
        match record_results(journal, results).await {
            Ok(_) => Ok(None),
            Err(stop @ (RunStop::Hook(_) | RunStop::Halted(_))) => Ok(Some(stop)),
            Err(stop) => Err(stop),
        }
    }
}

/// The facts about a call that hooks are told; none if there is no such tool.
fn call_input(
    journal: &RunJournal<'_>,
    conversation: &Conversation,
    event: HookEvent,
    call: &ToolCall,
) -> Option<HookInput> {
    let tools = conversation.callable_tools(journal.state());
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
    // Arguments that are not valid are told as they are; such a call does not run.
    let prepared = tools.prepare_for_gate(&call.name, call.args.clone()).ok();
    let as_called = tools.checked_args(&call.name, call.args.clone());
    let named = prepared
        .as_ref()
        .map_or(&[][..], |call| call.plan().named_paths());
    let args = prepared.as_ref().map_or(&call.args, PreparedCall::args);
    let mut tool = json!({
        "name": spec.name,
        "called_as": call.name,
        "call_id": call.id,
        "args": with_plain_paths(args, named),
        "input": with_plain_paths(as_called.as_ref().unwrap_or(&call.args), named),
        "raw_args": call.args,
    });
    if let Some(nested) = NestedId::parse(&call.id) {
        tool["parent"] = nested.parent.into();
    }
    let mut input = run_input(journal, event)
        .with_subjects(names.chain(known))
        .with_fact("tool", tool);
    input.call = Some(call.id.clone());
    Some(input)
}

/// The facts about a call for hooks that guard it: also the paths that it touches, resolved.
async fn guard_input(
    journal: &RunJournal<'_>,
    conversation: &Conversation,
    event: HookEvent,
    call: &ToolCall,
) -> Option<HookInput> {
    let mut input = call_input(journal, conversation, event, call)?;
    let tools = conversation.callable_tools(journal.state());
    let prepared = tools.prepare_for_gate(&call.name, call.args.clone()).ok();
    let files = conversation.files();
    let mut paths = match &prepared {
        Some(prepared) => resolved_paths(files, prepared.plan().accesses()).await,
        None => Vec::new(),
    };
    if let Some(line) = prepared.as_ref().and_then(|call| call.plan().command()) {
        let machine = journal.session().machine_view();
        let line = LinePaths::new(files, &machine, line).await;
        paths.extend(line.all().await);
    }
    paths.sort();
    paths.dedup();
    let paths: Vec<String> = paths.iter().map(VPath::to_string).collect();
    if let Some(Value::Object(tool)) = input.facts.get_mut("tool") {
        tool.insert("paths".to_owned(), paths.into());
    }
    Some(input)
}

/// Returns arguments in which the paths are written in one way: from the root of the workspace,
/// without `.`, `..` and a leading `/`.
fn with_plain_paths(args: &Value, named: &[String]) -> Value {
    let mut args = args.clone();
    let values = args
        .as_object_mut()
        .into_iter()
        .flat_map(|args| args.values_mut());
    for value in values {
        let plain = value
            .as_str()
            .filter(|text| named.iter().any(|path| path == text));
        if let Some(path) = plain.and_then(|text| VPath::parse(text).ok()) {
            *value = path.to_string().into();
        }
    }
    args
}

/// Blocks a call if a hook put a secret into its arguments: what runs must be what is on record, and
/// secrets are not recorded.
fn refuse_secrets(redactor: &Redactor, results: &mut HookResults) {
    let holds = |args: &Value| matches!(redactor.redact(&args.to_string()), Cow::Owned(_));
    for run in results
        .runs
        .iter_mut()
        .filter(|run| run.args.as_ref().is_some_and(holds))
    {
        let reason = "the arguments it gave hold a secret of this machine".to_owned();
        (run.args, run.outcome, run.detail) = (None, HookOutcome::Failed, Some(reason.clone()));
        results.verdict = HookVerdict::Block {
            hook: run.hook.clone(),
            reason,
        };
    }
}

impl AfterToolHooks {
    /// Returns the result as the model is to read it, and what the hooks said.
    pub(crate) async fn run(self, mut result: CallResult) -> (CallResult, HookResults) {
        let Some((mut input, bounds)) = self.input else {
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
        let context = HookContext {
            agent: &self.agent,
            owner: &self.owner,
            session: &self.session,
            bounds,
            budget: self.budget,
            signals: Some(&self.signals),
            max_wait: LONGER_THAN_ANY_HOOK,
        };
        let results = self.agent.hooks.fire(input, &context).await;
        for change in &results.changes {
            if let HookChange::ToolResult(text) = change {
                result.content = vec![Block::text(text)];
            }
        }
        if let HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } =
            &results.verdict
        {
            let text = format!("withheld: hook {hook}: {reason}. The call itself has run.");
            result.status = ResultStatus::Error;
            result.content = vec![Block::text(text)];
            result.activates = None;
        }
        (result, results)
    }
}
