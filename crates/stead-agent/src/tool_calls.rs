//! The calls of one step: through the gate, then run, each with its intent and result on record.

use crate::active_run::{ActiveRun, RunStop};
use crate::admission::{Admission, AdmittedCall, CallGate};
use crate::halt::Halt;
use crate::hooks::HookResults;
use crate::steering::{has_steering, skipped_result};
use crate::untrusted_records::SessionRecords;
use futures_util::{FutureExt, StreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    Ask, AskTerms, Block, CallIntent, CallResult, Entry, EventKind, PendingCall, ResultStatus,
    Risk, RunId, ToolCall, ToolEffect, args_hash,
};
use stead_tools::{
    ActiveSkills, CallOrigin, FileVersions, Output, OutputLength, SessionView, SpillFactory,
    Surface, ToolCx, ToolError,
};
use stead_vfs::Vfs;
use tokio::sync::mpsc;

/// How long a cancelled tool may take to come to its own end.
const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// Pieces of output that wait to be told; more are left out.
const MAX_WAITING_DELTAS: usize = 64;
/// How much of a result an event shows.
const PREVIEW_CHARS: usize = 400;

impl ActiveRun<'_> {
    /// Puts the calls through the gate and runs what it allows: neighbours that are parallel-safe
    /// together, all others alone, in the model's order.
    pub(crate) async fn run_tools(&mut self, calls: Vec<PendingCall>) -> Result<(), RunStop> {
        let mut together: Vec<AdmittedCall> = Vec::new();
        let mut asks = false;
        for pending in calls {
            if self.has_steering() {
                self.run_batch(std::mem::take(&mut together)).await?;
                if self.skip_pending(&pending).await? {
                    continue;
                }
            }
            // Nothing is changed under those who are asked, nor handed to others who would: it runs
            // with what they agree to.
            if asks {
                let session = &*self.session;
                let again = pending.clone();
                let conversation = session.gate_context();
                let admitted = CallGate::new(&session.agent)
                    .admit(
                        self.callable_tools(),
                        &*self.files,
                        &self.run,
                        again,
                        &conversation,
                    )
                    .await;
                if matches!(admitted, Admission::Run(ready) if !is_safe_to_repeat(ready.prepared.spec().risk))
                {
                    continue;
                }
            }
            let Some(pending) = self.before_tool(pending).await? else {
                continue;
            };
            let call = pending.call.clone();
            let admitted = {
                let session = &*self.session;
                CallGate::new(&session.agent)
                    .admit(
                        self.callable_tools(),
                        &*self.files,
                        &self.run,
                        pending,
                        &session.gate_context(),
                    )
                    .await
            };
            match admitted {
                Admission::Run(ready) if ready.prepared.spec().risk.parallel_safe => {
                    together.push(*ready)
                }
                Admission::Run(ready) => {
                    self.run_batch(std::mem::take(&mut together)).await?;
                    self.run_batch(vec![*ready]).await?;
                }
                Admission::Ask(asked) => {
                    asks = true;
                    for line in self.record(vec![Entry::Ask(asked.ask)]).await? {
                        let Entry::Ask(Ask {
                            id, rule, terms, ..
                        }) = line.entry
                        else {
                            continue;
                        };
                        let name = call.name.clone();
                        let args = call.args.clone();
                        let decisions = terms.allowed().to_vec();
                        let AskTerms {
                            expires, preview, ..
                        } = terms;
                        self.emit(EventKind::Ask {
                            id,
                            name,
                            args,
                            rule,
                            decisions,
                            expires,
                            preview,
                        });
                    }
                }
                Admission::Refuse(status, text) => {
                    let mut result = refusal(&self.run, &call.id, status, text);
                    if status == ResultStatus::Ok {
                        result.untrusted = CallGate::new(&self.session.agent)
                            .is_response_untrusted(self.callable_tools(), &call);
                        if let Some(offload) = &self.offload {
                            let window = self.session.window();
                            result.content = offload
                                .offload_result(&call.id, OutputLength::Any, result.content, window)
                                .await;
                        }
                    }
                    self.emit(EventKind::ToolStarted {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        args: call.args,
                    });
                    self.record_result(&call.name, None, result).await?;
                }
            }
        }
        self.run_batch(together).await
    }

    /// Records that a call does not run, and why.
    pub(crate) async fn refuse(
        &mut self,
        call: &ToolCall,
        status: ResultStatus,
        text: String,
    ) -> Result<(), RunStop> {
        let ToolCall { id, name, args, .. } = call.clone();
        self.emit(EventKind::ToolStarted { id, name, args });
        let result = refusal(&self.run, &call.id, status, text);
        self.record_result(&call.name, None, result).await
    }

    /// Records the intents, runs the calls, and records each result as it comes. One failing call
    /// never touches the others. After a new message none is begun.
    async fn run_batch(&mut self, batch: Vec<AdmittedCall>) -> Result<(), RunStop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.halt.check()?;
        if self.has_steering() {
            return self
                .skip_calls(batch.into_iter().map(|ready| ready.call))
                .await;
        }
        let first = batch
            .iter()
            .filter(|ready| !is_safe_to_repeat(ready.prepared.spec().risk));
        let intents: Vec<Entry> = first
            .map(|ready| Entry::Call(intent(&self.run, ready)))
            .collect();
        if !intents.is_empty() {
            self.record(intents).await?;
        }
        let policy = self.session.agent.policy();
        let usual = Duration::from_secs(policy.tool_timeout_seconds);
        let width = policy.parallel_tool_calls as usize;
        let (deltas, mut told) = mpsc::channel(MAX_WAITING_DELTAS);
        let mut running = Vec::with_capacity(batch.len());
        for ready in batch {
            let id = ready.call.id.clone();
            let name = ready.prepared.spec().name.clone();
            self.emit(EventKind::ToolStarted {
                id,
                name,
                args: ready.prepared.args().clone(),
            });
            let known = (
                self.session.seen_files.clone(),
                self.session.active_skills.clone(),
            );
            let origin = CallOrigin {
                session: self.session.id.clone(),
                seq: self.session.state.seq,
                call: ready.call.id.clone(),
                tainted_by: self.session.state.tainted,
            };
            let spills = self.spills(&ready.call.id, &deltas);
            let standing = self.session.session_view();
            let cx = ToolCx {
                spills,
                session: standing,
                ..tool_cx(self.tool_files.clone(), known, origin, &self.halt)
            };
            let length = ready.prepared.spec().length;
            let late = is_safe_to_repeat(ready.prepared.spec().risk)
                .then(|| Entry::Call(intent(&self.run, &ready)));
            let limit = ready.prepared.plan().timeout().unwrap_or(usual);
            let after = self.after_tool(&ready.call);
            let run = self.run.clone();
            let halt = self.halt.clone();
            let inbox = self.options.inbox.clone();
            running.push(async move {
                // Its turn may come long after that of the first.
                if has_steering(inbox.as_ref()) {
                    let result = skipped_result(&run, &ready.call.id);
                    return (
                        None,
                        length,
                        (
                            ready.prepared.spec().name.clone(),
                            (result, HookResults::default()),
                            None,
                        ),
                    );
                }
                let (name, result, stop) = execute(run, ready, cx, halt, limit).await;
                (late, length, (name, after.run(result).await, stop))
            });
        }
        let mut running = futures_util::stream::iter(running).buffer_unordered(width.max(1));
        let mut fatal = None;
        loop {
            let (late, length, (name, (mut result, fired), stop)) = tokio::select! {
                biased;
                Some((id, text)) = told.recv() => {
                    self.emit(EventKind::ToolOutputDelta { id, text });
                    continue;
                }
                done = running.next() => match done {
                    Some(done) => done,
                    None => break,
                },
            };
            while let Ok((id, text)) = told.try_recv() {
                self.emit(EventKind::ToolOutputDelta { id, text });
            }
            let hooked = self.apply_after_tool_results(fired, &mut result).await?;
            if let Some(offload) = &self.offload {
                result.content = offload
                    .offload_result(&result.id, length, result.content, self.session.window())
                    .await;
            }
            self.record_result(&name, late, result).await?;
            fatal = fatal.or(stop.map(RunStop::Tool)).or(hooked);
        }
        match fatal {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }

    /// Where the output of a call goes while it runs; listeners hear of it as far as they keep up.
    fn spills(&self, call: &str, deltas: &mpsc::Sender<(String, String)>) -> SpillFactory {
        let Some(offload) = &self.offload else {
            return SpillFactory::default();
        };
        let id = call.to_owned();
        let deltas = deltas.clone();
        offload.spills(
            call,
            Arc::new(move |text| drop(deltas.try_send((id.clone(), text)))),
        )
    }

    pub(crate) async fn record_result(
        &mut self,
        name: &str,
        late: Option<Entry>,
        mut result: CallResult,
    ) -> Result<(), RunStop> {
        let agent = self.session.agent.clone();
        let sessions = self.session.sessions.clone();
        if let Some(note) = self.session.edit_note(&result.id) {
            result.content.insert(0, Block::text(note));
        }
        result.untrusted = result.untrusted
            || SessionRecords::new(&agent.workspace().definition.paths)
                .are_untrusted_in(&result.content, &*sessions)
                .await;
        let entries = late.into_iter().chain([Entry::Result(result)]).collect();
        let lines = self.record(entries).await?;
        for line in &lines {
            if let Entry::Result(CallResult {
                id,
                status,
                content,
                ms,
                ..
            }) = &line.entry
            {
                let preview = if self.hook_output.take_suppressed(id) {
                    String::new()
                } else {
                    preview(content)
                };
                let id = id.clone();
                let name = name.to_owned();
                self.emit(EventKind::ToolEnded {
                    id,
                    name,
                    status: *status,
                    preview,
                    ms: *ms,
                });
            }
        }
        self.notify_setting_changes(&lines);
        Ok(())
    }
}

pub(crate) fn tool_cx(
    vfs: Arc<dyn Vfs>,
    (seen, active): (Arc<FileVersions>, Arc<ActiveSkills>),
    origin: CallOrigin,
    halt: &Halt,
) -> ToolCx {
    ToolCx {
        vfs,
        file_versions: seen,
        active_skills: active,
        cancel: halt.cancel.child_token(),
        origin,
        spills: SpillFactory::default(),
        session: SessionView::default(),
        surface: Surface::default(),
    }
}

/// Runs one call to its result, whatever happens: time limit, cancellation and panic included.
pub(crate) async fn execute(
    run: RunId,
    ready: AdmittedCall,
    cx: ToolCx,
    halt: Halt,
    limit: Duration,
) -> (String, CallResult, Option<String>) {
    let AdmittedCall {
        call,
        prepared,
        untrusted: outside,
    } = ready;
    let name = prepared.spec().name.clone();
    let started = Instant::now();
    let cancel = cx.cancel.clone();
    let work = std::panic::AssertUnwindSafe(prepared.call(cx)).catch_unwind();
    let mut work = std::pin::pin!(work);
    let early = tokio::select! {
        biased;
        done = &mut work => Ok(done),
        _ = halt.wait() => Err((ResultStatus::Cancelled, "cancelled: may have run in part".to_owned())),
        () = tokio::time::sleep(limit) => {
            let text = format!("timed out after {} s (policy.tool_timeout_seconds): may have run in part", limit.as_secs());
            Err((ResultStatus::Error, text))
        }
    };
    let failed = early
        .as_ref()
        .err()
        .map_or(ResultStatus::Error, |(status, _)| *status);
    let done = match early {
        Ok(done) => Ok(done),
        Err(stopped) => {
            cancel.cancel();
            // A tool that sees the cancellation in time still gives its own, truer result.
            tokio::time::timeout(CANCEL_GRACE, work)
                .await
                .map_err(|_| stopped)
        }
    };
    let (status, output, stop) = match done {
        Ok(Ok(Ok(output))) if output.failed => (ResultStatus::Error, output, None),
        Ok(Ok(Ok(output))) => (ResultStatus::Ok, output, None),
        Ok(Ok(Err(ToolError::RespondToModel(text)))) => (failed, Output::text(text), None),
        Ok(Ok(Err(ToolError::Fatal(text)))) => {
            (ResultStatus::Error, Output::text(text.clone()), Some(text))
        }
        Ok(Err(_panic)) => (
            ResultStatus::Error,
            Output::text("the tool failed unexpectedly; its effect is unknown"),
            None,
        ),
        Err((status, text)) => (status, Output::text(text), None),
    };
    let result = CallResult {
        run,
        id: call.id,
        status,
        content: output.content,
        seen: output.file_versions,
        activates: output.activates,
        untrusted: outside || output.untrusted,
        change: output.change,
        tasks: output.finished_tasks,
        ms: started.elapsed().as_millis() as u64,
    };
    (name, result, stop)
}

fn intent(run: &RunId, ready: &AdmittedCall) -> CallIntent {
    let spec = ready.prepared.spec();
    CallIntent {
        run: run.clone(),
        id: ready.call.id.clone(),
        tool: spec.name.clone(),
        args_hash: args_hash(&ready.call.args),
        changes: has_side_effects(spec.risk),
        repeatable: spec.risk.repeatable,
    }
}

fn has_side_effects(risk: Risk) -> bool {
    risk.effect > ToolEffect::Reads
}

/// Whether it is all the same if the process dies during a call: then its intent need not be on
/// record before it begins, and goes there with the result, in one write.
fn is_safe_to_repeat(risk: Risk) -> bool {
    !has_side_effects(risk) && risk.repeatable
}

fn refusal(run: &RunId, id: &str, status: ResultStatus, text: String) -> CallResult {
    CallResult::new(run.clone(), id, status, vec![Block::text(text)])
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
