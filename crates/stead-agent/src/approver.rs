//! Who answers when the gate decides to ask.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stead_core::{ApprovalAnswer, AskTerms};
use stead_gate::GrantScope;

/// A question about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, which the answer is valid for.
    pub args: Value,
    /// The rule that asks.
    pub rule: String,
    /// How the question may be answered, by whom and until when, with a preview of the call.
    pub terms: AskTerms,
    /// What [`ApprovalAnswer::Always`] would allow; `None` if that answer is not possible.
    pub always_scope: Option<GrantScope>,
    /// The name of the tool that makes the call, if it is a nested one.
    pub called_by: Option<String>,
}

/// Answers questions while the run waits.
pub trait Approver: Send + Sync {
    /// Returns the name that is recorded in the journal.
    fn name(&self) -> String;

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
    /// Returns the answers in the order of the questions, and the name of who gave them.
    pub(crate) async fn answers(
        &self,
        questions: &[ApprovalQuestion],
    ) -> (Vec<ApprovalAnswer>, String) {
        let repeat = |answer: ApprovalAnswer| vec![answer; questions.len()];
        match self {
            Self::ApproveAll => (repeat(ApprovalAnswer::Yes), "--approve all".to_owned()),
            Self::DenyAll => (repeat(ApprovalAnswer::no()), "--approve none".to_owned()),
            Self::Park => (repeat(ApprovalAnswer::Later), String::new()),
            Self::Ask(approver) => (approver.answers(questions).await, approver.name()),
        }
    }
}
