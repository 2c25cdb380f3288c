//! Answers of whoever is there while the run waits.

use super::Reply;
use super::answer::Weighed;
use crate::live::{Live, Stop};
use crate::steering::steered;
use crate::{Answer, Question, Session};
use stead_core::{CallState, Decision, Entry, EventKind, Level, Pending};
use stead_tools::Registry;
use stead_vfs::Vfs;

impl Live<'_> {
    /// Asks whoever is there about all open questions of the step at once. False if one must wait;
    /// answers to the others are on record.
    pub(crate) async fn decide(&mut self, calls: Vec<Pending>) -> Result<bool, Stop> {
        if self.is_steered() {
            return self.leave_unasked(&calls).await;
        }
        let late = self.expired(&calls);
        if !late.is_empty() {
            self.record_decisions(late).await?;
            return Ok(true);
        }
        let mut questions = Vec::with_capacity(calls.len());
        for pending in &calls {
            questions.extend(
                self.session
                    .question((self.hands(), &*self.files), pending)
                    .await,
            );
        }
        let mut replies: Vec<(Reply, String)> = Vec::new();
        let mut open = Vec::new();
        for question in questions {
            match self.permission(&question).await? {
                Some((answer, by)) => {
                    replies.extend(reply(&calls, &question.id, answer).map(|reply| (reply, by)))
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
            () = steered(inbox) => return self.leave_unasked(&calls).await,
            answers = approvals.answers(&open) => answers,
        };
        let answers = answers.into_iter().chain(std::iter::repeat(Answer::Later));
        let answered = open
            .iter()
            .zip(answers)
            .filter_map(|(question, answer)| reply(&calls, &question.id, answer));
        replies.extend(answered.map(|reply| (reply, by.clone())));
        let mut weighed: Vec<Weighed> = Vec::new();
        for (reply, by) in &replies {
            match self
                .session
                .weigh((self.hands(), &*self.files), reply, by)
                .await
            {
                Ok(counted) => weighed.extend(counted),
                Err(error) => self.emit(EventKind::Notice {
                    level: Level::Warning,
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
        for grant in self.session.keep(&weighed, &by).await? {
            let text = format!(
                "allowed from now on: {grant}; `stead approvals revoke {}` takes it back",
                grant.id
            );
            self.emit(EventKind::Notice {
                level: Level::Info,
                text,
            });
        }
        Ok(all)
    }

    /// Skips calls that wait for an answer: something else was said.
    async fn leave_unasked(&mut self, calls: &[Pending]) -> Result<bool, Stop> {
        for pending in calls {
            self.skip_pending(pending).await?;
        }
        Ok(true)
    }

    /// Rejections of what nobody answered in time.
    fn expired(&self, calls: &[Pending]) -> Vec<Decision> {
        let now = jiff::Timestamp::now();
        let rejected = calls
            .iter()
            .filter_map(|Pending { call, state }| match state {
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
    async fn record_decisions(&mut self, decisions: Vec<Decision>) -> Result<(), Stop> {
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
fn reply(calls: &[Pending], id: &str, answer: Answer) -> Option<Reply> {
    calls
        .iter()
        .find(|pending| pending.call.id == id)
        .and_then(|pending| match &pending.state {
            CallState::Asked { args_hash, .. } => Some(Reply {
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
    async fn question(
        &self,
        at: (&Registry, &dyn Vfs),
        Pending { call, state }: &Pending,
    ) -> Option<Question> {
        let CallState::Asked { rule, terms, .. } = state else {
            return None;
        };
        let always = self.offered(at, call).await;
        Some(Question {
            id: call.id.clone(),
            tool: call.name.clone(),
            args: call.args.clone(),
            rule: rule.clone(),
            terms: terms.clone(),
            always: always.map(|(_, what)| what),
        })
    }
}
