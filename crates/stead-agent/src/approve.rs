//! Who answers when the gate says Ask.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A question about one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arguments the answer will be bound to.
    pub args: Value,
    /// The rule that asks.
    pub rule: String,
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Run it.
    Yes,
    /// Do not.
    No,
    /// Not now: the run parks, and can be answered from anywhere.
    Later,
}

/// Someone who can be asked while the run waits.
pub trait Approver: Send + Sync {
    /// Who this is, for the journal.
    fn name(&self) -> String;

    /// Answers a question.
    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;
}

/// How questions of a run are answered.
#[derive(Clone, Default)]
pub enum Approvals {
    /// Yes to everything asked in this run.
    All,
    /// No to everything asked in this run.
    None,
    /// Nobody is here: park.
    #[default]
    Park,
    /// Ask this person.
    Person(Arc<dyn Approver>),
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::None => "None",
            Self::Park => "Park",
            Self::Person(_) => "Person",
        })
    }
}

impl Approvals {
    /// The answer, and who gave it.
    pub(crate) async fn answer(&self, question: &Question) -> (Answer, String) {
        match self {
            Self::All => (Answer::Yes, "--approve all".to_owned()),
            Self::None => (Answer::No, "--approve none".to_owned()),
            Self::Park => (Answer::Later, String::new()),
            Self::Person(person) => (person.answer(question).await, person.name()),
        }
    }
}
