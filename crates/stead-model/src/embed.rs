//! Text embeddings from any endpoint compatible with OpenAI's `POST /embeddings`.
//!
//! Effects: the clock, the environment, the local disk (reads), the network.

use crate::classify::{classify, retry_after};
use crate::connect::{Endpoint, resolve_endpoint};
use crate::http::{client, is_web_page, network_error, parse_seconds};
use crate::providers::{WireKind, find};
use crate::{EnvLookup, KeyPolicy, ModelError, ModelName};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::OnceLock;
use std::time::Duration;
use stead_core::Redactor;

/// The number of texts in one request.
const BATCH_TEXTS: usize = 64;
/// The maximum size of a response.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// Longer texts are cut: no endpoint takes more, and the beginning shows the subject.
const MAX_TEXT_CHARS: usize = 8000;

/// The settings for text embeddings in `agent.yaml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingSettings {
    /// `provider:model`, for example `openai:text-embedding-3-small` or `ollama:nomic-embed-text`.
    pub name: String,
    /// The endpoint, if it is not the provider's default.
    pub base_url: Option<String>,
    /// The key, if it is not in the provider's usual variable.
    pub api_key: Option<String>,
    /// The number of dimensions of a vector, if the model supports a choice.
    pub dimensions: Option<u32>,
    /// The time limit of one request in seconds (default 10).
    pub timeout_seconds: f64,
}

impl Default for EmbeddingSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            base_url: None,
            api_key: None,
            dimensions: None,
            timeout_seconds: 10.0,
        }
    }
}

impl EmbeddingSettings {
    /// Returns the problem with the settings, independent of the environment.
    pub fn problem(&self) -> Option<String> {
        self.provider()
            .and_then(|_| parse_seconds(&self.name, "timeout_seconds", self.timeout_seconds))
            .err()
            .map(|e| e.to_string())
    }

    fn provider(&self) -> Result<(ModelName, &'static crate::Provider), ModelError> {
        let name: ModelName = self.name.parse()?;
        let Some(provider) = find(&name.provider) else {
            return Err(ModelError::Config(format!(
                "{name}: no provider is named {:?}",
                name.provider
            )));
        };
        match provider.wire {
            WireKind::OpenAi(_) | WireKind::Responses => Ok((name, provider)),
            WireKind::Anthropic | WireKind::Gemini => Err(ModelError::Config(format!(
                "{name}: {} has no embeddings endpoint of OpenAI's kind; name another provider, or \
                 openai-compatible:MODEL with its base_url",
                provider.name
            ))),
        }
    }
}

/// A client of an embedding endpoint.
#[derive(Debug)]
pub struct Embedder {
    name: String,
    model: String,
    dimensions: Option<u32>,
    url: Url,
    headers: HeaderMap,
    timeout: Duration,
    redactor: Redactor,
    /// Created on first use, because loading root certificates takes milliseconds.
    client: OnceLock<Result<Client, ModelError>>,
}

impl Embedder {
    /// Creates the client that `settings` describe. Nothing is sent yet; missing or invalid
    /// settings are reported now.
    /// `keys` says which endpoints may be sent which keys.
    pub fn new(
        settings: &EmbeddingSettings,
        env: EnvLookup<'_>,
        keys: &KeyPolicy,
    ) -> Result<Self, ModelError> {
        let (name, provider) = settings.provider()?;
        let Endpoint { base_url, key } = resolve_endpoint(
            provider,
            &name,
            settings.base_url.as_ref(),
            settings.api_key.as_ref(),
            env,
            keys,
        )?;
        let config = |problem: &str| ModelError::Config(format!("{name}: {problem}"));
        let url = Url::parse(&format!("{}/embeddings", base_url.trim_end_matches('/')));
        let url = url
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or_else(|| config("the base URL must begin with http:// or https://"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(key) = &key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut value =
                value.map_err(|_| config("the key has characters that no header may have"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            model: name.model.clone(),
            dimensions: settings.dimensions,
            url,
            headers,
            timeout: parse_seconds(&settings.name, "timeout_seconds", settings.timeout_seconds)?,
            redactor: Redactor::new(key),
            client: OnceLock::new(),
            name: name.to_string(),
        })
    }

    /// Returns `provider:model`, with everything else that makes its vectors incompatible with
    /// others.
    pub fn name(&self) -> String {
        match self.dimensions {
            None => self.name.clone(),
            Some(dimensions) => format!("{}/{dimensions}", self.name),
        }
    }

    /// Returns one vector per text, in order. There are no retries, because a search does not wait
    /// for them.
    pub async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH_TEXTS) {
            let answer = tokio::time::timeout(self.timeout, self.request_batch(batch)).await;
            let answer = answer.unwrap_or_else(|_| {
                Err(ModelError::TimedOut(format!(
                    "no vectors within {:?}",
                    self.timeout
                )))
            });
            vectors.extend(answer.map_err(|error| {
                error.map_message(|words| self.redactor.redact(&words).into_owned())
            })?);
        }
        Ok(vectors)
    }

    async fn request_batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        let input: Vec<String> = texts
            .iter()
            .map(|text| text.chars().take(MAX_TEXT_CHARS).collect())
            .collect();
        let mut body = json!({"model": self.model, "input": input, "encoding_format": "float"});
        if let Some(dimensions) = self.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let client = self
            .client
            .get_or_init(|| client(&self.url, self.timeout))
            .as_ref()
            .map_err(Clone::clone)?;
        let call = client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body.to_string());
        let response = call.send().await.map_err(network_error)?;
        let status = response.status();
        let header = |name: &str| {
            response
                .headers()
                .get(name)?
                .to_str()
                .ok()
                .map(str::to_owned)
        };
        let ms = header("retry-after-ms");
        let wait = header("retry-after");
        if is_web_page(&response) && status.is_success() {
            return Err(ModelError::NotFound(
                "the endpoint answered with a web page; check the base URL".to_owned(),
            ));
        }
        let body = read_body(response).await?;
        if !status.is_success() {
            let header = |name: &str| {
                if name == "retry-after-ms" {
                    ms.as_deref()
                } else {
                    wait.as_deref()
                }
            };
            return Err(classify(
                status.as_u16(),
                retry_after(header, jiff::Timestamp::now()),
                &body,
            ));
        }
        parse(&body, texts.len())
    }
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(network_error)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(ModelError::Protocol(format!(
                "the answer has more than {MAX_ANSWER_BYTES} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns the vectors of a response in the order of the `count` texts; the response may list them
/// in another.
fn parse(body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, ModelError> {
    #[derive(Deserialize)]
    struct EmbeddingResponse {
        data: Vec<EmbeddingVector>,
    }
    #[derive(Deserialize)]
    struct EmbeddingVector {
        index: Option<usize>,
        embedding: Vec<f32>,
    }
    let odd = |words: String| ModelError::Protocol(words);
    let answer: EmbeddingResponse =
        serde_json::from_slice(body).map_err(|error| odd(error.to_string()))?;
    let mut vectors = vec![Vec::new(); count];
    for (at, item) in answer.data.into_iter().enumerate() {
        let index = item.index.unwrap_or(at);
        let place = vectors
            .get_mut(index)
            .ok_or_else(|| odd(format!("a vector has the index {index} of {count}")))?;
        *place = item.embedding;
    }
    let length = vectors.first().map_or(0, Vec::len);
    if vectors
        .iter()
        .any(|vector| vector.is_empty() || vector.len() != length)
    {
        return Err(odd(format!(
            "not every one of {count} texts got a vector of the same length"
        )));
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests;
