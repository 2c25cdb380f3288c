//! The tool calls of one step: each is admitted by the gate, executed, and recorded.
//!
//! Effects: the clock, randomness, workspace files (writes), the local disk (reads), the store
//! (writes), the journal (writes), hooks, tools.

use super::conversation::Conversation;
use super::journal::RunJournal;
use super::nested::{EndedCall, NestedWork};
use super::signals::RunSignals;
use super::stop::RunStop;
use crate::admission::{Admission, AdmittedCall};
use crate::hooks::{BeforeToolOutcome, RunHooks};
use crate::session::RunFiles;
use futures_util::StreamExt;
use stead_core::{
    CallIntent, CallState, Entry, NestedCall, PendingCall, ResultStatus, Risk, RunId, ToolEffect,
    args_hash,
};
use tokio::sync::mpsc;

/// The most messages of running calls that wait: pieces of output, of which more are left out, and
/// nested calls, of which more wait longer.
const MAX_WAITING_MESSAGES: usize = 64;
/// The result of a call that was not begun because of a steering message.
pub(super) const SKIPPED_TEXT: &str =
    "skipped: the person sent a new message before this call was begun; it had no effect.";

/// Carries out tool calls with the parts of a run.
pub(crate) struct ToolCaller<'s, 'a> {
    pub(crate) journal: &'s mut RunJournal<'a>,
    pub(crate) hooks: Option<&'s mut RunHooks>,
    pub(crate) conversation: &'s Conversation,
    pub(crate) files: &'s RunFiles,
    pub(crate) signals: &'s RunSignals,
}

/// Whether a person is asked about a nested call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NestedQuestion {
    Asked,
    None,
}

impl ToolCaller<'_, '_> {
    /// Admits the calls and runs those that are allowed: neighbours that are parallel-safe together,
    /// all others alone, in the model's order.
    pub(crate) async fn run_tools(&mut self, calls: Vec<PendingCall>) -> Result<(), RunStop> {
        let mut batch: Vec<AdmittedCall> = Vec::new();
        let mut asked_before = false;
        let calls = self.refuse_excess(calls).await?;
        for pending in calls {
            if self.signals.has_steering() {
                self.run_batch(std::mem::take(&mut batch)).await?;
                if self.skip_pending(&pending).await? {
                    continue;
                }
            }
            // A person decides on the files as they are: nothing that changes files runs between a
            // question and its answer.
            if asked_before && self.would_change(pending.clone()).await {
                continue;
            }
            let mut pending = pending;
            if let Some(hooks) = &mut self.hooks {
                let call = pending.call.clone();
                let asked = hooks.before_tool(self.journal, self.conversation, pending, None);
                match asked.await? {
                    BeforeToolOutcome::Continue(changed) => pending = *changed,
                    BeforeToolOutcome::Deny(text) => {
                        self.refuse(&call, None, ResultStatus::Denied, text).await?;
                        continue;
                    }
                }
            }
            let call = pending.call.clone();
            match self.admit(pending).await {
                Admission::Run(admitted) if admitted.prepared.spec().risk.parallel_safe => {
                    batch.push(*admitted);
                }
                Admission::Run(admitted) => {
                    let before = self.run_batch(std::mem::take(&mut batch)).await?;
                    let alone = match before {
                        NestedQuestion::None => self.run_batch(vec![*admitted]).await?,
                        // It waits for the answer, like every call that was not begun.
                        NestedQuestion::Asked => NestedQuestion::Asked,
                    };
                    asked_before |= alone == NestedQuestion::Asked;
                }
                Admission::Ask(ask) => {
                    asked_before = true;
                    self.record_ask(call, None, *ask).await?;
                }
                Admission::Respond(text) => self.record_response(call, None, text).await?,
                Admission::Refuse(status, text) => self.refuse(&call, None, status, text).await?,
            }
        }
        self.run_batch(batch).await.map(drop)
    }

    /// Whether a call would run now and is not safe to repeat.
    async fn would_change(&self, pending: PendingCall) -> bool {
        match self.admit(pending).await {
            Admission::Run(admitted) => !is_safe_to_repeat(admitted.prepared.spec().risk),
            Admission::Ask(_) | Admission::Respond(_) | Admission::Refuse(..) => false,
        }
    }

    /// Records the intents, runs the calls and those that they make, and records each result as it
    /// arrives. A failing call does not affect the others. No call of the model is begun after a
    /// steering message.
    async fn run_batch(&mut self, batch: Vec<AdmittedCall>) -> Result<NestedQuestion, RunStop> {
        if batch.is_empty() {
            return Ok(NestedQuestion::None);
        }
        self.signals.check()?;
        if self.signals.has_steering() {
            self.skip_admitted(&batch).await?;
            return Ok(NestedQuestion::None);
        }
        let run = self.journal.run();
        let intents: Vec<Entry> = batch
            .iter()
            .filter(|admitted| !is_safe_to_repeat(admitted.prepared.spec().risk))
            .map(|admitted| Entry::Call(intent(run, admitted, None)))
            .collect();
        if !intents.is_empty() {
            self.journal.record(intents).await?;
        }
        let (to_loop, mut from_calls) = mpsc::channel(MAX_WAITING_MESSAGES);
        let mut calls = Vec::with_capacity(batch.len());
        for admitted in batch {
            let cancel = self.signals.cancel().clone();
            calls.push(self.begin((admitted, None), cancel, &to_loop));
        }
        let mut calls = futures_util::stream::iter(calls).buffer_unordered(self.width());
        let mut work = NestedWork::default();
        let mut all_ended = false;
        while !all_ended || !work.is_idle() {
            let ended = tokio::select! {
                biased;
                Some(message) = from_calls.recv() => {
                    self.take_message(&mut work, message, &to_loop).await?;
                    continue;
                }
                ended = work.next_end() => ended,
                ended = calls.next(), if !all_ended => match ended {
                    Some(end) => EndedCall { end, answer: None },
                    None => {
                        all_ended = true;
                        continue;
                    }
                },
            };
            while let Ok(message) = from_calls.try_recv() {
                self.take_message(&mut work, message, &to_loop).await?;
            }
            match ended {
                // A call that could not make others.
                EndedCall {
                    end: Ok(finished),
                    answer: None,
                } if finished.link.is_none() => {
                    let stop = self.finish(finished).await?;
                    work.stop = work.stop.take().or(stop);
                }
                ended => self.take_end(&mut work, ended, &to_loop).await?,
            }
        }
        match work.stop {
            Some(stop) => Err(stop),
            None if work.has_asked => Ok(NestedQuestion::Asked),
            None => Ok(NestedQuestion::None),
        }
    }

    /// The most calls that run at the same time.
    pub(super) fn width(&self) -> usize {
        let policy = self.journal.agent().policy();
        (policy.parallel_tool_calls as usize).max(1)
    }
}

/// Whether the intent of a call is on record.
pub(super) fn is_begun(pending: &PendingCall) -> bool {
    matches!(pending.state, CallState::Begun { .. })
}

/// Returns the intent of a call. `nested` says what it is, if it is a nested one and no entry says it
/// yet.
pub(super) fn intent(
    run: &RunId,
    admitted: &AdmittedCall,
    nested: Option<NestedCall>,
) -> CallIntent {
    let spec = admitted.prepared.spec();
    CallIntent {
        run: run.clone(),
        id: admitted.call.id.clone(),
        tool: spec.name.clone(),
        args_hash: args_hash(&admitted.call.args),
        changes: has_side_effects(spec.risk),
        repeatable: spec.risk.repeatable,
        nested,
    }
}

fn has_side_effects(risk: Risk) -> bool {
    risk.effect > ToolEffect::Reads
}

/// Whether a call can be repeated without harm if the process dies during it. Its intent is then
/// recorded together with its result, in one write.
pub(super) fn is_safe_to_repeat(risk: Risk) -> bool {
    !has_side_effects(risk) && risk.repeatable
}
