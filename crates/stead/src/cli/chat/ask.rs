//! Questions on their way from the run to the person, and answers back.

use futures_util::future::BoxFuture;
use stead::agent::{Answer, Approver, Question};
use tokio::sync::{mpsc, oneshot};

/// A question that waits for its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// The person in front of the screen.
pub(super) struct Person {
    name: String,
    asks: mpsc::Sender<Asked>,
}

impl Person {
    /// A person, and where the questions to them arrive.
    pub(super) fn new(name: String) -> (Self, mpsc::Receiver<Asked>) {
        let (asks, asked) = mpsc::channel(1);
        (Self { name, asks }, asked)
    }
}

impl Approver for Person {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            // An interface that is gone can be asked again later, by whoever resumes.
            match self
                .asks
                .send(Asked {
                    question: question.clone(),
                    reply,
                })
                .await
            {
                Ok(()) => answer.await.unwrap_or(Answer::Later),
                Err(_) => Answer::Later,
            }
        })
    }
}
