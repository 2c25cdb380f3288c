//! Planning a compaction: first long arguments of old calls are cut, because they are in files
//! anyway, then old results, and only then whole messages are replaced by a summary.
//!
//! Effects: none.

use super::ContextView;
use crate::{DroppedCounts, Message, SessionState, TurnMessage};

/// The context budget in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// The number of tokens above which the context is compacted.
    pub limit_tokens: u64,
    /// The number of tokens of the newest messages that are kept as they are.
    pub keep_recent_tokens: u64,
    /// The estimated tokens of the prompt and the tools, which are always sent.
    pub prompt_tokens: u64,
}

/// A plan for a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionPlan {
    /// Cutting old calls and results suffices.
    Shorten(ContextView),
    /// The messages that this view covers must be summarised; the view has no summary yet.
    Summarise(ContextView),
    /// Nothing can be left out.
    Nothing,
}

/// The tokens reserved for a summary.
const SUMMARY_RESERVE_TOKENS: u64 = 2_000;

impl ContextBudget {
    /// Returns the number of tokens that cutting must reach. A larger number would require another
    /// compaction after a few steps, each time with a new prefix that no provider has cached.
    fn target_tokens(&self) -> u64 {
        self.limit_tokens / 4 * 3
    }
}

impl SessionState {
    /// Plans a compaction that fits the budget.
    pub fn plan_compaction(&self, budget: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        let tail = self.recent_boundary_seq(budget.keep_recent_tokens);
        let args = ContextView {
            cut_args: now.cut_args.max(tail),
            ..now.clone()
        };
        let results = ContextView {
            cut_results: now.cut_results.max(tail),
            ..args.clone()
        };
        for view in [args, results.clone()] {
            if view != now && budget.prompt_tokens + self.tokens_of(&view) <= budget.target_tokens()
            {
                return CompactionPlan::Shorten(view);
            }
        }
        self.summarise(budget, results)
    }

    /// Plans a summary of all but the newest messages.
    pub fn plan_summary(&self, budget: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        self.summarise(budget, now)
    }

    /// Returns the tokens of the conversation under `view`, with a reserve if its summary is
    /// missing.
    pub fn tokens_of(&self, view: &ContextView) -> u64 {
        let shown = self.simulate_view(view.clone());
        let open: u64 = self.turns[shown.tail_start..]
            .iter()
            .map(|turn| turn.tokens())
            .sum();
        let missing = if view.covers > 0 && view.summary.is_none() {
            SUMMARY_RESERVE_TOKENS
        } else {
            0
        };
        shown.tokens + open + missing
    }

    /// Returns the estimated tokens of the messages that `view` covers and that are shown now.
    pub fn covered_tokens(&self, view: &ContextView) -> u64 {
        let now = self.view().map_or(0, |view| view.covers);
        self.turns[self.turn_index(now)..self.turn_index(view.covers).max(self.turn_index(now))]
            .iter()
            .map(TurnMessage::tokens)
            .sum()
    }

    /// Returns what `view` leaves out beyond the current view.
    pub fn dropped(&self, view: &ContextView) -> DroppedCounts {
        let now = self.view().cloned().unwrap_or_default();
        let between = |from: u64, to: u64| {
            let a = self.turn_index(from);
            let b = self.turn_index(to);
            self.turns[a.min(b)..b].iter()
        };
        let is_tool = |turn: &&TurnMessage| matches!(&*turn.message, Message::Tool { .. });
        let results = between(now.cut_results.max(view.covers), view.cut_results).filter(is_tool);
        let calls = between(now.cut_args.max(view.covers), view.cut_args)
            .map(|turn| turn.message.calls().count());
        DroppedCounts {
            messages: between(now.covers, view.covers).count() as u64,
            results: results.count() as u64,
            calls: calls.sum::<usize>() as u64,
        }
    }

    fn summarise(&self, budget: &ContextBudget, view: ContextView) -> CompactionPlan {
        let first = self.turn_index(view.covers);
        let at = self.boundary(budget.keep_recent_tokens, &view);
        if at <= first {
            return self.cut_newest(budget);
        }
        let covers = self.turns[at - 1].seq;
        let view = ContextView {
            covers,
            summary: None,
            kept: Vec::new(),
            ..view
        };
        if budget.prompt_tokens + self.tokens_of(&view) <= budget.limit_tokens {
            return CompactionPlan::Summarise(view);
        }
        // The newest step alone is too long: its results are cut as well.
        CompactionPlan::Summarise(self.with_all_cut(view))
    }

    /// Cuts even the newest results, if that makes a difference.
    fn cut_newest(&self, budget: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        let view = self.with_all_cut(now.clone());
        let less = self.tokens_of(&view) < self.tokens_of(&now);
        if less && budget.prompt_tokens < budget.limit_tokens {
            CompactionPlan::Shorten(view)
        } else {
            CompactionPlan::Nothing
        }
    }

    fn with_all_cut(&self, view: ContextView) -> ContextView {
        let newest = self.turns.last().map_or(0, |turn| turn.seq);
        ContextView {
            cut_args: newest,
            cut_results: newest,
            ..view
        }
    }

    /// Returns the entry up to which messages are outside the newest `keep` tokens.
    fn recent_boundary_seq(&self, keep: u64) -> u64 {
        let mut kept = 0;
        let newest = self.newest_step();
        let outside = self.turns[..newest].iter().rposition(|turn| {
            kept += turn.tokens();
            kept > keep
        });
        outside.map_or(0, |index| self.turns[index].seq)
    }

    /// Returns the first turn to keep if about `keep` tokens are kept under `view`. It is never a
    /// turn of results, whose calls would be missing, and never after the newest step.
    fn boundary(&self, keep: u64, view: &ContextView) -> usize {
        let shown = self.simulate_view(ContextView {
            covers: 0,
            summary: None,
            ..view.clone()
        });
        let tokens = |index: usize| match shown.prefix.get(index) {
            Some(message) => super::message_tokens(message),
            None => self.turns[index].tokens(),
        };
        let newest = self.newest_step();
        let mut at = self.turns.len();
        let mut kept = 0;
        while at > 0 {
            kept += tokens(at - 1);
            if kept > keep && at <= newest {
                break;
            }
            at -= 1;
        }
        let is_results = |index: usize| matches!(&*self.turns[index].message, Message::Tool { .. });
        while at < newest && is_results(at) {
            at += 1;
        }
        at.min(newest)
    }

    /// Returns the start of the newest step: the input, or the calls whose results are last.
    fn newest_step(&self) -> usize {
        let step = self.turns.iter().rposition(|turn| match &*turn.message {
            Message::User { .. } => turn.starts_run.is_some(),
            Message::Assistant { .. } => true,
            Message::Tool { .. } => false,
        });
        step.unwrap_or(0)
    }

    fn turn_index(&self, seq: u64) -> usize {
        self.turns.partition_point(|turn| turn.seq <= seq)
    }
}
