//! Answers from any process: checked against the question, then on record.

use super::OpenQuestion;
use super::grants::AskReason;
use super::question::offer_grant;
use crate::admission::{CallGate, prepare};
use crate::session::IfMissing;
use crate::{AgentError, ApprovalAnswer, Grant, NewGrant, Session};
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{
    CallState, Decision, DecisionKind, Entry, Hint, PendingCall, RunId, SessionId, ToolCall,
    VerdictKind,
};
use stead_gate::{GrantScope, judge};
use stead_store::{JournalWriter, LockWait};
use stead_tools::Registry;
use stead_vfs::Vfs;

/// Words of an answer at most.
const MAX_REPLY_TEXT_BYTES: usize = 256 * 1024;
/// Changed arguments at most.
const MAX_ARGS_BYTES: usize = 1024 * 1024;

/// An answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalReply {
    /// The call.
    pub id: String,
    /// The hash of the arguments that the person saw ([`OpenQuestion::args_hash`]).
    pub args_hash: String,
    /// What they say.
    pub answer: ApprovalAnswer,
}

/// What answers came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalOutcome {
    /// On record, in the order they were given.
    pub decisions: Vec<Decision>,
    /// Rules that "always" made.
    pub grants: Vec<Grant>,
    /// Questions of the step that still wait; with none, the run can go on ([`Session::resume`]).
    pub still_open: Vec<OpenQuestion>,
}

/// Why an answer does not count. Nothing was recorded then.
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
        /// Those that may be given.
        allowed: Vec<DecisionKind>,
    },
    /// Someone else is asked.
    #[error("{by:?} may not answer {id}; it takes the word of: {}", .answerers.join(", "))]
    NotAnAnswerer {
        /// The call.
        id: String,
        /// Who answered.
        by: String,
        /// Who may.
        answerers: Vec<String>,
    },
    /// It is too late.
    #[error(
        "the question about {id} expired at {at:.0}: it counts as rejected once the run is resumed"
    )]
    Expired {
        /// The call.
        id: String,
        /// When.
        at: jiff::Timestamp,
    },
    /// The changed arguments are no arguments of the tool.
    #[error("the changed arguments of {id} are wrong: {why}")]
    InvalidArguments {
        /// The call.
        id: String,
        /// Why.
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
        /// The most.
        limit: usize,
    },
    /// No rule has this id.
    #[error("there is no rule {0:?}")]
    NoSuchGrant(String),
    /// Several ids begin like this.
    #[error("several rules begin with {0:?}; give more of the id")]
    AmbiguousGrant(String),
    /// There are as many rules as there may be.
    #[error("there are {0} rules already; take some back before making more")]
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
            | Self::AmbiguousGrant(..) => None,
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

/// An answer that counts.
pub(super) struct CheckedAnswer {
    pub(super) decision: Decision,
    /// What it allows for good, and of which tool.
    pub(super) grant: Option<(String, GrantScope)>,
    /// Why the call was asked about.
    pub(super) asked: AskReason,
}

impl Session {
    /// Answers questions, all or none of them: durable on return, from whichever process. The run
    /// does not go on by itself.
    pub async fn answer(
        &mut self,
        replies: &[ApprovalReply],
        by: &str,
        wait: LockWait,
    ) -> Result<ApprovalOutcome, AgentError> {
        self.grants = self.agent.grants(&self.owner).list().await?;
        let (mut writer, _) = self.open_for_writing(wait, IfMissing::Fail).await?;
        let answered = match self.switch_to_recorded_agent(None).await {
            Ok(_) => self.record_answers(&mut *writer, replies, by).await,
            Err(error) => Err(error),
        };
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        answered
    }

    async fn record_answers(
        &mut self,
        writer: &mut dyn JournalWriter,
        replies: &[ApprovalReply],
        by: &str,
    ) -> Result<ApprovalOutcome, AgentError> {
        let tools = self
            .turn_setup(None)
            .await?
            .tools_shown_to(self.state.model.as_deref());
        let files = self.files(None);
        let mut weighed: Vec<CheckedAnswer> = Vec::new();
        for reply in replies {
            if weighed.iter().any(|known| known.decision.id == reply.id) {
                return Err(ApprovalError::AnsweredTwice(reply.id.clone()).into());
            }
            weighed.extend(self.check_answer((&tools, &*files), reply, by).await?);
        }
        let entries: Vec<Entry> = weighed
            .iter()
            .map(|weighed| Entry::Decision(weighed.decision.clone()))
            .collect();
        if !entries.is_empty() {
            self.append(writer, entries).await?;
        }
        let granted = self.store_grants(&weighed, by).await?;
        let decisions = weighed
            .into_iter()
            .map(|weighed| weighed.decision)
            .collect();
        Ok(ApprovalOutcome {
            decisions,
            grants: granted,
            still_open: self.open_questions(),
        })
    }

    /// Keeps what was allowed for good, after the answers are on record: a rule without its answer
    /// would be worse than an answer without its rule.
    pub(super) async fn store_grants(
        &mut self,
        weighed: &[CheckedAnswer],
        by: &str,
    ) -> Result<Vec<Grant>, AgentError> {
        let mut granted = Vec::new();
        for CheckedAnswer { grant, asked, .. } in weighed {
            let Some((tool, what)) = grant.clone() else {
                continue;
            };
            let new = NewGrant {
                tool: &tool,
                what,
                asked,
                by,
            };
            granted.push(self.agent.grants(&self.owner).add(new).await?);
        }
        self.grants.extend(granted.iter().cloned());
        Ok(granted)
    }

    /// An answer as it goes on record; none if it is to wait.
    pub(super) async fn check_answer(
        &self,
        (tools, files): (&Registry, &dyn Vfs),
        reply: &ApprovalReply,
        by: &str,
    ) -> Result<Option<CheckedAnswer>, ApprovalError> {
        let missing = || ApprovalError::NoQuestion {
            session: self.id.clone(),
            id: reply.id.clone(),
        };
        let run = self.state.run.as_ref().ok_or_else(missing)?;
        let pending = run
            .pending
            .iter()
            .find(|pending| pending.call.id == reply.id)
            .ok_or_else(missing)?;
        let decision = check_reply(&run.id, pending, reply, by, jiff::Timestamp::now())
            .ok_or_else(missing)??;
        let Some(decision) = decision else {
            return Ok(None);
        };
        let grant = match &reply.answer {
            ApprovalAnswer::Edit(args) => {
                self.check_edit((tools, files), &pending.call, args).await?;
                None
            }
            ApprovalAnswer::Always => {
                let offered = self.offered_grant((tools, files), &pending.call).await;
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

    /// What `Answer::Always` to the question about `id` would allow; none if it cannot be said.
    pub async fn always_scope(&self, id: &str) -> Result<Option<GrantScope>, AgentError> {
        let pending = self
            .state
            .run
            .iter()
            .flat_map(|run| &run.pending)
            .find(|pending| pending.call.id == id);
        let Some(PendingCall {
            call,
            state: CallState::Asked { .. },
        }) = pending
        else {
            return Ok(None);
        };
        let tools = self
            .turn_setup(None)
            .await?
            .tools_shown_to(self.state.model.as_deref());
        let files = self.files(None);
        Ok(self
            .offered_grant((&tools, &*files), call)
            .await
            .map(|(_, what)| what))
    }

    /// What "always" would allow, and of which tool.
    pub(super) async fn offered_grant(
        &self,
        at: (&Registry, &dyn Vfs),
        call: &ToolCall,
    ) -> Option<(String, GrantScope)> {
        let prepared = prepare(at.0, &call.name, call.args.clone()).ok()?;
        let judged = CallGate::new(&self.agent)
            .call_facts(at, &prepared, &self.gate_context())
            .await
            .ok()?;
        Some((
            judged.tool.clone(),
            offer_grant(&prepared, at.1, judged).await?,
        ))
    }

    /// Changed arguments must be arguments of the tool, hold no secret, and be none that a rule
    /// forbids.
    async fn check_edit(
        &self,
        at: (&Registry, &dyn Vfs),
        call: &ToolCall,
        args: &Value,
    ) -> Result<(), ApprovalError> {
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
        if matches!(self.sessions.redactor().redact(&text), Cow::Owned(_)) {
            return Err(wrong(
                "they hold a secret of this machine, which is never passed on".to_owned(),
            ));
        }
        let prepared = prepare(at.0, &call.name, args.clone()).map_err(wrong)?;
        let denied = |rule: String| ApprovalError::Denied {
            id: id.clone(),
            rule,
        };
        let conversation = self.gate_context();
        let judged = CallGate::new(&self.agent)
            .call_facts(at, &prepared, &conversation)
            .await
            .map_err(|e| denied(e.to_string()))?;
        let verdict = judge(self.agent.gate(), &conversation.permissions, &judged);
        match verdict.kind {
            VerdictKind::Allow | VerdictKind::Ask => Ok(()),
            VerdictKind::Deny => Err(denied(verdict.reason)),
        }
    }
}

/// Checks an answer against its question. None if the call is not asked about; no decision if it is
/// to wait.
pub(super) fn check_reply(
    run: &RunId,
    PendingCall { call, state }: &PendingCall,
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
