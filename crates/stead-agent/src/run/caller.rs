//! The tool calls of one step: each is admitted by the gate, executed, and recorded.
//!
//! Effects: workspace files (writes), the journal (appends), hooks, tools, what it is given.

use super::call_records::{file_name, parent_of};
use super::conversation::Conversation;
use super::execution::execute;
use super::journal::RunJournal;
use super::nested::{CallLink, CallTokens, EndedCall, FromCall, NestedWork, StoppedCall};
use super::signals::RunSignals;
use super::stop::RunStop;
use crate::admission::{Admission, AdmittedCall, CallGate};
use crate::hooks::{BeforeTool, HookResults, RunHooks};
use crate::session::{RunFiles, session_view};
use crate::taint::CallTaint;
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{
    Block, CallIntent, CallResult, CallState, Entry, EventKind, NestedCall, NestedId, PendingCall,
    ResultStatus, Risk, RunId, ToolEffect, args_hash,
};
use stead_tools::{
    CallOrigin, NestedCallError, NestedCalls, OutputLength, SpillFactory, Surface, ToolCx,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

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

/// A call that has run.
pub(super) struct FinishedCall {
    /// The canonical name of its tool.
    pub(super) tool: String,
    /// Its link, which has its intent if that is recorded together with the result.
    pub(super) link: Option<Arc<CallLink>>,
    pub(super) length: OutputLength,
    pub(super) result: CallResult,
    /// What was known about its trust before it ran.
    pub(super) taint: CallTaint,
    pub(super) hook_results: HookResults,
    /// Why the run must end.
    pub(super) fatal: Option<String>,
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
                    BeforeTool::Continue(changed) => pending = *changed,
                    BeforeTool::Deny(text) => {
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

    /// Puts a call to the gate.
    pub(super) async fn admit(&self, pending: PendingCall) -> Admission {
        let session = self.journal.session();
        CallGate::new(session.agent())
            .admit(
                self.conversation.callable_tools(session.state()),
                &*self.files.session,
                self.journal.run(),
                pending,
                &session.gate_context(),
            )
            .await
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

    /// Returns the execution of a call, which does not borrow the run. It is cancelled by `outer`, and
    /// so are the calls that it makes. A nested call comes with what it is, if no entry says it yet.
    pub(super) fn begin(
        &mut self,
        (mut admitted, nested): (AdmittedCall, Option<NestedCall>),
        outer: CancellationToken,
        to_loop: &mpsc::Sender<FromCall>,
    ) -> impl Future<Output = Result<FinishedCall, StoppedCall>> + use<> {
        let spec = admitted.prepared.spec();
        let tool = spec.name.clone();
        let length = spec.length;
        let id = admitted.call.id.clone();
        self.journal.emit(EventKind::ToolStarted {
            id: id.clone(),
            name: tool.clone(),
            args: admitted.prepared.args().clone(),
            parent: parent_of(&id),
        });
        let run = self.journal.run().clone();
        let own = outer.child_token();
        let known = self.pending(&id);
        let is_begun = known.is_some_and(is_begun);
        let made_calls = known.is_some_and(|known| !known.nesting.calls.is_empty());
        // A nested call is part of one that was begun.
        let can_be_skipped = NestedId::parse(&id).is_none() && !made_calls;
        let (link, calls) = match spec.risk.repeatable {
            true => {
                let intent = (is_safe_to_repeat(spec.risk) && !is_begun)
                    .then(|| intent(&run, &admitted, nested));
                let own = own.clone();
                let cancel = CallTokens { outer, own };
                let link = CallLink::new(id.clone(), to_loop.clone(), cancel, intent);
                let link = Arc::new(link);
                (Some(link.clone()), NestedCalls::new(link))
            }
            false => {
                let tool = tool.clone();
                let why = NestedCallError::NotRepeatable { tool };
                (None, NestedCalls::refused(why))
            }
        };
        let cx = ToolCx {
            calls,
            ..self.tool_cx(id, own.clone(), to_loop)
        };
        let policy = self.journal.agent().policy();
        let usual_limit = Duration::from_secs(policy.tool_timeout_seconds);
        let limit = admitted.prepared.plan().timeout().unwrap_or(usual_limit);
        let hooks = self.hooks.as_ref();
        let after =
            hooks.map(|hooks| hooks.after_tool(self.journal, self.conversation, &admitted.call));
        let signals = self.signals.clone();
        let taint = std::mem::take(&mut admitted.taint);
        async move {
            // The call may have waited for others of the batch.
            if can_be_skipped && signals.has_steering() {
                let text = vec![Block::text(SKIPPED_TEXT)];
                let result = CallResult::new(run, &admitted.call.id, ResultStatus::Skipped, text);
                return Ok(FinishedCall {
                    tool,
                    link: None,
                    length,
                    result,
                    taint,
                    hook_results: HookResults::default(),
                    fatal: None,
                });
            }
            let work = execute(run, admitted, cx, &signals, limit);
            let (result, fatal) = match &link {
                Some(link) => tokio::select! {
                    biased;
                    () = link.stopped() => {
                        own.cancel();
                        return Err(StoppedCall(link.clone()));
                    }
                    done = work => done,
                },
                None => work.await,
            };
            let (result, hook_results) = match after {
                Some(after) => after.run(result).await,
                None => (result, HookResults::default()),
            };
            Ok(FinishedCall {
                tool,
                link,
                length,
                result,
                taint,
                hook_results,
                fatal,
            })
        }
    }

    /// Records the result of a call. Returns why the run must end, if it must.
    pub(super) async fn finish(
        &mut self,
        finished: FinishedCall,
    ) -> Result<Option<RunStop>, RunStop> {
        let mut result = finished.result;
        let settled = finished
            .taint
            .settle(self.journal.session(), &*self.files.session, &mut result)
            .await;
        let mut hook_stop = None;
        if let Some(hooks) = &mut self.hooks {
            hook_stop = hooks
                .add_to_result(self.journal, finished.hook_results, &mut result)
                .await?;
        }
        result.content = self
            .offload(&result.id, finished.length, result.content)
            .await;
        if NestedId::parse(&result.id).is_some() {
            // Its content does not become part of the conversation.
            result.activates = None;
        }
        let intent = finished.link.and_then(|link| link.take_intent());
        self.record_result(&finished.tool, intent, result).await?;
        // The result is on record; a run that cannot keep track of trust does not go on.
        settled?;
        Ok(finished.fatal.map(RunStop::Tool).or(hook_stop))
    }

    /// The context of a call of a tool that cannot call others.
    fn tool_cx(
        &self,
        call: String,
        cancel: CancellationToken,
        to_loop: &mpsc::Sender<FromCall>,
    ) -> ToolCx {
        let session = self.journal.session();
        let (file_versions, active_skills) = session.tool_memory();
        ToolCx {
            vfs: self.files.tools.clone(),
            file_versions,
            active_skills,
            cancel,
            spills: self.spills(&call, to_loop),
            origin: CallOrigin {
                session: session.id().clone(),
                seq: session.state().seq,
                call,
                tainted_by: session.taint().map(|taint| taint.seq),
            },
            session: session_view(session.state()),
            surface: Surface::default(),
            calls: NestedCalls::default(),
        }
    }

    /// Where the output of a running call goes. Listeners are told of it as far as they keep up.
    fn spills(&self, call: &str, to_loop: &mpsc::Sender<FromCall>) -> SpillFactory {
        let Some(offload) = self.conversation.offload() else {
            return SpillFactory::default();
        };
        let id = call.to_owned();
        let to_loop = to_loop.clone();
        let listener = move |text| {
            let id = id.clone();
            drop(to_loop.try_send(FromCall::Output { id, text }));
        };
        offload.spills(&file_name(call), Arc::new(listener))
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
