//! Calls outside any session: the same gate, and the same hooks.

use crate::admission::{Admission, AdmittedCall, AskedCall, GateContext, prepare};
use crate::approvals::ask_if_client_executes;
use crate::halt::Halt;
use crate::hooks::SessionlessHooks;
use crate::tool_calls::{execute, tool_cx};
use crate::{Agent, AgentError, ApprovalPolicy};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    Block, CallState, NoticeLevel, PendingCall, ResultStatus, RuleId, RuleSource, RunId, SessionId,
    ToolCall, Verdict,
};
use stead_gate::{SessionPermissions, judge};
use stead_tools::{CallOrigin, Registry};
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

/// What came of a call outside any session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionlessResult {
    /// How it ended.
    pub status: ResultStatus,
    /// What a model would have been told.
    pub content: Vec<Block>,
    /// What hooks have for people.
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

impl Agent {
    /// Calls one tool outside any session, through the same gate and with the same hooks as in one.
    /// A call that would ask is answered by `approvals`; with nobody there it is refused. Nothing
    /// is on record.
    pub async fn call_tool(
        self: &Arc<Self>,
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
        let tools = match self.sessionless_turn().await {
            Ok(turn) => turn.tools,
            Err(error) => return failed(error),
        };
        let outside = match self.sessionless_context().await {
            Ok(outside) => outside,
            Err(error) => return failed(error),
        };
        let limit = Duration::from_secs(self.policy().run_timeout_seconds);
        let halt = Halt::new(cancel, limit, CancellationToken::new());
        let mut hooks =
            SessionlessHooks::new(self, RunId::fresh(), outside.permissions.clone(), halt);
        let mut called = match self
            .admit_sessionless(&tools, call, &outside, &mut hooks, approvals)
            .await
        {
            Ok(ready) => self.execute_sessionless(&tools, ready, &mut hooks).await,
            Err(called) => called,
        };
        called.notices = hooks.into_notices();
        called
    }

    /// The call as it may run, or what came of it without running.
    async fn admit_sessionless(
        self: &Arc<Self>,
        tools: &Registry,
        call: ToolCall,
        outside: &GateContext<'_>,
        hooks: &mut SessionlessHooks,
        approvals: &ApprovalPolicy,
    ) -> Result<AdmittedCall, SessionlessResult> {
        let run = hooks.run().clone();
        let files = self.sessionless_files();
        let call = hooks.before_call(tools, call).await?;
        let pending = PendingCall {
            call: call.clone(),
            state: CallState::New,
        };
        let AskedCall {
            ask,
            prepared,
            facts: judged,
        } = match self.admit(tools, &*files, &run, pending, outside).await {
            Admission::Run(ready) => return Ok(ready),
            Admission::Refuse(status, text) => return Err(SessionlessResult::new(status, text)),
            Admission::Ask(asked) => *asked,
        };
        let pending = self
            .ask_sessionless(
                call,
                ask,
                (&prepared, &*files, judged),
                (tools, hooks, approvals),
            )
            .await?;
        match self.admit(tools, &*files, &run, pending, outside).await {
            Admission::Run(ready) => Ok(ready),
            Admission::Refuse(status, text) => Err(SessionlessResult::new(status, text)),
            Admission::Ask(asked) => Err(SessionlessResult::new(
                ResultStatus::Denied,
                format!("denied: {}", asked.ask.rule),
            )),
        }
    }

    async fn execute_sessionless(
        self: &Arc<Self>,
        tools: &Registry,
        ready: AdmittedCall,
        hooks: &mut SessionlessHooks,
    ) -> SessionlessResult {
        let usual = Duration::from_secs(self.policy().tool_timeout_seconds);
        let limit = ready.prepared.plan().timeout().unwrap_or(usual);
        let halt = hooks.halt().clone();
        let cx = tool_cx(
            self.guarded_files(self.sessionless_files()),
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

    /// The gate's verdict on a call, or why it is not a call at all.
    pub async fn explain(self: &Arc<Self>, name: &str, args: Value) -> Result<Verdict, String> {
        let tools = self
            .sessionless_turn()
            .await
            .map_err(|error| error.to_string())?
            .tools;
        let outside = self
            .sessionless_context()
            .await
            .map_err(|error| error.to_string())?;
        let prepared = match prepare(&tools, name, args) {
            Ok(prepared) => prepared,
            Err(message) => {
                return self
                    .excluded_verdict(&tools, name, &outside.permissions)
                    .ok_or(message);
            }
        };
        let judged = self
            .call_facts((&tools, &*self.sessionless_files()), &prepared, &outside)
            .await;
        Ok(match judged {
            Ok(call) => {
                let verdict = judge(&self.gate, &outside.permissions, &call);
                ask_if_client_executes(prepared.spec().executor, verdict)
            }
            Err(error) => Verdict::deny(
                RuleId::new(RuleSource::Path, "unresolved"),
                error.to_string(),
            ),
        })
    }

    /// No conversation at all.
    async fn sessionless_context(&self) -> Result<GateContext<'_>, AgentError> {
        let owner = &self.parts.owner;
        let mode = self.parts.workspace.config().permission_mode;
        let terms = SessionPermissions {
            mode,
            grants: self.grants(owner).await?,
            denied_tools: self.denied_tools(),
            ..SessionPermissions::default()
        };
        Ok(GateContext {
            owner,
            permissions: terms,
            tainted_since: None,
            session: None,
        })
    }

    /// The tree as its usual owner sees it outside any session.
    fn sessionless_files(&self) -> Arc<dyn Vfs> {
        self.parts
            .place
            .files(&self.parts.owner, &SessionId::sessionless(), None)
    }
}
