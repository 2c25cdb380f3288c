//! Retries with the same model after a pause, and fallbacks to other models.
//!
//! Effects: the clock, randomness, the model.

use crate::{Delta, Model, ModelError, ModelFacts, ReportedLimits, Request};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The pause before the second attempt, which doubles with each further one.
const BASE_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the provider asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause that a provider may ask for.
const MAX_ASKED_PAUSE: Duration = Duration::from_secs(120);

type DeltaStream<'a> = BoxStream<'a, Result<Delta, ModelError>>;

/// How long a rate limit is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateLimitPatience {
    /// Until the caller gives up: a run has a time limit, and shows that it waits.
    UntilStopped,
    /// As many attempts as after other failures.
    AsOtherFailures,
}

/// A model that retries after transient failures. Each new attempt is announced by a
/// [`Delta::Retry`], which makes everything before it void.
pub(crate) struct RetryingModel {
    inner: Arc<dyn Model>,
    max_retries: u32,
    patience: RateLimitPatience,
    /// The position of a pause in its range, from 0 to 1, so that many clients do not return at
    /// once.
    jitter: fn() -> f64,
}

impl RetryingModel {
    pub(crate) fn new(
        inner: Arc<dyn Model>,
        max_retries: u32,
        patience: RateLimitPatience,
    ) -> Self {
        Self {
            inner,
            max_retries,
            patience,
            jitter: rand::random::<f64>,
        }
    }

    /// Whether there is another attempt after the failure of `attempt` (from 1).
    fn retries(&self, attempt: u32, error: &ModelError) -> bool {
        let is_rate_limit = matches!(error, ModelError::RateLimited { .. });
        match self.patience {
            RateLimitPatience::UntilStopped if is_rate_limit => self.max_retries > 0,
            RateLimitPatience::UntilStopped | RateLimitPatience::AsOtherFailures => {
                error.is_transient() && attempt <= self.max_retries
            }
        }
    }

    /// Returns the pause after the failure of `attempt` (from 1).
    fn pause(&self, attempt: u32, error: &ModelError) -> Duration {
        let doubled = BASE_PAUSE.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1)));
        let own = doubled.min(MAX_PAUSE).mul_f64(0.5 + 0.5 * (self.jitter)());
        let asked = error.retry_after().unwrap_or_default().min(MAX_ASKED_PAUSE);
        own.max(asked)
    }
}

impl fmt::Debug for RetryingModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryingModel")
            .field("inner", &self.inner)
            .field("max_retries", &self.max_retries)
            .finish()
    }
}

impl Model for RetryingModel {
    fn facts(&self) -> &ModelFacts {
        self.inner.facts()
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        self.inner.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        enum RetryState<'a> {
            Asking(DeltaStream<'a>),
            Pausing(Duration),
            Ended,
        }
        let start = (RetryState::Asking(self.inner.stream(request)), 1);
        Box::pin(stream::unfold(
            start,
            move |(mut now, attempt)| async move {
                if let RetryState::Pausing(pause) = now {
                    tokio::time::sleep(pause).await;
                    now = RetryState::Asking(self.inner.stream(request));
                }
                let RetryState::Asking(mut deltas) = now else {
                    return None;
                };
                match deltas.next().await? {
                    Ok(delta) => Some((Ok(delta), (RetryState::Asking(deltas), attempt))),
                    Err(error) if self.retries(attempt, &error) => {
                        let pause = self.pause(attempt, &error);
                        let delta = retry_delta(attempt + 1, pause, error.to_string());
                        Some((Ok(delta), (RetryState::Pausing(pause), attempt + 1)))
                    }
                    Err(error) => Some((Err(error), (RetryState::Ended, attempt))),
                }
            },
        ))
    }
}

/// Models that are tried in order, as long as the failure is one that another model may not have.
#[derive(Debug)]
pub(crate) struct FallbackModel {
    first: Arc<dyn Model>,
    others: Vec<Arc<dyn Model>>,
    /// The facts of the first model, with the others as its fallbacks.
    facts: ModelFacts,
}

impl FallbackModel {
    pub(crate) fn new(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Self {
        let mut facts = first.facts().clone();
        for other in &others {
            facts.add_fallback(other.facts());
        }
        Self {
            first,
            others,
            facts,
        }
    }
}

/// Returns whether another model may succeed after this error.
fn should_fall_back(error: &ModelError) -> bool {
    match error {
        ModelError::Auth(_)
        | ModelError::Quota(_)
        | ModelError::NotFound(_)
        | ModelError::RateLimited { .. }
        | ModelError::Unavailable { .. }
        | ModelError::TimedOut(_)
        | ModelError::Network(_)
        | ModelError::Cut
        | ModelError::Protocol(_) => true,
        ModelError::ContextOverflow(_) | ModelError::BadRequest(_) | ModelError::Config(_) => false,
    }
}

impl Model for FallbackModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn describe(&self) -> BoxFuture<'_, ReportedLimits> {
        self.first.describe()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let first = (
            self.first.name(),
            self.first.stream(request.for_model(self.first.name())),
        );
        let start = (Some(first), self.others.iter(), 1);
        Box::pin(stream::unfold(
            start,
            move |(now, mut others, attempt)| async move {
                let (name, mut deltas) = now?;
                match deltas.next().await? {
                    // Attempts are counted over all models.
                    Ok(Delta::Retry {
                        wait_ms, reason, ..
                    }) => {
                        let delta = Delta::Retry {
                            attempt: attempt + 1,
                            wait_ms,
                            reason,
                        };
                        Some((Ok(delta), (Some((name, deltas)), others, attempt + 1)))
                    }
                    Ok(
                        delta @ (Delta::Text(_)
                        | Delta::Thinking(_)
                        | Delta::CallStarted { .. }
                        | Delta::CallArgs { .. }
                        | Delta::Usage(_)
                        | Delta::Done(_)),
                    ) => Some((Ok(delta), (Some((name, deltas)), others, attempt))),
                    Err(error) => match others.next().filter(|_| should_fall_back(&error)) {
                        Some(next) => {
                            let reason =
                                format!("{name}: {error}; {} is asked instead", next.name());
                            let delta = retry_delta(attempt + 1, Duration::ZERO, reason);
                            let asked = next.stream(request.for_model(next.name()));
                            Some((Ok(delta), (Some((next.name(), asked)), others, attempt + 1)))
                        }
                        None => Some((Err(error), (None, others, attempt))),
                    },
                }
            },
        ))
    }
}

fn retry_delta(attempt: u32, pause: Duration, reason: String) -> Delta {
    Delta::Retry {
        attempt,
        wait_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
        reason,
    }
}

#[cfg(test)]
mod tests;
