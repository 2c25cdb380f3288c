//! Answers to the questions of a run, by whoever sends them.

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_agent::{ApprovalError, ApprovalQuestion, Approver, SignedAnswer};
use stead_core::{ApprovalAnswer, ApprovalReply, InputId};
use tokio::sync::Notify;

/// Waits for answers to the questions of a run while somebody listens who can be asked.
#[derive(Debug, Default)]
pub(crate) struct HostApprover {
    state: Mutex<ApproverState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ApproverState {
    /// The questions that are asked now.
    open: Vec<AskedCall>,
    /// The answers that were sent and are not recorded, oldest first. Those that are for no open
    /// question may be for one that the run is about to ask.
    sent: Vec<SentAnswers>,
    /// The number of listeners who can be asked.
    people: usize,
}

#[derive(Debug)]
struct AskedCall {
    id: String,
    args_hash: String,
}

/// Answers of one person, which wait for their questions or for their decisions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentAnswers {
    pub(crate) replies: Vec<ApprovalReply>,
    pub(crate) by: String,
    /// The row of the inbox.
    pub(crate) row: InputId,
}

/// Somebody who can be asked, as long as this exists.
#[derive(Debug)]
pub(crate) struct AttachedPerson(Arc<HostApprover>);

impl Drop for AttachedPerson {
    fn drop(&mut self) {
        self.0.lock().people -= 1;
        self.0.changed.notify_waiters();
    }
}

impl HostApprover {
    /// Somebody who can be asked listens from now on.
    pub(crate) fn attach(self: &Arc<Self>) -> AttachedPerson {
        self.lock().people += 1;
        self.changed.notify_waiters();
        AttachedPerson(self.clone())
    }

    /// Whether somebody who can be asked listens.
    pub(crate) fn has_people(&self) -> bool {
        self.lock().people > 0
    }

    /// Takes answers, for the questions that are open or that the run asks next. Refused if one is
    /// about other arguments than those that are asked about.
    pub(crate) fn reply(&self, sent: SentAnswers) -> Result<(), ApprovalError> {
        let mut state = self.lock();
        if let Some(id) = state.stale_reply(&sent.replies) {
            return Err(ApprovalError::Stale { id });
        }
        state.sent.push(sent);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Removes the answers of which a decision is recorded. Returns their rows.
    pub(crate) fn take_decided(&self, call: &str) -> Vec<InputId> {
        let decided = |sent: &mut SentAnswers| sent.replies.iter().any(|reply| reply.id == call);
        let mut state = self.lock();
        state
            .sent
            .extract_if(.., decided)
            .map(|sent| sent.row)
            .collect()
    }

    /// Takes the answers that no decision came of.
    pub(crate) fn take_undecided(&self) -> Vec<SentAnswers> {
        std::mem::take(&mut self.lock().sent)
    }

    /// Asks `questions` from now on.
    fn open(&self, questions: &[ApprovalQuestion]) {
        self.lock().open = questions
            .iter()
            .map(|question| AskedCall {
                id: question.id.clone(),
                args_hash: question.args_hash.clone(),
            })
            .collect();
    }

    /// Returns the answers once all questions have one, or nobody is left who can be asked.
    fn settled(&self) -> Option<Vec<SignedAnswer>> {
        let mut state = self.lock();
        let answers: Vec<Option<SignedAnswer>> =
            state.open.iter().map(|asked| state.answer(asked)).collect();
        let is_complete = answers.iter().all(Option::is_some);
        if !is_complete && state.people > 0 {
            return None;
        }
        state.open.clear();
        let or_later = |answer: Option<SignedAnswer>| {
            answer.unwrap_or(SignedAnswer {
                answer: ApprovalAnswer::Later,
                by: String::new(),
            })
        };
        Some(answers.into_iter().map(or_later).collect())
    }

    fn lock(&self) -> MutexGuard<'_, ApproverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApproverState {
    /// Returns the call of a reply that is about other arguments than the open question.
    fn stale_reply(&self, replies: &[ApprovalReply]) -> Option<String> {
        let is_stale = |reply: &&ApprovalReply| {
            let asked = self.open.iter().find(|asked| asked.id == reply.id);
            asked.is_some_and(|asked| asked.args_hash != reply.args_hash)
        };
        replies.iter().find(is_stale).map(|reply| reply.id.clone())
    }

    /// Returns the newest answer to a question.
    fn answer(&self, asked: &AskedCall) -> Option<SignedAnswer> {
        self.sent.iter().rev().find_map(|sent| {
            let is_meant =
                |reply: &&ApprovalReply| reply.id == asked.id && reply.args_hash == asked.args_hash;
            let reply = sent.replies.iter().find(is_meant)?;
            Some(SignedAnswer {
                answer: reply.answer.clone(),
                by: sent.by.clone(),
            })
        })
    }
}

impl Approver for HostApprover {
    fn name(&self) -> String {
        String::new()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let answers = self.signed_answers(std::slice::from_ref(question)).await;
            let first = answers.into_iter().next();
            first.map_or(ApprovalAnswer::Later, |signed| signed.answer)
        })
    }

    fn signed_answers<'a>(
        &'a self,
        questions: &'a [ApprovalQuestion],
    ) -> BoxFuture<'a, Vec<SignedAnswer>> {
        Box::pin(async move {
            self.open(questions);
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // Registered before the state is checked: an answer in between would be missed.
                changed.as_mut().enable();
                if let Some(answers) = self.settled() {
                    return answers;
                }
                changed.await;
            }
        })
    }
}
