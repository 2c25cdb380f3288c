//! Budgets: how much a model call may spend. Pure decisions; the driver keeps the accounts.
//!
//! Effects: none.

use crate::{Price, Usd};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The shortest answer that is worth requesting, in tokens.
pub const MIN_ANSWER_TOKENS: u64 = 256;

/// The scope of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    /// One run, including the runs that resume it.
    Run,
    /// One session.
    Session,
    /// One day of one owner, over all sessions and processes.
    Day,
}

impl BudgetScope {
    /// Returns the name in settings: `run` of `budget.run_usd`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Session => "session",
            Self::Day => "day",
        }
    }
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BudgetUnit {
    /// Money.
    Usd,
    /// Tokens, sent and received.
    Tokens,
}

/// The maximum that may be spent; `None` for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendLimit {
    /// Money.
    pub usd: Option<Usd>,
    /// Tokens.
    pub tokens: Option<u64>,
}

impl SpendLimit {
    /// Returns whether anything is limited.
    pub fn is_limited(&self) -> bool {
        *self != Self::default()
    }
}

/// A limit with its use so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetAccount {
    /// The scope.
    pub scope: BudgetScope,
    /// The limit.
    pub limit: SpendLimit,
    /// The amount that a person added.
    pub raised: SpendAmount,
    /// The amount spent, and reserved for calls in progress.
    pub used: SpendAmount,
}

/// The maximum that one call may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallEstimate {
    /// The tokens of the request.
    pub input_tokens: u64,
    /// The tokens of the longest answer, without thinking.
    pub answer_tokens: u64,
    /// The tokens for thinking.
    pub thinking_tokens: u64,
    /// The price, if known.
    pub price: Option<Price>,
}

/// A call that fits the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallReservation {
    /// The maximum length of the answer in tokens, without thinking.
    pub answer_tokens: u64,
    /// The maximum that the call will take.
    pub reserved: SpendAmount,
    /// The limit that shortened the answer, if one did.
    pub limited_by: Option<(BudgetScope, BudgetUnit)>,
}

/// A limit that leaves too little for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct BudgetExhausted {
    /// The scope of the limit.
    pub scope: BudgetScope,
    /// The unit of the limit.
    pub unit: BudgetUnit,
    /// The limit, including what a person added.
    pub limit: SpendAmount,
    /// The amount used.
    pub used: SpendAmount,
    /// The minimum that the call needs.
    pub needed: SpendAmount,
}

impl fmt::Display for BudgetExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope: span,
            unit,
            limit,
            used: gone,
            needed,
        } = self;
        let key = budget_setting_name(*span, *unit);
        let span = span.as_str();
        match unit {
            BudgetUnit::Usd => write!(
                f,
                "the budget of this {span} is used up: {} of {} is gone ({key}), and the next call takes {} or more",
                gone.usd, limit.usd, needed.usd
            ),
            BudgetUnit::Tokens => write!(
                f,
                "the budget of this {span} is used up: {} of {} tokens are gone ({key}), and the next call takes {} \
                 or more",
                gone.tokens, limit.tokens, needed.tokens
            ),
        }
    }
}

/// Returns the name of the setting for a limit.
pub fn budget_setting_name(span: BudgetScope, unit: BudgetUnit) -> String {
    let unit = match unit {
        BudgetUnit::Usd => "usd",
        BudgetUnit::Tokens => "tokens",
    };
    format!("budget.{}_{unit}", span.as_str())
}

impl CallEstimate {
    /// A call without cost.
    pub const FREE: Self = Self {
        input_tokens: 0,
        answer_tokens: 0,
        thinking_tokens: 0,
        price: None,
    };

    /// Reserves the maximum of the call in every account, with a shorter answer if only that fits.
    pub fn reserve(&self, accounts: &[BudgetAccount]) -> Result<CallReservation, BudgetExhausted> {
        let least = self.thinking_tokens + MIN_ANSWER_TOKENS.min(self.answer_tokens);
        let mut output = self.thinking_tokens + self.answer_tokens;
        let mut shortened_by = None;
        for account in accounts {
            for (unit, room) in self.output_limits(account) {
                let Some(room) = room.filter(|room| *room >= least) else {
                    return Err(self.exhausted(account, unit, least));
                };
                if room < output {
                    (output, shortened_by) = (room, Some((account.scope, unit)));
                }
            }
        }
        let answer_tokens = output - self.thinking_tokens;
        Ok(CallReservation {
            answer_tokens,
            reserved: self.with_output(output),
            limited_by: shortened_by,
        })
    }

    /// Returns the output tokens that each limit of `account` allows, or `None` if not even the
    /// request fits.
    fn output_limits(
        &self,
        account: &BudgetAccount,
    ) -> impl Iterator<Item = (BudgetUnit, Option<u64>)> {
        let BudgetAccount {
            limit: cap,
            raised,
            used: gone,
            ..
        } = *account;
        let input = self.with_output(0);
        let tokens = cap.tokens.map(|cap| {
            let left = cap
                .saturating_add(raised.tokens)
                .saturating_sub(gone.tokens);
            (BudgetUnit::Tokens, left.checked_sub(input.tokens))
        });
        let per_token = self.price.map_or(0.0, |price| price.output);
        let usd = cap.usd.map(|cap| {
            let left = cap
                .nanos()
                .saturating_add(raised.usd.nanos())
                .saturating_sub(gone.usd.nanos());
            let room = left
                .checked_sub(input.usd.nanos())
                .map(|left| match per_token > 0.0 {
                    true => (left as f64 / (per_token * NANOS_PER_TOKEN)) as u64,
                    false => u64::MAX,
                });
            (BudgetUnit::Usd, room)
        });
        usd.into_iter().chain(tokens)
    }

    /// Returns the maximum that the call takes with this many output tokens.
    fn with_output(&self, output_tokens: u64) -> SpendAmount {
        let tokens = self.input_tokens.saturating_add(output_tokens);
        let Some(price) = self.price else {
            return SpendAmount {
                usd: Usd::default(),
                tokens,
            };
        };
        // It is not known in advance how much of the request is or will be cached.
        let input = price
            .input
            .max(price.cache_write.unwrap_or(0.0))
            .max(price.cache_read.unwrap_or(0.0));
        let dollars_per_million =
            self.input_tokens as f64 * input + output_tokens as f64 * price.output;
        SpendAmount {
            usd: Usd::from_nanos((dollars_per_million * NANOS_PER_TOKEN).round() as u64),
            tokens,
        }
    }

    fn exhausted(
        &self,
        account: &BudgetAccount,
        unit: BudgetUnit,
        least_output: u64,
    ) -> BudgetExhausted {
        let BudgetAccount {
            scope: span,
            limit: cap,
            raised,
            used: gone,
        } = *account;
        let mut limit = SpendAmount {
            usd: cap.usd.unwrap_or_default(),
            tokens: cap.tokens.unwrap_or_default(),
        };
        limit += raised;
        BudgetExhausted {
            scope: span,
            unit,
            limit,
            used: gone,
            needed: self.with_output(least_output),
        }
    }
}

/// Billionths of a dollar for one token at a dollar per million.
const NANOS_PER_TOKEN: f64 = 1e3;

/// An amount of money and tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendAmount {
    /// Money.
    #[serde(default)]
    pub usd: Usd,
    /// Tokens.
    #[serde(default)]
    pub tokens: u64,
}

impl SpendAmount {
    /// Returns whether both are zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the difference, or zero where `other` is greater.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self {
            usd: self.usd.saturating_sub(other.usd),
            tokens: self.tokens.saturating_sub(other.tokens),
        }
    }
}

impl std::ops::Add for SpendAmount {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl std::ops::AddAssign for SpendAmount {
    fn add_assign(&mut self, other: Self) {
        self.usd += other.usd;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 2.0,
        output: 10.0,
        cache_read: Some(0.2),
        cache_write: Some(4.0),
    };

    fn account(usd: Option<f64>, tokens: Option<u64>, gone: SpendAmount) -> BudgetAccount {
        let cap = SpendLimit {
            usd: usd.and_then(Usd::from_dollars),
            tokens,
        };
        BudgetAccount {
            scope: BudgetScope::Run,
            limit: cap,
            raised: SpendAmount::default(),
            used: gone,
        }
    }

    fn spent(dollars: f64, tokens: u64) -> SpendAmount {
        SpendAmount {
            usd: Usd::from_dollars(dollars).unwrap(),
            tokens,
        }
    }

    #[test]
    fn a_call_is_granted_whole_or_shortened_or_refused_by_the_tightest_limit() {
        let estimate = CallEstimate {
            input_tokens: 10_000,
            answer_tokens: 4_000,
            thinking_tokens: 0,
            price: Some(PRICE),
        };
        // 10,000 tokens at the price of cache writes are 0.04, 4,000 tokens of answer another 0.04.
        let whole = CallReservation {
            answer_tokens: 4_000,
            reserved: spent(0.08, 14_000),
            limited_by: None,
        };
        let short = |answer_tokens, by| CallReservation {
            answer_tokens,
            reserved: spent(0.04 + answer_tokens as f64 * 1e-5, 10_000 + answer_tokens),
            limited_by: Some((BudgetScope::Run, by)),
        };
        let none = SpendAmount::default();
        let table = [
            (vec![], Ok(whole)),
            (vec![account(None, None, none)], Ok(whole)),
            (vec![account(Some(0.08), Some(14_000), none)], Ok(whole)),
            (
                vec![account(Some(0.07), None, none)],
                Ok(short(3_000, BudgetUnit::Usd)),
            ),
            (
                vec![account(None, Some(11_000), none)],
                Ok(short(1_000, BudgetUnit::Tokens)),
            ),
            (
                vec![account(Some(0.07), Some(10_256), none)],
                Ok(short(256, BudgetUnit::Tokens)),
            ),
            (
                vec![account(None, Some(10_255), none)],
                Err(BudgetUnit::Tokens),
            ),
            (
                vec![account(Some(0.0425), None, none)],
                Err(BudgetUnit::Usd),
            ),
            (vec![account(Some(0.01), None, none)], Err(BudgetUnit::Usd)),
            (
                vec![account(Some(1.0), None, spent(0.93, 0))],
                Ok(short(3_000, BudgetUnit::Usd)),
            ),
            (
                vec![account(Some(1.0), None, spent(2.0, 0))],
                Err(BudgetUnit::Usd),
            ),
        ];
        for (accounts, want) in table {
            let got = estimate.reserve(&accounts);
            assert_eq!(
                got.map_err(|exhausted| exhausted.unit),
                want,
                "{accounts:?}"
            );
        }
        let raised = BudgetAccount {
            raised: spent(0.07, 0),
            ..account(Some(1.0), None, spent(1.0, 0))
        };
        assert_eq!(
            estimate.reserve(&[raised]),
            Ok(short(3_000, BudgetUnit::Usd)),
            "what a person adds counts"
        );
    }

    #[test]
    fn thinking_is_part_of_the_answer_and_is_never_cut_off() {
        let estimate = CallEstimate {
            input_tokens: 1_000,
            answer_tokens: 500,
            thinking_tokens: 2_000,
            price: Some(PRICE),
        };
        let fit = |tokens| estimate.reserve(&[account(None, Some(tokens), SpendAmount::default())]);
        assert_eq!(fit(3_500).unwrap().answer_tokens, 500);
        assert_eq!(fit(3_300).unwrap().answer_tokens, 300);
        assert!(fit(3_255).is_err());
    }

    #[test]
    fn a_refusal_names_the_limit_and_the_amounts() {
        let estimate = CallEstimate {
            input_tokens: 1_000,
            answer_tokens: 500,
            thinking_tokens: 0,
            price: Some(PRICE),
        };
        let by_tokens = account(None, Some(2_000), spent(0.0, 1_900));
        let said = estimate.reserve(&[by_tokens]).unwrap_err().to_string();
        assert_eq!(
            said,
            "the budget of this run is used up: 1900 of 2000 tokens are gone (budget.run_tokens), and the next call \
             takes 1256 or more"
        );
        let by_money = BudgetAccount {
            scope: BudgetScope::Day,
            ..account(Some(0.5), None, spent(0.499, 0))
        };
        let said = estimate.reserve(&[by_money]).unwrap_err().to_string();
        assert_eq!(
            said,
            "the budget of this day is used up: $0.4990 of $0.5000 is gone (budget.day_usd), and the next call takes \
             $0.0066 or more"
        );
    }
}
