//! Facts about a model that are known without asking its endpoint.
//!
//! Effects: none.

use crate::{Abilities, lookup};
use std::borrow::Cow;
use stead_core::Price;

/// Facts about a model that are known without asking its endpoint: its name, its limits, its price,
/// and the models that may answer in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The name as `provider:model`.
    pub name: Cow<'static, str>,
    /// The price of its tokens, if known.
    pub price: Option<Price>,
    /// The number of tokens that fit into one request including its answer, if known.
    pub context_window: Option<u64>,
    /// The maximum length of an answer in tokens, if known.
    pub max_output_tokens: Option<u64>,
    /// The kinds of input it takes and the features it has, if known.
    pub abilities: Option<Abilities>,
    /// The models that may answer in its place, in the order in which they are tried.
    pub fallbacks: Vec<FallbackFacts>,
}

/// A model that may answer in place of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct FallbackFacts {
    /// The name as `provider:model`.
    pub name: Cow<'static, str>,
    /// The price of its tokens, if known.
    pub price: Option<Price>,
}

impl ModelFacts {
    /// Returns the facts of a model of which only the name is known.
    pub const fn unknown(name: Cow<'static, str>) -> Self {
        Self {
            name,
            price: None,
            context_window: None,
            max_output_tokens: None,
            abilities: None,
            fallbacks: Vec::new(),
        }
    }

    /// Returns the facts about `provider:model` in the built-in table of models; of a model that is
    /// not in the table, [only the name](Self::unknown).
    pub fn from_catalogue(name: impl Into<Cow<'static, str>>) -> Self {
        let facts = Self::unknown(name.into());
        match lookup(&facts.name) {
            None => facts,
            Some(info) => Self {
                price: Some(info.price),
                context_window: Some(u64::from(info.context_tokens)),
                max_output_tokens: Some(u64::from(info.max_output_tokens)),
                abilities: Some(info.abilities),
                ..facts
            },
        }
    }

    /// Returns these facts with another price.
    pub fn with_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Returns the name of every model that may answer, the model itself first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.answering().map(|(name, _)| name)
    }

    /// Returns the price of an answer that came from `answered_by`, a [`Reply::model`].
    ///
    /// [`Reply::model`]: crate::Reply::model
    pub fn price_for(&self, answered_by: &str) -> Option<Price> {
        self.answering()
            .filter(|(name, _)| *name == answered_by)
            .find_map(|(_, price)| price)
    }

    fn answering(&self) -> impl Iterator<Item = (&str, Option<Price>)> {
        let fallbacks = self
            .fallbacks
            .iter()
            .map(|fallback| (&*fallback.name, fallback.price));
        std::iter::once((&*self.name, self.price)).chain(fallbacks)
    }

    /// Adds a model that may answer in this one's place, with its own fallbacks.
    pub(crate) fn add_fallback(&mut self, facts: &Self) {
        self.fallbacks.push(FallbackFacts {
            name: facts.name.clone(),
            price: facts.price,
        });
        self.fallbacks.extend(facts.fallbacks.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: f64) -> Option<Price> {
        Some(Price {
            input,
            output: 0.0,
            cache_read: None,
            cache_write: None,
        })
    }

    #[test]
    fn an_answer_is_priced_by_the_model_that_gave_it() {
        let named = |name: &'static str| ModelFacts::unknown(name.into());
        let mut second = named("second").with_price(price(2.0));
        second.add_fallback(&named("third").with_price(price(3.0)));
        let mut facts = named("first");
        facts.add_fallback(&second);
        assert_eq!(
            facts.names().collect::<Vec<_>>(),
            ["first", "second", "third"]
        );
        for (name, want) in [
            ("first", None),
            ("second", price(2.0)),
            ("third", price(3.0)),
            ("other", None),
        ] {
            assert_eq!(facts.price_for(name), want, "{name}");
        }
    }
}
