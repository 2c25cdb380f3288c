//! Compacting because a person wants it, and pinning what must stay word for word.

use crate::session::Missing;
use crate::{AgentError, RunOptions, Session};
use stead_core::{Cause, Compaction, Entry, Pin, Room, RunId};
use stead_store::Wait;

impl Session {
    /// Makes the context smaller between two runs: a summary stands for all but the newest
    /// messages. `focus` is what it must keep above all. None if there is nothing to leave out.
    pub async fn compact(
        &mut self,
        focus: Option<String>,
        options: RunOptions,
    ) -> Result<Option<Compaction>, AgentError> {
        let mut turn = self.turn(None).await?;
        let (writer, _) = self.take(options.wait, Missing::Fail).await?;
        if self.take_part(writer.fence()).await? {
            turn = self.turn(writer.fence()).await?;
        }
        if self.state.run.is_some() {
            writer.close().await;
            return Err(AgentError::RunOpen(self.id.clone()));
        }
        let budget = self.budget().await?;
        let mut live = self.live(writer, RunId::fresh(), turn, options);
        live.budget = budget;
        let window = live.session.known_window().await;
        let Room { limit, keep, head } = live.room(window);
        // What a person compacts is often far from full; a quarter of what there is stays at most.
        let keep = keep.min(live.session.state.context_tokens() / 4);
        let room = Room { limit, keep, head };
        let plan = live.session.state.plan_summary(&room);
        let before = live.session.state.seq;
        let done = live.carry_out(plan, Cause::Manual, room, None, focus).await;
        live.write_usage().await;
        let writer = live.writer;
        let done = done.map_err(AgentError::from);
        self.sessions.derive(&self.state, writer.position()).await;
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
    pub async fn pin(&mut self, turn: usize, pinned: Pinned, wait: Wait) -> Result<(), AgentError> {
        let (mut writer, _) = self.take(wait, Missing::Fail).await?;
        let written = match self.rewind_point(turn) {
            Ok(point) => {
                let pin = Pin {
                    seq: point.before + 1,
                    pinned: pinned == Pinned::Yes,
                };
                self.write(&mut *writer, vec![Entry::Pin(pin)]).await
            }
            Err(error) => Err(error),
        };
        self.sessions.derive(&self.state, writer.position()).await;
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
