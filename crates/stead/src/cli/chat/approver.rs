//! Passing questions from the run to the person, and answers back.

use futures_util::future::BoxFuture;
use stead::agent::{ApprovalAnswer, ApprovalQuestion, Approver};
use tokio::sync::{mpsc, oneshot};

/// A question with the channel for its answer.
pub(super) struct PendingQuestion {
    pub(super) question: ApprovalQuestion,
    pub(super) reply: oneshot::Sender<ApprovalAnswer>,
}

/// The approver that asks the person in front of the screen.
pub(super) struct ChatApprover {
    name: String,
    questions: mpsc::Sender<PendingQuestion>,
}

impl ChatApprover {
    /// Creates an approver for a person, and the receiver of its questions.
    pub(super) fn new(name: String) -> (Self, mpsc::Receiver<PendingQuestion>) {
        let (asks, asked) = mpsc::channel(1);
        (
            Self {
                name,
                questions: asks,
            },
            asked,
        )
    }
}

impl Approver for ChatApprover {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            // If the interface is gone, the question is asked again when the run is resumed.
            match self
                .questions
                .send(PendingQuestion {
                    question: question.clone(),
                    reply,
                })
                .await
            {
                Ok(()) => answer.await.unwrap_or(ApprovalAnswer::Later),
                Err(_) => ApprovalAnswer::Later,
            }
        })
    }
}
