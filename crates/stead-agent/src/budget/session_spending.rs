//! Part of the budgets: what the open run and its session have spent so far.
//!
//! Effects: none.

use super::unsettled_calls::UnsettledCall;
use crate::TaskRecord;
use stead_core::{
    BudgetAccount, BudgetScope, Price, RunId, SessionState, SpendAmount, SpendLimit, Usage, Usd,
};

/// The sources of what a session has spent.
pub(super) struct SessionSpending<'a> {
    pub(super) state: &'a SessionState,
    /// The current price, for calls made before the price was known.
    pub(super) price: Option<Price>,
    /// Calls that broke off.
    pub(super) broken: Vec<UnsettledCall>,
    /// Tasks of subagents, which spend from the same budget, but are recorded in journals of their
    /// own.
    pub(super) tasks: Vec<TaskRecord>,
}

impl SessionSpending<'_> {
    /// The account of the open run, if there is one and it is limited.
    pub(super) fn run_account(&self, limit: SpendLimit) -> Option<BudgetAccount> {
        let open = self.state.run.as_ref().filter(|_| limit.is_limited())?;
        let mut used = open.spent();
        if open.steps > 0 && open.cost.is_none() {
            used.usd += self.cost(&open.usage);
        }
        used += self.broken_since(self.run_start());
        let continued = self
            .state
            .last_run
            .as_ref()
            .filter(|_| !open.carried.is_zero())
            .map(|run| &run.id);
        used += self.spent_by_tasks(|run| *run == open.id || continued == Some(run));
        Some(BudgetAccount {
            scope: BudgetScope::Run,
            limit,
            raised: open.raised,
            used,
        })
    }

    /// The account of the session, if it is limited.
    pub(super) fn session_account(&self, limit: SpendLimit) -> Option<BudgetAccount> {
        if !limit.is_limited() {
            return None;
        }
        let usage = &self.state.usage;
        let mut used = SpendAmount {
            usd: self.state.cost.unwrap_or_else(|| self.cost(usage)),
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        };
        used += self.broken_since(0);
        used += self.spent_by_tasks(|_| true);
        Some(BudgetAccount {
            scope: BudgetScope::Session,
            limit,
            raised: self.state.raised,
            used,
        })
    }

    /// The cost of `usage` at the current price.
    fn cost(&self, usage: &Usage) -> Usd {
        self.price.map_or(Usd::default(), |price| price.cost(usage))
    }

    /// The entry that began the open run, or the first of the runs that it continues.
    fn run_start(&self) -> u64 {
        let mut turns = self.state.turns.iter().rev();
        turns
            .find(|turn| turn.starts_run.is_some())
            .map_or(0, |turn| turn.seq)
    }

    fn broken_since(&self, seq: u64) -> SpendAmount {
        let calls = self.broken.iter().filter(|call| call.seq >= seq);
        calls.fold(SpendAmount::default(), |sum, call| sum + call.amount)
    }

    fn spent_by_tasks(&self, counts: impl Fn(&RunId) -> bool) -> SpendAmount {
        let counted = self.tasks.iter().filter(|task| counts(&task.run));
        counted.fold(SpendAmount::default(), |sum, task| sum + task.spent)
    }
}
