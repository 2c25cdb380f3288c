//! Money and tokens: reserved before a call, settled after it.
//!
//! A [`Budget`] belongs to one run and is shared by all that ask a model for it: the run itself,
//! its summaries, and those it hands work to. What a run and its session may spend is counted here;
//! what a day may, in a document that all processes of the owner share.

mod day;
pub(crate) mod ledger;
mod lost;

use crate::{Agent, AgentError, Session};
use day::{Day, Held};
use lost::Lost;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use stead_core::{
    Account, Allowance, Estimate, Exhausted, Grant, Owner, Price, RunId, SessionState, Span, Unit,
    Usage, Usd, setting,
};
use stead_store::StoreError;

/// Why a call may not be made.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Too little is left.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// What the day has left cannot be told.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What may be spent, and what is. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The run and its session.
    accounts: Mutex<Vec<Account>>,
    day: Option<Day>,
    lost: Option<Lost>,
}

impl Budget {
    /// One without limits.
    pub fn unlimited() -> Self {
        Self(Arc::default())
    }

    /// Reserves the most that a call can come to. Where less is left, a shorter answer may fit:
    /// see [`Reservation::answer_tokens`].
    pub async fn reserve(&self, estimate: Estimate) -> Result<Reservation, BudgetError> {
        let mut grant = self.hold(&estimate)?;
        let mut held = None;
        if let Some(day) = &self.0.day {
            let within = Estimate {
                answer_tokens: grant.answer_tokens,
                ..estimate
            };
            match day.reserve(within).await {
                Ok((of_day, hold)) => {
                    self.give(grant.reserved, of_day.reserved);
                    let shortened_by = of_day.shortened_by.or(grant.shortened_by);
                    (grant, held) = (
                        Grant {
                            shortened_by,
                            ..of_day
                        },
                        Some(hold),
                    );
                }
                Err(error) => {
                    self.give(grant.reserved, Allowance::default());
                    return Err(error);
                }
            }
        }
        Ok(Reservation {
            budget: self.clone(),
            estimate,
            grant,
            held,
        })
    }

    /// Whether anything is limited.
    pub fn is_limited(&self) -> bool {
        self.0.day.is_some() || !self.accounts().is_empty()
    }

    fn hold(&self, estimate: &Estimate) -> Result<Grant, Exhausted> {
        let mut accounts = self.accounts();
        let grant = estimate.fit(&accounts)?;
        accounts
            .iter_mut()
            .for_each(|account| account.gone += grant.reserved);
        Ok(grant)
    }

    /// Puts what a call really took in the place of what was reserved for it.
    fn give(&self, reserved: Allowance, taken: Allowance) {
        for account in self.accounts().iter_mut() {
            account.gone = account.gone.saturating_sub(reserved);
            account.gone += taken;
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Vec<Account>> {
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
    estimate: Estimate,
    grant: Grant,
    held: Option<Held>,
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
            .shortened_by
            .map(|(span, unit): (Span, Unit)| setting(span, unit))
    }

    /// The call is done: what it really used counts. A provider that tells nothing did not work for
    /// nothing.
    pub async fn settle(self, usage: &Usage, cost: Option<Usd>) -> Result<(), StoreError> {
        if *usage == Usage::default() {
            return self.keep().await;
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
            return self.close(Allowance { usd, tokens: least }).await;
        }
        self.close(Allowance {
            usd,
            tokens: usage.total_tokens(),
        })
        .await
    }

    /// Nothing came of the call, so it costs nothing.
    pub async fn release(self) -> Result<(), StoreError> {
        self.close(Allowance::default()).await
    }

    /// The call broke off, and nobody says what it cost: all that was reserved counts as spent.
    pub async fn keep(self) -> Result<(), StoreError> {
        let taken = self.grant.reserved;
        if let Some(lost) = &self.budget.0.lost {
            lost.add(taken).await?;
        }
        self.close(taken).await
    }

    /// The same call once more, after it broke off: what it took so far counts as spent.
    pub async fn again(&mut self) -> Result<(), BudgetError> {
        // The request is written, so its answer cannot be made shorter now.
        let output = self.grant.answer_tokens + self.estimate.thinking_tokens;
        let same = Estimate {
            answer_tokens: 0,
            thinking_tokens: output,
            ..self.estimate
        };
        let more = self.budget.reserve(same).await?;
        let estimate = self.estimate;
        let grant = Grant {
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
        Ok(broken.keep().await?)
    }

    async fn close(self, taken: Allowance) -> Result<(), StoreError> {
        let Self {
            budget,
            grant,
            held,
            ..
        } = self;
        budget.give(grant.reserved, taken);
        match (&budget.0.day, held) {
            (Some(day), Some(held)) => day.settle(held, taken).await,
            (Some(_) | None, _) => Ok(()),
        }
    }
}

impl Agent {
    /// What work for `owner` outside of any run may spend: only the day limits it.
    pub fn budget(&self, owner: &Owner) -> Budget {
        Budget(Arc::new(Shared {
            day: self.day(owner),
            ..Shared::default()
        }))
    }

    /// The dearest price of all who may answer; none if that of anyone is not known.
    pub fn dearest_price(&self) -> Option<Price> {
        let prices = self
            .parts
            .model
            .names()
            .into_iter()
            .map(|name| self.price_of(name));
        prices.reduce(|a, b| Some(a?.or_dearer(b?))).flatten()
    }

    /// Refuses limits in dollars where what is spent could not be told.
    pub(crate) fn check_budget(&self) -> Result<(), AgentError> {
        let Some(setting) = self.parts.workspace.config().budget.in_money() else {
            return Ok(());
        };
        let unpriced = self
            .parts
            .model
            .names()
            .into_iter()
            .find(|name| self.price_of(name).is_none());
        match unpriced {
            Some(model) => Err(AgentError::NoPrice {
                setting,
                model: model.to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn day(&self, owner: &Owner) -> Option<Day> {
        let config = self.parts.workspace.config();
        let cap = config.budget.cap(Span::Day);
        let day = || Day::new(self.parts.place.state(owner), cap, config.timezone.clone());
        cap.is_limit().then(day)
    }
}

impl Session {
    /// What the open run, or work between two runs, may spend.
    pub async fn budget(&self) -> Result<Budget, AgentError> {
        let settings = self.agent.parts.workspace.config().budget;
        if !settings.is_limit() {
            return Ok(Budget::unlimited());
        }
        let run = settings.cap(Span::Run);
        let session = settings.cap(Span::Session);
        let lost = Lost::new(
            self.agent.parts.place.state(&self.owner),
            &self.id,
            self.state.seq,
        );
        let broken = if run.is_limit() || session.is_limit() {
            lost.all().await?
        } else {
            Vec::new()
        };
        let since = |seq: u64| {
            broken
                .iter()
                .filter(|one| one.seq >= seq)
                .fold(Allowance::default(), |mut sum, one| {
                    sum += one.amount;
                    sum
                })
        };
        let price = self.agent.dearest_price();
        // Those who worked for it spent it, too; their own journals say so, this one does not.
        let tasks = self.crew.tasks().await.map_err(AgentError::Crew)?;
        let handed_over = |counts: &dyn Fn(&RunId) -> bool| {
            let counted = tasks.iter().filter(|task| counts(&task.run));
            counted.fold(Allowance::default(), |sum, task| sum + task.spent)
        };
        let mut accounts = Vec::new();
        if let Some(open) = self.state.run.as_ref().filter(|_| run.is_limit()) {
            let mut gone = open.spent();
            if open.steps > 0 && open.cost.is_none() {
                gone.usd += priced(price, &open.usage);
            }
            gone += since(begun(&self.state));
            let before = self
                .state
                .last_run
                .as_ref()
                .filter(|_| !open.carried.is_zero())
                .map(|run| &run.id);
            gone += handed_over(&|run| *run == open.id || before == Some(run));
            accounts.push(Account {
                span: Span::Run,
                cap: run,
                raised: open.raised,
                gone,
            });
        }
        if session.is_limit() {
            let Usage {
                input_tokens,
                output_tokens,
                ..
            } = self.state.usage;
            let usd = self
                .state
                .cost
                .unwrap_or_else(|| priced(price, &self.state.usage));
            let mut gone = Allowance {
                usd,
                tokens: input_tokens + output_tokens,
            };
            gone += since(0);
            gone += handed_over(&|_| true);
            accounts.push(Account {
                span: Span::Session,
                cap: session,
                raised: self.state.raised,
                gone,
            });
        }
        let lost = (!accounts.is_empty()).then_some(lost);
        let day = self.agent.day(&self.owner);
        Ok(Budget(Arc::new(Shared {
            accounts: Mutex::new(accounts),
            day,
            lost,
        })))
    }

    /// Adds what a person allows beyond the limit of the day to that limit, for everyone.
    pub(crate) async fn raise_day(&self, raise: Allowance) -> Result<(), AgentError> {
        match self.agent.day(&self.owner).filter(|_| !raise.is_zero()) {
            Some(day) => Ok(day.raise(raise).await?),
            None => Ok(()),
        }
    }
}

/// What was used, at the price of now: for the time when nobody knew the price.
fn priced(price: Option<Price>, usage: &Usage) -> Usd {
    price.map_or(Usd::default(), |price| price.cost(usage))
}

/// The entry with which the open run, or the first of those it takes up again, began.
fn begun(state: &SessionState) -> u64 {
    state
        .turns
        .iter()
        .rev()
        .find(|turn| turn.opens.is_some())
        .map_or(0, |turn| turn.seq)
}
