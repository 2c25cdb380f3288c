//! Answers of whoever is there while the run waits.

use super::ApprovalReply;
use super::answer::CheckedAnswer;
use crate::active_run::{ActiveRun, RunStop};
use crate::steering::wait_for_steering;
use crate::{ApprovalAnswer, ApprovalQuestion, Session};
use stead_core::{CallState, Decision, Entry, EventKind, NoticeLevel, PendingCall};
use stead_tools::Registry;
use stead_vfs::Vfs;

impl ActiveRun<'_> {
    /// Asks whoever is there about all open questions of the step at once. False if one must wait;
    /// answers to the others are on record.
    pub(crate) async fn ask_open_questions(
        &mut self,
        calls: Vec<PendingCall>,
    ) -> Result<bool, RunStop> {
        if self.has_steering() {
            return self.skip_unanswered(&calls).await;
        }
        let late = self.expired_decisions(&calls);
        if !late.is_empty() {
            self.record_decisions(late).await?;
            return Ok(true);
        }
        let mut questions = Vec::with_capacity(calls.len());
        for pending in &calls {
            questions.extend(
                self.session
                    .question_for((self.callable_tools(), &*self.files), pending)
                    .await,
            );
        }
        let mut replies: Vec<(ApprovalReply, String)> = Vec::new();
        let mut open = Vec::new();
        for question in questions {
            match self.permission_from_hooks(&question).await? {
                Some((answer, by)) => {
                    replies.extend(reply_to(&calls, &question.id, answer).map(|reply| (reply, by)))
                }
                None => open.push(question),
            }
        }
        let approvals = self.options.approvals.clone();
        let halt = self.halt.clone();
        let inbox = self.options.inbox.clone();
        let (answers, by) = tokio::select! {
            biased;
            halted = halt.wait() => return Err(halted.into()),
            // Whoever says something else wants neither yes nor no.
            () = wait_for_steering(inbox) => return self.skip_unanswered(&calls).await,
            answers = approvals.answers(&open) => answers,
        };
        let answers = answers
            .into_iter()
            .chain(std::iter::repeat(ApprovalAnswer::Later));
        let answered = open
            .iter()
            .zip(answers)
            .filter_map(|(question, answer)| reply_to(&calls, &question.id, answer));
        replies.extend(answered.map(|reply| (reply, by.clone())));
        let mut weighed: Vec<CheckedAnswer> = Vec::new();
        for (reply, by) in &replies {
            match self
                .session
                .check_answer((self.callable_tools(), &*self.files), reply, by)
                .await
            {
                Ok(counted) => weighed.extend(counted),
                Err(error) => self.emit(EventKind::Notice {
                    level: NoticeLevel::Warning,
                    text: error.to_string(),
                }),
            }
        }
        let all = weighed.len() == replies.len();
        self.record_decisions(
            weighed
                .iter()
                .map(|weighed| weighed.decision.clone())
                .collect(),
        )
        .await?;
        for grant in self.session.store_grants(&weighed, &by).await? {
            let text = format!(
                "allowed from now on: {grant}; `stead approvals revoke {}` takes it back",
                grant.id
            );
            self.emit(EventKind::Notice {
                level: NoticeLevel::Info,
                text,
            });
        }
        Ok(all)
    }

    /// Skips calls that wait for an answer: something else was said.
    async fn skip_unanswered(&mut self, calls: &[PendingCall]) -> Result<bool, RunStop> {
        for pending in calls {
            self.skip_pending(pending).await?;
        }
        Ok(true)
    }

    /// Rejections of what nobody answered in time.
    fn expired_decisions(&self, calls: &[PendingCall]) -> Vec<Decision> {
        let now = jiff::Timestamp::now();
        let rejected = calls
            .iter()
            .filter_map(|PendingCall { call, state }| match state {
                CallState::Asked {
                    args_hash, terms, ..
                } if terms.has_expired(now) => {
                    let words = terms
                        .expires
                        .map(|at| format!("nobody answered until {at:.0}"));
                    let yes = Decision::approve(
                        self.run.clone(),
                        call.id.clone(),
                        args_hash.clone(),
                        Decision::EXPIRY,
                    );
                    Some(Decision {
                        approved: false,
                        words,
                        ..yes
                    })
                }
                CallState::Asked { .. }
                | CallState::New
                | CallState::Approved { .. }
                | CallState::Rejected { .. }
                | CallState::Responded { .. }
                | CallState::Begun { .. }
                | CallState::Done { .. } => None,
            });
        rejected.collect()
    }

    /// Records answers in one piece, and tells of them.
    async fn record_decisions(&mut self, decisions: Vec<Decision>) -> Result<(), RunStop> {
        if decisions.is_empty() {
            return Ok(());
        }
        self.record(decisions.iter().cloned().map(Entry::Decision).collect())
            .await?;
        for decision in decisions {
            let kind = decision.kind();
            let Decision {
                id, approved, by, ..
            } = decision;
            self.emit(EventKind::Decision {
                id,
                approved,
                by,
                decision: kind,
            });
        }
        Ok(())
    }
}

/// The answer to the question about one of the calls.
fn reply_to(calls: &[PendingCall], id: &str, answer: ApprovalAnswer) -> Option<ApprovalReply> {
    calls
        .iter()
        .find(|pending| pending.call.id == id)
        .and_then(|pending| match &pending.state {
            CallState::Asked { args_hash, .. } => Some(ApprovalReply {
                id: pending.call.id.clone(),
                args_hash: args_hash.clone(),
                answer,
            }),
            CallState::New
            | CallState::Approved { .. }
            | CallState::Rejected { .. }
            | CallState::Responded { .. }
            | CallState::Begun { .. }
            | CallState::Done { .. } => None,
        })
}

impl Session {
    /// A question as a person is asked it.
    async fn question_for(
        &self,
        at: (&Registry, &dyn Vfs),
        PendingCall { call, state }: &PendingCall,
    ) -> Option<ApprovalQuestion> {
        let CallState::Asked { rule, terms, .. } = state else {
            return None;
        };
        let always = self.offered_grant(at, call).await;
        Some(ApprovalQuestion {
            id: call.id.clone(),
            tool: call.name.clone(),
            args: call.args.clone(),
            rule: rule.clone(),
            terms: terms.clone(),
            always_scope: always.map(|(_, what)| what),
        })
    }
}
