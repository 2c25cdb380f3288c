//! One question to the model.

use crate::active_run::{ActiveRun, RunStop};
use crate::hooks::HookedReply;
use crate::model_facts::Pricing;
use crate::{AgentError, Purpose, Reservation, TurnSetup, UsageRecord};
use futures_util::StreamExt;
use std::borrow::Cow;
use std::time::Instant;
use stead_core::{
    Block, CallEstimate, Entry, EventKind, MIN_ANSWER_TOKENS, ModelReply, NoticeLevel, Redactor,
    RunOutcome, SpendAmount, StopReason,
};
use stead_model::{Caching, Delta, ModelError, Params, Reply, Request};
use stead_place::PlaceKind;
use stead_store::StoreError;

/// A call that holds a secret must not run: its arguments are on record without it, and what runs
/// must be what is on record.
fn refuse_secrets(content: &mut [Block], redactor: &Redactor) {
    for block in content {
        let Block::ToolCall(call) = block else {
            continue;
        };
        if matches!(redactor.redact(&call.args.to_string()), Cow::Owned(_)) {
            call.invalid = Some(
                "they hold a secret of this machine, which is never passed on; do without it"
                    .to_owned(),
            );
        }
    }
}

/// The longest answer that is reserved for where the model could give a longer one.
const MAX_RESERVED_ANSWER_TOKENS: u64 = 32_000;
/// The same where nobody knows how long its answers are.
const DEFAULT_ANSWER_TOKENS: u64 = 8_192;

/// Calls whose usage is written down together at most.
const MAX_UNLOGGED: usize = 100;

/// What hooks made of a setting, if it is not as it was before.
fn if_changed<T: PartialEq>(now: T, before: T) -> Option<T> {
    (now != before).then_some(now)
}

/// Why there is no answer, and whether a part of one had come.
struct StreamFailure {
    stop: RunStop,
    received: Received,
}

/// Whether anything of an answer has come: only then does it cost something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Received {
    Nothing,
    Something,
}

impl ActiveRun<'_> {
    /// Asks the model and records its answer; if the context turns out not to fit, once more with a
    /// smaller one.
    pub(crate) async fn call_model(&mut self) -> Result<(), RunStop> {
        match self.call_model_once().await {
            Err(RunStop::Model(ModelError::ContextOverflow(words))) => {
                let reason = "the context does not fit; it is made smaller".to_owned();
                self.emit(EventKind::ModelRetry {
                    attempt: 2,
                    wait_ms: 0,
                    reason,
                });
                self.recover_from_overflow(words).await?;
                self.call_model_once().await
            }
            other => other,
        }
    }

    /// Sends the context and records the whole answer. What it may cost is reserved before, and
    /// what it did cost is written down after it is on record.
    async fn call_model_once(&mut self) -> Result<(), RunStop> {
        self.before_context().await?;
        let step = self.session.state.run.as_ref().map_or(0, |run| run.steps) + 1;
        let mut request = Request {
            system: self.system.clone(),
            tools: self.tools.specs(),
            messages: self.messages().await,
            params: self.params.clone(),
            encoded: self.encoded.clone(),
            fallback_requests: Vec::new(),
        };
        self.apply_request_hooks(&mut request).await?;
        let mut reservation = self.reserve(&mut request).await?;
        request.fallback_requests = self.fallback_requests(&request);
        let begun = Instant::now();
        self.emit(EventKind::ModelStarted { step });
        let reply = match self.read_stream(&request, &mut reservation).await {
            Ok(reply) => reply,
            Err(StreamFailure { stop, received }) => {
                let closed = match received {
                    Received::Nothing => reservation.release().await,
                    Received::Something => reservation.charge_in_full().await,
                };
                self.warn_if_unsettled(closed);
                return Err(stop);
            }
        };
        let parts = &self.session.agent.parts;
        let caching = request.for_model(&reply.model).params.caching;
        let cost = Pricing::new(parts).cost(&*parts.model, &reply, caching);
        let Reply {
            content,
            usage,
            stop,
            model,
        } = reply;
        self.budget_cut = reservation
            .shortened_by()
            .filter(|_| stop == StopReason::MaxTokens);
        let used = usage.total_tokens();
        let context_tokens = (used > 0).then_some(used);
        let context_window = self.session.window();
        let ended = stop.clone();
        self.emit(EventKind::ModelEnded {
            step,
            usage,
            cost,
            stop: ended,
            context_tokens,
            context_window,
        });
        let mut content = self.session.state.with_unique_ids(content);
        refuse_secrets(&mut content, self.session.sessions.redactor());
        let HookedReply {
            content,
            entries,
            stop: stopped,
        } = self.after_model(&model, &stop, content).await;
        let run = self.run.clone();
        let reply = ModelReply {
            run: run.clone(),
            model: model.clone(),
            content,
            usage,
            cost,
            stop,
        };
        let recorded = self
            .record([Entry::Model(reply)].into_iter().chain(entries).collect())
            .await;
        // Also if it could not be recorded: the money is spent.
        let settled = reservation.settle(&usage, cost).await;
        let at = recorded?.first().map(|line| line.at);
        self.warn_if_unsettled(settled);
        let record = UsageRecord::new(
            self.session.user(),
            &self.session.id,
            Purpose::Answer,
            model,
        );
        let ms = u64::try_from(begun.elapsed().as_millis()).ok();
        self.log_usage(UsageRecord {
            at: at.unwrap_or(record.at),
            ms,
            ..record.for_run(&run).with_usage(usage, cost)
        })
        .await;
        stopped.map_or(Ok(()), Err)
    }

    /// Waits for the whole answer. Deltas go to the listener as they come; nothing of an answer
    /// counts before its end was seen.
    async fn read_stream(
        &mut self,
        request: &Request,
        reservation: &mut Reservation,
    ) -> Result<Reply, StreamFailure> {
        let model = self.session.agent.parts.model.clone();
        let mut stream = model.stream(request);
        let halt = self.halt.clone();
        let mut received = Received::Nothing;
        loop {
            let next = tokio::select! {
                biased;
                halted = halt.wait() => Err(halted.into()),
                delta = stream.next() => delta.unwrap_or(Err(ModelError::Cut)).map_err(RunStop::from),
            };
            let delta = next.map_err(|stop| StreamFailure { stop, received })?;
            if let Delta::Retry { .. } = &delta {
                if received == Received::Something {
                    reservation
                        .reserve_retry()
                        .await
                        .map_err(|error| StreamFailure {
                            stop: error.into(),
                            received,
                        })?;
                }
                received = Received::Nothing;
            } else {
                received = Received::Something;
            }
            match delta {
                Delta::Text(text) => self.emit(EventKind::TextDelta { text }),
                Delta::Thinking(text) => self.emit(EventKind::ThinkingDelta { text }),
                Delta::CallStarted { index, name } => {
                    self.emit(EventKind::ToolCallStarted { index, name })
                }
                Delta::CallArgs { index, json } => {
                    self.emit(EventKind::ToolArgsDelta { index, json })
                }
                Delta::Retry {
                    attempt,
                    wait_ms,
                    reason,
                } => {
                    self.emit(EventKind::ModelRetry {
                        attempt,
                        wait_ms,
                        reason,
                    });
                }
                Delta::Done(reply) => return Ok(*reply),
            }
        }
    }

    /// Reserves the most that a request can come to, and shortens the answer it asks for where it
    /// must.
    async fn reserve(&mut self, request: &mut Request) -> Result<Reservation, RunStop> {
        if !self.budget.is_limited() {
            return Ok(self.budget.reserve(CallEstimate::FREE).await?);
        }
        let agent = &self.session.agent;
        let input_tokens = self.session.state.used_tokens(self.head_tokens());
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
        // What does not fit beside the request cannot be answered either.
        let room = self
            .session
            .window()
            .map_or(u64::MAX, |window| window.saturating_sub(input_tokens));
        let estimate = CallEstimate {
            input_tokens,
            answer_tokens: wanted.min(room.max(MIN_ANSWER_TOKENS)),
            thinking_tokens: request.params.thinking_tokens.map_or(0, u64::from),
            price: Pricing::new(&agent.parts)
                .highest()
                .map(|price| self.most_expensive_caching().price(price)),
        };
        let reservation = self.budget.reserve(estimate).await?;
        request.params.max_output_tokens = reservation.answer_tokens();
        if let (Some(setting), Some(tokens)) =
            (reservation.shortened_by(), reservation.answer_tokens())
        {
            let text = format!(
                "this answer may have {tokens} tokens at most: more is not left ({setting})"
            );
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
        Ok(reservation)
    }

    /// The request as others are asked it who may answer in the model's place, where their profiles
    /// differ.
    fn fallback_requests(&self, request: &Request) -> Vec<(String, Request)> {
        // What hooks added stands behind what the turn began with.
        let added = &request.system[self.system.len().min(request.system.len())..];
        let of = |(name, turn): &(String, TurnSetup)| {
            let system = turn
                .prompt
                .parts()
                .into_iter()
                .chain(added.iter().cloned())
                .collect();
            let asked = &request.params;
            let before = &self.params;
            let own = &turn.params;
            let params = Params {
                max_output_tokens: asked.max_output_tokens,
                temperature: if_changed(asked.temperature, before.temperature)
                    .unwrap_or(own.temperature),
                thinking_tokens: if_changed(asked.thinking_tokens, before.thinking_tokens)
                    .unwrap_or(own.thinking_tokens),
                ..own.clone()
            };
            let tools = turn.tools.specs();
            let messages = request.messages.clone();
            (
                name.clone(),
                Request {
                    system,
                    tools,
                    messages,
                    params,
                    ..Request::default()
                },
            )
        };
        self.fallback_setups.iter().map(of).collect()
    }

    /// The caching that costs most, of all who may answer.
    fn most_expensive_caching(&self) -> Caching {
        let all = self
            .fallback_setups
            .iter()
            .map(|(_, turn)| turn.params.caching)
            .chain([self.params.caching]);
        all.max().unwrap_or_default()
    }

    /// Opens the run's budget, after what a person added to it is on record.
    pub(crate) async fn open_budget(&mut self, raise: SpendAmount) -> Result<(), AgentError> {
        self.session.raise_day(raise).await?;
        self.budget = match &self.options.budget {
            Some(budget) => budget.clone(),
            None => self.session.budget().await?,
        };
        Ok(())
    }

    /// How the run ends if its budget cut the last answer off.
    pub(crate) fn budget_cut_outcome(&mut self) -> Option<(RunOutcome, Option<String>)> {
        let setting = self.budget_cut.take()?;
        let reason = format!(
            "the answer was cut off: the budget is used up ({setting}); --raise adds to it"
        );
        Some((RunOutcome::Budget, Some(reason)))
    }

    /// Sees to it that what a call used is written down: at once where that is one small write to a
    /// file, at the end of the run where it is a question to a store.
    pub(crate) async fn log_usage(&mut self, record: UsageRecord) {
        self.unlogged_usage.push(record);
        match self.session.agent.place().kind() {
            PlaceKind::Store if self.unlogged_usage.len() < MAX_UNLOGGED => {}
            PlaceKind::Store | PlaceKind::Local => self.write_usage().await,
        }
    }

    /// Writes down what was used. The journal has it, so that a failure loses nothing.
    pub(crate) async fn write_usage(&mut self) {
        let records = std::mem::take(&mut self.unlogged_usage);
        if records.is_empty() {
            return;
        }
        let agent = self.session.agent.clone();
        if let Err(error) = agent.usage(&self.session.owner).append(&records).await {
            let text = format!(
                "the usage of this call was not written down: {error}; `stead usage --rebuild` does it"
            );
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
    }

    fn warn_if_unsettled(&mut self, settled: Result<(), StoreError>) {
        if let Err(error) = settled {
            let text = format!("what this call cost could not be taken from the budget: {error}");
            self.emit(EventKind::Notice {
                level: NoticeLevel::Warning,
                text,
            });
        }
    }
}
