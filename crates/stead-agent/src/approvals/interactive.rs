//! Approval questions during a run, to hooks and to the person who is there.
//!
//! Effects: the clock, randomness, workspace files (reads), the local disk (reads), the store
//! (writes), the journal (writes), hooks.

use super::answer::{AnswerChecker, CheckedAnswer, expired_decision, store_grants};
use crate::run::{RunStop, ToolCaller};
use crate::{ApprovalPolicy, SignedAnswer};
use stead_core::{
    ApprovalAnswer, ApprovalQuestion, ApprovalReply, CallState, Decision, Entry, EventKind,
    NoticeLevel, PendingCall,
};

/// Asks questions about the calls of a step.
pub(crate) struct Asker<'s, 'a> {
    caller: ToolCaller<'s, 'a>,
    approvals: ApprovalPolicy,
}

/// A reply, and the person or hook that gave it.
struct SignedReply {
    reply: ApprovalReply,
    by: String,
}

impl<'s, 'a> Asker<'s, 'a> {
    pub(crate) fn new(caller: ToolCaller<'s, 'a>, approvals: ApprovalPolicy) -> Self {
        Self { caller, approvals }
    }

    /// Asks all open questions of the step at once, and records the answers. Returns false if a
    /// question must wait.
    pub(crate) async fn ask(mut self, calls: Vec<PendingCall>) -> Result<bool, RunStop> {
        if self.caller.signals.has_steering() {
            return self.skip_all(&calls).await;
        }
        let expired = self.expired_decisions(&calls);
        if !expired.is_empty() {
            self.record_decisions(expired).await?;
            return Ok(true);
        }
        let questions = self.questions(&calls).await;
        let (mut replies, open) = self.ask_hooks(&calls, questions).await?;
        let approvals = self.approvals.clone();
        if approvals.asks_somebody() && !open.is_empty() {
            let questions = open.clone();
            self.caller.journal.emit(EventKind::Awaiting { questions });
        }
        let answers = tokio::select! {
            biased;
            halted = self.caller.signals.wait() => return Err(halted.into()),
            // A message in place of an answer means neither yes nor no.
            () = self.caller.signals.wait_for_steering() => return self.skip_all(&calls).await,
            answers = approvals.answers(&open) => answers,
        };
        let missing = SignedAnswer {
            answer: ApprovalAnswer::Later,
            by: String::new(),
        };
        let answers = answers.into_iter().chain(std::iter::repeat(missing));
        for (question, SignedAnswer { answer, by }) in open.iter().zip(answers) {
            replies.extend(sign(&calls, &question.id, answer, &by));
        }
        let checked = self.check(&replies).await;
        let all_answered = checked.len() == replies.len();
        let decisions = checked.iter().map(|answer| answer.decision.clone());
        self.record_decisions(decisions.collect()).await?;
        let journal = &mut *self.caller.journal;
        for grant in store_grants(journal.session_mut(), &checked).await? {
            let text = format!("allowed from now on: {grant} (grant {})", grant.id);
            journal.emit(EventKind::Notice {
                level: NoticeLevel::Info,
                text,
            });
        }
        Ok(all_answered)
    }

    fn checker(&self) -> AnswerChecker<'_> {
        let session = self.caller.journal.session();
        let tools = self.caller.conversation.callable_tools(session.state());
        AnswerChecker::new(session, tools, &*self.caller.files.unguarded)
    }

    async fn questions(&self, calls: &[PendingCall]) -> Vec<ApprovalQuestion> {
        let checker = self.checker();
        let mut questions = Vec::with_capacity(calls.len());
        for pending in calls {
            questions.extend(checker.question(pending).await);
        }
        questions
    }

    /// Asks hooks first. Returns their replies, and the questions that they left open.
    async fn ask_hooks(
        &mut self,
        calls: &[PendingCall],
        questions: Vec<ApprovalQuestion>,
    ) -> Result<(Vec<SignedReply>, Vec<ApprovalQuestion>), RunStop> {
        let mut replies = Vec::new();
        let mut open = Vec::new();
        let caller = &mut self.caller;
        let Some(hooks) = &mut caller.hooks else {
            return Ok((replies, questions));
        };
        for question in questions {
            let answered = hooks
                .permission(caller.journal, caller.conversation, &question)
                .await?;
            match answered {
                Some((answer, by)) => replies.extend(sign(calls, &question.id, answer, &by)),
                None => open.push(question),
            }
        }
        Ok((replies, open))
    }

    /// Returns the replies that count. The listener is told why others do not.
    async fn check(&mut self, replies: &[SignedReply]) -> Vec<CheckedAnswer> {
        let mut checked = Vec::new();
        for SignedReply { reply, by } in replies {
            match self.checker().check(reply, by).await {
                Ok(answer) => checked.extend(answer),
                Err(error) => self.caller.journal.warn(error.to_string()),
            }
        }
        checked
    }

    /// Skips calls that wait for an answer, because of a steering message.
    async fn skip_all(&mut self, calls: &[PendingCall]) -> Result<bool, RunStop> {
        for pending in calls {
            self.caller.skip_pending(pending).await?;
        }
        Ok(true)
    }

    /// Returns rejections of questions that nobody answered in time.
    fn expired_decisions(&self, calls: &[PendingCall]) -> Vec<Decision> {
        let now = jiff::Timestamp::now();
        let run = self.caller.journal.run();
        let expired = |pending| expired_decision(run, pending, now);
        calls.iter().filter_map(expired).collect()
    }

    /// Records decisions together, and tells the listener.
    async fn record_decisions(&mut self, decisions: Vec<Decision>) -> Result<(), RunStop> {
        if decisions.is_empty() {
            return Ok(());
        }
        let journal = &mut *self.caller.journal;
        let entries = decisions.iter().cloned().map(Entry::Decision).collect();
        journal.record(entries).await?;
        for decision in decisions {
            let kind = decision.kind();
            journal.emit(EventKind::Decision {
                id: decision.id,
                approved: decision.approved,
                by: decision.by,
                decision: kind,
            });
        }
        Ok(())
    }
}

/// Returns the reply to the question about the call `id`, if it is asked about.
fn sign(calls: &[PendingCall], id: &str, answer: ApprovalAnswer, by: &str) -> Option<SignedReply> {
    let pending = calls.iter().find(|pending| pending.call.id == id)?;
    match &pending.state {
        CallState::Asked { args_hash, .. } => Some(SignedReply {
            reply: ApprovalReply {
                id: id.to_owned(),
                args_hash: args_hash.clone(),
                answer,
            },
            by: by.to_owned(),
        }),
        CallState::New
        | CallState::Approved { .. }
        | CallState::Rejected { .. }
        | CallState::Responded { .. }
        | CallState::Begun { .. }
        | CallState::Done { .. } => None,
    }
}
