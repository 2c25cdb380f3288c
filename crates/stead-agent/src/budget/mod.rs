//! Budgets in money and tokens: reserved before a model call, settled after it.
//!
//! A [`Budget`] belongs to one run and is shared by everything that calls a model for that run: the
//! run itself, its summaries, hooks and subagents. The limits of a run and of its session are
//! counted in memory, the daily limit in a document that all processes of the owner share.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (reads), the store (writes).

mod daily_limit;
mod session_spending;
mod unsettled_calls;

use crate::model_facts::Pricing;
use crate::{AgentError, AgentParts, Session};
use daily_limit::{DailyLimit, DailyReservation};
use session_spending::SessionSpending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{
    BudgetAccount, BudgetExhausted, BudgetScope, BudgetUnit, CallEstimate, CallReservation, Owner,
    Price, SpendAmount, Usage, Usd, budget_setting_name,
};
use stead_store::StoreError;
use unsettled_calls::UnsettledCalls;

/// Why a model call may not be made.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Too little of the budget is left.
    #[error(transparent)]
    Exhausted(#[from] BudgetExhausted),
    /// The daily budget could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The limits that calls of a model must keep, and what was spent of them. Clones share the
/// accounts.
#[derive(Debug, Clone)]
pub struct Budget(Arc<SharedBudget>);

#[derive(Debug, Default)]
struct SharedBudget {
    /// The accounts of the run and its session, in memory.
    accounts: Mutex<Vec<BudgetAccount>>,
    /// The owner's daily limit, in a document that all processes share; none = no limit.
    day: Option<DailyLimit>,
    /// Calls that broke off and are charged in full, stored per session; none if neither the run
    /// nor the session has a limit.
    unsettled: Option<UnsettledCalls>,
}

impl Budget {
    /// Creates a budget without limits.
    pub fn unlimited() -> Self {
        Self(Arc::default())
    }

    /// The budget of work outside any run: only the daily limit applies.
    pub(crate) fn outside_runs(parts: &AgentParts, owner: &Owner) -> Self {
        Self(Arc::new(SharedBudget {
            day: DailyLimit::of_owner(parts, owner),
            ..SharedBudget::default()
        }))
    }

    /// Reserves the most that a call can cost. If less is left, a shorter answer may still fit: see
    /// [`Reservation::answer_tokens`].
    pub async fn reserve(&self, estimate: CallEstimate) -> Result<Reservation, BudgetError> {
        let mut grant = self.reserve_in_accounts(&estimate)?;
        let mut daily_reservation = None;
        if let Some(day) = &self.0.day {
            let remaining = CallEstimate {
                answer_tokens: grant.answer_tokens,
                ..estimate
            };
            match day.reserve(remaining).await {
                Ok((daily, hold)) => {
                    self.settle_accounts(grant.reserved, daily.reserved);
                    let shortened_by = daily.limited_by.or(grant.limited_by);
                    (grant, daily_reservation) = (
                        CallReservation {
                            limited_by: shortened_by,
                            ..daily
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
            daily_reservation,
        })
    }

    /// Whether there is any limit.
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

    /// Replaces the reserved amount of a call by what it really took.
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

/// The amount that is set aside for one call. A reservation that is dropped without being settled
/// stays set aside as long as the process lives.
#[derive(Debug)]
#[must_use = "a reservation must be settled, released or charged in full"]
pub struct Reservation {
    budget: Budget,
    estimate: CallEstimate,
    grant: CallReservation,
    daily_reservation: Option<DailyReservation>,
}

impl Reservation {
    /// The tokens of the longest answer that may be asked for, without thinking; `None` if there is
    /// no limit.
    pub fn answer_tokens(&self) -> Option<u32> {
        self.budget
            .is_limited()
            .then(|| u32::try_from(self.grant.answer_tokens).unwrap_or(u32::MAX))
    }

    /// The setting that made the answer shorter than estimated, if one did.
    pub fn shortened_by(&self) -> Option<String> {
        self.grant
            .limited_by
            .map(|(span, unit): (BudgetScope, BudgetUnit)| budget_setting_name(span, unit))
    }

    /// Charges what the call used. If the provider reported no usage, the whole reservation is
    /// charged.
    pub async fn settle(self, usage: &Usage, cost: Option<Usd>) -> Result<(), StoreError> {
        if *usage == Usage::default() {
            return self.charge_in_full().await;
        }
        let priced = || self.estimate.price.map(|price: Price| price.cost(usage));
        let usd = cost.or_else(priced).unwrap_or_default();
        // A reported count far below what was sent is not believed: at least half of what was sent
        // is charged.
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

    /// Charges nothing: the call gave no answer.
    pub async fn release(self) -> Result<(), StoreError> {
        self.close(SpendAmount::default()).await
    }

    /// Charges the whole reservation: the call broke off and its cost is not known.
    pub async fn charge_in_full(self) -> Result<(), StoreError> {
        let taken = self.grant.reserved;
        if let Some(unsettled) = &self.budget.0.unsettled {
            unsettled.add(taken).await?;
        }
        self.close(taken).await
    }

    /// Reserves for a second attempt of a call that broke off. The first attempt is charged in
    /// full.
    pub async fn reserve_retry(&mut self) -> Result<(), BudgetError> {
        // The request is already written, so its answer cannot be shortened any more.
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
            daily_reservation,
            ..
        } = self;
        budget.settle_accounts(grant.reserved, taken);
        match (&budget.0.day, daily_reservation) {
            (Some(day), Some(daily_reservation)) => day.settle(daily_reservation, taken).await,
            (Some(_) | None, _) => Ok(()),
        }
    }
}

/// Refuses a limit in dollars if the cost of calls could not be computed.
pub(crate) fn check_prices(parts: &AgentParts) -> Result<(), AgentError> {
    let Some(setting) = parts.workspace.config().budget.first_money_limit() else {
        return Ok(());
    };
    match Pricing::new(parts).unpriced_model() {
        Some(model) => Err(AgentError::NoPrice {
            setting,
            model: model.to_owned(),
        }),
        None => Ok(()),
    }
}

impl Budget {
    /// Returns the budget of the open run of `session`, or of work between two runs.
    pub(crate) async fn for_session(session: &Session) -> Result<Self, AgentError> {
        let parts = &session.agent().parts;
        let settings = parts.workspace.config().budget;
        if !settings.has_limit() {
            return Ok(Self::unlimited());
        }
        let owner = session.owner();
        let unsettled =
            UnsettledCalls::new(parts.place.state(owner), session.id(), session.state().seq);
        let is_limited = |scope| settings.limit(scope).is_limited();
        let broken = match is_limited(BudgetScope::Run) || is_limited(BudgetScope::Session) {
            true => unsettled.all().await?,
            false => Vec::new(),
        };
        let spending = SessionSpending {
            state: session.state(),
            price: Pricing::new(parts).highest(),
            broken,
            tasks: session.subagents().tasks().await?,
        };
        let of_run = spending.run_account(settings.limit(BudgetScope::Run));
        let of_session = spending.session_account(settings.limit(BudgetScope::Session));
        let accounts: Vec<BudgetAccount> = of_run.into_iter().chain(of_session).collect();
        let unsettled = (!accounts.is_empty()).then_some(unsettled);
        Ok(Self(Arc::new(SharedBudget {
            accounts: Mutex::new(accounts),
            day: DailyLimit::of_owner(parts, owner),
            unsettled,
        })))
    }
}

impl Session {
    /// Returns the budget of the open run, or of work between two runs.
    pub async fn budget(&self) -> Result<Budget, AgentError> {
        Budget::for_session(self).await
    }
}

/// Raises today's limit of `owner` by `raise`, for all sessions.
pub(crate) async fn raise_today(
    parts: &AgentParts,
    owner: &Owner,
    raise: SpendAmount,
) -> Result<(), AgentError> {
    match DailyLimit::of_owner(parts, owner).filter(|_| !raise.is_zero()) {
        Some(day) => Ok(day.raise(raise).await?),
        None => Ok(()),
    }
}
