//! The approver of a host: answers to the questions of a run, whoever sends them.
//!
//! Effects: the clock.

use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_agent::{ApprovalError, Approver, SignedAnswer};
use stead_core::{
    AnswerCommand, ApprovalAnswer, ApprovalQuestion, ApprovalReply, InputId, SessionId,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Waits for answers to the questions of a run and of its subagents while somebody listens who can
/// be asked.
#[derive(Debug, Default)]
pub(crate) struct HostApprover {
    state: Mutex<ApproverState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ApproverState {
    /// The questions that are asked now, by the run and by subagents.
    open: Vec<AskedCall>,
    /// The answers that were sent and are not recorded, oldest first. Those that are for no open
    /// question may be for one that the run is about to ask.
    sent: Vec<SentAnswers>,
    /// The number of listeners of this process who can be asked.
    people: usize,
    /// Until when somebody in another process can be asked.
    people_elsewhere_until: Option<Instant>,
}

/// A question that is asked now.
#[derive(Debug, Clone, PartialEq)]
struct AskedCall {
    session: SessionId,
    id: String,
    args_hash: String,
}

/// Answers of one person to questions of one session, which wait for their questions or for their
/// decisions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentAnswers {
    pub(crate) session: SessionId,
    pub(crate) answer: AnswerCommand,
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

    /// Somebody in another process can be asked until then.
    pub(crate) fn attach_elsewhere(&self, until: Instant) {
        self.lock().people_elsewhere_until = Some(until);
        self.changed.notify_waiters();
    }

    /// Takes answers, for the questions that are open or that the run asks next. Refused if one is
    /// about other arguments than those that are asked about.
    pub(crate) fn reply(&self, sent: SentAnswers) -> Result<(), ApprovalError> {
        let mut state = self.lock();
        if let Some(id) = state.stale_reply(&sent) {
            return Err(ApprovalError::Stale { id });
        }
        state.sent.push(sent);
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Removes the answer to a call whose decision is recorded. Returns the rows of which every
    /// answer is.
    pub(crate) fn take_decided(&self, session: &SessionId, call: &str) -> Vec<InputId> {
        let mut state = self.lock();
        for sent in state
            .sent
            .iter_mut()
            .filter(|sent| sent.session == *session)
        {
            sent.answer.replies.retain(|reply| reply.id != call);
        }
        let is_done = |sent: &mut SentAnswers| sent.answer.replies.is_empty();
        state
            .sent
            .extract_if(.., is_done)
            .map(|sent| sent.row)
            .collect()
    }

    /// Takes the answers that no decision came of.
    pub(crate) fn take_undecided(&self) -> Vec<SentAnswers> {
        std::mem::take(&mut self.lock().sent)
    }

    /// Returns the answers to `asked` once all of them have one, or nobody is left who can be asked.
    fn settled(&self, asked: &[AskedCall]) -> Settled {
        let state = self.lock();
        let answers: Vec<Option<SignedAnswer>> =
            asked.iter().map(|asked| state.answer(asked)).collect();
        let is_complete = answers.iter().all(Option::is_some);
        if !is_complete && state.people > 0 {
            return Settled::Wait(None);
        }
        let elsewhere = state.people_elsewhere_until;
        if let Some(until) = elsewhere.filter(|until| !is_complete && Instant::now() < *until) {
            return Settled::Wait(Some(until));
        }
        let or_later = |answer: Option<SignedAnswer>| {
            answer.unwrap_or(SignedAnswer {
                answer: ApprovalAnswer::Later,
                by: String::new(),
            })
        };
        Settled::Answers(answers.into_iter().map(or_later).collect())
    }

    fn lock(&self) -> MutexGuard<'_, ApproverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether questions are answered.
enum Settled {
    Answers(Vec<SignedAnswer>),
    /// Not yet; it is decided at this time at the latest, if there is one.
    Wait(Option<Instant>),
}

impl ApproverState {
    /// Returns the call of a reply that is about other arguments than the open question.
    fn stale_reply(&self, sent: &SentAnswers) -> Option<String> {
        let is_stale = |reply: &&ApprovalReply| {
            let asked = self
                .open
                .iter()
                .find(|asked| asked.session == sent.session && asked.id == reply.id);
            asked.is_some_and(|asked| asked.args_hash != reply.args_hash)
        };
        let stale = sent.answer.replies.iter().find(is_stale);
        stale.map(|reply| reply.id.clone())
    }

    /// Returns the newest answer to a question.
    fn answer(&self, asked: &AskedCall) -> Option<SignedAnswer> {
        let of_session = |sent: &&SentAnswers| sent.session == asked.session;
        self.sent.iter().rev().filter(of_session).find_map(|sent| {
            let is_meant =
                |reply: &&ApprovalReply| reply.id == asked.id && reply.args_hash == asked.args_hash;
            let reply = sent.answer.replies.iter().find(is_meant)?;
            Some(SignedAnswer {
                answer: reply.answer.clone(),
                by: sent.answer.by.clone(),
            })
        })
    }
}

/// The questions of one asker, which are open as long as this exists.
struct OpenQuestions<'a> {
    approver: &'a HostApprover,
    asked: Vec<AskedCall>,
}

impl<'a> OpenQuestions<'a> {
    fn new(approver: &'a HostApprover, questions: &[ApprovalQuestion]) -> Self {
        let asked: Vec<AskedCall> = questions
            .iter()
            .map(|question| AskedCall {
                session: question.session.clone(),
                id: question.id.clone(),
                args_hash: question.args_hash.clone(),
            })
            .collect();
        approver.lock().open.extend(asked.iter().cloned());
        Self { approver, asked }
    }
}

impl Drop for OpenQuestions<'_> {
    fn drop(&mut self) {
        let mut state = self.approver.lock();
        state.open.retain(|open| !self.asked.contains(open));
    }
}

impl Approver for HostApprover {
    fn name(&self) -> String {
        String::new()
    }

    fn is_present(&self) -> bool {
        let state = self.lock();
        let elsewhere = state.people_elsewhere_until;
        state.people > 0 || elsewhere.is_some_and(|until| Instant::now() < until)
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
            let open = OpenQuestions::new(self, questions);
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                // Registered before the state is checked: an answer in between would be missed.
                changed.as_mut().enable();
                match self.settled(&open.asked) {
                    Settled::Answers(answers) => return answers,
                    Settled::Wait(None) => changed.await,
                    Settled::Wait(Some(until)) => {
                        tokio::select! {
                            () = changed => {}
                            () = sleep_until(until) => {}
                        }
                    }
                }
            }
        })
    }
}
