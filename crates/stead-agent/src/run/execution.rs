//! The execution of one tool call, under a time limit and until the run is stopped.
//!
//! Effects: in-process state, the clock, tools.

use super::signals::RunSignals;
use crate::admission::AdmittedCall;
use futures_util::FutureExt;
use std::time::{Duration, Instant};
use stead_core::{CallResult, ResultStatus, RunId};
use stead_tools::{Output, ToolCx, ToolError};

/// How long a cancelled tool may take to end by itself.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// The result of a call that was cancelled.
const CANCELLED_TEXT: &str = "cancelled: may have run in part";

/// Runs one call to its result, whatever happens: time limit, cancellation and panic included. Also
/// returns why the run must end, if it must.
pub(super) async fn execute(
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
