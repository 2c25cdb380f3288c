//! The calls of one step: through the gate, then run, each with its intent and result on record.

use crate::admission::{Admission, Ready};
use crate::halt::Halt;
use crate::hooks::Fired;
use crate::live::{Live, Stop};
use crate::steering::{is_steered, skipped};
use futures_util::{FutureExt, StreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    Ask, AskTerms, Block, CallIntent, CallResult, Effect, Entry, EventKind, Pending, ResultStatus,
    Risk, RunId, ToolCall, args_hash,
};
use stead_tools::{
    ActiveSkills, Length, Origin, Output, Seen, Spills, Standing, ToolCx, ToolError,
};
use stead_vfs::Vfs;
use tokio::sync::mpsc;

/// How long a cancelled tool may take to come to its own end.
const CANCEL_GRACE: Duration = Duration::from_millis(500);
/// Pieces of output that wait to be told; more are left out.
const MAX_WAITING_DELTAS: usize = 64;
/// How much of a result an event shows.
const PREVIEW_CHARS: usize = 400;

impl Live<'_> {
    /// Puts the calls through the gate and runs what it allows: neighbours that are parallel-safe
    /// together, all others alone, in the model's order.
    pub(crate) async fn run_tools(&mut self, calls: Vec<Pending>) -> Result<(), Stop> {
        let mut together: Vec<Ready> = Vec::new();
        let mut asks = false;
        for pending in calls {
            if self.is_steered() {
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
                let conversation = session.conversation();
                let admitted = session
                    .agent
                    .admit(self.hands(), &*self.files, &self.run, again, &conversation)
                    .await;
                if matches!(admitted, Admission::Run(ready) if !leaves_no_trace(ready.tool.spec().risk))
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
                session
                    .agent
                    .admit(
                        self.hands(),
                        &*self.files,
                        &self.run,
                        pending,
                        &session.conversation(),
                    )
                    .await
            };
            match admitted {
                Admission::Run(ready) if ready.tool.spec().risk.parallel_safe => {
                    together.push(ready)
                }
                Admission::Run(ready) => {
                    self.run_batch(std::mem::take(&mut together)).await?;
                    self.run_batch(vec![ready]).await?;
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
                        result.untrusted = self
                            .session
                            .agent
                            .responds_from_outside(self.hands(), &call);
                        if let Some(offload) = &self.offload {
                            let window = self.session.window();
                            result.content = offload
                                .result(&call.id, Length::Any, result.content, window)
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
    ) -> Result<(), Stop> {
        let ToolCall { id, name, args, .. } = call.clone();
        self.emit(EventKind::ToolStarted { id, name, args });
        let result = refusal(&self.run, &call.id, status, text);
        self.record_result(&call.name, None, result).await
    }

    /// Records the intents, runs the calls, and records each result as it comes. One failing call
    /// never touches the others. After a new message none is begun.
    async fn run_batch(&mut self, batch: Vec<Ready>) -> Result<(), Stop> {
        if batch.is_empty() {
            return Ok(());
        }
        self.halt.check()?;
        if self.is_steered() {
            return self.skip(batch.into_iter().map(|ready| ready.call)).await;
        }
        let first = batch
            .iter()
            .filter(|ready| !leaves_no_trace(ready.tool.spec().risk));
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
            let name = ready.tool.spec().name.clone();
            self.emit(EventKind::ToolStarted {
                id,
                name,
                args: ready.args.clone(),
            });
            let known = (self.session.seen.clone(), self.session.active.clone());
            let origin = Origin {
                session: self.session.id.clone(),
                seq: self.session.state.seq,
                call: ready.call.id.clone(),
                tainted: self.session.state.tainted,
            };
            let spills = self.spills(&ready.call.id, &deltas);
            let standing = self.session.standing();
            let cx = ToolCx {
                spills,
                standing,
                ..tool_cx(self.tool_files.clone(), known, origin, &self.halt)
            };
            let length = ready.tool.length();
            let late = leaves_no_trace(ready.tool.spec().risk)
                .then(|| Entry::Call(intent(&self.run, &ready)));
            let limit = ready.tool.timeout(&ready.args).unwrap_or(usual);
            let after = self.after_tool(&ready.call);
            let run = self.run.clone();
            let halt = self.halt.clone();
            let inbox = self.options.inbox.clone();
            running.push(async move {
                // Its turn may come long after that of the first.
                if is_steered(inbox.as_ref()) {
                    let result = skipped(&run, &ready.call.id);
                    return (
                        None,
                        length,
                        (
                            ready.tool.spec().name.clone(),
                            (result, Fired::default()),
                            None,
                        ),
                    );
                }
                let (name, result, stop) = execute(run, ready, cx, halt, limit).await;
                (late, length, (name, after.see(result).await, stop))
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
            let hooked = self.add_words(fired, &mut result).await?;
            if let Some(offload) = &self.offload {
                result.content = offload
                    .result(&result.id, length, result.content, self.session.window())
                    .await;
            }
            self.record_result(&name, late, result).await?;
            fatal = fatal.or(stop.map(Stop::Tool)).or(hooked);
        }
        match fatal {
            Some(stop) => Err(stop),
            None => Ok(()),
        }
    }

    /// Where the output of a call goes while it runs; listeners hear of it as far as they keep up.
    fn spills(&self, call: &str, deltas: &mpsc::Sender<(String, String)>) -> Spills {
        let Some(offload) = &self.offload else {
            return Spills::default();
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
    ) -> Result<(), Stop> {
        let agent = self.session.agent.clone();
        let sessions = self.session.sessions.clone();
        if let Some(note) = self.session.edit_note(&result.id) {
            result.content.insert(0, Block::text(note));
        }
        result.untrusted =
            result.untrusted || agent.shows_outside(&*sessions, &result.content).await;
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
                let preview = if self.hooked.hides(id) {
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
        self.tell_changes(&lines);
        Ok(())
    }
}

pub(crate) fn tool_cx(
    vfs: Arc<dyn Vfs>,
    (seen, active): (Arc<Seen>, Arc<ActiveSkills>),
    origin: Origin,
    halt: &Halt,
) -> ToolCx {
    ToolCx {
        vfs,
        seen,
        active,
        cancel: halt.cancel.child_token(),
        origin,
        spills: Spills::default(),
        standing: Standing::default(),
    }
}

/// Runs one call to its result, whatever happens: time limit, cancellation and panic included.
pub(crate) async fn execute(
    run: RunId,
    ready: Ready,
    cx: ToolCx,
    halt: Halt,
    limit: Duration,
) -> (String, CallResult, Option<String>) {
    let Ready {
        call,
        tool,
        args,
        outside,
    } = ready;
    let name = tool.spec().name.clone();
    let started = Instant::now();
    let mut work = std::panic::AssertUnwindSafe(tool.call(&cx, args)).catch_unwind();
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
            cx.cancel.cancel();
            // A tool that sees the cancellation in time still gives its own, truer result.
            tokio::time::timeout(CANCEL_GRACE, work)
                .await
                .map_err(|_| stopped)
        }
    };
    let (status, output, stop) = match done {
        Ok(Ok(Ok(output))) if output.failed => (ResultStatus::Error, output, None),
        Ok(Ok(Ok(output))) => (ResultStatus::Ok, output, None),
        Ok(Ok(Err(ToolError::Tell(text)))) => (failed, Output::text(text), None),
        Ok(Ok(Err(ToolError::Stop(text)))) => {
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
        seen: output.seen,
        activates: output.activates,
        untrusted: outside || output.untrusted,
        change: output.change,
        tasks: output.tasks,
        ms: started.elapsed().as_millis() as u64,
    };
    (name, result, stop)
}

fn intent(run: &RunId, ready: &Ready) -> CallIntent {
    let spec = ready.tool.spec();
    CallIntent {
        run: run.clone(),
        id: ready.call.id.clone(),
        tool: spec.name.clone(),
        args_hash: args_hash(&ready.call.args),
        changes: changes(spec.risk),
        repeatable: spec.risk.repeatable,
    }
}

fn changes(risk: Risk) -> bool {
    risk.effect > Effect::Reads
}

/// Whether it is all the same if the process dies during a call: then its intent need not be on
/// record before it begins, and goes there with the result, in one write.
fn leaves_no_trace(risk: Risk) -> bool {
    !changes(risk) && risk.repeatable
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
