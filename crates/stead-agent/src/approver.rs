//! Who answers when the gate says Ask.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use stead_core::AskTerms;
use stead_gate::GrantScope;

/// A question about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalQuestion {
    /// The call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments the answer will be bound to.
    pub args: Value,
    /// The rule that asks.
    pub rule: String,
    /// How it may be answered, by whom and until when, and what would happen.
    pub terms: AskTerms,
    /// What `Answer::Always` would allow; none if it cannot be said.
    pub always_scope: Option<GrantScope>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Run it.
    Yes,
    /// Do not, and tell the model why.
    No {
        /// Why.
        reason: Option<String>,
    },
    /// Run it, and do not ask about calls like it any more.
    Always,
    /// Run it with these arguments.
    Edit(Value),
    /// Do not run it: this is its result.
    Respond(String),
    /// Not now: the run parks, and can be answered from anywhere.
    Later,
}

impl ApprovalAnswer {
    /// A plain no.
    pub fn no() -> Self {
        Self::No { reason: None }
    }
}

/// Someone who can be asked while the run waits.
pub trait Approver: Send + Sync {
    /// Who this is, for the journal.
    fn name(&self) -> String;

    /// Answers a question.
    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer>;

    /// Answers all questions of a step, in their order. They take effect together.
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
    /// Yes to everything asked in this run.
    ApproveAll,
    /// No to everything asked in this run.
    DenyAll,
    /// Nobody is here: park.
    #[default]
    Park,
    /// Ask this person.
    Ask(Arc<dyn Approver>),
}

impl fmt::Debug for ApprovalPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApproveAll => "All",
            Self::DenyAll => "None",
            Self::Park => "Park",
            Self::Ask(_) => "Person",
        })
    }
}

impl ApprovalPolicy {
    /// The answers in the order of the questions, and who gave them.
    pub(crate) async fn answers(
        &self,
        questions: &[ApprovalQuestion],
    ) -> (Vec<ApprovalAnswer>, String) {
        let same = |answer: ApprovalAnswer| vec![answer; questions.len()];
        match self {
            Self::ApproveAll => (same(ApprovalAnswer::Yes), "--approve all".to_owned()),
            Self::DenyAll => (same(ApprovalAnswer::no()), "--approve none".to_owned()),
            Self::Park => (same(ApprovalAnswer::Later), String::new()),
            Self::Ask(person) => (person.answers(questions).await, person.name()),
        }
    }
}
