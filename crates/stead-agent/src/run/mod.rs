//! Runs: one input, or one interrupted run, worked to its end.
//!
//! [`run_session`] is the life of a run from top to bottom:
//!
//! 1. [`opening::prepare`] checks everything that can be refused before anything is recorded.
//! 2. [`opening::open`] opens the journal and records the input.
//! 3. [`ActiveRun::drive`] is the loop: call the model, run tools, ask people, until the run ends.
//! 4. [`finish`] tells hooks and the listener of the end, and releases the session.
//!
//! An [`ActiveRun`] is made of parts that own their state: the [`RunJournal`] (the session with its
//! journal open, and the listener), the [`Conversation`] (prompt, tools, messages), the
//! [`RunSpending`] (budget and usage), the hooks, and the [`RunSignals`] from outside. The loop
//! lends them to a [`ToolCaller`](caller::ToolCaller) for the tool calls of a step, a
//! [`ModelCaller`](model_call::ModelCaller) for a call of the model, and a
//! [`Compactor`](compaction::Compactor) when the context is full.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

mod call_records;
mod caller;
mod compaction;
mod conversation;
mod delta_redaction;
mod driver;
mod execution;
mod further_tools;
mod journal;
mod model_call;
mod nested;
mod nested_caller;
mod one_call;
mod opening;
mod options;
mod partial_reply;
mod prompt_files;
mod signals;
mod spending;
mod steering;
mod stop;
mod turn_setup;

pub(crate) use caller::ToolCaller;
pub(crate) use conversation::Conversation;
pub(crate) use journal::RunJournal;
pub use one_call::{Sessionless, SessionlessResult};
pub use opening::RunTrigger;
pub use options::{BackgroundTaskPolicy, EntryListener, Listener, RunOptions};
pub(crate) use signals::{HaltReason, RunSignals};
pub(crate) use spending::RunSpending;
pub use steering::INTERRUPTED;
pub(crate) use stop::{RunEnding, RunStop};
pub use turn_setup::TurnSetup;

use crate::hooks::RunHooks;
use crate::{AgentError, ApplyMode, Budget, Session, budget};
use driver::ActiveRun;
use futures_util::future::BoxFuture;
use opening::OpenedRun;
use prompt_files::PromptFiles;
use serde_json::Value;
use stead_core::{EventKind, RunId, RunOutcome, RunReport, SessionState, SpendAmount, WaitingTask};
use stead_memory::NewPart;
use stead_store::RunKey;

/// The most tokens of one message that count as new for memory, which is shown long ones cut.
const MAX_NOTED_TOKENS: u64 = 5_000;

/// Runs `session` to its end, as [`Session::run`], [`Session::resume_with`] and [`Session::wake`] do.
/// Boxed, so that the code of a run is compiled once and not in every crate that starts one.
pub fn run_session(
    session: &mut Session,
    trigger: RunTrigger,
    mut options: RunOptions,
) -> BoxFuture<'_, Result<RunReport, AgentError>> {
    Box::pin(async move {
        // Boxed: the memory of these steps is free again while the run goes on.
        let prepared = Box::pin(opening::prepare(session, trigger, &options)).await?;
        let raise = prepared.raise();
        let OpenedRun {
            journal,
            conversation,
            files,
            submission,
            cause,
        } = Box::pin(opening::open(session, prepared, &mut options)).await?;
        let signals = journal
            .signals(options.cancel)
            .with_queue(options.queue.clone());
        let (budget, budget_error) = match open_budget(&journal, raise, options.budget).await {
            Ok(budget) => (budget, None),
            Err(error) => (Budget::unlimited(), Some(error)),
        };
        let hooks = RunHooks::new(journal.agent(), budget.clone(), signals.clone());
        let mut run = ActiveRun {
            journal,
            conversation,
            spending: RunSpending::new(budget),
            hooks,
            files,
            prompt_files: PromptFiles::default(),
            signals,
            approvals: options.approvals,
            background_tasks: options.background_tasks,
        };
        run.start_subagents();
        let mut started = budget_error.map_or(Ok(()), |error| Err(RunStop::from(error)));
        if started.is_ok()
            && let Some(hooks) = &mut run.hooks
        {
            let trigger = cause.as_str();
            started = hooks.run_start(&mut run.journal, submission, trigger).await;
        }
        let driven = match started {
            Ok(()) => run.drive().await,
            Err(stop) => Err(stop),
        };
        run.stop_subagents(&driven).await;
        let report = finish(run, driven).await?;
        if report.steps > 0 && report.outcome != RunOutcome::Parked {
            note_for_memory(session).await;
        }
        collect_garbage_sometimes(session, &report.run).await;
        Ok(report)
    })
}

/// Opens the budget of a run, after the raise that a person allowed is on record.
async fn open_budget(
    journal: &RunJournal<'_>,
    raise: SpendAmount,
    of_parent: Option<Budget>,
) -> Result<Budget, AgentError> {
    let session = journal.session();
    if !raise.is_zero() {
        budget::raise_today(&session.agent().parts, session.owner(), raise).await?;
    }
    let settings = session.agent().workspace().config().budget;
    match of_parent {
        Some(budget) => Ok(budget),
        None if !settings.has_limit() => Ok(Budget::unlimited()),
        None => Budget::for_session(session).await,
    }
}

/// Closes a run that failed, tells hooks and the listener, and releases the session.
async fn finish(
    mut run: ActiveRun<'_>,
    driven: Result<RunEnding, RunStop>,
) -> Result<RunReport, AgentError> {
    let ended = match driven {
        Ok(ending) => Ok(ending),
        Err(stop) => run.close(stop).await,
    };
    let ending = match ended {
        Ok(ending) => ending,
        Err(error) => {
            let failed = RunEnding {
                outcome: RunOutcome::Failed,
                reason: Some(error.to_string()),
            };
            let report = report(&run.journal, &failed, Vec::new());
            run.journal.emit(run_ended(&report));
            return Err(error);
        }
    };
    if let Some(hooks) = &mut run.hooks {
        hooks.run_end(&mut run.journal, &ending).await;
    }
    run.spending.write_log(&mut run.journal).await;
    let subagents = run.journal.session().subagents().clone();
    let waiting = subagents.waiting_tasks().await;
    let report = report(&run.journal, &ending, waiting);
    run.journal.emit(run_ended(&report));
    run.journal.close().await;
    Ok(report)
}

/// Returns the report of a run that ended.
fn report(journal: &RunJournal<'_>, ending: &RunEnding, waiting: Vec<WaitingTask>) -> RunReport {
    let state = journal.state();
    let totals = state.run.as_ref().or(state.last_run.as_ref());
    let redactor = journal.session().redactor();
    let redacted = |reason: &String| redactor.redact(reason).into_owned();
    RunReport {
        session: journal.session().id().clone(),
        run: journal.run().clone(),
        outcome: ending.outcome,
        reason: ending.reason.as_ref().map(redacted),
        text: state.final_text(),
        steps: totals.map_or(0, |run| run.steps),
        usage: totals.map(|run| run.usage).unwrap_or_default(),
        cost: totals.and_then(|run| run.cost),
        value: answer_value(state, ending.outcome),
        waiting,
    }
}

/// Returns the answer as a value, if it had to conform to a schema and does.
fn answer_value(state: &SessionState, outcome: RunOutcome) -> Option<Value> {
    let run = state.run.as_ref().or(state.last_run.as_ref())?;
    run.output_schema.as_ref()?;
    let text = state.final_text();
    serde_json::from_str(&text)
        .ok()
        .filter(|_| outcome == RunOutcome::Completed)
}

/// Returns the last event of a run.
fn run_ended(report: &RunReport) -> EventKind {
    EventKind::RunEnded {
        outcome: report.outcome,
        reason: report.reason.clone(),
        text: report.text.clone(),
        steps: report.steps,
        usage: report.usage,
        cost: report.cost,
        value: report.value.clone(),
        waiting: report.waiting.clone(),
    }
}

/// Notes that memory has a new part of the session to look through. A failure loses nothing: the
/// journal has it, and the next note includes it.
async fn note_for_memory(session: &Session) {
    let state = session.state();
    let begins = state
        .turns
        .iter()
        .rposition(|turn| turn.starts_run.is_some());
    let of_run = state.turns.iter().skip(begins.unwrap_or(0));
    let new = NewPart {
        upto: state.seq,
        tokens: of_run.map(|turn| turn.tokens().min(MAX_NOTED_TOKENS)).sum(),
    };
    let memory = session.agent().memory();
    let _ = memory.run_ended(session.owner(), session.id(), new).await;
}

/// Keeps the undo log within its limits, after one in fifty of the runs that changed files: looking
/// through the log takes longer with every session.
async fn collect_garbage_sometimes(session: &Session, run: &RunId) {
    let sum: u32 = run.as_str().bytes().map(u32::from).sum();
    if !sum.is_multiple_of(50) {
        return;
    }
    let key = RunKey {
        session: session.id().clone(),
        run: run.clone(),
    };
    let changes = session.agent().place().changes(session.owner());
    let records = changes.records(&key).await;
    if records.is_ok_and(|records| !records.is_empty()) {
        // A failure is reported when a person collects garbage.
        let collector = session.agent().collector(session.owner());
        let _ = collector.collect(ApplyMode::Apply).await;
    }
}
