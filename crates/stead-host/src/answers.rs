//! Answers to questions of a parked run.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use crate::actor::SessionActor;
use crate::error::is_locked;
use crate::reply::ReplyTo;
use stead_core::{AfterAnswer, AnswerCommand, Command};
use stead_store::LockWait;

impl SessionActor {
    /// Answers questions of a parked run, and resumes it once none is left.
    pub(crate) async fn answer(&mut self, answer: AnswerCommand, reply: ReplyTo) {
        let shared = self.mailbox.shared.clone();
        let child = answer.subagent.clone();
        let mut of_subagent = child.map(|child| shared.session_of(child));
        let is_own = of_subagent.is_none();
        let asking = of_subagent.as_mut().unwrap_or(&mut self.session);
        let answered = asking
            .answer(&answer.replies, &answer.by, answer.then, LockWait::No)
            .await;
        let seq = asking.state().seq;
        match answered {
            Ok(answered) => {
                if is_own {
                    shared.feed.journal_changed(seq);
                }
                self.mailbox.acknowledge(reply, seq).await;
                let resumes = answered.still_open.is_empty() && answer.then == AfterAnswer::Resume;
                let has_run = is_own || self.is_interrupted().await;
                if resumes && has_run {
                    self.run(self.resumption(answer.answers, answer.changes))
                        .await;
                }
            }
            Err(error) if is_locked(&error) => self.answer_holder(answer, reply).await,
            Err(error) => self.mailbox.fail(reply, error).await,
        }
    }

    /// Leaves answers to the process that runs the session. A subagent runs in the process of the
    /// session that it works for.
    async fn answer_holder(&mut self, answer: AnswerCommand, reply: ReplyTo) {
        let is_loaded = self.session.load().await.is_ok();
        let spawned = self.session.state().spawned.as_ref();
        let root = spawned
            .filter(|_| is_loaded)
            .map(|spawned| spawned.tree.clone());
        let Some(root) = root else {
            let command = Command::Answer(answer);
            return self.mailbox.queue_for_holder(command, reply).await;
        };
        let asks = self.session.id().clone();
        let command = Command::Answer(AnswerCommand {
            subagent: Some(answer.subagent.unwrap_or(asks)),
            ..answer
        });
        self.mailbox.queue_for_root(root, command, reply).await;
    }
}
