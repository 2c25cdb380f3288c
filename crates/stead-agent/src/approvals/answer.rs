//! Answers to approval questions, from any process: checked against the question, then recorded.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (reads), the store (writes), the journal (writes).

use super::OpenQuestion;
use super::grants::AskReason;
use super::open_questions::calling_tool;
use super::question::offer_grant;
use crate::admission::CallGate;
use crate::session::{IfMissing, SessionWriter};
use crate::{AgentError, Grant, NewGrant, Session, TurnSetup};
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{
    AfterAnswer, ApprovalAnswer, ApprovalQuestion, ApprovalReply, CallState, Decision,
    DecisionKind, Entry, Hint, PendingCall, RunId, SessionId, SessionState, ToolCall, VerdictKind,
};
use stead_gate::{GrantScope, judge};
use stead_store::LockWait;
use stead_tools::Registry;
use stead_vfs::Vfs;

/// The most bytes of text in an answer.
const MAX_REPLY_TEXT_BYTES: usize = 256 * 1024;
/// The most bytes of changed arguments.
const MAX_ARGS_BYTES: usize = 1024 * 1024;

/// The result of answering questions.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalOutcome {
    /// The recorded decisions, in the order of the answers.
    pub decisions: Vec<Decision>,
    /// The grants that "always" gave.
    pub grants: Vec<Grant>,
    /// Questions of the step that are still open. Without any, the run can be resumed
    /// ([`Session::resume`]).
    pub still_open: Vec<OpenQuestion>,
}

/// Why an answer is refused. Nothing was recorded then, but that a question expired.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error("session {session} does not ask about {id:?} (any more)")]
    NoQuestion {
        /// The session.
        session: SessionId,
        /// The call.
        id: String,
    },
    /// The key with which grants are sealed cannot be had.
    #[error("the key that seals grants: {0}")]
    GrantKey(String),
    /// Two answers to one question.
    #[error("{0} is answered twice; give one answer")]
    AnsweredTwice(String),
    /// The question is about other arguments.
    #[error("{id} was asked about other arguments than those you saw; look at it again")]
    Stale {
        /// The call.
        id: String,
    },
    /// It may not be answered like this.
    #[error("{id} cannot be answered with `{}`; it takes: {}", .given.as_str(), list_kinds(.allowed))]
    AnswerNotAllowed {
        /// The call.
        id: String,
        /// The answer.
        given: DecisionKind,
        /// The answers that may be given.
        allowed: Vec<DecisionKind>,
    },
    /// Only other people may answer.
    #[error("{by:?} may not answer {id}; it takes the word of: {}", .answerers.join(", "))]
    NotAnAnswerer {
        /// The call.
        id: String,
        /// The person who answered.
        by: String,
        /// The people who may answer.
        answerers: Vec<String>,
    },
    /// The question has expired.
    #[error("the question about {id} expired at {at:.0}: it counts as rejected")]
    Expired {
        /// The call.
        id: String,
        /// The time of expiry.
        at: jiff::Timestamp,
    },
    /// The tool does not accept the changed arguments.
    #[error("the changed arguments of {id} are wrong: {why}")]
    InvalidArguments {
        /// The call.
        id: String,
        /// The reason.
        why: String,
    },
    /// A rule forbids the call with these arguments, whoever says yes.
    #[error("{id} with these arguments is denied whoever approves: {rule}")]
    Denied {
        /// The call.
        id: String,
        /// The rule.
        rule: String,
    },
    /// "Always" cannot be said here.
    #[error(
        "{id} cannot be allowed for good: calls like it must be seen each time; approve it once"
    )]
    AlwaysNotAllowed {
        /// The call.
        id: String,
    },
    /// The answer is too long.
    #[error("the answer to {id} has more than {limit} bytes")]
    TooLong {
        /// The call.
        id: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// No grant has this id.
    #[error("there is no grant {0:?}")]
    NoSuchGrant(String),
    /// Several ids begin like this.
    #[error("several grants begin with {0:?}; give more of the id")]
    AmbiguousGrant(String),
    /// There are as many grants as there may be.
    #[error("there are {0} grants already; take some back before making more")]
    TooManyGrants(usize),
}

impl ApprovalError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::NoQuestion { .. } => Some(Hint::ListQuestions),
            Self::Stale { id } => Some(Hint::ShowQuestion(id.clone())),
            Self::NoSuchGrant(_) => Some(Hint::ListGrants),
            Self::TooManyGrants(_) => Some(Hint::RevokeGrant),
            Self::AnsweredTwice(..)
            | Self::AnswerNotAllowed { .. }
            | Self::NotAnAnswerer { .. }
            | Self::Expired { .. }
            | Self::InvalidArguments { .. }
            | Self::Denied { .. }
            | Self::AlwaysNotAllowed { .. }
            | Self::TooLong { .. }
            | Self::AmbiguousGrant(..)
            | Self::GrantKey(..) => None,
        }
    }
}

fn list_kinds(kinds: &[DecisionKind]) -> String {
    kinds
        .iter()
        .map(|kind| kind.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// An answer that was checked against its question.
pub(super) struct CheckedAnswer {
    pub(super) decision: Decision,
    /// The grant it gives, and its tool.
    pub(super) grant: Option<(String, GrantScope)>,
    /// Why the call was asked about.
    pub(super) asked: AskReason,
}

impl Session {
    /// Answers questions, all of them or none. The answers are durable on return, from whichever
    /// process. The run does not continue by itself.
    ///
    /// If it is to be continued here and now (`then`), the model that the session runs with must be
    /// usable: otherwise nothing is recorded, and the questions stay open.
    pub async fn answer(
        &mut self,
        replies: &[ApprovalReply],
        by: &str,
        then: AfterAnswer,
        wait: LockWait,
    ) -> Result<ApprovalOutcome, AgentError> {
        self.load_grants().await?;
        let mut writer = SessionWriter::open(self, wait, IfMissing::Fail).await?;
        let answered = record_answers(&mut writer, replies, by, then).await;
        writer.close().await;
        answered
    }

    /// Returns the permission that "always" would give in answer to the question about the call
    /// `id`, or `None` if it cannot be answered like that.
    pub async fn always_scope(&self, id: &str) -> Result<Option<GrantScope>, AgentError> {
        let run = self.state().run.as_ref();
        let pending = run.and_then(|run| run.pending.find(id));
        let Some(PendingCall {
            call,
            state: CallState::Asked { .. },
            ..
        }) = pending
        else {
            return Ok(None);
        };
        let setup = TurnSetup::compose(self, None).await?;
        let tools = setup.tools_shown_to(self.state().model.as_deref());
        let files = self.files(None);
        let checker = AnswerChecker::new(self, &tools, &*files);
        Ok(checker.offered_grant(call).await.map(|(_, scope)| scope))
    }
}

async fn record_answers(
    writer: &mut SessionWriter<'_>,
    replies: &[ApprovalReply],
    by: &str,
    then: AfterAnswer,
) -> Result<ApprovalOutcome, AgentError> {
    match then {
        AfterAnswer::Resume => {
            writer.session_mut().use_recorded_model()?;
            writer.switch_to_recorded_agent().await?;
            writer.session().agent().check_model()?;
        }
        AfterAnswer::Leave => {
            writer.switch_to_recorded_agent().await?;
        }
    }
    let setup = TurnSetup::compose(writer.session(), None).await?;
    let tools = setup.tools_shown_to(writer.state().model.as_deref());
    let files = writer.session().files(None);
    let checker = AnswerChecker::new(writer.session(), &tools, &*files);
    let mut answers: Vec<CheckedAnswer> = Vec::new();
    for reply in replies {
        if answers.iter().any(|known| known.decision.id == reply.id) {
            return Err(ApprovalError::AnsweredTwice(reply.id.clone()).into());
        }
        match checker.check(reply, by).await {
            Ok(answer) => answers.extend(answer),
            Err(error @ ApprovalError::Expired { .. }) => {
                // Told is told: a clock that is set back does not open the question again.
                let expired = expired_decisions(writer.state(), jiff::Timestamp::now());
                let entries = expired.into_iter().map(Entry::Decision).collect();
                writer.record(entries).await?;
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
    let decisions: Vec<Decision> = answers
        .iter()
        .map(|answer| answer.decision.clone())
        .collect();
    if !decisions.is_empty() {
        let entries = decisions.iter().cloned().map(Entry::Decision).collect();
        writer.record(entries).await?;
    }
    Ok(ApprovalOutcome {
        decisions,
        grants: store_grants(writer.session_mut(), &answers).await?,
        still_open: writer.session().open_questions(),
    })
}

/// Stores the grants of answers that are on record: a permission without its answer
/// would be worse than an answer without its permission.
pub(super) async fn store_grants(
    session: &mut Session,
    answers: &[CheckedAnswer],
) -> Result<Vec<Grant>, AgentError> {
    let store = session.agent().grants(session.owner());
    let mut granted = Vec::new();
    for CheckedAnswer {
        decision,
        grant,
        asked,
    } in answers
    {
        let Some((tool, what)) = grant.clone() else {
            continue;
        };
        let new = NewGrant {
            tool: &tool,
            what,
            asked,
            by: &decision.by,
        };
        granted.push(store.add(new).await?);
    }
    session.add_grants(&granted);
    Ok(granted)
}

/// Checks answers to the questions of a session against the gate.
pub(super) struct AnswerChecker<'a> {
    session: &'a Session,
    tools: &'a Registry,
    files: &'a dyn Vfs,
}

impl<'a> AnswerChecker<'a> {
    pub(super) fn new(session: &'a Session, tools: &'a Registry, files: &'a dyn Vfs) -> Self {
        Self {
            session,
            tools,
            files,
        }
    }

    /// Returns the question about a call, as a person is asked it.
    pub(super) async fn question(
        &self,
        PendingCall { call, state, .. }: &PendingCall,
    ) -> Option<ApprovalQuestion> {
        let CallState::Asked {
            rule,
            terms,
            args_hash,
            ..
        } = state
        else {
            return None;
        };
        let grant = self.offered_grant(call).await;
        let run = self.session.state().run.as_ref();
        Some(ApprovalQuestion {
            session: self.session.id().clone(),
            id: call.id.clone(),
            tool: call.name.clone(),
            args: call.args.clone(),
            args_hash: args_hash.clone(),
            rule: rule.clone(),
            terms: terms.clone(),
            always_scope: grant.map(|(_, scope)| scope.to_string()),
            called_by: run.and_then(|run| calling_tool(run, &call.id)),
        })
    }

    /// Returns an answer as it is recorded, or `None` if the question is to wait.
    pub(super) async fn check(
        &self,
        reply: &ApprovalReply,
        by: &str,
    ) -> Result<Option<CheckedAnswer>, ApprovalError> {
        let missing = || ApprovalError::NoQuestion {
            session: self.session.id().clone(),
            id: reply.id.clone(),
        };
        let run = self.session.state().run.as_ref().ok_or_else(missing)?;
        let pending = run.pending.find(&reply.id).ok_or_else(missing)?;
        let decision = check_reply(&run.id, pending, reply, by, jiff::Timestamp::now())
            .ok_or_else(missing)??;
        let Some(decision) = decision else {
            return Ok(None);
        };
        let grant = match &reply.answer {
            ApprovalAnswer::Edit(args) => {
                self.check_edit(&pending.call, args).await?;
                None
            }
            ApprovalAnswer::Always => {
                let offered = self.offered_grant(&pending.call).await;
                Some(offered.ok_or_else(|| ApprovalError::AlwaysNotAllowed {
                    id: reply.id.clone(),
                })?)
            }
            ApprovalAnswer::Yes
            | ApprovalAnswer::No { .. }
            | ApprovalAnswer::Respond(_)
            | ApprovalAnswer::Later => None,
        };
        let asked = match &pending.state {
            CallState::Asked { rule, rules, .. } => AskReason {
                rules: rules.clone(),
                reason: rule.clone(),
            },
            CallState::New
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => AskReason::default(),
        };
        Ok(Some(CheckedAnswer {
            decision,
            grant,
            asked,
        }))
    }

    /// Returns the permission that "always" would give, and its tool.
    async fn offered_grant(&self, call: &ToolCall) -> Option<(String, GrantScope)> {
        let prepared = self
            .tools
            .prepare_for_gate(&call.name, call.args.clone())
            .ok()?;
        let facts = CallGate::new(self.session.agent())
            .call_facts(
                (self.tools, self.files),
                &prepared,
                &self.session.gate_context(),
            )
            .await
            .ok()?;
        let tool = facts.tool.clone();
        Some((tool, offer_grant(&prepared, self.files, facts).await?))
    }

    /// Refuses changed arguments that the tool does not take, that hold a secret, or that a rule
    /// forbids.
    async fn check_edit(&self, call: &ToolCall, args: &Value) -> Result<(), ApprovalError> {
        let id = call.id.clone();
        let wrong = |why: String| ApprovalError::InvalidArguments {
            id: id.clone(),
            why,
        };
        let text = args.to_string();
        if text.len() > MAX_ARGS_BYTES {
            return Err(ApprovalError::TooLong {
                id,
                limit: MAX_ARGS_BYTES,
            });
        }
        if matches!(self.session.redactor().redact(&text), Cow::Owned(_)) {
            return Err(wrong(
                "they hold a secret of this machine, which is never passed on".to_owned(),
            ));
        }
        let prepared = self
            .tools
            .prepare_for_gate(&call.name, args.clone())
            .map_err(|error| wrong(error.to_string()))?;
        let denied = |rule: String| ApprovalError::Denied {
            id: id.clone(),
            rule,
        };
        let context = self.session.gate_context();
        let facts = CallGate::new(self.session.agent())
            .call_facts((self.tools, self.files), &prepared, &context)
            .await
            .map_err(|error| denied(error.to_string()))?;
        let verdict = judge(self.session.agent().gate(), &context.permissions, &facts);
        match verdict.kind {
            VerdictKind::Allow | VerdictKind::Ask => Ok(()),
            VerdictKind::Deny => Err(denied(verdict.reason)),
        }
    }
}

/// Returns rejections of the questions of a session that nobody answered in time.
fn expired_decisions(state: &SessionState, now: jiff::Timestamp) -> Vec<Decision> {
    let Some(run) = &state.run else {
        return Vec::new();
    };
    let asked = run.pending.asked().into_iter();
    asked
        .filter_map(|pending| expired_decision(&run.id, pending, now))
        .collect()
}

/// Returns the rejection of a question that nobody answered in time.
pub(super) fn expired_decision(
    run: &RunId,
    PendingCall { call, state, .. }: &PendingCall,
    now: jiff::Timestamp,
) -> Option<Decision> {
    let CallState::Asked {
        args_hash, terms, ..
    } = state
    else {
        return None;
    };
    let at = terms.expires.filter(|_| terms.has_expired(now))?;
    Some(Decision {
        approved: false,
        words: Some(format!("nobody answered until {at:.0}")),
        ..Decision::approve(run.clone(), &call.id, args_hash, Decision::EXPIRY)
    })
}

/// Checks an answer against its question. None if the call is not asked about; no decision if it is
/// to wait.
fn check_reply(
    run: &RunId,
    PendingCall { call, state, .. }: &PendingCall,
    reply: &ApprovalReply,
    by: &str,
    now: jiff::Timestamp,
) -> Option<Result<Option<Decision>, ApprovalError>> {
    let CallState::Asked {
        args_hash, terms, ..
    } = state
    else {
        return None;
    };
    let id = || call.id.clone();
    let yes = || Decision::approve(run.clone(), id(), args_hash.clone(), by);
    let decision = match &reply.answer {
        ApprovalAnswer::Later => return Some(Ok(None)),
        ApprovalAnswer::Yes | ApprovalAnswer::Always => yes(),
        ApprovalAnswer::Edit(args) => Decision {
            args: Some(args.clone()),
            ..yes()
        },
        ApprovalAnswer::No { reason: words } => Decision {
            approved: false,
            words: words.clone(),
            ..yes()
        },
        ApprovalAnswer::Respond(words) => Decision {
            approved: false,
            words: Some(words.clone()),
            responds: true,
            ..yes()
        },
    };
    let given = decision.kind();
    let too_long = decision
        .words
        .as_ref()
        .is_some_and(|words| words.len() > MAX_REPLY_TEXT_BYTES);
    Some(match terms.expires {
        _ if *args_hash != reply.args_hash => Err(ApprovalError::Stale { id: id() }),
        Some(at) if terms.has_expired(now) => Err(ApprovalError::Expired { id: id(), at }),
        _ if !terms.may_answer(by) => Err(ApprovalError::NotAnAnswerer {
            id: id(),
            by: by.to_owned(),
            answerers: terms.answerers.clone(),
        }),
        _ if !terms.accepts(given) => Err(ApprovalError::AnswerNotAllowed {
            id: id(),
            given,
            allowed: terms.allowed().to_vec(),
        }),
        _ if too_long => Err(ApprovalError::TooLong {
            id: id(),
            limit: MAX_REPLY_TEXT_BYTES,
        }),
        _ => Ok(Some(decision)),
    })
}
