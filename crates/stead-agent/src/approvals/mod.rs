//! Approvals: questions to people about calls, their answers, and grants.
//!
//! `question` makes a question, `open_questions` lists those that wait, `answer` takes answers from
//! any process, `interactive` asks the person who is there during the run, and `grants` stores
//! grants. `subject` says what an answer is bound to, and `seals` proves who gave it.
//!
//! Effects: none.

mod answer;
mod grant_key;
mod grants;
mod interactive;
mod open_questions;
mod question;
mod seals;
mod subject;

pub use answer::{ApprovalError, ApprovalOutcome};
pub use grant_key::{GrantKey, GrantKeys};
pub use grants::{GrantStore, NewGrant};
pub(crate) use interactive::Asker;
pub use open_questions::{OpenQuestion, OpenQuestions};
pub(crate) use question::ask_if_client_executes;
pub use seals::SessionSeals;
pub(crate) use seals::{CallName, PersonKey};
