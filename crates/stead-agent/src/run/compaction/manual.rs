//! Compaction between two runs, because a person asks for it.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, the model.

use super::{Compactor, PlannedCompaction};
use crate::hooks::RunHooks;
use crate::run::{Conversation, RunJournal, RunSpending};
use crate::session::{IfMissing, SessionWriter};
use crate::{AgentError, Budget, RunOptions, Session, TurnSetup};
use stead_core::{Compaction, CompactionCause, ContextBudget, Entry, RunId};

impl Session {
    /// Compacts the context between two runs: a summary takes the place of all but the newest
    /// messages. `focus` is what the summary must keep above all. Returns `None` if there is nothing
    /// to leave out.
    pub async fn compact(
        &mut self,
        focus: Option<String>,
        options: RunOptions,
    ) -> Result<Option<Compaction>, AgentError> {
        let mut setup = TurnSetup::compose(self, None).await?;
        let mut writer = SessionWriter::open(self, options.wait, IfMissing::Fail).await?;
        if writer.switch_to_recorded_agent().await? {
            setup = writer.turn_setup().await?;
        }
        if writer.state().run.is_some() {
            let id = writer.session().id().clone();
            writer.close().await;
            return Err(AgentError::RunOpen(id));
        }
        let budget = Budget::for_session(writer.session()).await?;
        let files = writer.files();
        let mut conversation = Conversation::new(writer.session(), files, setup);
        let mut journal = RunJournal::new(writer, RunId::fresh(), options.listener);
        let signals = journal.signals(options.cancel).with_queue(options.queue);
        let before = journal.state().seq;
        let mut hooks = RunHooks::new(journal.agent(), budget.clone(), signals.clone());
        let mut spending = RunSpending::new(budget);
        let compacted = Compactor {
            journal: &mut journal,
            conversation: &mut conversation,
            spending: &mut spending,
            hooks: hooks.as_mut(),
            signals: &signals,
        }
        .compact_on_request(focus)
        .await;
        spending.write_log(&mut journal).await;
        journal.close().await;
        if !compacted? {
            return Ok(None);
        }
        let lines = self.journals().read(self.id()).await?;
        Ok(lines.into_iter().find_map(|line| match line.entry {
            Entry::Compaction(compaction) if line.seq > before => Some(compaction),
            _ => None,
        }))
    }
}

impl Compactor<'_, '_> {
    async fn compact_on_request(&mut self, focus: Option<String>) -> Result<bool, AgentError> {
        let window = self.journal.session().window_or_default().await;
        let budget = self.context_budget(window);
        let state = self.journal.state();
        // The context is often far from full: at most a quarter of it stays.
        let keep_recent_tokens = budget.keep_recent_tokens.min(state.context_tokens() / 4);
        let budget = ContextBudget {
            keep_recent_tokens,
            ..budget
        };
        let planned = PlannedCompaction {
            plan: state.plan_summary(&budget),
            cause: CompactionCause::Manual,
            budget,
            window: None,
            focus,
        };
        Ok(self.compact(planned).await?)
    }
}
