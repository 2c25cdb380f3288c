//! Steering: messages that reach a run while it goes on.
//!
//! Effects: the clock, workspace files (writes), the journal (writes), hooks.

use super::driver::ActiveRun;
use super::stop::RunStop;
use crate::IncomingMessage;
use stead_core::{Entry, EventKind, Steer};

/// The reason of a run that a message cancelled.
pub const INTERRUPTED: &str = "interrupted by a new message";

impl ActiveRun<'_> {
    /// Adds waiting messages to the conversation. Returns whether there were any.
    pub(super) async fn steer(&mut self) -> Result<bool, RunStop> {
        let Some(queue) = self.signals.queue().cloned() else {
            return Ok(false);
        };
        let Some(message) = queue.take_steering() else {
            return Ok(false);
        };
        let recorded = self.record_steering(message.clone()).await;
        match recorded {
            Ok(true) => {}
            Ok(false) => queue.refuse_rows(message.rows),
            Err(_) => queue.return_steering(message),
        }
        recorded
    }

    /// Records a message. Returns false if a hook refuses it.
    async fn record_steering(&mut self, message: IncomingMessage) -> Result<bool, RunStop> {
        let IncomingMessage {
            content,
            origin,
            rows,
            ..
        } = message;
        let content = match &mut self.hooks {
            Some(hooks) => hooks.steering(&mut self.journal, content).await?,
            None => Some(content),
        };
        let Some(content) = content else {
            return Ok(false);
        };
        let run = self.journal.run().clone();
        let name = format!("steer-{run}-{}.md", self.journal.state().seq);
        let window = self.journal.session().window();
        let content = self
            .conversation
            .offload_message(&name, content, window)
            .await;
        let steer = Entry::Steer(Steer {
            run,
            content,
            origin,
            inbox_rows: rows,
        });
        for line in self.journal.record(vec![steer]).await? {
            if let Entry::Steer(Steer { content, .. }) = line.entry {
                self.journal.emit(EventKind::Steered { content });
            }
        }
        Ok(true)
    }
}
