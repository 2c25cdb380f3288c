//! The contract of embeddings, for ranking by meaning.
//!
//! Effects: none.

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::time::Duration;

/// Turns texts into vectors: the closer two vectors, the closer the meanings.
pub trait Embed: Debug + Send + Sync {
    /// Returns the model's name. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// Returns one vector per text, all of one length, in the order of the texts.
    fn embed<'a>(&'a self, texts: &'a [String])
    -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// The reason why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(pub String);

/// The options of a hybrid search.
#[derive(Debug, Clone, Copy)]
pub struct HybridOptions<'a> {
    /// The source of embeddings.
    pub embed: &'a dyn Embed,
    /// The time after which the search continues without embeddings.
    pub deadline: Duration,
}
