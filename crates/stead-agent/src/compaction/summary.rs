//! Asking for a summary.

use super::{GeneratedSummary, SummaryUsage, digest, prompt, transcript};
use crate::active_run::{ActiveRun, RunStop};
use crate::metered_model::{MeteredError, MeteredModel, MeteredReply};
use crate::model_facts::UNKNOWN_SIDE_WINDOW_TOKENS;
use crate::{Budget, Session};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    CallEstimate, CompactionCause, ContextBudget, ContextView, Message, ToolSpec, TurnMessage, Usd,
    message_tokens, text_tokens,
};
use stead_model::{Encoded, Model, ModelError, Params, Request, SystemPart, ToolChoice};

/// Tokens to leave for the request and the summary itself.
const RESERVED_TOKENS: u64 = 3_000;
/// Tokens of a summary at most, as far as a budget is concerned.
const SUMMARY_TOKENS: u64 = 4_096;
/// A piece is never made smaller than this, in tokens.
const MIN_PIECE_TOKENS: u64 = 1_000;

impl ActiveRun<'_> {
    /// A summary of what `view` covers. If no model gives one, a digest.
    pub(super) async fn summarise(
        &mut self,
        view: &ContextView,
        room: &ContextBudget,
        cause: CompactionCause,
        focus: Option<&str>,
    ) -> Result<GeneratedSummary, RunStop> {
        let covered = self
            .session
            .state
            .turns
            .partition_point(|turn| turn.seq <= view.covers);
        let settings = self.compaction_settings();
        let limit = Duration::from_secs(settings.timeout_seconds);
        let words = prompt::request(settings.prompt.as_deref(), focus);
        let halt = self.halt.clone();
        let messages = self.messages().await;
        let session = &*self.session;
        let encoded = self.encoded.clone();
        let system = self.system.clone();
        let tools = self.tools.specs();
        let budget = self.budget.clone();
        let params = self.params.clone();
        let summariser = Summariser {
            session,
            messages,
            system,
            tools,
            params,
            encoded,
            budget,
        };
        let asked = tokio::select! {
            biased;
            halted = halt.wait() => return Err(halted.into()),
            asked = tokio::time::timeout(limit, summariser.ask(covered, room, cause, &words)) => asked,
        };
        let state = &self.session.state;
        let turns = &state.turns[..covered];
        let failed = match asked {
            Ok(Ok((text, asked))) => {
                let text = prompt::complete_sections(&text, &digest::changed_files(turns));
                // A summary that takes what it was to give is none.
                let most = (room.limit_tokens / 4).max(MIN_PIECE_TOKENS) as usize * 3;
                return Ok(GeneratedSummary {
                    text: transcript::truncate_middle(&text, most),
                    written_by: Some(asked),
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
            fallback: Some(failed),
        })
    }
}

/// What a summary is made from.
struct Summariser<'a> {
    session: &'a Session,
    /// The conversation as the model is sent it.
    messages: Vec<Arc<Message>>,
    system: Arc<[SystemPart]>,
    tools: Arc<[ToolSpec]>,
    params: Params,
    encoded: Arc<Encoded>,
    budget: Budget,
}

impl Summariser<'_> {
    async fn ask(
        &self,
        covered: usize,
        room: &ContextBudget,
        cause: CompactionCause,
        words: &str,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = &self.session.agent;
        let window = self.session.window().unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS);
        let size = self.session.state.used_tokens(room.prompt_tokens) + text_tokens(words);
        if agent.parts.summary_model.is_none()
            && size + RESERVED_TOKENS <= window
            && cause != CompactionCause::Overflow
        {
            match self.ask_in_context(words, size).await {
                Ok(answer) => return Ok(answer),
                // It may have called a tool, or found the request too long after all.
                Err(ModelError::Protocol(_) | ModelError::ContextOverflow(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.summarise_in_pieces(covered, words).await
    }

    /// The conversation as it is with one more message: a provider has nearly all of it in its
    /// cache.
    async fn ask_in_context(
        &self,
        words: &str,
        size: u64,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = &self.session.agent;
        let mut messages = self.messages.clone();
        messages.push(Arc::new(Message::user(words)));
        let request = Request {
            system: self.system.clone(),
            tools: self.tools.clone(),
            messages,
            params: self.params.clone(),
            encoded: self.encoded.clone(),
            fallback_requests: Vec::new(),
        };
        let reply = self.complete(&*agent.parts.model, request, size).await?;
        summary_from_reply(reply)
    }

    /// Asks within the budget: what a summary may cost is reserved before, and what it did cost
    /// settled after.
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
        let metered = MeteredModel::new(&self.session.agent.parts, model, &self.budget);
        let answer = metered.complete(request, estimate).await;
        answer.map_err(|error| match error {
            MeteredError::Model(error) => error,
            MeteredError::Budget(_) | MeteredError::TimedOut(_) => {
                ModelError::Quota(error.to_string())
            }
        })
    }

    /// The conversation as text, piece by piece, each with the summary so far. A piece that a model
    /// finds too long is halved.
    async fn summarise_in_pieces(
        &self,
        covered: usize,
        words: &str,
    ) -> Result<(String, SummaryUsage), ModelError> {
        let agent = &self.session.agent;
        let model = agent
            .parts
            .summary_model
            .as_ref()
            .unwrap_or(&agent.parts.model);
        let state = &self.session.state;
        let since = state.view().map_or(0, |view| view.covers);
        let fresh = state.turns[..covered].partition_point(|turn| turn.seq <= since);
        let mut left: &[TurnMessage] = &state.turns[fresh..covered];
        let window = if agent.parts.summary_model.is_some() {
            model.facts().context_window
        } else {
            self.session.window()
        };
        let mut most = (window.unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS) / 2)
            .saturating_sub(RESERVED_TOKENS)
            .max(MIN_PIECE_TOKENS);
        let mut so_far = state.view().and_then(|view| view.summary.clone());
        let mut total: Option<SummaryUsage> = None;
        while !left.is_empty() {
            let piece = transcript::split_into_pieces(left, most)
                .into_iter()
                .next()
                .unwrap_or_default();
            let mut request = standalone_request(words, so_far.as_deref(), &piece);
            let most_answer =
                (window.unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS) / 4).min(SUMMARY_TOKENS);
            let set = agent
                .parts
                .params
                .max_output_tokens
                .map_or(most_answer, u64::from);
            request.params.max_output_tokens = u32::try_from(set.min(most_answer)).ok();
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
                    left = &left[turns_that_fit(left, most)..];
                }
                Err(ModelError::ContextOverflow(_)) if most > MIN_PIECE_TOKENS => {
                    most = (most / 2).max(MIN_PIECE_TOKENS)
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
}

/// How many turns the first piece of at most `most` tokens holds.
fn turns_that_fit(turns: &[TurnMessage], most: u64) -> usize {
    let mut sum = 0;
    let fits = turns.iter().take_while(|turn| {
        sum += text_tokens(&transcript::render_turn(turn)).min(most);
        sum <= most
    });
    fits.count().max(1)
}

/// A request that stands alone.
fn standalone_request(words: &str, so_far: Option<&str>, piece: &str) -> Request {
    let earlier = so_far.map_or(String::new(), |text| {
        format!("The summary so far:\n<summary>\n{text}\n</summary>\n\n")
    });
    let text = format!(
        "{earlier}The conversation{}:\n<conversation>\n{piece}</conversation>\n\n{words}",
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

/// The words of an answer; an answer without any is an error.
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

/// The sum of two askings.
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
