//! Turns and tool calls outside any session, with the same gate and the same hooks.

use crate::admission::{Admission, AdmittedCall, AskedCall, CallGate, GateContext, prepare};
use crate::approvals::ask_if_client_executes;
use crate::halt::Halt;
use crate::hooks::SessionlessHooks;
use crate::tool_calls::{execute, tool_cx};
use crate::turn_setup::{TurnComposer, TurnSession};
use crate::{Agent, AgentError, ApprovalPolicy, Subagents, TurnSetup};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    Block, CallState, NoticeLevel, Owner, PendingCall, ResultStatus, RuleId, RuleSource, RunId,
    SessionId, ToolCall, Verdict,
};
use stead_gate::{SessionPermissions, judge};
use stead_tools::{CallOrigin, Registry};
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

/// The result of a call outside any session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionlessResult {
    /// How it ended.
    pub status: ResultStatus,
    /// The content that a model would have been sent.
    pub content: Vec<Block>,
    /// Messages of hooks for people.
    pub notices: Vec<(NoticeLevel, String)>,
}

impl SessionlessResult {
    pub(crate) fn new(status: ResultStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            content: vec![Block::text(text)],
            notices: Vec::new(),
        }
    }
}

/// Turns and tool calls of one owner outside any session.
#[derive(Debug, Clone)]
pub struct Sessionless {
    pub(crate) agent: Arc<Agent>,
    pub(crate) owner: Owner,
}

impl Sessionless {
    pub(crate) fn new(agent: Arc<Agent>, owner: Owner) -> Self {
        Self { agent, owner }
    }

    /// Sets the owner.
    pub fn for_owner(self, owner: &Owner) -> Self {
        Self {
            owner: owner.clone(),
            ..self
        }
    }

    /// Composes the setup with which a turn would begin.
    pub async fn turn(&self) -> Result<TurnSetup, AgentError> {
        let session = SessionId::sessionless();
        let subagents = Subagents::new(self.agent.clone(), self.owner.clone(), session.clone());
        let turn = TurnSession {
            owner: &self.owner,
            session: &session,
            files: &self.files(),
            subagents: &Arc::new(subagents),
            planning: false,
        };
        TurnComposer::new(&self.agent).compose(turn).await
    }

    /// Calls one tool through the same gate and with the same hooks as in a session. A call that
    /// asks is answered by `approvals`, and refused if that has no answer. Nothing is recorded.
    pub async fn call_tool(
        &self,
        name: &str,
        args: Value,
        approvals: &ApprovalPolicy,
        cancel: CancellationToken,
    ) -> SessionlessResult {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: name.to_owned(),
            args,
            invalid: None,
            signature: None,
        };
        let failed =
            |error: AgentError| SessionlessResult::new(ResultStatus::Error, error.to_string());
        let tools = match self.turn().await {
            Ok(turn) => turn.tools,
            Err(error) => return failed(error),
        };
        let outside = match self.gate_context().await {
            Ok(outside) => outside,
            Err(error) => return failed(error),
        };
        let limit = Duration::from_secs(self.agent.policy().run_timeout_seconds);
        let halt = Halt::new(cancel, limit, CancellationToken::new());
        let mut hooks = SessionlessHooks::new(
            (&self.agent, &self.owner),
            RunId::fresh(),
            outside.permissions.clone(),
            halt,
        );
        let mut called = match self
            .admit(&tools, call, &outside, &mut hooks, approvals)
            .await
        {
            Ok(ready) => self.execute(&tools, ready, &mut hooks).await,
            Err(called) => called,
        };
        called.notices = hooks.into_notices();
        called
    }

    /// Returns the call if it may run, or else its result.
    async fn admit(
        &self,
        tools: &Registry,
        call: ToolCall,
        outside: &GateContext<'_>,
        hooks: &mut SessionlessHooks,
        approvals: &ApprovalPolicy,
    ) -> Result<AdmittedCall, SessionlessResult> {
        let run = hooks.run().clone();
        let gate = CallGate::new(&self.agent);
        let files = self.files();
        let call = hooks.before_call(tools, call).await?;
        let pending = PendingCall {
            call: call.clone(),
            state: CallState::New,
        };
        let AskedCall {
            ask,
            prepared,
            facts: judged,
        } = match gate.admit(tools, &*files, &run, pending, outside).await {
            Admission::Run(ready) => return Ok(*ready),
            Admission::Refuse(status, text) => return Err(SessionlessResult::new(status, text)),
            Admission::Ask(asked) => *asked,
        };
        let pending = self
            .ask(
                call,
                ask,
                (&prepared, &*files, judged),
                (tools, hooks, approvals),
            )
            .await?;
        match gate.admit(tools, &*files, &run, pending, outside).await {
            Admission::Run(ready) => Ok(*ready),
            Admission::Refuse(status, text) => Err(SessionlessResult::new(status, text)),
            Admission::Ask(asked) => Err(SessionlessResult::new(
                ResultStatus::Denied,
                format!("denied: {}", asked.ask.rule),
            )),
        }
    }

    async fn execute(
        &self,
        tools: &Registry,
        ready: AdmittedCall,
        hooks: &mut SessionlessHooks,
    ) -> SessionlessResult {
        let usual = Duration::from_secs(self.agent.policy().tool_timeout_seconds);
        let limit = ready.prepared.plan().timeout().unwrap_or(usual);
        let halt = hooks.halt().clone();
        let cx = tool_cx(
            CallGate::new(&self.agent).guarded_files(self.files()),
            Default::default(),
            CallOrigin::default(),
            &halt,
        );
        let call = ready.call.clone();
        let (_, result, _) = execute(hooks.run().clone(), ready, cx, halt, limit).await;
        let result = hooks.after_call(tools, &call, result).await;
        SessionlessResult {
            status: result.status,
            content: result.content,
            notices: Vec::new(),
        }
    }

    /// Returns the gate's verdict on a call, or why it is not a valid call.
    pub async fn explain(&self, name: &str, args: Value) -> Result<Verdict, String> {
        let tools = self.turn().await.map_err(|error| error.to_string())?.tools;
        let outside = self
            .gate_context()
            .await
            .map_err(|error| error.to_string())?;
        let gate = CallGate::new(&self.agent);
        let prepared = match prepare(&tools, name, args) {
            Ok(prepared) => prepared,
            Err(message) => {
                return gate
                    .excluded_verdict(&tools, name, &outside.permissions)
                    .ok_or(message);
            }
        };
        let judged = gate
            .call_facts((&tools, &*self.files()), &prepared, &outside)
            .await;
        Ok(match judged {
            Ok(call) => {
                let verdict = judge(gate.gate, &outside.permissions, &call);
                ask_if_client_executes(prepared.spec(), verdict)
            }
            Err(error) => Verdict::deny(
                RuleId::new(RuleSource::Path, "unresolved"),
                error.to_string(),
            ),
        })
    }

    /// The facts of a session that has no conversation.
    async fn gate_context(&self) -> Result<GateContext<'_>, AgentError> {
        let owner = &self.owner;
        let mode = self.agent.workspace().config().permission_mode;
        let terms = SessionPermissions {
            mode,
            grants: self.agent.grants(owner).list().await?,
            denied_tools: CallGate::new(&self.agent).denied_tools(),
            ..SessionPermissions::default()
        };
        Ok(GateContext {
            owner,
            permissions: terms,
            tainted_since: None,
            session: None,
        })
    }

    /// The tree as the owner sees it outside any session.
    fn files(&self) -> Arc<dyn Vfs> {
        let place = self.agent.place();
        place.files(&self.owner, &SessionId::sessionless(), None)
    }
}
