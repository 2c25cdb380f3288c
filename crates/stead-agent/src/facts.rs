//! How much fits into a request, from whoever knows it.

use crate::{Agent, Session};
use stead_core::Price;
use stead_model::{Model, Reported};

/// Below so many tokens it does not matter how many fit, and no endpoint is asked.
const ASKED_ABOVE_TOKENS: u64 = 6_000;
/// What is believed to fit where nobody knows.
pub const UNKNOWN_WINDOW_TOKENS: u64 = 128_000;

impl Agent {
    /// What the model's endpoint says of it. It is asked once.
    pub async fn reported(&self) -> Reported {
        *self
            .reported
            .get_or_init(|| self.parts.model.describe())
            .await
    }

    /// What the tokens of an answer by `name` cost, if known: as set, or else as the model knows
    /// it.
    pub fn price_of(&self, name: &str) -> Option<Price> {
        self.price_by(&*self.parts.model, name)
    }

    /// The same where `model` was asked.
    pub(crate) fn price_by(&self, model: &dyn Model, name: &str) -> Option<Price> {
        let set = self.parts.workspace.config().prices.get(name).copied();
        set.or_else(|| model.price_of(name))
    }

    /// The longest answer in tokens, if known by now.
    pub(crate) fn longest_answer(&self) -> Option<u64> {
        let reported = || {
            self.reported
                .get()
                .and_then(|reported| reported.longest_answer)
        };
        self.parts.model.longest_answer().or_else(reported)
    }
}

impl Session {
    /// Tokens that fit into a request, if known by now: from a provider's refusal, from settings or
    /// the table, or from what the endpoint said of itself.
    pub fn window(&self) -> Option<u64> {
        let reported = || {
            self.agent
                .reported
                .get()
                .and_then(|reported| reported.window)
        };
        self.state
            .window
            .or_else(|| self.agent.model().window())
            .or_else(reported)
    }

    /// The same, for whoever has to go by it: the endpoint is asked if nobody else knows and the
    /// context has grown, and where it does not know either, a common size is believed.
    pub async fn known_window(&self) -> u64 {
        if self.window().is_none() && self.state.used_tokens(0) > ASKED_ABOVE_TOKENS {
            self.agent.reported().await;
        }
        self.window().unwrap_or(UNKNOWN_WINDOW_TOKENS)
    }
}
