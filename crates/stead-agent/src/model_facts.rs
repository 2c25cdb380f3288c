//! How much fits into a request, from whoever knows it.

use crate::{Agent, Session};
use stead_core::Price;
use stead_model::{Model, ReportedLimits};

/// Below so many tokens it does not matter how many fit, and no endpoint is asked.
const ASK_ENDPOINT_ABOVE_TOKENS: u64 = 6_000;
/// What is believed to fit where nobody knows.
pub const UNKNOWN_WINDOW_TOKENS: u64 = 128_000;

impl Agent {
    /// What the model's endpoint says of it. It is asked once.
    pub async fn model_report(&self) -> ReportedLimits {
        *self
            .model_report
            .get_or_init(|| self.parts.model.describe())
            .await
    }

    /// What the tokens of an answer by `name` cost, if known: as set, or else as the model knows
    /// it.
    pub fn price_of(&self, name: &str) -> Option<Price> {
        self.price_from(&*self.parts.model, name)
    }

    /// The same where `model` was asked.
    pub(crate) fn price_from(&self, model: &dyn Model, name: &str) -> Option<Price> {
        let set = self.parts.workspace.config().prices.get(name).copied();
        set.or_else(|| model.facts().price_for(name))
    }

    /// The longest answer in tokens, if known by now.
    pub(crate) fn longest_answer(&self) -> Option<u64> {
        let reported = || {
            self.model_report
                .get()
                .and_then(|reported| reported.max_output_tokens)
        };
        self.parts.model.facts().max_output_tokens.or_else(reported)
    }
}

impl Session {
    /// Tokens that fit into a request, if known by now: from a provider's refusal, from settings or
    /// the table, or from what the endpoint said of itself.
    pub fn window(&self) -> Option<u64> {
        let reported = || {
            self.agent
                .model_report
                .get()
                .and_then(|reported| reported.context_window)
        };
        self.state
            .window
            .or_else(|| self.agent.model().facts().context_window)
            .or_else(reported)
    }

    /// The same, for whoever has to go by it: the endpoint is asked if nobody else knows and the
    /// context has grown, and where it does not know either, a common size is believed.
    pub async fn window_or_default(&self) -> u64 {
        if self.window().is_none() && self.state.used_tokens(0) > ASK_ENDPOINT_ABOVE_TOKENS {
            self.agent.model_report().await;
        }
        self.window().unwrap_or(UNKNOWN_WINDOW_TOKENS)
    }
}
