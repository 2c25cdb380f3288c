//! Token usage, prices and stop reasons.
//!
//! Effects: none.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::AddAssign;

/// An amount of money, exact to a billionth of a dollar; serialised as a number of dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd {
    nanos: u64,
}

const NANOS_PER_USD: f64 = 1e9;

impl Usd {
    /// Creates an amount from billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Returns the amount in billionths of a dollar.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// Creates an amount from dollars, or returns `None` if it is not a valid amount.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && dollars >= 0.0).then(|| Self {
            nanos: (dollars * NANOS_PER_USD).round() as u64,
        })
    }

    /// Returns the difference, or zero if `other` is greater.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
        }
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.nanos = self.nanos.saturating_add(other.nanos);
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.nanos as f64 / NANOS_PER_USD)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.nanos as f64 / NANOS_PER_USD)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let refused =
            || serde::de::Error::custom("an amount of dollars must be a number, 0 or more");
        Self::from_dollars(dollars).ok_or_else(refused)
    }
}

/// The token usage of a call, as reported by the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All prompt tokens, including cached ones.
    pub input_tokens: u64,
    /// Prompt tokens read from the provider's cache.
    #[serde(default)]
    pub cache_read_tokens: u64,
    /// Prompt tokens written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// The tokens of the answer, including reasoning.
    pub output_tokens: u64,
    /// The part of `output_tokens` spent on reasoning.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // A provider may report any number.
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_read_tokens = self
            .cache_read_tokens
            .saturating_add(other.cache_read_tokens);
        self.cache_write_tokens = self
            .cache_write_tokens
            .saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

impl Usage {
    /// Returns the tokens of the request and the answer.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// A price in dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of uncached prompt tokens.
    pub input: f64,
    /// The price of answer tokens.
    pub output: f64,
    /// The price of prompt tokens read from cache; `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// The price of prompt tokens written to cache; `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// Returns the maximum of both prices in each component.
    pub fn component_max(self, other: Self) -> Self {
        let dearer = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (one, other) => one.or(other),
        };
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: dearer(self.cache_read, other.cache_read),
            cache_write: dearer(self.cache_write, other.cache_write),
        }
    }

    /// Returns the cost of `usage` at this price.
    pub fn cost(&self, usage: &Usage) -> Usd {
        let cached = usage
            .cache_read_tokens
            .saturating_add(usage.cache_write_tokens);
        let fresh = usage.input_tokens.saturating_sub(cached);
        let micro_usd = fresh as f64 * self.input
            + usage.cache_read_tokens as f64 * self.cache_read.unwrap_or(self.input)
            + usage.cache_write_tokens as f64 * self.cache_write.unwrap_or(self.input)
            + usage.output_tokens as f64 * self.output;
        Usd {
            nanos: (micro_usd * 1e3).round() as u64,
        }
    }
}

/// The reason why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It finished its answer.
    EndTurn,
    /// It calls tools.
    ToolUse,
    /// Its output limit was reached: the answer is cut.
    MaxTokens,
    /// A stop sequence was reached.
    StopSequence,
    /// It declined to answer.
    Refusal,
    /// A filter of the provider stopped it.
    ContentFilter,
    /// The run was stopped, or the connection was lost: the answer is cut off.
    CutOff,
    /// An unknown reason, as the provider wrote it.
    Other(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_charged_at_their_own_price() {
        let price = Price {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: Some(3.75),
        };
        let usage = Usage {
            input_tokens: 1_000_000,
            cache_read_tokens: 800_000,
            cache_write_tokens: 100_000,
            output_tokens: 10_000,
            reasoning_tokens: 0,
        };
        // 100k uncached = 0.30, 800k read = 0.24, 100k written = 0.375, 10k out = 0.15
        assert_eq!(price.cost(&usage), Usd::from_nanos(1_065_000_000));
    }

    #[test]
    fn money_survives_its_own_text() {
        for nanos in [0, 1, 75, 999_999_999, 12_345_678_901] {
            let text = serde_json::to_string(&Usd::from_nanos(nanos)).unwrap();
            assert_eq!(
                serde_json::from_str::<Usd>(&text).unwrap(),
                Usd::from_nanos(nanos)
            );
        }
        assert!(serde_json::from_str::<Usd>("-1").is_err());
    }
}
