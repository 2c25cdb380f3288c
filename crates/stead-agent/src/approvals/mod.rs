//! Questions to people: what is shown of a call, who may answer, and what an answer comes to.
//!
//! `asking` makes a question, `open` finds those that wait, `answer` takes answers from any
//! process, `decide` those of whoever is there while the run waits, `grants` keeps what people
//! allowed for good.

mod answer;
mod asking;
mod decide;
mod grants;
mod open;
mod outside;

pub use answer::{ApprovalError, ApprovalOutcome, ApprovalReply};
pub(crate) use asking::ask_if_client_executes;
pub use open::OpenQuestion;
