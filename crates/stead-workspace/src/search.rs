//! The `search:` settings of agent.yaml, and the embedding model that they name.
//!
//! Effects: the clock, the environment, the local disk (reads), the network.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use stead_model::{Embedder, EmbeddingSettings, EnvLookup, KeyPolicy, ModelError};
use stead_search::{Embed, EmbedError};

/// How memory and sessions are searched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SearchSettings {
    /// The embedding model, which ranks texts by meaning: `provider:model`, or a map of settings
    /// with `name:`. Without it, texts are ranked by words alone, and no key is needed.
    #[serde(deserialize_with = "embedding")]
    #[schemars(with = "Option<EmbeddingNameOrSettings>")]
    pub embedding: Option<EmbeddingSettings>,
}

impl SearchSettings {
    /// Returns the first problem of the settings with the key it is about.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        Some(("search.embedding", self.embedding.as_ref()?.problem()?))
    }

    /// Returns the embedding model, if the settings name one.
    pub(crate) fn embedder(
        &self,
        env: EnvLookup<'_>,
        keys: &KeyPolicy,
    ) -> Option<ConfiguredEmbedder> {
        self.embedding
            .as_ref()
            .map(|settings| ConfiguredEmbedder::new(settings, env, keys))
    }
}

/// The forms of `embedding:`.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum EmbeddingNameOrSettings {
    Name(String),
    Settings(EmbeddingSettings),
}

fn embedding<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<EmbeddingSettings>, D::Error> {
    struct EmbeddingVisitor;
    impl<'de> serde::de::Visitor<'de> for EmbeddingVisitor {
        type Value = Option<EmbeddingSettings>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("`provider:model`, or a map with `name:`")
        }
        fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
            Ok(Some(EmbeddingSettings {
                name: name.to_owned(),
                ..EmbeddingSettings::default()
            }))
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            EmbeddingSettings::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                .map(Some)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(EmbeddingVisitor)
}

/// An embedding model behind an endpoint. A workspace is opened even if the endpoint cannot be
/// used: searches then rank by words and report why.
#[derive(Debug)]
pub struct ConfiguredEmbedder {
    name: String,
    embedder: Result<Embedder, ModelError>,
}

impl ConfiguredEmbedder {
    fn new(settings: &EmbeddingSettings, env: EnvLookup<'_>, keys: &KeyPolicy) -> Self {
        let embedder = Embedder::new(settings, env, keys);
        let name = embedder
            .as_ref()
            .map_or_else(|_| settings.name.clone(), Embedder::name);
        Self { name, embedder }
    }
}

impl Embed for ConfiguredEmbedder {
    fn model(&self) -> &str {
        &self.name
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        async move {
            let told = |error: &ModelError| EmbedError(error.to_string());
            let embedder = self.embedder.as_ref().map_err(told)?;
            embedder.embed(texts).await.map_err(|error| told(&error))
        }
        .boxed()
    }
}
