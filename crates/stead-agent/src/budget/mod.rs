//! Money and tokens: reserved before a call, settled after it.
//!
//! A [`Budget`] belongs to one run and is shared by all that ask a model for it: the run itself,
//! its summaries, and those it hands work to. What a run and its session may spend is counted here;
//! what a day may, in a document that all processes of the owner share.

mod daily_limit;
pub(crate) mod shared_document;
mod unsettled_calls;

use crate::{Agent, AgentError, Session};
use daily_limit::{DailyLimit, DailyReservation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{
    BudgetAccount, BudgetExhausted, BudgetScope, BudgetUnit, CallEstimate, CallReservation, Owner,
    Price, RunId, SessionState, SpendAmount, Usage, Usd, budget_setting_name,
};
use stead_store::StoreError;
use unsettled_calls::UnsettledCalls;

/// Why a call may not be made.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Too little is left.
    #[error(transparent)]
    Exhausted(#[from] BudgetExhausted),
    /// What the day has left cannot be told.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What may be spent, and what is. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<BudgetAccounts>);

#[derive(Debug, Default)]
struct BudgetAccounts {
    /// The run and its session.
    accounts: Mutex<Vec<BudgetAccount>>,
    day: Option<DailyLimit>,
    lost: Option<UnsettledCalls>,
}

impl Budget {
    /// One without limits.
    pub fn unlimited() -> Self {
        Self(Arc::default())
    }

    /// Reserves the most that a call can come to. Where less is left, a shorter answer may fit:
    /// see [`Reservation::answer_tokens`].
    pub async fn reserve(&self, estimate: CallEstimate) -> Result<Reservation, BudgetError> {
        let mut grant = self.reserve_in_accounts(&estimate)?;
        let mut held = None;
        if let Some(day) = &self.0.day {
            let within = CallEstimate {
                answer_tokens: grant.answer_tokens,
                ..estimate
            };
            match day.reserve(within).await {
                Ok((of_day, hold)) => {
                    self.settle_accounts(grant.reserved, of_day.reserved);
                    let shortened_by = of_day.limited_by.or(grant.limited_by);
                    (grant, held) = (
                        CallReservation {
                            limited_by: shortened_by,
                            ..of_day
                        },
                        Some(hold),
                    );
                }
                Err(error) => {
                    self.settle_accounts(grant.reserved, SpendAmount::default());
                    return Err(error);
                }
            }
        }
        Ok(Reservation {
            budget: self.clone(),
            estimate,
            grant,
            daily_reservation: held,
        })
    }

    /// Whether anything is limited.
    pub fn is_limited(&self) -> bool {
        self.0.day.is_some() || !self.accounts().is_empty()
    }

    fn reserve_in_accounts(
        &self,
        estimate: &CallEstimate,
    ) -> Result<CallReservation, BudgetExhausted> {
        let mut accounts = self.accounts();
        let grant = estimate.reserve(&accounts)?;
        accounts
            .iter_mut()
            .for_each(|account| account.used += grant.reserved);
        Ok(grant)
    }

    /// Puts what a call really took in the place of what was reserved for it.
    fn settle_accounts(&self, reserved: SpendAmount, taken: SpendAmount) {
        for account in self.accounts().iter_mut() {
            account.used = account.used.saturating_sub(reserved);
            account.used += taken;
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<BudgetAccount>> {
        self.0
            .accounts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is held back for one call. One that is merely dropped stays held, for as long as the
/// process lives.
#[derive(Debug)]
#[must_use = "what is reserved must be settled, released or kept"]
pub struct Reservation {
    budget: Budget,
    estimate: CallEstimate,
    grant: CallReservation,
    daily_reservation: Option<DailyReservation>,
}

impl Reservation {
    /// Tokens of the longest answer that may be asked for, without thinking; none if nothing is
    /// limited.
    pub fn answer_tokens(&self) -> Option<u32> {
        self.budget
            .is_limited()
            .then(|| u32::try_from(self.grant.answer_tokens).unwrap_or(u32::MAX))
    }

    /// The setting that made the answer shorter than was wanted, if one did.
    pub fn shortened_by(&self) -> Option<String> {
        self.grant
            .limited_by
            .map(|(span, unit): (BudgetScope, BudgetUnit)| budget_setting_name(span, unit))
    }

    /// The call is done: what it really used counts. A provider that tells nothing did not work for
    /// nothing.
    pub async fn settle(self, usage: &Usage, cost: Option<Usd>) -> Result<(), StoreError> {
        if *usage == Usage::default() {
            return self.charge_in_full().await;
        }
        let priced = || self.estimate.price.map(|price: Price| price.cost(usage));
        let usd = cost.or_else(priced).unwrap_or_default();
        // A count far below what was sent is not believed: half of it is charged at least.
        let least = self.estimate.input_tokens / 2;
        if usage.total_tokens() < least {
            let assumed = Usage {
                input_tokens: least,
                ..Usage::default()
            };
            let usd = usd.max(
                self.estimate
                    .price
                    .map(|price: Price| price.cost(&assumed))
                    .unwrap_or_default(),
            );
            return self.close(SpendAmount { usd, tokens: least }).await;
        }
        self.close(SpendAmount {
            usd,
            tokens: usage.total_tokens(),
        })
        .await
    }

    /// Nothing came of the call, so it costs nothing.
    pub async fn release(self) -> Result<(), StoreError> {
        self.close(SpendAmount::default()).await
    }

    /// The call broke off, and nobody says what it cost: all that was reserved counts as spent.
    pub async fn charge_in_full(self) -> Result<(), StoreError> {
        let taken = self.grant.reserved;
        if let Some(lost) = &self.budget.0.lost {
            lost.add(taken).await?;
        }
        self.close(taken).await
    }

    /// The same call once more, after it broke off: what it took so far counts as spent.
    pub async fn reserve_retry(&mut self) -> Result<(), BudgetError> {
        // The request is written, so its answer cannot be made shorter now.
        let output = self.grant.answer_tokens + self.estimate.thinking_tokens;
        let same = CallEstimate {
            answer_tokens: 0,
            thinking_tokens: output,
            ..self.estimate
        };
        let more = self.budget.reserve(same).await?;
        let estimate = self.estimate;
        let grant = CallReservation {
            reserved: more.grant.reserved,
            ..self.grant
        };
        let broken = std::mem::replace(
            self,
            Self {
                estimate,
                grant,
                ..more
            },
        );
        Ok(broken.charge_in_full().await?)
    }

    async fn close(self, taken: SpendAmount) -> Result<(), StoreError> {
        let Self {
            budget,
            grant,
            daily_reservation: held,
            ..
        } = self;
        budget.settle_accounts(grant.reserved, taken);
        match (&budget.0.day, held) {
            (Some(day), Some(held)) => day.settle(held, taken).await,
            (Some(_) | None, _) => Ok(()),
        }
    }
}

impl Agent {
    /// What work for `owner` outside of any run may spend: only the day limits it.
    pub fn budget(&self, owner: &Owner) -> Budget {
        Budget(Arc::new(BudgetAccounts {
            day: self.daily_limit(owner),
            ..BudgetAccounts::default()
        }))
    }

    /// The dearest price of all who may answer; none if that of anyone is not known.
    pub fn highest_price(&self) -> Option<Price> {
        let prices = self
            .parts
            .model
            .facts()
            .names()
            .map(|name| self.price_of(name));
        prices.reduce(|a, b| Some(a?.component_max(b?))).flatten()
    }

    /// Refuses limits in dollars where what is spent could not be told.
    pub(crate) fn check_budget(&self) -> Result<(), AgentError> {
        let Some(setting) = self.parts.workspace.config().budget.first_money_limit() else {
            return Ok(());
        };
        let unpriced = self
            .parts
            .model
            .facts()
            .names()
            .find(|name| self.price_of(name).is_none());
        match unpriced {
            Some(model) => Err(AgentError::NoPrice {
                setting,
                model: model.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn daily_limit(&self, owner: &Owner) -> Option<DailyLimit> {
        let config = self.parts.workspace.config();
        let cap = config.budget.cap(BudgetScope::Day);
        let day = || DailyLimit::new(self.parts.place.state(owner), cap, config.timezone.clone());
        cap.is_limited().then(day)
    }
}

impl Session {
    /// What the open run, or work between two runs, may spend.
    pub async fn budget(&self) -> Result<Budget, AgentError> {
        let settings = self.agent.parts.workspace.config().budget;
        if !settings.has_limit() {
            return Ok(Budget::unlimited());
        }
        let run = settings.cap(BudgetScope::Run);
        let session = settings.cap(BudgetScope::Session);
        let lost = UnsettledCalls::new(
            self.agent.parts.place.state(&self.owner),
            &self.id,
            self.state.seq,
        );
        let broken = if run.is_limited() || session.is_limited() {
            lost.all().await?
        } else {
            Vec::new()
        };
        let since = |seq: u64| {
            broken.iter().filter(|one| one.seq >= seq).fold(
                SpendAmount::default(),
                |mut sum, one| {
                    sum += one.amount;
                    sum
                },
            )
        };
        let price = self.agent.highest_price();
        // Those who worked for it spent it, too; their own journals say so, this one does not.
        let tasks = self
            .subagents
            .tasks()
            .await
            .map_err(AgentError::TaskRecords)?;
        let handed_over = |counts: &dyn Fn(&RunId) -> bool| {
            let counted = tasks.iter().filter(|task| counts(&task.run));
            counted.fold(SpendAmount::default(), |sum, task| sum + task.spent)
        };
        let mut accounts = Vec::new();
        if let Some(open) = self.state.run.as_ref().filter(|_| run.is_limited()) {
            let mut gone = open.spent();
            if open.steps > 0 && open.cost.is_none() {
                gone.usd += cost_at(price, &open.usage);
            }
            gone += since(run_start_seq(&self.state));
            let before = self
                .state
                .last_run
                .as_ref()
                .filter(|_| !open.carried.is_zero())
                .map(|run| &run.id);
            gone += handed_over(&|run| *run == open.id || before == Some(run));
            accounts.push(BudgetAccount {
                scope: BudgetScope::Run,
                limit: run,
                raised: open.raised,
                used: gone,
            });
        }
        if session.is_limited() {
            let Usage {
                input_tokens,
                output_tokens,
                ..
            } = self.state.usage;
            let usd = self
                .state
                .cost
                .unwrap_or_else(|| cost_at(price, &self.state.usage));
            let mut gone = SpendAmount {
                usd,
                tokens: input_tokens + output_tokens,
            };
            gone += since(0);
            gone += handed_over(&|_| true);
            accounts.push(BudgetAccount {
                scope: BudgetScope::Session,
                limit: session,
                raised: self.state.raised,
                used: gone,
            });
        }
        let lost = (!accounts.is_empty()).then_some(lost);
        let day = self.agent.daily_limit(&self.owner);
        Ok(Budget(Arc::new(BudgetAccounts {
            accounts: Mutex::new(accounts),
            day,
            lost,
        })))
    }

    /// Adds what a person allows beyond the limit of the day to that limit, for everyone.
    pub(crate) async fn raise_day(&self, raise: SpendAmount) -> Result<(), AgentError> {
        match self
            .agent
            .daily_limit(&self.owner)
            .filter(|_| !raise.is_zero())
        {
            Some(day) => Ok(day.raise(raise).await?),
            None => Ok(()),
        }
    }
}

/// What was used, at the price of now: for the time when nobody knew the price.
fn cost_at(price: Option<Price>, usage: &Usage) -> Usd {
    price.map_or(Usd::default(), |price| price.cost(usage))
}

/// The entry with which the open run, or the first of those it takes up again, began.
fn run_start_seq(state: &SessionState) -> u64 {
    state
        .turns
        .iter()
        .rev()
        .find(|turn| turn.starts_run.is_some())
        .map_or(0, |turn| turn.seq)
}
