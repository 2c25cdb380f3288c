//! A model about which the settings say more, or other, than is known.

use crate::{Abilities, Delta, Model, ModelError, ReportedLimits, Request};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use stead_core::Price;

/// A model about which the settings say something.
#[derive(Debug)]
pub(crate) struct WithOverrides {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) context_window: Option<u64>,
    pub(crate) abilities: Option<Abilities>,
}

impl Model for WithOverrides {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn names(&self) -> Vec<&str> {
        self.inner.names()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn price_for(&self, answered_by: &str) -> Option<Price> {
        self.inner.price_for(answered_by)
    }

    fn context_window(&self) -> Option<u64> {
        self.context_window.or_else(|| self.inner.context_window())
    }

    fn max_output_tokens(&self) -> Option<u64> {
        self.inner.max_output_tokens()
    }

    fn abilities(&self) -> Option<Abilities> {
        self.abilities.or_else(|| self.inner.abilities())
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        self.inner.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        self.inner.stream(request)
    }
}
