//! Around calls: before the gate, in the place of a person, after the result.

use super::super::effect::Change;
use super::super::engine::{Fired, Verdict};
use super::super::input::{HookInput, shown};
use super::worded;
use crate::halt::Halt;
use crate::live::{Live, Stop};
use crate::{Agent, Answer, Bound, Budget, Question};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;
use stead_core::{
    Block, CallResult, CallState, HookOutcome, Message, Owner, Pending, Redactor, ResultStatus,
    SessionId, ToolCall,
};
use stead_tools::{Registry, counts_as, known_names};
use stead_workspace::HookEvent;

/// Asks about the result of a call once there is one, while other calls go on.
pub(crate) struct AfterTool {
    pub(super) agent: Arc<Agent>,
    pub(super) owner: Owner,
    pub(super) session: SessionId,
    pub(super) budget: Budget,
    pub(super) halt: Halt,
    /// What they are told, and what binds them; none if nobody is asked.
    pub(super) asks: Option<(HookInput, Bound)>,
}

impl Live<'_> {
    /// Asks about a call that nobody has judged yet. None if it is denied, which is on record then.
    pub(crate) async fn before_tool(
        &mut self,
        mut pending: Pending,
    ) -> Result<Option<Pending>, Stop> {
        let fresh = pending.state == CallState::New && pending.call.invalid.is_none();
        if !fresh || !self.hooks_listen(HookEvent::BeforeToolCall) {
            return Ok(Some(pending));
        }
        // What is no tool is refused by the registry.
        let Some(input) = self.of_call(HookEvent::BeforeToolCall, &pending.call) else {
            return Ok(Some(pending));
        };
        let mut fired = self.session.agent.hooks.fire(input, &self.asking()).await;
        refuse_secrets(self.session.sessions.redactor(), &mut fired);
        let Fired {
            verdict,
            changes,
            words,
            suppressed,
            ..
        } = self.settle(fired).await?;
        let id = pending.call.id.clone();
        if let Verdict::No { hook, reason } = verdict {
            let text = format!("denied: hook {hook}: {reason}");
            self.refuse(&pending.call, ResultStatus::Denied, text)
                .await?;
            return Ok(None);
        }
        for change in changes {
            if let Change::ToolArgs(args) = change {
                pending.call = ToolCall {
                    args,
                    ..pending.call
                };
            }
        }
        if suppressed {
            self.hooked.suppressed.insert(id.clone());
        }
        if !words.is_empty() {
            self.hooked.of_calls.entry(id).or_default().extend(words);
        }
        Ok(Some(pending))
    }

    /// What a hook answers in the place of a person, and as whom; none if a person is to be asked.
    pub(crate) async fn permission(
        &mut self,
        question: &Question,
    ) -> Result<Option<(Answer, String)>, Stop> {
        if !self.hooks_listen(HookEvent::PermissionRequest) {
            return Ok(None);
        }
        let Question {
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
        let Some(input) = self.of_call(HookEvent::PermissionRequest, &call) else {
            return Ok(None);
        };
        let fired = self.ask_hooks(input.with("rule", rule.into())).await?;
        Ok(match fired.verdict {
            Verdict::Yes(hook) => Some((Answer::Yes, format!("hook {hook}"))),
            Verdict::No { hook, reason } => Some((
                Answer::No {
                    words: Some(reason),
                },
                format!("hook {hook}"),
            )),
            Verdict::Pass | Verdict::End { .. } | Verdict::Halted(_) => None,
        })
    }

    /// Who asks about the result of a call.
    pub(crate) fn after_tool(&self, call: &ToolCall) -> AfterTool {
        let listens = self.hooks_listen(HookEvent::AfterToolCall);
        AfterTool {
            agent: self.session.agent.clone(),
            owner: self.session.owner.clone(),
            session: self.session.id.clone(),
            budget: self.budget.clone(),
            halt: self.halt.clone(),
            asks: match listens {
                true => self
                    .of_call(HookEvent::AfterToolCall, call)
                    .map(|input| (input, self.session.bound())),
                false => None,
            },
        }
    }

    /// Puts on record what hooks said of a result, and adds what they said to it. Why the run is to
    /// end, if it is.
    pub(crate) async fn add_words(
        &mut self,
        fired: Fired,
        result: &mut CallResult,
    ) -> Result<Option<Stop>, Stop> {
        let mut words = self.hooked.of_calls.remove(&result.id).unwrap_or_default();
        words.extend(fired.words.iter().cloned());
        result
            .content
            .extend(words.iter().map(|words| Block::text(worded(words))));
        if fired.suppressed {
            self.hooked.suppressed.insert(result.id.clone());
        }
        match self.settle(fired).await {
            Ok(_) => Ok(None),
            // The call has run: its result goes on record first.
            Err(stop @ (Stop::Hook(_) | Stop::Halted(_))) => Ok(Some(stop)),
            Err(stop) => Err(stop),
        }
    }

    /// What hooks are told of a call; none if there is no such tool.
    fn of_call(&self, event: HookEvent, call: &ToolCall) -> Option<HookInput> {
        of_call(self.happens(event), self.hands(), call)
    }
}

/// What hooks are told of a call; none if there is no such tool.
pub(super) fn of_call(input: HookInput, tools: &Registry, call: &ToolCall) -> Option<HookInput> {
    let spec = tools.find(&call.name)?.spec();
    let names = [&spec.name, &call.name]
        .into_iter()
        .chain(&spec.aliases)
        .cloned();
    let covered = counts_as(&spec.name).map(known_names).unwrap_or_default();
    let known = known_names(&spec.name)
        .into_iter()
        .chain(covered)
        .map(str::to_owned);
    let tool =
        json!({"name": spec.name, "called_as": call.name, "call_id": call.id, "args": call.args});
    let mut input = input.about(names.chain(known)).with("tool", tool);
    input.call = Some(call.id.clone());
    Some(input)
}

/// What runs must be what is on record, and no secret is.
pub(super) fn refuse_secrets(redactor: &Redactor, fired: &mut Fired) {
    let holds = |args: &Value| matches!(redactor.clean(&args.to_string()), Cow::Owned(_));
    for run in fired
        .runs
        .iter_mut()
        .filter(|run| run.args.as_ref().is_some_and(holds))
    {
        let reason = "the arguments it gave hold a secret of this machine".to_owned();
        (run.args, run.outcome, run.detail) = (None, HookOutcome::Failed, Some(reason.clone()));
        fired.verdict = Verdict::No {
            hook: run.hook.clone(),
            reason,
        };
    }
}

impl AfterTool {
    /// The result as the model is to be told it, and what hooks said.
    pub(crate) async fn see(self, mut result: CallResult) -> (CallResult, Fired) {
        let Some((mut input, bound)) = self.asks else {
            return (result, Fired::default());
        };
        let text = Message::User {
            content: result.content.clone(),
        }
        .text();
        let (text, cut) = shown(&text);
        if let Some(Value::Object(tool)) = input.facts.get_mut("tool") {
            tool.insert("status".to_owned(), result.status.as_str().into());
            tool.insert("result".to_owned(), text.into());
            tool.insert("cut".to_owned(), cut.into());
        }
        let asking = super::Asking {
            agent: &self.agent,
            owner: &self.owner,
            session: &self.session,
            bound,
            budget: self.budget,
            halt: Some(&self.halt),
            at_most: super::NO_LIMIT,
        };
        let fired = self.agent.hooks.fire(input, &asking).await;
        for change in &fired.changes {
            if let Change::ToolResult(text) = change {
                result.content = vec![Block::text(text)];
            }
        }
        if let Verdict::No { hook, reason } | Verdict::End { hook, reason } = &fired.verdict {
            let text = format!("withheld: hook {hook}: {reason}. The call itself has run.");
            (result.status, result.content) = (ResultStatus::Error, vec![Block::text(text)]);
            result.activates = None;
        }
        (result, fired)
    }
}
