//! A model with facts from the settings in place of its own.
//!
//! Effects: the model.

use crate::{Abilities, Delta, Model, ModelError, ModelFacts, ReportedLimits, Request};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::sync::Arc;

/// A model with facts from the settings in place of its own.
#[derive(Debug)]
pub(crate) struct WithOverrides {
    inner: Arc<dyn Model>,
    facts: ModelFacts,
}

impl WithOverrides {
    /// Wraps `inner`. An override of `None` keeps the fact of the inner model.
    pub(crate) fn new(
        inner: Arc<dyn Model>,
        context_window: Option<u64>,
        abilities: Option<Abilities>,
    ) -> Self {
        let facts = inner.facts();
        let facts = ModelFacts {
            context_window: context_window.or(facts.context_window),
            abilities: abilities.or(facts.abilities),
            ..facts.clone()
        };
        Self { inner, facts }
    }
}

impl Model for WithOverrides {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        self.inner.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        self.inner.stream(request)
    }
}
