//! Answers from any process: checked against the question, then on record.

use super::OpenQuestion;
use super::asking::offer;
use crate::admission::prepare;
use crate::gate::{Granted, judge};
use crate::session::Missing;
use crate::{AgentError, Answer, Grant, Session};
use serde_json::Value;
use std::borrow::Cow;
use stead_core::{
    CallState, Decision, DecisionKind, Entry, Pending, RunId, SessionId, ToolCall, VerdictKind,
};
use stead_store::{JournalWriter, Wait};
use stead_tools::Registry;
use stead_vfs::Vfs;

/// Words of an answer at most.
const MAX_WORDS_BYTES: usize = 256 * 1024;
/// Changed arguments at most.
const MAX_ARGS_BYTES: usize = 1024 * 1024;

/// An answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The call.
    pub id: String,
    /// The hash of the arguments that the person saw ([`OpenQuestion::args_hash`]).
    pub args_hash: String,
    /// What they say.
    pub answer: Answer,
}

/// What answers came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// On record, in the order they were given.
    pub decisions: Vec<Decision>,
    /// Rules that "always" made.
    pub granted: Vec<Grant>,
    /// Questions of the step that still wait; with none, the run can go on ([`Session::resume`]).
    pub open: Vec<OpenQuestion>,
}

/// Why an answer does not count. Nothing was recorded then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// There is no such question.
    #[error(
        "session {session} does not ask about {id:?} (any more); `stead approvals list` shows what waits"
    )]
    NoQuestion {
        /// The session.
        session: SessionId,
        /// The call.
        id: String,
    },
    /// Two answers to one question.
    #[error("{0} is answered twice; give one answer")]
    Twice(String),
    /// The question is about other arguments.
    #[error(
        "{id} was asked about other arguments than those you saw; look at it again (`stead approvals show {id}`)"
    )]
    Stale {
        /// The call.
        id: String,
    },
    /// It may not be answered like this.
    #[error("{id} cannot be answered with `{}`; it takes: {}", .given.as_str(), listed(.allowed))]
    NotTaken {
        /// The call.
        id: String,
        /// The answer.
        given: DecisionKind,
        /// Those that may be given.
        allowed: Vec<DecisionKind>,
    },
    /// Someone else is asked.
    #[error("{by:?} may not answer {id}; it takes the word of: {}", .answerers.join(", "))]
    NotYours {
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
    Arguments {
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
    NotForGood {
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
    #[error("there is no rule {0:?}; `stead approvals rules` lists them")]
    NoRule(String),
    /// Several ids begin like this.
    #[error("several rules begin with {0:?}; give more of the id")]
    ManyRules(String),
    /// There are as many rules as there may be.
    #[error(
        "there are {0} rules already; take some back (`stead approvals revoke ID`) before making more"
    )]
    TooManyRules(usize),
}

fn listed(kinds: &[DecisionKind]) -> String {
    kinds
        .iter()
        .map(|kind| kind.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// An answer that counts.
pub(super) struct Weighed {
    pub(super) decision: Decision,
    /// What it allows for good, and of which tool.
    pub(super) grant: Option<(String, Granted)>,
    /// What had asked.
    pub(super) rule: String,
}

impl Session {
    /// Answers questions, all or none of them: durable on return, from whichever process. The run
    /// does not go on by itself.
    pub async fn answer(
        &mut self,
        replies: &[Reply],
        by: &str,
        wait: Wait,
    ) -> Result<Answered, AgentError> {
        self.granted = self.agent.grants(&self.owner).await?;
        let (mut writer, _) = self.take(wait, Missing::Fail).await?;
        let answered = match self.take_part(None).await {
            Ok(_) => self.answer_in(&mut *writer, replies, by).await,
            Err(error) => Err(error),
        };
        self.sessions.derive(&self.state, writer.position()).await;
        writer.close().await;
        answered
    }

    async fn answer_in(
        &mut self,
        writer: &mut dyn JournalWriter,
        replies: &[Reply],
        by: &str,
    ) -> Result<Answered, AgentError> {
        let tools = self.turn(None).await?.tools_of(self.state.model.as_deref());
        let files = self.files(None);
        let mut weighed: Vec<Weighed> = Vec::new();
        for reply in replies {
            if weighed.iter().any(|known| known.decision.id == reply.id) {
                return Err(ApprovalError::Twice(reply.id.clone()).into());
            }
            weighed.extend(self.weigh((&tools, &*files), reply, by).await?);
        }
        let entries: Vec<Entry> = weighed
            .iter()
            .map(|weighed| Entry::Decision(weighed.decision.clone()))
            .collect();
        if !entries.is_empty() {
            self.write(writer, entries).await?;
        }
        let granted = self.keep(&weighed, by).await?;
        let decisions = weighed
            .into_iter()
            .map(|weighed| weighed.decision)
            .collect();
        Ok(Answered {
            decisions,
            granted,
            open: self.open_questions(),
        })
    }

    /// Keeps what was allowed for good, after the answers are on record: a rule without its answer
    /// would be worse than an answer without its rule.
    pub(super) async fn keep(
        &mut self,
        weighed: &[Weighed],
        by: &str,
    ) -> Result<Vec<Grant>, AgentError> {
        let mut granted = Vec::new();
        for Weighed { grant, rule, .. } in weighed {
            let Some((tool, what)) = grant.clone() else {
                continue;
            };
            granted.push(
                self.agent
                    .grant(&self.owner, &tool, what, (rule, by))
                    .await?,
            );
        }
        self.granted.extend(granted.iter().cloned());
        Ok(granted)
    }

    /// An answer as it goes on record; none if it is to wait.
    pub(super) async fn weigh(
        &self,
        (tools, files): (&Registry, &dyn Vfs),
        reply: &Reply,
        by: &str,
    ) -> Result<Option<Weighed>, ApprovalError> {
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
        let decision =
            check(&run.id, pending, reply, by, jiff::Timestamp::now()).ok_or_else(missing)??;
        let Some(decision) = decision else {
            return Ok(None);
        };
        let grant = match &reply.answer {
            Answer::Edit(args) => {
                self.check_edit((tools, files), &pending.call, args).await?;
                None
            }
            Answer::Always => {
                let offered = self.offered((tools, files), &pending.call).await;
                Some(offered.ok_or_else(|| ApprovalError::NotForGood {
                    id: reply.id.clone(),
                })?)
            }
            Answer::Yes | Answer::No { .. } | Answer::Respond(_) | Answer::Later => None,
        };
        let rule = match &pending.state {
            CallState::Asked { rule, .. } => rule.clone(),
            CallState::New
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => String::new(),
        };
        Ok(Some(Weighed {
            decision,
            grant,
            rule,
        }))
    }

    /// What [`Answer::Always`] to the question about `id` would allow; none if it cannot be said.
    pub async fn always(&self, id: &str) -> Result<Option<Granted>, AgentError> {
        let pending = self
            .state
            .run
            .iter()
            .flat_map(|run| &run.pending)
            .find(|pending| pending.call.id == id);
        let Some(Pending {
            call,
            state: CallState::Asked { .. },
        }) = pending
        else {
            return Ok(None);
        };
        let tools = self.turn(None).await?.tools_of(self.state.model.as_deref());
        let files = self.files(None);
        Ok(self
            .offered((&tools, &*files), call)
            .await
            .map(|(_, what)| what))
    }

    /// What "always" would allow, and of which tool.
    pub(super) async fn offered(
        &self,
        at: (&Registry, &dyn Vfs),
        call: &ToolCall,
    ) -> Option<(String, Granted)> {
        let (tool, args) = prepare(at.0, &call.name, call.args.clone()).ok()?;
        let judged = self
            .agent
            .judged(at, &*tool, &args, &self.conversation())
            .await
            .ok()?;
        Some((judged.tool.clone(), offer(&*tool, at.1, judged).await?))
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
        let wrong = |why: String| ApprovalError::Arguments {
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
        if matches!(self.sessions.redactor().clean(&text), Cow::Owned(_)) {
            return Err(wrong(
                "they hold a secret of this machine, which is never passed on".to_owned(),
            ));
        }
        let (tool, args) = prepare(at.0, &call.name, args.clone()).map_err(wrong)?;
        let denied = |rule: String| ApprovalError::Denied {
            id: id.clone(),
            rule,
        };
        let conversation = self.conversation();
        let judged = self
            .agent
            .judged(at, &*tool, &args, &conversation)
            .await
            .map_err(|e| denied(e.to_string()))?;
        let verdict = judge(self.agent.gate(), &conversation.terms, &judged);
        match verdict.kind {
            VerdictKind::Allow | VerdictKind::Ask => Ok(()),
            VerdictKind::Deny => Err(denied(verdict.rule)),
        }
    }
}

/// Checks an answer against its question. None if the call is not asked about; no decision if it is
/// to wait.
pub(super) fn check(
    run: &RunId,
    Pending { call, state }: &Pending,
    reply: &Reply,
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
        Answer::Later => return Some(Ok(None)),
        Answer::Yes | Answer::Always => yes(),
        Answer::Edit(args) => Decision {
            args: Some(args.clone()),
            ..yes()
        },
        Answer::No { words } => Decision {
            approved: false,
            words: words.clone(),
            ..yes()
        },
        Answer::Respond(words) => Decision {
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
        .is_some_and(|words| words.len() > MAX_WORDS_BYTES);
    Some(match terms.expires {
        _ if *args_hash != reply.args_hash => Err(ApprovalError::Stale { id: id() }),
        Some(at) if terms.has_expired(now) => Err(ApprovalError::Expired { id: id(), at }),
        _ if !terms.may_answer(by) => Err(ApprovalError::NotYours {
            id: id(),
            by: by.to_owned(),
            answerers: terms.answerers.clone(),
        }),
        _ if !terms.takes(given) => Err(ApprovalError::NotTaken {
            id: id(),
            given,
            allowed: terms.allowed().to_vec(),
        }),
        _ if too_long => Err(ApprovalError::TooLong {
            id: id(),
            limit: MAX_WORDS_BYTES,
        }),
        _ => Ok(Some(decision)),
    })
}
