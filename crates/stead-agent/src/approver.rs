//! Approvers and the approval policy: who answers when the gate decides to ask.
//!
//! Effects: none.

use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;
use stead_core::{ApprovalAnswer, ApprovalQuestion};

/// An answer, and the name that is recorded with it.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedAnswer {
    /// The answer.
    pub answer: ApprovalAnswer,
    /// Who gave it.
    pub by: String,
}

/// Answers questions while the run waits.
pub trait Approver: Send + Sync {
    /// Returns the name that is recorded in the journal.
    fn name(&self) -> String;

    /// Whether somebody is there to be asked. Listeners are told of questions only then.
    fn is_present(&self) -> bool {
        true
    }

    /// Answers a question.
    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer>;

    /// Answers all questions of a step, in their order. The answers take effect together.
    fn answers<'a>(
        &'a self,
        questions: &'a [ApprovalQuestion],
    ) -> BoxFuture<'a, Vec<ApprovalAnswer>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(questions.len());
            for question in questions {
                answers.push(self.answer(question).await);
            }
            answers
        })
    }

    /// Answers all questions of a step, in their order, if several people may answer: each answer
    /// names who gave it. The names are [`name`](Self::name) unless this is implemented.
    fn signed_answers<'a>(
        &'a self,
        questions: &'a [ApprovalQuestion],
    ) -> BoxFuture<'a, Vec<SignedAnswer>> {
        Box::pin(async move {
            let answers = self.answers(questions).await;
            let by = self.name();
            sign_all(answers, &by)
        })
    }
}

fn sign_all(answers: Vec<ApprovalAnswer>, by: &str) -> Vec<SignedAnswer> {
    let sign = |answer| SignedAnswer {
        answer,
        by: by.to_owned(),
    };
    answers.into_iter().map(sign).collect()
}

/// How questions of a run are answered.
#[derive(Clone, Default)]
pub enum ApprovalPolicy {
    /// Approves every call that asks in this run.
    ApproveAll,
    /// Refuses every call that asks in this run.
    DenyAll,
    /// Parks the run.
    #[default]
    Park,
    /// Asks this approver.
    Ask(Arc<dyn Approver>),
}

impl fmt::Debug for ApprovalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApproveAll => "ApproveAll",
            Self::DenyAll => "DenyAll",
            Self::Park => "Park",
            Self::Ask(_) => "Ask",
        })
    }
}

impl ApprovalPolicy {
    /// Whether somebody is there to be asked.
    pub(crate) fn asks_somebody(&self) -> bool {
        match self {
            Self::ApproveAll | Self::DenyAll | Self::Park => false,
            Self::Ask(approver) => approver.is_present(),
        }
    }

    /// Returns the answers in the order of the questions.
    pub(crate) async fn answers(&self, questions: &[ApprovalQuestion]) -> Vec<SignedAnswer> {
        let repeat = |answer, by| sign_all(vec![answer; questions.len()], by);
        match self {
            Self::ApproveAll => repeat(ApprovalAnswer::Yes, "--approve all"),
            Self::DenyAll => repeat(ApprovalAnswer::no(), "--approve none"),
            Self::Park => repeat(ApprovalAnswer::Later, ""),
            Self::Ask(approver) => approver.signed_answers(questions).await,
        }
    }
}
