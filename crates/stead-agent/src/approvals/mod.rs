//! Questions to people: what is shown of a call, who may answer, and what an answer comes to.
//!
//! `asking` makes a question, `open` finds those that wait, `answer` takes answers from any
//! process, `decide` those of whoever is there while the run waits, `grants` keeps what people
//! allowed for good.

mod answer;
mod grants;
mod interactive;
mod open_questions;
mod question;
mod sessionless;

pub use answer::{ApprovalError, ApprovalOutcome, ApprovalReply};
pub use grants::{GrantStore, NewGrant};
pub use open_questions::{OpenQuestion, OpenQuestions};
pub(crate) use question::ask_if_client_executes;
