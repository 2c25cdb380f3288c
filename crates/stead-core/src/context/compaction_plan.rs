//! What to leave out when the context is full: first the long arguments of old changes, which lie
//! in files anyway, then old results, and only then whole messages, for which a summary must stand.

use super::ContextView;
use crate::{DroppedCounts, Message, SessionState, TurnMessage};

/// What there is room for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextBudget {
    /// How many may be used before something is left out.
    pub limit_tokens: u64,
    /// How many of the newest messages are kept as they are.
    pub keep_recent_tokens: u64,
    /// An estimate of the prompt and the tools, which are always sent.
    pub prompt_tokens: u64,
}

/// What to leave out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactionPlan {
    /// It is enough to show old calls and results cut.
    Shorten(ContextView),
    /// A summary must stand for what this view covers; it has none yet.
    Summarise(ContextView),
    /// There is nothing that could be left out.
    Nothing,
}

/// Tokens to leave for a summary.
const SUMMARY_RESERVE_TOKENS: u64 = 2_000;

impl ContextBudget {
    /// What shortening must come down to: less, and the same would have to be done again after a
    /// few steps, each time with a new beginning that no provider has in its cache.
    fn target_tokens(&self) -> u64 {
        self.limit_tokens / 4 * 3
    }
}

impl SessionState {
    /// What to leave out so that there is room.
    pub fn plan_compaction(&self, room: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        let tail = self.recent_boundary_seq(room.keep_recent_tokens);
        let args = ContextView {
            cut_args: now.cut_args.max(tail),
            ..now.clone()
        };
        let results = ContextView {
            cut_results: now.cut_results.max(tail),
            ..args.clone()
        };
        for view in [args, results.clone()] {
            if view != now && room.prompt_tokens + self.tokens_of(&view) <= room.target_tokens() {
                return CompactionPlan::Shorten(view);
            }
        }
        self.summarise(room, results)
    }

    /// What to leave out so that a summary stands for all but the newest messages.
    pub fn plan_summary(&self, room: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        self.summarise(room, now)
    }

    /// What can be left out without a summary by a model, if it must be less at any rate.
    pub fn plan_without_summary(&self, room: &ContextBudget) -> CompactionPlan {
        match self.plan_summary(room) {
            CompactionPlan::Summarise(view) => CompactionPlan::Summarise(view),
            CompactionPlan::Shorten(view) => CompactionPlan::Shorten(view),
            CompactionPlan::Nothing => self.cut_newest(room),
        }
    }

    /// Tokens of the conversation under `view`; `SUMMARY` where its summary is still missing.
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

    /// An estimate of the messages that `view` covers and that are shown now.
    pub fn covered_tokens(&self, view: &ContextView) -> u64 {
        let now = self.view().map_or(0, |view| view.covers);
        self.turns[self.turn_index(now)..self.turn_index(view.covers).max(self.turn_index(now))]
            .iter()
            .map(TurnMessage::tokens)
            .sum()
    }

    /// What `view` leaves out beside what is left out already.
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

    fn summarise(&self, room: &ContextBudget, view: ContextView) -> CompactionPlan {
        let first = self.turn_index(view.covers);
        let at = self.boundary(room.keep_recent_tokens, &view);
        if at <= first {
            return self.cut_newest(room);
        }
        let covers = self.turns[at - 1].seq;
        let view = ContextView {
            covers,
            summary: None,
            kept: Vec::new(),
            ..view
        };
        if room.prompt_tokens + self.tokens_of(&view) <= room.limit_tokens {
            return CompactionPlan::Summarise(view);
        }
        // The newest step alone is too much: its results are cut as well.
        CompactionPlan::Summarise(self.with_all_cut(view))
    }

    /// Cuts even the newest results, if that makes any difference.
    fn cut_newest(&self, room: &ContextBudget) -> CompactionPlan {
        let now = self.view().cloned().unwrap_or_default();
        let view = self.with_all_cut(now.clone());
        let less = self.tokens_of(&view) < self.tokens_of(&now);
        if less && room.prompt_tokens < room.limit_tokens {
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

    /// The entry up to which messages lie outside the newest `keep` tokens.
    fn recent_boundary_seq(&self, keep: u64) -> u64 {
        let mut kept = 0;
        let newest = self.newest_step();
        let outside = self.turns[..newest].iter().rposition(|turn| {
            kept += turn.tokens();
            kept > keep
        });
        outside.map_or(0, |index| self.turns[index].seq)
    }

    /// The first turn that is kept if about `keep` tokens are, under `view`. It never is one of
    /// results, whose calls would be missing, and it never comes after the newest step.
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

    /// Where the newest step begins: with the input, or with the calls whose results are last.
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
