//! What to leave out when the context is full: first the long arguments of old changes, which lie
//! in files anyway, then old results, and only then whole messages, for which a summary must stand.

use super::View;
use crate::{Dropped, Message, SessionState, Turn};

/// What there is room for, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// How many may be used before something is left out.
    pub limit: u64,
    /// How many of the newest messages are kept as they are.
    pub keep: u64,
    /// An estimate of the prompt and the tools, which are always sent.
    pub head: u64,
}

/// What to leave out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// It is enough to show old calls and results cut.
    Shorten(View),
    /// A summary must stand for what this view covers; it has none yet.
    Summarise(View),
    /// There is nothing that could be left out.
    Nothing,
}

/// Tokens to leave for a summary.
const SUMMARY: u64 = 2_000;

impl Room {
    /// What shortening must come down to: less, and the same would have to be done again after a
    /// few steps, each time with a new beginning that no provider has in its cache.
    fn goal(&self) -> u64 {
        self.limit / 4 * 3
    }
}

impl SessionState {
    /// What to leave out so that there is room.
    pub fn plan(&self, room: &Room) -> Plan {
        let now = self.view().cloned().unwrap_or_default();
        let tail = self.tail(room.keep);
        let args = View {
            cut_args: now.cut_args.max(tail),
            ..now.clone()
        };
        let results = View {
            cut_results: now.cut_results.max(tail),
            ..args.clone()
        };
        for view in [args, results.clone()] {
            if view != now && room.head + self.tokens_of(&view) <= room.goal() {
                return Plan::Shorten(view);
            }
        }
        self.summarise(room, results)
    }

    /// What to leave out so that a summary stands for all but the newest messages.
    pub fn plan_summary(&self, room: &Room) -> Plan {
        let now = self.view().cloned().unwrap_or_default();
        self.summarise(room, now)
    }

    /// What can be left out without a summary by a model, if it must be less at any rate.
    pub fn plan_digest(&self, room: &Room) -> Plan {
        match self.plan_summary(room) {
            Plan::Summarise(view) => Plan::Summarise(view),
            Plan::Shorten(view) => Plan::Shorten(view),
            Plan::Nothing => self.cut_newest(room),
        }
    }

    /// Tokens of the conversation under `view`; `SUMMARY` where its summary is still missing.
    pub fn tokens_of(&self, view: &View) -> u64 {
        let shown = self.tried(view.clone());
        let open: u64 = self.turns[shown.from..]
            .iter()
            .map(|turn| turn.tokens())
            .sum();
        let missing = if view.covers > 0 && view.summary.is_none() {
            SUMMARY
        } else {
            0
        };
        shown.tokens + open + missing
    }

    /// An estimate of the messages that `view` covers and that are shown now.
    pub fn covered_tokens(&self, view: &View) -> u64 {
        let now = self.view().map_or(0, |view| view.covers);
        self.turns[self.index(now)..self.index(view.covers).max(self.index(now))]
            .iter()
            .map(Turn::tokens)
            .sum()
    }

    /// What `view` leaves out beside what is left out already.
    pub fn dropped(&self, view: &View) -> Dropped {
        let now = self.view().cloned().unwrap_or_default();
        let between = |from: u64, to: u64| {
            let a = self.index(from);
            let b = self.index(to);
            self.turns[a.min(b)..b].iter()
        };
        let is_tool = |turn: &&Turn| matches!(&*turn.message, Message::Tool { .. });
        let results = between(now.cut_results.max(view.covers), view.cut_results).filter(is_tool);
        let calls = between(now.cut_args.max(view.covers), view.cut_args)
            .map(|turn| turn.message.calls().count());
        Dropped {
            messages: between(now.covers, view.covers).count() as u64,
            results: results.count() as u64,
            calls: calls.sum::<usize>() as u64,
        }
    }

    fn summarise(&self, room: &Room, view: View) -> Plan {
        let first = self.index(view.covers);
        let at = self.boundary(room.keep, &view);
        if at <= first {
            return self.cut_newest(room);
        }
        let covers = self.turns[at - 1].seq;
        let view = View {
            covers,
            summary: None,
            kept: Vec::new(),
            ..view
        };
        if room.head + self.tokens_of(&view) <= room.limit {
            return Plan::Summarise(view);
        }
        // The newest step alone is too much: its results are cut as well.
        Plan::Summarise(self.all_cut(view))
    }

    /// Cuts even the newest results, if that makes any difference.
    fn cut_newest(&self, room: &Room) -> Plan {
        let now = self.view().cloned().unwrap_or_default();
        let view = self.all_cut(now.clone());
        let less = self.tokens_of(&view) < self.tokens_of(&now);
        if less && room.head < room.limit {
            Plan::Shorten(view)
        } else {
            Plan::Nothing
        }
    }

    fn all_cut(&self, view: View) -> View {
        let newest = self.turns.last().map_or(0, |turn| turn.seq);
        View {
            cut_args: newest,
            cut_results: newest,
            ..view
        }
    }

    /// The entry up to which messages lie outside the newest `keep` tokens.
    fn tail(&self, keep: u64) -> u64 {
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
    fn boundary(&self, keep: u64, view: &View) -> usize {
        let shown = self.tried(View {
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
            Message::User { .. } => turn.opens.is_some(),
            Message::Assistant { .. } => true,
            Message::Tool { .. } => false,
        });
        step.unwrap_or(0)
    }

    fn index(&self, seq: u64) -> usize {
        self.turns.partition_point(|turn| turn.seq <= seq)
    }
}
