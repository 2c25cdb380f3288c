//! Requesting a summary of older messages from a model, for a compaction.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (reads), the store (writes), the model.

use super::{
    Compactor, GeneratedSummary, PlannedCompaction, SummaryUsage, digest, prompt, transcript,
};
use crate::metered_model::{MeteredError, MeteredModel, MeteredReply};
use crate::model_facts::UNKNOWN_SIDE_WINDOW_TOKENS;
use crate::run::RunStop;
use crate::{Budget, Session};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    CallEstimate, CompactionCause, ContextBudget, ContextView, Message, TurnMessage, Usd,
    message_tokens, text_tokens,
};
use stead_model::{Model, ModelError, Params, Request, SystemPart, ToolChoice};

/// The tokens that are left for the request and the summary itself.
const RESERVED_TOKENS: u64 = 3_000;
/// The output tokens reserved for a summary.
const SUMMARY_TOKENS: u64 = 4_096;
/// The smallest piece of a conversation that is summarised by itself, in tokens.
const MIN_PIECE_TOKENS: u64 = 1_000;

impl Compactor<'_, '_> {
    /// Returns a summary of what `view` covers, or a digest if no model gives one.
    pub(super) async fn summarise(
        &mut self,
        planned: &PlannedCompaction,
        view: &ContextView,
    ) -> Result<GeneratedSummary, RunStop> {
        let settings = self.settings();
        let limit = Duration::from_secs(settings.timeout_seconds);
        let instructions = prompt::request(settings.prompt.as_deref(), planned.focus.as_deref());
        let request = self.conversation.request(self.journal.state()).await;
        let state = self.journal.state();
        let covered = state.turns.partition_point(|turn| turn.seq <= view.covers);
        let budget = &planned.budget;
        let summariser = Summariser {
            session: self.journal.session(),
            request,
            budget: self.spending.budget().clone(),
        };
        let reply = tokio::select! {
            biased;
            halted = self.signals.wait() => return Err(halted.into()),
            reply = tokio::time::timeout(
                limit,
                summariser.ask(covered, budget, planned.cause, &instructions),
            ) => reply,
        };
        let turns = &state.turns[..covered];
        let failure = match reply {
            Ok(Ok((text, usage))) => {
                let text = prompt::complete_sections(&text, &digest::changed_files(turns));
                // The summary must be shorter than what it replaces.
                let max_bytes = (budget.limit_tokens / 4).max(MIN_PIECE_TOKENS) as usize * 3;
                return Ok(GeneratedSummary {
                    text: transcript::truncate_middle(&text, max_bytes),
                    written_by: Some(usage),
                    fallback: None,
                });
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!(
                "no answer within {} s (compaction.timeout_seconds)",
                limit.as_secs()
            ),
        };
        let earlier = state.view().and_then(|view| view.summary.as_deref());
        let since = state.view().map_or(0, |view| view.covers);
        let fresh = turns.partition_point(|turn| turn.seq <= since);
        Ok(GeneratedSummary {
            text: digest::digest(&turns[fresh..], earlier),
            written_by: None,
            fallback: Some(failure),
        })
    }
}

/// Asks a model for a summary.
struct Summariser<'a> {
    session: &'a Session,
    /// The next request of the conversation.
    request: Request,
    budget: Budget,
}

impl Summariser<'_> {
    /// Asks in the context of the conversation if it fits, or else about the conversation as text.
    async fn ask(
        &self,
        covered: usize,
        context: &ContextBudget,
        cause: CompactionCause,
        instructions: &str,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = self.session.agent();
        let window = self.session.window().unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS);
        let size =
            self.session.state().used_tokens(context.prompt_tokens) + text_tokens(instructions);
        if agent.parts.summary_model.is_none()
            && size + RESERVED_TOKENS <= window
            && cause != CompactionCause::Overflow
        {
            match self.ask_in_context(instructions, size).await {
                Ok(answer) => return Ok(answer),
                // It may have called a tool, or found the request too long after all.
                Err(ModelError::Protocol(_) | ModelError::ContextOverflow(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.summarise_in_pieces(covered, instructions).await
    }

    /// Asks with one more message at the end of the conversation: the provider has nearly all of it
    /// in its cache.
    async fn ask_in_context(
        &self,
        instructions: &str,
        size: u64,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = self.session.agent();
        let mut request = self.request.clone();
        request.messages.push(Arc::new(Message::user(instructions)));
        let reply = self.complete(&*agent.parts.model, request, size).await?;
        summary_from_reply(reply)
    }

    /// Sends a request within the budget: the cost is reserved before and settled after.
    async fn complete(
        &self,
        model: &dyn Model,
        request: Request,
        size: u64,
    ) -> Result<MeteredReply, ModelError> {
        let estimate = CallEstimate {
            input_tokens: size,
            answer_tokens: SUMMARY_TOKENS,
            thinking_tokens: request.params.thinking_tokens.map_or(0, u64::from),
            price: None,
        };
        let metered = MeteredModel::new(&self.session.agent().parts, model, &self.budget);
        let answer = metered.complete(request, estimate).await;
        answer.map_err(|error| match error {
            MeteredError::Model(error) => error,
            MeteredError::Budget(_) | MeteredError::TimedOut(_) => {
                ModelError::Quota(error.to_string())
            }
        })
    }

    /// Asks about the conversation as text, piece by piece, each time with the summary so far. If a
    /// piece is too long for the model, the pieces are halved.
    async fn summarise_in_pieces(
        &self,
        covered: usize,
        instructions: &str,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = self.session.agent();
        let model = agent
            .parts
            .summary_model
            .as_ref()
            .unwrap_or(&agent.parts.model);
        let state = self.session.state();
        let since = state.view().map_or(0, |view| view.covers);
        let fresh = state.turns[..covered].partition_point(|turn| turn.seq <= since);
        let mut left: &[TurnMessage] = &state.turns[fresh..covered];
        let window = if agent.parts.summary_model.is_some() {
            model.facts().context_window
        } else {
            self.session.window()
        };
        let mut piece_tokens = (window.unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS) / 2)
            .saturating_sub(RESERVED_TOKENS)
            .max(MIN_PIECE_TOKENS);
        let mut so_far = state.view().and_then(|view| view.summary.clone());
        let mut total: Option<SummaryUsage> = None;
        while !left.is_empty() {
            let piece = transcript::split_into_pieces(left, piece_tokens)
                .into_iter()
                .next()
                .unwrap_or_default();
            let mut request = standalone_request(instructions, so_far.as_deref(), &piece);
            request.params.max_output_tokens = self.answer_limit(window);
            let size = request
                .messages
                .iter()
                .map(|message| message_tokens(message))
                .sum();
            let reply = self.complete(&**model, request, size).await;
            match reply.and_then(summary_from_reply) {
                Ok((text, asked)) => {
                    so_far = Some(text);
                    total = Some(add_usage(total, asked));
                    left = &left[turns_that_fit(left, piece_tokens)..];
                }
                Err(ModelError::ContextOverflow(_)) if piece_tokens > MIN_PIECE_TOKENS => {
                    piece_tokens = (piece_tokens / 2).max(MIN_PIECE_TOKENS)
                }
                Err(error) => return Err(error),
            }
        }
        match (so_far, total) {
            (Some(text), Some(asked)) => Ok((text, asked)),
            (_, None) | (None, _) => Err(ModelError::Protocol(
                "there was nothing to summarise".to_owned(),
            )),
        }
    }

    /// Returns the most tokens to ask for in a summary: a quarter of the window, unless the settings
    /// allow less.
    fn answer_limit(&self, window: Option<u64>) -> Option<u32> {
        let limit = (window.unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS) / 4).min(SUMMARY_TOKENS);
        let params = &self.session.agent().parts.params;
        let configured = params.max_output_tokens.map_or(limit, u64::from);
        u32::try_from(configured.min(limit)).ok()
    }
}

/// Returns the number of turns in the first piece of at most `piece_tokens` tokens.
fn turns_that_fit(turns: &[TurnMessage], piece_tokens: u64) -> usize {
    let mut sum = 0;
    let fits = turns.iter().take_while(|turn| {
        sum += text_tokens(&transcript::render_turn(turn)).min(piece_tokens);
        sum <= piece_tokens
    });
    fits.count().max(1)
}

/// Returns a request about a piece of the conversation, with its own system prompt.
fn standalone_request(instructions: &str, so_far: Option<&str>, piece: &str) -> Request {
    let earlier = so_far.map_or(String::new(), |text| {
        format!("The summary so far:\n<summary>\n{text}\n</summary>\n\n")
    });
    let text = format!(
        "{earlier}The conversation{}:\n<conversation>\n{piece}</conversation>\n\n{instructions}",
        if so_far.is_some() { " since then" } else { "" }
    );
    let system = [SystemPart {
        text: prompt::SYSTEM.to_owned(),
        stable: true,
    }];
    Request {
        system: system.into(),
        messages: vec![Arc::new(Message::user(text))],
        params: Params {
            tool_choice: ToolChoice::Auto,
            ..Params::default()
        },
        ..Request::default()
    }
}

/// Returns the text of an answer. An answer without a summary is an error.
fn summary_from_reply(answer: MeteredReply) -> Result<(String, SummaryUsage), ModelError> {
    let MeteredReply { reply, cost, .. } = answer;
    let message = Message::Assistant {
        content: reply.content,
    };
    let text = message.text();
    let has_calls = message.calls().next().is_some();
    if text.trim().is_empty() || has_calls && text.len() < 200 {
        return Err(ModelError::Protocol("the model gave no summary".to_owned()));
    }
    Ok((
        text,
        SummaryUsage {
            model: reply.model,
            usage: reply.usage,
            cost,
        },
    ))
}

/// Adds up the usage of two requests.
fn add_usage(total: Option<SummaryUsage>, more: SummaryUsage) -> SummaryUsage {
    let Some(mut total) = total else { return more };
    total.usage += more.usage;
    total.cost = match (total.cost, more.cost) {
        (Some(mut sum), Some(part)) => {
            sum += part;
            Some(sum)
        }
        (Some(_) | None, None) | (None, Some(_)) => None::<Usd>,
    };
    total
}
