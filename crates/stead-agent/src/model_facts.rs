//! Prices and token limits of models: from settings, from the model, or from its endpoint.
//!
//! Effects: the model.

use crate::AgentParts;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{Price, Usage, Usd};
use stead_model::{Caching, Model, Reply, ReportedLimits};
use tokio::sync::OnceCell;

/// The endpoint is asked for its limits only when the context is larger than this.
pub(crate) const ASK_ENDPOINT_ABOVE_TOKENS: u64 = 6_000;
/// The context window that is assumed for a conversation if it is not known. A request that turns
/// out too long is compacted and sent again, so this can be a common size.
pub const UNKNOWN_WINDOW_TOKENS: u64 = 128_000;
/// The context window that is assumed for single questions (summaries, memory) if it is not known.
/// A question that turns out too long is lost, so this is a size that nearly every model has.
pub(crate) const UNKNOWN_SIDE_WINDOW_TOKENS: u64 = 32_000;

/// What models cost: prices from the settings, or else those that a model knows of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pricing<'a> {
    settings: &'a BTreeMap<String, Price>,
    model: &'a dyn Model,
}

impl<'a> Pricing<'a> {
    pub(crate) fn new(parts: &'a AgentParts) -> Self {
        Self {
            settings: &parts.workspace.config().prices,
            model: &*parts.model,
        }
    }

    /// The price of `name`, which `model` may know; `None` if it is unknown.
    pub(crate) fn price(&self, model: &dyn Model, name: &str) -> Option<Price> {
        let set = self.settings.get(name).copied();
        set.or_else(|| model.facts().price_for(name))
    }

    /// The highest price of all models that may answer for the agent; `None` if any of them is
    /// unknown.
    pub(crate) fn highest(&self) -> Option<Price> {
        let prices = self.model.facts().names();
        prices
            .map(|name| self.price(self.model, name))
            .reduce(|a, b| Some(a?.component_max(b?)))
            .flatten()
    }

    /// A model that may answer for the agent and whose price is unknown.
    pub(crate) fn unpriced_model(&self) -> Option<&'a str> {
        self.model
            .facts()
            .names()
            .find(|name| self.price(self.model, name).is_none())
    }

    /// The cost of an answer of `model`, if it is known.
    pub(crate) fn cost(&self, model: &dyn Model, reply: &Reply, caching: Caching) -> Option<Usd> {
        // A provider that reports no usage still charges for the call.
        if reply.usage == Usage::default() {
            return None;
        }
        let price = self.price(model, &reply.model)?;
        Some(caching.price(price).cost(&reply.usage))
    }
}

/// The token limits of the agent's model. Its endpoint is asked at most once.
#[derive(Debug)]
pub(crate) struct ModelLimits {
    model: Arc<dyn Model>,
    report: OnceCell<ReportedLimits>,
}

impl ModelLimits {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            report: OnceCell::new(),
        }
    }

    /// Asks the endpoint for its limits, unless it was asked before.
    pub(crate) async fn ask_endpoint(&self) {
        self.report.get_or_init(|| self.model.describe()).await;
    }

    /// The context window in tokens, if it is known by now.
    pub(crate) fn context_window(&self) -> Option<u64> {
        let reported = || self.report.get().and_then(|report| report.context_window);
        self.model.facts().context_window.or_else(reported)
    }

    /// The length of the longest answer in tokens, if it is known by now.
    pub(crate) fn longest_answer(&self) -> Option<u64> {
        let reported = || {
            self.report
                .get()
                .and_then(|report| report.max_output_tokens)
        };
        self.model.facts().max_output_tokens.or_else(reported)
    }
}
