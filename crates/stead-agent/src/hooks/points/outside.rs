//! Around a call outside any session: what hooks say holds there as well, though nothing goes on
//! record.

use super::super::ask::Asking;
use super::super::effect::Change;
use super::super::engine::{Fired, Verdict};
use super::super::input::HookInput;
use super::calls::{AfterTool, of_call, refuse_secrets};
use super::{NO_LIMIT, worded};
use crate::gate::Terms;
use crate::halt::Halt;
use crate::{Agent, Answer, Bound, Called, Question};
use std::sync::Arc;
use stead_core::{Block, CallResult, Level, ResultStatus, RunId, SessionId, ToolCall};
use stead_tools::Registry;
use stead_workspace::HookEvent;

/// Asks hooks about one call.
pub(crate) struct Outside {
    agent: Arc<Agent>,
    run: RunId,
    session: SessionId,
    terms: Terms,
    halt: Halt,
    /// For people.
    told: Vec<(Level, String)>,
    /// For the model, each with the hook it is from.
    words: Vec<(String, String)>,
}

impl Outside {
    pub(crate) fn new(agent: &Arc<Agent>, run: RunId, terms: Terms, halt: Halt) -> Self {
        let told = Vec::new();
        let words = Vec::new();
        Self {
            agent: agent.clone(),
            run,
            session: SessionId::outside(),
            terms,
            halt,
            told,
            words,
        }
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    pub(crate) fn halt(&self) -> &Halt {
        &self.halt
    }

    /// What they said to people.
    pub(crate) fn told(self) -> Vec<(Level, String)> {
        self.told
    }

    /// The call as it is to be judged; what is said of it instead, if one of them says no.
    pub(crate) async fn before(
        &mut self,
        tools: &Registry,
        mut call: ToolCall,
    ) -> Result<ToolCall, Called> {
        let Some(input) = self.listens(HookEvent::BeforeToolCall, tools, &call) else {
            return Ok(call);
        };
        let mut fired = self.fire(input).await;
        refuse_secrets(self.agent.sessions().redactor(), &mut fired);
        if let Some(said) = denial(&fired.verdict) {
            return Err(Called::new(ResultStatus::Denied, said));
        }
        for change in fired.changes {
            if let Change::ToolArgs(args) = change {
                call = ToolCall { args, ..call };
            }
        }
        self.words.extend(fired.words);
        Ok(call)
    }

    /// What one of them answers in the place of a person, and as whom.
    pub(crate) async fn permission(
        &mut self,
        tools: &Registry,
        question: &Question,
    ) -> Result<Option<(Answer, String)>, Called> {
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
        let Some(input) = self.listens(HookEvent::PermissionRequest, tools, &call) else {
            return Ok(None);
        };
        let fired = self.fire(input.with("rule", rule.into())).await;
        match &fired.verdict {
            Verdict::Yes(hook) => Ok(Some((Answer::Yes, format!("hook {hook}")))),
            verdict => denial(verdict).map_or(Ok(None), |said| {
                Err(Called::new(ResultStatus::Denied, said))
            }),
        }
    }

    /// The result as it is to be told.
    pub(crate) async fn after(
        &mut self,
        tools: &Registry,
        call: &ToolCall,
        result: CallResult,
    ) -> CallResult {
        let input = self.listens(HookEvent::AfterToolCall, tools, call);
        let after = AfterTool {
            agent: self.agent.clone(),
            owner: self.agent.owner().clone(),
            session: self.session.clone(),
            budget: self.agent.budget(self.agent.owner()),
            halt: self.halt.clone(),
            asks: input.map(|input| (input, self.bound())),
        };
        let (mut result, fired) = after.see(result).await;
        self.told.extend(fired.told);
        self.words.extend(fired.words);
        result
            .content
            .extend(self.words.iter().map(|words| Block::text(worded(words))));
        result
    }

    /// What they are told of the call, if any of them is asked.
    fn listens(&self, event: HookEvent, tools: &Registry, call: &ToolCall) -> Option<HookInput> {
        if !self.agent.hooks.listen(event) {
            return None;
        }
        let input = self.agent.happens(
            event,
            (self.agent.owner(), &self.session),
            Some(self.run.clone()),
        );
        of_call(input, tools, call)
    }

    async fn fire(&mut self, input: HookInput) -> Fired {
        let owner = self.agent.owner();
        let asking = Asking {
            agent: &self.agent,
            owner,
            session: &self.session,
            bound: self.bound(),
            budget: self.agent.budget(owner),
            halt: Some(&self.halt),
            at_most: NO_LIMIT,
        };
        let mut fired = self.agent.hooks.fire(input, &asking).await;
        self.told.append(&mut fired.told);
        fired
    }

    fn bound(&self) -> Bound {
        Bound::new(self.session.clone(), &self.terms, 0, self.session.clone())
    }
}

/// What is said of a call that one of them does not let pass.
fn denial(verdict: &Verdict) -> Option<String> {
    match verdict {
        Verdict::No { hook, reason } | Verdict::End { hook, reason } => {
            Some(format!("denied: hook {hook}: {reason}"))
        }
        Verdict::Halted(_) => Some("denied: stopped before its hooks had answered".to_owned()),
        Verdict::Pass | Verdict::Yes(_) => None,
    }
}
