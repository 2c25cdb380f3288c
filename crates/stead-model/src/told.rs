//! A model about which the settings say more, or other, than is known.

use crate::{Abilities, Delta, Model, ModelError, Reported, Request};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;
use stead_core::Price;

/// A model about which the settings say something.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) window: Option<u64>,
    pub(crate) abilities: Option<Abilities>,
}

impl Model for Told {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn names(&self) -> Vec<&str> {
        self.inner.names()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn price_of(&self, answered_by: &str) -> Option<Price> {
        self.inner.price_of(answered_by)
    }

    fn window(&self) -> Option<u64> {
        self.window.or_else(|| self.inner.window())
    }

    fn longest_answer(&self) -> Option<u64> {
        self.inner.longest_answer()
    }

    fn abilities(&self) -> Option<Abilities> {
        self.abilities.or_else(|| self.inner.abilities())
    }

    fn describe(&self) -> BoxFuture<'_, Reported> {
        self.inner.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        self.inner.stream(request)
    }
}
