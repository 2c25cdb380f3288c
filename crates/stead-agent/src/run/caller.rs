//! The tool calls of one step: each is admitted by the gate, executed, and recorded.

use super::conversation::Conversation;
use super::execution::execute;
use super::journal::RunJournal;
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
    Ask, AskTerms, Block, CallIntent, CallResult, CallState, Entry, EventKind, PendingCall,
    ResultStatus, Risk, RunId, ToolCall, ToolEffect, args_hash,
};
use stead_tools::{CallOrigin, OutputLength, SpillFactory, Surface, ToolCx};
use tokio::sync::mpsc;

/// The most pieces of output that wait for the listener; more are left out.
const MAX_WAITING_DELTAS: usize = 64;
/// The most characters of a result that an event shows.
const PREVIEW_CHARS: usize = 400;
/// The result of a call that was not begun because of a steering message.
const SKIPPED_TEXT: &str =
    "skipped: the person sent a new message before this call was begun; it had no effect.";

/// Carries out tool calls with the parts of a run.
pub(crate) struct Caller<'s, 'a> {
    pub(crate) journal: &'s mut RunJournal<'a>,
    pub(crate) hooks: Option<&'s mut RunHooks>,
    pub(crate) conversation: &'s Conversation,
    pub(crate) files: &'s RunFiles,
    pub(crate) signals: &'s RunSignals,
}

/// A call that has run.
struct FinishedCall {
    /// The canonical name of its tool.
    tool: String,
    /// The intent, if it is recorded together with the result.
    intent: Option<Entry>,
    length: OutputLength,
    result: CallResult,
    /// What was known about its trust before it ran.
    taint: CallTaint,
    hook_results: HookResults,
    /// Why the run must end.
    fatal: Option<String>,
}

impl Caller<'_, '_> {
    /// Admits the calls and runs those that are allowed: neighbours that are parallel-safe together,
    /// all others alone, in the model's order.
    pub(crate) async fn run_tools(&mut self, calls: Vec<PendingCall>) -> Result<(), RunStop> {
        let mut batch: Vec<AdmittedCall> = Vec::new();
        let mut asked_before = false;
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
                let asked = hooks.before_tool(self.journal, self.conversation, pending);
                match asked.await? {
                    BeforeTool::Continue(changed) => pending = *changed,
                    BeforeTool::Deny(text) => {
                        self.refuse(&call, ResultStatus::Denied, text).await?;
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
                    self.run_batch(std::mem::take(&mut batch)).await?;
                    self.run_batch(vec![*admitted]).await?;
                }
                Admission::Ask(ask) => {
                    asked_before = true;
                    self.record_ask(call, *ask).await?;
                }
                Admission::Respond(text) => self.record_response(call, text).await?,
                Admission::Refuse(status, text) => self.refuse(&call, status, text).await?,
            }
        }
        self.run_batch(batch).await
    }

    /// Puts a call to the gate.
    async fn admit(&self, pending: PendingCall) -> Admission {
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

    /// Records that a call waits for a person.
    async fn record_ask(&mut self, call: ToolCall, ask: Ask) -> Result<(), RunStop> {
        for line in self.journal.record(vec![Entry::Ask(ask)]).await? {
            let Entry::Ask(Ask {
                id, rule, terms, ..
            }) = line.entry
            else {
                continue;
            };
            let decisions = terms.allowed().to_vec();
            let AskTerms {
                expires, preview, ..
            } = terms;
            self.journal.emit(EventKind::Ask {
                id,
                name: call.name.clone(),
                args: call.args.clone(),
                rule,
                decisions,
                expires,
                preview,
            });
        }
        Ok(())
    }

    /// Records the result that a person or client gave in place of the call.
    async fn record_response(&mut self, call: ToolCall, text: String) -> Result<(), RunStop> {
        let session = self.journal.session();
        let tools = self.conversation.callable_tools(session.state());
        let mut result = self.result(&call.id, ResultStatus::Ok, text);
        result.add_taint(CallGate::new(session.agent()).response_taint(tools, &call));
        result.content = self
            .conversation
            .offload_result(
                &call.id,
                OutputLength::Any,
                result.content,
                session.window(),
            )
            .await;
        self.emit_started(&call);
        self.record_result(&call.name, None, result).await
    }

    /// Records that a call does not run, and why.
    pub(crate) async fn refuse(
        &mut self,
        call: &ToolCall,
        status: ResultStatus,
        text: String,
    ) -> Result<(), RunStop> {
        self.emit_started(call);
        let result = self.result(&call.id, status, text);
        self.record_result(&call.name, None, result).await
    }

    /// Skips a call because of a steering message. Returns false if the call has its result already
    /// or a person has decided on it.
    pub(crate) async fn skip_pending(&mut self, pending: &PendingCall) -> Result<bool, RunStop> {
        match &pending.state {
            CallState::New | CallState::Asked { .. } | CallState::Approved { .. } => {
                self.skip(&pending.call).await?;
            }
            CallState::Begun { .. } => {
                let Some(run) = &self.journal.state().run else {
                    return Ok(true);
                };
                let result = run.interrupted_result(pending);
                self.record_result(&pending.call.name, None, result).await?;
            }
            CallState::Rejected { .. } | CallState::Responded { .. } | CallState::Done { .. } => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn skip(&mut self, call: &ToolCall) -> Result<(), RunStop> {
        self.refuse(call, ResultStatus::Skipped, SKIPPED_TEXT.to_owned())
            .await
    }

    /// Records the intents, runs the calls, and records each result as it arrives. A failing call
    /// does not affect the others. No call is begun after a steering message.
    async fn run_batch(&mut self, batch: Vec<AdmittedCall>) -> Result<(), RunStop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.signals.check()?;
        if self.signals.has_steering() {
            for admitted in &batch {
                self.skip(&admitted.call).await?;
            }
            return Ok(());
        }
        let run = self.journal.run();
        let intents: Vec<Entry> = batch
            .iter()
            .filter(|admitted| !is_safe_to_repeat(admitted.prepared.spec().risk))
            .map(|admitted| Entry::Call(intent(run, admitted)))
            .collect();
        if !intents.is_empty() {
            self.journal.record(intents).await?;
        }
        let width = self.journal.agent().policy().parallel_tool_calls as usize;
        let (deltas, mut waiting) = mpsc::channel(MAX_WAITING_DELTAS);
        let mut calls = Vec::with_capacity(batch.len());
        for admitted in batch {
            calls.push(self.begin(admitted, &deltas));
        }
        let mut calls = futures_util::stream::iter(calls).buffer_unordered(width.max(1));
        let mut stop = None;
        loop {
            let finished = tokio::select! {
                biased;
                Some((id, text)) = waiting.recv() => {
                    self.journal.emit(EventKind::ToolOutputDelta { id, text });
                    continue;
                }
                finished = calls.next() => match finished {
                    Some(finished) => finished,
                    None => break,
                },
            };
            while let Ok((id, text)) = waiting.try_recv() {
                self.journal.emit(EventKind::ToolOutputDelta { id, text });
            }
            stop = stop.or(self.finish(finished).await?);
        }
        stop.map_or(Ok(()), Err)
    }

    /// Returns the execution of a call, which does not borrow the run.
    fn begin(
        &mut self,
        mut admitted: AdmittedCall,
        deltas: &mpsc::Sender<(String, String)>,
    ) -> impl Future<Output = FinishedCall> + use<> {
        let spec = admitted.prepared.spec();
        let tool = spec.name.clone();
        let length = spec.length;
        self.journal.emit(EventKind::ToolStarted {
            id: admitted.call.id.clone(),
            name: tool.clone(),
            args: admitted.prepared.args().clone(),
        });
        let run = self.journal.run().clone();
        let intent = is_safe_to_repeat(admitted.prepared.spec().risk)
            .then(|| Entry::Call(intent(&run, &admitted)));
        let cx = self.tool_cx(&admitted.call.id, deltas);
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
            if signals.has_steering() {
                let text = vec![Block::text(SKIPPED_TEXT)];
                let result = CallResult::new(run, &admitted.call.id, ResultStatus::Skipped, text);
                return FinishedCall {
                    tool,
                    intent: None,
                    length,
                    result,
                    taint,
                    hook_results: HookResults::default(),
                    fatal: None,
                };
            }
            let (result, fatal) = execute(run, admitted, cx, &signals, limit).await;
            let (result, hook_results) = match after {
                Some(after) => after.run(result).await,
                None => (result, HookResults::default()),
            };
            FinishedCall {
                tool,
                intent,
                length,
                result,
                taint,
                hook_results,
                fatal,
            }
        }
    }

    /// Records the result of a call. Returns why the run must end, if it must.
    async fn finish(&mut self, finished: FinishedCall) -> Result<Option<RunStop>, RunStop> {
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
        let window = self.journal.session().window();
        result.content = self
            .conversation
            .offload_result(&result.id, finished.length, result.content, window)
            .await;
        self.record_result(&finished.tool, finished.intent, result)
            .await?;
        // The result is on record; a run that cannot keep track of trust does not go on.
        settled?;
        Ok(finished.fatal.map(RunStop::Tool).or(hook_stop))
    }

    /// The context of a call of a tool.
    fn tool_cx(&self, call: &str, deltas: &mpsc::Sender<(String, String)>) -> ToolCx {
        let session = self.journal.session();
        let (file_versions, active_skills) = session.tool_memory();
        ToolCx {
            vfs: self.files.tools.clone(),
            file_versions,
            active_skills,
            cancel: self.signals.cancel().child_token(),
            origin: CallOrigin {
                session: session.id().clone(),
                seq: session.state().seq,
                call: call.to_owned(),
                tainted_by: session.taint().map(|taint| taint.seq),
            },
            spills: self.spills(call, deltas),
            session: session_view(session.state()),
            surface: Surface::default(),
        }
    }

    /// Where the output of a running call goes. Listeners are told of it as far as they keep up.
    fn spills(&self, call: &str, deltas: &mpsc::Sender<(String, String)>) -> SpillFactory {
        let Some(offload) = self.conversation.offload() else {
            return SpillFactory::default();
        };
        let id = call.to_owned();
        let deltas = deltas.clone();
        let listener = move |text| drop(deltas.try_send((id.clone(), text)));
        offload.spills(call, Arc::new(listener))
    }

    fn emit_started(&mut self, call: &ToolCall) {
        let ToolCall { id, name, args, .. } = call.clone();
        self.journal.emit(EventKind::ToolStarted { id, name, args });
    }

    fn result(&self, id: &str, status: ResultStatus, text: String) -> CallResult {
        CallResult::new(
            self.journal.run().clone(),
            id,
            status,
            vec![Block::text(text)],
        )
    }

    /// Records a result, after its intent if that is not on record yet.
    async fn record_result(
        &mut self,
        tool: &str,
        intent: Option<Entry>,
        mut result: CallResult,
    ) -> Result<(), RunStop> {
        let session = self.journal.session();
        let edit_note = session.state().run.as_ref().and_then(|run| {
            let pending = run.pending.iter().find(|call| call.call.id == result.id)?;
            run.edit_note(&pending.call)
        });
        if let Some(note) = edit_note {
            result.content.insert(0, Block::text(note));
        }
        let entries = intent.into_iter().chain([Entry::Result(result)]).collect();
        let lines = self.journal.record(entries).await?;
        for line in &lines {
            if let Entry::Result(result) = &line.entry {
                let hooks = self.hooks.as_mut();
                let preview = match hooks.is_some_and(|hooks| hooks.take_suppressed(&result.id)) {
                    true => String::new(),
                    false => preview(&result.content),
                };
                self.journal.emit(EventKind::ToolEnded {
                    id: result.id.clone(),
                    name: tool.to_owned(),
                    status: result.status,
                    preview,
                    ms: result.ms,
                });
            }
        }
        self.journal.emit_setting_changes(&lines);
        Ok(())
    }
}

fn intent(run: &RunId, admitted: &AdmittedCall) -> CallIntent {
    let spec = admitted.prepared.spec();
    CallIntent {
        run: run.clone(),
        id: admitted.call.id.clone(),
        tool: spec.name.clone(),
        args_hash: args_hash(&admitted.call.args),
        changes: has_side_effects(spec.risk),
        repeatable: spec.risk.repeatable,
    }
}

fn has_side_effects(risk: Risk) -> bool {
    risk.effect > ToolEffect::Reads
}

/// Whether a call can be repeated without harm if the process dies during it. Its intent is then
/// recorded together with its result, in one write.
fn is_safe_to_repeat(risk: Risk) -> bool {
    !has_side_effects(risk) && risk.repeatable
}

fn preview(content: &[Block]) -> String {
    let text = content.iter().find_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    text.unwrap_or_default()
        .chars()
        .take(PREVIEW_CHARS)
        .collect()
}
