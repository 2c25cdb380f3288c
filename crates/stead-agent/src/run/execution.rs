//! One tool call: begun, executed under a time limit and until the run is stopped, finished, and
//! put on record.
//!
//! Effects: the clock, randomness, workspace files (writes), the store (writes), the journal
//! (writes), hooks, tools.

use super::call_records::{file_name, parent_of};
use super::caller::{SKIPPED_TEXT, ToolCaller, intent, is_begun, is_safe_to_repeat};
use super::nested::{CallLink, CallTokens, FromCall, StoppedCall};
use super::signals::RunSignals;
use super::stop::RunStop;
use crate::admission::AdmittedCall;
use crate::hooks::HookResults;
use crate::session::session_view;
use crate::taint::CallTaint;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{
    Block, CallResult, Entry, EventKind, NestedCall, NestedId, ResultStatus, RunId, ToolKind,
};
use stead_tools::{
    CallOrigin, NestedCallError, NestedCalls, Output, OutputLength, PreparedCall, SpillFactory,
    Surface, ToolCx, ToolError,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a cancelled tool may take to end by itself.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// How long the change of a call may take to be shown; without it the call is shown without it.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of a call that was cancelled.
const CANCELLED_TEXT: &str = "cancelled: may have run in part";
/// The most characters of a result that an event shows.
const PREVIEW_CHARS: usize = 400;
/// The most bytes of text in the result of a nested call that the calling tool is given whole. A
/// longer one is moved to a file, as every long result is.
const MAX_NESTED_TEXT_BYTES: usize = 256 * 1024;

/// A call that has ended, as listeners are told of it.
#[derive(Debug, Clone)]
pub(super) struct ShownCall<'a> {
    /// The canonical name of its tool.
    pub(super) tool: &'a str,
    /// The change of files that it made.
    pub(super) diff: Option<String>,
}

impl<'a> ShownCall<'a> {
    /// A call of `tool` that changed no file.
    pub(super) fn of(tool: &'a str) -> Self {
        Self { tool, diff: None }
    }
}

/// A call that has run.
pub(super) struct FinishedCall {
    /// The canonical name of its tool.
    pub(super) tool: String,
    /// Its link, which has its intent if that is recorded together with the result.
    pub(super) link: Option<Arc<CallLink>>,
    pub(super) length: OutputLength,
    pub(super) result: CallResult,
    /// The change of files that it made, for people.
    pub(super) diff: Option<String>,
    /// What was known about its trust before it ran.
    pub(super) taint: CallTaint,
    pub(super) hook_results: HookResults,
    /// Why the run must end.
    pub(super) fatal: Option<String>,
}

impl ToolCaller<'_, '_> {
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
                    diff: None,
                    taint,
                    hook_results: HookResults::default(),
                    fatal: None,
                });
            }
            let diff = planned_diff(&admitted.prepared, &cx).await;
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
                diff: diff.filter(|_| result.status == ResultStatus::Ok),
                result,
                taint,
                hook_results,
                fatal,
            })
        }
    }
}

/// Returns the change of files that a call is about to make, for people. Files are written only if
/// they are as they were seen, so it is the change that is made.
async fn planned_diff(prepared: &PreparedCall, cx: &ToolCx) -> Option<String> {
    if prepared.spec().kind != ToolKind::FileWrite {
        return None;
    }
    let view = prepared.view(&*cx.vfs, &cx.session);
    let preview = prepared.plan().preview(view);
    tokio::time::timeout(DIFF_TIMEOUT, preview).await.ok()?
}

/// Runs one call to its result, whatever happens: time limit, cancellation and panic included. Also
/// returns why the run must end, if it must.
async fn execute(
    run: RunId,
    admitted: AdmittedCall,
    cx: ToolCx,
    signals: &RunSignals,
    limit: Duration,
) -> (CallResult, Option<String>) {
    let AdmittedCall {
        call,
        prepared,
        taint: _,
    } = admitted;
    // A call can set its own limit; otherwise it is that of the policy.
    let limit_setting = match prepared.plan().timeout() {
        Some(_) => "",
        None => " (policy.tool_timeout_seconds)",
    };
    let started = Instant::now();
    let cancel = cx.cancel.clone();
    let work = std::panic::AssertUnwindSafe(prepared.call(cx)).catch_unwind();
    let mut work = std::pin::pin!(work);
    let early = tokio::select! {
        biased;
        done = &mut work => Ok(done),
        _ = signals.wait() => Err((ResultStatus::Cancelled, CANCELLED_TEXT.to_owned())),
        // Only a nested call is cancelled by itself, when the call that made it ends.
        () = cancel.cancelled() => Err((ResultStatus::Cancelled, CANCELLED_TEXT.to_owned())),
        () = tokio::time::sleep(limit) => {
            let text = format!("timed out after {} s{limit_setting}: may have run in part", limit.as_secs());
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
    let mut result = CallResult {
        run,
        id: call.id,
        status,
        exit_code: output.exit_code,
        content: output.content,
        seen: output.file_versions,
        activates: output.activates,
        untrusted: false,
        taint: Vec::new(),
        change: output.change,
        tasks: output.finished_tasks,
        ms: started.elapsed().as_millis() as u64,
        nested: None,
    };
    result.add_taint(output.taint);
    (result, stop)
}

impl ToolCaller<'_, '_> {
    /// Records the result of a call. Returns why the run must end, if it must.
    pub(super) async fn finish(
        &mut self,
        finished: FinishedCall,
    ) -> Result<Option<RunStop>, RunStop> {
        let mut result = finished.result;
        let settled = finished
            .taint
            .settle(self.journal.session(), &*self.files.unguarded, &mut result)
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
        let shown = ShownCall {
            tool: &finished.tool,
            diff: finished.diff,
        };
        self.record_result(shown, intent, result).await?;
        // The result is on record; a run that cannot keep track of trust does not go on.
        settled?;
        Ok(finished.fatal.map(RunStop::Tool).or(hook_stop))
    }

    /// Records a result, after its intent if that is not on record yet. Calls that it made and that
    /// have no result get one before it.
    pub(super) async fn record_result(
        &mut self,
        shown: ShownCall<'_>,
        intent: Option<Entry>,
        mut result: CallResult,
    ) -> Result<(), RunStop> {
        let session = self.journal.session();
        let mut unfinished = Vec::new();
        if let Some(run) = &session.state().run {
            let notes = run.edit_notes(&result.id).into_iter().map(Block::text);
            result.content.splice(0..0, notes);
            let pending = run.pending.find(&result.id);
            result.untrusted |= pending.is_some_and(|pending| pending.nesting.untrusted);
            unfinished = run.unfinished_results(&result.id);
        }
        if !unfinished.is_empty() {
            self.record_unfinished(unfinished).await?;
        }
        let entries = intent.into_iter().chain([Entry::Result(result)]).collect();
        let lines = self.journal.record(entries).await?;
        for line in &lines {
            if let Entry::Result(result) = &line.entry {
                self.emit_ended(shown.clone(), result);
            }
        }
        self.journal.emit_setting_changes(&lines);
        Ok(())
    }

    /// Moves what is too long of the result of a call into a file.
    pub(super) async fn offload(
        &self,
        id: &str,
        length: OutputLength,
        content: Vec<Block>,
    ) -> Vec<Block> {
        if NestedId::parse(id).is_some() && is_given_whole(&content) {
            return content;
        }
        let window = self.journal.session().window();
        let name = file_name(id);
        self.conversation
            .offload_result(&name, length, content, window)
            .await
    }

    /// Tells the listener that a call has ended.
    pub(super) fn emit_ended(&mut self, shown: ShownCall<'_>, result: &CallResult) {
        let hooks = self.hooks.as_mut();
        let preview = match hooks.is_some_and(|hooks| hooks.take_suppressed(&result.id)) {
            true => String::new(),
            false => preview(&result.content),
        };
        self.journal.emit(EventKind::ToolEnded {
            id: result.id.clone(),
            name: shown.tool.to_owned(),
            status: result.status,
            exit_code: result.exit_code,
            preview,
            diff: shown.diff,
            ms: result.ms,
            parent: parent_of(&result.id),
        });
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
            vfs: self.files.guarded.clone(),
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

/// Whether the calling tool is given the result of a nested call as it is.
fn is_given_whole(content: &[Block]) -> bool {
    let texts = content.iter().map(|block| match block {
        Block::Text { text } => Some(text.len()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    let bytes: Option<usize> = texts.sum();
    bytes.is_some_and(|bytes| bytes <= MAX_NESTED_TEXT_BYTES)
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
