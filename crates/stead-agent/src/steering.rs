//! What messages do to a run that goes on.

use crate::Inbox;
use crate::active_run::{ActiveRun, RunStop};
use std::sync::Arc;
use stead_core::{
    Block, CallResult, CallState, Entry, EventKind, PendingCall, ResultStatus, RunId, Steer,
    ToolCall,
};

/// The reason of a run that was cancelled by a message which goes before it.
pub const INTERRUPTED: &str = "interrupted by a new message";

/// What the model is told of a call that a new message came before.
const SKIPPED_TEXT: &str =
    "skipped: the person sent a new message before this call was begun; it had no effect.";

/// The result of a call that a new message came before.
pub(crate) fn skipped_result(run: &RunId, id: &str) -> CallResult {
    CallResult::new(
        run.clone(),
        id,
        ResultStatus::Skipped,
        vec![Block::text(SKIPPED_TEXT)],
    )
}

/// Whether a message waits that goes into the run.
pub(crate) fn has_steering(inbox: Option<&Arc<Inbox>>) -> bool {
    inbox.is_some_and(|inbox| inbox.has_steering())
}

/// Returns when one does; never before.
pub(crate) async fn wait_for_steering(inbox: Option<Arc<Inbox>>) {
    match inbox {
        Some(inbox) => inbox.wait_for_steering().await,
        None => std::future::pending().await,
    }
}

impl ActiveRun<'_> {
    /// Whether a message waits that goes into this run.
    pub(crate) fn has_steering(&self) -> bool {
        has_steering(self.options.inbox.as_ref())
    }

    /// Lets what was said meanwhile be part of the conversation. True if anything was.
    pub(crate) async fn steer(&mut self) -> Result<bool, RunStop> {
        let Some(inbox) = self.options.inbox.clone() else {
            return Ok(false);
        };
        let Some(content) = inbox.take_steering() else {
            return Ok(false);
        };
        let heard = self.record_steering(content.clone()).await;
        if heard.is_err() {
            inbox.return_steering(content);
        }
        heard
    }

    /// Puts what was said on record. False if a hook kept it away.
    async fn record_steering(&mut self, content: Vec<Block>) -> Result<bool, RunStop> {
        let Some(mut content) = self.submit_steer(content).await? else {
            return Ok(false);
        };
        if let Some(offload) = &self.offload {
            let name = format!("steer-{}-{}.md", self.run, self.session.state.seq);
            content = offload
                .offload_message(&name, content, self.session.window())
                .await;
        }
        for line in self
            .record(vec![Entry::Steer(Steer {
                run: self.run.clone(),
                content,
            })])
            .await?
        {
            if let Entry::Steer(Steer { content, .. }) = line.entry {
                self.emit(EventKind::Steered { content });
            }
        }
        Ok(true)
    }

    /// Whether the model may be asked once more.
    pub(crate) fn has_steps_left(&self) -> bool {
        let most = self.session.agent.policy().limits().max_steps;
        self.session
            .state
            .run
            .as_ref()
            .is_some_and(|run| run.steps < most)
    }

    /// Calls that were not begun are not begun any more.
    pub(crate) async fn skip_calls(
        &mut self,
        calls: impl IntoIterator<Item = ToolCall>,
    ) -> Result<(), RunStop> {
        for call in calls {
            self.refuse(&call, ResultStatus::Skipped, SKIPPED_TEXT.to_owned())
                .await?;
        }
        Ok(())
    }

    /// The same for one of which it is known how far it came. False if it has its result already,
    /// but for the record.
    pub(crate) async fn skip_pending(&mut self, pending: &PendingCall) -> Result<bool, RunStop> {
        match &pending.state {
            CallState::New | CallState::Asked { .. } | CallState::Approved { .. } => {
                self.skip_calls([pending.call.clone()]).await?;
            }
            CallState::Begun { .. } => {
                let Some(run) = &self.session.state.run else {
                    return Ok(true);
                };
                let lost = run.interrupted_result(pending);
                self.record_result(&pending.call.name, None, lost).await?;
            }
            // A person's word is not left out for another word of theirs.
            CallState::Rejected { .. } | CallState::Responded { .. } | CallState::Done { .. } => {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
