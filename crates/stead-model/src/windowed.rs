//! A model whose window the settings say.

use crate::{Delta, Model, ModelError, Request};
use futures_util::stream::BoxStream;
use std::sync::Arc;
use stead_core::Price;

/// A model whose window the settings say.
#[derive(Debug)]
pub(crate) struct Windowed {
    inner: Arc<dyn Model>,
    window: u64,
}

impl Windowed {
    pub(crate) fn new(inner: Arc<dyn Model>, window: u64) -> Self {
        Self { inner, window }
    }
}

impl Model for Windowed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn price_of(&self, answered_by: &str) -> Option<Price> {
        self.inner.price_of(answered_by)
    }

    fn window(&self) -> Option<u64> {
        Some(self.window)
    }

    fn longest_answer(&self) -> Option<u64> {
        self.inner.longest_answer()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        self.inner.stream(request)
    }
}
