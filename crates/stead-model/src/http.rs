//! A model over HTTP: any wire, streamed or whole.
//!
//! Effects: the clock, the environment, the local disk (reads), the network.

mod client;
mod error;
mod limits;

pub(crate) use self::client::{client, is_loopback};
pub(crate) use self::error::network_error;

use self::client::headers;
use self::error::{answer_too_long, config_error};
use crate::classify::{classify, retry_after};
use crate::model::NewestHead;
use crate::reported_limits::LimitsQuery;
use crate::sse::SseParser;
use crate::wire::{self, Decoder, Encoding, Wire, WireMode};
use crate::{Delta, Model, ModelError, ModelFacts, Reply, ReportedLimits, Request, Timeouts};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use std::borrow::Cow;
use std::collections::VecDeque;
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
/// The time that a finished answer waits for the end of its HTTP body, without which the connection
/// could not be reused. The end comes with the last event or right after it.
const DRAIN_MS: u64 = 20;

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
    timeouts: HttpTimeouts,
    redactor: Redactor,
    newest_head: NewestHead,
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

/// An answer in progress.
struct HttpAnswer<'a> {
    model: &'a HttpModel,
    request: &'a Request,
    deadline: Instant,
    phase: AnswerPhase,
    /// The deltas that were read and not returned yet.
    ready: VecDeque<Delta>,
}

/// The phase of an answer.
enum AnswerPhase {
    New,
    Streaming(Streaming),
    Whole(Reply),
    Ended,
}

/// The state of an answer that is streamed.
struct Streaming {
    response: Response,
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    received_bytes: usize,
}

impl HttpModel {
    pub(crate) fn new(settings: HttpSettings) -> Result<Self, ModelError> {
        let HttpSettings {
            facts,
            wire,
            base_url,
            key,
            limits_queries,
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
        let timeouts = HttpTimeouts {
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
            limits_queries,
            mode,
            timeouts,
            redactor,
            newest_head: NewestHead::default(),
            client,
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
        let deadline = Instant::now() + self.timeouts.total;
        let answer = HttpAnswer {
            model: self,
            request,
            deadline,
            phase: AnswerPhase::New,
            ready: VecDeque::new(),
        };
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

impl HttpModel {
    /// Sends the request and returns the answer as it begins.
    async fn send(&self, request: &Request, deadline: Instant) -> Result<AnswerPhase, ModelError> {
        let request = &*self
            .facts
            .abilities
            .map_or(Cow::Borrowed(request), |abilities| {
                abilities.restrict(request)
            });
        let encoding = Encoding::new(self.mode, self.facts.abilities, &self.newest_head);
        let body = wire::encode(self.wire.as_ref(), request, encoding);
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

    fn client(&self) -> Result<&Client, ModelError> {
        self.client
            .get_or_init(|| client(&self.url, self.timeouts.connect))
            .as_ref()
            .map_err(Clone::clone)
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
        let idle = Instant::now() + self.timeouts.idle;
        tokio::time::timeout_at(idle.min(deadline), future)
            .await
            .map_err(|_| {
                ModelError::TimedOut(match idle < deadline {
                    true => format!("the provider sent nothing for {:?}", self.timeouts.idle),
                    false => format!("the answer took longer than {:?}", self.timeouts.total),
                })
            })
    }
}

impl HttpAnswer<'_> {
    /// Reads what arrives next of a streamed answer.
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
                | Delta::Usage(_)
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

    /// Adds the end of the answer to the deltas that are ready.
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
