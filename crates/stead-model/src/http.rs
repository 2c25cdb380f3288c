//! A model over HTTP: any wire, streamed or whole.
//!
//! Effects: in-process state, the clock, the environment, the model, the network.

mod answer;
mod client;
mod error;

pub(crate) use self::client::{client, is_loopback};
pub(crate) use self::error::network_error;

use self::answer::{AnswerPhase, HttpAnswer, Streaming};
use self::client::{headers, headers_for};
use self::error::{answer_too_long, config_error};
use crate::classify::{classify, retry_after};
use crate::reported_limits::{LimitsQuery, UrlBase};
use crate::wire::{self, Wire, WireMode};
use crate::{Delta, Model, ModelError, ModelFacts, Reply, ReportedLimits, Request, Timeouts};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;
use stead_core::Redactor;
use tokio::time::Instant;

/// The maximum size of an answer, streamed or whole.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The maximum size of an error body that is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The time that an endpoint may take to describe a model.
const DESCRIBE_SECONDS: u64 = 3;
/// The maximum size of a description; some endpoints list hundreds of models at once.
const MAX_DESCRIPTION_BYTES: usize = 8 * 1024 * 1024;

/// The parts of an [`HttpModel`].
pub(crate) struct HttpSettings {
    pub(crate) facts: ModelFacts,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) base_url: String,
    pub(crate) key: Option<String>,
    /// The requests that ask the endpoint for the model's limits.
    pub(crate) limits_queries: Vec<LimitsQuery>,
    pub(crate) mode: WireMode,
    pub(crate) timeouts: Timeouts,
}

/// A model over HTTP, without retries.
#[derive(Debug)]
pub(crate) struct HttpModel {
    facts: ModelFacts,
    wire: Box<dyn Wire>,
    base_url: String,
    url: Url,
    headers: HeaderMap,
    limits_queries: Vec<LimitsQuery>,
    mode: WireMode,
    limits: HttpTimeouts,
    redactor: Redactor,
    /// Created on first use: loading root certificates takes milliseconds, and a fallback may never
    /// be needed.
    client: OnceLock<Result<Client, ModelError>>,
}

#[derive(Debug, Clone, Copy)]
struct HttpTimeouts {
    connect: Duration,
    idle: Duration,
    total: Duration,
}

impl HttpModel {
    pub(crate) fn new(settings: HttpSettings) -> Result<Self, ModelError> {
        let HttpSettings {
            facts,
            wire,
            base_url,
            key,
            limits_queries: inquiries,
            mode,
            timeouts,
        } = settings;
        let name = &*facts.name;
        let base_url = base_url.trim_end_matches('/').to_owned();
        let endpoint = wire.endpoint(mode);
        let url = format!("{base_url}/{}", endpoint.trim_start_matches('/'));
        let url = Url::parse(&url)
            .map_err(|error| config_error(name, &format!("the base URL is not one: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(config_error(
                name,
                "the base URL must begin with http:// or https://",
            ));
        }
        let headers = headers(wire.as_ref(), mode, key.as_deref())
            .map_err(|problem| config_error(name, problem))?;
        let total = parse_seconds(name, "total_seconds", timeouts.total_seconds)?;
        let idle = parse_seconds(name, "idle_seconds", timeouts.idle_seconds)?;
        let limits = HttpTimeouts {
            connect: parse_seconds(name, "connect_seconds", timeouts.connect_seconds)?,
            idle: match mode {
                WireMode::Stream => idle,
                // A whole answer sends nothing before it is complete.
                WireMode::Whole => total,
            },
            total,
        };
        let redactor = Redactor::new(key);
        let client = OnceLock::new();
        Ok(Self {
            facts,
            wire,
            base_url,
            url,
            headers,
            limits_queries: inquiries,
            mode,
            limits,
            redactor,
            client,
        })
    }

    fn client(&self) -> Result<&Client, ModelError> {
        self.client
            .get_or_init(|| client(&self.url, self.limits.connect))
            .as_ref()
            .map_err(Clone::clone)
    }

    async fn send(&self, request: &Request, deadline: Instant) -> Result<AnswerPhase, ModelError> {
        let request = &*self
            .facts
            .abilities
            .map_or(Cow::Borrowed(request), |abilities| {
                abilities.restrict(request)
            });
        let body = wire::encode(self.wire.as_ref(), request, self.mode, self.facts.abilities);
        let call = self
            .client()?
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body);
        let response = self
            .with_timeout(deadline, call.send())
            .await?
            .map_err(|error| self.send_error(error))?;
        let status = response.status();
        if !status.is_success() {
            let header = |name: &str| response.headers().get(name)?.to_str().ok();
            let wait = retry_after(header, jiff::Timestamp::now());
            // The status suffices if the error body does not arrive.
            let body = self.read_error(response, deadline).await;
            return Err(classify(status.as_u16(), wait, &body));
        }
        if is_web_page(&response) {
            let words = "the endpoint answered with a web page; check the base URL";
            return Err(ModelError::NotFound(words.to_owned()));
        }
        let content_type = content_type(&response);
        // Some servers always send a whole answer, whatever the request says.
        if self.mode == WireMode::Whole || content_type.starts_with(b"application/json") {
            return self
                .read_whole(response, deadline)
                .await
                .map(AnswerPhase::Whole);
        }
        let streaming = Streaming::new(response, self.wire.decoder());
        Ok(AnswerPhase::Streaming(streaming))
    }

    /// Asks the endpoint for the model's limits in every known way until one gives the window.
    async fn fetch_limits(&self) -> ReportedLimits {
        for query in &self.limits_queries {
            let reported = self.query_limits(query).await.unwrap_or_default();
            if reported.context_window.is_some() {
                return reported;
            }
        }
        ReportedLimits::default()
    }

    async fn query_limits(&self, query: &LimitsQuery) -> Option<ReportedLimits> {
        let server = self.url.origin().ascii_serialization();
        let start = match query.url_base {
            UrlBase::Base => &self.base_url,
            UrlBase::Server => &server,
        };
        let client = self.client().ok()?;
        let url = Url::parse(&format!("{start}/{}", query.path)).ok()?;
        let call = match &query.body {
            Some(body) => client.post(url).body(body.to_string()),
            None => client.get(url),
        };
        let headers = headers_for(&self.headers, "application/json");
        let mut response = call.headers(headers).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            if body.len() + chunk.len() > MAX_DESCRIPTION_BYTES {
                return None;
            }
            body.extend_from_slice(&chunk);
        }
        Some((query.parse)(
            &serde_json::from_slice(&body).ok()?,
            self.wire.model(),
        ))
    }

    /// Returns the error of a request that could not be sent. If the connection was refused, it
    /// names the address.
    fn send_error(&self, error: reqwest::Error) -> ModelError {
        if !error.is_connect() || error.is_timeout() {
            return network_error(error);
        }
        // Without path and user, which may hold a key.
        let origin = self.url.origin().ascii_serialization();
        let mut root: &dyn std::error::Error = &error;
        while let Some(cause) = root.source() {
            root = cause;
        }
        ModelError::Network(format!(
            "{origin} cannot be reached ({root}); is the server running, and the base URL right?"
        ))
    }

    async fn read_whole(
        &self,
        mut response: Response,
        deadline: Instant,
    ) -> Result<Reply, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = self
            .with_timeout(deadline, response.chunk())
            .await?
            .map_err(network_error)?
        {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(answer_too_long());
            }
            body.extend_from_slice(&chunk);
        }
        self.wire.parse(&body)
    }

    async fn read_error(&self, mut response: Response, deadline: Instant) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = self.with_timeout(deadline, response.chunk()).await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        body
    }

    /// Waits for `future`, limited by the idle timeout and the answer's deadline.
    async fn with_timeout<T>(
        &self,
        deadline: Instant,
        future: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        let idle = Instant::now() + self.limits.idle;
        tokio::time::timeout_at(idle.min(deadline), future)
            .await
            .map_err(|_| {
                ModelError::TimedOut(match idle < deadline {
                    true => format!("the provider sent nothing for {:?}", self.limits.idle),
                    false => format!("the answer took longer than {:?}", self.limits.total),
                })
            })
    }
}

impl Model for HttpModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        let limit = Duration::from_secs(DESCRIBE_SECONDS);
        Box::pin(async move {
            tokio::time::timeout(limit, self.fetch_limits())
                .await
                .unwrap_or_default()
        })
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let deadline = Instant::now() + self.limits.total;
        let answer = HttpAnswer::new(self, request, deadline);
        Box::pin(stream::unfold(answer, move |mut answer| async move {
            loop {
                if let Some(delta) = answer.ready.pop_front() {
                    return Some((Ok(delta), answer));
                }
                // The answer has ended unless this step succeeds.
                let next = match std::mem::replace(&mut answer.phase, AnswerPhase::Ended) {
                    AnswerPhase::New => self.send(answer.request, answer.deadline).await,
                    AnswerPhase::Streaming(streaming) => answer.read(streaming).await,
                    AnswerPhase::Whole(reply) => {
                        answer.ready.extend(reply.deltas());
                        answer.finish_with(reply);
                        Ok(AnswerPhase::Ended)
                    }
                    AnswerPhase::Ended => return None,
                };
                match next {
                    Ok(phase) => answer.phase = phase,
                    Err(error) => {
                        let redacted = |words: String| self.redactor.redact(&words).into_owned();
                        return Some((Err(error.map_message(redacted)), answer));
                    }
                }
            }
        }))
    }
}

fn content_type(response: &Response) -> &[u8] {
    response
        .headers()
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes)
}

/// Whether the response is a web page, which no model endpoint sends.
pub(crate) fn is_web_page(response: &Response) -> bool {
    content_type(response).starts_with(b"text/html")
}

pub(crate) fn parse_seconds(name: &str, field: &str, seconds: f64) -> Result<Duration, ModelError> {
    // Longer than a year is no limit, and would overflow the clock.
    const YEAR_SECONDS: f64 = 365.0 * 86_400.0;
    match Duration::try_from_secs_f64(seconds.min(YEAR_SECONDS)) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => Err(config_error(
            name,
            &format!("timeouts.{field} must be more than 0, not {seconds}"),
        )),
    }
}

#[cfg(test)]
mod tests;
