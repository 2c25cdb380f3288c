//! Compacting because a person wants it, and pinning what must stay word for word.

use crate::session::IfMissing;
use crate::{AgentError, RunOptions, Session};
use stead_core::{Compaction, CompactionCause, ContextBudget, Entry, Pin, RunId};
use stead_store::LockWait;

impl Session {
    /// Makes the context smaller between two runs: a summary stands for all but the newest
    /// messages. `focus` is what it must keep above all. None if there is nothing to leave out.
    pub async fn compact(
        &mut self,
        focus: Option<String>,
        options: RunOptions,
    ) -> Result<Option<Compaction>, AgentError> {
        let mut turn = self.turn_setup(None).await?;
        let (writer, _) = self.open_for_writing(options.wait, IfMissing::Fail).await?;
        if self.switch_to_recorded_agent(writer.fence()).await? {
            turn = self.turn_setup(writer.fence()).await?;
        }
        if self.state.run.is_some() {
            writer.close().await;
            return Err(AgentError::RunOpen(self.id.clone()));
        }
        let budget = self.budget().await?;
        let mut live = self.active_run(writer, RunId::fresh(), turn, options);
        live.budget = budget;
        let window = live.session.window_or_default().await;
        let ContextBudget {
            limit_tokens: limit,
            keep_recent_tokens: keep,
            prompt_tokens: head,
        } = live.context_budget(window);
        // What a person compacts is often far from full; a quarter of what there is stays at most.
        let keep = keep.min(live.session.state.context_tokens() / 4);
        let room = ContextBudget {
            limit_tokens: limit,
            keep_recent_tokens: keep,
            prompt_tokens: head,
        };
        let plan = live.session.state.plan_summary(&room);
        let before = live.session.state.seq;
        let done = live
            .apply_compaction_plan(plan, CompactionCause::Manual, room, None, focus)
            .await;
        live.write_usage().await;
        let writer = live.writer;
        let done = done.map_err(AgentError::from);
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        if !done? {
            return Ok(None);
        }
        let lines = self.sessions.read(&self.id).await?;
        Ok(lines.into_iter().find_map(|line| match line.entry {
            Entry::Compaction(compaction) if line.seq > before => Some(compaction),
            _ => None,
        }))
    }

    /// Pins the input of turn `turn` (from 1), so that it is shown word for word whatever else is
    /// left out; or no longer.
    pub async fn pin(
        &mut self,
        turn: usize,
        pinned: Pinned,
        wait: LockWait,
    ) -> Result<(), AgentError> {
        let (mut writer, _) = self.open_for_writing(wait, IfMissing::Fail).await?;
        let written = match self.rewind_point(turn) {
            Ok(point) => {
                let pin = Pin {
                    seq: point.before + 1,
                    pinned: pinned == Pinned::Yes,
                };
                self.append(&mut *writer, vec![Entry::Pin(pin)]).await
            }
            Err(error) => Err(error),
        };
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        written
    }
}

/// Whether a message is kept word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    /// It is.
    Yes,
    /// It is not.
    No,
}
