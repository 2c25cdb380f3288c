//! What a run spends: its budget, and the usage records of its calls.
//!
//! Effects: the clock, randomness, the environment, the local disk (reads), the store (writes).

use super::conversation::Conversation;
use super::journal::RunJournal;
use super::stop::RunStop;
use crate::model_facts::Pricing;
use crate::{Budget, Purpose, Reservation, UsageRecord};
use jiff::Timestamp;
use stead_core::{CallEstimate, MIN_ANSWER_TOKENS, RunOutcome, StopReason, Usage, Usd};
use stead_model::Request;
use stead_place::PlaceKind;
use stead_store::StoreError;

/// The longest answer that is reserved, if the model could give a longer one.
const MAX_RESERVED_ANSWER_TOKENS: u64 = 32_000;
/// The answer that is reserved if the longest answer of the model is unknown.
const DEFAULT_ANSWER_TOKENS: u64 = 8_192;
/// The most usage records that are written together.
const MAX_UNLOGGED: usize = 100;

/// The budget of a run and its usage records.
pub(crate) struct RunSpending {
    budget: Budget,
    /// Usage records that are not written yet.
    unlogged: Vec<UsageRecord>,
    /// The budget setting that cut off the newest answer.
    cut_by: Option<String>,
}

/// What a call of a model used.
pub(crate) struct CallUsage {
    pub(crate) purpose: Purpose,
    pub(crate) model: String,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Usd>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) ms: Option<u64>,
}

impl RunSpending {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            unlogged: Vec::new(),
            cut_by: None,
        }
    }

    /// The budget of the run.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Reserves the most that `request` can cost, and shortens the answer that it asks for if less
    /// is left.
    pub(crate) async fn reserve(
        &self,
        journal: &mut RunJournal<'_>,
        conversation: &Conversation,
        request: &mut Request,
    ) -> Result<Reservation, RunStop> {
        if !self.budget.is_limited() {
            return Ok(self.budget.reserve(CallEstimate::FREE).await?);
        }
        let estimate = estimate(journal, conversation, request);
        let reservation = self.budget.reserve(estimate).await?;
        request.params.max_output_tokens = reservation.answer_tokens();
        if let (Some(setting), Some(tokens)) =
            (reservation.shortened_by(), reservation.answer_tokens())
        {
            journal.warn(format!(
                "this answer may have {tokens} tokens at most: more is not left ({setting})"
            ));
        }
        Ok(reservation)
    }

    /// Remembers whether the budget cut off an answer that ended with `stop`.
    pub(crate) fn note_cut(&mut self, reservation: &Reservation, stop: &StopReason) {
        self.cut_by = reservation
            .shortened_by()
            .filter(|_| *stop == StopReason::MaxTokens);
    }

    /// Returns how the run ends if the budget cut off the newest answer.
    pub(crate) fn take_cut_outcome(&mut self) -> Option<(RunOutcome, Option<String>)> {
        let setting = self.cut_by.take()?;
        let reason = format!("the answer was cut off: the budget is used up ({setting})");
        Some((RunOutcome::Budget, Some(reason)))
    }

    /// Logs the usage of a call: at once if that is one small write to a file, with others if each
    /// write is a query of a store.
    pub(crate) async fn log(&mut self, journal: &mut RunJournal<'_>, used: CallUsage) {
        let session = journal.session();
        let user = &session.owner().user;
        let record = UsageRecord::new(user, session.id(), used.purpose, used.model);
        let record = match &journal.state().run {
            Some(run) => record.for_run(&run.id),
            None => record,
        };
        self.unlogged.push(UsageRecord {
            at: used.at.unwrap_or(record.at),
            ms: used.ms,
            ..record.with_usage(used.usage, used.cost)
        });
        match journal.agent().place().kind() {
            PlaceKind::Store if self.unlogged.len() < MAX_UNLOGGED => {}
            PlaceKind::Store | PlaceKind::Local => self.write_log(journal).await,
        }
    }

    /// Writes the usage records. The journal has them too, so a failure loses nothing.
    pub(crate) async fn write_log(&mut self, journal: &mut RunJournal<'_>) {
        let records = std::mem::take(&mut self.unlogged);
        if records.is_empty() {
            return;
        }
        let usage = journal.agent().usage(journal.session().owner());
        if let Err(error) = usage.append(&records).await {
            journal.warn(format!(
                "the usage of this call was not written down: {error}; it can be rebuilt from the journals"
            ));
        }
    }
}

/// Warns if the cost of a call could not be taken from the budget.
pub(crate) fn warn_if_unsettled(journal: &mut RunJournal<'_>, settled: Result<(), StoreError>) {
    if let Err(error) = settled {
        journal.warn(format!(
            "what this call cost could not be taken from the budget: {error}"
        ));
    }
}

/// Returns the most that `request` can use.
fn estimate(
    journal: &RunJournal<'_>,
    conversation: &Conversation,
    request: &Request,
) -> CallEstimate {
    let agent = journal.agent();
    let input_tokens = journal.state().used_tokens(conversation.head_tokens());
    let known = agent
        .model_limits
        .longest_answer()
        .map(|longest| longest.min(MAX_RESERVED_ANSWER_TOKENS));
    let wanted = request
        .params
        .max_output_tokens
        .map(u64::from)
        .or(known)
        .unwrap_or(DEFAULT_ANSWER_TOKENS);
    // An answer must fit into the window beside the request.
    let window = journal.session().window();
    let room = window.map_or(u64::MAX, |window| window.saturating_sub(input_tokens));
    CallEstimate {
        input_tokens,
        answer_tokens: wanted.min(room.max(MIN_ANSWER_TOKENS)),
        thinking_tokens: request.params.thinking_tokens.map_or(0, u64::from),
        price: Pricing::new(&agent.parts)
            .highest()
            .map(|price| conversation.most_expensive_caching().price(price)),
    }
}
