//! Ranking by meaning, where someone can tell it.

use futures_util::future::BoxFuture;
use std::fmt::Debug;
use std::time::Duration;

/// Tells what texts mean, as vectors: the nearer two vectors, the nearer the meanings.
pub trait Embed: Debug + Send + Sync {
    /// The model's name. Vectors of different models are never compared.
    fn model(&self) -> &str;

    /// One vector per text, all of one length, in the order of the texts.
    fn embed<'a>(&'a self, texts: &'a [String])
    -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>>;
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(pub String);

/// How meaning is asked for.
#[derive(Debug, Clone, Copy)]
pub struct HybridOptions<'a> {
    /// Who tells it.
    pub embed: &'a dyn Embed,
    /// After so long, the search goes on without.
    pub deadline: Duration,
}
