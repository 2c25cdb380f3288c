//! Answers to the questions of a run, by whoever sends them.

use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_agent::{ApprovalQuestion, Approver};
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
    /// The calls that are asked about.
    open: Vec<String>,
    /// The answers so far, by call.
    answers: BTreeMap<String, GivenAnswer>,
    /// The person who answered last.
    by: String,
    /// The inbox rows of the answers.
    rows: Vec<InputId>,
    /// The number of listeners who can be asked.
    people: usize,
}

#[derive(Debug, Clone)]
struct GivenAnswer {
    answer: ApprovalAnswer,
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

    /// Takes answers to open questions. Returns false if none of the questions is open.
    pub(crate) fn reply(&self, replies: &[ApprovalReply], by: &str, row: Option<InputId>) -> bool {
        let mut state = self.lock();
        let open: Vec<&ApprovalReply> = replies
            .iter()
            .filter(|reply| state.open.contains(&reply.id))
            .collect();
        if open.is_empty() {
            return false;
        }
        for reply in open {
            let answer = reply.answer.clone();
            state
                .answers
                .insert(reply.id.clone(), GivenAnswer { answer });
        }
        state.by = by.to_owned();
        state.rows.extend(row);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Takes the rows of answers that were given to the run.
    pub(crate) fn take_rows(&self) -> Vec<InputId> {
        std::mem::take(&mut self.lock().rows)
    }

    /// Returns the answers once all questions have one, or nobody is left who can be asked.
    fn settled(&self, questions: &[ApprovalQuestion]) -> Option<Vec<ApprovalAnswer>> {
        let mut state = self.lock();
        let answered = |question: &ApprovalQuestion| {
            state
                .answers
                .get(&question.id)
                .map(|given| given.answer.clone())
        };
        let answers: Vec<Option<ApprovalAnswer>> = questions.iter().map(answered).collect();
        let is_complete = answers.iter().all(Option::is_some);
        if !is_complete && state.people > 0 {
            return None;
        }
        state.open.clear();
        state.answers.clear();
        let or_later = |answer: Option<ApprovalAnswer>| answer.unwrap_or(ApprovalAnswer::Later);
        Some(answers.into_iter().map(or_later).collect())
    }

    fn lock(&self) -> MutexGuard<'_, ApproverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for HostApprover {
    fn name(&self) -> String {
        self.lock().by.clone()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let answers = self.answers(std::slice::from_ref(question)).await;
            answers.into_iter().next().unwrap_or(ApprovalAnswer::Later)
        })
    }

    fn answers<'a>(
        &'a self,
        questions: &'a [ApprovalQuestion],
    ) -> BoxFuture<'a, Vec<ApprovalAnswer>> {
        Box::pin(async move {
            self.lock().open = questions
                .iter()
                .map(|question| question.id.clone())
                .collect();
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // Registered before the state is checked: an answer in between would be missed.
                changed.as_mut().enable();
                if let Some(answers) = self.settled(questions) {
                    return answers;
                }
                changed.await;
            }
        })
    }
}
