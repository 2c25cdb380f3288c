//! Reading the answer of a model over HTTP, streamed or whole.
//!
//! Effects: the clock, the model, the network.

use super::error::{answer_too_long, network_error};
use super::{HttpModel, MAX_ANSWER_BYTES};
use crate::sse::SseParser;
use crate::wire::Decoder;
use crate::{Delta, ModelError, Reply, Request};
use reqwest::Response;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// The time that a finished answer waits for the end of its HTTP body, without which the connection
/// could not be reused. The end comes with the last event or right after it.
const DRAIN_MS: u64 = 20;

/// An answer in progress.
pub(super) struct HttpAnswer<'a> {
    model: &'a HttpModel,
    pub(super) request: &'a Request,
    pub(super) deadline: Instant,
    pub(super) phase: AnswerPhase,
    /// The deltas that were read and not returned yet.
    pub(super) ready: VecDeque<Delta>,
}

/// The phase of an answer.
pub(super) enum AnswerPhase {
    New,
    Streaming(Streaming),
    Whole(Reply),
    Ended,
}

/// The state of an answer that is streamed.
pub(super) struct Streaming {
    response: Response,
    parser: SseParser,
    decoder: Box<dyn Decoder>,
    received_bytes: usize,
}

impl Streaming {
    /// Creates the state at the start of a response.
    pub(super) fn new(response: Response, decoder: Box<dyn Decoder>) -> Self {
        Self {
            response,
            parser: SseParser::default(),
            decoder,
            received_bytes: 0,
        }
    }
}

impl<'a> HttpAnswer<'a> {
    /// Creates an answer to a request that is not sent yet.
    pub(super) fn new(model: &'a HttpModel, request: &'a Request, deadline: Instant) -> Self {
        Self {
            model,
            request,
            deadline,
            phase: AnswerPhase::New,
            ready: VecDeque::new(),
        }
    }

    /// Reads what arrives next of a streamed answer.
    pub(super) async fn read(
        &mut self,
        mut streaming: Streaming,
    ) -> Result<AnswerPhase, ModelError> {
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

    /// Adds the end of the answer to the deltas that are ready.
    pub(super) fn finish_with(&mut self, reply: Reply) {
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
