//! One call of the model: request, stream, reply on record.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (reads), the store (writes), the journal (writes), hooks, the model.

use super::conversation::Conversation;
use super::delta_redaction::{DeltaPart, DeltaRedaction};
use super::journal::RunJournal;
use super::partial_reply::{PartialReply, Received, cut_reason};
use super::signals::RunSignals;
use super::spending::{CallUsage, RunSpending, warn_if_unsettled};
use super::stop::RunStop;
use crate::answer_schema::answer_format_prompt;
use crate::hooks::{HookedReply, RunHooks};
use crate::model_facts::Pricing;
use crate::{Purpose, Reservation};
use futures_util::StreamExt;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;
use stead_core::{Block, Entry, EventKind, MIN_ANSWER_TOKENS, ModelReply, Redactor, StopReason};
use stead_model::{Caching, Delta, ModelError, Reply, Request, SystemPart};
use stead_tools::Registry;

/// The steps in which the room for an answer shrinks.
const ROOM_STEP_TOKENS: u64 = 4_096;
/// This fraction of what is used stays free.
const ROOM_SPARE_FRACTION: u64 = 16;

/// Calls the model with the parts of a run.
pub(crate) struct ModelCaller<'s, 'a> {
    pub(crate) journal: &'s mut RunJournal<'a>,
    pub(crate) conversation: &'s mut Conversation,
    pub(crate) spending: &'s mut RunSpending,
    pub(crate) hooks: Option<&'s mut RunHooks>,
    pub(crate) signals: &'s RunSignals,
}

/// A call of the model whose reply was cut off.
struct CutCall {
    step: u32,
    begun: Instant,
    caching: Caching,
}

/// Why there is no reply, and what was received of one.
struct StreamFailure {
    stop: RunStop,
    partial: PartialReply,
}

impl ModelCaller<'_, '_> {
    /// Sends the context and records the whole reply. The cost is reserved before and settled after
    /// the reply is on record.
    pub(crate) async fn call(mut self) -> Result<(), RunStop> {
        if let Some(hooks) = &mut self.hooks {
            hooks
                .before_context_build(self.journal, self.conversation)
                .await?;
        }
        let mut request = self.conversation.request(self.journal.state()).await;
        request.params.answer_room = self.answer_room();
        self.ask_for_format(&mut request);
        if let Some(hooks) = &mut self.hooks {
            hooks
                .change_request(self.journal, self.conversation, &mut request)
                .await?;
        }
        let mut reservation = self
            .spending
            .reserve(self.journal, self.conversation, &mut request)
            .await?;
        request.fallback_requests = self.conversation.fallback_requests(&request);
        let run = self.journal.state().run.as_ref();
        let step = run.map_or(0, |run| run.steps) + 1;
        let begun = Instant::now();
        self.journal.emit(EventKind::ModelStarted { step });
        let reply = match self.read_stream(&request, &mut reservation).await {
            Ok(reply) => reply,
            Err(StreamFailure { stop, partial }) => {
                let settled = match partial.received() {
                    Received::Nothing => reservation.release().await,
                    Received::Something => reservation.charge_in_full().await,
                };
                warn_if_unsettled(self.journal, settled);
                let name = self.journal.agent().parts.model.name();
                let cut = CutCall {
                    step,
                    begun,
                    caching: request.for_model(name).params.caching,
                };
                self.keep_partial(cut, partial, &stop).await?;
                return Err(stop);
            }
        };
        let caching = request.for_model(&reply.model).params.caching;
        let parts = &self.journal.agent().parts;
        let cost = Pricing::new(parts).cost(&*parts.model, &reply, caching);
        self.spending.note_cut(&reservation, &reply.stop);
        let used = reply.usage.total_tokens();
        let context_window = self.journal.session().window();
        self.journal.emit(EventKind::ModelEnded {
            step,
            usage: reply.usage,
            cost,
            stop: reply.stop.clone(),
            context_tokens: (used > 0).then_some(used),
            context_window,
        });
        let Reply {
            mut content,
            usage,
            stop,
            model,
        } = reply;
        unwrap_calls(&mut content, self.conversation.tools_of(&model));
        let redactor = self.journal.session().redactor();
        redact_call_labels(&mut content, redactor, self.conversation.tools());
        let mut content = self.journal.state().with_unique_ids(content);
        refuse_secrets(&mut content, self.journal.session().redactor());
        let HookedReply {
            content,
            entries,
            stop: stopped,
        } = match &mut self.hooks {
            Some(hooks) => {
                hooks
                    .after_model(self.journal, &model, &stop, content)
                    .await
            }
            None => HookedReply::unchanged(content),
        };
        let reply = Entry::Model(ModelReply {
            run: self.journal.run().clone(),
            model: model.clone(),
            content,
            usage,
            cost,
            stop,
        });
        let entries = [reply].into_iter().chain(entries).collect();
        let recorded = self.journal.record(entries).await;
        // Settled even if the reply could not be recorded: the money is spent.
        let settled = reservation.settle(&usage, cost).await;
        let at = recorded?.first().map(|line| line.at);
        warn_if_unsettled(self.journal, settled);
        let used = CallUsage {
            purpose: Purpose::of_answers(self.journal.state().spawned.as_ref()),
            model,
            usage,
            cost,
            at,
            ms: u64::try_from(begun.elapsed().as_millis()).ok(),
        };
        self.spending.log(self.journal, used).await;
        stopped.map_or(Ok(()), Err)
    }

    /// Asks for an answer that conforms to the schema of the run, if it has one.
    fn ask_for_format(&self, request: &mut Request) {
        let run = self.journal.state().run.as_ref();
        let Some(schema) = run.and_then(|run| run.output_schema.as_ref()) else {
            return;
        };
        let asks = SystemPart {
            text: answer_format_prompt(schema),
            stable: true,
        };
        request.system = request.system.iter().cloned().chain([asks]).collect();
        request.params.answer_schema = Some(Arc::new(schema.clone()));
    }

    /// What the context window has left for an answer, if the window is known.
    fn answer_room(&self) -> Option<u32> {
        let window = self.journal.session().window()?;
        let used = self
            .journal
            .state()
            .used_tokens(self.conversation.head_tokens());
        Some(answer_room(window, used))
    }

    /// Records what was received of a reply that was cut off, and that it was cut off.
    async fn keep_partial(
        &mut self,
        cut: CutCall,
        partial: PartialReply,
        stop: &RunStop,
    ) -> Result<(), RunStop> {
        let Some(reason) = cut_reason(stop) else {
            return Ok(());
        };
        let parts = &self.journal.agent().parts;
        let model = parts.model.name().to_owned();
        let usage = partial.usage();
        let cost = usage.and_then(|usage| {
            let reply = Reply {
                content: Vec::new(),
                usage,
                stop: StopReason::CutOff,
                model: model.clone(),
            };
            Pricing::new(parts).cost(&*parts.model, &reply, cut.caching)
        });
        let entries = partial.into_entries(self.journal.run(), &model, cost, &reason);
        if entries.is_empty() {
            return Ok(());
        }
        let usage = usage.unwrap_or_default();
        self.journal.emit(EventKind::ModelEnded {
            step: cut.step,
            usage,
            cost,
            stop: StopReason::CutOff,
            context_tokens: None,
            context_window: self.journal.session().window(),
        });
        let recorded = self.journal.record(entries).await?;
        let used = CallUsage {
            purpose: Purpose::of_answers(self.journal.state().spawned.as_ref()),
            model,
            usage,
            cost,
            at: recorded.first().map(|line| line.at),
            ms: u64::try_from(cut.begun.elapsed().as_millis()).ok(),
        };
        self.spending.log(self.journal, used).await;
        Ok(())
    }

    /// Waits for the whole reply. Deltas go to the listener as they arrive; a reply counts only once
    /// its end was received.
    async fn read_stream(
        &mut self,
        request: &Request,
        reservation: &mut Reservation,
    ) -> Result<Reply, StreamFailure> {
        let model = self.journal.agent().parts.model.clone();
        let mut stream = model.stream(request);
        let mut partial = PartialReply::default();
        let redactor = self.journal.session().redactor().clone();
        let mut deltas = DeltaRedaction::new(redactor);
        loop {
            let next = tokio::select! {
                biased;
                halted = self.signals.wait() => Err(halted.into()),
                delta = stream.next() => delta.unwrap_or(Err(ModelError::Cut)).map_err(RunStop::from),
            };
            let delta = match next {
                Ok(delta) => delta,
                Err(stop) => return Err(StreamFailure { stop, partial }),
            };
            if let Delta::Retry { .. } = &delta
                && partial.received() == Received::Something
                && let Err(error) = reservation.reserve_retry().await
            {
                let stop = error.into();
                return Err(StreamFailure { stop, partial });
            }
            partial.add(&delta);
            let (events, reply) = match delta {
                Delta::Text(text) => (deltas.push(DeltaPart::Text, &text), None),
                Delta::Thinking(text) => (deltas.push(DeltaPart::Thinking, &text), None),
                Delta::CallArgs { index, json } => {
                    (deltas.push(DeltaPart::Args(index), &json), None)
                }
                Delta::CallStarted { index, name } => {
                    let started = EventKind::ToolCallStarted { index, name };
                    ([deltas.finish(), Some(started)], None)
                }
                Delta::Retry {
                    attempt,
                    wait_ms,
                    reason,
                } => {
                    let retry = EventKind::ModelRetry {
                        attempt,
                        wait_ms,
                        reason,
                    };
                    ([deltas.finish(), Some(retry)], None)
                }
                Delta::Usage(_) => ([None, None], None),
                Delta::Done(reply) => ([deltas.finish(), None], Some(*reply)),
            };
            for event in events.into_iter().flatten() {
                self.journal.emit(event);
            }
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
    }
}

/// Returns what a window has left for an answer. In whole steps, so that it rarely changes from
/// request to request.
fn answer_room(window: u64, used: u64) -> u32 {
    // Counts of tokens are estimates.
    let left = window.saturating_sub(used.saturating_add(used / ROOM_SPARE_FRACTION));
    let room = match left {
        ..ROOM_STEP_TOKENS => left.max(MIN_ANSWER_TOKENS),
        _ => left - left % ROOM_STEP_TOKENS,
    };
    u32::try_from(room).unwrap_or(u32::MAX)
}

/// Replaces calls that stand for calls of other tools by those. From here on nothing knows how a tool
/// was reached.
pub(super) fn unwrap_calls(content: &mut [Block], tools: &Registry) {
    for block in content {
        if let Block::ToolCall(call) = block
            && call.invalid.is_none()
        {
            let name = std::mem::take(&mut call.name);
            (call.name, call.args) = tools.unwrap_call(name, call.args.take());
        }
    }
}

/// Removes secrets from the ids and names that a model or provider chose. The id of a call with a mask in it
/// is then replaced by one of ours. The name of a tool stays even if it is somebody's password: it
/// reveals nothing, and the call must find its tool.
fn redact_call_labels(content: &mut [Block], redactor: &Redactor, tools: &Registry) {
    for block in content {
        match block {
            Block::ToolCall(call) => {
                call.id = redactor.redact_owned(std::mem::take(&mut call.id));
                if tools.find(&call.name).is_none() {
                    call.name = redactor.redact_owned(std::mem::take(&mut call.name));
                }
            }
            Block::Thinking(thinking) => {
                thinking.id = thinking.id.take().map(|id| redactor.redact_owned(id));
            }
            Block::Text { .. } | Block::Media(_) => {}
        }
    }
}

/// Marks calls that hold a secret as invalid: their arguments are recorded without it, and what
/// runs must be what is on record.
pub(super) fn refuse_secrets(content: &mut [Block], redactor: &Redactor) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{SessionState, Thinking, ToolCall};

    #[test]
    fn the_room_for_an_answer_is_what_the_window_has_left_in_steps() {
        for (window, used, room) in [
            (200_000, 0, 196_608),
            (200_000, 3_100, 196_608),
            (200_000, 4_000, 192_512),
            (200_000, 180_000, 8_192),
            (20_000, 17_000, 1_938),
            (8_192, 9_000, u32::try_from(MIN_ANSWER_TOKENS).unwrap()),
            (u64::MAX, 0, u32::MAX),
        ] {
            assert_eq!(answer_room(window, used), room, "{window} {used}");
        }
    }

    #[test]
    fn ids_and_names_of_calls_hold_no_secret() {
        let redactor = Redactor::new(["s3cret-key".to_owned()]);
        let tools = Registry::new([]).unwrap();
        let call = |id: &str, name: &str| {
            Block::ToolCall(ToolCall {
                id: id.to_owned(),
                name: name.to_owned(),
                args: serde_json::json!({}),
                invalid: None,
                signature: None,
            })
        };
        let thinking = |id: &str| {
            Block::Thinking(Thinking {
                id: Some(id.to_owned()),
                ..Thinking::default()
            })
        };
        let mut content = vec![
            thinking("rs_s3cret-key"),
            call("s3cret-key", "a_s3cret-key"),
            call("x-s3cret-key", "b"),
            call("mine", "c"),
        ];
        redact_call_labels(&mut content, &redactor, &tools);
        assert_eq!(
            SessionState::default().with_unique_ids(content),
            [
                thinking("rs_[redacted]"),
                call("call_1", "a_[redacted]"),
                call("call_2", "b"),
                call("mine", "c")
            ]
        );
    }
}
