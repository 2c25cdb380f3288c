//! The open approval questions of all sessions of an owner.
//!
//! Effects: the clock, the journal (reads).

use crate::{Agent, AgentError, Session};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use stead_core::{AskTerms, CallState, Owner, PendingCall, Run, RunId, SessionId, SessionState};
use stead_store::StoreError;

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpenQuestion {
    /// The session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The call.
    pub id: String,
    /// The tool, as the model named it.
    pub tool: String,
    /// The arguments.
    pub args: Value,
    /// The hash of the arguments, which an answer must repeat.
    pub args_hash: String,
    /// The rule that asks.
    pub rule: String,
    /// How it may be answered, by whom and until when, with a preview of the call.
    #[serde(flatten)]
    pub terms: AskTerms,
    /// The title of the session.
    pub title: String,
    /// The parent session, if a subagent asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The name of the tool that makes the call, if it is a nested one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called_by: Option<String>,
}

impl OpenQuestion {
    /// Returns the questions that are open in `state`.
    fn all(session: &SessionId, state: &SessionState) -> Vec<Self> {
        let open = |run: &Run| -> Vec<Self> {
            let asked = run.pending.asked().into_iter();
            asked
                .filter_map(|pending| Self::from_pending(session, state, run, pending))
                .collect()
        };
        state.run.as_ref().map(open).unwrap_or_default()
    }

    fn from_pending(
        session: &SessionId,
        state: &SessionState,
        run: &Run,
        pending: &PendingCall,
    ) -> Option<Self> {
        let PendingCall {
            call,
            state:
                CallState::Asked {
                    args_hash,
                    rule,
                    terms,
                    ..
                },
            ..
        } = pending
        else {
            return None;
        };
        let mut terms = terms.clone();
        terms.decisions = terms.allowed().to_vec();
        Some(Self {
            session: session.clone(),
            run: run.id.clone(),
            id: call.id.clone(),
            tool: call.name.clone(),
            args: call.args.clone(),
            args_hash: args_hash.clone(),
            rule: rule.clone(),
            terms,
            title: state.title.clone(),
            parent: state.spawned.as_ref().map(|spawned| spawned.by.clone()),
            called_by: calling_tool(run, &call.id),
        })
    }
}

/// Returns the name of the tool that makes the nested call `id`.
pub(super) fn calling_tool(run: &Run, id: &str) -> Option<String> {
    run.caller_of(id).map(|caller| caller.call.name.clone())
}

impl Session {
    /// Returns the questions that wait for a person, as of the last load.
    pub fn open_questions(&self) -> Vec<OpenQuestion> {
        OpenQuestion::all(self.id(), self.state())
    }
}

/// The questions that wait for a person in the sessions of one owner.
#[derive(Debug, Clone)]
pub struct OpenQuestions {
    agent: Arc<Agent>,
    owner: Owner,
}

impl OpenQuestions {
    pub(crate) fn new(agent: Arc<Agent>, owner: Owner) -> Self {
        Self { agent, owner }
    }

    /// Returns the questions of all sessions, including those of subagents; newest session first.
    /// Only sessions with an open run are read.
    pub async fn list(&self) -> Result<Vec<OpenQuestion>, AgentError> {
        let listed = self.agent.place().sessions(&self.owner).list_all().await?;
        let open = listed
            .into_iter()
            .filter(|session| session.outcome.is_none() && session.runs > 0);
        let mut questions = Vec::new();
        for summary in open.filter(|session| session.damage.is_none()) {
            let mut session = self.agent.session_of(self.owner.clone(), summary.id);
            match session.load().await {
                Ok(()) => questions.extend(session.open_questions()),
                // It was removed since it was listed.
                Err(AgentError::Store(StoreError::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(questions)
    }
}
