//! What messages do to a run that goes on.

use crate::live::{Live, Stop};
use stead_core::{Entry, ResultStatus, Steer, ToolCall};

/// What the model is told of a call that a new message came before.
const SKIPPED: &str = "skipped: the person sent a new message before this call was begun; it had no effect.";

impl Live<'_> {
    /// Whether a message waits that goes into this run.
    pub(crate) fn is_steered(&self) -> bool {
        self.options.inbox.as_ref().is_some_and(|inbox| inbox.steers())
    }

    /// Lets what was said meanwhile be part of the conversation. True if anything was.
    pub(crate) async fn steer(&mut self) -> Result<bool, Stop> {
        let Some(content) = self.options.inbox.as_ref().and_then(|inbox| inbox.take_steering()) else {
            return Ok(false);
        };
        self.record(vec![Entry::Steer(Steer { run: self.run.clone(), content })]).await?;
        Ok(true)
    }

    /// Calls that were not begun are not begun any more.
    pub(crate) async fn skip(&mut self, calls: impl IntoIterator<Item = ToolCall>) -> Result<(), Stop> {
        for call in calls {
            self.refuse(&call, ResultStatus::Skipped, SKIPPED.to_owned()).await?;
        }
        Ok(())
    }
}
