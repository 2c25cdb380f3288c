//! Single questions to a model besides the answers of a run: summaries, memory, hooks. Each is
//! reserved in the budget, asked, settled and, where the caller wants it, logged as usage.
//!
//! Effects: the clock, randomness, the environment, the local disk (reads), the store (writes), the
//! model.

use crate::model_facts::Pricing;
use crate::{AgentError, AgentParts, Budget, BudgetError, Purpose, UsageLog, UsageRecord};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{CallEstimate, Message, Owner, SessionId, Usd, message_tokens, text_tokens};
use stead_model::{Model, ModelError, Params, Reply, Request, SystemPart, ToolChoice};
use stead_store::StoreError;

/// A model whose calls are taken from a budget.
pub(crate) struct MeteredModel<'a> {
    parts: &'a AgentParts,
    model: &'a dyn Model,
    budget: &'a Budget,
}

/// An answer, with what it cost.
pub(crate) struct MeteredReply {
    pub(crate) reply: Reply,
    /// The cost, if it is known.
    pub(crate) cost: Option<Usd>,
    duration: Duration,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeteredError {
    /// The budget does not allow the call, or could not be settled.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model did not answer in time.
    #[error("the model did not answer within {} seconds", .0.as_secs())]
    TimedOut(Duration),
}

impl From<StoreError> for MeteredError {
    fn from(error: StoreError) -> Self {
        Self::Budget(error.into())
    }
}

impl<'a> MeteredModel<'a> {
    pub(crate) fn new(parts: &'a AgentParts, model: &'a dyn Model, budget: &'a Budget) -> Self {
        Self {
            parts,
            model,
            budget,
        }
    }

    /// The most answer tokens to ask for: `wanted`, or less if the model cannot give as many.
    pub(crate) fn answer_tokens(&self, wanted: u64) -> u64 {
        let longest = self.model.facts().max_output_tokens.unwrap_or(wanted);
        longest.min(wanted)
    }

    /// Asks one question without tools.
    pub(crate) async fn ask(
        &self,
        system: &str,
        question: String,
        answer_tokens: u64,
    ) -> Result<MeteredReply, MeteredError> {
        let (request, estimate) = self.question(system, question, answer_tokens);
        self.complete(request, estimate).await
    }

    /// Like [`ask`](Self::ask), with a limit on the time. A call that is late is charged in full.
    pub(crate) async fn ask_within(
        &self,
        system: &str,
        question: String,
        answer_tokens: u64,
        limit: Duration,
    ) -> Result<MeteredReply, MeteredError> {
        let (request, estimate) = self.question(system, question, answer_tokens);
        self.complete_within(request, estimate, Some(limit)).await
    }

    /// Sends a request. The estimate has no price yet.
    pub(crate) async fn complete(
        &self,
        request: Request,
        estimate: CallEstimate,
    ) -> Result<MeteredReply, MeteredError> {
        self.complete_within(request, estimate, None).await
    }

    fn question(
        &self,
        system: &str,
        question: String,
        answer_tokens: u64,
    ) -> (Request, CallEstimate) {
        let message = Message::user(question);
        let estimate = CallEstimate {
            input_tokens: text_tokens(system) + message_tokens(&message),
            answer_tokens,
            thinking_tokens: 0,
            price: None,
        };
        let system = SystemPart {
            text: system.to_owned(),
            stable: true,
        };
        let request = Request {
            system: [system].into(),
            messages: vec![Arc::new(message)],
            params: Params {
                max_output_tokens: u32::try_from(answer_tokens).ok(),
                tool_choice: ToolChoice::None,
                ..Params::default()
            },
            ..Request::default()
        };
        (request, estimate)
    }

    async fn complete_within(
        &self,
        mut request: Request,
        estimate: CallEstimate,
        limit: Option<Duration>,
    ) -> Result<MeteredReply, MeteredError> {
        let pricing = Pricing::new(self.parts);
        let estimate = CallEstimate {
            price: pricing.price(self.model, self.model.name()),
            ..estimate
        };
        let reservation = self.budget.reserve(estimate).await?;
        // Without a limit the request stays as it is: its beginning may be in the provider's cache.
        request.params.max_output_tokens = reservation
            .answer_tokens()
            .or(request.params.max_output_tokens);
        // Wires that must name a limit name this one, not the longest answer of the model.
        request.params.answer_room = u32::try_from(estimate.answer_tokens).ok();
        let begun = Instant::now();
        let answer = self.model.complete(&request);
        let answer = match limit {
            None => answer.await,
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    reservation.charge_in_full().await?;
                    return Err(MeteredError::TimedOut(limit));
                }
            },
        };
        let reply = match answer {
            Ok(reply) => reply,
            Err(error) => {
                reservation.release().await?;
                return Err(error.into());
            }
        };
        let cost = pricing.cost(self.model, &reply, request.params.caching);
        reservation.settle(&reply.usage, cost).await?;
        Ok(MeteredReply {
            reply,
            cost,
            duration: begun.elapsed(),
        })
    }
}

impl MeteredReply {
    /// The text of the answer.
    pub(crate) fn text(&self) -> String {
        let content = self.reply.content.clone();
        Message::Assistant { content }.text()
    }

    /// Writes the usage of the call to the log of `owner`.
    pub(crate) async fn log(
        &self,
        parts: &AgentParts,
        (owner, session): (&Owner, &SessionId),
        purpose: Purpose,
    ) -> Result<(), AgentError> {
        let record = UsageRecord::new(&owner.user, session, purpose, &self.reply.model)
            .with_usage(self.reply.usage, self.cost);
        parts.side_spending.add(self.cost);
        let record = UsageRecord {
            ms: u64::try_from(self.duration.as_millis()).ok(),
            ..record
        };
        UsageLog::new(parts, owner).append(&[record]).await
    }
}
