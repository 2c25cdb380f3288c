//! Around a call outside any session: what hooks say holds there as well, though nothing goes on
//! record.

use super::super::ask::HookContext;
use super::super::effect::HookChange;
use super::super::engine::{HookResults, HookVerdict};
use super::super::input::HookInput;
use super::calls::{AfterToolHooks, call_input, refuse_secrets};
use super::{NO_LIMIT, hook_input, render_context};
use crate::halt::Halt;
use crate::{Agent, ApprovalAnswer, ApprovalQuestion, DelegationBounds, SessionlessResult};
use std::sync::Arc;
use stead_core::{Block, CallResult, NoticeLevel, Owner, ResultStatus, RunId, SessionId, ToolCall};
use stead_gate::SessionPermissions;
use stead_tools::Registry;
use stead_workspace::HookEvent;

/// Asks hooks about one call.
pub(crate) struct SessionlessHooks {
    agent: Arc<Agent>,
    owner: Owner,
    run: RunId,
    session: SessionId,
    permissions: SessionPermissions,
    halt: Halt,
    /// For people.
    notices: Vec<(NoticeLevel, String)>,
    /// For the model, each with the hook it is from.
    context: Vec<(String, String)>,
}

impl SessionlessHooks {
    pub(crate) fn new(
        (agent, owner): (&Arc<Agent>, &Owner),
        run: RunId,
        terms: SessionPermissions,
        halt: Halt,
    ) -> Self {
        let told = Vec::new();
        let words = Vec::new();
        Self {
            agent: agent.clone(),
            owner: owner.clone(),
            run,
            session: SessionId::sessionless(),
            permissions: terms,
            halt,
            notices: told,
            context: words,
        }
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) fn halt(&self) -> &Halt {
        &self.halt
    }

    /// What they said to people.
    pub(crate) fn into_notices(self) -> Vec<(NoticeLevel, String)> {
        self.notices
    }

    /// The call as it is to be judged; what is said of it instead, if one of them says no.
    pub(crate) async fn before_call(
        &mut self,
        tools: &Registry,
        mut call: ToolCall,
    ) -> Result<ToolCall, SessionlessResult> {
        let Some(input) = self.input_if_listened(HookEvent::BeforeToolCall, tools, &call) else {
            return Ok(call);
        };
        let mut fired = self.fire(input).await;
        refuse_secrets(
            self.agent.place().sessions(&self.owner).redactor(),
            &mut fired,
        );
        if let Some(said) = denial(&fired.verdict) {
            return Err(SessionlessResult::new(ResultStatus::Denied, said));
        }
        for change in fired.changes {
            if let HookChange::ToolArgs(args) = change {
                call = ToolCall { args, ..call };
            }
        }
        self.context.extend(fired.context);
        Ok(call)
    }

    /// What one of them answers in the place of a person, and as whom.
    pub(crate) async fn permission_from_hooks(
        &mut self,
        tools: &Registry,
        question: &ApprovalQuestion,
    ) -> Result<Option<(ApprovalAnswer, String)>, SessionlessResult> {
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
        let Some(input) = self.input_if_listened(HookEvent::PermissionRequest, tools, &call) else {
            return Ok(None);
        };
        let fired = self.fire(input.with_fact("rule", rule.into())).await;
        match &fired.verdict {
            HookVerdict::Approve(hook) => Ok(Some((ApprovalAnswer::Yes, format!("hook {hook}")))),
            verdict => denial(verdict).map_or(Ok(None), |said| {
                Err(SessionlessResult::new(ResultStatus::Denied, said))
            }),
        }
    }

    /// The result as it is to be told.
    pub(crate) async fn after_call(
        &mut self,
        tools: &Registry,
        call: &ToolCall,
        result: CallResult,
    ) -> CallResult {
        let input = self.input_if_listened(HookEvent::AfterToolCall, tools, call);
        let after = AfterToolHooks {
            agent: self.agent.clone(),
            owner: self.owner.clone(),
            session: self.session.clone(),
            budget: self.agent.budget(&self.owner),
            halt: self.halt.clone(),
            input: input.map(|input| (input, self.delegation_bounds())),
        };
        let (mut result, fired) = after.run(result).await;
        self.notices.extend(fired.notices);
        self.context.extend(fired.context);
        result.content.extend(
            self.context
                .iter()
                .map(|words| Block::text(render_context(words))),
        );
        result
    }

    /// What they are told of the call, if any of them is asked.
    fn input_if_listened(
        &self,
        event: HookEvent,
        tools: &Registry,
        call: &ToolCall,
    ) -> Option<HookInput> {
        if !self.agent.hooks.has_listener(event) {
            return None;
        }
        let input = hook_input(
            &self.agent,
            event,
            (&self.owner, &self.session),
            Some(self.run.clone()),
        );
        call_input(input, tools, call)
    }

    async fn fire(&mut self, input: HookInput) -> HookResults {
        let owner = &self.owner;
        let asking = HookContext {
            agent: &self.agent,
            owner,
            session: &self.session,
            bounds: self.delegation_bounds(),
            budget: self.agent.budget(owner),
            halt: Some(&self.halt),
            max_wait: NO_LIMIT,
        };
        let mut fired = self.agent.hooks.fire(input, &asking).await;
        self.notices.append(&mut fired.notices);
        fired
    }

    fn delegation_bounds(&self) -> DelegationBounds {
        DelegationBounds::new(
            self.session.clone(),
            &self.permissions,
            0,
            self.session.clone(),
        )
    }
}

/// What is said of a call that one of them does not let pass.
fn denial(verdict: &HookVerdict) -> Option<String> {
    match verdict {
        HookVerdict::Block { hook, reason } | HookVerdict::StopRun { hook, reason } => {
            Some(format!("denied: hook {hook}: {reason}"))
        }
        HookVerdict::Halted(_) => Some("denied: stopped before its hooks had answered".to_owned()),
        HookVerdict::Pass | HookVerdict::Approve(_) => None,
    }
}
