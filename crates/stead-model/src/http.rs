//! A model over HTTP: any wire, streamed or whole.

use crate::classify::{classify, retry_after};
use crate::reported_limits::{LimitsQuery, UrlBase};
use crate::sse::SseParser;
use crate::wire::{self, Decoder, Wire, WireMode};
use crate::{Delta, Model, ModelError, ModelFacts, Reply, ReportedLimits, Request, Timeouts};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stead_core::Redactor;
use tokio::time::Instant;

/// The maximum size of an answer, streamed or whole.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// The maximum size of an error body that is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The number of idle connections kept per host.
const MAX_IDLE_CONNECTIONS: usize = 64;
/// The time that a finished answer waits for the end of its HTTP body, without which the connection
/// could not be reused. The end comes with the last event or right after it.
const DRAIN_MS: u64 = 20;
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

    async fn open(&self, request: &Request, deadline: Instant) -> Result<AnswerPhase, ModelError> {
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
        Ok(AnswerPhase::Streaming(Streaming {
            response,
            parser: SseParser::default(),
            decoder: self.wire.decoder(),
            received_bytes: 0,
        }))
    }

    /// Asks the endpoint for the model's limits in every known way until one gives the window.
    async fn fetch_limits(&self) -> ReportedLimits {
        for inquiry in &self.limits_queries {
            let reported = self.query_limits(inquiry).await.unwrap_or_default();
            if reported.context_window.is_some() {
                return reported;
            }
        }
        ReportedLimits::default()
    }

    async fn query_limits(&self, inquiry: &LimitsQuery) -> Option<ReportedLimits> {
        let server = self.url.origin().ascii_serialization();
        let start = match inquiry.url_base {
            UrlBase::Base => &self.base_url,
            UrlBase::Server => &server,
        };
        let client = self.client().ok()?;
        let url = Url::parse(&format!("{start}/{}", inquiry.path)).ok()?;
        let call = match &inquiry.body {
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
        Some((inquiry.parse)(
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
        let answer = HttpAnswer {
            model: self,
            request,
            deadline,
            phase: AnswerPhase::New,
            ready: VecDeque::new(),
        };
        Box::pin(stream::unfold(answer, |mut answer| async move {
            let item = answer.next().await?;
            let item = item.map_err(|error| {
                error.map_message(|words| answer.model.redactor.redact(&words).into_owned())
            });
            Some((item, answer))
        }))
    }
}

/// An answer in progress.
struct HttpAnswer<'a> {
    model: &'a HttpModel,
    request: &'a Request,
    deadline: Instant,
    phase: AnswerPhase,
    ready: VecDeque<Delta>,
}

enum AnswerPhase {
    New,
    Streaming(Streaming),
    Whole(Reply),
    Ended,
}

struct Streaming {
    response: Response,
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    received_bytes: usize,
}

impl HttpAnswer<'_> {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            match self.advance().await {
                Ok(AnswerPhase::Ended) if self.ready.is_empty() => return None,
                Ok(phase) => self.phase = phase,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Performs the next step. The phase is `Ended` meanwhile, and stays so after a failure.
    async fn advance(&mut self) -> Result<AnswerPhase, ModelError> {
        match std::mem::replace(&mut self.phase, AnswerPhase::Ended) {
            AnswerPhase::New => self.model.open(self.request, self.deadline).await,
            AnswerPhase::Streaming(streaming) => self.read(streaming).await,
            AnswerPhase::Whole(reply) => {
                self.ready.extend(reply.deltas());
                self.finish_with(reply);
                Ok(AnswerPhase::Ended)
            }
            AnswerPhase::Ended => Ok(AnswerPhase::Ended),
        }
    }

    async fn read(&mut self, mut streaming: Streaming) -> Result<AnswerPhase, ModelError> {
        let chunk = self
            .model
            .with_timeout(self.deadline, streaming.response.chunk())
            .await?
            .map_err(network_error)?;
        let Streaming {
            response,
            mut parser,
            mut decoder,
            mut received_bytes,
        } = streaming;
        let mut deltas = Vec::new();
        let mut sink = |event: &str, data: &str| decoder.push(event, data, &mut deltas);
        let ended = chunk.is_none();
        match chunk {
            Some(chunk) => {
                received_bytes += chunk.len();
                if received_bytes > MAX_ANSWER_BYTES {
                    return Err(answer_too_long());
                }
                parser.push(&chunk, &mut sink)?;
            }
            None => {
                std::mem::take(&mut parser).finish(&mut sink)?;
                decoder.finish(&mut deltas)?;
            }
        }
        for delta in deltas {
            match delta {
                Delta::Done(reply) => {
                    if !ended {
                        drain(response).await;
                    }
                    self.finish_with(*reply);
                    return Ok(AnswerPhase::Ended);
                }
                delta @ (Delta::Text(_)
                | Delta::Thinking(_)
                | Delta::CallStarted { .. }
                | Delta::CallArgs { .. }
                | Delta::Retry { .. }) => self.ready.push_back(delta),
            }
        }
        if ended {
            Err(ModelError::Cut)
        } else {
            Ok(AnswerPhase::Streaming(Streaming {
                response,
                parser,
                decoder,
                received_bytes,
            }))
        }
    }

    fn finish_with(&mut self, reply: Reply) {
        let reply = Reply {
            model: self.model.facts.name.to_string(),
            ..reply
        };
        self.ready.push_back(Delta::Done(Box::new(reply)));
    }
}

/// Reads an answer's HTTP body to its end, if that is near.
async fn drain(mut response: Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    let _ = tokio::time::timeout(Duration::from_millis(DRAIN_MS), rest).await;
}

pub(crate) fn client(url: &Url, connect_timeout: Duration) -> Result<Client, ModelError> {
    let builder = Client::builder()
        .user_agent(concat!("stead/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .connect_timeout(connect_timeout)
        // A redirect would send the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(
            tls(url).map_err(|error| ModelError::Config(format!("TLS: {error}")))?,
        );
    let builder = if is_loopback(url) {
        builder.no_proxy()
    } else {
        builder
    };
    builder
        .build()
        .map_err(|error| ModelError::Config(format!("HTTP client: {}", error_chain(&error))))
}

/// Returns the TLS configuration. For `http:` it is an empty one that trusts no certificate and is
/// cheap to create.
fn tls(url: &Url) -> Result<rustls::ClientConfig, rustls::Error> {
    use rustls_platform_verifier::BuilderVerifierExt;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?;
    let mut config = match url.scheme() {
        "https" => builder.with_platform_verifier()?.with_no_client_auth(),
        _ => builder
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn content_type(response: &Response) -> &[u8] {
    response
        .headers()
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes)
}

/// Returns whether the response is a web page, which no model endpoint sends.
pub(crate) fn is_web_page(response: &Response) -> bool {
    content_type(response).starts_with(b"text/html")
}

/// Returns whether `url` points at this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

fn headers(wire: &dyn Wire, mode: WireMode, key: Option<&str>) -> Result<HeaderMap, &'static str> {
    let accept = match mode {
        WireMode::Stream => "text/event-stream",
        WireMode::Whole => "application/json",
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    for (name, value) in wire.headers(key) {
        let secret = key.is_some_and(|key| value.contains(key));
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| "the key has characters that no header may have")?;
        value.set_sensitive(secret);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// Returns the headers for another content type of the response.
fn headers_for(headers: &HeaderMap, accept: &'static str) -> HeaderMap {
    let mut headers = headers.clone();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers
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

fn config_error(name: &str, problem: &str) -> ModelError {
    ModelError::Config(format!("{name}: {problem}"))
}

fn answer_too_long() -> ModelError {
    ModelError::Protocol(format!("the answer has more than {MAX_ANSWER_BYTES} bytes"))
}

pub(crate) fn network_error(error: reqwest::Error) -> ModelError {
    let kind = if error.is_timeout() {
        ModelError::TimedOut
    } else {
        ModelError::Network
    };
    // The URL may hold a key.
    kind(error_chain(&error.without_url()))
}

/// Formats an error with its causes: the outermost alone ("error sending request") explains
/// nothing.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words.push_str(": ");
            words.push_str(&cause_words);
        }
        next = cause.source();
    }
    words
}

#[cfg(test)]
mod tests;
