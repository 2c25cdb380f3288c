//! The context of a session: the messages that its state shows a model, and their tokens.
//!
//! Effects: none.

use super::{ContextView, RenderedView, VerbatimContent, render_view};
use crate::state::{ProviderTokenCount, add_cost};
use crate::{
    Compaction, Message, Pin, PlanModeChange, RunId, SessionChange, SessionState, TurnMessage, Usd,
};
use std::sync::Arc;

impl SessionState {
    /// Returns the messages that a model is sent.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let (prefix, open) = self.visible_messages();
        prefix
            .iter()
            .cloned()
            .chain(open.iter().map(|turn| turn.message.clone()))
            .collect()
    }

    /// Returns the messages in place of the older part of the conversation, and the turns that are
    /// shown as they are.
    pub fn visible_messages(&self) -> (&[Arc<Message>], &[TurnMessage]) {
        match self.views.last() {
            Some(shown) => (&shown.prefix, &self.turns[shown.tail_start..]),
            None => (&[], &self.turns),
        }
    }

    /// Returns the current view of the conversation.
    pub fn view(&self) -> Option<&ContextView> {
        self.views.last().map(|shown| &shown.view)
    }

    /// Returns the estimated tokens of the visible conversation.
    pub fn context_tokens(&self) -> u64 {
        let open: u64 = self
            .visible_messages()
            .1
            .iter()
            .map(TurnMessage::tokens)
            .sum();
        open + self.views.last().map_or(0, |shown| shown.tokens)
    }

    /// Returns the tokens of the next request as far as known: the provider's last count and an
    /// estimate of the messages since then; `head` is an estimate of the prompt and the tools. A
    /// count far from any plausible estimate is ignored.
    pub fn used_tokens(&self, head: u64) -> u64 {
        let estimate = head + self.context_tokens();
        let Some(ProviderTokenCount { tokens, turns }) = self.counted else {
            return estimate;
        };
        let since: u64 = self.turns[turns.min(self.turns.len())..]
            .iter()
            .map(TurnMessage::tokens)
            .sum();
        let then = estimate - since;
        let believable = then / 2..=then.saturating_mul(4).saturating_add(10_000);
        if believable.contains(&tokens) {
            tokens + since
        } else {
            estimate
        }
    }

    pub(crate) fn pin(&mut self, pin: &Pin) -> Result<(), &'static str> {
        let is_input = |turn: &&TurnMessage| turn.seq == pin.seq && turn.starts_run.is_some();
        if !self.turns.iter().any(|turn| is_input(&turn)) {
            return Err("only a person's input can be pinned");
        }
        match pin.pinned {
            true => self.pins.insert(pin.seq),
            false => self.pins.remove(&pin.seq),
        };
        // It may be in the part that a summary replaces.
        if let Some(RenderedView {
            view, seq, task, ..
        }) = self.views.pop()
        {
            self.set_view(view, seq, task);
        }
        Ok(())
    }

    pub(crate) fn compact(
        &mut self,
        seq: u64,
        compaction: &Compaction,
    ) -> Result<(), &'static str> {
        match (&compaction.run, &mut self.run) {
            (Some(id), Some(run)) if run.id == *id && run.pending.is_empty() => {
                run.cost = match run.has_spent_nothing() {
                    true => compaction.cost,
                    false => add_compaction_cost(run.cost, compaction),
                };
                run.usage += compaction.usage;
            }
            (None, None) => {}
            (Some(_), _) => return Err("it is of no open run, or calls are open"),
            (None, Some(_)) => return Err("a run is open"),
        }
        let newest = |at: u64| self.turns.last().is_some_and(|turn| at >= turn.seq);
        if newest(compaction.view.covers) && self.run.is_some() {
            return Err("it would leave nothing of an open run");
        }
        let open = self
            .turns
            .partition_point(|turn| turn.seq <= compaction.view.covers);
        if matches!(
            self.turns.get(open).map(|turn| &*turn.message),
            Some(Message::Tool { .. })
        ) {
            return Err("it would part results from their calls");
        }
        self.usage += compaction.usage;
        self.cost = if self.model.is_none() {
            self.cost
        } else {
            add_compaction_cost(self.cost, compaction)
        };
        self.window = compaction.window.or(self.window);
        let task = self.run.as_ref().and_then(|run| self.input_of_run(&run.id));
        self.set_view(compaction.view.clone(), seq, task);
        Ok(())
    }

    /// Returns the input that began a run. A run that resumes another has none, so the newest input
    /// counts.
    fn input_of_run(&self, run: &RunId) -> Option<u64> {
        let inputs = || {
            self.turns
                .iter()
                .rev()
                .filter(|turn| turn.starts_run.is_some())
        };
        let own = inputs().find(|turn| turn.starts_run.as_ref() == Some(run));
        own.or_else(|| inputs().next()).map(|turn| turn.seq)
    }

    fn set_view(&mut self, view: ContextView, seq: u64, task: Option<u64>) {
        let verbatim = self.verbatim_content(task);
        let shown = render_view(&self.turns, view, seq, verbatim);
        self.views.push(shown);
        self.counted = None;
    }

    /// Returns how many tokens `view` would show, and what it would leave out.
    pub(crate) fn simulate_view(&self, view: ContextView) -> RenderedView {
        let task = self.run.as_ref().and_then(|run| self.input_of_run(&run.id));
        render_view(&self.turns, view, 0, self.verbatim_content(task))
    }

    fn verbatim_content(&self, task: Option<u64>) -> VerbatimContent<'_> {
        VerbatimContent {
            pins: &self.pins,
            skills: &self.skills,
            current: self.changes.current_seqs(),
            task,
        }
    }

    /// Whether the session is in plan mode.
    pub fn is_planning(&self) -> bool {
        self.plan
            .as_ref()
            .and_then(crate::PlanStage::draft_file)
            .is_some()
    }

    /// Returns the change of plan mode by a person that the model has not been told, assuming that
    /// the changes in `more` come with the next input.
    pub fn unannounced_plan_change(&self, more: &[SessionChange]) -> Option<PlanModeChange> {
        self.changes
            .unannounced_plan_change(self.newest_input, more)
    }
}

/// Adds the cost of a compaction to a total; one without a model is free.
fn add_compaction_cost(total: Option<Usd>, compaction: &Compaction) -> Option<Usd> {
    if compaction.model.is_none() {
        total
    } else {
        add_cost(total, compaction.cost)
    }
}
