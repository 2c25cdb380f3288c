//! Single tool calls and turn setups outside any recorded session, and verdicts of the gate.
//!
//! A single call runs in a session whose journal is kept in memory and then dropped. Gate, hooks and
//! approvals are those of every other session.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools.

use super::caller::ToolCaller;
use super::conversation::Conversation;
use super::journal::RunJournal;
use super::model_call::refuse_secrets;
use super::stop::RunStop;
use super::turn_setup::TurnSetup;
use crate::admission::CallGate;
use crate::approvals::{Asker, ask_if_client_executes};
use crate::hooks::RunHooks;
use crate::session::RunFiles;
use crate::session::{IfMissing, SessionWriter};
use crate::{Agent, AgentError, ApprovalPolicy, Session};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{
    Block, CallState, Entry, Event, EventKind, Message, ModelReply, NextAction, NoticeLevel, Owner,
    PendingCall, ResultStatus, RuleId, RuleSource, RunId, SessionId, StopReason, ToolCall, Usage,
    UserInput, Verdict,
};
use stead_gate::judge;
use stead_store::{LockWait, MemoryStore, Space, StoreSessions};
use tokio_util::sync::CancellationToken;

/// The id of the single call.
const CALL_ID: &str = "call_1";

/// The result of a call outside any session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionlessResult {
    /// How it ended.
    pub status: ResultStatus,
    /// The exit code of the command that it ran.
    pub exit_code: Option<i32>,
    /// The content that a model would have been sent.
    pub content: Vec<Block>,
    /// Messages of hooks for people.
    pub notices: Vec<(NoticeLevel, String)>,
    /// Whether the call was denied because nobody approved it.
    pub unapproved: bool,
}

/// Turn setups and tool calls of one owner outside any session.
#[derive(Debug, Clone)]
pub struct Sessionless {
    agent: Arc<Agent>,
    owner: Owner,
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
        TurnSetup::compose(&self.session(), None).await
    }

    /// Calls one tool through the same gate and with the same hooks as in a session. A question
    /// about the call is answered by `approvals`; without an answer the call is denied. Nothing is
    /// recorded on disk.
    pub async fn call_tool(
        &self,
        name: &str,
        args: Value,
        approvals: &ApprovalPolicy,
        cancel: CancellationToken,
    ) -> SessionlessResult {
        let call = ToolCall {
            id: CALL_ID.to_owned(),
            name: name.to_owned(),
            args,
            invalid: None,
            signature: None,
        };
        let approvals = match approvals {
            // Nobody approves in either case.
            ApprovalPolicy::DenyAll | ApprovalPolicy::Park => ApprovalPolicy::Park,
            ApprovalPolicy::ApproveAll | ApprovalPolicy::Ask(_) => approvals.clone(),
        };
        let notices = Arc::new(Mutex::new(Vec::new()));
        let result = self
            .call_in_memory(call, &approvals, cancel, notices.clone())
            .await;
        let mut result = result.unwrap_or_else(|stop| SessionlessResult {
            status: match stop {
                RunStop::Hook(_) | RunStop::Halted(_) => ResultStatus::Denied,
                RunStop::Model(_) | RunStop::Tool(_) | RunStop::Budget(_) | RunStop::Fatal(_) => {
                    ResultStatus::Error
                }
            },
            exit_code: None,
            content: vec![Block::text(AgentError::from(stop).to_string())],
            notices: Vec::new(),
            unapproved: false,
        });
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        result.notices = std::mem::take(&mut notices);
        result
    }

    /// Carries out a call in a session in memory.
    async fn call_in_memory(
        &self,
        call: ToolCall,
        approvals: &ApprovalPolicy,
        cancel: CancellationToken,
        notices: Arc<Mutex<Vec<(NoticeLevel, String)>>>,
    ) -> Result<SessionlessResult, RunStop> {
        let mut session = self.session();
        let setup = TurnSetup::compose(&session, None).await?;
        session.load_grants().await?;
        let (name, args) = setup.tools.unwrap_call(call.name, call.args);
        let call = ToolCall { name, args, ..call };
        let writer = SessionWriter::open(&mut session, LockWait::No, IfMissing::Create).await?;
        // The lease of the journal in memory does not concern the files.
        let files = writer.session().files(None);
        let conversation =
            Conversation::new(writer.session(), files.clone(), setup).without_offload();
        let files = RunFiles::new(writer.session(), files, None);
        let listener = move |event: &Event| {
            if let EventKind::Notice { level, text } = &event.kind {
                let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
                notices.push((*level, text.clone()));
            }
        };
        let mut journal = RunJournal::new(writer, RunId::fresh(), Arc::new(listener));
        let signals = journal.signals(cancel);
        let budget = self.agent.budget(&self.owner);
        let mut hooks = RunHooks::new(&self.agent, budget, signals.clone());
        record_call(&mut journal, call).await?;
        loop {
            let limits = self.agent.policy().limits();
            let next = journal.state().next(&limits);
            let mut caller = ToolCaller {
                journal: &mut journal,
                hooks: hooks.as_mut(),
                conversation: &conversation,
                files: &files,
                signals: &signals,
            };
            match next {
                NextAction::RunTools(calls) => match caller.run_tools(calls).await {
                    // The result is on record, and says why.
                    Ok(()) | Err(RunStop::Tool(_)) => {}
                    Err(stop) => return Err(stop),
                },
                NextAction::AwaitDecision(calls) => {
                    let asked = calls.clone();
                    if !Asker::new(caller, approvals.clone()).ask(calls).await? {
                        return Ok(unapproved(&asked));
                    }
                }
                NextAction::CallModel
                | NextAction::Nudge(_)
                | NextAction::Done(..)
                | NextAction::Idle => return Ok(last_result(&journal)),
            }
        }
    }

    /// Returns the gate's verdict on a call, or why it is not a valid call.
    pub async fn explain(&self, name: &str, args: Value) -> Result<Verdict, String> {
        self.session().explain(name, args).await
    }

    /// A session whose journal is kept in memory.
    fn session(&self) -> Session {
        let sessions = self.agent.place().sessions(&self.owner);
        let journals = StoreSessions::new(
            Arc::new(MemoryStore::default()),
            Space::new(["sessionless"]),
            self.agent.workspace().config().agent_id(),
            sessions.redactor().clone(),
        );
        let id = SessionId::sessionless();
        Session::new(self.agent.clone(), self.owner.clone(), id).with_journals(Arc::new(journals))
    }
}

impl Session {
    /// Returns the gate's verdict on a call in this session, as far as it is loaded, or why it is
    /// not a valid call. Nothing is called.
    pub async fn explain(&mut self, name: &str, args: Value) -> Result<Verdict, String> {
        let words = |error: AgentError| error.to_string();
        self.load_grants().await.map_err(words)?;
        let tools = TurnSetup::compose(self, None).await.map_err(words)?.tools;
        let context = self.gate_context();
        let gate = CallGate::new(self.agent());
        let (name, args) = tools.unwrap_call(name.to_owned(), args);
        let prepared = match tools.prepare_for_gate(&name, args) {
            Ok(prepared) => prepared,
            Err(error) => {
                return gate
                    .excluded_verdict(&tools, &name, &context.permissions)
                    .ok_or_else(|| error.to_string());
            }
        };
        let files = self.files(None);
        let facts = gate
            .call_facts((&tools, &*files), &prepared, &context)
            .await;
        Ok(match facts {
            Ok(facts) => {
                let verdict = judge(gate.gate, &context.permissions, &facts);
                ask_if_client_executes(prepared.spec(), verdict)
            }
            Err(error) => Verdict::deny(
                RuleId::new(RuleSource::Path, "unresolved"),
                error.to_string(),
            ),
        })
    }
}

/// Records a call as if a model had made it.
async fn record_call(journal: &mut RunJournal<'_>, call: ToolCall) -> Result<(), AgentError> {
    let run = journal.run().clone();
    let input = vec![Block::text(format!("call {}", call.name))];
    let mut content = vec![Block::ToolCall(call)];
    refuse_secrets(&mut content, journal.session().redactor());
    let reply = ModelReply {
        run: run.clone(),
        model: journal.session().model().to_owned(),
        content,
        usage: Usage::default(),
        cost: None,
        stop: StopReason::ToolUse,
    };
    let input = UserInput::new(run, input);
    let entries = vec![Entry::User(input), Entry::Model(reply)];
    journal.record(entries).await.map(drop)
}

/// Returns the result of the call, which is the newest message.
fn last_result(journal: &RunJournal<'_>) -> SessionlessResult {
    let newest = journal.state().turns.last().map(|turn| &*turn.message);
    let result = match newest {
        Some(Message::Tool { results }) => results.first().cloned(),
        Some(Message::User { .. } | Message::Assistant { .. }) | None => None,
    };
    let (status, exit_code, content) = match result {
        Some(result) => (result.status, result.exit_code, result.content),
        None => (
            ResultStatus::Error,
            None,
            vec![Block::text("the call has no result")],
        ),
    };
    SessionlessResult {
        status,
        exit_code,
        content,
        notices: Vec::new(),
        unapproved: false,
    }
}

/// Returns the result of a call that nobody approved.
fn unapproved(calls: &[PendingCall]) -> SessionlessResult {
    let rule = calls.iter().find_map(|pending| match &pending.state {
        CallState::Asked { rule, .. } => Some(rule.as_str()),
        CallState::New
        | CallState::Approved { .. }
        | CallState::Rejected { .. }
        | CallState::Responded { .. }
        | CallState::Begun { .. }
        | CallState::Done { .. } => None,
    });
    let rule = rule.unwrap_or_default();
    SessionlessResult {
        status: ResultStatus::Denied,
        exit_code: None,
        content: vec![Block::text(format!("denied: nobody approved it ({rule})"))],
        notices: Vec::new(),
        unapproved: true,
    }
}
