//! The `budget:` settings of agent.yaml: types and validation. Pure; `stead-agent/src/budget/`
//! enforces the limits.
//!
//! Effects: none.

use crate::{DisabledFeatures, FeatureSwitch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stead_core::{BudgetScope, BudgetUnit, SpendAmount, SpendLimit, Usd, budget_setting_name};

/// The limits on spending, in dollars and in tokens. A limit that is left out does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSettings {
    /// Dollars for one run.
    #[schemars(with = "Option<f64>")]
    pub run_usd: Option<Usd>,
    /// Dollars for one session.
    #[schemars(with = "Option<f64>")]
    pub session_usd: Option<Usd>,
    /// Dollars for one day, over all sessions and processes of a user.
    #[schemars(with = "Option<f64>")]
    pub day_usd: Option<Usd>,
    /// Tokens for one run, sent and received.
    pub run_tokens: Option<u64>,
    /// Tokens for one session.
    pub session_tokens: Option<u64>,
    /// Tokens for one day, over all sessions and processes of a user.
    pub day_tokens: Option<u64>,
}

impl BudgetSettings {
    /// Returns the limits of a scope.
    pub fn limit(&self, scope: BudgetScope) -> SpendLimit {
        match scope {
            BudgetScope::Run => SpendLimit {
                usd: self.run_usd,
                tokens: self.run_tokens,
            },
            BudgetScope::Session => SpendLimit {
                usd: self.session_usd,
                tokens: self.session_tokens,
            },
            BudgetScope::Day => SpendLimit {
                usd: self.day_usd,
                tokens: self.day_tokens,
            },
        }
    }

    /// Whether there is any limit.
    pub fn has_limit(&self) -> bool {
        *self != Self::default()
    }

    /// Whether there is a limit for every part of `raise` that is not zero.
    pub fn accepts_raise(&self, raise: SpendAmount) -> bool {
        let limits = || SCOPES.into_iter().map(|scope| self.limit(scope));
        let money = raise.usd == Usd::default() || limits().any(|limit| limit.usd.is_some());
        let tokens = raise.tokens == 0 || limits().any(|limit| limit.tokens.is_some());
        money && tokens
    }

    /// Returns the first setting that limits money.
    pub fn first_money_limit(&self) -> Option<String> {
        let limited = |scope: &BudgetScope| self.limit(*scope).usd.is_some();
        SCOPES
            .into_iter()
            .find(limited)
            .map(|scope| budget_setting_name(scope, BudgetUnit::Usd))
    }

    /// Returns the key of the first invalid limit, and a message about it.
    pub(crate) fn problem(&self, off: &DisabledFeatures) -> Option<(String, String)> {
        let day = self.limit(BudgetScope::Day);
        if day.is_limited() && off.contains(FeatureSwitch::SessionPersistence) {
            let key = budget_setting_name(
                BudgetScope::Day,
                if day.usd.is_some() {
                    BudgetUnit::Usd
                } else {
                    BudgetUnit::Tokens
                },
            );
            let message = format!(
                "{key} cannot hold with `disable: [session_persistence]`: nothing outlives the process"
            );
            return Some((key, message));
        }
        let zero = SCOPES
            .into_iter()
            .find_map(|scope| match self.limit(scope) {
                SpendLimit { usd: Some(usd), .. } if usd == Usd::default() => {
                    Some((scope, BudgetUnit::Usd))
                }
                SpendLimit {
                    tokens: Some(0), ..
                } => Some((scope, BudgetUnit::Tokens)),
                SpendLimit { .. } => None,
            });
        let key = zero.map(|(scope, unit)| budget_setting_name(scope, unit))?;
        let message = format!("{key} must be more than 0; leave it out for no limit");
        Some((key, message))
    }
}

const SCOPES: [BudgetScope; 3] = [BudgetScope::Run, BudgetScope::Session, BudgetScope::Day];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<BudgetSettings, String> {
        crate::AgentConfig::parse(text, &|_| None)
            .map(|config| config.budget)
            .map_err(|all| all[0].to_string())
    }

    #[test]
    fn limits_are_dollars_and_tokens_and_what_is_left_out_is_not_limited() {
        let set = parse("budget: {run_usd: 0.5, day_usd: 20, session_tokens: 100000}").unwrap();
        assert_eq!(
            set.limit(BudgetScope::Run),
            SpendLimit {
                usd: Usd::from_dollars(0.5),
                tokens: None
            }
        );
        assert_eq!(
            set.limit(BudgetScope::Session),
            SpendLimit {
                usd: None,
                tokens: Some(100_000)
            }
        );
        assert_eq!(
            set.limit(BudgetScope::Day),
            SpendLimit {
                usd: Usd::from_dollars(20.0),
                tokens: None
            }
        );
        assert_eq!(set.first_money_limit().as_deref(), Some("budget.run_usd"));
        assert!(!parse("").unwrap().has_limit());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        let table = [
            (
                "budget:\n  run_usd: 0",
                "agent.yaml:2:3: budget.run_usd must be more than 0",
            ),
            (
                "budget:\n  day_tokens: 0",
                "agent.yaml:2:3: budget.day_tokens must be more than 0",
            ),
            ("budget:\n  day_usd: -1", "agent.yaml:2:3: "),
            ("budget:\n  run_tokens: 1.5", "agent.yaml:2:3: "),
            ("budget:\n  run_use: 1", "agent.yaml:2:3: "),
            (
                "disable: [session_persistence]\nbudget:\n  day_usd: 1",
                "agent.yaml:3:3: budget.day_usd cannot hold",
            ),
        ];
        for (text, start) in table {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with(start), "{text:?}: {message}");
        }
    }
}
