//! Calls outside any session: the same gate, and the same hooks.

use crate::admission::{Admission, Asked, Conversation, Ready, prepare};
use crate::approvals::asked;
use crate::gate::{Terms, judge};
use crate::halt::Halt;
use crate::hooks::Outside;
use crate::tool_calls::{execute, tool_cx};
use crate::{Agent, AgentError, Approvals};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    Block, CallState, Level, Pending, ResultStatus, RunId, SessionId, ToolCall, Verdict,
};
use stead_tools::{Origin, Registry};
use stead_vfs::Vfs;
use tokio_util::sync::CancellationToken;

/// What came of a call outside any session.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// How it ended.
    pub status: ResultStatus,
    /// What a model would have been told.
    pub content: Vec<Block>,
    /// What hooks have for people.
    pub told: Vec<(Level, String)>,
}

impl Called {
    pub(crate) fn new(status: ResultStatus, text: impl Into<String>) -> Self {
        Self {
            status,
            content: vec![Block::text(text)],
            told: Vec::new(),
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
        approvals: &Approvals,
        cancel: CancellationToken,
    ) -> Called {
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: name.to_owned(),
            args,
            invalid: None,
            signature: None,
        };
        let failed = |error: AgentError| Called::new(ResultStatus::Error, error.to_string());
        let tools = match self.outside_turn().await {
            Ok(turn) => turn.tools,
            Err(error) => return failed(error),
        };
        let outside = match self.outside().await {
            Ok(outside) => outside,
            Err(error) => return failed(error),
        };
        let limit = Duration::from_secs(self.policy().run_timeout_seconds);
        let halt = Halt::new(cancel, limit, CancellationToken::new());
        let mut hooks = Outside::new(self, RunId::fresh(), outside.terms.clone(), halt);
        let mut called = match self
            .admit_outside(&tools, call, &outside, &mut hooks, approvals)
            .await
        {
            Ok(ready) => self.run_outside(&tools, ready, &mut hooks).await,
            Err(called) => called,
        };
        called.told = hooks.told();
        called
    }

    /// The call as it may run, or what came of it without running.
    async fn admit_outside(
        self: &Arc<Self>,
        tools: &Registry,
        call: ToolCall,
        outside: &Conversation<'_>,
        hooks: &mut Outside,
        approvals: &Approvals,
    ) -> Result<Ready, Called> {
        let run = hooks.run().clone();
        let files = self.outside_files();
        let call = hooks.before(tools, call).await?;
        let pending = Pending {
            call: call.clone(),
            state: CallState::New,
        };
        let Asked { ask, tool, judged } =
            match self.admit(tools, &*files, &run, pending, outside).await {
                Admission::Run(ready) => return Ok(ready),
                Admission::Refuse(status, text) => return Err(Called::new(status, text)),
                Admission::Ask(asked) => *asked,
            };
        let pending = self
            .ask_outside(
                call,
                ask,
                (&*tool, &*files, judged),
                (tools, hooks, approvals),
            )
            .await?;
        match self.admit(tools, &*files, &run, pending, outside).await {
            Admission::Run(ready) => Ok(ready),
            Admission::Refuse(status, text) => Err(Called::new(status, text)),
            Admission::Ask(asked) => Err(Called::new(
                ResultStatus::Denied,
                format!("denied: {}", asked.ask.rule),
            )),
        }
    }

    async fn run_outside(
        self: &Arc<Self>,
        tools: &Registry,
        ready: Ready,
        hooks: &mut Outside,
    ) -> Called {
        let usual = Duration::from_secs(self.policy().tool_timeout_seconds);
        let limit = ready.tool.timeout(&ready.args).unwrap_or(usual);
        let halt = hooks.halt().clone();
        let cx = tool_cx(
            self.guard(self.outside_files()),
            Default::default(),
            Origin::default(),
            &halt,
        );
        let call = ready.call.clone();
        let (_, result, _) = execute(hooks.run().clone(), ready, cx, halt, limit).await;
        let result = hooks.after(tools, &call, result).await;
        Called {
            status: result.status,
            content: result.content,
            told: Vec::new(),
        }
    }

    /// The gate's verdict on a call, or why it is not a call at all.
    pub async fn explain(self: &Arc<Self>, name: &str, args: Value) -> Result<Verdict, String> {
        let tools = self
            .outside_turn()
            .await
            .map_err(|error| error.to_string())?
            .tools;
        let outside = self.outside().await.map_err(|error| error.to_string())?;
        let (tool, args) = match prepare(&tools, name, args) {
            Ok(prepared) => prepared,
            Err(message) => return self.never(&tools, name, &outside.terms).ok_or(message),
        };
        let judged = self
            .judged((&tools, &*self.outside_files()), &*tool, &args, &outside)
            .await;
        Ok(match judged {
            Ok(call) => asked(&*tool, judge(&self.gate, &outside.terms, &call)),
            Err(error) => Verdict::deny(error.to_string()),
        })
    }

    /// No conversation at all.
    async fn outside(&self) -> Result<Conversation<'_>, AgentError> {
        let owner = &self.parts.owner;
        let mode = self.parts.workspace.config().permission_mode;
        let terms = Terms {
            mode,
            granted: self.grants(owner).await?,
            denied: self.denied(),
            ..Terms::default()
        };
        Ok(Conversation {
            owner,
            terms,
            tainted: None,
            session: None,
        })
    }

    /// The tree as its usual owner sees it outside any session.
    fn outside_files(&self) -> Arc<dyn Vfs> {
        self.parts
            .place
            .files(&self.parts.owner, &SessionId::outside(), None)
    }
}
